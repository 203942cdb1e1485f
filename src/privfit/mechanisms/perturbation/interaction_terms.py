"""Interaction terms: tables of scores for pairs of columns, after the weights of a perturbed objective.

Most of epsilon goes to the perturbed objective. Its weights give every row's slope, that is, how far the fit misses it.
A pair of columns whose cells have slopes that do not cancel is chosen by permute-and-flip; then one step is made for
every cell of it, from noisy sums of slopes and curvatures (`solvers/noisy_cells.py`); and so on with the next pair. A
number by itself, in fine cells, is one more pair to choose from. Nori, Caruana, Bu, Shen and Kulkarni (ICML 2021) fit
additive models to noisy sums of residuals in this manner, without choosing pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, PairTable
from privfit.privacy import Budget, Draws, PrivacyError, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace, Part, RandomBits, Selection
from privfit.rows import CachedDesign, DesignSubset, InteractionCells, Interactions, Pair, is_alone
from privfit.schema import Geometry
from privfit.solvers.noisy_cells import expected_steps

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOR_CHOICES, MORE_CHOOSING_FROM, MOST_CHOOSING = Fraction(8, 100), 40_000, 2
"""The share of epsilon for choosing all terms: more finds the right pair more often and leaves less for its values. It
grows in proportion to rows that are looked at times epsilon from so many on, up to so many times. Chosen on Adult, Bank
and Brazil: docs/classifiers.md. Beside Gaussian noise more was not tried."""
FOR_TABLES, FOR_EACH_TABLE, MOST_FOR_TABLES = Fraction(8, 100), Fraction(4, 100), Fraction(36, 100)
"""What choosing and measuring have of epsilon together: a fixed share, and more for each term up to a limit. More
leaves less for the weights. See docs/constants.md."""
FEW_ROWS, MOST_TIMES = 30_000, 3
"""The fixed share grows in proportion to rows that are looked at times epsilon from so many on, up to so many times:
where they are many, weights need less of epsilon. See docs/constants.md."""
BESIDE_GAUSSIAN = Fraction(3, 2)
"""So many times these shares beside Gaussian noise, with which pure steps compose at less cost. See
docs/constants.md."""
MOST_CELLS, MOST_CHOICES = 500, 5000
"""Larger tables have more noise in all, more candidates take longer to compare. See docs/constants.md."""
ENOUGH_ROWS, MOST_LOOKS = 40_960, 1 << 26
"""Rows times epsilon that are looked at, and the most rows times candidates: more take longer to count."""
LARGEST_CELL = 1 << 17
"""Cells with more rows count as if they had so many, in the sum of slopes that is put down to noise."""
UNIT = 1 << 14
"""Integers that stand for a slope of 1: a coarser unit rounds more, a finer one leaves less room in 64 bits."""
LITTLE_MORE = 1.1
"""The sensitivity of slopes and curvatures together may be so many times that of slopes alone."""
STEP_BITS, MOST_STEPS = 8, 1 << 13
"""Slopes are looked up for scores in steps of 1/256, up to 16 either way."""
SCORE_BITS, LARGEST_WEIGHT = 36, 1 << 12
"""Bits of a score and the largest weight, so that sums over a row are exact in floats."""
NOT_BY_CHANCE, SOFT_COUNT = 0.6, 25
"""What is subtracted from the size of a cell's sum of slopes: 0.6 root(rows + 25) times the largest slope, so that
pairs with many cells do not win by noise alone. See docs/constants.md."""
MOST_INTERACTIONS = 20
"""More interaction terms would share too little of epsilon to be measured."""
OF_256 = 256
"""Rows are sampled so many times in 256: a byte of random bits for every row."""


@dataclass(frozen=True)
class IntegerGradients:
    """The slopes and curvatures of a loss as integers, UNIT to 1, for every step of a score and both classes; and
    what one person can do to sums of them.

    `changed` is how many rows leave or enter between neighbours. Where the target is a number, `sides` has one value,
    and scores are what predictors exceed the target by.
    """

    loss: ConvexLoss
    changed: int
    sides: tuple[float, ...] = (-1.0, 1.0)

    def _table(self, function: Any, most: float, unit: int = UNIT) -> Integers:
        middles = (np.arange(MOST_STEPS) - MOST_STEPS // 2 + 0.5) / (1 << STEP_BITS)
        lines = [np.rint(function(middles, np.full(MOST_STEPS, side)) * unit) for side in self.sides]
        whole = max(math.ceil(most * unit), 1)
        return np.asarray(np.clip(np.stack(lines), -whole, whole), dtype=np.int64)

    @cached_property
    def slopes(self) -> Integers:
        """The slope of a row: (class, step)."""
        assert self.loss.most_slope is not None
        return self._table(self.loss.slope, self.loss.most_slope)

    @cached_property
    def curvatures(self) -> Integers:
        """The curvature of a row, `curvature_unit` to 1: (class, step)."""
        assert self.loss.most_curvature is not None
        return self._table(self.loss.curvature, self.loss.most_curvature, self.curvature_unit)

    @cached_property
    def curvature_unit(self) -> int:
        """What a curvature of 1 counts: as much as a slope of 1, or less where a loss curves so sharply that both
        together would need much more noise than slopes alone.
        """
        assert self.loss.most_curvature is not None
        unit, largest = UNIT, np.abs(self.slopes).max()
        while unit > 1:
            curvatures = np.abs(self._table(self.loss.curvature, self.loss.most_curvature, unit))
            if (np.abs(self.slopes) + curvatures).max() <= LITTLE_MORE * largest:
                break
            unit //= 2
        return unit

    @cached_property
    def by_chance(self) -> Integers:
        """What the sum of slopes of a cell may be without any effect, by the number of its rows."""
        largest = int(np.abs(self.slopes).max())
        return np.asarray(
            np.floor(NOT_BY_CHANCE * largest * np.sqrt(np.arange(LARGEST_CELL + 1) + float(SOFT_COUNT))), dtype=np.int64
        )

    def score(self, sums: Integers, counts: Integers) -> int:
        """How far the fit misses the cells of a pair: the sum over cells of slopes, as far as it exceeds sampling
        noise."""
        return int(np.maximum(np.abs(sums) - self.by_chance[np.minimum(counts, LARGEST_CELL)], 0).sum())

    @property
    def score_sensitivity(self) -> int:
        """The most by which one person can change the difference of two pairs' scores.

        Guarantee: docs/proofs/pairs.md, Lemma 2.
        """
        return 2 * self.changed * (max(int(np.abs(self.slopes).max()), 1) + int(np.diff(self.by_chance).max()))

    @property
    def sums_sensitivity(self) -> int:
        """The most by which one person can change all sums of slopes and of curvatures over cells together.

        Guarantee: docs/proofs/pairs.md, Lemma 3.
        """
        return self.changed * max(int((np.abs(self.slopes) + np.abs(self.curvatures)).max()), 1)


@dataclass(frozen=True)
class BudgetSplit:
    """How many pairs (or numbers by themselves) get a table, and what choosing them and what measuring them have of
    epsilon, all together.
    """

    pairs: int
    choices: Fraction
    tables: Fraction

    @classmethod
    def of(cls, pairs: int, gaussian: bool, signal: float = 0.0) -> BudgetSplit:
        """More for more pairs, and where rows that are looked at times epsilon, the signal, are many; and half as much
        again beside Gaussian noise, from which pure steps take less, where choices do not grow with the signal.
        """
        choices = FOR_CHOICES * (1 if gaussian else _times(signal, MORE_CHOOSING_FROM, MOST_CHOOSING))
        tables = min(FOR_TABLES * _times(signal, FEW_ROWS, MOST_TIMES) + FOR_EACH_TABLE * pairs, MOST_FOR_TABLES)
        more = BESIDE_GAUSSIAN if gaussian else Fraction(1)
        return cls(pairs, choices * more, tables * more)

    @property
    def weights(self) -> Fraction:
        """What is left for weights with pure noise."""
        return 1 - self.choices - self.tables

    def left_of(self, budget: Budget) -> Budget:
        """What weights with pure noise have of a budget: a part of epsilon, rounded down, and no delta."""
        part, whole = float(budget.exact * self.weights), budget.exact * self.weights
        return Budget(part if exact(part) <= whole else math.nextafter(part, 0.0))

    def steps(self, epsilon: float) -> tuple[float, ...]:
        """What every choice and every table costs, rounded up."""
        each = (self.choices, self.tables)
        return tuple(
            math.nextafter(float(exact(epsilon) * share / self.pairs), math.inf)
            for share in each
            for _ in range(self.pairs)
        )


def _times(signal: float, start: int, most: int) -> Fraction:
    """How many times a share is taken: in proportion to the signal from `start` on, up to `most` times."""
    return min(max(Fraction(int(signal), start), Fraction(1)), Fraction(most))


@dataclass(frozen=True)
class InteractionTerms:
    """The plan of choosing pairs and measuring their tables, from public facts.

    `of_256` is how many times in 256 a row takes part: all rows do, or, where those are very many, about as many as are
    enough.
    """

    gradients: IntegerGradients
    interactions: Interactions
    epsilon: Fraction
    split: BudgetSplit
    of_256: int = OF_256

    def __post_init__(self) -> None:
        """Compute all scales, so that those that no noise can have are refused before anything is charged."""
        for scale in (self.choice_scale, self.table_scale):
            assert scale > 0

    @cached_property
    def menu(self) -> list[Pair]:
        """What there is to choose from."""
        return menu_of(self.interactions)

    @cached_property
    def choice_scale(self) -> float:
        """The scale of a choice."""
        return laplace_scale(self.gradients.score_sensitivity, self.epsilon * self.split.choices / self.split.pairs)

    @cached_property
    def table_scale(self) -> float:
        """The scale of the noise on sums of slopes and of curvatures, UNIT to 1."""
        return laplace_scale(self.gradients.sums_sensitivity, self.epsilon * self.split.tables / self.split.pairs)

    def parts(self) -> tuple[Part, ...]:
        """What is drawn: which rows take part, and for every table a choice and noise on two numbers for each cell, as
        many cells as a pair can have.
        """
        choice = Selection(
            rule="permute-and-flip",
            scale=self.choice_scale,
            sensitivity=self.gradients.score_sensitivity,
            purpose="choice of columns",
            epsilon=float(self.epsilon * self.split.choices / self.split.pairs),
        )
        table = Laplace(
            size=2 * max(self.interactions.n_cells(pair) for pair in self.menu),
            scale=self.table_scale,
            sensitivity=self.gradients.sums_sensitivity,
            unit=UNIT,
            purpose="interaction terms",
            epsilon=float(self.epsilon * self.split.tables / self.split.pairs),
        )
        sampled = (RandomBits(purpose="sample of the rows"),) * self.samples
        return (*sampled, *(choice, table) * self.split.pairs)

    @property
    def samples(self) -> bool:
        """Whether only some of the rows take part."""
        return self.of_256 < OF_256

    def drawn(self, design: CachedDesign, weights: Floats, draws: Draws) -> tuple[PairTable, ...]:
        """Choose a pair by the gradients that these weights leave, measure its table, let it count, and so on."""
        sample = design
        if self.samples:
            sample = DesignSubset(design, draws.random_bits().ones(0, design.n_rows, self.of_256))
        bits, own = score_bits(len(weights)), self.gradients
        cells = self._cells(sample, integer_weights(weights, bits), bits)
        left, found = list(self.menu), []
        for _ in range(self.split.pairs):
            both = cells.sums_and_counts(left, own.slopes, bits - STEP_BITS)
            pair = left.pop(draws.select([own.score(*each) for each in both]))
            sums = [cells.sums([pair], responses, bits - STEP_BITS)[0] for responses in (own.slopes, own.curvatures)]
            slopes, curvatures = np.split(draws.add(np.concatenate(sums), at_most=True), 2)
            table = self._values(pair, slopes / UNIT, curvatures / own.curvature_unit)
            found.append(PairTable(pair, table))
            cells.add(pair, np.rint(table * (1 << bits)).astype(np.int64))
        return tuple(found)

    def _cells(self, sample: CachedDesign, weights: Floats, bits: int) -> InteractionCells:
        """The rows that are looked at, with their scores in steps of 2^-bits."""
        return sample.cells(weights)

    def _values(self, pair: Pair, slopes: Floats, curvatures: Floats) -> Floats:
        """What each cell adds to scores, from noisy sums."""
        scales = (self.table_scale / UNIT, self.table_scale / self.gradients.curvature_unit)
        return expected_steps(slopes, curvatures, scales, in_order=is_alone(pair))


def check_interactions(number: object) -> None:
    """Refuse a number of interaction terms that means nothing."""
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool) and 0 <= number <= MOST_INTERACTIONS
    if not whole and number != "auto":
        raise PrivacyError(
            f"interactions={number!r} was given; it is 'auto' or an integer from 0 to {MOST_INTERACTIONS}: how many "
            "pairs of columns, or numbers by themselves, get a table. Use 'auto' if in doubt."
        )


def planned_terms(plan: ERMPlan, split: BudgetSplit) -> ERMPlan:
    """The plan of the weights with interaction terms after them, for the whole price."""
    if not split.pairs:
        return plan
    facts, parameters, pairs = plan.facts, plan.facts.parameters, split.pairs
    changed = int(parameters.rows_per_person) * (2 if parameters.adjacency == "replace-one" else 1)
    interactions = Interactions(facts.geometry)
    terms = InteractionTerms(
        IntegerGradients(plan.gradients.loss, changed),
        interactions,
        parameters.budget.exact,
        split,
        sampled_of_256(parameters, len(menu_of(interactions)), facts.n_rows),
    )
    event = replace(
        plan.event,
        mechanism=f"{plan.event.mechanism}, {pairs} table{'s' * (pairs > 1)} of columns chosen privately",
        epsilon=parameters.budget.epsilon,
        parts=(*plan.event.parts, *terms.parts()),
    )
    return replace(plan, event=event, terms=terms)


def menu_for(geometry: Geometry, problem: ERMProblem) -> list[Pair]:
    """What can have a table, from public facts; nothing where the problem takes no interaction terms."""
    fits = problem.loss == LOGISTIC and problem.coupling == "one" and problem.features is None
    if not fits or score_bits(geometry.n_columns) < STEP_BITS:
        return []
    menu = menu_of(Interactions(geometry))
    return menu if len(menu) <= MOST_CHOICES else []


def sampled_of_256(parameters: PrivacyParameters, menu: int, n_rows: int | None) -> int:
    """How many times in 256 a row takes part, by a public rule."""
    return min(max(OF_256 * enough_rows(parameters, menu) // max(n_rows or 1, 1), 1), OF_256)


def enough_rows(parameters: PrivacyParameters, menu: int) -> int:
    """How many rows are looked at where there are more: so many that their number times epsilon is, but no more than
    are soon counted in all pairs.
    """
    wanted = ENOUGH_ROWS * parameters.rows_per_person / min(parameters.budget.epsilon, 1.0)
    return max(int(min(wanted, MOST_LOOKS // menu)), 1)


def menu_of(interactions: Interactions) -> list[Pair]:
    """The pairs of columns that can have a table, and numbers by themselves unless those would be too many."""
    pairs, alone = interactions.pairs(MOST_CELLS), interactions.alone()
    return pairs + alone if len(pairs) + len(alone) <= MOST_CHOICES else pairs


def score_bits(columns: int) -> int:
    """How many bits behind the point weights of so many columns can have, so that their sums over a row are exact in
    floats.
    """
    return SCORE_BITS - LARGEST_WEIGHT.bit_length() - columns.bit_length()


def integer_weights(weights: Floats, bits: int) -> Floats:
    """Released weights as integers, 2^bits to 1."""
    held = np.clip(np.nan_to_num(weights), -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return np.asarray(np.rint(held * (1 << bits)), dtype=np.float64)
