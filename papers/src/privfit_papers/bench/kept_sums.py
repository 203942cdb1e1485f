"""The functional mechanism on sums that are kept: a table is read once, and every later fit on it draws new noise for
the same sums.

For experiments that fit the same rows for many epsilons and seeds. Noise is seeded there, so nothing of it is a private
release.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import FunctionalMechanism, QuadraticProblem
from privfit.mechanisms.functional.problem import ExactMoments, FunctionalPlan
from privfit.privacy import Draws
from privfit.rows import Rows
from privfit.schema import Geometry
from privfit.statistics import Moments

Key = tuple[Geometry, int, int, int]
"""How rows are encoded, and the lattice that they are summed on."""


@dataclass
class KeptSums:
    """Sums of one table, by what was summed, and the seconds that the process spent on each."""

    sums: dict[Key, tuple[NDArray[np.int64], float]] = field(default_factory=dict)
    saved: float = 0.0
    """The seconds that the last fit would have spent on sums that were there already."""

    def sum(self, rows: Rows, moments: Moments) -> NDArray[np.int64]:
        """The exact sum over all rows: from what is kept, or now."""
        key = (rows.geometry, moments.step, moments.target_units, moments.square_units)
        self.saved = 0.0
        if key in self.sums:
            found, self.saved = self.sums[key]
            return found
        started = time.process_time()
        found = rows.sum(moments)
        self.sums[key] = found, time.process_time() - started
        return found


@dataclass(frozen=True)
class FunctionalOnce(FunctionalMechanism):
    """The functional mechanism for many fits on the same rows. One `kept` belongs to one table."""

    kept: KeptSums = field(default_factory=KeptSums, compare=False)

    def reasons_not_private(self, problem: QuadraticProblem) -> tuple[str, ...]:
        """Sums that are kept are for experiments: a ledger is refused."""
        return ("kept sums are for experiments with seeded noise; use mechanism='functional' for a private fit",)

    def read(self, rows: Rows, plan: FunctionalPlan, problem: QuadraticProblem, draws: Draws) -> ExactMoments:
        """As the functional mechanism; a table that was summed before is not read again."""
        return ExactMoments.of(plan, self.kept.sum(rows, plan.moments), rows.n_rows)
