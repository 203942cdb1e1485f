"""What every private model shares: the order of a fit, from a table to a release, and who pays for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from privfit.mechanisms import Release
from privfit.mechanisms.base import STREAM_ROWS, AnyMechanism, Description, Mechanism, refuse_ledger
from privfit.mechanisms.unread import refuse_unread
from privfit.models.inputs import PUBLIC, Input, fit_input, missing_target
from privfit.models.left_out import public_rows, stating_rows_left_out, using_rows
from privfit.models.report import JSONObject, Report
from privfit.models.reporting import large_delta, public_facts, report_of_fit
from privfit.models.selectors import check_selector
from privfit.models.shown import ShownModel
from privfit.models.weights import WeightedTable, check_weights, with_weights
from privfit.privacy import (
    Budget,
    Ledger,
    PrivacyError,
    PrivacyParameters,
    PrivacyWarning,
    noise_source,
    process_ledger,
    warn_of_running_total,
)
from privfit.rows import Rows, memory_bytes, thread_count
from privfit.schema import Column, Geometry, Schema
from privfit.tables import MissingValues, TableLike

MechanismT = TypeVar("MechanismT", bound=AnyMechanism)
ProblemT = TypeVar("ProblemT")
FitT = TypeVar("FitT")
MechanismT_co = TypeVar("MechanismT_co", bound=AnyMechanism, covariant=True)


@dataclass(frozen=True)
class FitResult(Generic[MechanismT, ProblemT, FitT]):
    """What a mechanism was asked, what it released, and the fit that was computed from the release."""

    mechanism: MechanismT
    problem: ProblemT
    released: Release[Any]
    fit: FitT


@dataclass(frozen=True)
class _Stated(Generic[MechanismT, ProblemT]):
    """All that is settled before a fit reads its rows."""

    mechanism: MechanismT
    given: Input
    parameters: PrivacyParameters
    problem: ProblemT
    reasons: tuple[str, ...]
    ledger: Ledger | None
    rows: Rows


@dataclass(frozen=True)
class MechanismChoice(Generic[MechanismT_co]):
    """The mechanisms that an estimator knows by name, the kinds of problems that it can state (`Mechanism.solves`), and
    the classes whose instances it takes, as an error message lists them.
    """

    named: Mapping[str, AnyMechanism]
    kinds: tuple[str, ...]
    classes: str
    forms: Mapping[tuple[type, str], Callable[[Any], AnyMechanism]] = field(default_factory=dict)
    """How a mechanism for one kind of problem becomes one for another."""

    def choose(self, given: object, model: str) -> MechanismT_co:
        """The mechanism of this name, or the one given, in a form that solves a problem of this estimator."""
        found = self.named.get(given) if isinstance(given, str) else given
        if isinstance(found, Mechanism) and found.solves not in self.kinds:
            forms = (self.forms.get((base, kind)) for base in type(found).__mro__ for kind in self.kinds)
            found = next((form(found) for form in forms if form is not None), None)
        if not isinstance(found, Mechanism):
            raise PrivacyError(
                f"mechanism={given!r} was given to {model}; it knows {', '.join(map(repr, self.named))}, and "
                f"{self.classes}. Use 'auto' if in doubt."
            )
        return cast("MechanismT_co", found)


class PrivateModel(ShownModel, Generic[MechanismT, ProblemT, FitT]):
    """Base of all private estimators. A subclass is wiring: it names a mechanism, states a problem, keeps a fit.

    `fit` calls these methods of a subclass, in this order:

    1. `_chosen_mechanism()`: the mechanism, which `fit` checks.
    2. `_settled(mechanism, given, parameters)`: the mechanism, where that depends on the number of rows, and the table
       and schema as this model uses them. The default changes nothing.
    3. `_encoded(mechanism, given, parameters)`: the problem, and the geometry of encoded rows.
    4. `_keep(result)`: set the fitted attributes. `schema_` and `_geometry` are set already.
    5. `_described(result)` and `_public_facts()`: lines for the report. The mechanism describes itself by default.
    """

    _target: Literal["needed", "taken", "ignored"] = "needed"
    """Whether a target must be given, may be given, or is ignored."""
    _choices: ClassVar[dict[str, tuple[object, ...]]] = {}
    """Parameters that take one of a few values, and these values; the first is the one to use if in doubt."""
    _check_selectors: ClassVar[bool] = True
    """Whether a selector of columns that calls `fit` is checked before the charge."""
    _frames: ClassVar[int] = 1
    """How many calls the steps of a fit are away from the user's line, which warnings name."""
    _input: ClassVar[Callable[..., Input]] = staticmethod(fit_input)
    """The table and the schema of a fit."""
    _strict_names = False
    _by_position = False
    _public_array = False
    n_jobs: int | None = None
    max_memory: int | str | None = None
    schema_: Schema
    report_: Report
    _geometry: Geometry

    def fit(self, X: TableLike, y: ArrayLike | None = None) -> Self:
        """Fit the model on a table. The ledger is charged before any noise is drawn.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table: an array or sparse matrix, a pandas or polars frame or lazy query, anything that Arrow can
            stream, a DuckDB relation, or the path or address of a file, a folder or a database (docs/engines.md).
        y : array-like or None, default=None
            The target, unless X has a column with the name of the schema's target.

        Returns
        -------
        Self
            The fitted model.

        Raises
        ------
        DataError
            If the table does not fit the schema. Nothing is charged.
        BudgetExceeded
            If the ledger has less left than the fit costs. Nothing is charged and nothing is drawn.
        """
        weights = X.weights if isinstance(X, WeightedTable) else None
        with _unchanged_on_error(self):
            reasons = self._reasons_not_private()
            self._check_choices()
            parameters = PrivacyParameters(
                Budget(self.epsilon, self.delta), self.adjacency, self.rows_per_person, self.expected_rows
            )
            mechanism = self._chosen_mechanism()
            mechanism.check()
            if weights is not None:
                check_weights(self, mechanism)
            sampler = noise_source(self.random_state)
            if reasons:
                refuse_ledger(self.ledger, reasons)
            given = self._input(self, X.table if isinstance(X, WeightedTable) else X, y, mechanism.many_classes)
            declared = given.schema
            if weights is not None:
                given = with_weights(self, given, weights)
            if declared.leaves_out:
                given = using_rows(given, parameters, sampler, memory_bytes(self.max_memory))
            asked = partial(self._ask_ledger, mechanism, given, parameters, reasons)
            stated = self._stated(mechanism, replace(given, before_keeping=asked), parameters, reasons)
            mechanism, problem, ledger, rows = stated.mechanism, stated.problem, stated.ledger, stated.rows
            self.schema_, self._geometry = stated.given.schema, rows.geometry
            release = mechanism.release(rows, stated.parameters, ledger, sampler, problem)
            fit: FitT = mechanism.solve(release, rows.geometry, problem)
            result = FitResult(mechanism, problem, release, fit)
            if declared.leaves_out:
                self.schema_ = stating_rows_left_out(stated.given.schema, declared)
            self._strict_names, self._by_position = given.strict_names, given.by_position
            self._public_array = isinstance(self.schema, str) and given.table.names is None and self.schema == PUBLIC
            self._keep(result)
            n_rows = stated.parameters.expected_rows
            if stated.parameters.adjacency == "replace-one":
                n_rows = rows.slots if rows.leaves_out else rows.known_rows
            self.report_ = self._report(result, self._described(result), stated.reasons, n_rows, ledger)
            if self.ledger is None and ledger is not None:
                warn_of_running_total(ledger, self._frames)
            if self.adjacency == "replace-one" and n_rows and release.event.delta * n_rows > 1:
                warnings.warn(large_delta(release.event.delta, n_rows), PrivacyWarning, stacklevel=1 + self._frames)
        return self

    def _stated(
        self, mechanism: MechanismT, given: Input, parameters: PrivacyParameters, reasons: tuple[str, ...]
    ) -> _Stated[MechanismT, ProblemT]:
        """What a mechanism is asked, of which rows, and who pays."""
        mechanism, given = self._settled(mechanism, given, parameters)
        if given.declared is not None or given.weights is not None:
            parameters = mechanism.for_rows_left_out(parameters, public_rows(given, parameters))
        problem, geometry = self._encoded(mechanism, given, parameters)
        if given.selector is not None and self._check_selectors:
            check_selector(given.selector, self, mechanism, geometry, given)
        reasons = tuple(dict.fromkeys((*reasons, *mechanism.reasons_not_private(problem))))
        ledger = self._chosen_ledger(reasons, given.schema)
        memory = memory_bytes(self.max_memory)
        rows = Rows(given.table, given.schema, geometry, threads=self.n_jobs, max_memory=memory, weights=given.weights)
        return _Stated(mechanism, given, parameters, problem, reasons, ledger, rows)

    def _ask_ledger(
        self, mechanism: MechanismT, given: Input, parameters: PrivacyParameters, reasons: tuple[str, ...]
    ) -> None:
        """Could the ledger pay for a fit to as many rows as stand for those of a stream? A refusal leaves it unread."""
        guess = replace(given, stands_for=parameters.expected_rows or STREAM_ROWS)
        with suppress(PrivacyError):  # refused for so many rows, and perhaps not for as many as there are
            own = self._stated(mechanism, guess, parameters, reasons)
            refuse_unread(own.ledger, own.mechanism, own.problem, own.rows, own.parameters)

    # -- what a subclass states, in this order -----------------------------------------------------

    def _chosen_mechanism(self) -> MechanismT:
        """The mechanism."""
        raise NotImplementedError

    def _settled(self, mechanism: MechanismT, given: Input, parameters: PrivacyParameters) -> tuple[MechanismT, Input]:
        """The mechanism, where "auto" depends on the number of rows; the table and schema as this model uses them."""
        return mechanism, given

    def _encoded(self, mechanism: MechanismT, given: Input, parameters: PrivacyParameters) -> tuple[ProblemT, Geometry]:
        """What is minimised, counted or selected, and how rows are encoded for it."""
        raise NotImplementedError

    def _keep(self, result: FitResult[MechanismT, ProblemT, FitT]) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def _described(self, result: FitResult[MechanismT, ProblemT, FitT]) -> Description:
        """What was done to the release, and other notes for the report."""
        return result.mechanism.describe(result.fit, self.schema_, self._geometry)

    def _public_facts(self) -> tuple[str, ...]:
        """What was taken as public, for the report."""
        return public_facts(self.schema_, self.adjacency)

    # -- what all of them share --------------------------------------------------------------------

    @property
    def _is_classifier(self) -> bool:
        """Whether the target is a category."""
        return False

    def _instead(self) -> str:
        """What to do about more classes than can be fitted."""
        return "Fit one class against the rest, or join classes in the schema."

    def _hint_about_target(self, target: Column) -> str:
        """What else could be done about a target of the wrong kind."""
        return ""

    def _facts(self) -> JSONObject:
        """What a saved model holds beside coefficients, schema and report."""
        return {}

    def _restore_facts(self, facts: JSONObject) -> None:
        """Take back what `_facts` wrote."""

    @property
    def _importance_names(self) -> tuple[str, ...]:
        """Fitted attributes from which scikit-learn's selectors of columns can read importances."""
        return ()

    def _curved_later(self, mechanism: MechanismT) -> bool:
        """Whether a later fit with fewer columns may encode numbers as splines, if this one does not."""
        return False

    def _check_parameters(self, schema: Schema) -> None:
        """Refuse parameters that mean nothing for such a table, before one is opened or a ledger made."""
        self._check_choices()
        self._chosen_mechanism().check()

    def _check_choices(self) -> None:
        """Refuse a parameter that is none of the values it can take, and threads and memory that mean nothing."""
        for name, choices in self._choices.items():
            given = getattr(self, name)
            given = given.item() if isinstance(given, np.generic) else given
            if not any(type(given) is type(choice) and given == choice for choice in choices):
                raise PrivacyError(
                    f"{name}={given!r} was given; it is one of {choices}. Use {choices[0]!r} if in doubt."
                )
        thread_count(self.n_jobs)
        memory_bytes(self.max_memory)

    def _reasons_not_private(self) -> tuple[str, ...]:
        """Why no fit with these parameters is private, whatever the mechanism."""
        reasons = []
        if self.random_state is not None:
            reasons.append("random_state is set, so that the noise can be repeated and subtracted")
        if isinstance(self.schema, str) and self.schema == PUBLIC:
            reasons.append('schema="public": bounds, levels and classes were read from the table itself')
        return tuple(reasons)

    def _chosen_ledger(self, reasons: tuple[str, ...], schema: Schema) -> Ledger | None:
        """The user's ledger, or that of the process; None for a fit that is not private, which no ledger accepts."""
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise PrivacyError(
                f"ledger={type(self.ledger).__name__} was given; it is a pf.Ledger or None. Write "
                "ledger=pf.Ledger('people.db', epsilon=1.0)."
            )
        if reasons or _paid.get():
            refuse_ledger(self.ledger, reasons)
            return None
        ledger: Ledger = process_ledger() if self.ledger is None else self.ledger
        return ledger.describing(model=type(self).__name__, target=schema.target.name if schema.target else "")

    def _report(
        self,
        result: FitResult[MechanismT, ProblemT, FitT],
        described: Description,
        reasons: tuple[str, ...],
        public_rows: int | None,
        ledger: Ledger | None,
    ) -> Report:
        """What the fit says of itself, from public facts."""
        return report_of_fit(self, result, described, self._public_facts(), reasons, public_rows, ledger)


class WeightedFit:
    """A fit that takes weights of rows.

    Parameters
    ----------
    max_weight : float or None
        Public bound of `sample_weight`: larger weights count as this one, and noise grows with it. Needed where weights
        are given.
    """

    max_weight: float | None
    _frames: ClassVar[int] = 2

    def fit(self, X: TableLike, y: ArrayLike | None = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Fit the model on a table. The ledger is charged before any noise is drawn.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table: an array or sparse matrix, a pandas or polars frame or lazy query, anything that Arrow can
            stream, a DuckDB relation, or the path or address of a file, a folder or a database (docs/engines.md).
        y : array-like or None, default=None
            The target, unless X has a column with the name of the schema's target.
        sample_weight : array-like, str or None, default=None
            How much each row counts: one number of at least 0 per row, or the name of a column of the table. Weights
            are private and count up to `max_weight`.

        Returns
        -------
        Self
            The fitted model.

        Raises
        ------
        DataError
            If the table does not fit the schema, or a weight is negative or missing. Nothing is charged.
        PrivacyError
            If weights are given without `max_weight`, or to a mechanism that takes none. Nothing is read.
        BudgetExceeded
            If the ledger has less left than the fit costs. Nothing is charged and nothing is drawn.
        """
        table = X if sample_weight is None else WeightedTable(X, sample_weight)
        return super().fit(table, y)  # type: ignore[misc,no-any-return]


AnyModel = PrivateModel[Any, Any, Any]
_paid: ContextVar[bool] = ContextVar("privfit_paid", default=False)


@contextmanager
def paid_already() -> Iterator[None]:
    """While this is open, fits are steps of a release that has been paid for, and charge nothing themselves."""
    token = _paid.set(True)
    try:
        yield
    finally:
        _paid.reset(token)


@contextmanager
def _unchanged_on_error(model: AnyModel) -> Iterator[None]:
    """A fit that is refused leaves the model as it was. Missing targets are refused with advice that is sound for a
    target: a made-up value would change what is estimated.
    """
    before = dict(model.__dict__)
    try:
        yield
        return
    except BaseException as error:
        target = model.schema_.target if isinstance(error, MissingValues) and hasattr(model, "schema_") else None
        model.__dict__.clear()
        model.__dict__.update(before)
        if target is None or not isinstance(error, MissingValues) or error.column != target.name:
            raise
    raise missing_target(target)
