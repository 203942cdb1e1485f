"""Additive models under differential privacy: a curve per number, a value per level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privfit.losses import SQUARED
from privfit.mechanisms import ObjectivePerturbation, ObjectiveRegression, QuadraticProblem, RegressionFit
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.perturbation.defaults import REGRESSION_SLOPE_BELOW
from privfit.mechanisms.perturbation.shape_bands import NORMAL
from privfit.models._docs import documented
from privfit.models.base import PrivateLinearModel, public_rows
from privfit.models.inputs import Input
from privfit.models.logistic import LogisticRegression
from privfit.models.named import ADDITIVE
from privfit.models.pairs import pair_facts, restored_pairs
from privfit.models.perturbed import ERMResult, density_of
from privfit.models.pictures import drawn_shapes, maps_of
from privfit.models.private import FitResult, WeightedFit
from privfit.models.report import JSONObject
from privfit.models.shapes import (
    Bands,
    Monotone,
    Shape,
    band_facts,
    bands_of,
    check_monotone,
    made_monotone,
    restored_bands,
    shapes_of,
)
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.privacy.parts import Additive
from privfit.report.shapes import draw_shapes
from privfit.schema import AUTO_KNOTS, Geometry, Numeric, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
AdditiveResult = FitResult[ObjectiveRegression, QuadraticProblem, RegressionFit]


@documented
class AdditiveRegressor(
    WeightedFit,
    RegressorMixin,  # type: ignore[misc]
    PrivateLinearModel[ObjectiveRegression, QuadraticProblem, RegressionFit],
):
    """An additive model of a number, fitted under differential privacy.

    The prediction is a sum over columns: a curve for every number (linear B-splines with 8 knots), a value for every
    level of a category; and where rows and epsilon suffice of interaction terms, that is, tables for pairs of columns,
    which are chosen privately. It is fitted by a perturbed objective as `LinearRegression` is, and cut to the bounds of
    the target.

    Parameters
    ----------
    mechanism : {'auto', 'objective'} or ObjectiveRegression
        "auto" is "objective".
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own. "auto" is "slope" where rows times epsilon over
        columns is below 350, and splines with 8 knots from there on.
    interactions : int or 'auto'
        How many interaction terms are chosen privately and measured after the weights: tables for pairs of columns, and
        for numbers in fine steps. "auto" is two where rows times epsilon (over `rows_per_person`) are 30,000 or more,
        and four from 60,000 on; none below, where they are less than 1,000 per column, and where the number of rows is
        not known.
    monotone : dict of str to int, or None
        Names of numeric columns whose curves are made to rise (1) or fall (-1), after the fit, at no cost. They have no
        interaction terms.
    bands : bool
        Whether bands of curves are narrowed by sums over rows that are bought with 4% of epsilon. Without them bands
        allow for every table, also for one without a row at that value, and are wide.

    Attributes
    ----------
    shapes_ : dict of str to Shape
        What each column adds to the prediction: a grid, the values there without interaction terms, and the lower and
        upper ends of 90% bands for the noise alone.

    See Also
    --------
    LinearRegression : One slope per number.
    AdditiveClassifier : The same for classes.
    ObjectiveRegression : The mechanism.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove;
    docs/proofs/regression-objective.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 100).reshape(-1, 1)
    >>> y = np.abs(X[:, 0])
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.AdditiveRegressor(epsilon=1.0, schema=schema).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = PrivateLinearModel._choices | {"bands": (False, True)}
    _mechanisms = ADDITIVE
    _bands: Bands | None = None

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
        interactions: int | str = "auto",
        monotone: Monotone | None = None,
        bands: bool = False,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
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
        self.interactions = interactions
        self.monotone = monotone
        self.bands = bands

    def _chosen_mechanism(self) -> ObjectiveRegression:
        chosen = super()._chosen_mechanism()
        return replace(chosen, bands=bool(self.bands or chosen.bands))

    def _encoded(
        self, mechanism: ObjectiveRegression, given: Input, parameters: PrivacyParameters
    ) -> tuple[QuadraticProblem, Geometry]:
        check_monotone(self.monotone, given.schema)
        used, self._knots_used = self.numeric, AUTO_KNOTS
        if used == "auto":
            rows = public_rows(given, parameters)
            few = rows is not None and density_of(parameters, len(given.schema.features), rows) < REGRESSION_SLOPE_BELOW
            used = "slope" if few else "splines"
        self._numeric_used = used  # type: ignore[assignment]
        most, apart = None if given.weights is None else given.weights.most, tuple(self.monotone or ())
        problem = QuadraticProblem(
            SQUARED, bool(self.fit_intercept), max_weight=most, interactions=self.interactions, apart=apart
        )
        return problem, mechanism.geometry(given.schema, problem, self._numeric_used)

    def _keep(self, result: AdditiveResult) -> None:
        coef, intercept = self._geometry.table_units(result.fit.weights, result.fit.intercept)
        block = self._geometry.target
        assert block is not None
        curves = made_monotone(self._geometry, coef * block.unit, self.monotone or {})
        self._pairs = tuple(table.columns for table in result.fit.pairs)
        self.coef_ = np.concatenate([curves, *(table.scores * block.unit for table in result.fit.pairs)])
        self.intercept_ = intercept * block.unit + block.center
        assert result.fit.bands is not None
        half = result.fit.bands * block.unit
        self._bands = bands_of(self._geometry, coef * block.unit, half, self.monotone or {})

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def _facts(self) -> JSONObject:
        return band_facts(self._bands) | pair_facts(self._geometry, self._pairs)

    def _restore_facts(self, facts: JSONObject) -> None:
        self._bands = restored_bands(facts)
        self._pairs = restored_pairs(self._geometry, facts, len(self.coef_))

    @property
    def shapes_(self) -> dict[str, Shape]:
        """What each input column adds to the prediction.

        Returns
        -------
        dict of str to Shape
            By the name of the column: a grid, the values there about their mean, and ends of a band.
        """
        check_is_fitted(self)
        return shapes_of(self._geometry, self.coef_, self._bands)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the shapes with their bands, a panel per column, and interactions. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        shapes = drawn_shapes(self._geometry, self.coef_, self._pairs, self.shapes_)
        maps = maps_of(self._geometry, self.coef_, self._pairs)
        return draw_shapes({self._adds_to: shapes}, self._adds_to, path, maps)

    def predict(self, X: TableLike) -> Floats:
        """Predict the target of every row, within its bounds.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predictions, in the units of the target.
        """
        scores, target = self._scores(X), self.schema_.target
        assert isinstance(target, Numeric)
        return np.asarray(np.clip(scores, target.low, target.high), dtype=np.float64)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1, noise dominates the 200 rows of scikit-learn's check
        return tags


@documented
class AdditiveClassifier(LogisticRegression):
    """An additive model of classes, fitted under differential privacy.

    `LogisticRegression` with splines: log-odds are a sum over columns, a curve for every number and a value for every
    level, and of interaction terms that are chosen privately where rows and epsilon suffice.

    Parameters
    ----------
    monotone : dict of str to int, or None
        Names of numeric columns whose curves are made to rise (1) or fall (-1) in the log-odds of the last class, after
        the fit, at no cost; for two classes.

    Attributes
    ----------
    shapes_ : dict of str to Shape
        What each column adds to the predictor of the last class: a grid, the values there without interaction terms,
        and the lower and upper ends of 90% bands for the noise alone, which allow for every table and are wide.
    coef_interval_ : ndarray
        Not there, as `summary()` is not: what this model has are bands of curves. For intervals of coefficients fit
        `LogisticRegression(intervals=True, numeric="splines")`.
    intercept_interval_ : ndarray
        Not there either.

    See Also
    --------
    LogisticRegression : The same fit; with numeric="slope" it is logistic regression to the letter.
    AdditiveRegressor : The same for numbers.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/perturbation.md,
    Theorems 1 to 3, and docs/proofs/pairs.md, Theorems 1 and 2, for interactions.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 100).reshape(-1, 1)
    >>> y = np.where(np.abs(X[:, 0]) > 0.5, "far", "near")
    >>> schema = pf.Schema.box(-1, 1, target=["far", "near"])
    >>> model = pf.AdditiveClassifier(epsilon=1.0, schema=schema).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

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
        interactions: int | str = "auto",
        monotone: Monotone | None = None,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        PrivateLinearModel.__init__(
            self,
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
        self.interactions = interactions
        self.monotone = monotone

    _bands: Bands | None = None

    def _settled(
        self, mechanism: AnyMechanism, given: Input, parameters: PrivacyParameters
    ) -> tuple[AnyMechanism, Input]:
        check_monotone(self.monotone, given.schema)
        return super()._settled(mechanism, given, parameters)

    def _keep(self, result: ERMResult) -> None:
        super()._keep(result)
        first, self._bands = len(self._geometry.feature_names), None
        if isinstance(result.mechanism, ObjectivePerturbation):
            monotone = (self.monotone or {}) if len(self.coef_) == 1 else {}
            half = self._half_widths(result)
            self._bands = bands_of(self._geometry, self.coef_[-1, :first], half, monotone)
        if self.monotone and len(self.coef_) == 1:
            curves = made_monotone(self._geometry, self.coef_[0, :first], self.monotone)
            self.coef_ = np.concatenate([curves, self.coef_[0, first:]])[None, :]

    def _half_widths(self, result: ERMResult) -> Floats:
        """Half the widths of bands that hold for every table: the noise over the ridge, stretched as weights were."""
        noise = [part for part in result.released.event.main if isinstance(part, Additive)]
        half = NORMAL * max(part.sd for part in noise) / result.fit.ridge * max(result.fit.stretches, default=1.0)
        return np.full(self._geometry.n_columns - self._geometry.intercept, half)

    def _facts(self) -> JSONObject:
        return super()._facts() | band_facts(self._bands)

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        self._bands = restored_bands(facts)

    @property
    def shapes_(self) -> dict[str, Shape]:
        """What each input column adds to the predictor of the last class.

        Returns
        -------
        dict of str to Shape
            By the name of the column: a grid, the values there about their mean, and ends of a band.
        """
        check_is_fitted(self)
        return shapes_of(self._geometry, self.coef_[-1], self._bands)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the shapes with their bands, a panel per column, and interactions. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        shapes = drawn_shapes(self._geometry, self.coef_[-1], self._pairs, self.shapes_)
        maps = maps_of(self._geometry, self.coef_[-1], self._pairs)
        return draw_shapes({self._adds_to: shapes}, self._adds_to, path, maps)
