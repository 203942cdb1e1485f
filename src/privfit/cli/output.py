"""Places to write to, checked before anything is read or charged."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from privfit.cli.errors import CommandError

_BESIDE = ("-journal", "-wal", "-shm")  # files that SQLite makes, reads and removes beside a ledger


def check_output(path: Path, *inputs: str | Path | None, ledger: str | None = None, inside: bool = True) -> None:
    """Refuse a place that cannot be written, that is an input of the command, or that SQLite uses beside the ledger.

    A fit that fails to save its model has spent its budget for nothing, so this comes first. Without `inside`, the
    folder that the path lies in is made later.
    """
    if path.is_dir():
        raise CommandError(f"-o {path} is a folder, and a file is written. Give a file name inside it.")
    if inside and not path.parent.is_dir():
        raise CommandError(
            f"-o {path} lies in a folder that does not exist. Make the folder first. Nothing was read or charged."
        )
    if inside and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"-o {path} may not be written by you. Choose another place. Nothing was read or charged.")
    for given in (*inputs, ledger):
        if given is not None and _is_input(path, given):
            raise CommandError(
                f"-o {path} is also an input of this command and would be overwritten. Choose another name for the "
                "result."
            )
    beside = [] if ledger is None or "://" in ledger else [f"{Path(ledger).resolve()}{ending}" for ending in _BESIDE]
    if str(path.resolve()) in beside:
        raise CommandError(
            f"-o {path} is a file that the ledger {ledger} uses itself and removes. Choose another name for the "
            "result. "
            "Nothing was read or charged."
        )


def _is_input(path: Path, given: str | Path) -> bool:
    """Whether a path is a table that was given, or one of the files of a folder or a pattern."""
    text = str(given).partition("?")[0].removeprefix("duckdb:///").removeprefix("file://")
    place = path.resolve()
    if "://" in text:
        return False
    source = Path(given) if Path(given).is_file() else Path(text)
    if source.is_dir():
        return place.is_relative_to(source.resolve())
    if glob.has_magic(str(given)) and not source.is_file():
        return any(_is_input(path, Path(match)) for match in glob.glob(str(given), recursive=True))
    return place == source.resolve()
