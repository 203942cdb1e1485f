"""Columns that go with a target, selected privately: one pass, counts of pairs of levels, k choices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.summaries.questions import Share
from privfit.privacy import Draws, Event, PrivacyError, exact
from privfit.privacy.parts import Laplace, Part, Selection
from privfit.rows import Rows, count_paired_levels
from privfit.schema import Block, Column, Geometry, Numeric, Schema, make_block
from privfit.schema.edges import equal_edges, log_edges
from privfit.statistics.associations import association_scores, association_sensitivity, class_shares

Integers = NDArray[np.int64]

CELLS = 16
"""Cells of a number without bins of its own: more follow a curve better, and add sampling error. `python
papers/experiments/column_selection.py` compares 8, 16 and 32."""
TARGET_CELLS = 256
"""Cells among whose edges a number as target is cut in two. No command varies it."""
CUT_SHARE = Fraction(1, 20)
"""The part of epsilon for the cut of a number: the choices take what is left. No command varies it."""
CLASS_SHARE = Fraction(1, 10)
"""The part of epsilon for the counts of classes, which scores are measured against. No command varies it."""


@dataclass(frozen=True)
class ColumnChoice:
    """How many columns are selected."""

    k: int


@dataclass(frozen=True)
class ColumnPlan(ReleasePlan):
    """How many columns are selected, and whether the target is a number, which is cut in two."""

    k: int
    cuts: bool


@dataclass(frozen=True)
class ColumnSelection(Mechanism[ColumnChoice, ColumnPlan, list[Integers], tuple[int, ...]]):
    """The k columns that go with the target most, by k private choices, one after the other.

    A column's score is the distance between its table with the target and independence, in rows. A number as target is
    cut in two near its median, privately.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/column-selection.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "column selection"
    many_classes = True

    def geometry(self, schema: Schema, problem: ColumnChoice, numeric: Numbers = "slope") -> Geometry:
        """Every column as levels: a number by its own bins, or by cells between its bounds."""
        if schema.target is None:
            raise PrivacyError(
                "Columns are selected by how they go with a target, and the schema has none. Give one: "
                "pf.Schema(features, target=...). Nothing was charged."
            )
        blocks: list[Block] = []
        for column in schema.features:
            blocks.append(_as_levels(column, CELLS, blocks[-1].stop if blocks else 0))
        return Geometry(tuple(blocks), False, _as_levels(schema.target, TARGET_CELLS, blocks[-1].stop))

    def plan(self, facts: PublicFacts, problem: ColumnChoice) -> ColumnPlan:
        """The cut of a number, counts of classes, and the choices."""
        geometry, parameters = facts.geometry, facts.parameters
        assert geometry.target is not None
        if problem.k > len(geometry.blocks):
            raise PrivacyError(
                f"k={problem.k} columns were asked for, and there are {len(geometry.blocks)}. Ask for at most as many. "
                "Nothing was charged."
            )
        people, cuts = int(parameters.rows_per_person), isinstance(geometry.target.column, Numeric)
        whole = Share(exact(parameters.budget.epsilon), parameters.adjacency, people, facts.n_rows or 1)
        shares = [CUT_SHARE if cuts else Fraction(0), CLASS_SHARE]
        left = 1 - sum(shares, Fraction(0))
        parts: list[Part] = []
        if cuts:
            rank = 4 if parameters.adjacency == "replace-one" else 2
            parts.append(_choices("cut of the target", 1, rank, whole, shares[0]))
        parts.append(self._counts(2 if cuts else len(geometry.target.labels), whole, shares[1]))
        parts.append(_choices("release", problem.k, association_sensitivity(parameters.adjacency), whole, left))
        event = Event(
            self.name,
            parameters.budget.epsilon,
            adjacency=parameters.adjacency,
            rows_per_person=people,
            parts=tuple(parts),
        )
        return ColumnPlan(event, facts, problem.k, cuts)

    def read(self, rows: Rows, plan: ColumnPlan, problem: ColumnChoice, draws: Draws) -> list[Integers]:
        """For every column a table of counts, its levels by those of the target."""
        return count_paired_levels(rows)

    def draw(self, data: list[Integers], plan: ColumnPlan, draws: Draws) -> tuple[int, ...]:
        """The places of the columns, in the order in which they were chosen."""
        if plan.cuts:
            data = _cut(data, draws)
        noisy = draws.add(data[0].sum(axis=0))
        rows = int(np.maximum(noisy, 0).sum())
        scores = association_scores(data, class_shares(noisy), rows)
        left, chosen = list(range(len(data))), []
        for _ in range(plan.k):
            chosen.append(left.pop(draws.select([scores[place] for place in left])))
        return tuple(chosen)

    def _counts(self, classes: int, share: Share, part: Fraction) -> Laplace:
        sensitivity = 2 if share.adjacency == "replace-one" else 1
        return share.laplace(classes, sensitivity, part=part, purpose="counts of classes")


def _as_levels(column: Column, cells: int, start: int) -> Block:
    """A block of levels; a wide range is divided on its logarithmic scale."""
    if not isinstance(column, Numeric) or column.bins is not None:
        return make_block(column, start, whole=True)
    edges = (log_edges if column.is_wide else equal_edges)(column.low, column.high, cells)
    return make_block(replace(column, bins=edges) if edges else column, start, bins=cells, whole=True)


def _choices(purpose: str, count: int, sensitivity: int, share: Share, part: Fraction) -> Selection:
    """So many choices, each with an equal part of what they spend together."""
    return Selection(
        rule="permute-and-flip",
        count=count,
        scale=share.scale(sensitivity, part / count),
        sensitivity=sensitivity * share.rows_per_person,
        purpose=purpose,
        epsilon=float(share.epsilon * part),
    )


def _cut(tables: list[Integers], draws: Draws) -> list[Integers]:
    """The tables with a target of two levels: below and above a cell's edge near the median."""
    below = np.cumsum(tables[0].sum(axis=0))
    rows = int(below[-1])
    place = draws.select([-abs(2 * int(count) - rows) for count in below[:-1]])
    return [np.column_stack([table[:, : place + 1].sum(axis=1), table[:, place + 1 :].sum(axis=1)]) for table in tables]
