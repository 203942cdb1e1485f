"""Intervals of least squares: a bootstrap on released moments, or matrices bought beside a perturbed objective."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms import FunctionalMechanism, LinearFit, RegressionFit, bootstrap
from privfit.mechanisms.functional.intervals import Bootstrap
from privfit.models.inputs import predict_table, predicting
from privfit.models.intervals import USUAL_CONFIDENCE, ModelWithIntervals, checked_confidence, normal_quantile
from privfit.models.report import JSONObject
from privfit.models.summary import CoefficientTable
from privfit.privacy import PrivacyError
from privfit.rows import linear_scores
from privfit.tables import TableLike

Floats = NDArray[np.float64]

MOST_SAVED_INTERVALS = 200
"""Models with more coefficients are saved without intervals, so that saving does not wait for their bootstrap."""
MOST_SAVED_DRAWS = 50
"""Models with more coefficients are saved without the draws that intervals of predictions are made from: 200 numbers of
8 digits per coefficient.
"""


class LeastSquaresIntervals(ModelWithIntervals):
    """Intervals of a mean that is itself linear.

    Where matrices were bought they are those of `ModelWithIntervals`; else a parametric bootstrap on released moments.
    """

    _result: Any = None
    """What a bootstrap is computed from; None for a model from a file."""
    _bootstrap: Bootstrap | None = None
    _saved_intervals: tuple[Floats, Floats] | None = None
    _saved_share: Floats | None = None

    def _keep_errors(self, result: Any) -> None:
        """Keep what intervals are computed from."""
        self._result, self._bootstrap, self._saved_intervals, self._saved_share = result, None, None, None
        self.__dict__.pop("_sure", None)  # of an earlier fit
        certainty = getattr(result.fit, "certainty", None)
        if certainty is not None:
            self._keep_certainty(certainty, self._half() * cast("RegressionFit", result.fit).unit)

    def confidence_intervals(self, confidence: float = USUAL_CONFIDENCE) -> tuple[Floats, Floats]:
        """Compute confidence intervals of the coefficients and of the intercept.

        They cover the noise, the sampling of people and what is not known of shrinkage, and cost no privacy: matrices
        that were bought beside a perturbed objective say how sure its weights are, and a parametric bootstrap how sure
        those are that are made of moments. A coefficient is not identified at this epsilon where noise has hidden so
        much of what distinguishes its column from others that shrinkage decides it: its interval is infinite.

        Parameters
        ----------
        confidence : float, default=0.9
            Probability with which an interval covers the true value, between 0 and 1.

        Returns
        -------
        coef : ndarray of shape (n_columns, 2)
            Intervals of the coefficients.
        intercept : ndarray of shape (2,)
            Interval of the intercept.

        Raises
        ------
        AttributeError
            If the model was loaded from a file without intervals, or its mechanism has none.
        """
        if self._sure is not None:
            return super().confidence_intervals(confidence)
        if self._saved_intervals is not None and confidence == USUAL_CONFIDENCE:
            return self._saved_intervals
        coefs, intercepts = self._errors()
        reach = np.quantile(np.abs(np.column_stack([coefs, intercepts])), checked_confidence(confidence), axis=0)
        reach[:-1][~self._bootstrapped().identified] = np.inf
        coef = np.column_stack([self.coef_ - reach[:-1], self.coef_ + reach[:-1]])
        return coef, np.array([self.intercept_ - reach[-1], self.intercept_ + reach[-1]])

    def _drawn_intervals(self) -> Floats | None:
        try:
            return self.confidence_intervals()[0]
        except AttributeError:
            return None

    @predicting
    def predict_interval(
        self, X: TableLike, confidence: float = USUAL_CONFIDENCE, of: Literal["mean", "target"] = "mean"
    ) -> Floats:
        """Compute an interval for the prediction of every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        confidence : float, default=0.9
            Probability with which an interval covers the true value, between 0 and 1.
        of : {'mean', 'target'}, default='mean'
            Whether the interval is for the mean of the target of such a row, or for the target itself.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends.

        Raises
        ------
        AttributeError
            If its mechanism has no intervals, or the model was loaded from a file that has none.
        """
        if of not in ("mean", "target"):
            raise PrivacyError(
                f"of={of!r} was given; it is 'mean' or 'target'. Use 'mean' for the prediction's own uncertainty."
            )
        if self._sure is not None:
            return self._mean_interval(X, confidence, of)
        coefs, intercepts = self._errors()
        table = predict_table(self, X)
        errors = np.asarray(linear_scores(table, self.schema_, self._geometry, coefs.T, intercepts))
        predicted = self.predict(X)
        if of == "target":
            spread = self._spread()
            reach = normal_quantile(confidence) * np.sqrt(np.mean(errors**2, axis=1) + spread)
        else:
            reach = np.quantile(np.abs(errors), checked_confidence(confidence), axis=1)
        return np.column_stack([predicted - reach, predicted + reach])

    def _mean_interval(self, X: TableLike, confidence: float, of: str) -> Floats:
        """The interval of a model that perturbed an objective."""
        if of == "target":
            raise PrivacyError(
                "of='target' was given to a model that perturbed an objective, which releases no variance of what is "
                "left. Use of='mean', or mechanism='functional'."
            )
        return super().predict_interval(X, confidence)

    def summary(self, confidence: float = USUAL_CONFIDENCE) -> CoefficientTable:
        """Return a table of the coefficients, their intervals, and how much of their uncertainty is noise.

        Parameters
        ----------
        confidence : float, default=0.9
            Probability with which an interval covers the value in the population, between 0 and 1.

        Returns
        -------
        CoefficientTable
            One line per coefficient and one for the intercept; it prints.

        Raises
        ------
        AttributeError
            If its mechanism has no intervals, or the model was loaded from a file that has none.
        """
        if self._sure is not None:
            return super().summary(confidence)
        coef, intercept = self.confidence_intervals(confidence)
        return self._table(np.vstack([coef, intercept]), np.append(self._noise_share(), np.nan), confidence)

    # -- saving ------------------------------------------------------------------------------------

    def _facts(self) -> JSONObject:
        """The 90% intervals, where they are quickly computed."""
        if self._sure is not None:
            return super()._facts()
        if len(self.coef_) > MOST_SAVED_INTERVALS or self._result is None:
            return {}
        try:
            coef, intercept = self.confidence_intervals()
        except AttributeError:
            return {}
        ends = [[float(low), float(high)] if np.isfinite(high - low) else None for low, high in coef]
        facts: JSONObject = {"coef_interval": ends, "intercept_interval": intercept.tolist()}
        facts["noise_share"] = [_short(value) for value in self._noise_share()]
        if len(self.coef_) <= MOST_SAVED_DRAWS:
            made = self._bootstrapped()
            draws = np.column_stack([made.weights, made.intercepts]).tolist()
            facts["bootstrap"] = {
                "draws": [[_short(value) for value in draw] for draw in draws],
                "variance": made.residual_variance,
                "identified": made.identified.tolist(),
            }
        return facts

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        if "noise_share" in facts:
            self._saved_share = np.array(facts["noise_share"], dtype=np.float64)
        if "coef_interval" in facts:
            ends = [[-np.inf, np.inf] if own is None else own for own in facts["coef_interval"]]
            self._saved_intervals = (
                np.array(ends, dtype=np.float64).reshape(len(self.coef_), 2),
                np.array(facts["intercept_interval"], dtype=np.float64).reshape(2),
            )
        if "bootstrap" in facts:
            own = facts["bootstrap"]
            draws = np.array(own["draws"], dtype=np.float64)
            known = np.array(own.get("identified", [True] * len(self.coef_)), dtype=np.bool_)
            self._bootstrap = Bootstrap(draws[:, :-1], draws[:, -1], float(own["variance"]), known)

    def _errors(self) -> tuple[Floats, Floats]:
        """Bootstrap errors of the coefficients (one row per draw) and of the intercepts, in the units of the table."""
        check_is_fitted(self)
        made = self._bootstrapped()
        shown = [self._geometry.table_units(w, float(b)) for w, b in zip(made.weights, made.intercepts, strict=True)]
        return self._half() * np.array([coef for coef, _ in shown]), self._half() * np.array(
            [intercept for _, intercept in shown]
        )

    def _noise_share(self) -> Floats:
        """The share of every coefficient's variance that is not sampling; NaN where it is not known."""
        if self._saved_share is not None:
            return self._saved_share
        made = self._bootstrapped()
        if made.sampling is None:
            return np.full(len(self.coef_), np.nan)
        alone = np.array([self._geometry.table_units(own, 0.0)[0] for own in made.sampling])
        whole = np.mean((self._errors()[0] / self._half()) ** 2, axis=0)
        share = 1 - np.mean(alone**2, axis=0) / np.maximum(whole, np.finfo(float).tiny)
        return np.asarray(np.clip(share, 0.0, 1.0), dtype=np.float64)

    def _bootstrapped(self) -> Bootstrap:
        if self._bootstrap is not None:
            return self._bootstrap
        result = self._result
        if result is None or getattr(result.released.value, "target_square", None) is None:
            raise AttributeError(
                f"Intervals were asked of a {type(self).__name__} that has none: it perturbs an objective, was loaded "
                "from a file, or its mechanism has a loss, calibration or release of its own. "
                "Fit it with intervals=True, and ask before saving."
            )
        functional = cast("FunctionalMechanism", result.mechanism)  # the only one that releases the target's square
        fit = cast("LinearFit", result.fit)
        self._bootstrap = bootstrap(functional, result.released, fit, self._geometry, result.problem)
        return self._bootstrap

    def _spread(self) -> float:
        return self._half() ** 2 * self._bootstrapped().residual_variance

    def _half(self) -> float:
        block = self._geometry.target
        assert block is not None
        return block.unit


def _short(value: float) -> float:
    """A number with as many digits as an interval needs."""
    return float(f"{value:.8g}")
