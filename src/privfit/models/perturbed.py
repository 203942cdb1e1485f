"""What models share that are fitted by perturbing an objective or its minimum."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privfit.features import FourierFeatures, ShortenedRows
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms import BalancedPerturbation, ERMFit, ERMProblem, Perturbation
from privfit.mechanisms.base import AnyMechanism, Description, Numbers
from privfit.mechanisms.perturbation.certainty import Certainty
from privfit.mechanisms.perturbation.defaults import FEWER_KNOTS, NOISE_LIMIT, SLOPE_BELOW
from privfit.mechanisms.perturbation.problem import Coupling, coupling_for
from privfit.models.base import PrivateLinearModel
from privfit.models.features import USUAL_COMPONENTS, fourier_features, short_rows
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.left_out import public_rows
from privfit.models.model_files import ModelFileError
from privfit.models.named import PERTURBATIONS, ERMMechanism
from privfit.models.pairs import pair_facts, restored_pairs
from privfit.models.private import FitResult, MechanismChoice
from privfit.models.report import JSONObject
from privfit.models.weights import BALANCED, class_weights_of, takes_weights
from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.rows import feature_scores
from privfit.schema import AUTO_KNOTS, Category, Geometry, Numeric, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
ERMMechanismT = TypeVar("ERMMechanismT", bound=ERMMechanism)
ERMFitT = TypeVar("ERMFitT", bound=ERMFit)
ERMResult = FitResult[ERMMechanism, ERMProblem, ERMFit]

NOISY_NOTE = (
    "this fit is dominated by noise: the noise is large compared with the signal that so many rows can have, and "
    "predicted classes may be little better than guesses; more rows, fewer columns or a larger epsilon would help"
)


class PerturbedModel(PrivateLinearModel[ERMMechanismT, ERMProblem, ERMFitT]):
    """A model whose release is its weights.

    Parameters
    ----------
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own: one slope, one indicator per bin, or linear
        B-splines. "auto" is "slope" where rows times epsilon over columns is below 30, splines with 3 knots below 100,
        with 5 below 200, and with 8 from there on or where the number of rows is private; it is "slope"
        for the functional mechanism.
    kernel : {'linear', 'rbf'}
        "rbf" fits a linear model of random Fourier features, drawn from a public seed: a model that is nonlinear in all
        columns jointly.
    gamma : float or 'auto'
        For "rbf", the width of the kernel exp(-gamma |x - x'|^2) between encoded rows. "auto" is 4 over the number of
        columns, a category counting as three. With a kernel, numbers enter scaled to [-1, 1] unless `numeric` says
        otherwise.
    n_components : int
        For "rbf", the number of Fourier features. There is no intercept beside them.
    row_norm : float or None
        Public bound of the L2 norm of a row of numbers, such as 1 for normalised embeddings. Longer rows are scaled
        down to it when fitting, not when predicting. The noise then depends on this norm and not on the number of
        columns. It needs a schema such as `pf.Schema.box(-1, 1)`, whose columns are all numeric with the same bounds on
        both sides of zero; every column enters as a slope.
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = PrivateLinearModel._choices | {"kernel": ("linear", "rbf")}
    _mechanisms: ClassVar[MechanismChoice[AnyMechanism]] = PERTURBATIONS
    _loss: ClassVar[ConvexLoss]
    """The loss of a model that has a single one."""
    kernel: str = "linear"
    gamma: float | str = "auto"
    n_components: int = USUAL_COMPONENTS
    row_norm: float | None = None
    interactions: int | str | None = None
    """How many interaction terms were asked for; None for a model that has none."""
    intervals: bool = False
    """Whether intervals were asked for, of a model that has some (`ClassesWithIntervals`)."""
    coef_: Floats
    intercept_: Any  # a float for a number, an array for classes
    _features: FourierFeatures | None = None
    _slopes: tuple[float, float] | None = None
    """The constants of a tempered logistic loss that was minimised in place of the logistic one."""
    _softmax: bool = False

    def _chosen_mechanism(self) -> ERMMechanismT:
        if self.intervals:
            return self._buying_intervals()
        chosen: AnyMechanism = self._mechanisms.choose(self.mechanism, type(self).__name__)
        if "interactions" not in _parameters_of(type(self)):  # type: ignore[arg-type]  # a class can be hashed
            return cast("ERMMechanismT", chosen)
        number = cast("int | str", self.interactions)  # another one is refused with the mechanism's parameters
        if chosen.takes_interactions:
            named = not (isinstance(self.mechanism, str) and self.mechanism == "auto")
            return cast("ERMMechanismT", chosen if number == "auto" and named else chosen.with_interactions(number))
        if number not in ("auto", 0):
            raise PrivacyError(
                f"interactions={number!r} was given with mechanism={self.mechanism!r}; interaction terms go with a "
                "perturbed objective. Use mechanism='auto' or 'objective'."
            )
        return cast("ERMMechanismT", chosen)

    def _buying_intervals(self) -> ERMMechanismT:
        """The mechanism, which buys what intervals are computed from too."""
        raise NotImplementedError

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        """The loss, of a target scaled to [-1, 1] or of the classes -1 and 1."""
        return self._loss

    def _settled(
        self, mechanism: ERMMechanismT, given: Input, parameters: PrivacyParameters
    ) -> tuple[ERMMechanismT, Input]:
        """With counts of classes bought first, where they shall weigh alike."""
        return (self._weighed(mechanism) if getattr(self, "class_weight", None) is not None else mechanism), given

    def _weighed(self, mechanism: ERMMechanismT) -> ERMMechanismT:
        """The mechanism, or, for classes that shall weigh alike, one that buys their counts before it."""
        asked, takes = (
            getattr(self, "class_weight", None),
            isinstance(mechanism, Perturbation) and takes_weights(mechanism),
        )
        if not (isinstance(asked, str) and asked == BALANCED and takes):
            return mechanism
        return cast("ERMMechanismT", BalancedPerturbation(fit=cast("Perturbation", mechanism)))

    def _encoded(
        self, mechanism: ERMMechanismT, given: Input, parameters: PrivacyParameters
    ) -> tuple[ERMProblem, Geometry]:
        self._numeric_used, self._knots_used = self._numbers(mechanism, given, parameters)
        problem = self._problem(mechanism, given.schema, self._numeric_used, self._knots_used)
        if given.weights is not None:
            problem = replace(problem, max_weight=given.weights.most)
        return problem, mechanism.geometry(given.schema, problem, self._numeric_used)

    def _numbers(self, mechanism: ERMMechanismT, given: Input, parameters: PrivacyParameters) -> tuple[Numbers, int]:
        """How numbers without bins of their own are encoded, and between how many knots if as splines."""
        if self.numeric != "auto":
            return mechanism.numbers(self.numeric, cast("Numbers", self.numeric)), AUTO_KNOTS
        if self.kernel != "linear" or self.row_norm is not None:
            return "slope", AUTO_KNOTS  # a kernel is nonlinear by itself, and a norm is one of slopes
        if not mechanism.chooses_encoding:
            return mechanism.numbers(self.numeric, mechanism.numeric), AUTO_KNOTS
        return automatic_numbers(parameters, len(given.schema.features), public_rows(given, parameters))

    def _problem(
        self, mechanism: ERMMechanismT, schema: Schema, numeric: Numbers = "slope", knots: int = AUTO_KNOTS
    ) -> ERMProblem:
        """What is minimised."""
        target, loss = schema.target, self._convex_loss(schema)
        classes = len(target.levels) if isinstance(target, Category) and len(target.levels) > 2 else 1
        features: FourierFeatures | ShortenedRows | None = None
        if self.row_norm is not None:
            features = short_rows(self, mechanism, schema)
        elif self.kernel != "linear":
            features = fourier_features(self, schema, numeric, knots)
        coupling: Coupling = "one" if classes == 1 else coupling_for(loss, classes)
        asked = getattr(self, "class_weight", None)
        weights = () if asked is None else class_weights_of(self, asked, mechanism, schema)
        return ERMProblem(loss, bool(self.fit_intercept), classes, coupling, features, knots, class_weights=weights)

    def _check_parameters(self, schema: Schema) -> None:
        super()._check_parameters(schema)
        self._problem(self._chosen_mechanism(), schema)

    @property
    def _importance_names(self) -> tuple[str, ...]:
        return ("coef_", "feature_importances_") if self.kernel == "linear" else ()

    # -- results -----------------------------------------------------------------------------------

    def _keep(self, result: FitResult[ERMMechanismT, ERMProblem, ERMFitT]) -> None:
        """coef_ and intercept_, one row per predictor, and what they need to predict."""
        fit = result.fit
        self._pairs = tuple(table.columns for table in fit.pairs)
        self._features = fit.features if isinstance(fit.features, FourierFeatures) else None
        if isinstance(fit.features, ShortenedRows):
            self._keep_slopes(fit.weights.T, fit.features)
        elif fit.features is not None:
            self.coef_, self.intercept_ = fit.weights.T.copy(), np.zeros(fit.weights.shape[1])
        else:
            shown = [table_units(weights, self._geometry, bool(self.fit_intercept)) for weights in fit.weights.T]
            cells = [table.scores for table in fit.pairs]
            self.coef_ = np.array([np.concatenate([coef, *cells]) for coef, _ in shown])
            self.intercept_ = np.array([intercept for _, intercept in shown])
        tempered = result.problem.loss == LOGISTIC and fit.loss != LOGISTIC
        self._slopes = (float(fit.loss.most_slope or 1), float(fit.loss.taper or 1)) if tempered else None
        self._softmax = fit.coupling == "softmax"
        self.__dict__.pop("_sure", None)  # of an earlier fit
        if fit.certainty is not None:
            self._keep_certainty(fit.certainty)

    def _keep_certainty(self, certainty: Certainty) -> None:
        """Keep how sure the weights are, where that was bought."""
        raise NotImplementedError

    def _keep_slopes(self, weights: Floats, rows: ShortenedRows) -> None:
        """Coefficients of rows whose norm is bounded."""
        bound = next(column.high for column in self.schema_.features if isinstance(column, Numeric))
        self.coef_ = weights[:, int(rows.constant) :] / (bound * rows.unit)
        self.intercept_ = weights[:, 0].copy() if rows.constant else np.zeros(len(weights))

    def _described(self, result: FitResult[ERMMechanismT, ERMProblem, ERMFitT]) -> Description:
        described = result.mechanism.describe(result.fit, self.schema_, self._geometry)
        repairs, notes = dict(described.repairs), list(described.notes)
        if self.row_norm is not None:
            notes.insert(
                0, f"rows with a norm above {self.row_norm:g}, which is taken as public, were scaled down to it"
            )
        if isinstance(given := getattr(self, "class_weight", None), dict):
            told = ", ".join(f"{level} {weight:g}" for level, weight in given.items())
            notes.append(f"rows count by class, by weights that are taken as public: {told}")
        if isinstance(self.schema_.target, Category):  # the rule was found for classes
            level = result.mechanism.relative_noise(result.fit, result.released.event, self._geometry)
            if level is not None:
                repairs["relative_noise"] = level
                notes += [NOISY_NOTE] * (level > NOISE_LIMIT)
        return Description(repairs, tuple(notes))

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each input column, in the order of the schema's features.

        As for every linear model. The features of a kernel mix all columns, so a model with a kernel has no
        importances.

        Returns
        -------
        ndarray of shape (n_features_in_,)
            One importance per input column.
        """
        if self._features is not None:
            raise AttributeError(
                "feature_importances_ was asked of a model with a kernel, whose features mix all columns. Fit one with "
                "kernel='linear'."
            )
        return super().feature_importances_

    @predicting
    def _scores(self, X: TableLike) -> Floats:
        features = self._features
        if features is None:
            return super()._scores(X)
        table = predict_table(self, X)
        scores = feature_scores(table, self.schema_, self._geometry, features, self.coef_.T, self.intercept_)
        return scores[:, 0] if len(self.coef_) == 1 and scores.ndim > 1 else scores

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns of `coef_`.

        A numeric column keeps its own name; a category has one column per level, called name_level; a cell of an
        interaction has both names; the features of a kernel are numbered.

        Parameters
        ----------
        input_features : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        ndarray of object
            One name per column of `coef_`.
        """
        features = self._features
        if features is None:
            return super().get_feature_names_out(input_features)
        return np.array([f"{wave}_{i}" for wave in ("cos", "sin") for i in range(features.pairs)], dtype=object)

    def _facts(self) -> JSONObject:
        """What a saved model carries besides coefficients, schema and report."""
        features = self._features
        if features is not None:
            return {"fourier": [features.columns, features.pairs, features.gamma, features.seed]}
        return pair_facts(self._geometry, self._pairs)

    def _restore_facts(self, facts: JSONObject) -> None:
        width = np.atleast_2d(self.coef_).shape[1]
        if "fourier" in facts:
            columns, pairs, gamma, seed = facts["fourier"]
            if 2 * pairs != width or columns != self._geometry.n_columns - self._geometry.intercept:
                raise ModelFileError("The features of a model file do not go with its coefficients. Fit again.")
            self._features = FourierFeatures(int(columns), int(pairs), float(gamma), int(seed))
        self._pairs = restored_pairs(self._geometry, facts, width)


AnyPerturbedModel = PerturbedModel[Any, Any]


@cache
def _parameters_of(model: type[AnyPerturbedModel]) -> frozenset[str]:
    """The names of the constructor's parameters, which every fit asks about."""
    return frozenset(model._get_param_names())


def automatic_numbers(parameters: PrivacyParameters, columns: int, n_rows: int | None) -> tuple[Numbers, int]:
    """How numbers enter where nobody says, and with how many knots: with fewer where rows times epsilon per column are
    few, from public facts.
    """
    if n_rows is None:
        return "splines", AUTO_KNOTS
    density = density_of(parameters, columns, n_rows)
    if density < SLOPE_BELOW:
        return "slope", AUTO_KNOTS
    return "splines", next((knots for below, knots in FEWER_KNOTS if density < below), AUTO_KNOTS)


def density_of(parameters: PrivacyParameters, columns: int, n_rows: int) -> float:
    """Rows times epsilon, per column and over rows per person."""
    return n_rows * parameters.budget.epsilon / (columns * parameters.rows_per_person)


def table_units(weights: Floats, geometry: Geometry, fit_intercept: bool) -> tuple[Floats, float]:
    """Coefficients and intercept in the units of the table, from one weight per encoded column, that of the constant
    first. Without a constant, what the levels and splines have in common becomes the intercept, if there is to be one.
    """
    if geometry.intercept:
        return geometry.table_units(weights[1:], float(weights[0]))
    if not fit_intercept:
        return geometry.table_units(weights, 0.0)
    intercept, centred = 0.0, weights.copy()
    for block in geometry.blocks:
        if block.kind in ("levels", "spline", "spline-or-missing"):
            mean = float(np.mean(weights[block.start : block.stop]))
            centred[block.start : block.stop] -= mean
            intercept += mean
    return geometry.table_units(centred, intercept)
