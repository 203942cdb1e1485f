"""Sources that end before their rows do: queries that panic on one value, and files that change while they are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROWS = 200_000  # several batches, so that a reader which takes a panic for the end has rows to show
WORST = 2**63 - 1
_TIME = pl.col("t").cast(pl.Datetime("us"))

PANICS = {
    "truncate": _TIME.dt.truncate("1mo").dt.year(),
    "round": _TIME.dt.round("1mo").dt.year(),
    "offset_by": _TIME.dt.offset_by("1mo").dt.year(),
    "month_start": _TIME.dt.month_start().dt.year(),
    "month_end": _TIME.dt.month_end().dt.year(),
    "strftime": _TIME.dt.strftime("%Y").str.len_chars(),
    "time zone": _TIME.dt.replace_time_zone("Europe/Berlin").dt.year(),
    "int_ranges": pl.int_ranges(0, pl.when(pl.col("t") == WORST).then(2**62).otherwise(1)).list.len(),
    "business days": _TIME.dt.date().dt.add_business_days(1).dt.year(),
}
"""Expressions of polars that panic on the largest 64-bit number, found by trying; what a version mends, it reads to the
end.
"""


def table(rows: int = ROWS) -> pl.DataFrame:
    """Two numbers, a class and a time per row; one time, near the end, is the largest number there is."""
    times = np.arange(rows, dtype=np.int64) * 1000
    times[rows - rows // 16] = WORST
    share = np.linspace(0, 1, rows)
    return pl.DataFrame({"x": share, "t": times, "goal": share, "kind": np.where(share > 0.5, "b", "a")})


def panicking(expression: pl.Expr, rows: int = ROWS) -> pl.LazyFrame:
    """The table as a query in which one row makes a thread of the engine panic."""
    return table(rows).lazy().with_columns(expression.alias("m")).drop("t")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replaced(path: Path) -> None:
    """Another file of as many rows in its place, as a nightly export does it."""
    other = path.with_name(f"other{path.suffix}")
    frame = table().with_columns(pl.col("x") * 0.5).drop("t").with_columns(m=pl.lit(2000))
    frame.write_csv(other) if path.suffix == ".csv" else frame.write_parquet(other, row_group_size=10_000)
    os.replace(other, path)


def written_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"0.5,0.5,a,2000\n")


CHANGES: dict[str, Callable[[Path], None]] = {"cut": cut, "replaced": replaced, "written to": written_to}


def file(folder: Path, ending: str) -> Path:
    """The table as a file in which nothing is wrong."""
    path = folder / f"people{ending}"
    frame = table().drop("t").with_columns(m=pl.lit(2000))
    frame.write_csv(path) if ending == ".csv" else frame.write_parquet(path, row_group_size=10_000)
    return path


def once(change: Callable[[Path], None], path: Path) -> Callable[[int], None]:
    """To be told how many rows were read; changes the file when it hears so for the first time."""
    pending = [change]

    def report(rows: int) -> None:
        if pending:
            pending.pop()(path)

    return report


def changing(monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]) -> None:
    """Every file changes after the first batch that is read of it, for commands that have a progress report of their
    own.
    """
    from privfit.tables import FileTable, Table

    whole = Table.batches

    def batches(self: Table, *arguments: object) -> Iterator[object]:
        parts = whole(self, *arguments)  # type: ignore[arg-type]
        yield next(parts)
        if isinstance(self, FileTable):
            change(self.path)
        yield from parts

    monkeypatch.setattr(Table, "batches", batches)
