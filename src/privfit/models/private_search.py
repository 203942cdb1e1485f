"""A private choice among settings of an estimator, at one price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.base import Description
from privfit.mechanisms.choice import MOST_CANDIDATES, BestOf
from privfit.models._docs import documented
from privfit.models.holdout import checked_share
from privfit.models.inputs import Input
from privfit.models.private import FitResult, PrivateModel
from privfit.models.report import Report
from privfit.models.setting_trials import SettingTrials
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.tables import DataError, TableLike, joined, with_column

Chosen = tuple[int, Any]
_SearchModel = PrivateModel[BestOf, SettingTrials, Chosen]

SCORES = {"accuracy": Category, "squared": Numeric, "absolute": Numeric}
FIXED = ("epsilon", "delta", "schema", "adjacency", "rows_per_person", "expected_rows", "ledger", "random_state")
"""Parameters that say what is promised; the search gives them to every candidate."""


def _with_target(X: TableLike, y: ArrayLike, schema: Schema) -> Any:
    """The table as a frame with its target, which is divided with it."""
    assert schema.target is not None
    frame, values = joined([X], [column.name for column in schema.features]), np.asarray(y)
    if values.shape != (len(frame),) or schema.target.name in list(frame.columns):
        raise DataError(
            f"A table of {len(frame)} rows was given, and targets of the shape {values.shape} apart from it. Give one "
            "target per row, once. Nothing was charged."
        )
    return with_column(frame, schema.target.name, values)


@documented
class PrivateSearch(MetaEstimatorMixin, _SearchModel):  # type: ignore[misc]
    """Choose among settings of an estimator privately: one price for all fits and the choice.

    Rows are divided by secret bits. Settings are fitted on most of them and compared by a bounded score on the others.
    Up to three settings share epsilon. Of more, random ones are fitted at a third of epsilon each, about 4 times as
    many as there are other settings, until a random stop; the best of them by noisy scores is kept.

    Parameters
    ----------
    estimator : estimator
        An estimator of privfit for classes or a number. Its schema, adjacency and other public facts hold for all
        settings; its epsilon, ledger and random_state are not used.
    candidates : dict or list of dict
        A grid, as for scikit-learn's GridSearchCV; a grid with distributions, of which `n_iter` settings are drawn; or
        a list of settings, each a dict of parameters.
    scoring : {'accuracy', 'squared', 'absolute'} or None
        The score of a setting: how many rows are predicted rightly, or minus the sum of squared or absolute errors in
        units of the target's range. None is "accuracy" for classes and "squared" for numbers.
    share : float
        The share of rows that settings are compared on.
    n_iter : int
        How many settings are drawn where `candidates` has distributions.

    Attributes
    ----------
    best_params_ : dict
        The setting that was chosen.
    best_index_ : int
        Its place among the candidates.
    best_estimator_ : estimator
        Its fit, on the rows that are not compared on: there is no refit, which would cost more. Its report has the
        price of the search.
    candidates_ : list of dict
        All settings.

    See Also
    --------
    SelectPrivate : Chooses columns.
    holdout : Divides a table for releases of all kinds.

    Notes
    -----
    Scores are not reported: they are not paid for.

    Guarantee: epsilon-DP, replace-one or add-remove, for one row per person; docs/proofs/search.md, Theorem 2. The
    number of fits is hidden, as far as time does not show it.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    .. [2] N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = pf.LogisticRegression(schema=pf.Schema.box(-1, 1, 2, target=["no", "yes"]))
    >>> grid = {"mechanism": ["objective", "output"]}
    >>> search = pf.PrivateSearch(model, grid, epsilon=4.0).fit(X, y)
    >>> sorted(search.best_params_), bool(search.score(X, y) > 0.8)
    (['mechanism'], True)
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        epsilon: float = 1.0,
        ledger: Ledger | None = None,
        scoring: str | None = None,
        share: float = 0.2,
        n_iter: int = 10,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.epsilon = epsilon
        self.ledger = ledger
        self.scoring = scoring
        self.share = share
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X: TableLike, y: ArrayLike | None = None) -> Self:
        """Fit settings and choose one. The ledger is charged once, before any noise is drawn.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table.
        y : array-like or None, default=None
            The target, unless X has a column with the name of the schema's target.

        Returns
        -------
        Self
            The fitted search.

        Raises
        ------
        PrivacyError
            If a setting or the estimator means nothing here. Nothing is charged.
        BudgetExceeded
            If the ledger has less left than epsilon. Nothing is charged and nothing is drawn.
        """
        self._check_estimator()
        if y is not None:
            X = _with_target(X, y, self._schema())
        return super().fit(X)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict with the setting that was chosen.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predictions.
        """
        return np.asarray(self._best().predict(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: TableLike) -> NDArray[Any]:
        """Predict probabilities with the setting that was chosen.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities.
        """
        return np.asarray(self._best().predict_proba(X))

    def score(self, X: TableLike, y: ArrayLike) -> float:
        """Return the score of the setting that was chosen; it is no private figure of these rows.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        y : array-like of shape (n_rows,)
            Their targets.

        Returns
        -------
        float
            The score.
        """
        return float(self._best().score(X, y))

    # -- public facts, which are the estimator's ---------------------------------------------------

    delta = 0.0

    @property
    def expected_rows(self) -> int | None:
        """A public guess of the number of rows.

        Returns
        -------
        int or None
            That of the estimator.
        """
        found: int | None = self.estimator.expected_rows
        return found

    @property
    def adjacency(self) -> str:
        """Which tables are neighbours.

        Returns
        -------
        str
            That of the estimator.
        """
        return str(self.estimator.adjacency)

    @property
    def rows_per_person(self) -> int:
        """Largest number of rows of a person.

        Returns
        -------
        int
            That of the estimator.
        """
        return int(self.estimator.rows_per_person)

    @property
    def schema(self) -> Schema:
        """Public facts about the table.

        Returns
        -------
        Schema
            That of the estimator.
        """
        return self._schema()

    def _schema(self) -> Schema:
        schema = self.estimator.schema
        return Schema.load(schema) if isinstance(schema, str) and schema != "public" else schema

    def _best(self) -> Any:
        check_is_fitted(self, "best_index_")
        if self.best_estimator_ is None:
            raise PrivacyError("Every fit of this search failed, so that it has no model. The charge stands.")
        return self.best_estimator_

    # -- wiring ------------------------------------------------------------------------------------

    @property
    def _is_classifier(self) -> bool:
        return bool(self.estimator._is_classifier)

    def _check_estimator(self) -> None:
        name, ours = type(self.estimator).__name__, isinstance(self.estimator, PrivateModel)
        if not ours or self.estimator._target != "needed" or not hasattr(self.estimator, "predict"):
            raise PrivacyError(
                f"PrivateSearch was given the estimator {name}; it takes one of privfit that predicts a target. Write, "
                "for example, pf.PrivateSearch(pf.LogisticRegression(schema=schema), ...). Nothing was charged."
            )
        schema = self._schema()
        refused = not isinstance(schema, Schema) or schema.leaves_out or schema.any_width
        if refused or self.estimator.delta or self.estimator.rows_per_person != 1:
            raise PrivacyError(
                f"PrivateSearch was given a {name} with a delta, several rows per person, or a schema that is public, "
                "has an open width or leaves rows out, for which its price is not proved. Use delta=0, "
                "rows_per_person=1 and a schema that lists all columns. Nothing was charged."
            )

    def _settings(self) -> list[dict[str, Any]]:
        from sklearn.model_selection import ParameterGrid, ParameterSampler  # here, because it takes long to load

        given = self.candidates
        if isinstance(given, Mapping):
            drawn = any(hasattr(value, "rvs") for value in given.values())
            found = list(ParameterSampler(given, self.n_iter) if drawn else ParameterGrid(given))
        else:
            found = [dict(one) for one in given]
        known = self.estimator.get_params(deep=False).keys() - set(FIXED)
        if not 2 <= len(found) <= MOST_CANDIDATES or not all(one.keys() <= known for one in found):
            raise PrivacyError(
                f"PrivateSearch was given {len(found)} candidates of the parameters "
                f"{sorted({name for one in found for name in one})}; it takes from 2 to {MOST_CANDIDATES}, of the "
                f"parameters {sorted(known)}. The same for all is: {', '.join(FIXED)}. Nothing was charged."
            )
        return found

    def _chosen_mechanism(self) -> BestOf:
        return BestOf()

    def _encoded(
        self, mechanism: BestOf, given: Input, parameters: PrivacyParameters
    ) -> tuple[SettingTrials, Geometry]:
        target = given.schema.target
        scoring = self.scoring or ("accuracy" if isinstance(target, Category) else "squared")
        if not isinstance(target, SCORES.get(scoring, type(None))):
            raise PrivacyError(
                f"scoring={self.scoring!r} was given; for classes it is 'accuracy', for numbers 'squared' or "
                "'absolute'. Leave it out if in doubt. Nothing was charged."
            )
        self.candidates_ = self._settings()
        trials = SettingTrials(self.estimator, self.candidates_, given, scoring)
        trials.parameters, trials.share = parameters, checked_share(self.share)
        trials.seeded = self.random_state is not None
        return trials, mechanism.geometry(given.schema, trials)

    def _keep(self, result: FitResult[BestOf, SettingTrials, Chosen]) -> None:
        self.best_index_, self.best_estimator_ = result.fit
        self.best_params_ = self.candidates_[self.best_index_]

    def _report(
        self,
        result: FitResult[BestOf, SettingTrials, Chosen],
        described: Description,
        reasons: tuple[str, ...],
        public_rows: int | None,
        ledger: Ledger | None,
    ) -> Report:
        """What the search says of itself; the model that was chosen says the same: it was released at this price."""
        report = super()._report(result, described, reasons, public_rows, ledger)
        if (best := self.best_estimator_) is not None:
            own: Report = best.report_
            notes = (*report.notes, f"fitted by {own.mechanism} at epsilon {own.epsilon:.6g}", *own.notes)
            best.report_ = replace(report, model=own.model, repairs=own.repairs, notes=notes)
        return report

    def _described(self, result: FitResult[BestOf, SettingTrials, Chosen]) -> Description:
        return Description(notes=(f"chosen among {len(self.candidates_)} settings, on rows of its own",))
