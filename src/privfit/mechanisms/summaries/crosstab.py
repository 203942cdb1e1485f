"""Counts of the cells of several columns together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.histograms.noisy_histogram import (
    MOST_LISTED_CELLS,
    along_columns,
    described_cells,
    histogram_event,
)
from privfit.privacy import Draws
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.schema import Geometry, Schema, SchemaError

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CrossCounts(Mechanism[None, ReleasePlan, Integers, Integers]):
    """A noisy count for every cell of a contingency table, as it is: not clipped, not made to add up.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "crosstab"

    def geometry(self, schema: Schema, problem: None, numeric: Numbers = "slope") -> Geometry:
        """The levels and bins of every column."""
        return cell_geometry(schema, cells=1)

    def plan(self, facts: PublicFacts, problem: None) -> ReleasePlan:
        """Noise on every cell; more cells than can be listed are refused."""
        grid = CellGrid(facts.geometry)
        if grid.n_cells > MOST_LISTED_CELLS:
            raise SchemaError(
                f"The columns have {described_cells(grid.n_cells)} cells together ({along_columns(grid)}); at most "
                f"{MOST_LISTED_CELLS:,} are counted. Give fewer columns, levels or bins. Nothing was charged."
            )
        return ReleasePlan(histogram_event(self.name, grid, facts.parameters), facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> Integers:
        """How many rows each cell has."""
        held, counts = count_cells(rows), np.zeros(CellGrid(rows.geometry).n_cells, dtype=np.int64)
        for cell, rows_there in held.items():
            counts[cell] = rows_there
        return counts

    def draw(self, data: Integers, plan: ReleasePlan, draws: Draws) -> Integers:
        """Noise on every count."""
        return draws.add_in_pieces(data)

    def solve(self, release: Release[Integers], geometry: Geometry, problem: None) -> tuple[Integers, float]:
        """The counts, one axis per column, and the scale of their noise."""
        return release.value.reshape(CellGrid(geometry).sizes), release.event.scale
