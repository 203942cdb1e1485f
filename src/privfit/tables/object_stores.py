"""Files in object stores and on web servers: `s3://`, `gs://`, `az://`, `https://`, by pyarrow or fsspec.

Parquet is read where it lies, a few columns and a piece of a row group at a time. CSV and Arrow files are copied to a
temporary file first, which only its owner can read: they are then checked and read as any file is. Addresses may carry
credentials, and so never stand in a label or an error.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.fs as arrow_fs
import pyarrow.parquet as pq

from privfit.schema import Column
from privfit.tables.drivers import driver
from privfit.tables.errors import DataError, changed_source
from privfit.tables.kinds import arrow_kinds
from privfit.tables.parquet_files import FAR_BUFFER, parquet_batches
from privfit.tables.table import Batch, Table, quietly

BY_ARROW = ("s3", "gs", "gcs", "abfs", "abfss")
"""Schemes that pyarrow reads by itself; fsspec reads the others."""
WEB = ("http", "https")
AZURE = {
    "account_name": "AZURE_STORAGE_ACCOUNT_NAME",
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
}
"""Where az:// finds its account: variables of the environment, as in Azure's own tools."""
COPIED = 1 << 22
"""Bytes that are copied at once."""


def is_remote(given: str) -> bool:
    """Whether a text is an address, and not a path."""
    scheme, found, _ = given.partition("://")
    return bool(found) and scheme.replace("+", "").isalnum()


@dataclass(frozen=True, repr=False)
class Place:
    """A file system and a path in it."""

    scheme: str
    files: Any
    path: str

    def info(self) -> Any:
        """What the store says about the file now: its kind, size and time."""
        return self.files.get_file_info(self.path)

    def mark(self) -> tuple[int | None, int | None]:
        """What shows whether the file was changed."""
        now = self.info()
        return now.size, now.mtime_ns

    def beside(self, path: str) -> Place:
        """Another path of the same store."""
        return Place(self.scheme, self.files, path)


def place_of(address: str) -> Place:
    """The file system behind an address, and the path in it."""
    scheme = address.partition("://")[0].lower()
    find = _in_azure if scheme == "az" else _by_arrow if scheme in BY_ARROW else _by_fsspec
    return Place(scheme, *quietly(f"{scheme} address", lambda: find(address)))


def _in_azure(address: str) -> tuple[Any, str]:
    known = {name: os.environ[variable] for name, variable in AZURE.items() if variable in os.environ}
    if "account_name" not in known:
        raise DataError(
            "An address that begins with az:// was given, and the environment does not name the account. Set "
            "AZURE_STORAGE_ACCOUNT_NAME. Nothing was charged."
        )
    return arrow_fs.AzureFileSystem(**known), address.removeprefix("az://").rstrip("/")


def _by_arrow(address: str) -> tuple[Any, str]:
    """The path is put together here, because characters such as [ and * have no place in an address."""
    plain, mark, options = address.partition("?")
    scheme, _, rest = plain.partition("://")
    bucket, _, key = rest.partition("/")
    files, root = arrow_fs.FileSystem.from_uri(f"{scheme}://{bucket}{mark}{options}")
    return files, f"{root.rstrip('/')}/{key}".rstrip("/")


def _by_fsspec(address: str) -> tuple[Any, str]:
    scheme = address.partition("://")[0].lower()
    fsspec = driver("fsspec", f"An address that begins with {scheme}://", "objects")
    if scheme in WEB:
        driver("aiohttp", f"An address that begins with {scheme}://", "objects")
    if scheme not in fsspec.available_protocols():
        raise DataError(
            f"An address that begins with {scheme}:// was given, which nobody here reads. privfit reads s3://, gs://, "
            "az://, https:// and what fsspec reads. Nothing was charged."
        )
    files, path = fsspec.core.url_to_fs(address, use_listings_cache=False)
    return arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(files)), str(path)


class ObjectTable(Table):
    """A Parquet file in an object store.

    Every pass must find the file that was opened: its size, its time, its footer, and as many rows as that says.
    """

    def __init__(self, place: Place, label: str) -> None:
        self.label = label
        self._place = place
        self._mark = quietly(label, place.mark)
        self._footer = quietly(label, self._read_footer)
        self._schema = self._footer.schema.to_arrow_schema()
        self.names = self._fields = tuple(self._schema.names)
        self.n_rows = self._footer.num_rows

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        self._check()
        count = 0
        with self._place.files.open_input_file(self._place.path) as file:
            for batch in parquet_batches(file, self._schema, columns, positions, rows, FAR_BUFFER):
                count += len(batch[0])
                yield batch
        self._check()
        if count != self.n_rows:
            raise changed_source(self.label)

    def kinds(self) -> pl.Schema:
        """The types of the columns."""
        return arrow_kinds(self._schema)

    def _read_footer(self) -> Any:
        with self._place.files.open_input_file(self._place.path) as file:
            return pq.ParquetFile(file).metadata

    def _check(self) -> None:
        """Refuse another file in its place; one of the same size in the same second has another footer."""
        if self._place.mark() != self._mark or not self._read_footer().equals(self._footer):
            raise changed_source(self.label)


def local_copy(place: Place, ending: str) -> Any:
    """A temporary file with what the place holds, removed with the object that is returned.

    Refused if the store has another file, or another number of bytes, than before.
    """
    before = place.mark()
    copy = tempfile.NamedTemporaryFile(prefix="privfit-", suffix=ending)  # noqa: SIM115  # lives as long as its table
    with place.files.open_input_stream(place.path) as source:
        shutil.copyfileobj(source, copy, COPIED)
    copy.flush()
    if place.mark() != before or before[0] not in (None, Path(copy.name).stat().st_size):
        raise changed_source(f"{place.scheme} file")
    return copy
