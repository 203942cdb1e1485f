"""Noisy counts of the classes of a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.privacy import Draws, Event
from privfit.rows import CellGrid, Rows, count_cells
from privfit.schema import Category, Geometry, Schema, make_block

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ClassCounts(Mechanism[None, ReleasePlan, Integers, Floats]):
    """Noisy counts of classes.

    Of two classes one number is enough: the count of the second, or, where the number of rows is private, by how much
    it exceeds the first.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/histograms.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "Majority"
    many_classes = True

    def geometry(self, schema: Schema, problem: None = None, numeric: Numbers = "slope") -> Geometry:
        """The target alone."""
        assert isinstance(schema.target, Category)
        return Geometry((), False, make_block(schema.target, 0, whole=True))

    def plan(self, facts: PublicFacts, problem: None = None) -> ReleasePlan:
        """One noisy number for two classes, and one per class for more."""
        classes, parameters = CellGrid(facts.geometry).n_cells, facts.parameters
        event = Event.laplace(
            self.name,
            parameters.budget,
            sensitivity=2 if classes > 2 and parameters.adjacency == "replace-one" else 1,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            n_values=1 if classes == 2 else classes,
        )
        return ReleasePlan(event, facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> Integers:
        """How many rows each class has."""
        held = count_cells(rows)
        return np.array([held.get(place, 0) for place in range(CellGrid(rows.geometry).n_cells)], dtype=np.int64)

    def draw(self, data: Integers, plan: ReleasePlan, draws: Draws) -> Floats:
        """A noisy count for every class; of two classes, by how much each is ahead of the other."""
        if len(data) > 2:
            return draws.add(data).astype(np.float64)
        if plan.facts.parameters.adjacency == "replace-one":
            assert plan.facts.n_rows is not None
            ahead = 2 * float(draws.add(data[1:])[0]) - plan.facts.n_rows
        else:
            ahead = float(draws.add(data[1:] - data[:1])[0])
        return np.array([-ahead, ahead])

    def solve(self, release: Release[Floats], geometry: Geometry, problem: None) -> int:
        """The place of the largest class; of the first of several that are equally large."""
        return int(np.argmax(release.value))
