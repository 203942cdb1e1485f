"""GUPT as printed, for many epsilons on the same rows: blocks are dealt and fitted once, and their mean gets new noise for every epsilon.

Laplace noise for an equal share of epsilon on every answer, and no answer is cut at its bounds afterwards. Seeded noise only: nothing of it is a private release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import Release, SampleAndAggregate
from privfit.mechanisms.aggregate import BlockAnswers
from privfit.privacy import Ledger, Noise, PrivacyError, Terms, noised
from privfit.privacy.shapes import Source
from privfit.rows import DealtRows

Floats = NDArray[np.float64]


@dataclass
class KeptAnswers:
    """What the blocks of one table said, as shares of their ranges."""

    shares: Floats | None = None
    rows: int = 0


@dataclass(frozen=True)
class GuptOnce(SampleAndAggregate):
    """Sample and aggregate for many fits on the same rows. One `kept` belongs to one table and one model."""

    noise: Literal["auto", "laplace", "linf", "gaussian"] = "laplace"
    kept: KeptAnswers = field(default_factory=KeptAnswers, compare=False)

    def aggregated(
        self,
        dealt: DealtRows,
        label: str,
        terms: Terms,
        ledger: Ledger | None,
        noise: Noise,
        objective: BlockAnswers,
        trial: Callable[[int], None] | None = None,
    ) -> Release[Floats]:
        """Fit the blocks, unless that was done before, and add noise to the mean. Ledgers and secret noise are refused."""
        if ledger is not None or noise.private:
            raise PrivacyError("Kept blocks are for experiments with seeded noise. Use mechanism='sample-and-aggregate' for a private fit.")
        low, high = objective.low, objective.high
        if self.kept.shares is None:
            dealt.read()
            self.kept.rows = dealt.n_rows
            plan = self.plan(len(low), terms, dealt.n_rows)
            answers = dealt.answers(plan.places(dealt.n_rows, cast(Source, noise)), plan.blocks, objective.function, len(low))
            shares = np.clip((answers - low) / (high - low), 0.0, 1.0)
            self.kept.shares = np.where(np.isnan(shares), 0.5, shares)
        plan = self.plan(len(low), terms, self.kept.rows)
        sums = np.rint(self.kept.shares * plan.unit).astype(np.int64).sum(axis=0)
        means = noised(noise, sums, plan.event) / (plan.blocks * plan.unit)
        return Release(low + (high - low) * means, plan.event, noise.private)
