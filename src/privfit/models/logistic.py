"""Logistic regression under differential privacy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privfit.losses import truncated_logistic
from privfit.mechanisms import FunctionalMechanism, LinearFit
from privfit.models.base import original_units
from privfit.models.classes import TwoClassModel
from privfit.solvers import calibrate


class LogisticRegression(TwoClassModel):
    """Logistic regression for two classes, fitted under differential privacy by the functional mechanism.

    The logistic loss is replaced by a quadratic that follows it on an interval, so that moments suffice to fit it. The direction
    of the coefficients is that of least squares on the classes; their length and the intercept are calibrated from the released moments.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier.
    delta : the chance that the promise fails. Laplace noise needs none, so that nothing of it is spent.
    schema : the public facts, with a Category of two classes as target. "public" declares the table itself public.
    mechanism : "auto", "functional" or a pf.FunctionalMechanism.
    adjacency : "replace-one" (the number of rows is public) or "add-remove" (it is not).
    fit_intercept : whether to fit an intercept.
    numeric : how numeric columns without bins of their own enter: "slope", "bins", or "auto", which is "slope" here.
    rows_per_person : the most rows that one person can have; the promise is made to people.
    expected_rows : a public guess of the number of rows. This mechanism does not need it.
    ledger : the pf.Ledger to charge. Without one, a ledger without a limit keeps the running total of the process.
    random_state : a seed makes the noise repeatable and the result NOT private. For tests and experiments.

    Attributes
    ----------
    classes_ : the two public classes, sorted.
    coef_ : shape (1, columns), one coefficient per name in get_feature_names_out(), in the units of the table.
    intercept_ : shape (1,).
    report_, schema_, n_features_in_, feature_names_in_ : as in LinearRegression.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/moments.md, Theorem 3.
    """

    _loss = truncated_logistic()

    def _keep(self, fit: LinearFit, mechanism: FunctionalMechanism) -> None:
        length = 1.0
        if mechanism.calibration == "tight" and mechanism.loss is None:
            centred = self._geometry.intercept and self._checked_intercept()
            length, intercept = calibrate(fit.weights, fit.intercept, fit.target_mean, fit.moments, centred, mechanism.interval)
            fit = replace(fit, weights=fit.weights * length, intercept=intercept)
        coef, intercept = original_units(fit, self._geometry)
        self._length = length
        self.coef_ = coef[None, :]
        self.intercept_ = np.array([intercept])

    def _notes(self, mechanism: FunctionalMechanism) -> tuple[str, ...]:
        return (
            (f"coefficients are stretched {self._length:.3g} times, because a quadratic stands in for the logistic loss",)
            if self._length != 1
            else ()
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of classes_."""
        second = expit(self._scores(X))
        return np.column_stack([1.0 - second, second])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of predict_proba."""
        scores = self._scores(X)
        return np.column_stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)])
