"""Parquet and CSV files, scanned in batches by polars and never held in memory whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from privfit.schema import Column, Numeric
from privfit.tables.frames import series_values
from privfit.tables.table import Batch, DataError

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv")


class FileTable:
    """A Parquet or CSV file, or any polars query, read in batches."""

    n_rows: int | None = None

    def __init__(self, scan: pl.LazyFrame, label: str, path: Path | None = None) -> None:
        self.scan = scan
        self._path = path
        self.label = label
        with _readable(label):
            self.names: tuple[str, ...] | None = tuple(scan.collect_schema().names())

    @classmethod
    def open(cls, path: Path) -> FileTable:
        """The file at this path, by its ending."""
        if not path.is_file():
            raise DataError(f"There is no file {path.name!r}. Give the path of a Parquet or CSV file. Nothing was charged.")
        name = path.name.lower()
        if name.endswith(PARQUET):
            with _readable(path.name):
                return cls(pl.scan_parquet(path), path.name, path)
        if name.endswith(CSV):
            with _readable(path.name):
                return cls(_scan_csv(path, {}), path.name, path)
        raise DataError(
            f"The file {path.name!r} is neither Parquet nor CSV by its ending. Use one of {[*PARQUET, *CSV]}. Nothing was charged."
        )

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self.names[position] for position in positions]  # type: ignore[index]
        scan = self.scan
        if self._path is not None and not self._path.name.lower().endswith(PARQUET):
            kinds: dict[str, pl.DataType] = {
                name: pl.Float64() if isinstance(column, Numeric) else pl.String() for name, column in zip(names, columns, strict=True)
            }
            scan = _scan_csv(self._path, kinds)
        with _readable(self.label):
            for frame in scan.select(names).collect_batches(chunk_size=rows, maintain_order=False):
                yield [series_values(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]


def _scan_csv(path: Path, kinds: dict[str, pl.DataType]) -> pl.LazyFrame:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    first = _first_line(path, compressed)
    tab, semicolon = path.name.lower().endswith(".tsv"), first.count(";") > first.count(",")
    separator = "\t" if tab else ";" if semicolon else ","
    return pl.scan_csv(
        path, separator=separator, schema_overrides=kinds or None, infer_schema=not kinds, null_values=["", "NA", "NaN", "nan"]
    )


def _first_line(path: Path, compressed: bool) -> str:
    if compressed:
        import gzip

        with gzip.open(path, "rb") as unpacked:
            return unpacked.readline().decode("utf-8", "replace")
    with path.open("rb") as file:
        return file.readline().decode("utf-8", "replace")


class _readable:
    """Turn an engine's error, which may quote cells, into ours, which never does."""

    def __init__(self, label: str) -> None:
        self._label = label

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pl.exceptions.PolarsError | OSError | UnicodeDecodeError):
            raise DataError(
                f"The table {self._label!r} cannot be read as the schema says ({type(error).__name__}). "
                "Check that the file is whole and that its columns hold the kinds of values the schema lists. Nothing was charged."
            ) from None
