"""Clusters of a private table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms import AnyClusterer, ClusterFit, Clusters, clusterer
from privfit.mechanisms.base import AnyMechanism, Description
from privfit.models import saving
from privfit.models._docs import documented
from privfit.models.inputs import PUBLIC, Input, predict_table, predicting, without_bins
from privfit.models.private import FitResult, PrivateModel
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.report.models import draw_centres
from privfit.rows import scaled_points
from privfit.schema import Geometry, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
_KMeansModel = PrivateModel[AnyClusterer, Clusters, ClusterFit]
_KMeansResult = FitResult[AnyClusterer, Clusters, ClusterFit]


@documented
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, _KMeansModel):  # type: ignore[misc]
    """Clusters of a private table by k-means, with centres that are differentially private.

    Distances are measured after every column is scaled by its public bounds to [-1, 1], so that a column counts by its
    bounds and not by its unit. All columns are numeric; a target in the schema is ignored.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    delta : float
        Not needed and not spent: all noise here needs epsilon alone.
    mechanism : str, PrivGene or SampleAndAggregate
        "hybrid" counts rows in a noisy grid, clusters its cells and takes one step of Lloyd's algorithm. "cells" finds
        the noisy means of many small cells, clusters those and takes several steps. "auto" takes "hybrid" for up to 4
        columns, or up to 8 where rows are few, and "cells" otherwise. For comparison: "grid" is the grid alone, "lloyd"
        the improved DPLloyd of Su et al. [1]_, "genetic" a search by private selection, "sample-and-aggregate" averages
        the centres of many blocks of rows.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        The centres, in the units of the table.
    labels_ : ndarray of shape (n_rows,)
        The clusters of the rows, with schema="public" only. On private rows `labels_`, `inertia_` and the like would
        not be private, and do not exist; `predict` gives the cluster of any row that you may look at.

    See Also
    --------
    GeneticSearch : A private search by a fitting function.
    privfit.baselines.NoPrivacy : The k-means of scikit-learn on the same bounds, without privacy.

    Notes
    -----
    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/clustering.md, Theorem 1; docs/proofs/selection.md, Theorem 2 and docs/proofs/aggregate.md, Theorem 1
    for "genetic" and "sample-and-aggregate".
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] D. Su, J. Cao, N. Li, E. Bertino and H. Jin, "Differentially private k-means clustering", CODASPY 2016.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.tile([[20.0, 160.0], [20.0, 190.0], [70.0, 175.0]], (3000, 1))
    >>> schema = pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("height", 120, 220)])
    >>> model = pf.KMeans(3, epsilon=1.0, schema=schema).fit(rows)
    >>> len(set(model.predict([[20.0, 160.0], [20.0, 190.0], [70.0, 175.0]])))
    3
    """

    _target = "ignored"
    _importance_names = ("cluster_centers_",)

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    # -- for any rows that one may look at ---------------------------------------------------------

    def predict(self, X: TableLike) -> NDArray[np.int32]:
        """Predict the nearest centre of every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            Indices into `cluster_centers_`.
        """
        return np.asarray(np.argmin(self._squared_distances(X), axis=1), dtype=np.int32)

    def transform(self, X: TableLike) -> Floats:
        """Compute the distance of every row to every centre, with columns scaled by their bounds to [-1, 1].

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
            The distances.
        """
        return np.asarray(np.sqrt(self._squared_distances(X)))

    def score(self, X: TableLike, y: object = None) -> float:
        """Return minus the sum of squared scaled distances to the nearest centre.

        On private rows this number is private: it has no noise.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows.
        y : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        float
            The score; larger is better.
        """
        return -float(self._squared_distances(X).min(axis=1).sum())

    def fit_predict(self, X: TableLike, y: object = None) -> NDArray[np.int32]:
        """Fit, and return the clusters of the same rows; for a table that is itself public.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            A public table; the estimator has schema="public".
        y : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        ndarray of shape (n_rows,)
            Indices into `cluster_centers_`.

        Raises
        ------
        PrivacyError
            If the table is private. Nothing is charged.
        """
        self._refuse_own_rows("fit_predict", "predict")
        return self.fit(X).labels_

    def fit_transform(self, X: TableLike, y: object = None) -> Floats:
        """Fit, and return the distances of the same rows; for a table that is itself public.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            A public table; the estimator has schema="public".
        y : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
            The distances to the centres.

        Raises
        ------
        PrivacyError
            If the table is private. Nothing is charged.
        """
        self._refuse_own_rows("fit_transform", "transform")
        return self.fit(X).transform(X)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the profile of every centre: a line over the columns, each between its bounds. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        check_is_fitted(self, "cluster_centers_")
        profile = {
            "columns": [block.column.name for block in self._geometry.blocks],
            "low": (self._middles - self._halves).tolist(),
            "high": (self._middles + self._halves).tolist(),
            "centres": self.cluster_centers_.tolist(),
        }
        return draw_centres(profile, path)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file: centres, schema, report and version.

        Loading it runs no code. The ledger and the mechanism are not in the file.

        Parameters
        ----------
        path : str or Path
            The file to write.

        See Also
        --------
        load_model : Read the model again.
        """
        check_is_fitted(self, "cluster_centers_")
        saving.save(self, Path(path))

    def _refuse_own_rows(self, asked: str, instead: str) -> None:
        if not self._is_declared_public():
            raise PrivacyError(
                f"{asked} was called on a private table; what it says about each row has no noise and protects nobody. "
                f"Call fit, and {instead} on rows that you may look at. Nothing was charged."
            )

    @predicting
    def _squared_distances(self, X: TableLike) -> Floats:
        check_is_fitted(self, "cluster_centers_")
        points = scaled_points(predict_table(self, X), self.schema_, self._geometry)
        found = np.empty((len(points), len(self.cluster_centers_)))
        for place, centre in enumerate((self.cluster_centers_ - self._middles) / self._halves):
            found[:, place] = ((points - centre) ** 2).sum(axis=1)
        return found

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    @property
    def _middles(self) -> Floats:
        return np.array([block.center for block in self._geometry.blocks])

    @property
    def _halves(self) -> Floats:
        return np.array([block.unit for block in self._geometry.blocks])

    # -- wiring ------------------------------------------------------------------------------------

    def fit(self, X: TableLike, y: object = None) -> Self:
        """Find the centres. The ledger is charged before any noise is drawn.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table: a numpy array, a pandas or polars frame or lazy query, anything that Arrow can stream, a DuckDB
            relation, or the path of a Parquet or CSV file.
        y : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        Self
            The fitted model.

        Raises
        ------
        DataError
            If the table does not fit the schema. Nothing is charged.
        BudgetExceeded
            If the ledger has less left than the fit costs. Nothing is charged and nothing is drawn.
        """
        super().fit(X)
        self.__dict__.pop("labels_", None)  # of an earlier fit, to a public table
        if self._is_declared_public():
            self.labels_ = self.predict(X)
        return self

    def _is_declared_public(self) -> bool:
        return isinstance(self.schema, str) and self.schema == PUBLIC

    def _chosen_mechanism(self) -> AnyClusterer:
        return clusterer(self.mechanism)

    def _settled(
        self, mechanism: AnyClusterer, given: Input, parameters: PrivacyParameters
    ) -> tuple[AnyClusterer, Input]:
        """Numbers as they are: bins are for other models."""
        return mechanism, without_bins(given)

    def _encoded(
        self, mechanism: AnyClusterer, given: Input, parameters: PrivacyParameters
    ) -> tuple[Clusters, Geometry]:
        problem = Clusters(self.n_clusters)
        return problem, mechanism.geometry(given.schema, problem)

    def _keep(self, result: _KMeansResult) -> None:
        self._restore_centres(self._middles + self._halves * result.fit.centres)

    def _described(self, result: _KMeansResult) -> Description:
        scaled = "columns are scaled by their bounds to [-1, 1] before distances are measured"
        return Description(notes=(scaled, *result.fit.notes))

    def _restore_centres(self, centres: Floats) -> None:
        self.cluster_centers_ = centres
