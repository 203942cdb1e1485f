"""Options that several commands have: the private table, the price, and the ledger that pays."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

PRIVACY = "Privacy"


class Adjacency(StrEnum):
    """Which two tables the guarantee makes hard to distinguish."""

    replace_one = "replace-one"
    add_remove = "add-remove"


SOURCES = "a Parquet, CSV or Arrow file, a folder, a quoted pattern, or an address (s3://, duckdb:///, postgresql://)"
"""What a command reads, in words; docs/engines.md has all of it."""

Table = Annotated[str, typer.Argument(metavar="TABLE", help=f"The private table, one row per person: {SOURCES}.")]


def shown_source(table: str) -> str:
    """What progress calls a table: the name of a file, or the kind of an address, which may hold a password."""
    scheme, found, _ = table.partition("://")
    return f"{scheme}://..." if found else Path(table).name


LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        "-l",
        metavar="DB",
        help="The budget to pay from, a file or postgresql://...; see `privfit ledger`.",
        rich_help_panel=PRIVACY,
    ),
]
LedgerEpsilonOption = Annotated[
    float | None,
    typer.Option(
        help="Make the ledger, with this budget, if there is none.", show_default=False, rich_help_panel=PRIVACY
    ),
]
LedgerDeltaOption = Annotated[
    float | None,
    typer.Option(help="The delta of a ledger made so; 0 if left out.", show_default=False, rich_help_panel=PRIVACY),
]
Note = Annotated[
    str, typer.Option(help="What it is for: a line in the ledger.", show_default=False, rich_help_panel=PRIVACY)
]
RowsPerPersonOption = Annotated[
    int, typer.Option(help="The most rows that one person can have.", rich_help_panel=PRIVACY)
]
AdjacencyOption = Annotated[
    Adjacency,
    typer.Option(
        metavar="KIND",
        help="replace-one (the number of rows is public) or add-remove (it is not).",
        rich_help_panel=PRIVACY,
    ),
]
ExpectedRowsOption = Annotated[
    int | None,
    typer.Option(
        help="A public guess of the number of rows, for add-remove.", show_default=False, rich_help_panel=PRIVACY
    ),
]
EpsilonOption = Annotated[
    float,
    typer.Option(
        "--epsilon",
        "-e",
        help="What this spends. Smaller protects more and adds more noise.",
        rich_help_panel=PRIVACY,
    ),
]
DeltaOption = Annotated[
    float, typer.Option(help="The probability that the guarantee may fail.", rich_help_panel=PRIVACY)
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        help="Repeatable noise, for tests: the result is NOT private.", show_default=False, rich_help_panel=PRIVACY
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
