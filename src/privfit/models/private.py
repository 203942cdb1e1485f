"""What every private model shares: the way from a table to a release, and who pays for it. Wiring only."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator

from privfit.mechanisms import Release
from privfit.mechanisms.base import AnyMechanism, refuse_ledger
from privfit.models.cautions import cautions
from privfit.models.inputs import PUBLIC, Input, advising_about_target, fit_input
from privfit.models.report import Report, make_report
from privfit.models.selectors import check_selector
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
from privfit.rows import Rows
from privfit.schema import Category, Column, Geometry, Numeric, Schema


class PrivateModel(BaseEstimator):  # type: ignore[misc]
    """Shared wiring. Subclasses choose a mechanism, say what it minimises or selects, and keep what it releases."""

    _strict_names = False
    _by_position = False
    _public_array = False
    _released: Any
    _target: Literal["needed", "taken", "ignored"] = "needed"
    """Whether there must be a target, may be one, or is none, whatever is given."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model on a table. The ledger is charged before any noise is drawn.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table: a numpy array, a pandas or polars frame or lazy query, anything that Arrow can stream, a DuckDB
            relation, or the path of a Parquet or CSV file.
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
        before = dict(self.__dict__)
        try:
            self._fit(X, y)
        except BaseException:
            self.__dict__.clear()  # a refused fit leaves the model as it was
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Any, y: Any) -> None:
        terms = PrivacyParameters(
            Budget(self.epsilon, self.delta), self.adjacency, self.rows_per_person, self.expected_rows
        )
        mechanism = self._chosen_mechanism()
        noise = noise_source(self.random_state)
        reasons = (*self._reasons_not_private(), *self._reasons_of(mechanism))
        ledger = self._chosen_ledger(reasons)
        given = self._prepared(fit_input(self, X, y, self.schema), mechanism)
        objective, geometry = self._encoded(mechanism, given, terms)
        self._check_selector(mechanism, given, geometry)
        rows = Rows(given.table, given.schema, geometry)
        account = (
            None if ledger is None else ledger.describing(model=type(self).__name__, target=_target_name(given.schema))
        )
        with advising_about_target(given.schema.target):
            release = mechanism.release(rows, terms, account, noise, objective)
        if self.ledger is None and ledger is not None:
            warn_of_running_total(ledger)
        if terms.adjacency == "replace-one" and release.event.delta * rows.n_rows > 1:
            warnings.warn(
                f"delta={release.event.delta:g} is more than one in {rows.n_rows} rows: so large a chance to fail "
                "protects nobody in particular. "
                "Use a delta far below one over the number of rows, such as 1e-6.",
                PrivacyWarning,
                stacklevel=4,
            )
        fit = mechanism.solve(release, geometry, objective)
        self.schema_, self._geometry = given.schema, geometry
        self._strict_names, self._by_position = given.strict_names, given.by_position
        self._public_array = self._is_declared_public() and given.table.names is None
        self._keep(fit, mechanism)
        self._released = self._kept_for_later(mechanism, release, fit, objective)
        report = self._report(mechanism, release, fit, reasons)
        told = self._cautions(release, rows, terms, ledger) if report.private else ()
        self.report_ = replace(report, receipt=self._receipt(account), cautions=told)

    # -- what subclasses say -----------------------------------------------------------------------

    def _chosen_mechanism(self) -> AnyMechanism:
        """The mechanism, checked."""
        raise NotImplementedError

    def _objective(self, mechanism: AnyMechanism, schema: Schema) -> Any:
        """What is minimised or selected."""
        raise NotImplementedError

    def _encoded(self, mechanism: AnyMechanism, given: Input, terms: PrivacyParameters) -> tuple[Any, Geometry]:
        """What is minimised or selected, and how rows are encoded for it."""
        objective = self._objective(mechanism, given.schema)
        return objective, mechanism.geometry(given.schema, objective)

    def _keep(self, fit: Any, mechanism: AnyMechanism) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def _prepared(self, given: Input, mechanism: AnyMechanism) -> Input:
        """The input, with its schema as this model wants it."""
        return given

    def _reasons_of(self, mechanism: AnyMechanism) -> tuple[str, ...]:
        """Why this mechanism is not private for such a model, if it is not: as printed in a paper whose constants are
        wrong.
        """
        return ()

    def _importance_names(self) -> tuple[str, ...]:
        """The fitted attributes from which a selector of columns can read how much each of them counts."""
        return ()

    def _may_bend(self, mechanism: AnyMechanism) -> bool:
        """Whether numbers may enter as splines in a later fit with fewer columns, if not in this one."""
        return False

    def _check_selector(self, mechanism: AnyMechanism, given: Input, geometry: Geometry) -> None:
        """Refuse a selector that calls this fit and would fail after the charge."""
        open_box = given.by_position or given.strict_names
        check_selector(self, geometry, self._importance_names(), self._may_bend(mechanism), open_box)

    def _kept_for_later(self, mechanism: AnyMechanism, release: Release[Any], fit: Any, objective: Any) -> Any:
        """What later calls are answered from, if there are any."""
        return None

    def _described(self, mechanism: AnyMechanism, fit: Any) -> tuple[dict[str, Any], list[str]]:
        """What was done to the release, for the report, and lines about it."""
        described = mechanism.describe(fit, self.schema_, self._geometry)
        return dict(described.repairs), list(described.notes)

    def _notes(self, mechanism: AnyMechanism) -> tuple[str, ...]:
        """Lines for the report."""
        return ()

    # -- who pays ----------------------------------------------------------------------------------

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
                f"ledger={type(self.ledger).__name__} was given; it is a pf.Ledger or None. Write "
                "ledger=pf.Ledger('people.db', epsilon=1.0)."
            )
        if not reasons:
            return self.ledger if self.ledger is not None else process_ledger()
        refuse_ledger(self.ledger, reasons)
        return None

    def _receipt(self, account: Ledger | None) -> dict[str, Any]:
        """Which entry of the user's ledger paid; nothing where there was none: the process's own ledger is gone with
        the process.
        """
        receipt = account.last_receipt if account is not None and self.ledger is not None else None
        return {} if receipt is None else receipt.to_dict()

    def _cautions(
        self, release: Release[Any], rows: Rows, terms: PrivacyParameters, ledger: Ledger | None
    ) -> tuple[str, ...]:
        """What qualifies the promise, from public facts."""
        known = rows.n_rows if terms.adjacency == "replace-one" else terms.expected_rows
        return cautions(release.event, known, ledger.spent if self.ledger is None and ledger is not None else None)

    def _report(self, mechanism: AnyMechanism, release: Release[Any], fit: Any, reasons: tuple[str, ...]) -> Report:
        repairs, told = self._described(mechanism, fit)
        notes = [*self._notes(mechanism), *told]
        notes.extend(_of_filled_target(self.schema_.target))
        if self.delta and not release.event.delta:
            notes.append("delta was not spent: this noise needs epsilon alone")
        if not release.private and not reasons:
            reasons = ("the noise came from a source that is not secret",)
        return make_report(
            type(self).__name__,
            release.event,
            repairs=repairs,
            public=self._public_facts(),
            reasons=reasons,
            notes=tuple(notes),
        )

    def _public_facts(self) -> tuple[str, ...]:
        schema = self.schema_
        numeric = sum(isinstance(column, Numeric) for column in schema.features)
        categories = len(schema.features) - numeric
        facts = [f"bounds of {numeric} numeric column{'s' * (numeric != 1)}"] if numeric else []
        if categories:
            facts.append(f"levels of {categories} categor{'ies' if categories != 1 else 'y'}")
        if schema.target is not None:
            facts.append("classes of the target" if isinstance(schema.target, Category) else "bounds of the target")
        if self.adjacency == "replace-one":
            facts.append("the number of rows")
        return tuple(facts)


def _target_name(schema: Schema) -> str:
    return "" if schema.target is None else schema.target.name


def _of_filled_target(target: Column | None) -> list[str]:
    """A line for the report where the schema has a value for missing targets. It depends on the schema alone."""
    if target is None or target.fill is None:
        return []
    if isinstance(target, Category):
        return [
            f"missing targets are taken as the level {target.fill!r}: that changes what is estimated, "
            "unless the level stands for targets that are missing"
        ]
    told = f"{target.fill:g}" if isinstance(target.fill, float) else repr(target.fill)
    return [f"missing targets are taken as {told}: that changes what is estimated"]
