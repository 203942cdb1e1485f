"""What every private linear model shares: the way from a table to a release to coefficients. Wiring only."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privfit.losses import QuadraticLoss
from privfit.mechanisms import FunctionalMechanism, LinearFit, Objective, Release
from privfit.mechanisms.rules import Numbers
from privfit.models import saving
from privfit.models.inputs import PUBLIC, Input, fit_input, predict_table
from privfit.models.report import Report, make_report
from privfit.privacy import Budget, Ledger, PrivacyError, PrivacyWarning, Terms, noise_source, process_ledger, warn_of_running_total
from privfit.rows import Rows, linear_scores
from privfit.schema import AUTO_KNOTS, Category, Geometry, Numeric, Schema

Floats = NDArray[np.float64]


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Shared wiring of the linear models. Subclasses name a loss and turn weights into their own attributes."""

    _loss: QuadraticLoss
    _bootstrap: tuple[Floats, Floats, float] | None
    _kept_intervals: tuple[Floats, Floats]
    _mechanisms = "'auto', 'functional' and pf.FunctionalMechanism(...)"
    _strict_names = False
    _public_array = False

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

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit on a table. Charges the ledger before any noise is drawn.

        Parameters
        ----------
        X : an array, a pandas or polars frame, an Arrow table or stream, or the path of a Parquet or CSV file.
        y : the target, unless X has a column with the name of the schema's target.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, y)
        except BaseException:
            self.__dict__.clear()  # a refused fit leaves the model as it was
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Any, y: Any) -> None:
        terms = Terms(Budget(self.epsilon, self.delta), self.adjacency, self.rows_per_person, self.expected_rows)  # type: ignore[arg-type]
        mechanism = self._chosen_mechanism()
        noise = noise_source(self.random_state)
        reasons = self._reasons_not_private()
        ledger = self._chosen_ledger(reasons)
        given = self._prepared(fit_input(self, X, y, self.schema), mechanism)
        self._numeric_used, self._knots_used = self._numbers(mechanism, given, terms)
        objective = self._objective(mechanism, given.schema)
        geometry = mechanism.geometry(given.schema, self._numeric_used, objective)
        rows = Rows(given.table, given.schema, geometry)
        release = mechanism.release(rows, terms, ledger, noise, objective)
        if self.ledger is None and ledger is not None:
            warn_of_running_total(ledger)
        if terms.adjacency == "replace-one" and release.event.delta * rows.n_rows > 1:
            warnings.warn(
                f"delta={release.event.delta:g} is more than one in {rows.n_rows} rows: so large a chance to fail protects nobody in particular. "
                "Use a delta far below one over the number of rows, such as 1e-6.",
                PrivacyWarning,
                stacklevel=4,
            )
        fit = mechanism.solve(release, geometry, objective)
        self.schema_, self._geometry = given.schema, geometry
        self._strict_names = given.strict_names
        self._public_array = self._is_declared_public() and given.table.names is None
        self._keep(fit, mechanism)
        self._bootstrap = None
        self.__dict__.pop("_kept_intervals", None)
        self._released = self._kept_for_later(mechanism, release, fit, objective)
        self.report_ = self._report(mechanism, release, fit, reasons)

    # -- what subclasses say ----------------------------------------------------------------------------------------

    def _keep(self, fit: Any, mechanism: Any) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def _objective(self, mechanism: Any, schema: Schema) -> Any:
        """What is minimised."""
        return Objective(mechanism.loss or self._loss, self._checked_intercept())

    def _prepared(self, given: Input, mechanism: Any) -> Input:
        """The input, with its schema as this model wants it."""
        return given

    def _kept_for_later(self, mechanism: Any, release: Release[Any], fit: Any, objective: Any) -> Any:
        """What intervals are made from, if there are any."""
        return mechanism, release, fit, objective

    def _notes(self, mechanism: FunctionalMechanism) -> tuple[str, ...]:
        """Lines for the report."""
        return ()

    # -- choices ----------------------------------------------------------------------------------------------------

    def _chosen_mechanism(self) -> FunctionalMechanism:
        mechanism = FunctionalMechanism() if self.mechanism in ("auto", "functional") else self.mechanism
        if not isinstance(mechanism, FunctionalMechanism):
            raise PrivacyError(
                f"mechanism={self.mechanism!r} was given to {type(self).__name__}; it knows {self._mechanisms}. Use 'auto' if in doubt."
            )
        mechanism.check()
        return mechanism

    def _checked_intercept(self) -> bool:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise PrivacyError(f"fit_intercept={self.fit_intercept!r} was given; it is True or False. Write one of the two.")
        return bool(self.fit_intercept)

    def _numeric_style(self, mechanism: Any) -> Numbers:
        """How numbers without bins of their own are encoded. For moments, slopes: fewer values to release, one coefficient a column. For gradients, bins: as cheap, and they bend."""
        if self.numeric not in ("auto", "slope", "bins", "splines"):
            raise PrivacyError(f"numeric={self.numeric!r} was given; it is 'auto', 'slope', 'bins' or 'splines'. Use 'auto' if in doubt.")
        usual: Numbers = getattr(mechanism, "numeric", "slope")
        if self.numeric == "splines" and usual == "slope":
            raise PrivacyError(
                "numeric='splines' was given with a mechanism that releases moments, for which lines between knots cost too much. Use 'slope' or 'bins'."
            )
        return usual if self.numeric == "auto" else self.numeric  # type: ignore[return-value]

    def _numbers(self, mechanism: Any, given: Input, terms: Terms) -> tuple[Numbers, int]:
        """How numbers are encoded in this fit, and between how many knots if as splines."""
        return self._numeric_style(mechanism), AUTO_KNOTS

    def _is_declared_public(self) -> bool:
        return isinstance(self.schema, str) and self.schema == PUBLIC

    def _reasons_not_private(self) -> tuple[str, ...]:
        reasons = []
        if self.random_state is not None:
            reasons.append("random_state is set, so that the noise can be repeated and subtracted")
        if self._is_declared_public():
            reasons.append('schema="public": bounds, levels and classes were read from the table itself')
        return tuple(reasons)

    def _chosen_ledger(self, reasons: tuple[str, ...]) -> Ledger | None:
        """The user's ledger, or the process's own; none for a fit that is not private, which no ledger accepts."""
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise PrivacyError(
                f"ledger={type(self.ledger).__name__} was given; it is a pf.Ledger or None. Write ledger=pf.Ledger('people.db', epsilon=1.0)."
            )
        if not reasons:
            return self.ledger if self.ledger is not None else process_ledger()
        if self.ledger is not None:
            raise PrivacyError(
                f"A ledger was given to a fit that is not private ({'; '.join(reasons)}). A ledger takes private fits only: "
                "leave out random_state and give a schema of public facts, or leave out the ledger."
            )
        return None

    # -- results ----------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        table = predict_table(self, X)
        coef, intercept = np.atleast_2d(self.coef_), np.ravel(self.intercept_)
        if len(coef) == 1:
            return linear_scores(table, self.schema_, self._geometry, coef[0], float(intercept[0]))
        return linear_scores(table, self.schema_, self._geometry, coef.T, intercept).reshape(-1, len(coef))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the encoded columns, in the order of coef_: a number under its own name, a category as name_level."""
        check_is_fitted(self)
        return np.array(self._geometry.feature_names, dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file: coefficients, schema, report and version. Loading it runs no code."""
        check_is_fitted(self)
        saving.save(self, Path(path))

    def _report(self, mechanism: FunctionalMechanism, release: Release[Any], fit: LinearFit, reasons: tuple[str, ...]) -> Report:
        repairs, told = self._described(mechanism, fit)
        notes = [*self._notes(mechanism), *told]
        if self.delta and not release.event.delta:
            notes.append("delta was not spent: this noise needs epsilon alone")
        if not release.private and not reasons:
            reasons = ("the noise came from a source that is not secret",)
        return make_report(
            type(self).__name__, release.event, repairs=repairs, public=self._public_facts(), reasons=reasons, notes=tuple(notes)
        )

    def _described(self, mechanism: Any, fit: Any) -> tuple[dict[str, Any], list[str]]:
        """What was done to the noisy objective, for the report, and lines about it."""
        solution = fit.solution
        repairs = {
            "kind": str(mechanism.repair).lower(),
            "ridge": solution.ridge,
            "eigenvalues_changed": solution.eigenvalues_changed,
            "directions_kept": solution.directions_kept,
            "directions": len(solution.weights),
            "bounded": solution.bounded,
        }
        if mechanism.repair == "floor" and solution.directions_kept < len(solution.weights) / 2:
            return repairs, [
                "noise drowned more than half of the directions: what is left is mostly a cautious guess; more rows, fewer columns or a larger epsilon would help"
            ]
        return repairs, []

    def _public_facts(self) -> tuple[str, ...]:
        schema = self.schema_
        numeric = sum(isinstance(column, Numeric) for column in schema.features)
        categories = len(schema.features) - numeric
        facts = [f"bounds of {numeric} numeric column{'s' * (numeric != 1)}"] if numeric else []
        if categories:
            facts.append(f"levels of {categories} categor{'ies' if categories != 1 else 'y'}")
        facts.append("classes of the target" if isinstance(schema.target, Category) else "bounds of the target")
        if self.adjacency == "replace-one":
            facts.append("the number of rows")
        return tuple(facts)


def original_units(fit: LinearFit, geometry: Geometry) -> tuple[Floats, float]:
    """One coefficient per name in `geometry.feature_names`, and the intercept, for numbers in their own units."""
    return _shown(fit.weights, fit.intercept, geometry)


def shown_weights(weights: Floats, geometry: Geometry, fit_intercept: bool) -> tuple[Floats, float]:
    """The same from one weight per encoded column, the intercept's first. Without such a column the constant that categories carry becomes the intercept, if there is to be one."""
    if geometry.intercept:
        return _shown(weights[1:], float(weights[0]), geometry)
    if not fit_intercept:
        return _shown(weights, 0.0, geometry)
    intercept, centred = 0.0, weights.copy()
    for block in geometry.blocks:
        if block.kind in ("levels", "hats"):
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
