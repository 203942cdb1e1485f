"""A file on this machine, which its ending says how to read. All other places are in locations.py."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from privfit.tables.arrow_files import ArrowFileTable
from privfit.tables.csv_files import CsvTable
from privfit.tables.parquet_files import ParquetTable
from privfit.tables.table import FileTable, quietly

FILES: tuple[type[FileTable], ...] = (ParquetTable, CsvTable, ArrowFileTable)
ENDINGS = tuple(ending for engine in FILES for ending in engine.endings)


def local_file(given: str | os.PathLike[str], label: str | None = None) -> FileTable:
    """The file at this path; `label` is what it is called where its own name shall not be shown."""
    path = Path(given)
    engine = file_engine(path.name)
    assert engine is not None
    return quietly(label or path.name, partial(engine, path, label))


def file_engine(name: str) -> type[FileTable] | None:
    """What reads a file of this name, by its ending."""
    return next((engine for engine in FILES if name.lower().endswith(engine.endings)), None)
