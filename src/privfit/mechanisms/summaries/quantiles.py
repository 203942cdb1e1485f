"""Quantiles: one private selection each, and what their intervals are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import NORMAL, Figures, Interval, Question, Share
from privfit.privacy import Draws
from privfit.privacy.parts import KNorm, Part, Selection
from privfit.privacy.samplers.norms import check_fits
from privfit.schema import Block
from privfit.statistics.quantiles import (
    SCORE_STEPS,
    FineGrid,
    quantile_scores,
    quantile_sensitivity,
    window_counts,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOR_INTERVALS = Fraction(8, 100)
"""Part of the price that measures how dense values lie around quantiles, for their intervals. Less makes quantiles more
accurate and intervals less reliable; `privfit bench description`."""
WINDOWS = (Fraction(1, 8), Fraction(1, 2), Fraction(2))
"""How far around a quantile rows are counted, in factors of two: the nearest window that stands out from noise
says how dense values lie. `privfit bench description`."""
CLEAR = 3.0
"""A window stands out if it has so many standard deviations of the noise; `privfit bench description`."""
UNIT = 1 << 10
"""Lattice steps per row in the counts of windows: noise on them is then nearly continuous."""


@dataclass(frozen=True)
class Quantiles(Question):
    """Some quantiles of one number.

    Each is selected from the levels of a fine grid by permute-and-flip. Rows in a few windows around them are then
    counted with L-infinity noise: the density that turns ranks into values. An interval has the noise of the selection
    and the error of a sample: it is about the quantile of the population that rows are drawn from.

    Guarantee: docs/proofs/description.md, Lemmas 1 to 3.
    """

    grid: FineGrid
    quantiles: tuple[Fraction, ...]
    intervals: bool = True
    """Without intervals the whole price goes into the selections."""

    def block(self, start: int) -> Block:
        return self.grid.block(start)

    def parts(self, share: Share) -> tuple[Part, ...]:
        selections: list[Part] = []
        part = self._selection_part
        for quantile in self.quantiles:
            sensitivity = quantile_sensitivity(quantile, share.adjacency)
            selections.append(
                Selection(
                    rule="permute-and-flip",
                    scale=float(math.ceil(share.scale(sensitivity, part))),
                    sensitivity=sensitivity * share.rows_per_person,
                    epsilon=float(share.epsilon * part),
                )
            )
        return (*selections, self._noise(share)) if self.intervals else tuple(selections)

    def _noise(self, share: Share) -> KNorm:
        """The noise on the counts of windows; refused here, before the charge, where 64 bits do not hold it."""
        size, scale = len(self.quantiles) * len(WINDOWS), share.scale(UNIT, self._for_intervals)
        check_fits("linf", size, scale)
        return KNorm(
            norm="linf",
            size=size,
            scale=scale,
            sensitivity=UNIT * share.rows_per_person,
            unit=UNIT,
            epsilon=float(share.epsilon * self._for_intervals),
            purpose="intervals",
        )

    @property
    def _for_intervals(self) -> Fraction:
        return FOR_INTERVALS if self.intervals else Fraction(0)

    @property
    def _selection_part(self) -> Fraction:
        """The part of the price that each selection has."""
        return (1 - self._for_intervals) / len(self.quantiles)

    @property
    def _widths(self) -> list[int]:
        return [max(round(self.grid.octave * window), 1) for window in WINDOWS]

    def draw(self, counts: Integers, share: Share, draws: Draws) -> tuple[list[int], Floats]:
        places = [draws.select(quantile_scores(counts, quantile)) for quantile in self.quantiles]
        if not self.intervals:
            return places, np.zeros((len(places), 0))
        windows = np.concatenate([window_counts(counts, place, self._widths) for place in places])
        return places, draws.add(UNIT * windows).reshape(len(places), -1) / UNIT

    def figures(self, drawn: tuple[list[int], Floats], share: Share) -> Figures:
        places, windows = drawn
        halves = self._half_widths(windows, share) if self.intervals else np.full(len(places), np.inf)
        middle = np.array(places, dtype=np.float64)
        return {"quantiles": Interval(*(self.grid.at(each) for each in (middle, middle - halves, middle + halves)))}

    def _half_widths(self, windows: Floats, share: Share) -> Floats:
        """Half of the width of every interval, in levels."""
        sd, selections = self._noise(share).sd, (part for part in self.parts(share) if isinstance(part, Selection))
        found = []
        for quantile, part, own in zip(self.quantiles, selections, windows, strict=True):
            ranks = self._rank_error(quantile, part, share.n_rows)
            found.append(ranks / self._density(own, sd, ranks))
        return np.array(found)

    def _rank_error(self, quantile: Fraction, part: Selection, n_rows: int) -> float:
        """How far the rank of what was selected may be off: noise, close to a Laplace law, and sampling."""
        noise = 2.0 * (part.scale / (SCORE_STEPS * quantile.denominator)) ** 2
        return NORMAL * math.sqrt(noise + n_rows * float(quantile * (1 - quantile)))

    def _density(self, windows: Floats, sd: float, ranks: float) -> float:
        """Rows per level around a quantile, rather too few: by three quarters of the noise's standard deviation."""
        held, width = windows[-1], self._widths[-1]
        for count, own in zip(windows, self._widths, strict=True):
            if count >= CLEAR * sd and count >= ranks:
                held, width = count, own
                break
        return float(max(held - 0.75 * sd, sd / 2) / (2 * width + 1))
