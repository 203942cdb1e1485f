"""Interaction terms of a regression: tables for pairs of columns, chosen and measured by the residuals that are left.

As for classes (interaction_terms.py), with what predictors exceed the target by in place of scores. Slopes are those of
the loss of the weights at half their threshold, whatever that is: it is chosen before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.losses import tapered_huber
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.interaction_terms import (
    MOST_CHOICES,
    MOST_LOOKS,
    OF_256,
    STEP_BITS,
    BudgetSplit,
    IntegerGradients,
    InteractionTerms,
    menu_of,
    score_bits,
)
from privfit.mechanisms.perturbation.problem import PairTable
from privfit.mechanisms.perturbation.regression_weights import TAPER
from privfit.privacy import Draws, PrivacyError, PrivacyParameters
from privfit.rows import CachedDesign, InteractionCells, Interactions, Residuals, is_alone
from privfit.schema import Geometry

Floats = NDArray[np.float64]

FOR_CHOICES, FOR_EACH_CHOICE = Fraction(4, 100), Fraction(2, 100)
FOR_EACH_TABLE = Fraction(4, 100)
OF_THRESHOLD = 0.5
ENOUGH_ROWS = 1 << 18
TWO_TERMS_FROM, FOUR_TERMS_FROM = 20_000, 60_000
SAMPLING = 0.4


@dataclass(frozen=True)
class NumberTerms(InteractionTerms):
    """The plan of interaction terms where the target is a number.

    They are planned with a threshold of 1; nothing but the unit of residuals depends on it (`at`).

    Guarantee: docs/proofs/regression-objective.md, Lemma 7.
    """

    centre: float = 0.0
    unit: float = 1.0

    @property
    def share(self) -> Fraction:
        """What all terms have of epsilon."""
        return self.split.choices + self.split.tables

    def at(self, centre: float, threshold: float) -> NumberTerms:
        """The same with the released centre and threshold."""
        return replace(self, centre=centre, unit=OF_THRESHOLD * threshold)

    def _cells(self, sample: CachedDesign, weights: Floats, bits: int) -> InteractionCells:
        return sample.cells(weights, Residuals(self.centre, self.unit, 1 << bits))

    def _values(self, slopes: Floats, curvatures: Floats, sd: float) -> Floats:
        return shrunken_step(slopes, np.maximum(curvatures, 0.0), (self.table_scale * 2**0.5 / (1 << 14)) ** 2)

    def tables(self, design: CachedDesign, weights: Floats, draws: Draws) -> tuple[PairTable, ...]:
        """Choose pairs and measure their tables; weights and tables are where half the target's range is 1."""
        found = self.drawn(design, weights / self.unit, draws)
        return tuple(PairTable(table.columns, table.scores * self.unit) for table in found)


def shrunken_step(slopes: Floats, curvatures: Floats, variance: float) -> Floats:
    """What each cell adds to predictions: a Newton step, shrunk by what noise and sampling do to its sum of slopes
    beside the spread of effects that all cells together show.

    Guarantee: post-processing of noisy sums; docs/proofs/regression-objective.md, Lemma 7.
    """
    own = float(np.sum(slopes**2) - len(slopes) * variance - SAMPLING * np.sum(curvatures))
    if own <= 0.0:
        return np.zeros(len(slopes))
    spread = own / max(float(np.sum(curvatures**2)), 1.0)
    below = curvatures**2 + (variance + SAMPLING * curvatures) / spread
    return np.clip(-slopes * curvatures / below, -FURTHEST, FURTHEST)


FURTHEST = 3.0


def planned_number_terms(
    asked: int | str, facts: PublicFacts, bands: bool = False
) -> NumberTerms | None:
    """The plan, from public facts; None for no terms."""
    parameters, interactions = facts.parameters, Interactions(facts.geometry)
    menu = menu_of(interactions) if score_bits(facts.geometry.n_columns) >= STEP_BITS else []
    there = len(menu) if len(menu) <= MOST_CHOICES else 0
    number = asked
    if number == "auto":
        number = min(automatic_terms(parameters, facts.n_rows), there)
    number = int(number)
    if number > there:
        raise PrivacyError(
            f"interactions={asked!r} was given where {there} pairs of columns, and numbers by themselves, can have a "
            "table: columns with levels, bins or knots. Use 0, or 'auto'."
        )
    if not number:
        return None
    changed = int(parameters.rows_per_person) * (2 if parameters.adjacency == "replace-one" else 1)
    looked_at = min(ENOUGH_ROWS, MOST_LOOKS // len(menu))
    of_256 = min(max(OF_256 * looked_at // max(facts.n_rows or 1, 1), 1), OF_256)
    split = BudgetSplit(number, FOR_CHOICES + FOR_EACH_CHOICE * number, FOR_EACH_TABLE * number)
    gradients = IntegerGradients(tapered_huber(TAPER), changed, (0.0,))
    return NumberTerms(gradients, interactions, parameters.budget.exact, split, of_256)


def automatic_terms(parameters: PrivacyParameters, n_rows: int | None) -> int:
    signal = 0.0 if n_rows is None else n_rows * parameters.budget.epsilon / parameters.rows_per_person
    return 2 * (signal >= TWO_TERMS_FROM) + 2 * (signal >= FOUR_TERMS_FROM)
