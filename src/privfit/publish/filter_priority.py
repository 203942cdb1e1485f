"""Filter-Priority: a sample of the cells of a noisy table that pass a threshold, without ever listing the empty ones.

Cormode, Procopiuc, Srivastava, Tran, Differentially Private Summaries for Sparse Data, ICDT 2012.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from privfit.mechanisms.base import Description
from privfit.mechanisms.histograms.filtered_sample import FilteredSample, SampledCells
from privfit.mechanisms.histograms.noisy_histogram import Counting
from privfit.models._docs import documented
from privfit.models.private import FitResult
from privfit.privacy import Ledger, Seed
from privfit.publish.histograms import Cuts, HistogramPublisher
from privfit.schema import Schema


@documented
class FilterPriority(HistogramPublisher[FilteredSample, SampledCells]):
    """Publish a private table as a sample of its noisy cells, a baseline (Cormode et al., 2012).

    Cells and counts are those of `DPME`. Only noisy counts of at least a threshold are kept, and if they are many, a
    priority sample of them. Empty cells are never enumerated, so a table may have 10^12 cells and more; the result has
    the same distribution as if noise had been added to each of them.

    Parameters
    ----------
    cells : int or 'auto'
        Number of cells of a numeric column; "auto" is Lei's rule, as for `DPME`. Columns with bins of their own keep
        those.
    threshold : int or 'auto'
        Smallest noisy count that is kept. "auto" takes the smallest one that lets no more empty cells pass, on average,
        than are sampled.
    sample_size : int or 'auto'
        Largest number of cells that are published. "auto" is the number of rows, or `expected_rows`, or ten thousand.

    Attributes
    ----------
    columns_ : dict of str to ndarray
        The centres of the cells, one array per column of the schema, by name; in the order of the cells, which does not
        depend on the rows.
    weights_ : ndarray of shape (n_published,)
        Their noisy counts, raised for those that stand for others in the sample.
    threshold_ : int
        The threshold that was used.
    sample_size_ : int
        The sample size that was used.

    See Also
    --------
    DPME : All cells, without a threshold.

    Notes
    -----
    The threshold and the sample size are public: chosen by looking at the rows, they would reveal something about them.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/histograms.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] G. Cormode, C. Procopiuc, D. Srivastava and T. T. L. Tran, "Differentially private summaries for sparse
       data", ICDT 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.repeat([[0.5] * 12, [-0.5] * 12], 1000, axis=0)  # in 10^12 cells
    >>> publisher = pf.baselines.FilterPriority(epsilon=1.0, schema=pf.Schema.box(-1, 1), cells=10, sample_size=100)
    >>> table = publisher.fit(rows)
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
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
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
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> FilteredSample:
        mechanism = FilteredSample(self.threshold, self.sample_size)
        mechanism.check()
        return mechanism

    def _keep(self, result: FitResult[FilteredSample, Counting, SampledCells]) -> None:
        super()._keep(result)
        self.threshold_, self.sample_size_ = result.fit.threshold, result.fit.sample_size

    def _described(self, result: FitResult[FilteredSample, Counting, SampledCells]) -> Description:
        fit = result.fit
        sampled = f"cells with noisy counts of at least {fit.threshold}, at most {fit.sample_size:,} of them"
        return Description(notes=(*super()._described(result).notes, sampled))
