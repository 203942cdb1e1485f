"""Engines' errors may quote cells. Ours never do, and keep nothing of theirs but the name of its type.

What an engine prints is out of reach: when a thread of polars panics, Rust writes its message to the process's standard
error before Python hears of it, and polars has no switch for that. Redirecting file descriptor 2 meanwhile would
swallow what other threads of the caller write. The message comes before any charge and may quote a cell, so
docs/guide.md tells the data owner not to pass that stream on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

from privfit.schema import Column
from privfit.tables.table import Batch, DataError

Result = TypeVar("Result")
Batches = Callable[[Any, Sequence[Column], Sequence[int], int], Iterator[Batch]]


def quietly(label: str, read: Callable[[], Result]) -> Result:
    """What an engine reads. Its error is dropped whole, chain and all, before ours is raised.

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


def quiet_batches(batches: Batches) -> Batches:
    """The `batches` of a table, with every error on the way made ours: also those of cells that are objects with
    methods of their own.
    """

    @wraps(batches)
    def guarded(table: Any, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        parts = batches(table, columns, positions, rows)
        try:
            while (part := quietly(table.label, lambda: next(parts, None))) is not None:
                yield part
        finally:
            parts.close()  # type: ignore[attr-defined]  # a generator; a reader's thread and handles end with it

    return guarded
