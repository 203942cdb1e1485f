"""Confidence intervals of linear models that perturb an objective: of coefficients, of predictions, and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.perturbation.bought_moments import shown_coefficients
from privfit.mechanisms.perturbation.certainty import Certainty, ellipse
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.with_intervals import WithIntervals
from privfit.models.base import PrivateLinearModel
from privfit.models.inputs import predict_table, predicting
from privfit.models.model_files import ModelFileError
from privfit.models.report import JSONObject
from privfit.models.summary import CoefficientTable
from privfit.privacy import PrivacyError
from privfit.rows import linear_scores
from privfit.schema import Geometry
from privfit.tables import TableLike

Floats = NDArray[np.float64]

USUAL_CONFIDENCE = 0.9
"""Of intervals where none is given: a convention, common in reports."""
MOST_SAVED = 200
"""Models with more coefficients are saved without intervals: the covariance has the square of that many numbers."""


@dataclass(frozen=True)
class ShownCertainty:
    """Covariances of the coefficients in the units of the table, and last of the intercept.

    `sampling` is of the rows being a sample, `added` of all that the mechanism adds; `identified` says which are.
    """

    sampling: Floats
    added: Floats
    identified: NDArray[np.bool_]

    @classmethod
    def of(cls, certainty: Certainty, geometry: Geometry, centred: bool, unit: float = 1.0) -> ShownCertainty:
        """From that of encoded weights, in units of the predictor's `unit`."""
        shown = shown_coefficients(geometry, centred)
        added = certainty.noise + certainty.shrinkage
        with np.errstate(all="ignore"):  # units can be as wide as floats
            sampling, added = (unit**2 * (shown @ own @ shown.T) for own in (certainty.sampling, added))
        return cls(sampling, added, certainty.identified(shown))

    @property
    def whole(self) -> Floats:
        """The covariance of all errors."""
        return self.sampling + self.added

    def half_widths(self, confidence: float) -> Floats:
        """Half the widths of intervals; infinite where a coefficient is not identified."""
        sds = np.sqrt(np.maximum(np.diag(self.whole), 0.0))
        return np.where(self.identified, normal_quantile(confidence) * sds, np.inf)

    @property
    def noise_share(self) -> Floats:
        """The share of every variance that the mechanism adds."""
        whole = np.diag(self.whole)
        return np.asarray(np.diag(self.added) / np.where(whole > 0, whole, 1.0), dtype=np.float64)

    def is_for(self, n: int) -> bool:
        """Whether it is about so many coefficients and intercepts."""
        return self.sampling.shape == self.added.shape == (n, n) and self.identified.shape == (n,)

    def to_dict(self) -> JSONObject:
        """As plain values."""
        return {name: _plain(getattr(self, name)) for name in ("sampling", "added", "identified")}

    @classmethod
    def from_dict(cls, plain: JSONObject) -> ShownCertainty:
        """From plain values."""
        sampling, added = (np.array(plain[name], dtype=np.float64) for name in ("sampling", "added"))
        return cls(sampling, added, np.array(plain["identified"], dtype=np.bool_))


class ModelWithIntervals(PrivateLinearModel[Any, Any, Any]):
    """A linear model that buys what intervals need, where they are asked for.

    Parameters
    ----------
    intervals : bool
        Whether intervals of coefficients and predictions will be asked for. True spends a quarter of epsilon on two
        matrices that they are computed from, takes numbers as slopes and leaves interaction terms out unless they are
        asked for by name; and undoes the shrinkage of the coefficients where noise allows.

    Attributes
    ----------
    coef_interval_ : ndarray of shape (n_columns, 2)
        90% confidence intervals of the coefficients, with `intervals=True`. From minus to plus infinity for a
        coefficient that is not identified at this epsilon.
    intercept_interval_ : ndarray of shape (2,)
        90% confidence interval of the intercept.
    """

    intervals: bool = False
    _choices: ClassVar[dict[str, tuple[object, ...]]] = {"intervals": (False, True)}
    _sure: ShownCertainty | None = None

    @property
    def coef_interval_(self) -> Floats:
        """90% confidence intervals of the coefficients.

        Returns
        -------
        ndarray of shape (n_columns, 2)
            Lower and upper ends.
        """
        return self.confidence_intervals()[0]

    @property
    def intercept_interval_(self) -> Floats:
        """90% confidence interval of the intercept.

        Returns
        -------
        ndarray of shape (2,)
            Lower and upper end.
        """
        return self.confidence_intervals()[1]

    def confidence_intervals(self, confidence: float = USUAL_CONFIDENCE) -> tuple[Floats, Floats]:
        """Compute confidence intervals of the coefficients and of the intercept.

        They count the sampling of rows, the noise of the mechanism, and what is not known of the shrinkage. Asking
        costs no privacy. A coefficient that is not identified at this epsilon has an infinite interval.

        Parameters
        ----------
        confidence : float, default=0.9
            Probability with which an interval covers the value in the population, between 0 and 1.

        Returns
        -------
        coef : ndarray of shape (n_columns, 2)
            Intervals of the coefficients.
        intercept : ndarray of shape (2,)
            Interval of the intercept.

        Raises
        ------
        AttributeError
            If the model was fitted without `intervals=True`.
        """
        reach = self._known().half_widths(confidence)
        centre = self._centre()
        ends = np.column_stack([centre - reach, centre + reach])
        return ends[:-1], ends[-1]

    @predicting
    def predict_interval(self, X: TableLike, confidence: float = USUAL_CONFIDENCE) -> Floats:
        """Compute an interval for what is predicted for every row.

        It is for the probability of the second class where the model has probabilities, for the score of other
        classifiers, and for the predicted mean or quantile of a number.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        confidence : float, default=0.9
            Probability with which an interval covers the value in the population, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends.

        Raises
        ------
        AttributeError
            If the model was fitted without `intervals=True`.
        """
        axes, reach = ellipse(self._known().whole), normal_quantile(confidence)
        table, centre = predict_table(self, X), self._centre()
        both = np.column_stack([centre, axes])
        scores = np.asarray(linear_scores(table, self.schema_, self._geometry, both[:-1], both[-1])).reshape(
            -1, both.shape[1]
        )
        half = reach * np.sqrt(np.sum(scores[:, 1:] ** 2, axis=1))
        return np.column_stack([self._predicted(scores[:, 0] + side * half) for side in (-1, 1)])

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
            If the model was fitted without `intervals=True`.
        """
        sure = self._known()
        reach, centre = sure.half_widths(confidence), self._centre()
        return self._table(np.column_stack([centre - reach, centre + reach]), sure.noise_share, confidence)

    def _table(self, ends: Floats, noise_share: Floats, confidence: float) -> CoefficientTable:
        """The summary, from intervals of the coefficients and last the intercept."""
        kept = slice(None) if self.fit_intercept else slice(-1)
        names = (*map(str, self.get_feature_names_out()), "intercept")
        target = self.schema_.target
        title = f"{type(self).__name__} of {'the target' if target is None else target.name}, {self._spent()}"
        return CoefficientTable(
            title,
            names[kept],
            self._centre()[kept],
            ends[kept],
            noise_share[kept],
            float(confidence),
            self._ratio_name(),
        )

    # -- what a model fills in -----------------------------------------------------------------------

    def _predicted(self, scores: Floats) -> Floats:
        """What a linear predictor stands for: an increasing function of it."""
        return scores

    def _ratio_name(self) -> str:
        """What the exponential of a coefficient is."""
        return ""

    # -- what is kept --------------------------------------------------------------------------------

    def _keep_certainty(self, certainty: Certainty, unit: float = 1.0) -> None:
        """Keep how sure the weights are, in the units of the table; `unit` is that of the predictor."""
        self._sure = ShownCertainty.of(certainty, self._geometry, bool(self.fit_intercept), unit)

    def _known(self) -> ShownCertainty:
        check_is_fitted(self)
        if "intervals" not in self.get_params():
            raise AttributeError(
                f"Intervals were asked of {type(self).__name__}, which has none: its curves have bands, in shapes_. "
                "For intervals of coefficients fit LogisticRegression(intervals=True, numeric='splines')."
            )
        if self._sure is None:
            raise AttributeError(
                f"Intervals were asked of a {type(self).__name__} that has none: it was fitted without intervals=True, "
                f"or saved with more than {MOST_SAVED} coefficients. Fit it with intervals=True."
            )
        return self._sure

    def _centre(self) -> Floats:
        return np.append(np.ravel(self.coef_), np.ravel(self.intercept_))

    def _spent(self) -> str:
        report = self.report_
        delta = f", delta {report.delta:g}" if report.delta else ""
        return f"epsilon {report.epsilon:g}{delta}" + ("" if report.private else ", NOT private")

    def _drawn_intervals(self) -> Floats | None:
        return None if self._sure is None else self.confidence_intervals()[0]

    def _facts(self) -> JSONObject:
        facts = super()._facts()
        if self._sure is None or len(self._sure.identified) > MOST_SAVED + 1:
            return facts
        return facts | {"certainty": self._sure.to_dict()}

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        self._sure = ShownCertainty.from_dict(facts["certainty"]) if "certainty" in facts else None
        n = self._centre().size
        if self._sure is not None and not self._sure.is_for(n):
            raise ModelFileError("The certainty of coefficients in a model file is that of other ones. Fit again.")


class ClassesWithIntervals(ModelWithIntervals):
    """A classifier by a perturbed objective, with intervals where they are asked for."""

    def _buying_intervals(self) -> Any:
        """The mechanism that buys matrices beside the weights."""
        if isinstance(asked := getattr(self, "class_weight", None), str):
            raise PrivacyError(
                f"intervals=True was given with class_weight={asked!r}; intervals are for rows that count by public "
                "numbers. Give class_weight a dict, or leave out one of the two. Nothing was charged."
            )
        chosen: Any = self._mechanisms.choose(self.mechanism, type(self).__name__)
        if isinstance(chosen, ObjectivePerturbation):
            terms = getattr(self, "interactions", None)
            fit = chosen.with_loss_as_given()
            chosen = fit if terms in (None, "auto") else fit.with_interactions(terms)
        return WithIntervals(chosen)


def normal_quantile(confidence: float) -> float:
    """How many standard deviations to both sides have this probability."""
    return float(norm.ppf((1 + checked_confidence(confidence)) / 2))


def checked_confidence(confidence: float) -> float:
    """A confidence, if it is one."""
    if not (isinstance(confidence, int | float) and 0 < confidence < 1):
        raise PrivacyError(
            f"confidence={confidence!r} was given; it is between 0 and 1. Use 0.9 for intervals that cover nine times "
            "in ten."
        )
    return float(confidence)


def _plain(values: NDArray[Any]) -> Any:
    """As lists, numbers with as many digits as an interval needs."""
    if values.dtype == np.bool_:
        return values.tolist()
    return [[float(f"{value:.8g}") for value in line] for line in values]
