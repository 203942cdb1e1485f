"""Keeping what was read in memory where it fits, and reading it again where it does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from privfit.rows.rows import Rows, progress_report
from privfit.tables import NOT_CHARGED, DataError

Part = TypeVar("Part")


def half_of_memory() -> int:
    """Half of the machine's memory, in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 1 << 32


def refuse_large_stream(rows: Rows) -> None:
    """Refuse a stream that does not fit in memory, before anything is charged."""
    if rows.passes_once:
        raise DataError(
            f"A {rows.label} was given to a fit in several passes, and what it holds does not fit in memory. "
            "Give a file or a table that can be read again. Nothing was charged."
        )


def no_rows() -> DataError:
    """The error for an empty table."""
    return DataError(
        "The table has no rows (0 sample(s)), and a minimum of 1 is required. Give a table with rows. Nothing was "
        "charged."
    )


def other_rows() -> DataError:
    """The error for a table that grew or shrank between two readings."""
    return DataError("The table has another number of rows than when it was read first. The charge stands.")


def read_once(
    parts: Iterator[Part], rows: Rows, most_bytes: int, length: Callable[[Part], int], size: Callable[[Part], int]
) -> tuple[list[Part] | None, int]:
    """All parts of a table, or None if they take more than so many bytes, and how many rows there are.

    Every error that the table holds is met here, before anything is charged.
    """
    kept: list[Part] | None = []
    held, count, report = 0, 0, progress_report()
    for part in parts:
        count += length(part)
        if report is not None:
            report(count)
        if kept is not None:
            kept.append(part)
            held += size(part)
            if held > most_bytes:
                refuse_large_stream(rows)
                kept = None
    if not count:
        raise no_rows()
    rows.settle_count(count)
    return kept, count


def read_again(parts: Iterator[Part], n_rows: int, length: Callable[[Part], int]) -> Iterator[Part]:
    """The parts of a table that was read before, which must have as many rows as then.

    This happens after the charge, where no error may depend on a row. What a row can do to a reader (a cell of the
    wrong kind, a query that panics on a value), it did in the first pass, before the charge: engines read the same
    bytes the same way twice. What fails here and did not then was changed from outside: a file was replaced, a disk
    failed. Tables that may answer differently when asked again are streams, and are never read twice. (A query with a
    random part is the one exception: it is its author who makes the passes differ.)
    """
    count = 0
    try:
        for part in parts:
            count += length(part)
            yield part
    except DataError as error:
        told = str(error).replace(NOT_CHARGED, "")
        raise DataError(
            f"{told} The table was being read again, and is not what it was at first. The charge stands."
        ) from None
    if count != n_rows:
        raise other_rows()
