"""What every private linear model shares: the way from a table to a release to coefficients. Wiring only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.losses import QuadraticLoss
from privfit.mechanisms import LinearFit, QuadraticProblem, Release
from privfit.mechanisms.base import AnyMechanism, Numbers
from privfit.mechanisms.named import MOMENTS, Named, mechanism_for
from privfit.models import saving
from privfit.models.importances import column_importances
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.private import PrivateModel
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters
from privfit.rows import linear_scores
from privfit.schema import AUTO_KNOTS, Geometry, Schema

Floats = NDArray[np.float64]


class PrivateLinearModel(PrivateModel):
    """Shared wiring of the linear models. Subclasses name a loss and turn weights into their own attributes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        One coefficient per name in `get_feature_names_out()`, in the units of the table.
    intercept_ : float
        The intercept, in the units of the target.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much each input column contributes to the linear predictor.
    """

    _loss: QuadraticLoss
    _bootstrap: tuple[Floats, Floats, float] | None
    _kept_intervals: tuple[Floats, Floats]
    _named: Named = MOMENTS
    _kinds: tuple[str, ...] = ("moments",)
    """Which mechanisms it knows by name, and which kinds of problems it can state."""
    _mechanisms = "'auto', 'functional' and pf.FunctionalMechanism(...)"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
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
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.numeric = numeric
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _encoded(self, mechanism: AnyMechanism, given: Input, terms: PrivacyParameters) -> tuple[Any, Geometry]:
        self._numeric_used, self._knots_used = self._numbers(mechanism, given, terms)
        objective = self._objective(mechanism, given.schema)
        self._bootstrap = None
        self.__dict__.pop("_kept_intervals", None)
        return objective, mechanism.geometry(given.schema, objective, self._numeric_used)

    # -- what subclasses say -----------------------------------------------------------------------

    def _objective(self, mechanism: AnyMechanism, schema: Schema) -> Any:
        """What is minimised."""
        return mechanism.settle(QuadraticProblem(self._loss, self._checked_intercept()))

    def _kept_for_later(self, mechanism: AnyMechanism, release: Release[Any], fit: Any, objective: Any) -> Any:
        """What intervals are made from, if there are any."""
        return mechanism, release, fit, objective

    def _mixes_columns(self) -> bool:
        """Whether coefficients belong to features that mix all columns, as those of a kernel do."""
        return False

    def _importance_names(self) -> tuple[str, ...]:
        return () if self._mixes_columns() else ("coef_", "feature_importances_")

    def _may_bend(self, mechanism: AnyMechanism) -> bool:
        return self.numeric == "auto" and mechanism.numeric != "slope"

    # -- choices -----------------------------------------------------------------------------------

    def _chosen_mechanism(self) -> AnyMechanism:
        mechanism = mechanism_for(self.mechanism, self._named, self._kinds)
        if mechanism is None:
            raise PrivacyError(
                f"mechanism={self.mechanism!r} was given to {type(self).__name__}; it knows {self._mechanisms}. Use "
                "'auto' if in doubt."
            )
        mechanism.check()
        return mechanism

    def _checked_intercept(self) -> bool:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise PrivacyError(
                f"fit_intercept={self.fit_intercept!r} was given; it is True or False. Write one of the two."
            )
        return bool(self.fit_intercept)

    def _numeric_style(self, mechanism: AnyMechanism) -> Numbers:
        """How numbers without bins of their own are encoded.

        For moments, slopes: fewer values to release, one coefficient a column. For gradients, bins: as cheap, and they
        bend.
        """
        if self.numeric not in ("auto", "slope", "bins", "splines"):
            raise PrivacyError(
                f"numeric={self.numeric!r} was given; it is 'auto', 'slope', 'bins' or 'splines'. Use 'auto' if in "
                "doubt."
            )
        usual = mechanism.numeric
        if self.numeric == "splines" and usual == "slope":
            raise PrivacyError(
                "numeric='splines' was given with a mechanism that releases moments, for which lines between knots "
                "cost too much. Use 'slope' or 'bins'."
            )
        return usual if self.numeric == "auto" else self.numeric  # type: ignore[return-value]

    def _numbers(self, mechanism: AnyMechanism, given: Input, terms: PrivacyParameters) -> tuple[Numbers, int]:
        """How numbers are encoded in this fit, and between how many knots if as splines."""
        return self._numeric_style(mechanism), AUTO_KNOTS

    # -- results -----------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each input column, in the order of the schema's features.

        The standard deviation of the column's contribution to the linear predictor if its values were spread evenly
        over its public bounds or levels; for several classes, the root mean square over their predictors. It follows
        from `coef_` and the schema, so it costs no privacy. The importances are not scaled to sum to 1. A column
        without any effect is not at 0 but at the level of the noise. scikit-learn's selectors take it with
        `importance_getter="feature_importances_"`.

        Returns
        -------
        ndarray of shape (n_features_in_,)
            One importance per input column.
        """
        check_is_fitted(self)
        return column_importances(self._geometry, np.atleast_2d(self.coef_), getattr(self, "_pairs", ()))

    @predicting
    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        table = predict_table(self, X)
        coef, intercept = np.atleast_2d(self.coef_), np.ravel(self.intercept_)
        if len(coef) == 1:
            return linear_scores(
                table, self.schema_, self._geometry, coef[0], float(intercept[0]), getattr(self, "_pairs", ())
            )
        return linear_scores(table, self.schema_, self._geometry, coef.T, intercept).reshape(-1, len(coef))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the encoded columns, in the order of `coef_`.

        A numeric column keeps its own name; a category has one column per level, called name_level.

        Parameters
        ----------
        input_features : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        ndarray of object
            One name per encoded column.
        """
        check_is_fitted(self)
        return np.array(self._geometry.feature_names, dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file: coefficients, schema, report and version.

        Loading it runs no code. The ledger, the mechanism and a loss of the user's own are not in the file.

        Parameters
        ----------
        path : str or Path
            The file to write.

        See Also
        --------
        load_model : Read the model again.
        """
        check_is_fitted(self)
        saving.save(self, Path(path))


def original_units(fit: LinearFit, geometry: Geometry) -> tuple[Floats, float]:
    """One coefficient per name in `geometry.feature_names`, and the intercept, for numbers in their own units."""
    return _shown(fit.weights, fit.intercept, geometry)


def shown_weights(weights: Floats, geometry: Geometry, fit_intercept: bool) -> tuple[Floats, float]:
    """The same from one weight per encoded column, the intercept's first.

    Without such a column the constant that categories carry becomes the intercept, if there is to be one.
    """
    if geometry.intercept:
        return _shown(weights[1:], float(weights[0]), geometry)
    if not fit_intercept:
        return _shown(weights, 0.0, geometry)
    intercept, centred = 0.0, weights.copy()
    for block in geometry.blocks:
        if block.kind in ("levels", "spline"):
            mean = float(np.mean(weights[block.start : block.stop]))
            centred[block.start : block.stop] -= mean
            intercept += mean
    return _shown(centred, intercept, geometry)


def _shown(weights: Floats, intercept: float, geometry: Geometry) -> tuple[Floats, float]:
    offset = int(geometry.intercept)
    coef: list[float] = []
    for block in geometry.blocks:
        own = weights[block.start - offset : block.stop - offset].tolist()
        if block.kind in ("slope", "share"):
            coef.append(own[0] / block.unit)
            intercept -= own[0] * block.center / block.unit
        elif block.kind == "sign":
            coef.extend([-own[0], own[0]])
        elif block.kind == "indicators":
            coef.extend([*own, 0.0])
        else:
            coef.extend(own)
    return np.array(coef), float(intercept)
