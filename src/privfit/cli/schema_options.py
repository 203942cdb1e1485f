"""Options of `privfit schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.options import SOURCES

TableArgument = Annotated[
    str | None, typer.Argument(metavar="TABLE", help=f"Names and types are read of it, and no people: {SOURCES}.")
]
TargetOption = Annotated[str | None, typer.Option("--target", "-t", help="The column that a model shall predict.")]
DraftOutput = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the draft. Default: stdout.")]
CheckOption = Annotated[
    Path | None,
    typer.Option(
        "--check", metavar="SCHEMA", help="Check this schema instead of drafting one; with TABLE, against the table."
    ),
]
BuyBoundsOption = Annotated[
    float | None,
    typer.Option(metavar="EPSILON", help="Buy the bounds of numbers with this epsilon, and write them down."),
]
RangeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="NAME=LOW:HIGH",
        help="Buy bounds of this column alone, within this public range. Repeat for more. Default: all numbers, "
        "from -1e9 to 1e9.",
    ),
]
BuyLevelsOption = Annotated[
    float | None,
    typer.Option(
        metavar="EPSILON", help="Buy levels that many rows have, with this epsilon and --delta, and write them down."
    ),
]
LevelsOfOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Buy levels of this column alone. Repeat for more. Default: all categories."),
]
