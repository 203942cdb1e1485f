"""Filter-Priority: a sample of the cells of a noisy table that pass a threshold, without ever listing the empty ones.

Cormode, Procopiuc, Srivastava, Tran, Differentially Private Summaries for Sparse Data, ICDT 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.histograms.noisy_histogram import (
    CellTable,
    Counting,
    along_columns,
    count_sensitivity,
    described_cells,
)
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import RandomBits, Threshold
from privfit.privacy.samplers.norms import Source
from privfit.privacy.samplers.threshold import MOST_COUNT
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.schema import Geometry, Schema, SchemaError

MOST_LIFTED = 10_000_000
"""The most empty cells that may pass by noise alone, on average: listing them takes about 1 GB."""
MOST_SCALES = 1_000_000
"""The largest threshold, in scales of the noise: exp(-threshold / scale) is then computed to enough digits."""
MOST_CELL_BITS = 13_000
"""The number of cells is written to ledgers in decimal, and Python reads numbers of up to 4,300 digits."""
USUAL_SAMPLE, LEAST_SAMPLE, MOST_SAMPLE = 10_000, 1_000, 1_000_000
"""Published cells: as many as rows, within limits; the first where the number of rows is private. Not measured."""
_UNIFORM_STEPS = 1 << 53
"""Floats hold integers up to this exactly: priorities are multiples of 2^-53."""


@dataclass(frozen=True)
class FilterPlan(ReleasePlan):
    """The noise and the threshold are those of the event; at most `sample_size` cells are published."""

    part: Threshold
    sample_size: int


@dataclass(frozen=True)
class CellCounts:
    """Counts of the cells that are not empty, by number; `n_draws` numbers at least are drawn for them."""

    counts: dict[int, int]
    n_draws: int


@dataclass(frozen=True)
class SampledCells(CellTable):
    """The cells that are published, and what they were chosen by."""

    threshold: int
    sample_size: int


@dataclass(frozen=True)
class FilteredSample(Mechanism[Counting, FilterPlan, CellCounts, SampledCells]):
    """Cells whose noisy count is at least a threshold; of these a priority sample, if they are more than `sample_size`.

    Both are public.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows: the law is that
    of noising every cell; docs/proofs/histograms.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    threshold: int | Literal["auto"] = "auto"
    sample_size: int | Literal["auto"] = "auto"

    name = "Filter-Priority"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        for name in ("threshold", "sample_size"):
            value = getattr(self, name)
            whole = hasattr(value, "__index__") and not isinstance(value, bool) and value >= 1
            if not (isinstance(value, str) and value == "auto") and not whole:
                raise PrivacyError(
                    f"{name}={value!r} was given to FilterPriority; it is an integer of at least 1, chosen without "
                    "looking at the rows, or 'auto'. "
                    "Use 'auto' if in doubt."
                )

    def geometry(self, schema: Schema, problem: Counting, numeric: Numbers = "slope") -> Geometry:
        """The cells of every column."""
        return cell_geometry(schema, problem.cells)

    # -- the plan ----------------------------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: Counting) -> FilterPlan:
        """The noise, the threshold and the size of the sample; what lets too many empty cells pass is refused."""
        grid, parameters = CellGrid(facts.geometry), facts.parameters
        sensitivity, scale = cell_noise(parameters)
        threshold, size = self.settled(grid.n_cells, scale, problem.rows)
        _check_threshold(grid, threshold, scale)
        epsilon = parameters.budget.epsilon
        part = Threshold(size=grid.n_cells, scale=scale, threshold=threshold, sensitivity=sensitivity, epsilon=epsilon)
        event = Event(
            self.name,
            epsilon,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            parts=(part, RandomBits(purpose="priority sample")),
        )
        return FilterPlan(event, facts, part, size)

    def settled(self, n_cells: int, scale: float, rows: int | None) -> tuple[int, int]:
        """The threshold and the size of the sample, from public facts alone.

        "auto" samples as many cells as there are rows, or ten thousand where that is not known; and lets no more empty
        cells pass, on average, than are sampled.
        """
        usual = USUAL_SAMPLE if rows is None else min(max(rows, LEAST_SAMPLE), MOST_SAMPLE)
        size = min(usual, n_cells) if self.sample_size == "auto" else int(self.sample_size)
        if self.threshold != "auto":
            return int(self.threshold), size
        above = math.log(n_cells) - math.log(size) - math.log1p(math.exp(-1 / scale))
        return max(1, math.ceil(scale * above)), size

    # -- the release -------------------------------------------------------------------------------

    def read(self, rows: Rows, plan: FilterPlan, problem: Counting, draws: Draws) -> CellCounts:
        """How many rows each cell has that is not empty. Where the number of rows is public, as many numbers are drawn
        as cells could have rows: then their number does not show.
        """
        counts = count_cells(rows)
        public = plan.facts.parameters.adjacency == "replace-one"
        return CellCounts(counts, min(rows.n_rows, CellGrid(rows.geometry).n_cells) if public else len(counts))

    def draw(self, data: CellCounts, plan: FilterPlan, draws: Draws) -> SampledCells:
        """Noise on the cells with rows, which others pass, and a sample."""
        passed = filtered(data, plan.part.threshold, draws)
        sample = priority_sample(passed, plan.sample_size, draws.random_integers())
        return SampledCells(sample.cells, sample.weights, plan.part.threshold, plan.sample_size)


def cell_noise(parameters: PrivacyParameters) -> tuple[int, float]:
    """How far a person can change the counts of all cells, and the scale of the noise on each."""
    sensitivity = count_sensitivity(parameters) * int(parameters.rows_per_person)
    return sensitivity, laplace_scale(sensitivity, parameters.budget.exact)


def filtered(data: CellCounts, threshold: int, draws: Draws) -> CellTable:
    """All cells whose noisy count is at least the threshold, and that count.

    Empty cells are not noised: which of all cells would pass if they were empty is drawn at once, and cells that are
    not empty take no notice.

    Guarantee: the law of noising every cell, exactly; docs/proofs/histograms.md, Theorem 2.
    """
    counts = data.counts
    noisy, lifted = draws.passing(list(counts.values()), data.n_draws)
    passed = {cell: value for cell, value in lifted.items() if cell not in counts}
    passed |= {cell: value for cell, value in zip(counts, noisy, strict=False) if value >= threshold}
    order = sorted(passed)  # by number: the order in which they were found would reveal which were empty
    return CellTable(order, np.array([passed[cell] for cell in order], dtype=np.float64))


def priority_sample(table: CellTable, size: int, source: Source) -> CellTable:
    """A priority sample of so many cells: those with the largest weight / u, u uniform; with weights that sum to the
    table's on average (Duffield, Lund, Thorup, JACM 2007).

    It sees noisy cells only, so that it costs nothing: docs/proofs/histograms.md, Theorem 2.
    """
    if len(table.cells) <= size:
        return table
    uniform = (source.below(np.full(len(table.cells), _UNIFORM_STEPS, dtype=np.int64)) + 1) / _UNIFORM_STEPS
    priority = table.weights / uniform
    order = np.argsort(-priority, kind="stable")
    kept = np.sort(order[:size])
    return CellTable([table.cells[place] for place in kept], np.maximum(table.weights[kept], priority[order[size]]))


def _check_threshold(grid: CellGrid, threshold: int, scale: float) -> None:
    """Refuse a threshold that lets too many empty cells pass, or that cannot be compared with exactly."""
    if grid.n_cells.bit_length() > MOST_CELL_BITS:
        raise SchemaError(
            f"The table has more than 2^{MOST_CELL_BITS} cells; FilterPriority takes no more. Use fewer columns or "
            "cells. Nothing was charged."
        )
    if threshold > min(MOST_SCALES * scale, MOST_COUNT):
        raise PrivacyError(
            f"FilterPriority has a threshold of {threshold}; it is at most a million times the scale of the noise, "
            f"{scale:g}, and below 2^63. "
            "Use threshold='auto', and an epsilon that is neither tiny nor huge. Nothing was charged."
        )
    if math.log(grid.n_cells) - threshold / scale > math.log(MOST_LIFTED):
        raise PrivacyError(
            f"threshold={threshold} was given to FilterPriority, and the table has {described_cells(grid.n_cells)} "
            f"cells ({along_columns(grid)}): more than {MOST_LIFTED:,} empty ones "
            "would pass by noise alone. Use a larger threshold, a smaller sample_size, or 'auto' for both. Nothing "
            "was charged."
        )
