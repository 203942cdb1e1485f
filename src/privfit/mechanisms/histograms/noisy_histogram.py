"""The counts of all cells of a contingency table, each with noise.

Lei, Differentially Private M-Estimators, NIPS 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.schema import Geometry, Schema, SchemaError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_LISTED_CELLS = 10_000_000
"""The most cells that are listed: their counts and noise take about 1 GB."""


@dataclass(frozen=True)
class Counting:
    """Public facts about what is counted: how many cells a number has, and the number of rows, or a guess of it, as far
    as it is public.
    """

    cells: int
    rows: int | None


@dataclass(frozen=True)
class CellTable:
    """Cells by their numbers, rising, and what they weigh."""

    cells: list[int]
    weights: Floats


def count_sensitivity(parameters: PrivacyParameters) -> int:
    """How far one row can change the counts of all cells together: a row that comes or goes changes one count by one, a
    row that is replaced changes two.
    """
    return 2 if parameters.adjacency == "replace-one" else 1


def histogram_event(name: str, grid: CellGrid, parameters: PrivacyParameters) -> Event:
    """The noise on the counts of all cells, and its price, from public facts alone.

    Guarantee: epsilon-DP with noise on every cell, replace-one or add-remove; docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """
    return Event.laplace(
        name,
        parameters.budget,
        sensitivity=count_sensitivity(parameters),
        adjacency=parameters.adjacency,
        rows_per_person=int(parameters.rows_per_person),
        n_values=grid.n_cells,
    )


@dataclass(frozen=True)
class NoisyHistogram(Mechanism[Counting, ReleasePlan, Integers, CellTable]):
    """Laplace noise on the count of every cell; then cells with positive counts, or, `signed`, all cells whose count is
    not zero.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    signed: bool = False

    name = "DPME"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.signed, bool | np.bool_):
            raise PrivacyError(
                f"signed={self.signed!r} was given to DPME; it is True or False. Leave it out for weights that are "
                "positive."
            )

    def geometry(self, schema: Schema, problem: Counting, numeric: Numbers = "slope") -> Geometry:
        """The cells of every column."""
        return cell_geometry(schema, problem.cells)

    def plan(self, facts: PublicFacts, problem: Counting) -> ReleasePlan:
        """Noise on every cell; more cells than can be listed are refused."""
        grid = CellGrid(facts.geometry)
        if grid.n_cells > MOST_LISTED_CELLS:
            raise SchemaError(
                f"The table has {described_cells(grid.n_cells)} cells ({along_columns(grid)}), and DPME noises every "
                f"one of them: it takes at most {MOST_LISTED_CELLS:,}. "
                "Use fewer columns, join levels, give fewer cells=... or bins, or use FilterPriority, which never "
                "lists the empty ones. Nothing was charged."
            )
        return ReleasePlan(histogram_event(self.name, grid, facts.parameters), facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: Counting, draws: Draws) -> Integers:
        """How many rows each cell has."""
        held = count_cells(rows)
        counts = np.zeros(CellGrid(rows.geometry).n_cells, dtype=np.int64)
        counts[np.fromiter(held.keys(), dtype=np.int64, count=len(held))] = np.fromiter(
            held.values(), dtype=np.int64, count=len(held)
        )
        return counts

    def draw(self, data: Integers, plan: ReleasePlan, draws: Draws) -> CellTable:
        """Noise on every count, then the cells that are left."""
        noisy = draws.add_in_pieces(data)
        kept = np.flatnonzero(noisy if self.signed else noisy > 0)
        return CellTable(kept.tolist(), noisy[kept].astype(np.float64))


def described_cells(cells: int) -> str:
    """So many cells, in words."""
    return f"{cells:,}" if cells < 10**12 else f"about 10^{math.log10(cells):.1f}"


def along_columns(grid: CellGrid) -> str:
    """How many cells columns have, the longest first."""
    sizes = sorted(((len(block.labels), block.column.name) for block in grid.blocks), reverse=True)
    told = ", ".join(f"{size} of {name!r}" for size, name in sizes[:3])
    return told if len(sizes) <= 3 else f"{told}, ..."
