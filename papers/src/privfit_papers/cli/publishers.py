"""`privfit bench publishers`: regressions on published tables side by side, mean and spread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit_papers.bench import data
from privfit_papers.bench.publishers import (
    DIMENSIONS,
    EPSILONS,
    PEOPLE,
    Errors,
    Task,
    census_tasks,
    cps_tasks,
    measured,
)

TABLES = ("census", "cps")
FEW_PEOPLE, QUICK_EPSILONS, QUICK_DIMENSIONS = 4_000, (0.8,), (5, 14)


def publishers(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", help="census or cps. Repeat for more. Default: both.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Random 80/20 splits.")] = 5,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more. Default: 0.1, 0.8, 3.2.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small generated table, one split, one epsilon.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Test errors of regressions on published tables, beside privfit's own models, by epsilon.

    Of numbers: the root mean square as a share of that of predicting the mean. Of
    classes: the share that is wrong. Means ± standard deviations over splits. A
    method that refuses a table says why. Noise is seeded.
    """
    unknown = sorted(set(table or ()) - set(TABLES))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(TABLES)}.", param_hint="--table")
    epsilons, runs = tuple(epsilon or (QUICK_EPSILONS if quick else EPSILONS)), 1 if quick else runs
    results: list[Errors] = []
    for task in _tasks(folder, tuple(table or (TABLES[:1] if quick else TABLES)), quick):
        hint(f"Measuring on the {task.name} ...")
        with stderr().status(f"{runs} splits"):
            found = measured(task, epsilons, runs)
        results += found
        if not as_json:
            stdout().print(_table(task, found, epsilons))
            for sentence in dict.fromkeys(f"{one.method}: {one.refused}" for one in found if one.refused):
                hint(sentence)
    if as_json:
        print_json({"publishers": [one.to_dict() for one in results]})


def _table(task: Task, found: list[Errors], epsilons: tuple[float, ...]) -> Table:
    what = "Wrong classes" if task.classifies else "Share of the error of the mean"
    table = Table(title=f"{what}: {task.name}", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("epsilon", no_wrap=True)
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right")
    by_cell = {(one.method, one.epsilon): one for one in found}
    for method in dict.fromkeys(one.method for one in found):
        own = [by_cell.get((method, epsilon)) or by_cell[method, None] for epsilon in epsilons]
        table.add_row(
            method, *("refused" if one.mean is None else f"{one.mean:.3f}±{one.deviation:.3f}" for one in own)
        )
    return table


def _tasks(folder: Path | None, chosen: tuple[str, ...], quick: bool) -> Iterator[Task]:
    if "census" in chosen:
        yield from census_tasks(QUICK_DIMENSIONS, FEW_PEOPLE) if quick else census_tasks(tuple(DIMENSIONS), PEOPLE)
    if "cps" in chosen:
        try:
            yield from cps_tasks(data.data_folder(folder))
        except data.NoData as missing:
            hint(f"The CPS is not measured. {missing}")
