"""A number described: its mean and some quantiles, from one count of its levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.means import Mean
from privfit.mechanisms.summaries.means_of_described import MeanOfDescribed
from privfit.mechanisms.summaries.quantiles import Quantiles
from privfit.mechanisms.summaries.questions import Figures, Question, Share
from privfit.privacy import Draws
from privfit.privacy.parts import RELEASE, Part
from privfit.schema import Block
from privfit.statistics.quantiles import FineGrid

Integers = NDArray[np.int64]

FOR_MEAN = Fraction(1, 10)
"""Part of the price of a number that its mean has; quantiles share the rest. A larger one makes means more accurate and
quantiles less: with a fifth, errors of means were half as large and those of medians a quarter larger; `privfit bench
description`."""


@dataclass(frozen=True)
class Number(Question):
    """Quantiles and the mean of one number.

    Guarantee: docs/proofs/description.md, Lemmas 3 and 4.
    """

    grid: FineGrid
    quantiles: tuple[Fraction, ...]

    def block(self, start: int) -> Block:
        return self.grid.block(start)

    def _shares(self, share: Share) -> tuple[Share, Share]:
        """Of the quantiles, and of the mean."""
        for_mean = FOR_MEAN if self.quantiles else Fraction(1)
        return replace(share, epsilon=share.epsilon * (1 - for_mean)), replace(share, epsilon=share.epsilon * for_mean)

    def _after(self, for_mean: Share) -> MeanOfDescribed | None:
        """The mean that quantiles say how to clip, where they do."""
        after = MeanOfDescribed(self.grid, self.quantiles)
        return after if self.quantiles and after.suits(for_mean) else None

    def parts(self, share: Share) -> tuple[Part, ...]:
        """Those of the mean are not what a report describes first: their units are others."""
        for_quantiles, for_mean = self._shares(share)
        mean = (self._after(for_mean) or Mean(self.grid)).parts(for_mean)
        if not self.quantiles:
            return mean
        aside = (replace(part, purpose="mean") if part.purpose == RELEASE else part for part in mean)
        return (*Quantiles(self.grid, self.quantiles).parts(for_quantiles), *aside)

    def draw(self, counts: Integers, share: Share, draws: Draws) -> list[Any]:
        for_quantiles, for_mean = self._shares(share)
        after = self._after(for_mean)
        if not self.quantiles:
            return [Mean(self.grid).draw(counts, for_mean, draws)]
        found = Quantiles(self.grid, self.quantiles).draw(counts, for_quantiles, draws)
        if after is None:
            return [found, Mean(self.grid).draw(counts, for_mean, draws)]
        return [found, after.draw(counts, found[0], for_mean, draws)]

    def figures(self, drawn: list[Any], share: Share) -> Figures:
        for_quantiles, for_mean = self._shares(share)
        after = self._after(for_mean)
        if not self.quantiles:
            return Mean(self.grid).figures(drawn[0], for_mean)
        found = Quantiles(self.grid, self.quantiles).figures(drawn[0], for_quantiles)
        if after is None:
            return {**found, **Mean(self.grid).figures(drawn[1], for_mean)}
        return {**found, **after.figures(drawn[1], drawn[0][0], for_mean)}
