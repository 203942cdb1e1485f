"""Sums of columns, of their squares, and counts of levels, for every class apart: what naive Bayes needs of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.privacy import Adjacency, Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import Additive
from privfit.rows import Rows
from privfit.schema import Block, Category, Geometry, Norm, Schema, make_block
from privfit.solvers import ClassNoise, ClassProfiles, class_profiles
from privfit.statistics import STEP, WEIGHT_LEVELS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NORMS: dict[str, Norm] = {"laplace": "l1", "linf": "linf", "gaussian": "l2"}
"""The norm in which each kind of noise needs the sensitivity."""
KIND_MARGIN = 0.98
"""Another kind of noise than the first is taken where its standard deviation is below this share of the least so far:
at equal noise, Laplace noise has lighter costs. Chosen, not measured."""


SIGNAL_OF_A_BIN, LEAST_BINS, MOST_BINS = 3.0, 7, 40
"""A number has as many bins as the root of rows times epsilon, per person and released column, over the first; below
the second it is a mean and a variance. Finer bins show more of a shape and hold more noise: papers/experiments/
components_and_classes.py; on Adult at epsilon 1, with 35 bins, 82.8% of answers are right, with 10 81.5%, with means
and variances 79.6%."""


def automatic_bins(parameters: PrivacyParameters, columns: int, n_rows: int | None) -> int | None:
    """In how many bins numbers fall where nobody says, from public facts; None for means and variances."""
    if n_rows is None:
        return None
    signal = n_rows * parameters.budget.epsilon / (int(parameters.rows_per_person) * (1 + columns))
    bins = round(math.sqrt(signal / SIGNAL_OF_A_BIN))
    return min(bins, MOST_BINS) if bins >= LEAST_BINS else None


@dataclass(frozen=True)
class ClassSums:
    """For every class: the number of rows, the sums of all encoded columns, and those of the squares of numbers.

    The target is one indicator per class, behind the columns. Where rows have weights, one of the largest weight adds
    what a row adds without weights, and a count is a sum of weights.
    """

    geometry: Geometry
    step: int = STEP
    target_units: int = 1
    weighed: bool = False

    @property
    def unit(self) -> int:
        """The integer that stands for one row, of the largest weight if rows have weights."""
        return self.step * (WEIGHT_LEVELS if self.weighed else 1)

    @property
    def largest(self) -> int:
        """The most that one row can add to a sum."""
        return self.unit

    def __call__(self, encoded: Floats) -> Floats:
        """One line per class, one entry per count, column and square: integers of at most `unit` a row."""
        ends = np.cumsum([self.geometry.n_columns, self.n_classes])
        columns, classes, weights = np.split(encoded, ends)
        if self.weighed:
            classes = classes * weights
        squares = np.rint(np.square(columns[self.numbers]) / self.step)
        ones = np.full((1, encoded.shape[1]), float(self.step))
        return np.asarray(classes @ np.concatenate([ones, columns, squares]).T)

    @cached_property
    def numbers(self) -> list[int]:
        """The encoded columns that are numbers, and have squares."""
        return [block.start for block in self.geometry.blocks if is_number(block)]

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        assert self.geometry.target is not None
        return self.geometry.target.width

    def released(self, sums: Integers, adjacency: Adjacency) -> Integers:
        """The values to release: all of them, but for the last count where the number of rows is public."""
        last = sums.shape[1] * (self.n_classes - 1)
        values = sums.ravel()
        return np.delete(values, last) if adjacency == "replace-one" else values

    def n_values(self, adjacency: Adjacency) -> int:
        """How many values are released."""
        each = 1 + self.geometry.n_columns + len(self.numbers)
        return self.n_classes * each - (adjacency == "replace-one")

    def row_sensitivity(self, parameters: PrivacyParameters, norm: Norm) -> int:
        """The largest change per row that changes, to be multiplied by `rows_per_person`, weights of rows included.

        Where the number of rows that count is private, 2 m rows are those of m slots: half of what happens to a slot
        counts per row.

        Guarantee: docs/proofs/naive-bayes.md, Theorem 2.
        """
        assert parameters.adjacency == "add-remove" or not self.weighed  # the sum of weights is private
        if parameters.promise is None:
            return self.sensitivity(parameters.adjacency, norm)
        slot = self.sensitivity("replace-one", norm, counted=True)  # a row that comes or goes moves less
        return -(-slot // 2)

    def sensitivity(self, adjacency: Adjacency, norm: Norm, counted: bool = False) -> int:
        """The largest change that one row makes, in lattice units; `counted` is whether all counts are released.

        With q numbers, k blocks of levels and K classes, in units of `unit`: under add-remove 1 + 2 q + k in L1 and in
        squared L2, and 1 in L-infinity; under replace-one twice that in L1 and in squared L2 (less 1 where K = 2 and
        one count is left out), and 2 in L-infinity where there are numbers.

        Guarantee: docs/proofs/naive-bayes.md, Theorem 1.
        """
        numbers, blocks = len(self.numbers), sum(not is_number(block) for block in self.geometry.blocks)
        row = 1 + 2 * numbers + blocks
        replaced = adjacency == "replace-one"
        if norm == "linf":
            return self.unit * (2 if replaced and numbers else 1)
        total = (2 * row - (self.n_classes == 2 and not counted)) if replaced else row
        if norm == "l2":
            return math.isqrt(total * self.unit**2 - 1) + 1
        return total * self.unit


@dataclass(frozen=True)
class ClassSumsPlan(ReleasePlan):
    """The sums that are released."""

    sums: ClassSums


@dataclass(frozen=True)
class NaiveBayes(Mechanism[float | None, ClassSumsPlan, Integers, Floats]):
    """Release, for every class, the number of rows, sums and squares of numbers and counts of levels, once.

    Its problem is the bound of the rows' weights, or None where rows count alike.

    See Also
    --------
    GaussianNB : The classifier that is made of them.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/naive-bayes.md, Theorem 1; with weights Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import privfit as pf
    >>> from privfit.mechanisms import NaiveBayes
    >>> schema = pf.Schema([pf.Numeric("age", 0, 100)], target=pf.Category("ill", ["no", "yes"]))
    >>> NaiveBayes().geometry(schema, None).feature_names
    ('age',)
    """

    name = "naive Bayes"
    many_classes = True
    takes_weights = True

    def geometry(
        self,
        schema: Schema,
        problem: float | None = None,
        numeric: Numbers = "slope",
        bins: int | Literal["auto"] = "auto",
    ) -> Geometry:
        """Numbers as slopes or bins, one indicator per level, and one per class."""
        assert isinstance(schema.target, Category)
        found = schema.geometry(numeric=numeric, intercept=False, target=False, whole=True, gaps="slope", bins=bins)
        return Geometry(found.blocks, False, make_block(schema.target, found.n_columns, whole=True))

    def plan(self, facts: PublicFacts, problem: float | None = None) -> ClassSumsPlan:
        """The first of Laplace, L-infinity and, with a delta, Gaussian noise, or one that is clearly smaller."""
        sums = ClassSums(facts.geometry, weighed=problem is not None)
        kinds = ("laplace", "linf", *(["gaussian"] if facts.parameters.budget.delta > 0 else []))
        best: Event | None = None
        for kind in kinds:
            try:
                event = self._event(kind, sums, facts)
            except PrivacyError:  # more noise than this kind can hold
                if kind == kinds[-1] and best is None:
                    raise
                continue
            if best is None or _sd(event) < KIND_MARGIN * _sd(best):
                best = event
        assert best is not None
        return ClassSumsPlan(best, facts, sums)

    def _event(self, kind: str, sums: ClassSums, facts: PublicFacts) -> Event:
        parameters, adjacency = facts.parameters, facts.parameters.adjacency
        sensitivity, n_values = sums.row_sensitivity(parameters, NORMS[kind]), sums.n_values(adjacency)
        if kind == "gaussian":
            return Event.gaussian(
                self.name,
                parameters.budget,
                sensitivity=sensitivity,
                adjacency=adjacency,
                rows_per_person=int(parameters.rows_per_person),
                unit=sums.unit,
                n_values=n_values,
            )
        return Event.pure(
            self.name,
            parameters.budget,
            noise=kind,
            sensitivity=sensitivity,
            adjacency=adjacency,
            rows_per_person=int(parameters.rows_per_person),
            unit=sums.unit,
            n_values=n_values,
        )

    def read(self, rows: Rows, plan: ClassSumsPlan, problem: float | None, draws: Draws) -> Integers:
        """The sums, exactly."""
        return plan.sums.released(rows.sum(plan.sums), plan.facts.parameters.adjacency)

    def draw(self, data: Integers, plan: ClassSumsPlan, draws: Draws) -> Floats:
        """One draw of noise; the last count follows from the others where the number of rows is public."""
        noisy = draws.add(data).astype(np.float64) / plan.sums.unit
        if plan.facts.parameters.adjacency == "add-remove":
            return noisy.reshape(plan.sums.n_classes, -1)
        assert plan.facts.n_rows is not None
        last = len(noisy) + 1 - (len(noisy) + 1) // plan.sums.n_classes
        each = (len(noisy) + 1) // plan.sums.n_classes
        others = noisy[:last:each].sum()
        return np.insert(noisy, last, plan.facts.n_rows - others).reshape(plan.sums.n_classes, -1)

    def solve(self, release: Release[Floats], geometry: Geometry, problem: float | None) -> ClassProfiles:
        """Class shares, means and variances of numbers, shares of levels: post-processing."""
        blocks = [(block.start, block.width, is_number(block)) for block in geometry.blocks]
        found, most = class_profiles(release.value, blocks, ClassNoise(_sd(release.event))), problem or 1.0
        return replace(found, counts=found.counts * most, noise=ClassNoise(found.noise.sd * most))


def is_number(block: Block) -> bool:
    """Whether a block is a number, with an indicator beside it where it may be missing."""
    return block.kind in ("slope", "slope-or-missing")


def _sd(event: Event) -> float:
    part = event.main[0]
    assert isinstance(part, Additive)
    return part.sd
