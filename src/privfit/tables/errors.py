"""Errors of tables: for the data owner, before any charge. They name columns and never quote a cell.

Engines' own errors may quote cells. `quietly` drops them whole and keeps nothing but the name of their type. What an
engine prints is out of reach: when a thread of polars panics, Rust writes its message to the process's standard error
before Python hears of it, and polars has no switch for that. Redirecting file descriptor 2 meanwhile would swallow what
other threads of the caller write. The message comes before any charge and may quote a cell, so docs/guide.md tells the
data owner not to pass that stream on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from privfit.schema import Category, Column

Result = TypeVar("Result")

NOT_CHARGED = " Nothing was charged."


class DataError(ValueError):
    """The table does not fit the schema.

    For the data owner: it names columns, never the value of a cell. Nothing was charged.

    Parameters
    ----------
    message : str
        What was given, what is needed, and what to do.
    when_predicting : str or None, default=None
        The message where the schema is part of a fitted model and cannot be changed.
    for_toml : str or None, default=None
        The message where the schema is a TOML file, as on the command line.

    See Also
    --------
    SchemaError : A public fact is missing or contradicts another one.
    """

    def __init__(self, message: str, *, when_predicting: str | None = None, for_toml: str | None = None) -> None:
        super().__init__(message)
        self.for_toml = for_toml or message
        self.when_predicting = when_predicting or message.replace(NOT_CHARGED, "")


class MissingValues(DataError):
    """A column has missing values that the schema has no public value for."""

    def __init__(
        self, message: str, *, column: str = "", when_predicting: str | None = None, for_toml: str | None = None
    ) -> None:
        super().__init__(message, when_predicting=when_predicting, for_toml=for_toml)
        self.column = column


def quietly(label: str, read: Callable[[], Result]) -> Result:
    """What an engine reads. Its error is dropped whole, chain and all, before ours is raised.

    A function and not a context manager: an error that is raised while a `with` block is left carries the other one.
    Panics of Rust code (`pyo3_runtime.PanicException`) and exits that a generator or a cell asks for are no
    `Exception`s, and are errors of reading all the same. Ctrl-C ends the fit, and carries nothing but that.
    """
    try:
        return read()
    except DataError:
        raise
    except BaseException as error:
        interrupted, kind = isinstance(error, KeyboardInterrupt), type(error).__name__
    if interrupted:
        raise KeyboardInterrupt
    raise unreadable(label, kind)


def unreadable(label: str, kind: str) -> DataError:
    """The error for a table that an engine could not read to its end; `kind` is the type of the engine's own error."""
    return DataError(
        f"The table {label!r} cannot be read as the schema says ({kind}). "
        "Check that it is whole and that its columns hold the kinds of values the schema lists. Nothing was charged."
    )


def wrong_type(column: Column, found: str) -> DataError:
    """The error for a column that holds another kind of value than the schema says."""
    wanted = "numbers"
    if isinstance(column, Category):
        wanted = "levels that are texts" if column.is_text else "levels that are numbers"
    fact = f"Column {column.name!r} holds {found}, and the schema says it holds {wanted}."
    return DataError(
        f"{fact} Convert the column, or correct the schema. Nothing was charged.",
        when_predicting=f"{fact} The schema is part of the model: convert the column.",
    )
