"""`privfit itemsets`: sets of items that many rows hold together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import print_answer, reading
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
from privfit.cli.schema import complete_schema
from privfit.privacy import Budget, PrivacyError, PrivacyParameters
from privfit.summaries import frequent_itemsets
from privfit.tables import open_table


def itemsets(
    table: Table,
    epsilon: EpsilonOption,
    number: Annotated[int, typer.Option("--number", "-k", help="How many sets are wanted.")],
    item: Annotated[
        list[str] | None, typer.Option("--item", "-i", help="A column of 0 and 1; repeat for more.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", metavar="TOML", help="Or public facts: every level is an item.")
    ] = None,
    max_size: Annotated[int, typer.Option(help="The most items of a set.")] = 5,
    delta: DeltaOption = 0.0,
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
    """Find the sets of items that most rows hold together.

    Sets are chosen privately one after the other, then their numbers of rows are
    released, with intervals. The ledger is charged before any noise is drawn.

    \b
    Examples:
      privfit itemsets baskets.csv -i bread -i milk -i salt -k 3 --epsilon 0.5 \\
          --ledger shop.db
      privfit itemsets people.csv --schema people.toml -k 20 -e 0.5
    """
    PrivacyParameters(Budget(epsilon, delta), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    if bool(item) == bool(schema):
        raise PrivacyError(
            "Items come from --item or from --schema. Give one of them: --item bread --item milk, or --schema FILE."
        )
    items = item if schema is None else complete_schema(schema)
    open_table(table)  # a missing file is found before a ledger is made
    book = paying_ledger(ledger, Budget(epsilon, delta), ledger_epsilon, ledger_delta, note)
    with reading(table):
        found = frequent_itemsets(
            table,
            items,
            k=number,
            epsilon=epsilon,
            max_size=max_size,
            ledger=book,
            delta=delta,
            adjacency=adjacency.value,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            random_state=seed,
        )
    print_answer(found, book, as_json)
