"""What every private linear model shares: constructor, encoding, predictions, names and saving."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.losses import QuadraticLoss
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import AnyMechanism, Numbers
from privfit.models import saving
from privfit.models.importances import column_importances
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.named import MomentMechanism
from privfit.models.pairs import cell_names
from privfit.models.pictures import draw_linear
from privfit.models.private import FitT, MechanismChoice, MechanismT, PrivateModel, ProblemT, WeightedFit
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.rows import Pair, count_rows, linear_scores
from privfit.schema import AUTO_KNOTS, Geometry, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
MomentMechanismT = TypeVar("MomentMechanismT", bound=MomentMechanism)


class PrivateLinearModel(PrivateModel[MechanismT, ProblemT, FitT]):
    """Base of the linear models: encoded columns, coefficients in the units of the table, predictions.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        One coefficient per name in `get_feature_names_out()`, in the units of the table.
    intercept_ : float
        The intercept, in the units of the target.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much each input column contributes to the linear predictor.
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = {
        "numeric": ("auto", "slope", "bins", "splines"),
        "fit_intercept": (True, False),
    }
    _mechanisms: ClassVar[MechanismChoice[AnyMechanism]]
    """The mechanisms that it knows."""
    classes_: NDArray[Any]
    _pairs: tuple[Pair, ...] = ()
    """The columns of interaction terms, whose coefficients follow those of the encoded columns."""
    _numeric_used: Numbers
    _knots_used: int

    def __init__(
        self,
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
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
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
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> MechanismT:
        return cast("MechanismT", self._mechanisms.choose(self.mechanism, type(self).__name__))

    @property
    def _importance_names(self) -> tuple[str, ...]:
        return ("coef_", "feature_importances_")

    def _curved_later(self, mechanism: MechanismT) -> bool:
        return self.numeric == "auto" and mechanism.numeric != "slope"

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
        return column_importances(self._geometry, np.atleast_2d(self.coef_), self._pairs)

    @predicting
    def _scores(self, X: TableLike) -> Floats:
        check_is_fitted(self)
        table = predict_table(self, X)
        coef, intercept = np.atleast_2d(self.coef_), np.ravel(self.intercept_)
        if len(coef) == 1:
            return linear_scores(table, self.schema_, self._geometry, coef[0], float(intercept[0]), self._pairs)
        return linear_scores(table, self.schema_, self._geometry, coef.T, intercept).reshape(-1, len(coef))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the encoded columns, in the order of `coef_`.

        A numeric column keeps its own name; a category has one column per level, called name_level; a cell of an
        interaction has both names.

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
        names = np.array(self._geometry.feature_names, dtype=object)
        return np.concatenate([names, *cell_names(self._geometry, self._pairs)])

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the coefficients, with their intervals where the model has them. Needs the extra `plots`.

        A number's coefficient is shown times its public range, so that columns in different units are comparable. Where
        numbers have curves or bins there is a panel for each column instead, and a heat map for each pair of columns.
        Nothing is computed from rows.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        check_is_fitted(self)
        if getattr(self, "_features", None) is not None:
            raise AttributeError(
                "plot was asked of a model with a kernel, whose features mix all columns. Fit one with kernel='linear'."
            )
        coef, intervals = np.atleast_2d(self.coef_), self._drawn_intervals()
        if len(coef) == 1:
            return draw_linear(self._geometry, coef, intervals, [self._adds_to], self._adds_to, self._pairs, path)
        titles, label = [str(one) for one in self.classes_], "adds to the score of the class, above the mean of classes"
        return draw_linear(self._geometry, coef - coef.mean(axis=0), None, titles, label, self._pairs, path)

    @property
    def _adds_to(self) -> str:
        """What a coefficient adds to, in words."""
        target = self.schema_.target
        if hasattr(self, "classes_"):
            return f"adds to the score of {self.classes_[-1]}"
        return f"adds to {'the prediction' if target is None else target.name}"

    def _drawn_intervals(self) -> Floats | None:
        """Intervals of the coefficients, if there are any."""
        return None

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

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        """Take back saved coefficients, as flat arrays."""
        raise NotImplementedError


class MomentModel(PrivateLinearModel[MomentMechanismT, QuadraticProblem, FitT]):
    """Base of the models that are fitted from noisy moments: a loss of degree two, numbers as slopes or bins."""

    _loss: QuadraticLoss

    def _encoded(
        self, mechanism: MomentMechanismT, given: Input, parameters: PrivacyParameters
    ) -> tuple[QuadraticProblem, Geometry]:
        if self.numeric == "splines" and not mechanism.takes_splines:
            raise PrivacyError(
                "numeric='splines' was given with a mechanism that releases moments, for which splines need too many "
                "values. Use 'slope' or 'bins'."
            )
        self._numeric_used, self._knots_used = _numbers(self.numeric), AUTO_KNOTS
        most = None if given.weights is None else given.weights.most
        problem = mechanism.settle(replace(self._problem(), max_weight=most))
        return problem, mechanism.geometry(given.schema, problem, self._numeric_used)

    def _check_parameters(self, schema: Schema) -> None:
        super()._check_parameters(schema)
        self._problem()

    def _problem(self) -> QuadraticProblem:
        """What is minimised."""
        return QuadraticProblem(self._loss, bool(self.fit_intercept))


def public_rows(given: Input, parameters: PrivacyParameters) -> int | None:
    """The number of rows where that is public and can be counted, as it cannot for a stream; else the user's guess, or
    None.
    """
    if parameters.adjacency == "add-remove":
        return parameters.expected_rows
    counted = count_rows(given.table, given.schema)
    return parameters.expected_rows if counted is None else counted


def _numbers(asked: str) -> Numbers:
    """How numbers enter least squares: as slopes where nobody says."""
    return "slope" if asked == "auto" else cast("Numbers", asked)


class WeighedClasses(WeightedFit):
    """A classifier whose rows and classes can have weights.

    Parameters
    ----------
    class_weight : dict, 'balanced' or None
        How much rows of each class count: public numbers by class, where a class that is not named counts 1; noise is
        for the largest. "balanced" lets classes weigh alike, and buys noisy counts of them with 3% of epsilon. Weights
        of rows multiply it.
    """

    class_weight: dict[Any, float] | str | None = None
