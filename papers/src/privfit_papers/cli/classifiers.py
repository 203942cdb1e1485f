"""`privfit bench classifiers`: logistic regressions side by side, mean and spread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit.datasets.census import census_schema, generated_census, with_high_income
from privfit.schema import Schema
from privfit_papers.bench import classes, data
from privfit_papers.bench.classifiers import EPSILONS, MEASURES, Spread, class_spreads
from privfit_papers.bench.speed import PeerClassifier, peer_environment

PEOPLE, FEW_PEOPLE = 50_000, 5_000
QUICK_EPSILONS, QUICK_RUNS = (0.4, 1.6), 2
REAL = {"adult": classes.adult, "bank": classes.bank, "brazil": classes.brazil}
TABLES = ("generated", *REAL)
TITLES = {"error": "Wrong classes, percent", "auc": "Area under the curve, percent", "log_loss": "Log-loss, hundredths"}


def classifiers(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="generated, adult, bank or brazil. Repeat for more. Default: all."),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Random 80/20 splits, one fit of every method and epsilon on each.")
    ] = 20,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more. Default: 0.1, 0.2, 0.4, 0.8, 1.6.")
    ] = None,
    peer: Annotated[
        bool | None,
        typer.Option(
            help="Compare with diffprivlib 0.6.6 in an environment of its own. Default: if it is installed; --peer "
            "installs it."
        ),
    ] = None,
    work: Annotated[Path, typer.Option("--work", help="Folder of the peer's environment.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="A small generated table, two runs and two epsilons.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Logistic regressions on test rows, by epsilon: wrong classes, AUC, log-loss.

    "privfit" is the default. Below it are fits that differ from it in one choice:
    8 knots at any size, no interaction terms for pairs of columns or numbers in fine
    steps, a delta, the logistic loss without tempering, bins, or another
    mechanism. diffprivlib has privfit's 8 knots; "tuned" has the C with the
    fewest test errors in every run, which is NOT private. "No noise" is the
    same encoding with epsilon 10,000 and a ridge of 1.
    Means ± standard deviations over splits. Noise is seeded, so that the same
    command gives the same numbers.
    """
    chosen = chosen_tables(table, quick)
    epsilons, runs = tuple(epsilon or (QUICK_EPSILONS if quick else EPSILONS)), QUICK_RUNS if quick else runs
    results: list[dict[str, Any]] = []
    with ExitStack() as stack:
        other = _peer(peer, work / "peer", stack)
        for name, (frame, schema) in measured_tables(folder, chosen, FEW_PEOPLE if quick else PEOPLE):
            hint(f"Measuring on the {name} ...")
            with stderr().status(f"{runs} runs"):
                spreads = class_spreads(name, frame, schema, epsilons=epsilons, runs=runs, peer=other)
            results += [spread.to_dict() for spread in spreads]
            for measure in () if as_json else MEASURES:
                stdout().print(measure_table(name, measure, spreads, epsilons))
    if as_json:
        print_json({"classifiers": results})


def measure_table(name: str, measure: str, spreads: list[Spread], epsilons: tuple[float, ...]) -> Table:
    """Mean and deviation of every method, one column per epsilon, for the terminal.

    What has no noise is the same in all.
    """
    table = Table(title=f"{TITLES[measure]}: {name}, {spreads[0].runs} runs", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("epsilon", no_wrap=True)
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right", overflow="fold")
    found = {(spread.method, spread.epsilon): spread for spread in spreads}
    for method in dict.fromkeys(spread.method for spread in spreads):
        own = [found.get((method, epsilon)) or found[method, None] for epsilon in epsilons]
        table.add_row(
            method,
            *(f"{100 * getattr(one, measure):.2f}±{100 * getattr(one, f'{measure}_deviation'):.2f}" for one in own),
        )
    return table


def chosen_tables(tables: list[str] | None, quick: bool) -> tuple[str, ...]:
    """The tables that were asked for, by name."""
    unknown = sorted(set(tables or ()) - set(TABLES))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(TABLES)}.", param_hint="--table")
    return tuple(tables) if tables else (TABLES[:1] if quick else TABLES)


def _peer(wanted: bool | None, environment: Path, stack: ExitStack) -> PeerClassifier | None:
    if wanted is None and not (environment / "ready").is_file():
        hint("diffprivlib is not installed and not measured. --peer installs it in an environment of its own.")
        wanted = False
    if wanted is False:
        return None
    return stack.enter_context(PeerClassifier(peer_environment(environment)))


def measured_tables(
    folder: Path | None, chosen: tuple[str, ...], people: int
) -> Iterator[tuple[str, tuple[pl.DataFrame, Schema]]]:
    """Tables of two classes as far as their files are there."""
    if "generated" in chosen:
        frame = with_high_income(generated_census(people, seed=0))
        yield f"generated census, {people:,} people", (frame, census_schema("high_income"))
    for name in chosen:
        if name in REAL:
            try:
                found, schema = REAL[name](data.data_folder(folder))
            except data.NoData as missing:
                hint(f"{name} is not measured. {missing}")
                continue
            yield f"{name}, {found.height:,} people", (found, schema)
