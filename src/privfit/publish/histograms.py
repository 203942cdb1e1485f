"""Noisy contingency tables, published as weighted rows at the centres of cells.

DPME noises every cell: Lei, Differentially Private M-Estimators, NIPS 2011. Filter-Priority (filter_priority.py) never
lists the empty ones.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, TypeVar

from privfit.mechanisms.base import Description
from privfit.mechanisms.histograms.noisy_histogram import (
    CellTable,
    Counting,
    NoisyHistogram,
    along_columns,
    described_cells,
)
from privfit.models._docs import documented
from privfit.models.inputs import Input
from privfit.models.left_out import public_rows
from privfit.models.private import FitResult, MechanismT
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.publish.publisher import Publisher, refuse_weight
from privfit.rows import CellGrid
from privfit.schema import Geometry, Numeric, Schema

Cuts = int | Literal["auto"]
CellTableT = TypeVar("CellTableT", bound=CellTable)

MOST_ALONG = 1 << 20
"""The most cells along one column: edges and labels of more take seconds to make."""


def cells_per_axis(n_rows: int, n_columns: int) -> int:
    """Return Lei's number of cells of a numeric column.

    The side of a cell shrinks at the optimal rate; there are at least 2 cells.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_columns : int
        Number of columns; the target is one of them.

    Returns
    -------
    int
        Cells per column.

    See Also
    --------
    DPME : Uses it for cells="auto".

    References
    ----------
    .. [1] J. Lei, "Differentially private M-estimators", NIPS 2011.

    Examples
    --------
    >>> from privfit.baselines import cells_per_axis
    >>> cells_per_axis(50_000, 5)
    15
    """
    if n_rows < 2:
        return 2
    rate: float = (n_rows / math.sqrt(math.log(n_rows))) ** (2 / (2 + n_columns))
    return max(2, math.floor(rate))


class HistogramPublisher(Publisher[MechanismT, Counting, CellTableT]):
    """What both share: how numbers are cut, and rows at the centres of cells.

    Parameters
    ----------
    delta : float
        Not needed and not spent: all noise here needs epsilon alone.

    Attributes
    ----------
    columns_ : dict of str to ndarray
        The centres of the cells, one array per column of the schema, by name.
    weights_ : ndarray of shape (n_published,)
        Their noisy counts.
    cells_ : int
        Number of cells of a numeric column without bins.
    """

    def _encoded(self, mechanism: MechanismT, given: Input, parameters: PrivacyParameters) -> tuple[Counting, Geometry]:
        rows = public_rows(given, parameters)
        problem = Counting(self._cut(given.schema, rows), rows)
        refuse_weight([column.name for column in given.schema.columns])
        self.cells_ = problem.cells
        return problem, mechanism.geometry(given.schema, problem)

    def _cut(self, schema: Schema, rows: int | None) -> int:
        """How many cells numbers without bins have."""
        whole = hasattr(self.cells, "__index__") and not isinstance(self.cells, bool)
        if whole and 2 <= int(self.cells) <= MOST_ALONG:
            return int(self.cells)
        if not (isinstance(self.cells, str) and self.cells == "auto"):
            raise PrivacyError(
                f"cells={self.cells!r} was given to {type(self).__name__}; it is an integer number of cells along "
                f"every number, from 2 to {MOST_ALONG}, or 'auto'. "
                "Columns with bins of their own keep those."
            )
        if not any(isinstance(column, Numeric) and column.bins is None for column in schema.columns):
            return 2
        if rows is None:
            raise PrivacyError(
                f"{type(self).__name__} was given cells='auto', which needs the number of rows, and that is not public "
                "here. Give a public guess, expected_rows=..., or cells=.... Nothing was charged."
            )
        return min(cells_per_axis(rows, len(schema.columns)), MOST_ALONG)

    def _keep(self, result: FitResult[MechanismT, Counting, CellTableT]) -> None:
        """The centres of the cells that are published, and their weights."""
        self.columns_ = CellGrid(self._geometry).columns(result.fit.cells)
        self.weights_ = result.fit.weights

    def _described(self, result: FitResult[MechanismT, Counting, CellTableT]) -> Description:
        """How many cells there are, and how many are published."""
        grid, published = CellGrid(self._geometry), len(result.fit.cells)
        return Description(
            notes=(f"{described_cells(grid.n_cells)} cells ({along_columns(grid)}), {published:,} of them published",)
        )


@documented
class DPME(HistogramPublisher[NoisyHistogram, CellTable]):
    """Publish a private table as a noisy histogram, a baseline (Lei, 2011).

    Differentially private M-estimators: the bounds of numbers are cut into equal cells, categories have one cell per
    level, and noise is added to the count of every cell. The result is one row per cell, at its centre, weighted by its
    noisy count: any model that takes weights can be trained on it. The number of cells grows quickly with the number of
    columns, and the noise with it.

    Parameters
    ----------
    cells : int or 'auto'
        Number of cells of a numeric column. "auto" is Lei's rule, (n / sqrt(log n))^(2 / (2 + columns)), at least 2, n
        being the number of rows or `expected_rows`. Columns with bins of their own keep those.
    signed : bool
        Whether to keep negative counts as negative weights. They are unbiased, but few models take them. By default
        cells with negative counts are left out.

    See Also
    --------
    FilterPriority : The same for far more cells.
    LaplacePublisher : Sampler on every value.
    cells_per_axis : Lei's rule.

    Notes
    -----
    A target in the schema is a column like the others. Under "replace-one" the noise is twice as large as under
    "add-remove"; under the latter cells="auto" needs `expected_rows`.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/histograms.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Lei, "Differentially private M-estimators", NIPS 2011.

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
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
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
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> NoisyHistogram:
        mechanism = NoisyHistogram(self.signed)
        mechanism.check()
        return mechanism
