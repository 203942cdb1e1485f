"""`privfit bench board`: all that can be installed beside privfit, on the same splits and with the same privacy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stdout
from privfit_papers.bench import data
from privfit_papers.bench.board.methods import METHODS, Method
from privfit_papers.bench.board.runs import Board, planned
from privfit_papers.bench.board.scores import MEASURES, TITLES
from privfit_papers.bench.board.standing import Line, ahead_of_us, standing
from privfit_papers.bench.board.tables import DEMO, READERS, BoardTable, from_csv
from privfit_papers.bench.harness import cores
from privfit_papers.report.board import board_page

EPSILONS = (0.1, 0.4, 1.6, 4.0)
QUICK_TABLES, QUICK_EPSILONS, QUICK_SPLITS, QUICK_ROWS = ("adult", "demo"), (0.4, 1.6), 3, 20_000


QUICK_LONGEST = 60.0
"""Seconds that a fit of the quick form may take: synthetic rows can take more, and then have no answer."""


def board(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", help=f"{', '.join(READERS)}. Repeat for more. Default: all.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="A CSV file in place of these tables.")] = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="The schema of the CSV file, with a target.")] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Part of the name of a method. Repeat for more.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Part of the name of a method to leave out. Repeat for more.")
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Random 80/20 splits, one fit of each on every split.")] = 10,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more. Default: 0.1, 0.4, 1.6, 4.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=100, help="At most so many rows of each table.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Peers that run at a time. Default: all cores.")] = None,
    longest: Annotated[float, typer.Option(help="Seconds that one fit may take.")] = 900.0,
    install: Annotated[bool, typer.Option(help="Make environments that are not there yet.")] = True,
    work: Annotated[Path, typer.Option("--work", help="Folder of results and environments.")] = Path("results/board"),
    page: Annotated[Path | None, typer.Option(help="Write board.md and its pictures into this folder.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Adult and a generated census, 20,000 rows, three splits, two epsilons.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """All peers on the same splits with the same privacy, and where they are ahead.

    diffprivlib, DP-EBM, dp-xgboost, MST synthetic data with boosting, boosted
    AdaSSP and TukeyEM as printed, and methods without privacy. Each peer has an
    environment of its own, which is made on first use. Every fit has a result
    file: a run that was stopped goes on where it was. Noise is seeded.
    """
    epsilons = tuple(epsilon or (QUICK_EPSILONS if quick else EPSILONS))
    splits, rows = (min(splits, QUICK_SPLITS), rows or QUICK_ROWS) if quick else (splits, rows)
    kept, chosen = Board(work, min(longest, QUICK_LONGEST) if quick else longest, install), _methods(method, without)
    lines: list[Line] = []
    left_out = [one.name for one in METHODS if one not in chosen]
    notes = [f"Left out of this page: {', '.join(left_out)}."] if left_out else []
    for one in _tables(folder, table or (QUICK_TABLES if quick else tuple(READERS)), csv, schema):
        measured = one.at_most(rows)
        cells = planned(measured, chosen, epsilons, splits)
        notes.append(_note(measured, len(cells)))
        hint(notes[-1])
        kept.run(measured, cells, workers or cores(), hint)
        found = [kept.result(measured, cell) for cell in cells]
        own = standing(result for result in found if result is not None)
        lines += own
        for measure in () if as_json or not own else MEASURES[measured.task]:
            stdout().print(_shown(own, measure))
    if page is not None and lines:
        named: dict[str, Sequence[object]] = {"csv": [csv.name] if csv else [], "table": table or []}
        named |= {
            "method": method or [],
            "without": without or [],
            "epsilon": epsilon or [],
            "rows": [rows] if rows and not quick else [],
        }
        command = _command(named, splits, quick)
        hint(f"The page is {board_page(lines, command, notes, page)}.")
    if as_json:
        print_json({"board": [line.to_dict() for line in lines]})
    else:
        stdout().print(f"Somebody else has a better mean than privfit in {len(ahead_of_us(lines))} comparisons.")


def _methods(wanted: list[str] | None, without: list[str] | None) -> list[Method]:
    """The methods whose names have one of these parts, and none of those."""
    unknown = [part for part in (*(wanted or ()), *(without or ())) if not any(part in one.name for one in METHODS)]
    if unknown:
        names = ", ".join(one.name for one in METHODS)
        raise typer.BadParameter(f"{', '.join(unknown)} is in none of: {names}.", param_hint="--method, --without")
    left = [one for one in METHODS if not any(part in one.name for part in without or ())]
    return [one for one in left if not wanted or any(part in one.name for part in wanted)]


def _tables(folder: Path | None, names: Sequence[str], csv: Path | None, schema: Path | None) -> Iterator[BoardTable]:
    """The tables that were asked for, as far as their files are there."""
    if (csv is None) != (schema is None):
        raise typer.BadParameter("A CSV file and its schema go together.", param_hint="--csv")
    if csv is not None and schema is not None:
        yield from_csv(csv, schema)
        return
    unknown = sorted(set(names) - set(READERS))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(READERS)}.", param_hint="--table")
    for name in names:
        try:
            place = Path() if name == DEMO else data.data_folder(folder)
            yield BoardTable.of(name, *READERS[name](place))
        except data.NoData as missing:
            hint(f"{name} is not measured. {missing}")


def _note(table: BoardTable, fits: int) -> str:
    without = f" {table.left_out:,} rows that the schema does not cover are left out." if table.left_out else ""
    return f"{table.name}: {len(table.rows):,} rows, {len(table.columns)} columns, {fits:,} fits.{without}"


def _command(named: Mapping[str, Sequence[object]], splits: int, quick: bool) -> str:
    """The command as it was given, without its folders."""
    told = [f"--{name} {str(value).replace(' ', '-')}" for name, values in named.items() for value in values]
    return " ".join(["privfit bench board", *told, "--quick" if quick else f"--splits {splits}"])


def _shown(lines: list[Line], measure: str) -> Table:
    """Mean and deviation of every method, one column per epsilon, for the terminal."""
    epsilons = sorted({line.epsilon for line in lines if line.epsilon})
    shown = Table(title=f"{lines[0].table}: {TITLES[measure]}", box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("epsilon", no_wrap=True)
    for epsilon in epsilons:
        shown.add_column(f"{epsilon:g}", justify="right", overflow="fold")
    for name in dict.fromkeys(line.method.name for line in lines):
        by = {line.epsilon: line for line in lines if line.method.name == name}
        shown.add_row(name, *(_cell(by.get(each) or by.get(0.0), measure) for each in epsilons))
    return shown


def _cell(line: Line | None, measure: str) -> str:
    if line is None or measure not in line.spreads:
        return "none"
    return f"{line.spreads[measure].mean:.4g}±{line.spreads[measure].deviation:.2g}"
