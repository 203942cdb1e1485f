"""Columns that go with a target, selected privately."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from privfit.mechanisms import ColumnChoice, ColumnSelection
from privfit.mechanisms.base import Description
from privfit.models._docs import documented
from privfit.models.inputs import PUBLIC, Input
from privfit.models.private import FitResult, PrivateModel
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import Category, Geometry, Schema
from privfit.tables import TableLike, is_named, with_columns

Selected = tuple[int, ...]
_SelectionModel = PrivateModel[ColumnSelection, ColumnChoice, Selected]


@documented
class SelectPrivate(OneToOneFeatureMixin, TransformerMixin, _SelectionModel):  # type: ignore[misc]
    """Select the k columns that go with the target most, privately, in one release.

    A column's score is the distance between its joint counts with the target and independence: numbers in the bins of
    the schema or in 16 cells between their bounds, a number as target cut in two near its median. Columns are judged
    one by one: two that say the same are both selected.

    Parameters
    ----------
    k : int
        How many columns are selected. The noise of each choice grows with it.
    delta : float
        Not needed and not spent: all noise here needs epsilon alone.
    expected_rows : int or None
        Not needed.

    Attributes
    ----------
    selected_ : ndarray of shape (k,)
        Names of the columns, in the order in which they were chosen.
    support_ : ndarray of shape (n_features_in_,)
        Whether each column was selected.
    selected_schema_ : Schema
        The schema with the selected columns alone, for a model that is fitted by hand.

    See Also
    --------
    LinearRegression : Has importances after a fit, which cost nothing more.
    Schema : Its columns are what is selected from.

    Notes
    -----
    In a scikit-learn `Pipeline` an estimator of privfit after it leaves the other columns out of its own schema, so
    that both steps take the same one. `transform` keeps the selected columns of an array or a frame; in a frame also
    the target, the person and columns of the filter, which the next step reads. What is read from elsewhere (a file, a
    relation, a frame of a cluster) is handed on as it is: the next step reads the columns of its schema.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/column-selection.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 6))
    >>> y = np.where(X[:, 2] + X[:, 4] > 0, "yes", "no")
    >>> schema = pf.Schema.box(-1, 1, 6, target=["no", "yes"])
    >>> select = pf.SelectPrivate(2, epsilon=1.0, schema=schema).fit(X, y)
    >>> sorted(select.selected_.tolist()), select.transform(X).shape
    (['x2', 'x4'], (5000, 2))
    >>> both = make_pipeline(select, pf.LogisticRegression(epsilon=1.0, schema=schema)).fit(X, y)
    >>> bool(both.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        k: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def fit(self, X: TableLike, y: ArrayLike | None = None) -> Self:
        """Select columns. The ledger is charged before any noise is drawn.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table.
        y : array-like or None, default=None
            The target, unless X has a column with the name of the schema's target.

        Returns
        -------
        Self
            The fitted selector.

        Raises
        ------
        DataError
            If the table does not fit the schema. Nothing is charged.
        BudgetExceeded
            If the ledger has less left than the choice costs. Nothing is charged and nothing is drawn.
        """
        public = isinstance(self.schema, str) and self.schema == PUBLIC and y is not None
        self._classes_given = public and type_of_target(y) not in ("continuous", "unknown")
        return super().fit(X, y)

    def transform(self, X: TableLike) -> Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            A table with the columns that were fitted.

        Returns
        -------
        array-like or data frame
            The same kind of table with the selected columns; what lies elsewhere, as it is.
        """
        check_is_fitted(self, "support_")
        public = isinstance(self.schema, str) and self.schema == PUBLIC
        if not is_named(X) or public or self._by_position:
            # a fit clips infinite cells; refused here, they would end a pipeline after its charge
            finite = public and not self.__sklearn_tags__().input_tags.allow_nan
            found = validate_data(self, X, dtype=None, accept_sparse="csr", ensure_all_finite=finite, reset=False)
            return found[:, np.flatnonzero(self.support_)]
        return with_columns(X, [column.name for column in self.selected_schema_.features], self._beside())

    def inverse_transform(self, X: ArrayLike) -> Any:
        """Put columns of zeros in the place of those that were dropped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, k)
            Selected columns.

        Returns
        -------
        ndarray or sparse array of shape (n_rows, n_features_in_)
            All columns.
        """
        check_is_fitted(self, "support_")
        chosen = check_array(X, dtype=None, accept_sparse="csc", ensure_all_finite=False)
        if chosen.shape[1] != self.support_.sum():
            raise ValueError(
                f"X has {chosen.shape[1]} columns, and {self.support_.sum()} were selected. Give what transform made."
            )
        places = np.flatnonzero(self.support_)
        if sparse.issparse(chosen):
            found = sparse.coo_array(chosen)
            shape = (chosen.shape[0], len(self.support_))
            return sparse.csc_array((found.data, (found.row, places[found.col])), shape=shape)
        whole = np.zeros((len(chosen), len(self.support_)), dtype=chosen.dtype)
        whole[:, places] = chosen
        return whole

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return which columns were selected.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return places and not a mask.

        Returns
        -------
        ndarray
            True for each selected column, or the places of these.
        """
        check_is_fitted(self, "support_")
        return np.flatnonzero(self.support_) if indices else self.support_

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the selected columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of all columns; those of the fit, if there were any, otherwise x0, x1, ...

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self, "support_")
        return np.asarray(super().get_feature_names_out(input_features))[self.support_]

    @property
    def _dropped_names(self) -> tuple[str, ...]:
        """Columns that a later step of a pipeline does without."""
        if not hasattr(self, "support_"):
            return ()
        return tuple(column.name for column, kept in zip(self.schema_.features, self.support_, strict=True) if not kept)

    def _beside(self) -> list[str]:
        """Columns that a next step may read beside the selected ones; not where scikit-learn names the columns."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if own != "default":
            return []
        schema = self.schema_
        names = [condition.name for condition in schema.where]
        names += [name for name in (schema.person, schema.target and schema.target.name) if name]
        chosen = {column.name for column in self.selected_schema_.features}
        return [name for name in dict.fromkeys(names) if name not in chosen]

    # -- wiring ------------------------------------------------------------------------------------

    @property
    def _is_classifier(self) -> bool:
        if isinstance(self.schema, str) and self.schema == PUBLIC:
            return bool(self._classes_given)
        schema = Schema.load(self.schema) if isinstance(self.schema, str | Path) else self.schema
        return isinstance(getattr(schema, "target", None), Category)

    def _chosen_mechanism(self) -> ColumnSelection:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise PrivacyError(
                f"k={self.k!r} was given; it is the number of columns to select, an integer of at least 1. Write, for "
                "example, pf.SelectPrivate(5, ...). Nothing was charged."
            )
        return ColumnSelection()

    def _encoded(
        self, mechanism: ColumnSelection, given: Input, parameters: PrivacyParameters
    ) -> tuple[ColumnChoice, Geometry]:
        problem = ColumnChoice(int(self.k))
        return problem, mechanism.geometry(given.schema, problem)

    def _keep(self, result: FitResult[ColumnSelection, ColumnChoice, Selected]) -> None:
        self.__dict__.pop("classes_", None)  # of the target; a selector predicts nothing
        names = [column.name for column in self.schema_.features]
        self.selected_ = np.array([names[place] for place in result.fit], dtype=object)
        self.support_ = np.isin(np.arange(len(names)), result.fit)
        kept = [column for column, chosen in zip(self.schema_.features, self.support_, strict=True) if chosen]
        self.selected_schema_ = Schema(kept, self.schema_.target, self.schema_.person, self.schema_.where)

    def _described(self, result: FitResult[ColumnSelection, ColumnChoice, Selected]) -> Description:
        return Description(notes=(f"{len(result.fit)} of {len(self.support_)} columns were selected, one by one",))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=True)
        schema = getattr(self, "schema_", self.schema)
        tags.input_tags.allow_nan = isinstance(schema, Schema) and any(c.fill is not None for c in schema.features)
        return tags
