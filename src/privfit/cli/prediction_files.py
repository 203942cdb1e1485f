"""Where predictions go: a file, a folder or stdout, batch by batch. Nothing is left of what was not finished."""

from __future__ import annotations

import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import polars as pl
import pyarrow.parquet as pq

from privfit.cli.errors import CommandError

CSV = (".csv",)
PARQUET = (".parquet", ".pq")
FILE_ROWS = 1 << 20
"""Rows of a file in a folder: large enough to be read quickly, small enough to be moved about."""
IN_MEMORY = 1 << 26
"""Bytes for stdout that wait in memory; more wait in a temporary file until all rows are predicted."""


class FrameWriter(ABC):
    """Takes the rows of one file, frame by frame. All frames have the types of the first."""

    def __init__(self) -> None:
        self.rows = 0
        self._types: pl.Schema | None = None

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows."""
        first = self._types is None
        self._types = self._types or frame.schema
        self._add(frame.cast(self._types), first)
        self.rows += frame.height

    @abstractmethod
    def _add(self, frame: pl.DataFrame, first: bool) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """No more rows come."""


class CsvWriter(FrameWriter):
    """Writes CSV to an open file."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def _add(self, frame: pl.DataFrame, first: bool) -> None:
        self._file.write(frame.write_csv(include_header=first).encode())

    def close(self) -> None:
        self._file.flush()


class ParquetWriter(FrameWriter):
    """Writes Parquet, one row group per frame."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def _add(self, frame: pl.DataFrame, first: bool) -> None:
        table = frame.to_arrow()
        self._writer = self._writer or pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def write_stdout(frames: Iterable[pl.DataFrame]) -> int:
    """CSV on stdout, once all of it is there."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as waiting:
        rows = _fill(CsvWriter(waiting), frames)
        waiting.seek(0)
        out = getattr(sys.stdout, "buffer", None)
        for block in iter(lambda: waiting.read(1 << 20), b""):
            if out is None:
                sys.stdout.write(block.decode())
            else:
                out.write(block)
        sys.stdout.flush()
    return rows


def write_file(frames: Iterable[pl.DataFrame], path: Path) -> int:
    """One file, in place of whatever was there once all of it is written."""
    with tempfile.TemporaryDirectory(prefix=".privfit-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        rows = _fill_file(frames, made)
        made.replace(path)
    return rows


def write_folder(frames: Iterable[pl.DataFrame], folder: Path, ending: str) -> int:
    """A folder of files in the order of their names, which is there once all of them are written."""
    rows, number = 0, 0
    with tempfile.TemporaryDirectory(prefix=".privfit-", dir=folder.parent) as within:
        made = Path(within) / "made"
        made.mkdir()
        held: list[pl.DataFrame] = []
        waiting = iter(frames)
        while held := _next_rows(waiting):
            rows += _fill_file(held, made / f"predictions-{number:05d}{ending}")
            number += 1
        if folder.exists():
            folder.rmdir()  # empty: it was looked at before anything was read
        shutil.move(made, folder)
    return rows


def _next_rows(frames: Iterable[pl.DataFrame]) -> list[pl.DataFrame]:
    """Frames with about as many rows as a file has."""
    held, count = [], 0
    for frame in frames:
        held.append(frame)
        count += frame.height
        if count >= FILE_ROWS:
            break
    return held


def _fill_file(frames: Iterable[pl.DataFrame], path: Path) -> int:
    if path.suffix.lower() in PARQUET:
        return _fill(ParquetWriter(path), frames)
    with path.open("wb") as file:
        return _fill(CsvWriter(file), frames)


def _fill(writer: FrameWriter, frames: Iterable[pl.DataFrame]) -> int:
    try:
        for frame in frames:
            writer.write(frame)
    finally:
        writer.close()
    return writer.rows


def check_ending(output: Path) -> None:
    """Refuse a file whose ending names no format."""
    if output.suffix.lower() not in (*CSV, *PARQUET):
        raise CommandError(
            f"-o {output} ends in neither .csv nor .parquet, so its format is unknown. Give it one of these endings: "
            f"{', '.join(CSV + PARQUET)}."
        )


def check_folder(folder: Path) -> None:
    """Refuse a folder that has something in it, or that lies in none."""
    if not folder.parent.is_dir():
        raise CommandError(f"-o {folder} lies in a folder that does not exist. Make the folder first.")
    if folder.exists() and any(folder.iterdir()):
        raise CommandError(f"-o {folder} has files in it, which would be mixed with the predictions. Give another.")
