"""A perturbed objective, and after it tables for a few pairs of columns: what the sum over columns misses, chosen and measured privately.

Most of epsilon goes to the perturbed objective. Its weights tell every row's slope, that is, how far the fit misses it. A pair of columns whose cells have slopes that do not cancel is
chosen by permute-and-flip; then one Newton step is made for every cell of it, from noisy sums of slopes and curvatures; and so on with the next pair. A number by itself, in fine cells, is one more pair to choose from.
Nori, Caruana, Bu, Shen and Kulkarni (ICML 2021) fit additive models to noisy sums of residuals in this manner, without choosing pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.minima import PairTable, Plan, Risk, RiskFit
from privfit.mechanisms.perturbation import CLEARLY, ObjectivePerturbation
from privfit.mechanisms.release import Release
from privfit.mechanisms.rules import automatic_pairs
from privfit.mechanisms.tilts import Tilt, free_ridge, make_tilt, refuse_gaussian_without_delta
from privfit.privacy import Budget, Event, Ledger, Noise, PrivacyError, Terms, exact
from privfit.privacy.event import laplace_scale
from privfit.rows import CellRows, Crossing, KeptRows, Pair, PartOfRows, Rows, is_alone
from privfit.schema import Geometry
from privfit.statistics import Gradients

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOR_CHOICES = Fraction(8, 100)
FOR_TABLES, FOR_EACH_TABLE, MOST_FOR_TABLES = Fraction(8, 100), Fraction(4, 100), Fraction(32, 100)
BESIDE_GAUSSIAN = Fraction(3, 2)
MOST_PAIRS = 20
MOST_CELLS = 500
MOST_CHOICES = 5000
ENOUGH_ROWS = 40_960
MOST_LOOKS = 1 << 26
LARGEST_CELL = 1 << 17
UNIT = 1 << 14
LITTLE_MORE = 1.1
STEP_BITS = 8
MOST_STEPS = 1 << 13
SCORE_BITS = 36
LARGEST_WEIGHT = 1 << 12
NOT_BY_CHANCE = 0.6
SOFT_COUNT = 25
STEADY = 3.0
FURTHEST = 1.5


@dataclass(frozen=True)
class Slopes:
    """The slopes and curvatures of a loss as whole numbers, UNIT to 1, for every step of a score and both classes; and what one person can do to sums of them.

    `moved` is how many rows leave or enter between neighbours.
    """

    loss: ConvexLoss
    moved: int

    def _table(self, function: Any, most: float, unit: int = UNIT) -> Integers:
        middles = (np.arange(MOST_STEPS) - MOST_STEPS // 2 + 0.5) / (1 << STEP_BITS)
        lines = [np.rint(function(middles, np.full(MOST_STEPS, side)) * unit) for side in (-1.0, 1.0)]
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
        """What a curvature of 1 counts: as much as a slope of 1, or less where a loss curves so sharply that both together would need much more noise than slopes alone."""
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
        """What the sum of slopes of a cell may be by chance, by the number of its rows."""
        largest = int(np.abs(self.slopes).max())
        return np.asarray(np.floor(NOT_BY_CHANCE * largest * np.sqrt(np.arange(LARGEST_CELL + 1) + float(SOFT_COUNT))), dtype=np.int64)

    def score(self, sums: Integers, counts: Integers) -> int:
        """How far the fit misses the cells of a pair: the sum over cells of slopes, as far as it is not by chance."""
        return int(np.maximum(np.abs(sums) - self.by_chance[np.minimum(counts, LARGEST_CELL)], 0).sum())

    @property
    def reach_of_score(self) -> int:
        """The most by which one person can change the difference of two pairs' scores.

        Guarantee: docs/proofs/pairs.md, Lemma 2.
        """
        return 2 * self.moved * (max(int(np.abs(self.slopes).max()), 1) + int(np.diff(self.by_chance).max()))

    @property
    def reach_of_sums(self) -> int:
        """The most by which one person can change all sums of slopes and of curvatures over cells together.

        Guarantee: docs/proofs/pairs.md, Lemma 3.
        """
        return self.moved * max(int((np.abs(self.slopes) + np.abs(self.curvatures)).max()), 1)


@dataclass(frozen=True)
class Shares:
    """How many pairs (or numbers by themselves) get a table, and what choosing them and what measuring them have of epsilon, all together."""

    pairs: int
    choices: Fraction
    tables: Fraction

    @classmethod
    def of(cls, pairs: int, gaussian: bool) -> Shares:
        """More for more pairs; and half as much again beside Gaussian noise, from which pure steps take less."""
        tables = min(FOR_TABLES + FOR_EACH_TABLE * pairs, MOST_FOR_TABLES)
        more = BESIDE_GAUSSIAN if gaussian else Fraction(1)
        return cls(pairs, FOR_CHOICES * more, tables * more)

    @property
    def weights(self) -> Fraction:
        """What is left for weights with pure noise."""
        return 1 - self.choices - self.tables

    def steps(self, epsilon: float) -> tuple[float, ...]:
        """What every choice and every table costs, rounded up."""
        each = (self.choices, self.tables)
        return tuple(math.nextafter(float(exact(epsilon) * share / self.pairs), math.inf) for share in each for _ in range(self.pairs))


@dataclass(frozen=True)
class PairedPerturbation(ObjectivePerturbation):
    """A perturbed objective with tables for pairs of columns and numbers by themselves, for logistic regression with two classes.

    Parameters
    ----------
    ridge, noise, steepest : as for ObjectivePerturbation, which has the larger part of epsilon here (80% with one pair, 76% with two); with Gaussian noise it is calibrated so that all steps together cost epsilon and delta.
    pairs : how many pairs are chosen. "auto" is none where rows that are looked at times epsilon (over `rows_per_person`) are below 20,000, one from there on, and two from 40,000 on; half as many rows will do
        where noise is Gaussian. It is none where there are more than 5,000 pairs.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to
    a chance below 2^-64; docs/proofs/pairs.md, Theorems 1 and 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    pairs: int | Literal["auto"] = "auto"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        super().check()
        whole = isinstance(self.pairs, int | np.integer) and not isinstance(self.pairs, bool)
        if self.pairs != "auto" and not (whole and 0 <= self.pairs <= MOST_PAIRS):
            raise PrivacyError(
                f"interactions={self.pairs!r} was given; it is 'auto' or a whole number from 0 to {MOST_PAIRS}: how many pairs of columns, or numbers by themselves, get a table. Use 'auto' if in doubt."
            )

    @classmethod
    def of(cls, plain: ObjectivePerturbation, pairs: Any) -> PairedPerturbation:
        """The same perturbed objective, with tables."""
        return cls(**{field.name: getattr(plain, field.name) for field in fields(plain)}, pairs=pairs)

    def _kept(self, rows: Rows, objective: Risk) -> KeptRows:
        return KeptRows(rows, objective.features, fine=any(map(is_alone, self._menu(rows.geometry, objective))))

    def _menu(self, geometry: Geometry, objective: Risk) -> list[Pair]:
        """What can have a table, from public facts."""
        fits = objective.loss == LOGISTIC and objective.coupling == "one" and objective.features is None
        if not fits or score_bits(geometry.n_columns) < STEP_BITS:
            return []
        menu = menu_of(Crossing.of(geometry))
        return menu if len(menu) <= MOST_CHOICES else []

    def number(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None, gaussian: bool = False) -> int:
        """How many tables there are, from public facts, beside pure or Gaussian noise."""
        there = len(self._menu(geometry, objective))
        if self.pairs == "auto":
            looked_at = None if n_rows is None or not there else min(n_rows, enough_rows(terms, there))
            return min(automatic_pairs(terms, looked_at, gaussian), there)
        if self.pairs > there:
            raise PrivacyError(
                f"interactions={self.pairs!r} was given where {there} pairs of columns, and numbers by themselves, can have a table: two classes, no kernel, and columns with levels, bins or knots, "
                f"at most {MOST_CELLS} cells a table and {MOST_CHOICES} to choose from. Use 0, or 'auto'."
            )
        return int(self.pairs)

    def plan_of_weights(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None) -> tuple[Plan, Shares]:
        """The plan of the perturbed objective, and what goes to tables beside it. Where noise may be Gaussian, kinds are compared beside the tables that pure noise would have."""
        shares = Shares.of(self.number(geometry, terms, objective, n_rows), gaussian=False)
        plan = self._plan_beside(shares, geometry, terms, objective, n_rows)
        if not plan.event.delta:
            return plan, shares
        shares = Shares.of(self.number(geometry, terms, objective, n_rows, gaussian=True), gaussian=True)
        return replace(self, noise="gaussian")._plan_beside(shares, geometry, terms, objective, n_rows), shares

    def _plan_beside(self, shares: Shares, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None) -> Plan:
        """The plan beside these shares: pure noise has what they leave of epsilon, Gaussian noise is calibrated for everything together.

        Guarantee: docs/proofs/pairs.md, Theorems 1 and 2.
        """
        if not shares.pairs:
            return self.plan(geometry, terms, objective, n_rows)
        refuse_gaussian_without_delta(self.noise, terms.budget.delta)
        plans = []
        if self.noise != "gaussian":
            plans.append(self.plan(geometry, replace(terms, budget=_share(terms.budget, shares.weights)), objective, n_rows))
        if terms.budget.delta > 0 and self.noise in ("auto", "gaussian"):
            beside = _WeightsBeside(self.ridge, "gaussian", self.steepest, shares.steps(terms.budget.epsilon))
            plans.append(beside.plan(geometry, terms, objective, n_rows))
        return min(plans, key=lambda plan: plan.sd / CLEARLY if plan.event.delta else plan.sd)

    def _release_from(
        self, kept: KeptRows, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk, n_rows: int | None
    ) -> Release[RiskFit]:
        plan, shares = self.plan_of_weights(rows.geometry, terms, objective, n_rows)
        if not shares.pairs:
            return super()._release_from(kept, rows, terms, ledger, noise, objective, n_rows)
        moved = int(terms.rows_per_person) * (2 if terms.adjacency == "replace-one" else 1)
        tables = Tables(Slopes(plan.gradients.loss, moved), Crossing.of(rows.geometry), exact(terms.budget.epsilon), shares)
        event, bits = tables.event(plan, terms), score_bits(rows.geometry.n_columns)  # public facts only up to here
        self._tell_of_a_tiny_ridge(plan)
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        first = Release(self._fit(plan, kept, noise, objective, n_rows), plan.event, noise.private)
        fit = super().solve(first, rows.geometry, objective)
        cells = self._looked_at(kept, tables, terms, n_rows, noise).cells(whole_weights(fit.weights, bits))
        return Release(replace(fit, pairs=tables.drawn(cells, bits, noise)), event, noise.private)

    def _looked_at(self, kept: KeptRows, tables: Tables, terms: Terms, n_rows: int | None, noise: Noise) -> KeptRows:
        """The rows that pairs are chosen and measured by: all, or, where those are very many, about as many as are enough, by a coin for every row."""
        share = max(256 * enough_rows(terms, len(tables.menu)) // max(n_rows or 1, 1), 1)  # of 256
        return kept if share >= 256 else PartOfRows(kept, noise.coins().heads(0, kept.n_rows, share))

    def solve(self, release: Release[RiskFit], geometry: Geometry, objective: Risk) -> RiskFit:
        """What was released; without tables, as for a perturbed objective alone."""
        return release.value if release.value.pairs else super().solve(release, geometry, objective)


@dataclass(frozen=True)
class Tables:
    """The plan of choosing pairs and measuring their tables, from public facts."""

    slopes: Slopes
    crossing: Crossing
    epsilon: Fraction
    shares: Shares

    def __post_init__(self) -> None:
        """Compute all scales, so that those that no noise can have are refused before anything is charged."""
        for scale in (self.choice_scale, self.table_scale):
            assert scale > 0

    @cached_property
    def menu(self) -> list[Pair]:
        """What there is to choose from."""
        return menu_of(self.crossing)

    @cached_property
    def choice_scale(self) -> float:
        """The scale of a choice."""
        return laplace_scale(self.slopes.reach_of_score, self.epsilon * self.shares.choices / self.shares.pairs)

    @cached_property
    def table_scale(self) -> float:
        """The scale of the noise on sums of slopes and of curvatures, UNIT to 1."""
        return laplace_scale(self.slopes.reach_of_sums, self.epsilon * self.shares.tables / self.shares.pairs)

    def event(self, plan: Plan, terms: Terms) -> Event:
        """The price of everything, and the noise on everything that is a number: two for each cell, and as many cells as a pair can have."""
        of_weights, pairs = plan.event, self.shares.pairs
        size = 2 * max(self.crossing.n_cells(pair) for pair in self.menu)
        return replace(
            of_weights,
            mechanism=f"{of_weights.mechanism}, {pairs} table{'s' * (pairs > 1)} of columns chosen privately",
            epsilon=terms.budget.epsilon,
            noise="+".join([of_weights.noise, *["laplace"] * pairs]),
            n_values=of_weights.n_values + size * pairs,
            parts=(*(of_weights.parts or (of_weights.n_values,)), *[size] * pairs),
            scales=(*(of_weights.scales or (of_weights.scale,)), *[self.table_scale * of_weights.unit / UNIT] * pairs),
            widths=(*of_weights.widths, *[()] * pairs) if of_weights.widths else (),
        )

    def drawn(self, rows: CellRows, bits: int, noise: Noise) -> tuple[PairTable, ...]:
        """Choose a pair, measure its table, let it count, and so on."""
        left, found = list(self.menu), []
        for _ in range(self.shares.pairs):
            both = rows.sums_and_counts(left, self.slopes.slopes, bits - STEP_BITS)
            pair = left.pop(noise.select([self.slopes.score(*own) for own in both], self.choice_scale))
            sums = [rows.sums([pair], responses, bits - STEP_BITS)[0] for responses in (self.slopes.slopes, self.slopes.curvatures)]
            slopes, curvatures = np.split(noise.laplace(np.concatenate(sums), self.table_scale), 2)
            sd = math.sqrt(2.0) * self.table_scale / self.slopes.curvature_unit
            table = newton_step(slopes / UNIT, curvatures / self.slopes.curvature_unit, sd)
            found.append(PairTable(pair, table))
            rows.add(pair, np.rint(table * (1 << bits)).astype(np.int64))
        return tuple(found)


def enough_rows(terms: Terms, menu: int) -> int:
    """How many rows are looked at where there are more: so many that their number times epsilon is, but no more than are soon counted in all pairs."""
    wanted = ENOUGH_ROWS * terms.rows_per_person / min(terms.budget.epsilon, 1.0)
    return max(int(min(wanted, MOST_LOOKS // menu)), 1)


def menu_of(crossing: Crossing) -> list[Pair]:
    """The pairs of columns that can have a table, and numbers by themselves unless those would be too many."""
    pairs, alone = crossing.pairs(MOST_CELLS), crossing.alone()
    return pairs + alone if len(pairs) + len(alone) <= MOST_CHOICES else pairs


def newton_step(slopes: Floats, curvatures: Floats, sd: float) -> Floats:
    """What each cell adds to the scores of its rows: a Newton step towards slopes that cancel, held back where curvatures are small beside their noise of this size."""
    return np.clip(-slopes / np.hypot(np.maximum(curvatures, 0.0), max(STEADY * sd, 1.0)), -FURTHEST, FURTHEST)


def score_bits(columns: int) -> int:
    """How many bits behind the point weights of so many columns can have, so that their sums over a row are exact in floats."""
    return SCORE_BITS - LARGEST_WEIGHT.bit_length() - columns.bit_length()


def whole_weights(weights: Floats, bits: int) -> Floats:
    """Released weights as whole numbers, 2^bits to 1."""
    held = np.clip(np.nan_to_num(weights), -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return np.asarray(np.rint(held * (1 << bits)), dtype=np.float64)


@dataclass(frozen=True)
class _WeightsBeside(ObjectivePerturbation):
    """A perturbed objective with Gaussian noise in a release that goes on with pure steps of so many epsilons."""

    steps: tuple[float, ...] = ()

    def _tilt(self, kind: str, gradients: Gradients, epsilon: float, delta: float, bend_cost: float | None) -> Tilt:
        return make_tilt(kind, gradients, epsilon, delta, bend_cost, self.steps)

    def _free_ridge(self, kind: str, gradients: Gradients, epsilon: float) -> float:
        return free_ridge(kind, gradients, epsilon - sum(self.steps))


def _share(budget: Budget, share: Fraction) -> Budget:
    """A part of epsilon, rounded down, and no delta."""
    part = float(exact(budget.epsilon) * share)
    return Budget(part if exact(part) <= exact(budget.epsilon) * share else math.nextafter(part, 0.0))
