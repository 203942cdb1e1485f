"""A genetic search for the parameters that fit best, by private choices: PrivGene for any fitting function.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, Algorithms 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.breeding import Breeding, scattered
from privfit.mechanisms.choices import Choices, Selection, plan_choices
from privfit.mechanisms.minima import public_rows
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.trials import try_fitness
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.privacy.adjacency import Adjacency
from privfit.privacy.guarded import attempted, each_row
from privfit.privacy.shapes import Source
from privfit.rows import PlainRows, Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import RowFitness, TableFitness, enumerated
from privfit.tables import DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Told = TypeVar("Told")

ROUNDS_PER_ROW = 1.25e-3
USUAL_ROWS = 20_000
MOST_ROUNDS = 10_000
STEP_BITS = 24
"""Scores lie on a lattice of about 2^24 steps to what a row can do."""
LARGEST = 1e300
FAR = 2.0**61
MOST_DOMAIN = 1 << 20
SCORED_ALONE = 8
"""So many made-up rows are scored alone as well, to find scores that depend on the rows beside them: a few show it, and each is a call."""
ALIKE = 1e-4
"""Scores that differ by less, relative to themselves or to the spread, count as the same: far above rounding, single precision included, and far below what standardising a batch does."""


@dataclass(frozen=True)
class Search:
    """What is searched: the best parameters between `low` and `high`, one entry per parameter. `start` are candidates to begin with, from public knowledge."""

    fitness: RowFitness | TableFitness
    low: Floats
    high: Floats
    start: Floats | None = None


@dataclass(frozen=True)
class GeneticMechanism:
    """Select the best candidates privately, let them beget others, and go on.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where the exponential rule is charged in zCDP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/selection.md, Theorem 2. For a TableFitness it rests on the sensitivity that it states.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    selection: Selection = "auto"
    breeding: Breeding = field(default_factory=Breeding)
    rounds: int | Literal["auto"] = "auto"

    name = "genetic"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.breeding.check()
        check_rounds(self.rounds)

    def geometry(self, schema: Schema, objective: Search) -> Geometry:
        """How rows are read: numbers as they are, categories by their places."""
        return schema.geometry(numeric="slope", intercept=False, several=True)

    def plan(self, fitness: RowFitness | TableFitness | None, terms: Terms, n_rows: int | None) -> Choices:
        """How many rounds there are and what each may spend, from public facts."""
        rounds = automatic_rounds(terms, n_rows, self.breeding.parents) if self.rounds == "auto" else int(self.rounds)
        parents = self.breeding.parents
        shares = [Fraction(1, rounds * parents)] * ((rounds - 1) * parents) + [Fraction(1, rounds)]
        selection: Selection = self.selection
        if isinstance(fitness, TableFitness) and selection == "enhanced":
            selection = "exponential"
        return plan_choices(f"genetic search, {rounds} round{'s' * (rounds > 1)}", terms, selection, shares)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Search) -> Release[Floats]:
        """Read the rows, charge the ledger, and search."""
        check_ledger(ledger, noise)
        plain = PlainRows(rows)
        scores = _scorer(objective.fitness, plain, terms.adjacency)
        planned = self.plan(objective.fitness, terms, None)
        if ledger is not None:  # before a long reading
            ledger.check(planned.event)
        tried = try_fitness(scores.rehearsed, rows.geometry, objective.low, objective.high)  # the last words of a fitness: no row was read
        scores.reach(tried, terms, planned.by_range)
        plain.read()
        scores.prepare()
        choices = self.plan(objective.fitness, terms, public_rows(plain.n_rows, terms))  # public facts only
        choices.scale(
            choices.each.index(min(choices.each)), int(terms.rows_per_person) << (STEP_BITS + 2)
        )  # refuses what no noise can serve
        if ledger is not None:
            ledger.charge(choices.event, dataset=rows.label)  # durable before any draw
        first = self._first(objective, cast(Source, noise))
        best = self.searched(scores, objective.low, objective.high, terms, choices, noise, first)
        return Release(best, choices.event, noise.private)

    def _first(self, objective: Search, source: Source) -> Floats:
        if objective.start is None:
            return scattered(self.breeding.candidates, objective.low, objective.high, source)
        return np.clip(objective.start, objective.low, objective.high)

    def searched(
        self, scores: Scorer, low: Floats, high: Floats, terms: Terms, choices: Choices, noise: Noise, candidates: Floats
    ) -> Floats:
        """The winner of all rounds, from these candidates on."""
        parents = self.breeding.parents
        rounds = (len(choices.each) - 1) // parents + 1
        for number in range(rounds - 1):
            kept = self._selected(scores, candidates, min(parents, len(candidates)), number * parents, terms, choices, noise)
            candidates = self.breeding.offspring(candidates[kept], low, high, number, cast(Source, noise))
        (best,) = self._selected(scores, candidates, 1, (rounds - 1) * parents, terms, choices, noise)
        return np.asarray(candidates[best], dtype=np.float64)

    def _selected(
        self, scores: Scorer, candidates: Floats, wanted: int, first: int, terms: Terms, choices: Choices, noise: Noise
    ) -> list[int]:
        """The places of some candidates, taken one after the other from those that are left."""
        whole, reach = scores(candidates, scores.reach(candidates, terms, choices.by_range))
        reach *= int(terms.rows_per_person)
        left, taken = list(range(len(candidates))), []
        for place in range(wanted):
            (found,) = choices.choose(noise, first + place, [[int(whole[i]) for i in left]], reach)
            taken.append(left.pop(found))
        return taken

    def solve(self, release: Release[Floats], geometry: Geometry, objective: Search) -> Floats:
        """The parameters are what was released."""
        return release.value


# -- scores ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """The most by which one row can change the difference of two scores, and whether that is a number of times the spread of every row, which is then kept."""

    most: float
    spreads: int = 0


class Scorer:
    """Whole-number scores of candidates, and how far one row can change a difference of two."""

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        """The scores of public rows. All functions of a fitness are called, and what they raise is raised: nothing private is in it."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Whatever can fail, before anything is charged."""

    def reach(self, candidates: Floats, terms: Terms, by_range: bool) -> Reach:
        """From public facts alone."""
        raise NotImplementedError

    def __call__(self, candidates: Floats, reach: Reach) -> tuple[Sequence[int] | Integers, int]:
        """The scores on a lattice, and the reach on it."""
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
            if not np.allclose(fitness.scored(row, candidates), beside, rtol=ALIKE, atol=ALIKE * spread, equal_nan=True):
                raise ValueError(
                    "A fitness scored a row otherwise alone than beside other rows; what one row can change is calibrated for rows that are scored by themselves. "
                    "Use what is public, such as bounds, in place of other rows."
                )
        return scores

    def reach(self, candidates: Floats, terms: Terms, by_range: bool) -> Reach:
        change = _stated(lambda: self._fitness.most_change(candidates, terms.adjacency))
        if not by_range:
            if change is None:
                raise PrivacyError(
                    "selection='exponential' was given with a fitness that states a spread alone; that rule needs bounds=(low, high). Use 'enhanced'."
                )
            return Reach(2 * change)
        rows = 2 if terms.adjacency == "replace-one" else 1
        spread = rows * _stated(lambda: self._fitness.most_spread(candidates))
        return Reach(spread, rows) if change is None or spread < 2 * change else Reach(2 * change)

    def __call__(self, candidates: Floats, reach: Reach) -> tuple[Integers, int]:
        fitness = self._fitness
        limits = _stated(lambda: fitness.limits(candidates))
        if reach.spreads or limits is None:
            spread = _stated(lambda: fitness.most_spread(candidates))
        else:
            spread = float(limits[1].max() - limits[0].min())
        unit = _unit(max(spread, reach.most))

        def steps(rows: Floats) -> Integers:
            """How far every score of a row is below the row's best. A row that fails, or a score that is no number, is worst."""
            found = each_row(lambda places: fitness.scored(rows[places], candidates), len(rows))
            scores = found.filled(-LARGEST, (len(rows), len(candidates)))
            with np.errstate(all="ignore"):  # a warning would tell of a row
                np.nan_to_num(scores, copy=False, nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST)
                if limits is not None:
                    scores = np.clip(scores, *limits)
                short = scores.max(axis=1, keepdims=True) - scores
            return np.asarray(np.rint(np.minimum(short, spread) * unit), dtype=np.int64)

        total = _with_prior(-self._plain.sum(steps), fitness, candidates, unit)
        if reach.spreads:
            return total, reach.spreads * int(np.rint(spread * unit))
        assert limits is not None
        return total, _on_lattice(reach.most, unit, float(np.abs(limits).max()))


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
                f"A domain of shape {self._domain.shape} was given; it lists all rows that there can be, at most {MOST_DOMAIN}, one a line. Or give a spread instead."
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
                "The table has a row that the fitness does not list in its domain. List every row that can occur. Nothing was charged."
            )
        self._counts = counts[:size]

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        self._fitness.known(candidates)
        scores = self._fitness.scored(self._domain, candidates)
        if not np.isfinite(scores).all():
            raise ValueError(
                "A fitness with a domain returned a score that is no number, or an infinite one. Score every row of the domain."
            )
        return scores

    def _scored(self, candidates: Floats) -> Floats:
        """The scores of all rows of the domain, which is public: one that fails is as bad as the worst of the others."""
        found = each_row(lambda places: self._fitness.scored(self._domain[places], candidates), len(self._domain))
        scores = found.filled(np.nan, (len(self._domain), len(candidates)))
        numbers = np.isfinite(scores)
        return np.where(numbers, scores, scores[numbers].min(initial=np.inf) if numbers.any() else 0.0)

    def reach(self, candidates: Floats, terms: Terms, by_range: bool) -> Reach:
        found = enumerated(self._scored(candidates), terms.adjacency)
        return Reach(found.by_range if by_range else found.by_change)

    def __call__(self, candidates: Floats, reach: Reach) -> tuple[Integers, int]:
        assert self._counts is not None
        scores = self._scored(candidates)
        short = scores.max(axis=1, keepdims=True) - scores
        unit = _unit(max(float(short.max()), reach.most))
        whole = np.rint(short * unit).astype(np.int64)
        total = _with_prior(-(self._counts @ whole), self._fitness, candidates, unit)
        return total, max(math.ceil(reach.most * unit), int(enumerated(whole, self._adjacency).by_range))


class TableScorer(Scorer):
    """Scores of the whole table, with a sensitivity that is stated."""

    def __init__(self, plain: PlainRows, fitness: TableFitness) -> None:
        self._plain = plain
        self._fitness = fitness

    def rehearsed(self, made_up: Floats, candidates: Floats) -> Floats:
        self._fitness.most_change(candidates)
        return self._fitness.scored(made_up, candidates)

    def reach(self, candidates: Floats, terms: Terms, by_range: bool) -> Reach:
        return Reach(2 * _stated(lambda: self._fitness.most_change(candidates)))

    def __call__(self, candidates: Floats, reach: Reach) -> tuple[Integers, int]:
        unit = _unit(reach.most)
        scores = self._plain.every_row(lambda rows: self._scored(rows, candidates))
        with np.errstate(all="ignore"):  # a warning would tell of the rows
            scaled = np.nan_to_num(scores * unit, nan=-FAR, posinf=FAR, neginf=-FAR)
        return np.rint(np.clip(scaled, -FAR, FAR)).astype(np.int64), _on_lattice(reach.most, unit)

    def _scored(self, rows: Floats, candidates: Floats) -> Floats:
        """The scores of all candidates. One that fails is worst, and takes no other with it."""
        found = each_row(lambda places: self._fitness.scored(rows, candidates[places]), len(candidates))
        return found.filled(np.nan, (len(candidates),))


def _scorer(fitness: RowFitness | TableFitness, plain: PlainRows, adjacency: Adjacency) -> Scorer:
    if isinstance(fitness, TableFitness):
        return TableScorer(plain, fitness)
    return SumScorer(plain, fitness) if fitness.domain is None else DomainScorer(plain, fitness, adjacency)


def _unit(most: float) -> float:
    """Lattice steps to a score of 1, a power of two: multiplying by it rounds nothing."""
    return 2.0 ** min(STEP_BITS - math.frexp(most)[1], 1020) if most > 0 else 1.0


def _on_lattice(reach: float, unit: float, size: float = 0.0) -> int:
    """A reach in steps, for scores of at most this size: each of two scores of each of two rows is rounded by half a step, and before that by the last place of a float."""
    return math.ceil((reach * (1 + 2.0**-40) + size * 2.0**-48) * unit) + 4


def _stated(call: Callable[[], Told]) -> Told:
    """What a fitness states about candidates, which are public or were chosen privately. Where it fails there is nothing to calibrate by: that depends on rows through the choices alone, and is told without words."""
    found = attempted(lambda: (call(),))
    if found is None:
        raise PrivacyError(
            "The fitness was asked for the spread, bounds, prior or sensitivity of candidates in the middle of the search, and failed, although it had answered for the first ones. "
            "It states them for all candidates within the bounds of the parameters. Let it do so. Nothing is released, and the charge stands."
        )
    return found[0]


def _with_prior(total: Integers, fitness: RowFitness, candidates: Floats, unit: float) -> Integers:
    with np.errstate(all="ignore"):
        known = np.nan_to_num(_stated(lambda: fitness.known(candidates)) * unit, nan=-FAR, posinf=FAR, neginf=-FAR)
    return total + np.clip(np.rint(known), -FAR, FAR).astype(np.int64)


# -- details ---------------------------------------------------------------------------------------------------------------


def automatic_rounds(terms: Terms, n_rows: int | None, parents: int) -> int:
    """The paper's rule, with a public number of rows: c n epsilon / m', c = 1.25e-3; at least one."""
    rounds = ROUNDS_PER_ROW * (n_rows or USUAL_ROWS) * terms.budget.epsilon / (parents * int(terms.rows_per_person))
    return max(1, round(min(rounds, MOST_ROUNDS)))


def check_rounds(rounds: object) -> None:
    """Refuse a number of rounds that means nothing."""
    whole = hasattr(rounds, "__index__") and not isinstance(rounds, bool)
    if rounds != "auto" and not (whole and 1 <= int(rounds) <= MOST_ROUNDS):  # type: ignore[call-overload]
        raise PrivacyError(
            f"rounds={rounds!r} was given; it is 'auto' or a whole number from 1 to {MOST_ROUNDS}, chosen without looking at the rows. Use 'auto' if in doubt."
        )
