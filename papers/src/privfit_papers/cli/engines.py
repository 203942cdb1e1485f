"""`privfit bench engines`: fits from every engine over that engine's own read of the columns, in one run."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit_papers.bench.engine_tables import postgresql_server
from privfit_papers.bench.engines import (
    ITERATIVE,
    KNOWN,
    ONE_PASS,
    ONE_PASS_MODELS,
    SOURCES,
    EngineRatio,
    Growth,
    engine_ratios,
    growth,
)

QUICK_ROWS, ROWS, MANY_ROWS = 1_000_000, 10_000_000, 100_000_000
QUICK_REPEATS, REPEATS = 2, 5
BYTES_PER_ROW = 60
GROWTH_ROWS = (100_000, 1_000_000, 10_000_000)
QUICK_GROWTH = GROWTH_ROWS[:2]


def engines(
    folder: Annotated[Path, typer.Option("--work", help="Folder for the generated tables.")] = Path("results/engines"),
    rows: Annotated[int | None, typer.Option(min=1000, help="Rows of every table. Default: 10,000,000.")] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Name of an engine. Repeat for more. Default: all but Dask and Spark."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="linear or logistic. Repeat for more. Default: both.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Turns of each side; the best counts.")] = None,
    postgresql: Annotated[
        str | None, typer.Option(help="Address of a PostgreSQL database. Default: a server of its own, if installed.")
    ] = None,
    by_rows: Annotated[
        bool, typer.Option("--growth", help="How time and memory grow with the number of rows.")
    ] = False,
    huge: Annotated[
        bool, typer.Option("--huge", help="100,000,000 rows of Parquet, where the disk has room for them.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="1,000,000 rows and two turns.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the table as Markdown, too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """How long a fit takes from each engine, over the engine's own read of the same columns.

    Both sides take turns in processes of their own, and the best time of each counts. "GB" is the peak of memory
    of the process that fits. "CPU ratio" compares time of the processor, in which others
    on the machine hardly show.
    """
    names = _chosen(source, list(KNOWN)) if source else list(SOURCES)
    models = _chosen(model, [ONE_PASS, ITERATIVE])
    turns = repeats or (QUICK_REPEATS if quick else REPEATS)
    folder.mkdir(parents=True, exist_ok=True)
    if by_rows:
        sizes = QUICK_GROWTH if quick else GROWTH_ROWS
        found = [line for one in ONE_PASS_MODELS for line in growth(one, sizes, folder, turns)]
        if as_json:
            print_json({"growth": [one.to_dict() for one in found]})
        else:
            _print_growth(found)
        return
    if huge:
        names, rows, turns = names if source else ["Parquet"], rows or MANY_ROWS, repeats or 1
    size = rows or (QUICK_ROWS if quick else ROWS)
    if _no_room(folder, size):
        hint(f"{size:,} rows were asked for, and the disk has no room for them. Nothing was measured.")
        return
    lines: list[EngineRatio] = []
    given = nullcontext(postgresql) if postgresql or "PostgreSQL" not in names else postgresql_server()
    with given as address, stderr().status(f"{size:,} rows"):
        if address is None and "PostgreSQL" in names:
            hint("No PostgreSQL server is installed: its line is left out.")
        for line in engine_ratios(names, models, folder, size, turns, address):
            lines.append(line)
            hint(f"{line.source}, {line.model}: {line.ratio:.2f}")
    if output is not None:
        output.write_text(markdown(lines))
    if as_json:
        print_json({"engines": [line.to_dict() for line in lines]})
    else:
        stdout().print(_table(lines, size))


def _chosen(given: list[str] | None, known: list[str]) -> list[str]:
    unknown = sorted(set(given or ()) - set(known))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is none of: {'; '.join(known)}.")
    return given or known


def _no_room(folder: Path, rows: int) -> bool:
    """Whether the disk could not take one more table, and the spilled rows of a fit."""
    return shutil.disk_usage(folder).free < 2 * BYTES_PER_ROW * rows


def _table(lines: list[EngineRatio], rows: int) -> Table:
    table = Table(
        *("from", "model", "over", "fit (s)", "read (s)", "ratio", "at most", "CPU ratio", "GB"),
        box=SIMPLE_HEAD,
        title=f"Fits over reading, {rows:,} rows",
    )
    for line in lines:
        table.add_row(*_cells(line))
    return table


def _cells(line: EngineRatio) -> list[str]:
    numbers = (f"{line.fit:.2f}", f"{line.read:.2f}", f"{line.ratio:.2f}", f"{line.wanted:g}")
    return [line.source, line.model, line.against, *numbers, f"{line.cpu_ratio:.2f}", f"{line.peak_gigabytes:.2f}"]


def markdown(lines: list[EngineRatio]) -> str:
    """The table and the command that made it."""
    command = shlex.join(["privfit", *sys.argv[1:]])
    titles = ("from", "model", "over", "fit (s)", "read (s)", "ratio", "at most", "CPU ratio", "GB")
    head = f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|\n"
    body = "".join(f"| {' | '.join(_cells(line))} |\n" for line in lines)
    return f"`{command}`\n\n{head}{body}"


def _print_growth(found: list[Growth]) -> None:
    table = Table("model", "rows", "CPU for rows (s)", "exponent", "GB", box=SIMPLE_HEAD)
    for one in found:
        exponent = "" if one.exponent is None else f"{one.exponent:.3f}"
        table.add_row(one.model, f"{one.rows:,}", f"{one.seconds:.3f}", exponent, f"{one.peak_gigabytes:.2f}")
    stdout().print(table)
