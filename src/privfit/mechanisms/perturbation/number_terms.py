"""Interaction terms of a regression: tables for pairs of columns, chosen and measured by the residuals that are left.

As for classes (interaction_terms.py), with what predictors exceed the target by in place of scores. Slopes are those of
the loss of the weights, at half of their threshold. That is chosen before, and nothing else here depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.losses import tapered_huber
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.perturbation.defaults import (
    FOUR_NUMBER_TERMS_FROM,
    TERMS_PER_COLUMN_FROM,
    TWO_NUMBER_TERMS_FROM,
)
from privfit.mechanisms.perturbation.interaction_terms import (
    MOST_CELLS,
    MOST_CHOICES,
    MOST_LOOKS,
    OF_256,
    STEP_BITS,
    UNIT,
    BudgetSplit,
    IntegerGradients,
    InteractionTerms,
    check_interactions,
    menu_of,
    score_bits,
)
from privfit.mechanisms.perturbation.problem import PairTable
from privfit.mechanisms.perturbation.regression_weights import TAPER
from privfit.privacy import Draws, PrivacyError, PrivacyParameters
from privfit.rows import CachedDesign, InteractionCells, Interactions, Pair, Residuals
from privfit.schema import Geometry

Floats = NDArray[np.float64]

FOR_CHOICES, FOR_EACH_CHOICE, MOST_FOR_CHOICES = Fraction(4, 100), Fraction(2, 100), Fraction(12, 100)
"""What all choices have of epsilon: a fixed share, and more for each up to a limit. From the recipe in issue 23, not
varied."""
FOR_EACH_TABLE, MOST_FOR_TABLES = Fraction(6, 100), Fraction(32, 100)
"""What measuring the tables has: so much for each, up to a limit. More leaves less for the weights:
papers/experiments/terms.py."""
OF_THRESHOLD = 0.5
"""The threshold of the terms in units of that of the weights: less noise and more clipping, after weights have found
what is large: papers/experiments/terms.py."""
ENOUGH_ROWS = 1 << 18
"""Rows that are looked at where there are more: they are held in memory as cells, and counted for every candidate."""
OF_SAMPLING = 0.4
"""The variance of a row's slope over its curvature, about: what sampling alone makes of a cell's sum of slopes. A
normal residual with a standard deviation of the threshold has 0.36 over 0.68; wider ones more, narrower ones less."""
FURTHEST = 1.0
"""A cell moves predictions by at most so many thresholds of the terms: where residuals are beyond, slopes are nearly
the largest and curvatures nearly none, and a Newton step would be far too long. Chosen, not measured."""


@dataclass(frozen=True)
class NumberTerms(InteractionTerms):
    """The plan of interaction terms where the target is a number, from public facts.

    The centre and the unit of residuals are those of a threshold of 1 until that is known (`at`).

    Guarantee: docs/proofs/regression-objective.md, Lemma 7.
    """

    apart: frozenset[int] = frozenset()
    """Columns that have no terms, by their places."""
    centre: float = 0.0
    unit: float = OF_THRESHOLD

    @cached_property
    def menu(self) -> list[Pair]:
        """What there is to choose from."""
        return [pair for pair in menu_of(self.interactions) if not self.apart.intersection(pair)]

    @property
    def share(self) -> Fraction:
        """What all terms have of epsilon."""
        return self.split.choices + self.split.tables

    def at(self, centre: float, threshold: float) -> NumberTerms:
        """The same with the released centre and threshold."""
        return replace(self, centre=centre, unit=OF_THRESHOLD * threshold)

    def _cells(self, sample: CachedDesign, weights: Floats, bits: int) -> InteractionCells:
        return sample.cells(weights, Residuals(self.centre, self.unit, 1 << bits))

    def _values(self, pair: Pair, slopes: Floats, curvatures: Floats) -> Floats:
        return shrunken_step(slopes, curvatures, 2.0 * (self.table_scale / UNIT) ** 2)

    def tables(self, design: CachedDesign, weights: Floats, draws: Draws) -> tuple[PairTable, ...]:
        """Choose pairs and measure their tables. Weights, and what tables add, are where half the target's range is
        1.
        """
        found = self.drawn(design, weights / self.unit, draws)
        return tuple(PairTable(table.columns, table.scores * self.unit) for table in found)


def shrunken_step(slopes: Floats, curvatures: Floats, variance: float) -> Floats:
    """What each cell adds to predictions: a Newton step, shrunk by what noise of this variance and sampling do to its
    sum of slopes, beside the spread of effects that all cells together show. Post-processing of noisy sums.
    """
    curved = np.maximum(curvatures, 0.0)
    shown = float(np.sum(slopes**2) - len(slopes) * variance - OF_SAMPLING * np.sum(curved))
    if shown <= 0.0:
        return np.zeros(len(slopes))
    by_chance = (variance + OF_SAMPLING * curved) * (max(float(np.sum(curved**2)), 1.0) / shown)
    return np.clip(-slopes * curved / (curved**2 + by_chance), -FURTHEST, FURTHEST)


def planned_number_terms(facts: PublicFacts, problem: QuadraticProblem) -> NumberTerms | None:
    """The terms that are asked for, from public facts; None for none."""
    check_interactions(problem.interactions)
    parameters, geometry = facts.parameters, facts.geometry
    places = {block.column.name: place for place, block in enumerate(geometry.blocks)}
    apart = frozenset(places[name] for name in problem.apart)
    number, there = problem.interactions, n_candidates(geometry, apart)
    if number == "auto":
        number = min(automatic_terms(parameters, facts.n_rows, len(geometry.blocks)), there)
    if not number:
        return None
    if int(number) > there:
        raise PrivacyError(
            f"interactions={problem.interactions!r} was given where {there} pairs of columns, and numbers by "
            "themselves, can have a table: columns with levels, bins or knots that are not monotone, at most "
            f"{MOST_CELLS} cells a table and {MOST_CHOICES} to choose from. Use 0, or 'auto'. Nothing was charged."
        )
    changed = int(parameters.rows_per_person) * (2 if parameters.adjacency == "replace-one" else 1)
    looked_at = min(ENOUGH_ROWS, MOST_LOOKS // there)
    return NumberTerms(
        IntegerGradients(tapered_huber(TAPER), changed, (0.0,)),
        Interactions(geometry),
        parameters.budget.exact,
        split_of(int(number)),
        min(max(OF_256 * looked_at // max(facts.n_rows or 1, 1), 1), OF_256),
        apart,
    )


def split_of(number: int) -> BudgetSplit:
    """The shares of so many terms."""
    choices = min(FOR_CHOICES + FOR_EACH_CHOICE * number, MOST_FOR_CHOICES)
    return BudgetSplit(number, choices, min(FOR_EACH_TABLE * number, MOST_FOR_TABLES))


def n_candidates(geometry: Geometry, apart: frozenset[int] = frozenset()) -> int:
    """How many pairs and numbers there are to choose from; none where they would be too many, or columns too many for
    exact scores.
    """
    if score_bits(geometry.n_columns) < STEP_BITS:
        return 0
    there = sum(not apart.intersection(pair) for pair in menu_of(Interactions(geometry)))
    return there if there <= MOST_CHOICES else 0


def automatic_terms(parameters: PrivacyParameters, n_rows: int | None, columns: int) -> int:
    """How many interaction terms there are where nobody says, with so many columns of the table."""
    signal = 0.0 if n_rows is None else n_rows * parameters.budget.epsilon / parameters.rows_per_person
    if signal < TWO_NUMBER_TERMS_FROM or signal < TERMS_PER_COLUMN_FROM * columns:
        return 0
    return 4 if signal >= FOUR_NUMBER_TERMS_FROM else 2


def in_steps(pairs: Sequence[PairTable], width: float, most: int) -> list[tuple[Pair, NDArray[np.int64]]]:
    """What tables add to predictions, in whole steps, `most` to this width."""
    return [(table.columns, np.rint(table.scores / width * most).astype(np.int64)) for table in pairs]
