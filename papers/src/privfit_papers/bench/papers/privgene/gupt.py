"""GUPT as printed, for many epsilons on the same rows: blocks are formed and fitted once, and their mean gets new noise
for every epsilon.

Laplace noise for an equal share of epsilon on every answer, and no answer is cut at its bounds afterwards. Seeded noise
only: nothing of it is a private release.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import SampleAndAggregate
from privfit.mechanisms.aggregation.block_plan import BlockAnswers, BlockPlan
from privfit.privacy import Draws
from privfit.rows import PartitionedRows
from privfit.schema import Geometry

Floats = NDArray[np.float64]


@dataclass
class KeptAnswers:
    """What the blocks of one table said, as shares of their ranges."""

    shares: Floats | None = None


@dataclass(frozen=True)
class GuptOnce(SampleAndAggregate):
    """Sample and aggregate for many fits on the same rows. One `kept` belongs to one table and one model."""

    noise: Literal["auto", "laplace", "linf", "gaussian"] = "laplace"
    cut: bool = False
    kept: KeptAnswers = field(default_factory=KeptAnswers, compare=False)

    def reasons_not_private(self, problem: BlockAnswers) -> tuple[str, ...]:
        """Why none of it is private."""
        return ("kept blocks answer for many releases, with seeded noise",)

    def read_blocks(self, dealt: PartitionedRows, geometry: Geometry, plan: BlockPlan) -> PartitionedRows:
        """Read the rows, unless the blocks were fitted before."""
        return super().read_blocks(dealt, geometry, plan) if self.kept.shares is None else dealt

    def draw(self, data: PartitionedRows, plan: BlockPlan, draws: Draws) -> Floats:
        """Fit the blocks, unless that was done before, and add noise to the mean."""
        low, high, source = plan.answers.low, plan.answers.high, draws.random_integers()
        if self.kept.shares is None:
            places = plan.places(data.n_rows, source)
            answers = data.answers(places, plan.blocks, plan.answers.function, len(low))
            shares = np.clip((answers - low) / (high - low), 0.0, 1.0)
            self.kept.shares = np.where(np.isnan(shares), 0.5, shares)
        return plan.combined(low + (high - low) * self.kept.shares, draws)
