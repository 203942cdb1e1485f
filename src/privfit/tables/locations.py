"""From a path, a pattern, an address or a list of them to a table."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as arrow_fs

from privfit.tables.database_urls import parsed_url
from privfit.tables.duckdb_files import PREFIX as DUCKDB
from privfit.tables.duckdb_files import DuckDBTable
from privfit.tables.errors import DataError
from privfit.tables.local_files import ENDINGS, file_engine, local_file
from privfit.tables.object_stores import ObjectTable, Place, is_remote, local_copy, place_of
from privfit.tables.parquet_files import ParquetTable
from privfit.tables.postgresql import PREFIXES as POSTGRESQL
from privfit.tables.postgresql import PostgreSQLTable
from privfit.tables.several_files import FilesTable, Part, chosen_names, one_kind, partition_of
from privfit.tables.table import Table, TableLike, mark_of

QUOTED = 100
"""Characters of a file's name that an error quotes at most.

A text that is longer is more likely a table than a name.
"""


def is_location(table: TableLike) -> bool:
    """Whether this names a table: a path or an address, or a list of them."""
    if isinstance(table, list | tuple):
        return bool(table) and all(isinstance(one, str | os.PathLike) for one in table)
    return isinstance(table, str | os.PathLike)


def open_location(given: Any) -> Table:
    """The table that a path, a pattern, an address or a list of them names."""
    if isinstance(given, list | tuple):
        return _several([part for one in given for part in _parts(_plain_path(one))], "list")
    given = _plain_path(given)
    text = os.fspath(given)
    if isinstance(text, str) and text.startswith(DUCKDB):
        return DuckDBTable(parsed_url(text))
    if isinstance(text, str) and text.startswith(POSTGRESQL):
        return PostgreSQLTable(parsed_url(text))
    parts = _parts(given)
    if len(parts) == 1 and not parts[0].partition and _is_single(given, parts[0]):
        return _file(parts[0].place)
    return _several(parts, "folder" if not _is_pattern(text) else "pattern")


def _is_single(given: Any, part: Part) -> bool:
    """Whether the file itself was named, and not a folder or a pattern."""
    return isinstance(part.place, Place) or part.place == Path(given)


def _parts(given: Any) -> list[Part]:
    """The files that one path, pattern or address names."""
    if given == "":  # a path that was left out, and not the present folder
        raise _no_file("")
    if isinstance(given, str) and is_remote(given):
        return _remote_parts(place_of(given))
    try:
        path = Path(given)
        if path.is_dir():
            return [Part(path / name, partition_of(name)) for name in chosen_names(list(_below(path)))]
        if not path.is_file() and _is_pattern(given):
            return _matched(str(given))
    except DataError:
        raise
    except (OSError, ValueError, TypeError):  # too long, with a NUL, or no text at all
        pass
    return [Part(_existing_file(given))]


def _plain_path(given: Any) -> Any:
    """The path that begins with file:// or ~ as one of this machine, with or without % for other characters; all else
    as it is.
    """
    if isinstance(given, str) and given.lower().startswith("file://"):
        path = given[len("file://") :]
        return path if os.path.exists(path) else unquote(path)
    return os.path.expanduser(given)


def _existing_file(given: Any) -> Path:
    """The file at this path. An error quotes nothing which could be the content of a table."""
    try:
        path = Path(given)
        found = path.is_file()
    except (OSError, ValueError, TypeError):  # too long, with a NUL, or no text at all
        path, found = Path(), False
    if not found:
        raise _no_file(path.name)
    return _readable(path)


def _no_file(name: str) -> DataError:
    """The error for a path at which nothing is."""
    if _is_plain(name):
        return DataError(
            f"There is no file {name!r}. Give the path of a Parquet, CSV or Arrow file. Nothing was charged."
        )
    return DataError(
        "There is no file at the path that was given as a table. Give the path of a Parquet, CSV or Arrow file, or a "
        "table: text is read with polars.read_csv(io.StringIO(text)). Nothing was charged."
    )


def _is_plain(name: str) -> bool:
    """Whether this is the name of a file and nothing else: short, printable, with an ending that privfit reads."""
    return len(name) <= QUOTED and name.isprintable() and name.lower().endswith(ENDINGS)


def _readable(path: Path) -> Path:
    if file_engine(path.name) is not None:
        return path
    raise DataError(
        f"The file {path.name!r} is neither Parquet nor CSV nor Arrow by its ending. Use one of {[*ENDINGS]}. Nothing "
        "was charged."
    )


def _is_pattern(given: Any) -> bool:
    return isinstance(given, str | os.PathLike) and glob.has_magic(os.fspath(given))


def _below(folder: Path, seen: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """The paths of all files below a folder, links followed, relative to it."""
    state = folder.stat()
    here = (state.st_dev, state.st_ino)
    if here in seen:
        raise DataError("A folder that contains itself by a link was given. Remove the link. Nothing was charged.")
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from (f"{entry.name}/{name}" for name in _below(Path(entry.path), (*seen, here)))
        else:
            yield entry.name


def _matched(pattern: str) -> list[Part]:
    """The files that a pattern matches, and those below folders that it matches."""
    fixed = list(takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))
    root = Path(*fixed)
    parts = []
    for match in sorted(glob.glob(pattern, recursive=True)):
        found = Path(match)
        names = chosen_names(list(_below(found))) if found.is_dir() else None
        for path in [found] if names is None else [found / name for name in names]:
            parts.append(Part(_readable(path), partition_of(path.relative_to(root).as_posix())))
    if not parts:
        raise DataError("There is no file that the pattern matches. Give the path of a file. Nothing was charged.")
    return list({part.place: part for part in parts}.values())  # ** matches folders and what is in them


def _remote_parts(place: Place) -> list[Part]:
    """The files that an address names: one, those below a folder, or those that match a pattern."""
    if "*" in place.path or "[" in place.path:
        root = "/".join(takewhile(lambda part: not glob.has_magic(part), place.path.split("/")))
        return _remote_chosen(place, root, [name for name in _listed(place, root) if _matches(f"{root}/{name}", place)])
    if place.info().type == arrow_fs.FileType.Directory:
        return _remote_chosen(place, place.path, _listed(place, place.path))
    if file_engine(_name(place)) is None:
        raise DataError(
            "An address was given that ends in none of "
            f"{[*ENDINGS]} and is no folder. Give the address of a file or folder. Nothing was charged."
        )
    return [Part(place)]


def _matches(path: str, place: Place) -> bool:
    """Whether a path matches a pattern part by part: * stands for no more than one of them, ** for any number."""
    parts, patterns = path.split("/"), place.path.split("/")
    if "**" in patterns:
        return fnmatchcase(path, place.path.replace("**/", "*"))
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _listed(place: Place, root: str) -> list[str]:
    found = place.files.get_file_info(arrow_fs.FileSelector(root, recursive=True))
    start = len(root.rstrip("/")) + 1
    return [info.path[start:] for info in found if info.type == arrow_fs.FileType.File]


def _remote_chosen(place: Place, root: str, names: Sequence[str]) -> list[Part]:
    return [Part(place.beside(f"{root}/{name}"), partition_of(name)) for name in chosen_names(names)]


def _several(parts: Sequence[Part], how: str) -> Table:
    if not parts:
        raise DataError(
            "There is no file with rows in the folder that was given. Give the path of a folder with Parquet, CSV or "
            "Arrow files. Nothing was charged."
        )
    kind = one_kind([_name(part.place) for part in parts])
    _refuse_twice(parts)
    tables = [_file(part.place, f"file {i} of {len(parts)}") for i, part in enumerate(parts, start=1)]
    return FilesTable(tables, [part.partition for part in parts], f"{how} of {kind} files")


def _refuse_twice(parts: Sequence[Part]) -> None:
    """Refuse a file that is given twice: its rows would count twice, and noise covers them once."""
    same = [
        (part.place.scheme, part.place.path) if isinstance(part.place, Place) else mark_of(part.place)[:2]
        for part in parts
    ]
    if len(set(same)) < len(same):
        raise DataError(
            "The same file was given twice, by another name or a link, and its rows would count twice. Give every file "
            "once. Nothing was charged."
        )


def _name(place: Any) -> str:
    return place.path.partition("?")[0] if isinstance(place, Place) else place.name


def _file(place: Any, label: str | None = None) -> Table:
    """One file, by the ending of its name."""
    if not isinstance(place, Place):
        return local_file(place, label)
    engine = file_engine(_name(place))
    assert engine is not None
    called = label or f"{engine.kind} file ({place.scheme})"
    if engine is ParquetTable:
        return ObjectTable(place, called)
    name = _name(place).lower()
    copy = local_copy(place, max((ending for ending in ENDINGS if name.endswith(ending)), key=len))
    table = _file(Path(copy.name), called)
    table.copied = copy  # type: ignore[attr-defined]  # removed with the table
    return table
