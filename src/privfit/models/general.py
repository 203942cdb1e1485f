"""Regression and classification with a loss of the user's own, under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from privfit.losses import LINKS, PolynomialLoss, logistic, squared
from privfit.mechanisms import PolynomialMechanism
from privfit.models.base import PrivateLinearModel, original_units
from privfit.models.classes import ClassModel
from privfit.models.inputs import predicting
from privfit.privacy import Ledger, PrivacyError
from privfit.schema import Schema

Floats = NDArray[np.float64]


class _FunctionalModel(PrivateLinearModel):
    """What the two models share: a loss that is a parameter, and what is kept of it."""

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        loss: PolynomialLoss | None = None,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: Any = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
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
        )
        self.loss = loss

    def _default_loss(self) -> PolynomialLoss:
        raise NotImplementedError

    def _chosen_mechanism(self) -> Any:
        if self.loss is None and getattr(self, "_loss_not_kept", False):
            raise PrivacyError(
                f"This {type(self).__name__} was loaded from a file, which does not keep the loss it was fitted with. Set it before fitting again: set_params(loss=...)."
            )
        loss = self._default_loss() if self.loss is None else self.loss
        mechanism = PolynomialMechanism(loss, super()._chosen_mechanism())
        mechanism.check()
        return mechanism

    def _keep_loss(self, fit: Any, mechanism: PolynomialMechanism) -> None:
        target = self._geometry.target
        assert target is not None
        self.link_: str = mechanism.loss.link
        self.approximation_error_ = mechanism.approximation_error(target)
        self._interval = mechanism.settled_loss(target).bounds
        self._at_edge = bool(getattr(fit, "at_edge", False))

    def _notes(self, mechanism: Any) -> tuple[str, ...]:
        low, high = self._interval
        notes = []
        if self.approximation_error_:
            notes.append(
                f"a polynomial of degree {mechanism.loss.degree} stands in for the {mechanism.loss.name}; it is off by at most "
                f"{self.approximation_error_:.3g} where the linear predictor is in [{low:g}, {high:g}]"
            )
        if self._at_edge:
            notes.append(
                "the fit lies at the edge of the weights that keep the linear predictor in that interval; a wider one may suit better"
            )
        return tuple(notes)

    # -- saving ---------------------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, Any]:
        """What a saved model carries besides coefficients, schema and report."""
        return {"link": self.link_, "approximation_error": self.approximation_error_}

    def _restore_facts(self, facts: dict[str, Any]) -> None:
        if facts["link"] not in LINKS:
            raise TypeError("a saved link is one of those that exist")
        self.link_ = facts["link"]
        self.approximation_error_ = float(facts["approximation_error"])
        self._loss_not_kept = True


class FunctionalRegressor(RegressorMixin, _FunctionalModel):  # type: ignore[misc]
    """Regression with any loss f(z, y) of the linear predictor z = coef_'x + intercept_, fitted under differential privacy.

    The loss is replaced by a polynomial in z (the functional-mechanism paper's Algorithm 2), so that sums over rows suffice to fit it. What that costs in
    accuracy is computed and reported; it does not touch the guarantee.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier.
    loss : a pf.PolynomialLoss; pf.losses has squared(), poisson(...) and huber(...). None is least squares. It is public: choose it without
        looking at the rows.
    mechanism : "auto", "functional" or a pf.FunctionalMechanism, whose settings count for losses that moments can fit.
    fit_intercept : whether to fit an intercept. Without one, z is zero where every number is.
    delta, schema, adjacency, numeric, rows_per_person, expected_rows, ledger, random_state : as in LinearRegression. The schema has a Numeric target.

    Attributes
    ----------
    coef_ : one coefficient per name in get_feature_names_out(), in the units of the table, for z.
    intercept_ : the intercept of z.
    link_ : what `predict` makes of z: "identity", "exp" or "logistic".
    approximation_error_ : the largest distance between the loss and its polynomial on the loss's interval, over the target's bounds.
    report_, schema_, n_features_in_, feature_names_in_ : as in LinearRegression.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/polynomial.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 100), 500).reshape(-1, 1)
    >>> counts = np.rint(np.exp(0.8 * X[:, 0]) + np.tile([-0.5, 0.5], 25_000))
    >>> schema = pf.Schema.box(-1, 1, target=(0, 10))
    >>> model = pf.FunctionalRegressor(epsilon=2.0, loss=pf.losses.poisson(interval=1.5), schema=schema).fit(X, counts)
    >>> bool(abs(model.coef_[0] - 0.8) < 0.2)
    True
    """

    def _default_loss(self) -> PolynomialLoss:
        return squared()

    def _keep(self, fit: Any, mechanism: Any) -> None:
        self.coef_, self.intercept_ = original_units(fit, self._geometry)
        self._keep_loss(fit, mechanism)

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def linear_predictor(self, X: Any) -> Floats:
        """z = coef_'x + intercept_ for every row."""
        return self._scores(X)

    @predicting
    def predict(self, X: Any) -> Floats:
        """The link of z: z itself, e^z or 1 / (1 + e^-z)."""
        scores = self._scores(X)
        if self.link_ == "identity":
            return scores
        return np.asarray(np.exp(scores) if self.link_ == "exp" else expit(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1 the 200 rows of scikit-learn's check are drowned, as they must be
        return tags


def _has_probabilities(model: Any) -> bool:
    link = getattr(model, "link_", None) or (model._default_loss() if model.loss is None else model.loss).link
    return bool(link == "logistic")


class FunctionalClassifier(ClassModel, _FunctionalModel):
    """Classification into two classes with any loss f(z, y), y being -1 or 1, of the linear predictor z, under differential privacy.

    As FunctionalRegressor, with a Category of two classes as target. The predicted class is the second one where z is positive.

    Parameters
    ----------
    loss : a pf.PolynomialLoss; None is pf.losses.logistic(): the logistic loss by a polynomial of degree two that follows it on [-4, 4].
    epsilon, delta, schema, mechanism, adjacency, fit_intercept, numeric, rows_per_person, expected_rows, ledger, random_state : as
        in FunctionalRegressor.

    Attributes
    ----------
    classes_ : the two public classes, sorted; the first is y = -1.
    coef_ : shape (1, columns), one coefficient per name in get_feature_names_out(), in the units of the table.
    intercept_ : shape (1,).
    link_, approximation_error_, report_, schema_, n_features_in_, feature_names_in_ : as in FunctionalRegressor.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/polynomial.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    def _default_loss(self) -> PolynomialLoss:
        return logistic()

    def _keep(self, fit: Any, mechanism: Any) -> None:
        coef, intercept = original_units(fit, self._geometry)
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])
        self._keep_loss(fit, mechanism)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of classes_; only for losses with the logistic link."""
        second = expit(self._scores(X))
        return np.column_stack([1.0 - second, second])
