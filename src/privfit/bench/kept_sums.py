"""The functional mechanism on sums that are kept: a table is read once, and every later fit on it draws new noise for the same sums.

For experiments that fit the same rows for many epsilons and seeds. Noise is seeded there, so nothing of it is a private release.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import FunctionalMechanism, Objective, Release
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.rows import Rows
from privfit.schema import Geometry
from privfit.statistics import Moments, MomentValues

Key = tuple[Geometry, int, int, int]
"""How rows are encoded, and the lattice that they are summed on."""


@dataclass
class KeptSums:
    """Sums of one table, by what was summed, and the seconds that the process spent on each."""

    sums: dict[Key, tuple[NDArray[np.int64], float]] = field(default_factory=dict)
    saved: float = 0.0
    """The seconds that the last fit would have spent on sums that were there already."""


@dataclass(frozen=True)
class FunctionalOnce(FunctionalMechanism):
    """The functional mechanism for many fits on the same rows. One `kept` belongs to one table."""

    kept: KeptSums = field(default_factory=KeptSums, compare=False)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Objective) -> Release[MomentValues]:
        """As the functional mechanism; a table that was summed before is not read again. Ledgers and secret noise are refused."""
        if ledger is not None or noise.private:
            raise PrivacyError("Kept sums are for experiments with seeded noise. Use mechanism='functional' for a private fit.")
        return super().release(cast(Rows, _Summed(rows, self.kept)), terms, None, noise, objective)


class _Summed:
    """Rows as the mechanism sees them, summed once."""

    def __init__(self, rows: Rows, kept: KeptSums) -> None:
        self.geometry, self.label, self.n_rows = rows.geometry, rows.label, rows.n_rows
        self._rows, self._kept = rows, kept
        kept.saved = 0.0

    def sum(self, kernel: Moments) -> NDArray[np.int64]:
        """The exact sum over all rows: from what is kept, or now."""
        key = (self.geometry, kernel.step, kernel.target_units, kernel.square_units)
        if key in self._kept.sums:
            found, self._kept.saved = self._kept.sums[key]
            return found
        started = time.process_time()
        found = self._rows.sum(kernel)
        self._kept.sums[key] = found, time.process_time() - started
        return found
