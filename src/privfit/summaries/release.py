"""From what a user gives to a function to a release with its report: the order of steps of every function here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from privfit.mechanisms.base import STREAM_ROWS, AnyMechanism, Description, Release, refuse_ledger
from privfit.mechanisms.unread import refuse_unread
from privfit.models.report import Report
from privfit.models.reporting import left_out_note, make_report, public_number
from privfit.privacy import (
    Adjacency,
    Budget,
    Event,
    Ledger,
    PrivacyError,
    PrivacyParameters,
    PrivacyWarning,
    Seed,
    noise_source,
    process_ledger,
    warn_of_running_total,
)
from privfit.rows import Rows, rows_to_plan_for, used_rows
from privfit.schema import Category, Column, Numeric, OpenCategory, Schema, SchemaError
from privfit.tables import DataError, Table, TableLike, open_table

SEEDED = "random_state is set, so that the noise can be repeated and subtracted"


@dataclass(frozen=True)
class Terms:
    """What a function is given beside the table and what is asked: the price, who is protected, and who pays."""

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = "replace-one"
    rows_per_person: int = 1
    expected_rows: int | None = None
    ledger: Ledger | None = None
    random_state: Seed = None

    @property
    def parameters(self) -> PrivacyParameters:
        """The privacy parameters, checked."""
        return PrivacyParameters(
            Budget(self.epsilon, self.delta), self.adjacency, self.rows_per_person, self.expected_rows
        )


@dataclass(frozen=True)
class Computed:
    """Where columns are computed from those of a table that is open: how, from the rows that are used; what the ledger
    calls them; what is taken as public; and what else the report says.
    """

    computed: Callable[[Table], Table]
    target: str
    public: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What `solve` made of a release, its event, the report, and the number of rows where it is public."""

    value: Any
    event: Event
    report: Report
    n_rows: int | None = None


def released(
    function: str,
    mechanism: AnyMechanism,
    asked: Any,
    table: TableLike,
    columns: Sequence[Column],
    terms: Terms,
    declared: Schema | None = None,
    derived: Computed | None = None,
) -> Answer:
    """Check, open, plan, read, charge, draw; and say in a report what was done.

    What is `asked` is a problem, or a function that makes one of the number of rows as far as that is public, or else
    of a guess. Rows are left out as the `declared` schema says, if one is given. The columns are the table's own, or
    `derived`.
    """
    parameters, sampler = terms.parameters, noise_source(terms.random_state)
    mechanism.check()
    reasons = () if terms.random_state is None else (SEEDED,)
    target = derived.target if derived is not None else columns[0].name if len(columns) == 1 else ""
    ledger = _ledger(function, terms, reasons, target)
    schema = Schema(columns)
    opened = _opened(table, schema, declared) if derived is None else open_table(table)
    if declared is not None and declared.leaves_out:
        key = b"" if declared.person is None else sampler.key()
        is_counted = parameters.adjacency == "replace-one"
        opened = used_rows(opened, declared, int(parameters.rows_per_person), key, is_counted)
        parameters = mechanism.for_rows_left_out(parameters, opened.slots)
    if derived is not None:
        opened = derived.computed(opened)
    if callable(asked):
        if is_used_up(opened, parameters):
            guess = asked(STREAM_ROWS)
            refuse_unread(ledger, mechanism, guess, Rows(opened, schema, mechanism.geometry(schema, guess)), parameters)
        asked = asked(guessed_rows(opened, schema.columns, parameters))
    geometry = mechanism.geometry(schema, asked)
    rows = Rows(opened, schema, geometry)
    release = mechanism.release(rows, parameters, ledger, sampler, asked)
    value = mechanism.solve(release, geometry, asked)
    counted = rows.n_rows if parameters.adjacency == "replace-one" else None
    public_rows = parameters.expected_rows if counted is None else counted
    described = mechanism.describe(value, schema, geometry)
    facts = _ranges_and_levels(schema) if derived is None else derived.public
    if terms.adjacency == "replace-one":
        facts = (*facts, public_number(declared or schema))
    if derived is not None:
        described = replace(described, notes=(*described.notes, *derived.notes))
    report = _report(function, release, described, terms, ledger, public_rows, facts, declared or schema)
    if terms.ledger is None and ledger is not None:
        warn_of_running_total(ledger)
    if public_rows is not None and parameters.adjacency == "replace-one" and release.event.delta * public_rows > 1:
        warnings.warn(
            f"delta={release.event.delta:g} is more than one in {public_rows} rows: so large a probability of failure "
            "protects nobody in particular. Use a delta far below one over the number of rows, such as 1e-6.",
            PrivacyWarning,
            stacklevel=3,
        )
    return Answer(value, release.event, report, counted)


def _opened(table: TableLike, schema: Schema, declared: Schema | None) -> Table:
    """The table, if it has these columns: by name, or, where it has no names, as many as are asked for, which are then
    those of the schema that says which rows are used.
    """
    opened = open_table(table)
    own, listed = ([column.name for column in one.columns] for one in (schema, declared or schema))
    if opened.names is None and own != listed:
        raise DataError(
            "An array was given, whose columns have no names, with a schema of other columns than are asked for, or in "
            "another order. Ask for all columns of the schema in its order, or give a frame with names. Nothing was "
            "charged."
        )
    if opened.names is None and opened.width != len(schema.columns):
        raise DataError(
            f"An array with {opened.width} columns was given, and {len(schema.columns)} columns are asked for, which "
            "are then its columns in this order. Give one column per column of the array, or a frame with names. "
            "Nothing was charged."
        )
    return opened


def guessed_rows(table: Table, columns: Sequence[Column], parameters: PrivacyParameters) -> int:
    """The number of rows that the user expects; or that of the table, where it is public; otherwise a usual one."""
    return parameters.expected_rows or rows_to_plan_for(table, columns, parameters) or STREAM_ROWS


def is_used_up(table: Table, parameters: PrivacyParameters) -> bool:
    """Whether counting the rows of a table would use it up."""
    return table.passes_once and parameters.adjacency == "replace-one" and parameters.expected_rows is None


def _ledger(function: str, terms: Terms, reasons: tuple[str, ...], target: str) -> Ledger | None:
    """The user's ledger, or that of the process; None for what is not private, which no ledger accepts."""
    if terms.ledger is not None and not isinstance(terms.ledger, Ledger):
        raise PrivacyError(
            f"ledger={type(terms.ledger).__name__} was given; it is a pf.Ledger or None. Write "
            "ledger=pf.Ledger('people.db', epsilon=1.0)."
        )
    if reasons:
        refuse_ledger(terms.ledger, reasons)
        return None
    ledger = process_ledger() if terms.ledger is None else terms.ledger
    return ledger.describing(model=function, target=target)


def _report(
    function: str,
    release: Release[Any],
    described: Description,
    terms: Terms,
    ledger: Ledger | None,
    public_rows: int | None,
    public: tuple[str, ...],
    declared: Schema,
) -> Report:
    event, reasons = release.stated or release.event, () if terms.random_state is None else (SEEDED,)
    if not release.private and not reasons:
        reasons = ("the noise came from a source that is not secret",)
    notes = described.notes
    if terms.delta and not event.delta:
        notes = (*notes, "delta was not spent: these draws need epsilon alone")
    if declared.leaves_out:
        notes = (*notes, left_out_note(declared, event))
    receipt = ledger.last_receipt if ledger is not None and terms.ledger is not None else None
    unlimited = ledger.spent if ledger is not None and terms.ledger is None else None
    return make_report(
        function,
        event,
        Description(described.repairs, notes),
        public=public,
        reasons=reasons,
        receipt={} if receipt is None else asdict(receipt),
        public_rows=public_rows,
        spent_without_ledger=unlimited,
    )


def _ranges_and_levels(schema: Schema) -> tuple[str, ...]:
    numbers = sum(isinstance(column, Numeric) for column in schema.columns)
    categories = sum(isinstance(column, Category) and not isinstance(column, OpenCategory) for column in schema.columns)
    facts = [f"the range given for {numbers} number{'s' * (numbers != 1)}"] if numbers else []
    if categories:
        facts.append(f"levels of {categories} categor{'ies' if categories != 1 else 'y'}")
    return tuple(facts)


def refuse_no_columns(function: str, columns: Sequence[Column]) -> None:
    """Refuse to release nothing."""
    if not columns:
        raise SchemaError(f"{function} was given no columns. Name at least one column of the table.")
