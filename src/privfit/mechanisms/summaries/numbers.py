"""A number described: its mean and some quantiles, from one count of its levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.means import Mean
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

    @property
    def _questions(self) -> tuple[tuple[Question, Fraction], ...]:
        if not self.quantiles:
            return ((Mean(self.grid), Fraction(1)),)
        return (Quantiles(self.grid, self.quantiles), 1 - FOR_MEAN), (Mean(self.grid), FOR_MEAN)

    def _shares(self, share: Share) -> list[tuple[Question, Share]]:
        return [(own, replace(share, epsilon=share.epsilon * part)) for own, part in self._questions]

    def parts(self, share: Share) -> tuple[Part, ...]:
        """Those of the mean are not what a report describes first: their units are others."""
        found: list[Part] = []
        for question, own in self._shares(share):
            aside = isinstance(question, Mean) and bool(self.quantiles)
            parts = question.parts(own)
            found += [replace(part, purpose="mean") if aside and part.purpose == RELEASE else part for part in parts]
        return tuple(found)

    def draw(self, counts: Integers, share: Share, draws: Draws) -> list[Any]:
        return [question.draw(counts, own, draws) for question, own in self._shares(share)]

    def figures(self, drawn: list[Any], share: Share) -> Figures:
        found: dict[str, Any] = {}
        for (question, own), values in zip(self._shares(share), drawn, strict=True):
            found |= question.figures(values, own)
        return found
