"""`privfit bench clusters`: k-means side by side, mean and spread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit_papers.bench import data
from privfit_papers.bench.clusters import (
    EPSILONS,
    TABLES,
    PeerClusters,
    PointTable,
    Spread,
    cluster_spreads,
    generated_mixture,
)
from privfit_papers.bench.speed import peer_environment

GENERATED = "generated"
FEW_ROWS, QUICK_RUNS, QUICK_EPSILONS = 2_000, 2, (0.5, 1.0)


def clusters(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="generated, lifesci or house. Repeat for more. Default: all."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Fits of every method and epsilon.")] = 20,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more. Default: 0.1, 0.5, 1.")
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
    """Mean squared distances of rows to their nearest centre, by epsilon.

    Columns are scaled by their bounds to [-1, 1]; those of Lifesci and House are
    read off the files, which is fine for a benchmark and never for a release.
    "privfit" is the default; below it is every mechanism by itself. DPLloyd is the
    improved one of Su et al. (2016). Means ± standard deviations over runs. Noise is
    seeded, so that the same command gives the same numbers.
    """
    chosen = _chosen(table, quick)
    epsilons, runs = tuple(epsilon or (QUICK_EPSILONS if quick else EPSILONS)), QUICK_RUNS if quick else runs
    results: list[dict[str, Any]] = []
    with ExitStack() as stack:
        other = _peer(peer, work / "peer", stack)
        for points in _tables(folder, chosen, quick):
            for k in points.clusters:
                name = f"{points.name}, {len(points.rows):,} x {points.rows.shape[1]}, {k} clusters"
                hint(f"Measuring on {name} ...")
                with stderr().status(f"{runs} runs"):
                    spreads = cluster_spreads(points, k, epsilons=epsilons, runs=runs, peer=other)
                results += [spread.to_dict() for spread in spreads]
                if not as_json:
                    stdout().print(distance_table(name, spreads, epsilons))
    if as_json:
        print_json({"clusters": results})


def distance_table(name: str, spreads: list[Spread], epsilons: tuple[float, ...]) -> Table:
    """Mean and deviation of every method, one column per epsilon, for the terminal.

    What has no noise is the same in all.
    """
    table = Table(title=f"Mean squared distance: {name}, {spreads[0].runs} runs", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("epsilon", no_wrap=True)
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right", overflow="fold")
    found = {(spread.method, spread.epsilon): spread for spread in spreads}
    for method in dict.fromkeys(spread.method for spread in spreads):
        own = [found.get((method, epsilon)) or found[method, None] for epsilon in epsilons]
        table.add_row(
            method,
            *(
                f"{one.distance:.4f}" if one.epsilon is None else f"{one.distance:.4f}±{one.deviation:.4f}"
                for one in own
            ),
        )
    return table


def _chosen(tables: list[str] | None, quick: bool) -> tuple[str, ...]:
    known = (GENERATED, *TABLES)
    unknown = sorted(set(tables or ()) - set(known))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(known)}.", param_hint="--table")
    return tuple(tables) if tables else (known[:1] if quick else known)


def _peer(wanted: bool | None, environment: Path, stack: ExitStack) -> PeerClusters | None:
    if wanted is None and not (environment / "ready").is_file():
        hint("diffprivlib is not installed and not measured. --peer installs it in an environment of its own.")
        wanted = False
    if wanted is False:
        return None
    return stack.enter_context(PeerClusters(peer_environment(environment)))


def _tables(folder: Path | None, chosen: tuple[str, ...], quick: bool) -> Iterator[PointTable]:
    if GENERATED in chosen:
        yield generated_mixture(FEW_ROWS) if quick else generated_mixture()
    for name in chosen:
        if name in TABLES:
            try:
                yield TABLES[name](data.data_folder(folder))
            except data.NoData as missing:
                hint(f"{name} is not measured. {missing}")
