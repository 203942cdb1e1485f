"""From counts of events and censored times in the bins of a grid to survival: a life table.

Arrays have bins along their last axis; axes before that are groups, or draws of a bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CENSORED_PART = 0.5
"""People who are censored in a bin are at risk for so much of it: the actuarial convention, exact where they leave
evenly."""


@dataclass(frozen=True)
class LifeTable:
    """Numbers of events and of censored people in every bin, and of people who are left at the end of the grid.

    Noisy counts may be negative.
    """

    events: Floats
    censored: Floats
    left: Floats

    @classmethod
    def of_cells(cls, counts: Floats, bins: int) -> LifeTable:
        """From counts in one line for each group: events by bin, censored by bin, left."""
        lines = counts.reshape(*counts.shape[:-1], -1, 2 * bins + 1)
        return cls(lines[..., :bins], lines[..., bins:-1], lines[..., -1])

    @property
    def at_risk(self) -> Floats:
        """How many people are there at the beginning of every bin."""
        leaving = self.events + self.censored
        later = np.cumsum(leaving[..., ::-1], axis=-1)[..., ::-1]
        return np.asarray(later + self.left[..., None])

    def hazards(self, least: float) -> Floats:
        """The share of those at risk to whom the event happens in each bin; nothing is divided by less than `least`."""
        exposed = np.maximum(self.at_risk - CENSORED_PART * self.censored, least)
        return np.clip(self.events / exposed, -1.0, 1.0)

    def survival(self, least: float) -> Floats:
        """The share of people without an event by the end of every bin: rising nowhere, from 0 to 1."""
        return falling(np.asarray(np.cumprod(1.0 - self.hazards(least), axis=-1), dtype=np.float64))


def falling(values: Floats) -> Floats:
    """Values made to rise nowhere, and to lie from 0 to 1: the mean of what forcing later and earlier ones does."""
    held = np.clip(values, 0.0, 1.0)
    later = np.minimum.accumulate(held, axis=-1)
    earlier = np.maximum.accumulate(held[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((later + earlier) / 2)
