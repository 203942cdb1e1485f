"""The options of `privfit publish`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.options import PRIVACY

WEIGHTS = "Weights"


class Method(StrEnum):
    """How weights are found."""

    tilting = "tilting"
    paper = "paper"
    objective = "objective"


class Pairs(StrEnum):
    """Whether shares of pairs of columns are released."""

    auto = "auto"
    all = "all"
    none = "none"


SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema",
        "-s",
        metavar="TOML",
        help="The public facts; `privfit schema FILE` drafts them.",
        rich_help_panel=WEIGHTS,
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write the weighted rows: .parquet or .csv.",
        rich_help_panel=WEIGHTS,
    ),
]
PublicTables = Annotated[
    list[Path] | None,
    typer.Option(
        "--public",
        "-p",
        metavar="FILE",
        help="A public table with some of the same columns. Repeat for more. Without one, rows are made up from "
        "the schema.",
        rich_help_panel=WEIGHTS,
    ),
]
MethodOption = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        help="tilting (noisy shares), paper (Ji and Elkan 2013) or objective.",
        rich_help_panel=WEIGHTS,
    ),
]
AlphaOption = Annotated[
    float | None,
    typer.Option(
        help="The ridge of paper and objective; the paper's lambda.", show_default="0.1", rich_help_panel=WEIGHTS
    ),
]
PairsOption = Annotated[
    Pairs,
    typer.Option(
        metavar="KIND", help="Shares of pairs of columns for tilting: auto, all or none.", rich_help_panel=WEIGHTS
    ),
]
WeightNameOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="The name of the column of weights in the output.", rich_help_panel=WEIGHTS),
]
TauOption = Annotated[float, typer.Option(help="From 0 (all weights equal) to 1.", rich_help_panel=WEIGHTS)]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Repeatable noise, for tests: the weights are NOT private.",
        show_default=False,
        rich_help_panel=PRIVACY,
    ),
]
