"""Empirical risk minimisation under differential privacy, for any convex loss that states its constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if

from privfit.losses import LOGISTIC, ConvexLoss, tempered_logistic
from privfit.losses.checks import is_positive
from privfit.mechanisms import ERMFit, ERMProblem, Perturbation
from privfit.mechanisms.base import AnyMechanism
from privfit.models._docs import documented
from privfit.models.base import WeighedClasses
from privfit.models.classes import log_probabilities, predicted_class, public_classes
from privfit.models.inputs import predicting
from privfit.models.named import PERTURBATIONS
from privfit.models.perturbed import PerturbedModel
from privfit.models.private import FitResult
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, PrivacyError, Seed
from privfit.schema import Category, Column, Numeric, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]


def _is_for_classes(model: ERM) -> bool:
    if getattr(model, "_loss_not_kept", False) and model.loss is None:
        schema = getattr(model, "schema_", model.schema)
        return not isinstance(getattr(schema, "target", None), Numeric)
    return getattr(model.loss, "link", "logistic") != "identity"


def _has_probabilities(model: ERM) -> bool:
    return _is_for_classes(model) and not getattr(model, "_loss_not_kept", False)


@documented
class ERM(WeighedClasses, PerturbedModel[Perturbation, ERMFit]):
    """A linear model with any convex loss and a ridge penalty, fitted under differential privacy.

    Classes are fitted as in `LogisticRegression`, numbers as in `LinearRegression`. More than two classes are fitted in
    one release: by softmax with the logistic loss, one against the rest with others.

    Parameters
    ----------
    loss : ConvexLoss or None
        The first and second derivative of the loss, and bounds of both. None is the logistic loss; `pf.losses` has
        `smooth_hinge(width)` for classes and `robust(threshold)` for numbers. A loss whose link is "identity" is for
        numbers; all others are for classes. The loss is public: choose it without looking at the rows.
    penalty : float or 'auto'
        Factor of half the squared weights, beside the sum of the loss over rows. "auto" follows a public rule. A number
        overrides the ridge of the mechanism.
    mechanism : {'auto', 'objective', 'output'}, ObjectivePerturbation or OutputPerturbation
        "auto" and "objective" perturb the objective. "output" perturbs its minimum, and needs no bound of the
        curvature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public classes, sorted; for classes only.
    coef_ : ndarray of shape (n_columns,), (1, n_columns) or (n_classes, n_columns)
        One coefficient per name in `get_feature_names_out()`, in the units of the table; two-dimensional for classes.
    intercept_ : float or ndarray of shape (1,) or (n_classes,)
        The intercept; an array for classes.

    See Also
    --------
    LogisticRegression : The logistic loss, with interactions and kernels.
    ConvexLoss : A loss with its derivatives and their bounds.
    FunctionalRegressor : Losses approximated by a polynomial.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove, if the loss has the slopes
    and curvatures that it states; docs/proofs/perturbation.md, Theorems 1 to 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 100).reshape(-1, 1)
    >>> y = 3 * X[:, 0] + np.where(np.arange(len(X)) % 10 == 0, 8.0, 0.0)  # one in ten is an outlier
    >>> schema = pf.Schema.box(-1, 1, target=(-12, 12))
    >>> model = pf.ERM(pf.losses.robust(1.0), epsilon=1.0, schema=schema, numeric="slope").fit(X, y)
    >>> bool(abs(model.coef_[0] - 3) < 0.3)
    True
    """

    def __init__(
        self,
        loss: ConvexLoss | None = None,
        penalty: float | str = "auto",
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.loss = loss
        self.penalty = penalty

    def _chosen_mechanism(self) -> Perturbation:
        if self.loss is not None and not isinstance(self.loss, ConvexLoss):
            raise PrivacyError(
                f"loss={self.loss!r} was given to ERM; it is a pf.ConvexLoss, or None for the logistic loss. Write "
                "pf.ConvexLoss(slope, curvature, most_slope=..., most_curvature=...)."
            )
        if self.loss is None and getattr(self, "_loss_not_kept", False):
            raise PrivacyError(
                "This ERM was loaded from a file, and files do not keep losses of the user's own; it predicts, and "
                "cannot be fitted again as it is. Set its loss: model.set_params(loss=...)."
            )
        chosen = PERTURBATIONS.choose(self.mechanism, type(self).__name__).with_loss_as_given()
        if self.penalty == "auto":
            return chosen
        if not is_positive(self.penalty):
            raise PrivacyError(
                f"penalty={self.penalty!r} was given to ERM; it is 'auto' or a positive number, and multiplies half "
                "the squared weights beside a sum over rows. Use 'auto' if in doubt."
            )
        return chosen.with_ridge(cast("float", self.penalty))

    @property
    def _is_classifier(self) -> bool:
        return _is_for_classes(self)

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        loss = LOGISTIC if self.loss is None else self.loss
        if not isinstance(schema.target, Numeric):
            return loss
        block = schema.geometry(anchored="no" if self.fit_intercept else "all", gaps="spline").target
        assert block is not None
        loss.check(np.linspace(schema.target.low, schema.target.high, 9))
        return loss.scaled(block.center, block.unit)

    def _keep(self, result: FitResult[Perturbation, ERMProblem, ERMFit]) -> None:
        super()._keep(result)
        self.__dict__.pop("_loss_not_kept", None)
        block = self._geometry.target
        assert block is not None
        if block.kind == "slope":
            self.coef_ = self.coef_[0] * block.unit
            self.intercept_ = float(self.intercept_[0]) * block.unit + block.center

    def __sklearn_clone__(self) -> ERM:
        made = type(self)(**{name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()})
        if getattr(self, "_loss_not_kept", False):  # a copy does not know the loss either
            made._loss_not_kept = True
        return made

    def _hint_about_target(self, target: Column) -> str:
        return " Or, for classes, give the loss link='slopes' or 'logistic'." if isinstance(target, Category) else ""

    # -- predictions -------------------------------------------------------------------------------

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class of every row; for numbers, coef_'x + intercept_.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, or numbers in the units of the target.
        """
        scores = self._scores(X)
        return predicted_class(scores, self.classes_) if _is_for_classes(self) else scores

    @available_if(_is_for_classes)  # type: ignore[untyped-decorator]
    def decision_function(self, X: TableLike) -> Floats:
        """Evaluate the linear predictor, coef_'x + intercept_, for every row; for classes only.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Positive for the second of two classes; one column per class for more.
        """
        return self._scores(X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @predicting
    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row, by the link of the loss.

        A model that was loaded from a file has none if its loss was not the logistic one.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities, in the order of `classes_`.
        """
        loss = LOGISTIC if self.loss is None else self.loss
        scores = self._scores(X)
        odds = (loss if self._slopes is None else tempered_logistic(*self._slopes)).log_odds(scores)
        if odds.ndim == 1:
            return np.asarray(np.exp(np.column_stack([log_expit(-odds), log_expit(odds)])), dtype=np.float64)
        return np.exp(log_softmax(scores, axis=1) if self._softmax else log_probabilities(odds, scores))

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; for numbers, R^2.

        On private rows this number is private: it has no noise.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        y : array-like
            Their true classes or numbers.
        sample_weight : array-like or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            The share of rows in their class, or the coefficient of determination.
        """
        measure = accuracy_score if _is_for_classes(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        if isinstance(self.schema_.target, Numeric):
            self.coef_, self.intercept_ = coef, float(intercept[0])
            return
        self.coef_, self.intercept_ = coef.reshape(len(intercept), -1), intercept
        self.classes_ = public_classes(self.schema_)

    def _facts(self) -> JSONObject:
        return super()._facts() | {
            "own_loss": self.loss not in (None, LOGISTIC),
            "slopes": self._slopes,
            "softmax": self._softmax,
        }

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        slopes = facts.get("slopes")
        self._slopes = None if slopes is None else (float(slopes[0]), float(slopes[1]))
        self._softmax = bool(facts.get("softmax", False))
        if facts.get("own_loss"):  # functions are not written to files
            self._loss_not_kept = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _is_for_classes(self):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=True)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags
