"""Places to write to, checked before anything is read or charged."""

from __future__ import annotations

import os
from pathlib import Path

from privfit.cli.errors import CommandError

_BESIDE = ("-journal", "-wal", "-shm")  # files that SQLite makes, reads and removes beside a ledger


def check_output(path: Path, *inputs: Path | None, ledger: Path | None = None) -> None:
    """Refuse a place that cannot be written, that is an input of the command, or that SQLite uses beside the ledger.

    A fit that fails to save its model has spent its budget for nothing, so this comes first.
    """
    if path.is_dir():
        raise CommandError(f"-o {path} is a folder, and a file is written. Give a file name inside it.")
    if not path.parent.is_dir():
        raise CommandError(
            f"-o {path} lies in a folder that does not exist. Make the folder first. Nothing was read or charged."
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"-o {path} may not be written by you. Choose another place. Nothing was read or charged.")
    for given in (*inputs, ledger):
        if given is not None and path.resolve() == given.resolve():
            raise CommandError(
                f"-o {path} is also an input of this command and would be overwritten. Choose another name for the "
                "result."
            )
    if ledger is not None and str(path.resolve()) in [f"{ledger.resolve()}{ending}" for ending in _BESIDE]:
        raise CommandError(
            f"-o {path} is a file that the ledger {ledger} uses itself and removes. Choose another name for the "
            "result. "
            "Nothing was read or charged."
        )
