"""Filter-Priority: a sample of the cells of a noisy table that pass a threshold, without ever listing the empty ones.

Cormode, Procopiuc, Srivastava, Tran, Differentially Private Summaries for Sparse Data, ICDT 2012.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from privfit.mechanisms.release import Release, check_ledger
from privfit.models.inputs import Input
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.privacy.shapes import Source
from privfit.publish.histograms import CellTable, Counting, Cuts, HistogramPublisher, along_columns, histogram_event, is_whole, told_cells
from privfit.publish.passing import MOST_COUNT, laplace, lifted
from privfit.rows import Cells, Grid, Rows
from privfit.schema import Geometry, Schema, SchemaError

MOST_LIFTED = 10_000_000
MOST_SCALES = 1_000_000
MOST_CELL_BITS = 13_000
USUAL_SAMPLE, LEAST_SAMPLE, MOST_SAMPLE = 10_000, 1_000, 1_000_000
_PARTS = 1 << 53


@dataclass(frozen=True)
class FilteredSample:
    """Cells whose noisy count is at least a threshold; of these a priority sample, if they are more than `sample_size`. Both are public.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows: the law is that of noising every cell; docs/proofs/histograms.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    threshold: int | Literal["auto"] = "auto"
    sample_size: int | Literal["auto"] = "auto"

    name = "Filter-Priority"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        for name in ("threshold", "sample_size"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value == "auto") and not (is_whole(value) and value >= 1):
                raise PrivacyError(
                    f"{name}={value!r} was given to FilterPriority; it is a whole number of at least 1, chosen without looking at the rows, or 'auto'. "
                    "Use 'auto' if in doubt."
                )

    def settled(self, grid: Grid, scale: float, rows: int | None) -> tuple[int, int]:
        """The threshold and the size of the sample, from public facts alone.

        "auto" samples as many cells as there are rows, or ten thousand where that is not known; and lets no more empty cells pass, on average, than are sampled.
        """
        usual = USUAL_SAMPLE if rows is None else min(max(rows, LEAST_SAMPLE), MOST_SAMPLE)
        size = min(usual, grid.n_cells) if self.sample_size == "auto" else int(self.sample_size)
        if self.threshold != "auto":
            return int(self.threshold), size
        above = math.log(grid.n_cells) - math.log(size) - math.log1p(math.exp(-1 / scale))
        return max(1, math.ceil(scale * above)), size

    def check_grid(self, grid: Grid, terms: Terms, objective: Counting) -> None:
        """Refuse a threshold that lets too many empty cells pass."""
        scale = histogram_event(self.name, grid, terms).scale
        threshold, _ = self.settled(grid, scale, objective.rows)
        if grid.n_cells.bit_length() > MOST_CELL_BITS:
            raise SchemaError(
                f"The table has more than 2^{MOST_CELL_BITS} cells; FilterPriority takes no more. Use fewer columns or cells. Nothing was charged."
            )
        if threshold > min(MOST_SCALES * scale, MOST_COUNT):
            raise PrivacyError(
                f"FilterPriority has a threshold of {threshold}; it is at most a million times the scale of the noise, {scale:g}, and below 2^63. "
                "Use threshold='auto', and an epsilon that is neither tiny nor huge. Nothing was charged."
            )
        if math.log(grid.n_cells) - threshold / scale > math.log(MOST_LIFTED):
            raise PrivacyError(
                f"threshold={threshold} was given to FilterPriority, and the table has {told_cells(grid.n_cells)} cells ({along_columns(grid)}): more than {MOST_LIFTED:,} empty ones "
                "would pass by noise alone. Use a larger threshold, a smaller sample_size, or 'auto' for both. Nothing was charged."
            )

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Counting) -> Release[CellTable]:
        """Count rows in cells, charge the ledger, noise the cells with rows, find which others pass, and sample."""
        check_ledger(ledger, noise)
        cells = Cells(rows)
        self.check_grid(cells.grid, terms, objective)
        event = histogram_event(self.name, cells.grid, terms)
        threshold, size = self.settled(cells.grid, event.scale, objective.rows)  # public facts only up to here
        if ledger is not None:
            ledger.check(event)
        held = cells.read()
        draws = min(cells.n_rows, cells.grid.n_cells) if terms.adjacency == "replace-one" else len(held)
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        passed = filtered(held, cells.grid.n_cells, threshold, event.scale, noise, draws)
        return Release(priority_sample(passed, size, cast(Source, noise)), event, noise.private)

    def solve(self, release: Release[CellTable], geometry: Geometry, objective: Counting) -> CellTable:
        """Nothing is left to do."""
        return release.value


def filtered(counts: Mapping[int, int], n_cells: int, threshold: int, scale: float, noise: Noise, draws: int = 0) -> CellTable:
    """All cells whose noisy count is at least the threshold, and that count. `counts` are those of cells that are not empty.

    Empty cells are not noised: which of all cells would pass if they were empty is drawn at once, and cells that are not empty take no notice. At least `draws` numbers are drawn for
    the others, so that how many there are does not show where `draws` is public.

    Guarantee: the law of noising every cell, exactly; docs/proofs/histograms.md, Theorem 2.
    """
    values = np.zeros(max(draws, len(counts)), dtype=np.int64)
    values[: len(counts)] = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    noisy = laplace(noise, values, scale).tolist()
    passed = {cell: value for cell, value in lifted(n_cells, threshold, scale, noise).items() if cell not in counts}
    passed |= {cell: value for cell, value in zip(counts, noisy, strict=False) if value >= threshold}
    order = sorted(passed)  # by number: the order in which they were found would tell which were empty
    return CellTable(order, np.array([passed[cell] for cell in order], dtype=np.float64))


def priority_sample(table: CellTable, size: int, source: Source) -> CellTable:
    """A priority sample of so many cells: those with the largest weight / u, u uniform; with weights that sum to the table's on average (Duffield, Lund, Thorup, JACM 2007).

    It sees noisy cells only, so that it costs nothing: docs/proofs/histograms.md, Theorem 2.
    """
    if len(table.cells) <= size:
        return table
    uniform = (source.below(np.full(len(table.cells), _PARTS, dtype=np.int64)) + 1) / _PARTS
    priority = table.weights / uniform
    order = np.argsort(-priority, kind="stable")
    kept = np.sort(order[:size])
    return CellTable([table.cells[place] for place in kept], np.maximum(table.weights[kept], priority[order[size]]))


class FilterPriority(HistogramPublisher):
    """Publish a private table as a sample of its noisy cells: Filter-Priority (Cormode, Procopiuc, Srivastava, Tran, 2012), a baseline.

    Cells and their counts are as for DPME. Of the noisy counts only those of at least a threshold are kept, and if they are many, a priority sample of them. Empty cells are never
    listed, so a table may have 10^12 cells and more; what comes out has the same law as if each had been noised.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier. All noise needs epsilon alone; a `delta` is not spent.
    schema : the public facts about the table. A target, if there is one, is a column like the others. Columns with bins of their own keep those.
    cells : how many cells a number has; "auto" is Lei's rule, as for DPME.
    threshold : the least noisy count that is kept. "auto" takes the smallest that lets no more empty cells pass, on average, than are sampled.
    sample_size : the most cells that are published. "auto" is the number of rows, or `expected_rows`, or ten thousand.
    adjacency : "replace-one" (the number of rows is public) or "add-remove" (it is private; `expected_rows`, a public guess, then steers what depends on it).
    rows_per_person, expected_rows, ledger, random_state : as in LogisticRegression.

    Threshold and sample size are public: chosen by looking at the rows they would tell about them.

    Attributes
    ----------
    columns_ : the centres of cells, one array per column of the schema, by name; in the order of cells, which tells nothing.
    weights_ : their noisy counts, raised for those that stand for others in the sample.
    cells_ : how many cells a number without bins has.
    threshold_, sample_size_ : as used.
    report_, schema_ : as in LogisticRegression.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/histograms.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.repeat([[0.5] * 12, [-0.5] * 12], 1000, axis=0)
    >>> table = pf.baselines.FilterPriority(epsilon=1.0, schema=pf.Schema.box(-1, 1), cells=10, sample_size=100).fit(rows)  # 10^12 cells
    >>> sorted(float(table.columns_["x0"][place]) for place in np.argsort(-table.weights_)[:2])
    [-0.5, 0.5]
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        cells: Cuts = "auto",
        threshold: int | Literal["auto"] = "auto",
        sample_size: int | Literal["auto"] = "auto",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.cells = cells
        self.threshold = threshold
        self.sample_size = sample_size
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> FilteredSample:
        mechanism = FilteredSample(self.threshold, self.sample_size)
        mechanism.check()
        return mechanism

    def _encoded(self, mechanism: Any, given: Input, terms: Terms) -> tuple[Counting, Geometry]:
        objective, geometry = super()._encoded(mechanism, given, terms)
        grid = Grid(geometry)
        self.threshold_, self.sample_size_ = mechanism.settled(grid, histogram_event(mechanism.name, grid, terms).scale, objective.rows)
        return objective, geometry

    def _described(self, mechanism: Any, fit: CellTable) -> tuple[dict[str, Any], list[str]]:
        repairs, notes = super()._described(mechanism, fit)
        return repairs, [*notes, f"cells with noisy counts of at least {self.threshold_}, at most {self.sample_size_:,} of them"]
