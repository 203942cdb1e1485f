"""Fitting functions for a private search: what they score, and how far one row can move a score or tell two candidates apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.adjacency import Adjacency
from privfit.privacy.guarded import read_only, real_numbers

Floats = NDArray[np.float64]
Scores = Callable[[Floats, Floats], Any]
"""From rows (rows by columns) and candidates (candidates by parameters) to a score of every candidate for every row."""


@dataclass(frozen=True)
class RowFitness:
    """A fitting function that is a sum over rows: h(w) + the sum of q(t, w) over the rows t. Larger is better.

    Parameters
    ----------
    score : q. Called with some rows and the candidates; returns an array (rows, candidates). A row is scored by itself: other rows must not matter. Rows have one value a column, the
        target last: numbers within their bounds, categories as the place of their level. It is tried on rows made up from the schema first. A row for which it then fails in any way scores worst, and
        nobody is told.
    spread : the most by which one row can tell two candidates apart, max q(t, w) - q(t, w'): a number, or a function of the candidates. It is kept: where a row would tell more, its scores are clipped.
    bounds : the smallest and the largest score of any row: two numbers, or a function of the candidates that returns two arrays. Kept as well.
    domain : instead of both, all rows that there can be, one a line: their scores then say it all.
    prior : h, a function of the candidates alone, for what is known beforehand, such as a penalty.
    """

    score: Scores
    spread: float | Callable[[Floats], float] | None = None
    bounds: tuple[float, float] | Callable[[Floats], tuple[Any, Any]] | None = None
    domain: Any = None
    prior: Callable[[Floats], Any] | None = None

    def scored(self, rows: Floats, candidates: Floats) -> Floats:
        """The scores, checked for their kind and shape. Rows and candidates are handed out as copies, to be read and not to be written over."""
        return as_scores(self.score(_handed_out(rows), _handed_out(candidates)), (len(rows), len(candidates)))

    def known(self, candidates: Floats) -> Floats:
        """The prior of every candidate."""
        if self.prior is None:
            return np.zeros(len(candidates))
        return as_scores(self.prior(_handed_out(candidates)), (len(candidates),))

    def limits(self, candidates: Floats) -> tuple[Floats, Floats] | None:
        """The smallest and the largest score of any row for every candidate."""
        if self.bounds is None:
            return None
        low, high = self.bounds(_handed_out(candidates)) if callable(self.bounds) else self.bounds
        shape = (len(candidates),)
        low, high = as_scores(np.broadcast_to(low, shape), shape), as_scores(np.broadcast_to(high, shape), shape)
        if not (low <= high).all():
            raise ValueError("A fitness states bounds whose lower one is above the upper one, or no number. State bounds=(low, high).")
        return low, high

    def most_spread(self, candidates: Floats) -> float:
        """The most by which one row can tell two candidates apart, as it is stated or follows from the bounds."""
        found = []
        if self.spread is not None:
            found.append(float(self.spread(_handed_out(candidates)) if callable(self.spread) else self.spread))
        limits = self.limits(candidates)
        if limits is not None:
            found.append(float(limits[1].max() - limits[0].min()))
        if not found or not 0 <= min(found) < np.inf:
            raise ValueError(
                f"A fitness states a spread of {min(found) if found else None!r}; it is a number of at least 0. State spread=... or bounds=(low, high)."
            )
        return min(found)

    def most_change(self, candidates: Floats, adjacency: Adjacency) -> float | None:
        """The most by which one row can move the score of a candidate, if bounds say so."""
        limits = self.limits(candidates)
        if limits is None:
            return None
        low, high = limits
        return float((high - low).max() if adjacency == "replace-one" else np.maximum(np.abs(low), np.abs(high)).max())


@dataclass(frozen=True)
class TableFitness:
    """Any fitting function of the whole table that states how far one row can move it. Larger is better.

    Parameters
    ----------
    score : called with all rows (as in RowFitness) and the candidates; returns one number per candidate.
    sensitivity : the most by which one row can move the score of any candidate, under the adjacency of the search: a number, or a function of the candidates. It is believed, and the
        promise rests on it, for scores as they are computed, rounding included. A score must not fail or be NaN for some tables only: a candidate whose score does is the worst, and no sensitivity
        covers that step.
    """

    score: Scores
    sensitivity: float | Callable[[Floats], float]

    def scored(self, rows: Floats, candidates: Floats) -> Floats:
        """The scores, checked for their kind and shape. `rows` are the caller's own copy: a table is not copied twice."""
        return as_scores(self.score(read_only(rows), _handed_out(candidates)), (len(candidates),))

    def most_change(self, candidates: Floats) -> float:
        """The stated sensitivity."""
        found = float(self.sensitivity(_handed_out(candidates)) if callable(self.sensitivity) else self.sensitivity)
        if not 0 <= found < np.inf:
            raise ValueError(f"A fitness states a sensitivity of {found!r}; it is a number of at least 0. State what one row can do.")
        return found


@dataclass(frozen=True)
class Dampening:
    """How far one row can move scores, three ways. An exponential rule may divide epsilon times a score by any of them."""

    by_change: float
    """Twice the most by which a row moves a score: the exponential mechanism's (Delta_1 of the PrivGene paper)."""
    by_spread: float
    """Twice the most by which a row tells two candidates apart (its Delta_2); once, where a row comes or goes."""
    by_range: float
    """The most by which a row can change the difference of two scores: never more than either."""


def enumerated(scores: Any, adjacency: Adjacency) -> Dampening:
    """The three for a finite domain: `scores` has a row per row that can be, and a column per candidate.

    Guarantee: docs/proofs/selection.md, Lemma 4.
    """
    q = np.asarray(scores, dtype=np.float64)
    spread = float((q.max(axis=1) - q.min(axis=1)).max())
    if adjacency == "add-remove":
        return Dampening(2 * float(np.abs(q).max()), spread, spread)
    change = float((q.max(axis=0) - q.min(axis=0)).max())
    ranges = [float((gap.max(axis=0) - gap.min(axis=0)).max()) for gap in (q - q[:, [place]] for place in range(q.shape[1]))]
    return Dampening(2 * change, 2 * spread, max(ranges))


def _handed_out(values: Floats) -> Floats:
    """The same numbers, to be read only, in a copy: a score that wrote to ours could change other scores, or carry rows out."""
    return read_only(values.copy())


def as_scores(found: Any, shape: tuple[int, ...]) -> Floats:
    """Scores as numbers of this shape, in an array of our own, or an error that says what was wanted."""
    scores = real_numbers(found)
    if scores.shape != shape:
        raise ValueError(f"A fitness returned scores of shape {scores.shape}; {shape} was expected. Return one score for each.")
    return scores
