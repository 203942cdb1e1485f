"""`privfit bench genetic`: genetic fits of two classes side by side, mean and spread."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit_papers.bench.genetic import EPSILONS, METHODS, Errors, fold_errors
from privfit_papers.cli.classifiers import chosen_tables, measured_tables

FEW_PEOPLE, PEOPLE = 4_000, 50_000
QUICK_EPSILONS = (0.4,)


def genetic(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="generated, adult, bank or brazil. Repeat for more. Default: all."),
    ] = None,
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Repeat for more. Default: all.")] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="How often five-fold cross-validation is repeated.")] = 20,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small generated table, one repetition and one epsilon.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Wrong classes of genetic fits by five-fold cross-validation, by epsilon.

    "all patterns" is the default; "genes" is the algorithm of the PrivGene paper, whose
    exponential mechanism is distinguished from its enhanced one by the rule of selection.
    Means ± standard deviations over repetitions. Noise is seeded.
    """
    unknown = sorted(set(method or ()) - set(METHODS))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(METHODS)}.", param_hint="--method")
    methods = {name: METHODS[name] for name in method or METHODS}
    epsilons = tuple(epsilon or (QUICK_EPSILONS if quick else EPSILONS))
    results: list[Errors] = []
    for name, (frame, schema) in measured_tables(folder, chosen_tables(table, quick), FEW_PEOPLE if quick else PEOPLE):
        hint(f"Measuring on the {name} ...")
        with stderr().status(f"{1 if quick else repetitions} repetitions"):
            found = fold_errors(name, frame, schema, methods, epsilons, 1 if quick else repetitions)
        results += found
        if not as_json:
            stdout().print(_table(name, found, epsilons))
    if as_json:
        print_json({"genetic": [one.to_dict() for one in results]})


def _table(name: str, found: list[Errors], epsilons: tuple[float, ...]) -> Table:
    table = Table(
        title=f"Wrong classes, percent: {name}, {found[0].repetitions} x 5 folds", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("epsilon", no_wrap=True)
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right")
    by_cell = {(one.method, one.epsilon): one for one in found}
    for method in dict.fromkeys(one.method for one in found):
        own = [by_cell.get((method, epsilon)) or by_cell[method, None] for epsilon in epsilons]
        table.add_row(method, *(f"{100 * one.mean:.2f}±{100 * one.deviation:.2f}" for one in own))
    return table
