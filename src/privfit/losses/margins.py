"""Losses of a margin as integers on a lattice: a look-up, exact, with the Lipschitz constant that it states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.losses.convex import ConvexLoss

Floats = NDArray[np.float64]

GRAIN = 512
"""Lattice steps to a margin of 1."""
PER_STEP = 1 << 15
"""What a slope of 1 adds in one lattice step."""


@dataclass(frozen=True)
class MarginLoss:
    """A loss that falls with the margin, for margins of at most `reach` lattice steps either way.

    It is built from the slopes of a convex loss between lattice points, rounded to integers: it falls everywhere,
    and its largest step is the Lipschitz constant of the loss.
    """

    loss: ConvexLoss
    reach: int

    @property
    def unit(self) -> int:
        """What stands for a loss of 1."""
        return GRAIN * PER_STEP

    @cached_property
    def values(self) -> Floats:
        """The loss at every margin from -reach to reach: integers, zero at the last."""
        middles = (np.arange(-self.reach, self.reach) + 0.5) / GRAIN
        falls = np.rint(-np.asarray(self.loss.slope(middles, np.ones_like(middles)), dtype=np.float64) * PER_STEP)
        values = np.zeros(2 * self.reach + 1)
        values[:-1] = np.cumsum(np.maximum(falls, 0.0)[::-1])[::-1]
        return values

    def spread(self, within: int, step: int) -> int:
        """The largest difference of scores between moves of at most `step`, for a row whose margin is at most `within`.

        Guarantee: docs/proofs/selection.md, Lemma 6.
        """
        margins = np.arange(-within, within + 1) + self.reach
        return int(np.max(self.values[margins - step] - self.values[margins + step]))

    def change(self, within: int, replaced: bool) -> int:
        """The most by which one row can change a score of predictors with margins of at most `within`."""
        high, low = self.values[self.reach - within], self.values[self.reach + within]
        return int(high - low) if replaced else int(high)
