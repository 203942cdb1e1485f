"""Places to write to, checked before anything is read or charged."""

from __future__ import annotations

import os
from pathlib import Path

from privfit.cli.errors import CommandError


def check_output(path: Path, *inputs: Path | None) -> None:
    """Refuse a place that cannot be written, or that is one of the command's own inputs.

    A fit that fails to save its model has spent its budget for nothing, so this comes first.
    """
    if path.is_dir():
        raise CommandError(f"-o {path} is a folder, and a file is written. Give a file name inside it.")
    if not path.parent.is_dir():
        raise CommandError(f"-o {path} lies in a folder that does not exist. Make the folder first. Nothing was read or charged.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"-o {path} may not be written by you. Choose another place. Nothing was read or charged.")
    for given in inputs:
        if given is not None and path.resolve() == given.resolve():
            raise CommandError(f"-o {path} is also an input of this command and would be overwritten. Choose another name for the result.")
