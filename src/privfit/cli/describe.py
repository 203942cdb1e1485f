"""`privfit describe`: figures about every column of a table, in one release."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.ledger_options import check_ledger_options, check_new_budget, opened_ledger
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
    shown_source,
)
from privfit.cli.output import check_output
from privfit.cli.schema import complete_schema
from privfit.privacy import Budget, Ledger, PrivacyParameters
from privfit.summaries import TableDescription
from privfit.summaries import describe as described
from privfit.tables import open_table


def describe(
    table: Table,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="FILE", help="Public facts; `privfit schema FILE` drafts them.")
    ],
    epsilon: EpsilonOption,
    quantile: Annotated[
        list[float] | None, typer.Option("--quantile", "-q", help="Repeat for more. Default: 0.5 and 0.9.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the figures into this PNG, SVG or PDF file.")] = None,
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
    """Describe all columns of a table: means, quantiles and counts, with intervals.

    All figures are one release, and epsilon is split over the columns. The ledger is
    charged before any noise is drawn.

    \b
    Examples:
      privfit describe people.csv --schema people.toml --epsilon 0.5 \\
          --ledger people.db
      privfit describe people.csv -s people.toml -e 0.5 -q 0.25 -q 0.5 -q 0.75
    """
    PrivacyParameters(Budget(epsilon), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    if figure is not None:
        check_output(figure, table, schema, ledger=ledger)
    facts = complete_schema(schema)
    open_table(table)  # a missing file is found before a ledger is made
    book: Ledger | None = None
    if ledger is not None:
        check_new_budget(ledger, Budget(epsilon), ledger_epsilon, ledger_delta or 0.0)
        book = opened_ledger(ledger, ledger_epsilon, ledger_delta).with_note(note)
    with warnings.catch_warnings(record=True) as told, counting_rows(f"Reading {shown_source(table)}"):
        warnings.simplefilter("always", UserWarning)
        found = described(
            table,
            facts,
            epsilon=epsilon,
            ledger=book,
            quantiles=tuple(quantile) if quantile else (0.5, 0.9),
            adjacency=adjacency.value,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            random_state=seed,
        )
    for one in told:
        hint(str(one.message))
    if figure is not None:
        found.plot(figure)
        hint(f"The drawing is in {figure}.")
    _show(found, book, as_json)


def _show(found: TableDescription, ledger: Ledger | None, as_json: bool) -> None:
    if as_json:
        print_json({**found.to_dict(), "ledger": None if ledger is None else ledger_facts(ledger)})
        return
    console = stdout()
    console.print(str(found), markup=False, soft_wrap=True)
    console.print()
    print_report(found.report)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
