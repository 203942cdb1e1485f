"""Fitting functions for a private search: what they score, and how far one row can change a score or the difference of
two scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.budget import Adjacency
from privfit.privacy.guarded import read_only, real_numbers

Floats = NDArray[np.float64]
Scores = Callable[[Floats, Floats], Any]
"""From rows (rows by columns) and candidates (candidates by parameters) to a score of every candidate for every row."""


@dataclass(frozen=True)
class RowFitness:
    """A fitting function that is a sum over rows: h(w) + the sum of q(t, w) over the rows t. Larger is better.

    Parameters
    ----------
    score : callable
        The function q. It is called with some rows and the candidates, and returns an array (rows, candidates). A row
        is scored by itself: other rows must not matter. Rows have one value per column, the target last: numbers within
        their bounds, categories as the index of their level. It is first tried on rows made up from the schema. A row
        for which it fails later gets the worst score, without any message.
    spread : float, callable or None, default=None
        Sensitivity of differences of scores: the largest q(t, w) - q(t, w') of one row t over two candidates, as a
        number or a function of the candidates. It is enforced: scores of a row that exceed it are clipped.
    bounds : tuple of float, callable or None, default=None
        The smallest and the largest score of any row: two numbers, or a function of the candidates that returns two
        arrays. Enforced as well.
    domain : array-like or None, default=None
        Instead of both, all rows that can occur: spread and bounds then follow from their scores.
    prior : callable or None, default=None
        The function h of the candidates alone, for what is known beforehand, such as a penalty.

    See Also
    --------
    TableFitness : Any function of the whole table with a stated sensitivity.
    GeneticSearch : Maximises it privately.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> fitness = pf.RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=lambda w: float(np.ptp(w)))
    >>> fitness.most_spread(np.array([[1.0], [4.0]]))
    3.0
    """

    score: Scores
    spread: float | Callable[[Floats], float] | None = None
    bounds: tuple[float, float] | Callable[[Floats], tuple[Any, Any]] | None = None
    domain: Any = None
    prior: Callable[[Floats], Any] | None = None

    def scored(self, rows: Floats, candidates: Floats) -> Floats:
        """Return the scores, checked for their kind and shape.

        Rows and candidates are handed to `score` as copies.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns)
            Some rows.
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.

        Returns
        -------
        ndarray of shape (n_rows, n_candidates)
            The scores.
        """
        return as_scores(self.score(_handed_out(rows), _handed_out(candidates)), (len(rows), len(candidates)))

    def known(self, candidates: Floats) -> Floats:
        """Return the prior of every candidate.

        Parameters
        ----------
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.

        Returns
        -------
        ndarray of shape (n_candidates,)
            The priors.
        """
        if self.prior is None:
            return np.zeros(len(candidates))
        return as_scores(self.prior(_handed_out(candidates)), (len(candidates),))

    def limits(self, candidates: Floats) -> tuple[Floats, Floats] | None:
        """Return the smallest and the largest score of any row for every candidate.

        Parameters
        ----------
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.

        Returns
        -------
        tuple of ndarray or None
            Two arrays of shape (n_candidates,); None where no bounds are stated.
        """
        if self.bounds is None:
            return None
        low, high = self.bounds(_handed_out(candidates)) if callable(self.bounds) else self.bounds
        shape = (len(candidates),)
        low, high = as_scores(np.broadcast_to(low, shape), shape), as_scores(np.broadcast_to(high, shape), shape)
        if not (low <= high).all():
            raise ValueError(
                "A fitness states bounds whose lower one is above the upper one, or no number. State bounds=(low, "
                "high)."
            )
        return low, high

    def most_spread(self, candidates: Floats) -> float:
        """Return the sensitivity of differences of scores, as stated or as it follows from the bounds.

        Parameters
        ----------
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.

        Returns
        -------
        float
            The sensitivity.
        """
        found = []
        if self.spread is not None:
            found.append(float(self.spread(_handed_out(candidates)) if callable(self.spread) else self.spread))
        limits = self.limits(candidates)
        if limits is not None:
            found.append(float(limits[1].max() - limits[0].min()))
        if not found or not 0 <= min(found) < np.inf:
            raise ValueError(
                f"A fitness states a spread of {min(found) if found else None!r}; it is a number of at least 0. State "
                "spread=... or bounds=(low, high)."
            )
        return min(found)

    def most_change(self, candidates: Floats, adjacency: Adjacency) -> float | None:
        """Return the sensitivity of single scores: by how much one row can change the score of a candidate.

        Parameters
        ----------
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.
        adjacency : {'replace-one', 'add-remove'}
            Which tables are neighbours.

        Returns
        -------
        float or None
            The sensitivity; None where no bounds are stated.
        """
        limits = self.limits(candidates)
        if limits is None:
            return None
        low, high = limits
        return float((high - low).max() if adjacency == "replace-one" else np.maximum(np.abs(low), np.abs(high)).max())


@dataclass(frozen=True)
class TableFitness:
    """Any fitting function of the whole table that states its sensitivity. Larger is better.

    Parameters
    ----------
    score : callable
        It is called with all rows (as in RowFitness) and the candidates, and returns one number per candidate.
    sensitivity : float or callable
        By how much one row can change the score of any candidate, under the adjacency of the search: a number, or a
        function of the candidates. It is not checked, and the guarantee rests on it, for scores as they are computed,
        rounding included. A score must not fail or be NaN for some tables only: such a candidate gets the worst score,
        and no sensitivity covers that step.

    See Also
    --------
    RowFitness : A sum over rows, whose sensitivity is enforced.
    GeneticSearch : Maximises it privately.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> below = lambda rows, w: -np.abs((rows < w.T).sum(axis=0) - len(rows) / 2)
    >>> pf.TableFitness(below, sensitivity=1.0).most_change(np.array([[1.0], [4.0]]))
    1.0
    """

    score: Scores
    sensitivity: float | Callable[[Floats], float]

    def scored(self, rows: Floats, candidates: Floats) -> Floats:
        """Return the scores, checked for their kind and shape.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns)
            All rows; the caller's own copy.
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.

        Returns
        -------
        ndarray of shape (n_candidates,)
            The scores.
        """
        return as_scores(self.score(read_only(rows), _handed_out(candidates)), (len(candidates),))

    def most_change(self, candidates: Floats) -> float:
        """Return the stated sensitivity.

        Parameters
        ----------
        candidates : ndarray of shape (n_candidates, n_parameters)
            The candidates.

        Returns
        -------
        float
            The sensitivity.
        """
        found = float(self.sensitivity(_handed_out(candidates)) if callable(self.sensitivity) else self.sensitivity)
        if not 0 <= found < np.inf:
            raise ValueError(
                f"A fitness states a sensitivity of {found!r}; it is a number of at least 0. State what one row can do."
            )
        return found


@dataclass(frozen=True)
class Dampening:
    """How far one row can move scores, three ways.

    An exponential rule may divide epsilon times a score by any of them.
    """

    by_change: float
    """Twice the most by which a row changes a score: the exponential mechanism's (Delta_1 of the PrivGene paper)."""
    by_spread: float
    """Twice the most by which a row's scores of two candidates differ (its Delta_2); once, where a row comes or
    goes."""
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
    ranges = [
        float((gap.max(axis=0) - gap.min(axis=0)).max()) for gap in (q - q[:, [place]] for place in range(q.shape[1]))
    ]
    return Dampening(2 * change, 2 * spread, max(ranges))


def _handed_out(values: Floats) -> Floats:
    """The same numbers, to be read only, in a copy: a score that wrote to ours could change other scores, or carry rows
    out.
    """
    return read_only(values.copy())


def as_scores(found: Any, shape: tuple[int, ...]) -> Floats:
    """Scores as numbers of this shape, in an array of our own, or an error that says what was wanted."""
    scores = real_numbers(found)
    if scores.shape != shape:
        raise ValueError(
            f"A fitness returned scores of shape {scores.shape}; {shape} was expected. Return one score for each."
        )
    return scores
