"""`privfit kaplan-meier`: survival curves of a table, with bands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import hint, print_answer, reading
from privfit.cli.ledger_options import check_ledger_options, paying_ledger
from privfit.cli.options import (
    Adjacency,
    AdjacencyOption,
    AsJson,
    EpsilonOption,
    ExpectedRowsOption,
    LedgerDeltaOption,
    LedgerEpsilonOption,
    LedgerOption,
    Note,
    RowsPerPersonOption,
    SeedOption,
    Table,
)
from privfit.cli.output import check_output
from privfit.cli.schema import complete_schema
from privfit.privacy import Budget, PrivacyParameters
from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.summaries import kaplan_meier as released_curves
from privfit.tables import open_table


def kaplan_meier(
    table: Table,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="TOML", help="Public facts; `privfit schema FILE` drafts them.")
    ],
    time: Annotated[str, typer.Option(metavar="NAME", help="The number in the schema that is the time.")],
    event: Annotated[
        str, typer.Option(metavar="NAME", help="The column that says whether it is the time of an event.")
    ],
    epsilon: EpsilonOption,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="A curve for each level or bin of this column.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves into this PNG, SVG or PDF file.")
    ] = None,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    note: Note = "",
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    expected_rows: ExpectedRowsOption = None,
    seed: SeedOption = None,
    as_json: AsJson = False,
) -> None:
    """Release survival curves: the share of people without an event by a time.

    The time is a number in the schema, whose bounds are the ends of the curve.
    The event is a category of two levels, the second of which means that it
    happened, or a number from 0 to 1. Rows are used as the schema says, by its
    person column and its filter. The ledger is charged before any noise is drawn.

    \b
    Examples:
      privfit kaplan-meier people.csv --schema people.toml --time years \\
          --event died --by arm --epsilon 0.5 --ledger people.db
    """
    PrivacyParameters(Budget(epsilon), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    if figure is not None:
        check_output(figure, table, schema, ledger=ledger)
    facts = complete_schema(schema)
    used = facts.of_used_rows()
    measured, happened = _column(used, time), _column(used, event)
    group = None if by is None else _column(used, by)
    if not isinstance(measured, Numeric):
        raise SchemaError(
            f"--time {time} was given, which is a category in the schema; a time is a number with public bounds. Name "
            "another column."
        )
    asked = [column for column in (measured, happened, group) if column is not None]
    open_table(table).positions(asked)  # a missing file or column is found before a ledger is made
    book = paying_ledger(ledger, Budget(epsilon), ledger_epsilon, ledger_delta, note)
    with reading(table):
        found = released_curves(
            table,
            measured,
            happened if isinstance(happened, Category) else happened.name,
            by=group,
            schema=facts,
            epsilon=epsilon,
            ledger=book,
            adjacency=adjacency.value,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            random_state=seed,
        )
    if figure is not None:
        found.plot(figure)
        hint(f"The drawing is in {figure}.")
    print_answer(found, book, as_json)


def _column(schema: Schema, name: str) -> Column:
    """The column of this name."""
    columns = (*schema.features, *([] if schema.target is None else [schema.target]))
    for column in columns:
        if column.name == name:
            return column
    listed = ", ".join(column.name for column in columns)
    raise SchemaError(f"{name!r} is no column of the schema, which has {listed}. Name one of these.")
