"""`privfit bench bounds`: what bought bounds are worth."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import print_json, stdout
from privfit_papers.bench.bounds import ROWS, SHAPES, SPENT, TOTAL, Gain, gains


def bounds(
    runs: Annotated[int, typer.Option(min=1, help="Generated tables of each kind.")] = 50,
    rows: Annotated[int, typer.Option(min=100, help="Rows of a table.")] = ROWS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Variance that a linear regression explains with known, bought and generous bounds of its target.

    The generous bound lies 20 times above the 99% point. Of a total epsilon of 0.5,
    0.05 buys bounds. Tables and noise are seeded: the same command gives the same
    numbers.
    """
    found = [gain for shape in SHAPES for gain in gains(shape, runs, rows)]
    if as_json:
        print_json(
            {"epsilon": TOTAL, "spent on bounds": SPENT, "rows": rows, "gains": [one.to_dict() for one in found]}
        )
        return
    stdout().print(_table(found))


def _table(found: list[Gain]) -> Table:
    lines = Table("incomes", "bounds", "R2", "sd", "worst", "bound / 99% point", box=SIMPLE_HEAD)
    for one in found:
        numbers = (one.mean, one.sd, one.worst, one.relative_bound)
        lines.add_row(one.shape, one.bounds, *(f"{number:.3f}" for number in numbers))
    return lines
