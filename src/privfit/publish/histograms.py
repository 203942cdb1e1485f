"""Noisy contingency tables, published as weighted rows at the centres of cells.

DPME noises every cell: Lei, Differentially Private M-Estimators, NIPS 2011. Filter-Priority (filter_priority.py) never lists the empty ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.release import Release, check_ledger
from privfit.models.inputs import Input
from privfit.privacy import Event, Ledger, Noise, PrivacyError, Terms
from privfit.publish.passing import laplace
from privfit.publish.publisher import Publisher, refuse_weight
from privfit.rows import Cells, Grid, Rows, cell_geometry, count_rows
from privfit.schema import Geometry, Numeric, Schema, SchemaError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cuts = int | Literal["auto"]

MOST_CELLS = 10_000_000
MOST_ALONG = 1 << 20


def cells_per_axis(n_rows: int, n_columns: int) -> int:
    """Lei's rule: the number of cells along a number, for so many rows and columns (the target is one). Its side shrinks at the best rate; there are at least 2.

    >>> cells_per_axis(50_000, 5)
    15
    """
    if n_rows < 2:
        return 2
    rate: float = (n_rows / math.sqrt(math.log(n_rows))) ** (2 / (2 + n_columns))
    return max(2, math.floor(rate))


@dataclass(frozen=True)
class Counting:
    """Public facts about what is counted: how many cells a number has, and the number of rows, or a guess of it, as far as it is public."""

    cells: int
    rows: int | None


@dataclass(frozen=True)
class CellTable:
    """Cells by their numbers, rising, and what they weigh."""

    cells: list[int]
    weights: Floats


def histogram_event(name: str, grid: Grid, terms: Terms) -> Event:
    """The price of the noisy counts of all cells, from public facts alone: a row that comes or goes moves one count by one, a row that is replaced moves two.

    Guarantee: epsilon-DP with noise on every cell, replace-one or add-remove; docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """
    return Event.laplace(
        name,
        terms.budget,
        sensitivity=2 if terms.adjacency == "replace-one" else 1,
        adjacency=terms.adjacency,
        rows_per_person=int(terms.rows_per_person),
        n_values=grid.n_cells,
    )


# -- every cell ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyHistogram:
    """Laplace noise on the count of every cell; then cells with positive counts, or, `signed`, all cells whose count is not zero.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    signed: bool = False

    name = "DPME"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.signed, bool | np.bool_):
            raise PrivacyError(
                f"signed={self.signed!r} was given to DPME; it is True or False. Leave it out for weights that are positive."
            )

    def check_grid(self, grid: Grid, terms: Terms, objective: Counting) -> None:
        """Refuse more cells than can be listed."""
        if grid.n_cells > MOST_CELLS:
            raise SchemaError(
                f"The table has {told_cells(grid.n_cells)} cells ({along_columns(grid)}), and DPME noises every one of them: it takes at most {MOST_CELLS:,}. "
                "Use fewer columns, join levels, give fewer cells=... or bins, or use FilterPriority, which never lists the empty ones. Nothing was charged."
            )

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Counting) -> Release[CellTable]:
        """Count rows in cells, charge the ledger, then add noise to every cell."""
        check_ledger(ledger, noise)
        cells = Cells(rows)
        event = histogram_event(self.name, cells.grid, terms)  # public facts only up to here
        if ledger is not None:
            ledger.check(event)
        held = cells.read()
        counts = np.zeros(cells.grid.n_cells, dtype=np.int64)
        counts[np.fromiter(held.keys(), dtype=np.int64, count=len(held))] = np.fromiter(held.values(), dtype=np.int64, count=len(held))
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        noisy = laplace(noise, counts, event.scale)
        kept = np.flatnonzero(noisy if self.signed else noisy > 0)
        return Release(CellTable(kept.tolist(), noisy[kept].astype(np.float64)), event, noise.private)

    def solve(self, release: Release[CellTable], geometry: Geometry, objective: Counting) -> CellTable:
        """Nothing is left to do."""
        return release.value


# -- estimators ------------------------------------------------------------------------------------------------------------


class HistogramPublisher(Publisher):
    """What both share: how numbers are cut, and rows at the centres of cells."""

    def _encoded(self, mechanism: Any, given: Input, terms: Terms) -> tuple[Counting, Geometry]:
        rows = count_rows(given.table, given.schema) if terms.adjacency == "replace-one" else None
        rows = terms.expected_rows if rows is None else rows
        objective = Counting(self._cut(given.schema, rows), rows)
        geometry = cell_geometry(given.schema, objective.cells)
        refuse_weight([column.name for column in given.schema.columns])
        mechanism.check_grid(Grid(geometry), terms, objective)
        self.cells_ = objective.cells
        return objective, geometry

    def _cut(self, schema: Schema, rows: int | None) -> int:
        """How many cells numbers without bins have."""
        if is_whole(self.cells) and 2 <= self.cells <= MOST_ALONG:
            return int(self.cells)
        if not (isinstance(self.cells, str) and self.cells == "auto"):
            raise PrivacyError(
                f"cells={self.cells!r} was given to {type(self).__name__}; it is a whole number of cells along every number, from 2 to {MOST_ALONG}, or 'auto'. "
                "Columns with bins of their own keep those."
            )
        if not any(isinstance(column, Numeric) and column.bins is None for column in schema.columns):
            return 2
        if rows is None:
            raise PrivacyError(
                f"{type(self).__name__} was given cells='auto', which needs the number of rows, and that is not known beforehand or not public here. "
                "Give a public guess, expected_rows=..., or cells=.... Nothing was charged."
            )
        return min(cells_per_axis(rows, len(schema.columns)), MOST_ALONG)

    def _keep(self, fit: CellTable, mechanism: Any) -> None:
        self.columns_ = Grid(self._geometry).columns(fit.cells)
        self.weights_ = fit.weights

    def _described(self, mechanism: Any, fit: CellTable) -> tuple[dict[str, Any], list[str]]:
        grid = Grid(self._geometry)
        return {}, [f"{told_cells(grid.n_cells)} cells ({along_columns(grid)}), {len(fit.cells):,} of them published"]


class DPME(HistogramPublisher):
    """Publish a private table as a noisy histogram: differentially private M-estimators (Lei, 2011), a baseline.

    The bounds of numbers are cut into equal cells, categories have one cell per level, and every cell's count gets noise. What comes out is one row per cell, at its centre, weighed by its noisy
    count: any model that takes weights can be trained on it. The number of cells grows quickly with columns, and noise with it.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier. All noise needs epsilon alone; a `delta` is not spent.
    schema : the public facts about the table. A target, if there is one, is a column like the others. Columns with bins of their own keep those.
    cells : how many cells a number has; "auto" is Lei's rule, (n / sqrt(log n))^(2 / (2 + columns)), at least 2, n the number of rows, or `expected_rows`.
    signed : keep negative counts as negative weights. They average to the truth, but few models take them. By default negative counts are left out.
    adjacency : "replace-one" (the number of rows is public) or "add-remove" (it is private; cells="auto" then needs `expected_rows`, a public guess). Noise is half as large for the latter.
    rows_per_person, expected_rows, ledger, random_state : as in LogisticRegression.

    Attributes
    ----------
    columns_ : the centres of cells, one array per column of the schema, by name.
    weights_ : their noisy counts.
    cells_ : how many cells a number without bins has.
    report_, schema_ : as in LogisticRegression.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> table = pf.baselines.DPME(epsilon=1.0, schema=pf.Schema.box(-1, 1), cells=4).fit(rows)
    >>> [float(centre) for centre in table.columns_["x0"]]
    [-0.75, -0.25, 0.25, 0.75]
    >>> bool(abs(table.weights_.sum() - 10_000) < 200)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        cells: Cuts = "auto",
        signed: bool = False,
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
        self.signed = signed
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> NoisyHistogram:
        mechanism = NoisyHistogram(self.signed)
        mechanism.check()
        return mechanism


def is_whole(value: object) -> bool:
    """Whether this is a whole number."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def told_cells(cells: int) -> str:
    return f"{cells:,}" if cells < 10**12 else f"about 10^{math.log10(cells):.1f}"


def along_columns(grid: Grid) -> str:
    """How many cells columns have, the longest first."""
    sizes = sorted(((len(block.labels), block.column.name) for block in grid.blocks), reverse=True)
    told = ", ".join(f"{size} of {name!r}" for size, name in sizes[:3])
    return told if len(sizes) <= 3 else f"{told}, ..."
