"""`privfit describe`: figures about every column of a table, in one release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import hint, print_answer, reading
from privfit.cli.fit import checked_table
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
from privfit.summaries import describe as described


def describe(
    table: Table,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="TOML", help="Public facts; `privfit schema FILE` drafts them.")
    ],
    epsilon: EpsilonOption,
    quantile: Annotated[
        list[float] | None, typer.Option("--quantile", "-q", help="Repeat for more. Default: 0.5 and 0.9.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the figures into this PNG, SVG or PDF file.")
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
    """Describe all columns of a table: means, quantiles and counts, with intervals.

    All figures are one release, and epsilon is split over the columns. The ledger
    is charged before any noise is drawn.

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
    checked_table(table, facts)
    book = paying_ledger(ledger, Budget(epsilon), ledger_epsilon, ledger_delta, note)
    with reading(table):
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
    if figure is not None:
        found.plot(figure)
        hint(f"The drawing is in {figure}.")
    print_answer(found, book, as_json)
