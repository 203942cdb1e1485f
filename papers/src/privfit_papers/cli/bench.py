"""`privfit bench`: measure accuracy and speed, on this machine, side by side with what they are compared to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from privfit.cli.console import hint, print_json, stdout
from privfit.cli.errors import in_one_sentence
from privfit.datasets.census import census_schema, generated_census
from privfit.mechanisms import FunctionalMechanism
from privfit_papers.bench import accuracy as accuracy_bench
from privfit_papers.bench import data
from privfit_papers.bench import speed as speed_bench
from privfit_papers.bench.genetic import against_naive
from privfit_papers.cli.board import board
from privfit_papers.cli.bounds import bounds
from privfit_papers.cli.classifiers import classifiers
from privfit_papers.cli.clusters import clusters
from privfit_papers.cli.description import description
from privfit_papers.cli.engines import engines
from privfit_papers.cli.genetic import genetic
from privfit_papers.cli.publishers import publishers
from privfit_papers.cli.regularised import regularised
from privfit_papers.cli.weights import weights
from privfit_papers.report import accuracy_figure

group = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure accuracy on real and generated tables, and speed against peers.",
)

METHODS = {
    "privfit": FunctionalMechanism(),
    "paper, as printed": FunctionalMechanism(calibration="paper", repair="trim"),
}


@group.command()
@in_one_sentence
def accuracy(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Random 80/20 splits.")] = 5,
    runs: Annotated[int, typer.Option(min=1, help="Fits per split and epsilon.")] = 4,
    figure: Annotated[Path | None, typer.Option(help="Draw the results into this PNG or SVG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """The share that is lost of the variance that least squares explains, by epsilon.

    0 is as good as least squares without privacy, 1 as bad as predicting the mean.
    Noise is seeded, so that the same command gives the same numbers.
    """
    results = [share.to_dict() for share in _shares(folder, splits, runs)]
    if figure is not None:
        accuracy_figure(results, figure)
        hint(f"The figure is in {figure}.")
    if as_json:
        print_json({"accuracy": results})
        return
    for name in dict.fromkeys(str(result["table"]) for result in results):
        table = Table(
            "method", "epsilon", "runs", "mean", "deviation", "median", "worst", title=f"Share lost on the {name}"
        )
        for result in (result for result in results if result["table"] == name):
            numbers = [f"{result[key]:.4f}" for key in ("mean", "deviation", "median", "worst")]
            table.add_row(str(result["method"]), f"{result['epsilon']:g}", str(result["runs"]), *numbers)
        stdout().print(table)


def _shares(folder: Path | None, splits: int, runs: int) -> Iterable[accuracy_bench.Share]:
    tables = {"generated census, 50,000 people": (generated_census(50_000, seed=0), census_schema())}
    try:
        tables["1980 US census, 329,509 men"] = data.census_1980(data.data_folder(folder))
    except data.NoData as missing:
        hint(f"Only the generated table is measured. {missing}")
    for name, (frame, schema) in tables.items():
        hint(f"Measuring on the {name} ...")
        yield from accuracy_bench.lost_shares(name, frame, schema, METHODS, accuracy_bench.EPSILONS, splits, runs)


@group.command()
@in_one_sentence
def speed(
    rows: Annotated[int, typer.Option(min=1000, help="Rows in memory.")] = 2_000_000,
    parquet_rows: Annotated[int, typer.Option(min=1000, help="Rows of the Parquet file.")] = 10_000_000,
    wide_rows: Annotated[
        int, typer.Option(min=0, help="Rows of the table with 500 columns (a million takes 4 GB); 0 leaves it out.")
    ] = 1_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Times that each side is measured; the best counts.")] = 3,
    peer: Annotated[
        bool, typer.Option(help="Compare with diffprivlib 0.6.6 in an environment of its own (installed on first use).")
    ] = True,
    folder: Annotated[
        Path, typer.Option("--work", help="Folder for the generated file and the peer's environment.")
    ] = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """How long a fit takes, as ratios to bare arithmetic, bare reading and the closest peer, measured in one run."""
    folder.mkdir(parents=True, exist_ok=True)
    ratios: list[dict[str, Any]] = []
    hint("Measuring in memory ...")
    ratios.append(speed_bench.in_memory(rows, repeats).to_dict())
    if wide_rows:
        hint("Measuring many columns ...")
        ratios.append(speed_bench.wide(wide_rows, repeats).to_dict())
    hint("Measuring classifiers ...")
    ratios += [ratio.to_dict() for ratio in speed_bench.against_sklearn(repeats)]
    ratios.append(against_naive(repeats).to_dict())
    if peer:
        hint("Measuring the peer ...")
        ratios.append(speed_bench.against_peer(rows, repeats, folder / "peer").to_dict())
        ratios.append(speed_bench.classifier_against_peer(rows, repeats, folder / "peer").to_dict())
    hint("Measuring from Parquet ...")
    ratios.append(speed_bench.from_parquet(parquet_rows, repeats, folder).to_dict())
    if as_json:
        print_json({"speed": ratios})
        return
    table = Table(
        "fit on",
        "against",
        "ours (s)",
        "other (s)",
        "ratio",
        "at most",
        "GB",
        title="Speed: the best time of each side",
    )
    for ratio in ratios:
        peak = "" if ratio["peak_gigabytes"] is None else f"{ratio['peak_gigabytes']:.2f}"
        table.add_row(
            ratio["what"],
            ratio["against"],
            f"{ratio['ours']:.2f}",
            f"{ratio['other']:.2f}",
            f"{ratio['ratio']:.2f}",
            f"{ratio['wanted']:g}",
            peak,
        )
    stdout().print(table)


group.command()(in_one_sentence(board))
group.command()(in_one_sentence(bounds))
group.command()(in_one_sentence(description))
group.command()(in_one_sentence(regularised))
group.command()(in_one_sentence(classifiers))
group.command()(in_one_sentence(clusters))
group.command()(in_one_sentence(genetic))
group.command()(in_one_sentence(weights))
group.command()(in_one_sentence(publishers))
group.command()(in_one_sentence(engines))
