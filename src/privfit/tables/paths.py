"""Paths of files: whether a text is one, what may be said of it, and whether the file stays what it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from privfit.tables.table import DataError

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv")
QUOTED = 100
"""Characters of a file's name that an error quotes at most.

A text that is longer is more likely a table than a name.
"""

Mark = tuple[int, int, int, int]


def existing_file(given: Any) -> Path:
    """The file at a path, or an error that quotes nothing which could be the content of a table."""
    try:
        path = Path(given)
        if path.is_file():
            return path
        name = path.name
    except (OSError, ValueError, TypeError):  # too long, with a NUL, or no text at all
        name = ""
    if _is_plain(name):
        raise DataError(f"There is no file {name!r}. Give the path of a Parquet or CSV file. Nothing was charged.")
    raise DataError(
        "There is no file at the path that was given as a table. Give the path of a Parquet or CSV file, or a table: "
        "text is read with polars.read_csv(io.StringIO(text)). Nothing was charged."
    )


def _is_plain(name: str) -> bool:
    """Whether this is the name of a file and nothing else: short, printable, with an ending that privfit reads."""
    return len(name) <= QUOTED and name.isprintable() and name.lower().endswith((*PARQUET, *CSV))


def mark_of(path: Path) -> Mark:
    """What tells a file from any other, and from itself after it was written to."""
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def changed_file(label: str) -> DataError:
    """The error for a file that is not what it was when it was opened."""
    return DataError(
        f"The file {label!r} was cut, replaced or written to after it was opened, so that its rows are not those of "
        "one table. "
        "Give a copy that nobody writes to. Nothing was charged."
    )
