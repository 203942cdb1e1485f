"""Scores of candidates on private rows, as integers, and how far one row can change a difference of two.

Here for fitting functions of the user's own; scores of weights and of centres are in weights.py and centres.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.privacy.budget import Adjacency
from privfit.privacy.guarded import attempted, each_row
from privfit.rows import PlainRows
from privfit.statistics import RowFitness, TableFitness, enumerated
from privfit.tables import DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Stated = TypeVar("Stated")

STEP_BITS = 24
"""Scores lie on a lattice of about 2^24 steps to what a row can do."""
LARGEST_SCORE = 1e300
"""Scores of a row beyond this count as this, so that differences of two stay finite."""
FAR = 2.0**61
"""Scores of a table and priors beyond this count as this, so that sums with those of rows fit 64 bits."""
MOST_DOMAIN = 1 << 20
"""The most rows of a finite domain: all of them are scored for every candidate."""
SCORED_ALONE = 8
"""So many made-up rows are scored alone as well, to find scores that depend on the rows beside them: a few show it, and
each is a call.
"""
ALIKE = 1e-4
"""Scores that differ by less, relative to themselves or to the spread, count as the same: far above rounding, single
precision included, and far below what standardising a batch does.
"""


@dataclass(frozen=True)
class ScoreSensitivity:
    """The most by which one row can change the difference of two scores, and whether that is a number of times the
    spread of every row, which is then kept.
    """

    most: float
    spreads: int = 0


class Scorer:
    """Integer scores of candidates, and how far one row can change a difference of two."""

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        """The scores of public rows.

        All functions of a fitness are called, and what they raise is raised: nothing private is in it.
        """
        raise NotImplementedError

    def prepare(self) -> None:
        """Whatever can fail, before anything is charged."""

    def sensitivity(self, candidates: Floats, parameters: PrivacyParameters, by_range: bool) -> ScoreSensitivity:
        """From public facts alone."""
        raise NotImplementedError

    def __call__(self, candidates: Floats, sensitivity: ScoreSensitivity) -> tuple[Sequence[int] | Integers, int]:
        """The scores on a lattice, and the sensitivity on it."""
        raise NotImplementedError


class SumScorer(Scorer):
    """Scores that are sums over rows, kept within what the fitness states."""

    def __init__(self, plain: PlainRows, fitness: RowFitness) -> None:
        self._plain = plain
        self._fitness = fitness

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        fitness = self._fitness
        fitness.known(candidates)
        spread = fitness.most_spread(candidates)
        scores = fitness.scored(made_up, candidates)
        for row, beside in zip(made_up[:SCORED_ALONE, None], scores[:SCORED_ALONE, None], strict=True):
            if not np.allclose(
                fitness.scored(row, candidates), beside, rtol=ALIKE, atol=ALIKE * spread, equal_nan=True
            ):
                raise ValueError(
                    "A fitness scored a row otherwise alone than beside other rows; what one row can change is "
                    "calibrated for rows that are scored by themselves. "
                    "Use what is public, such as bounds, in place of other rows."
                )
        return scores

    def sensitivity(self, candidates: Floats, parameters: PrivacyParameters, by_range: bool) -> ScoreSensitivity:
        change = _stated(lambda: self._fitness.most_change(candidates, parameters.adjacency))
        if not by_range:
            if change is None:
                raise PrivacyError(
                    "selection='exponential' was given with a fitness that states a spread alone; that rule needs "
                    "bounds=(low, high). Use 'enhanced'."
                )
            return ScoreSensitivity(2 * change)
        rows = 2 if parameters.adjacency == "replace-one" else 1
        spread = rows * _stated(lambda: self._fitness.most_spread(candidates))
        return ScoreSensitivity(spread, rows) if change is None or spread < 2 * change else ScoreSensitivity(2 * change)

    def __call__(self, candidates: Floats, sensitivity: ScoreSensitivity) -> tuple[Integers, int]:
        fitness = self._fitness
        limits = _stated(lambda: fitness.limits(candidates))
        if sensitivity.spreads or limits is None:
            spread = _stated(lambda: fitness.most_spread(candidates))
        else:
            spread = float(limits[1].max() - limits[0].min())
        unit = _unit(max(spread, sensitivity.most))

        def steps(rows: Floats) -> Integers:
            """How far every score of a row is below the row's best.

            A row that fails, or a score that is no number, is worst.
            """
            found = each_row(lambda places: fitness.scored(rows[places], candidates), len(rows))
            scores = found.filled(-LARGEST_SCORE, (len(rows), len(candidates)))
            with np.errstate(all="ignore"):  # a warning would reveal something about a row
                np.nan_to_num(scores, copy=False, nan=-LARGEST_SCORE, posinf=LARGEST_SCORE, neginf=-LARGEST_SCORE)
                if limits is not None:
                    scores = np.clip(scores, *limits)
                short = scores.max(axis=1, keepdims=True) - scores
            return np.asarray(np.rint(np.minimum(short, spread) * unit), dtype=np.int64)

        total = _with_prior(-self._plain.sum(steps), fitness, candidates, unit)
        if sensitivity.spreads:
            return total, sensitivity.spreads * int(np.rint(spread * unit))
        assert limits is not None
        return total, _on_lattice(sensitivity.most, unit, float(np.abs(limits).max()))


class DomainScorer(Scorer):
    """Scores of rows from a finite domain: how often each of its rows occurs says everything."""

    def __init__(self, plain: PlainRows, fitness: RowFitness, adjacency: Adjacency) -> None:
        self._plain = plain
        self._fitness, self._adjacency = fitness, adjacency
        self._domain = np.asarray(fitness.domain, dtype=np.float64)
        if self._domain.ndim == 1:
            self._domain = self._domain[:, None]
        if self._domain.ndim != 2 or not 1 <= len(self._domain) <= MOST_DOMAIN or not np.isfinite(self._domain).all():
            raise PrivacyError(
                f"A domain of shape {self._domain.shape} was given; it lists all rows that there can be, at most "
                f"{MOST_DOMAIN}, one a line. Or give a spread instead."
            )
        self._counts: Integers | None = None

    def prepare(self) -> None:
        places = {tuple(row): place for place, row in enumerate(self._domain.tolist())}
        size = len(self._domain)

        def counted(rows: Floats) -> Integers:
            found = [places.get(tuple(row), size) for row in rows.tolist()]
            return np.bincount(found, minlength=size + 1).astype(np.int64)[None]

        counts = self._plain.sum(counted)
        if counts[size]:
            raise DataError(
                "The table has a row that the fitness does not list in its domain. List every row that can occur. "
                "Nothing was charged."
            )
        self._counts = counts[:size]

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        self._fitness.known(candidates)
        scores = self._fitness.scored(self._domain, candidates)
        if not np.isfinite(scores).all():
            raise ValueError(
                "A fitness with a domain returned a score that is no number, or an infinite one. Score every row of "
                "the domain."
            )
        return scores

    def _scored(self, candidates: Floats) -> Floats:
        """The scores of all rows of the public domain: one that fails is as bad as the worst of the others."""
        found = each_row(lambda places: self._fitness.scored(self._domain[places], candidates), len(self._domain))
        scores = found.filled(np.nan, (len(self._domain), len(candidates)))
        numbers = np.isfinite(scores)
        return np.where(numbers, scores, scores[numbers].min(initial=np.inf) if numbers.any() else 0.0)

    def sensitivity(self, candidates: Floats, parameters: PrivacyParameters, by_range: bool) -> ScoreSensitivity:
        found = enumerated(self._scored(candidates), parameters.adjacency)
        return ScoreSensitivity(found.by_range if by_range else found.by_change)

    def __call__(self, candidates: Floats, sensitivity: ScoreSensitivity) -> tuple[Integers, int]:
        assert self._counts is not None
        scores = self._scored(candidates)
        short = scores.max(axis=1, keepdims=True) - scores
        unit = _unit(max(float(short.max()), sensitivity.most))
        whole = np.rint(short * unit).astype(np.int64)
        total = _with_prior(-(self._counts @ whole), self._fitness, candidates, unit)
        return total, max(math.ceil(sensitivity.most * unit), int(enumerated(whole, self._adjacency).by_range))


class TableScorer(Scorer):
    """Scores of the whole table, with a sensitivity that is stated."""

    def __init__(self, plain: PlainRows, fitness: TableFitness) -> None:
        self._plain = plain
        self._fitness = fitness

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        self._fitness.most_change(candidates)
        return self._fitness.scored(made_up, candidates)

    def sensitivity(self, candidates: Floats, parameters: PrivacyParameters, by_range: bool) -> ScoreSensitivity:
        return ScoreSensitivity(2 * _stated(lambda: self._fitness.most_change(candidates)))

    def __call__(self, candidates: Floats, sensitivity: ScoreSensitivity) -> tuple[Integers, int]:
        unit = _unit(sensitivity.most)
        scores = self._plain.every_row(lambda rows: self._scored(rows, candidates))
        with np.errstate(all="ignore"):  # a warning would reveal something about the rows
            scaled = np.nan_to_num(scores * unit, nan=-FAR, posinf=FAR, neginf=-FAR)
        return np.rint(np.clip(scaled, -FAR, FAR)).astype(np.int64), _on_lattice(sensitivity.most, unit)

    def _scored(self, rows: Floats, candidates: Floats) -> Floats:
        """The scores of all candidates. One that fails is worst, and takes no other with it."""
        found = each_row(lambda places: self._fitness.scored(rows, candidates[places]), len(candidates))
        return found.filled(np.nan, (len(candidates),))


def scorer_of(fitness: RowFitness | TableFitness, plain: PlainRows, adjacency: Adjacency) -> Scorer:
    if isinstance(fitness, TableFitness):
        return TableScorer(plain, fitness)
    return SumScorer(plain, fitness) if fitness.domain is None else DomainScorer(plain, fitness, adjacency)


def _unit(most: float) -> float:
    """Lattice steps to a score of 1, a power of two: multiplying by it rounds nothing."""
    return 2.0 ** min(STEP_BITS - math.frexp(most)[1], 1020) if most > 0 else 1.0


def _on_lattice(sensitivity: float, unit: float, size: float = 0.0) -> int:
    """A sensitivity in steps, for scores of at most this size: each of two scores of each of two rows is rounded by
    half a step, and before that by the last place of a float.
    """
    return math.ceil((sensitivity * (1 + 2.0**-40) + size * 2.0**-48) * unit) + 4


def _stated(call: Callable[[], Stated]) -> Stated:
    """What a fitness states about candidates, which are public or were chosen privately.

    Where it fails there is nothing to calibrate by: that depends on rows through the choices alone, and is reported
    without details.
    """
    found = attempted(lambda: (call(),))
    if found is None:
        raise PrivacyError(
            "The fitness was asked for the spread, bounds, prior or sensitivity of candidates in the middle of the "
            "search, and failed, although it had answered for the first ones. "
            "It states them for all candidates within the bounds of the parameters. Let it do so. Nothing is released, "
            "and the charge stands."
        )
    return found[0]


def _with_prior(total: Integers, fitness: RowFitness, candidates: Floats, unit: float) -> Integers:
    with np.errstate(all="ignore"):
        known = np.nan_to_num(_stated(lambda: fitness.known(candidates)) * unit, nan=-FAR, posinf=FAR, neginf=-FAR)
    return total + np.clip(np.rint(known), -FAR, FAR).astype(np.int64)
