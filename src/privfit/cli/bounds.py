"""`privfit bounds`: buy bounds for columns of which only a generous range is known."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privfit.cli.console import hint, ledger_facts, ledger_sentence, print_json, print_report, reading, stdout
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import check_ledger_options, paying_ledger
from privfit.cli.options import (
    Adjacency,
    AdjacencyOption,
    AsJson,
    DeltaOption,
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
from privfit.privacy import Budget, Ledger, PrivacyParameters
from privfit.schema import Numeric
from privfit.schema.toml import value_text
from privfit.summaries import BoughtBounds
from privfit.summaries import bounds as bought_bounds
from privfit.tables import open_table


class Ends(StrEnum):
    """Which bounds move."""

    far = "far"
    both = "both"


class Grid(StrEnum):
    """How candidates are spaced."""

    auto = "auto"
    log = "log"
    linear = "linear"


def bounds(
    table: Table,
    columns: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=LOW:HIGH...", help="Columns, each with a range that surely holds its values: income=0:1e7."
        ),
    ],
    epsilon: EpsilonOption,
    share: Annotated[float, typer.Option(help="The share of rows that the bounds shall hold, about.")] = 0.99,
    ends: Annotated[
        Ends, typer.Option(metavar="KIND", help="far (from zero; -b and b for both signs) or both.")
    ] = Ends.far,
    grid: Annotated[Grid, typer.Option(metavar="KIND", help="auto, log or linear.")] = Grid.auto,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    note: Note = "",
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    delta: DeltaOption = 0.0,
    expected_rows: ExpectedRowsOption = None,
    seed: SeedOption = None,
    as_json: AsJson = False,
) -> None:
    """Buy bounds for columns, from a generous public range.

    For every column one range is selected privately: the narrowest of a public
    grid that holds about 99% of the values. All columns together cost epsilon,
    once. Write the bounds into the schema; fits are far less noisy with them than
    with a range that is twenty times too wide.

    \b
    Examples:
      privfit bounds people.csv income=0:10000000 age=0:150 --epsilon 0.05 \\
          --ledger people.db
      privfit bounds people.csv balance=-1e9:1e9 -e 0.1 --ends both
    """
    PrivacyParameters(Budget(epsilon, delta), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    wanted = dict(parsed_range(text) for text in columns)
    open_table(table).positions(tuple(wanted.values()))  # a missing file or column, before a ledger is made
    book = paying_ledger(ledger, Budget(epsilon, delta), ledger_epsilon, ledger_delta, note)
    with reading(table):
        found = bought_bounds(
            table,
            wanted,
            epsilon=epsilon,
            ledger=book,
            share=share,
            grid=grid.value,
            ends=ends.value,
            delta=delta,
            adjacency=adjacency.value,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            random_state=seed,
        )
    _show(found, book, as_json)


def parsed_range(text: str) -> tuple[str, Numeric]:
    """The name and the range in `income=0:10000000`."""
    name, given, limits = text.rpartition("=")
    low, colon, high = limits.partition(":")
    try:
        if name and given and colon:
            return name, Numeric(name, float(low), float(high))
    except ValueError as error:
        if not str(error).startswith("could not convert"):
            raise
    raise CommandError(
        f"{text!r} was given; a column is written with a generous public range, as in income=0:10000000. "
        "Write NAME=LOW:HIGH."
    )


def _show(found: BoughtBounds, ledger: Ledger | None, as_json: bool) -> None:
    if as_json:
        state = None if ledger is None else ledger_facts(ledger)
        listed = {name: list(pair) for name, pair in found.items()}
        print_json({"bounds": listed, "report": found.report.to_dict(), "ledger": state})
        return
    print_report(found.report)
    console = stdout()
    console.print()
    for name, (low, high) in found.items():
        line = f"name = {value_text(name)}  low = {low:.10g}  high = {high:.10g}"
        console.print(line, markup=False, soft_wrap=True)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
    hint("Write low and high into the schema, or in Python: schema.with_bounds(bought).")
