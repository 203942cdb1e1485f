"""Principal components of a private table."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms import Covariances, SecondMoments
from privfit.mechanisms.base import Description
from privfit.models import saving
from privfit.models._docs import documented
from privfit.models.inputs import Input, predict_table, predicting, without_bins
from privfit.models.private import FitResult, PrivateModel, WeightedFit
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.report.models import draw_heat_maps
from privfit.rows import linear_scores
from privfit.schema import Block, Geometry, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
_PCAModel = PrivateModel[SecondMoments, float | None, Covariances]
_Result = FitResult[SecondMoments, float | None, Covariances]


@documented
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, WeightedFit, _PCAModel):  # type: ignore[misc]
    """Principal component analysis of a private table, from its second moments with noise.

    Means and covariances of all columns are released once; components, explained variances and everything else are
    computed from the release. Categories enter as one indicator per level.

    Parameters
    ----------
    n_components : int, float or None
        How many components are kept: a number, or, below 1, as many as explain that share of the variance. None keeps
        as many as there are columns.
    scale : {'none', 'bounds'}
        "none" takes columns in their own units, as scikit-learn does: one with a large unit dominates. "bounds" scales
        each number by its public bounds to [-1, 1] first, which takes the place of a scaler that reads the rows.
    expected_rows : int or None
        Not needed: under "add-remove" the number of rows is released with noise.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_columns)
        Directions of largest variance, one per row, over the columns that `get_column_names()` names.
    explained_variance_ : ndarray of shape (n_components_,)
        The variance along each component.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        The share of all variance.
    singular_values_ : ndarray of shape (n_components_,)
        Lengths of the table's columns of scores, from the variances and the number of rows.
    mean_ : ndarray of shape (n_columns,)
        The means of the columns.
    n_components_ : int
        Number of components.
    noise_variance_ : float
        The mean variance along the directions that are left out.

    See Also
    --------
    KMeans : Clusters of a private table.
    LinearRegression : Least squares from the same moments.

    Notes
    -----
    Eigenvalues of the noisy covariance matrix are moved to the nearest ones that are not negative and have the same
    sum: noise makes large ones larger and small ones negative, and the sum alone is not biased.

    The scores that `transform` computes are rows without noise: they are as private as the table.

    With weights, means and variances are divided by the sum of weights, and lengths count a row by its weight.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/pca.md; with weights docs/proofs/sample-weights.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> size = np.linspace(-1, 1, 20_000)
    >>> X = np.column_stack([size, 0.5 * size, np.zeros(20_000)])
    >>> model = pf.PCA(1, epsilon=1.0, schema=pf.Schema.box(-1, 1)).fit(X)
    >>> bool(model.explained_variance_ratio_[0] > 0.9)
    True
    """

    _target = "ignored"
    _importance_names = ("components_",)
    _choices: ClassVar[dict[str, tuple[object, ...]]] = {"scale": ("none", "bounds")}

    def __init__(
        self,
        n_components: int | float | None = None,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        scale: str = "none",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.scale = scale
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.max_weight = max_weight
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    # -- for any rows that one may look at ---------------------------------------------------------

    @predicting
    def transform(self, X: TableLike) -> Floats:
        """Compute the scores of rows: their coordinates along the components, measured from the means.

        They have no noise. Scores of private rows are as private as the rows.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components_)
            The scores.
        """
        check_is_fitted(self, "components_")
        coef = self.components_.T / self._scales[:, None]
        scores = linear_scores(predict_table(self, X), self.schema_, self._geometry, coef, -(self.mean_ @ coef))
        return scores.reshape(-1, self.n_components_)

    @predicting
    def squared_distances(self, X: TableLike) -> Floats:
        """Compute how far rows are from the plane of the components, and from the means, squared.

        They have no noise, and are over what a corner of the bounds can have; columns count as in the components.
        `pf.evaluate` makes a private figure of them.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Both distances.
        """
        check_is_fitted(self, "components_")
        table, weights = predict_table(self, X), self._units / self._scales
        longest = 2 * float(weights.max()) * float(np.linalg.norm(weights / weights.max()))
        found = []
        for directions in (np.eye(len(weights)), self.components_):
            coef = directions.T / (self._scales * longest)[:, None]
            along = linear_scores(table, self.schema_, self._geometry, coef, -(self.mean_ @ coef))
            found.append(np.square(along.reshape(-1, len(directions))).sum(axis=1))
        whole, explained = found
        return np.column_stack([np.maximum(whole - explained, 0.0), whole])

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Compute the rows that have these scores, one entry per column of `get_column_names()`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components_)
            Scores, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The rows, in the units of the table.
        """
        check_is_fitted(self, "components_")
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ * self._scales + self.mean_)

    def get_column_names(self) -> NDArray[np.object_]:
        """Return the names of the columns that components are made of: numbers, and one per level of a category.

        Returns
        -------
        ndarray of shape (n_columns,)
            The names.
        """
        check_is_fitted(self, "components_")
        return np.asarray(self._geometry.feature_names, dtype=object)

    def get_covariance(self) -> Floats:
        """Return the covariance matrix that the components and `noise_variance_` describe.

        Returns
        -------
        ndarray of shape (n_columns, n_columns)
            The matrix, in the units of `components_`.
        """
        check_is_fitted(self, "components_")
        above = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        rest = self.noise_variance_ * np.eye(self.components_.shape[1])
        return np.asarray((self.components_.T * above) @ self.components_ + rest)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw what columns count in every component, as a heat map. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        check_is_fitted(self, "components_")
        down = [
            f"component {place}: {share:.0%}" for place, share in enumerate(self.explained_variance_ratio_, start=1)
        ]
        names = list(self._geometry.feature_names)
        loadings = {"title": "", "down": down, "across": names, "values": self.components_.tolist()}
        return draw_heat_maps([loadings], "weight of the column", path)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file: components, schema, report and version.

        Loading it runs no code. The ledger is not in the file.

        Parameters
        ----------
        path : str or Path
            The file to write.

        See Also
        --------
        load_model : Read the model again.
        """
        check_is_fitted(self, "components_")
        saving.save(self, Path(path))

    # -- wiring ------------------------------------------------------------------------------------

    def _check_parameters(self, schema: Schema) -> None:
        super()._check_parameters(schema)
        self._check_number()

    def _check_number(self) -> None:
        wanted = self.n_components
        if wanted is None:
            return
        whole = isinstance(wanted, Integral) and not isinstance(wanted, bool) and wanted >= 1
        share = isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < wanted < 1
        if not (whole or share):
            raise PrivacyError(
                f"n_components={wanted!r} was given; it is an integer of at least 1, a share of the variance between 0 "
                "and 1, or None. Write n_components=2, for example. Nothing was charged."
            )

    def _chosen_mechanism(self) -> SecondMoments:
        self._check_number()
        return SecondMoments()

    def _settled(
        self, mechanism: SecondMoments, given: Input, parameters: PrivacyParameters
    ) -> tuple[SecondMoments, Input]:
        return mechanism, without_bins(given)

    def _encoded(
        self, mechanism: SecondMoments, given: Input, parameters: PrivacyParameters
    ) -> tuple[float | None, Geometry]:
        geometry = mechanism.geometry(given.schema)
        columns = len(geometry.feature_names)
        if isinstance(self.n_components, Integral) and self.n_components > columns:
            raise PrivacyError(
                f"n_components={self.n_components} was given; the schema makes {columns} columns. Ask for at most so "
                "many components. Nothing was charged."
            )
        return None if given.weights is None else given.weights.most, geometry

    def _keep(self, result: _Result) -> None:
        fit, units, free = result.fit, self._units, 1.0 if result.problem is None else 0.0
        weights = units / self._scales
        largest = float(weights.max())  # units may be so large that their squares are infinite
        variances, directions = np.linalg.eigh(fit.matrix * np.outer(weights / largest, weights / largest))
        variances, directions = _plausible(variances[::-1]), directions[:, ::-1]
        if fit.n_rows > 1:
            variances = variances * fit.n_rows / (fit.n_rows - free)
        _, directions = svd_flip(np.zeros_like(directions), directions.T, u_based_decision=False)
        kept = self._number(variances)
        self.n_components_ = kept
        self.components_ = np.ascontiguousarray(directions[:kept])
        self.explained_variance_ratio_ = variances[:kept] / max(float(variances.sum()), np.finfo(float).tiny)
        square = largest * largest if largest < np.sqrt(np.finfo(float).max) else np.finfo(float).max
        with np.errstate(over="ignore"):  # of bounds so wide that squares are infinite
            self.explained_variance_ = variances[:kept] * square
            self.noise_variance_ = float(variances[kept:].mean() * square) if kept < len(variances) else 0.0
            self.singular_values_ = np.sqrt(variances[:kept] * max(fit.n_rows - free, free)) * largest
        self.mean_ = fit.means * units + self._centres

    def _number(self, variances: Floats) -> int:
        """How many components are kept."""
        if self.n_components is None:
            return len(variances)
        if isinstance(self.n_components, Integral):
            return int(self.n_components)
        reached = np.cumsum(variances) >= self.n_components * variances.sum()
        return int(np.argmax(reached)) + 1

    def _described(self, result: _Result) -> Description:
        described = super()._described(result)
        scaled = (
            "numbers are scaled by their bounds to [-1, 1]" if self.scale == "bounds" else "columns keep their units"
        )
        return Description(described.repairs, (scaled, *described.notes))

    @property
    def _units(self) -> Floats:
        """What 1 in an encoded column is in the table, by name of column."""
        return np.array([block.unit if number else 1.0 for block, number in self._places])

    @property
    def _centres(self) -> Floats:
        """What 0 in an encoded column is in the table, by name of column."""
        return np.array([block.center if number else 0.0 for block, number in self._places])

    @property
    def _places(self) -> Iterator[tuple[Block, bool]]:
        """The block of every name, and whether the name is that of a number."""
        for block in self._geometry.blocks:
            numeric = block.kind in ("slope", "slope-or-missing")
            yield from ((block, numeric and place == 0) for place in range(len(block.labels)))

    @property
    def _scales(self) -> Floats:
        """By what columns are divided before components are taken."""
        return self._units if self.scale == "bounds" else np.ones(len(self._units))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _facts(self) -> JSONObject:
        return {
            "components": self.components_.tolist(),
            "variances": self.explained_variance_.tolist(),
            "ratios": self.explained_variance_ratio_.tolist(),
            "lengths": self.singular_values_.tolist(),
            "means": self.mean_.tolist(),
            "rest": self.noise_variance_,
        }

    def _restore_facts(self, facts: JSONObject) -> None:
        self._geometry = SecondMoments().geometry(self.schema_)
        self.components_ = np.array(facts["components"], dtype=np.float64).reshape(
            -1, len(self._geometry.feature_names)
        )
        self.n_components_ = len(self.components_)
        self.explained_variance_ = np.array(facts["variances"], dtype=np.float64)
        self.explained_variance_ratio_ = np.array(facts["ratios"], dtype=np.float64)
        self.singular_values_ = np.array(facts["lengths"], dtype=np.float64)
        self.mean_ = np.array(facts["means"], dtype=np.float64)
        self.noise_variance_ = float(facts["rest"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _plausible(variances: Floats) -> Floats:
    """The nearest variances that are not negative and have the same sum, or zeros; largest first, as given."""
    total = float(variances.sum())
    if total <= 0:
        return np.zeros_like(variances)
    counts = np.arange(1, len(variances) + 1)
    taken = (np.cumsum(variances) - total) / counts
    last = int(np.flatnonzero(variances > taken)[-1])
    return np.asarray(np.maximum(variances - taken[last], 0.0))
