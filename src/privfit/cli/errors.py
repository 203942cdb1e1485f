"""Errors as a person at a terminal wants them: one sentence, no traceback, and an exit code a script can act on."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

import typer
from rich.text import Text

from privfit.cli.console import print_json, stderr
from privfit.models import ModelFileError
from privfit.privacy import BudgetExceeded, LedgerError, PrivacyError
from privfit.schema import SchemaError
from privfit.tables import DataError

FAILED = 1
"""Exit code of any other error."""
INCOMPLETE = 2
"""Exit code of a command line that lacks something, as click has it."""
OVERDRAWN = 3
"""Exit code of a budget that does not suffice, so that scripts can distinguish it."""

Options = ParamSpec("Options")


class FactsMissing(SchemaError):
    """A schema whose question marks are not all filled in: as a command line that lacks something."""


class CommandError(ValueError):
    """Options that do not go together, or a place that cannot be written. Nothing has been read or charged."""


OURS = (CommandError, SchemaError, DataError, PrivacyError, LedgerError, ModelFileError)


def in_one_sentence(command: Callable[Options, None]) -> Callable[Options, None]:
    """The command, with the errors that privfit raises on purpose printed and turned into an exit code.

    Exit codes: 1 for an error, 2 for a schema that lacks facts, 3 when the ledger has too little left. With --json the
    error is also an object on stdout.
    """

    @functools.wraps(command)
    def run(*args: Options.args, **options: Options.kwargs) -> None:
        try:
            command(*args, **options)
        except OURS as error:
            message = error.for_toml if isinstance(error, DataError) else str(error)
            _show(type(error).__name__, message, _wants_json(options))
            raise typer.Exit(_code(error)) from None
        except BrokenPipeError:  # who reads what is printed has enough, as `head` has
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except OSError as error:
            where = f" {error.filename!r}" if error.filename else ""
            message = (
                f"The file{where} cannot be read or written: {error.strerror or type(error).__name__}. Check the path "
                "and its permissions."
            )
            _show(type(error).__name__, message, _wants_json(options))
            raise typer.Exit(FAILED) from None

    return run


def _code(error: Exception) -> int:
    if isinstance(error, FactsMissing):
        return INCOMPLETE
    return OVERDRAWN if isinstance(error, BudgetExceeded) else FAILED


def _wants_json(options: Mapping[str, Any]) -> bool:
    return bool(options.get("as_json")) or options.get("form") == "json"


def _show(kind: str, message: str, as_json: bool) -> None:
    stderr().print(Text(f"Error: {message}", style="red"), soft_wrap=True)
    if as_json:
        print_json({"error": kind, "message": message})
