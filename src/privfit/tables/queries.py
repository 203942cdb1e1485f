"""Queries of polars, read in batches to their very end or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from queue import Full, Queue
from threading import Event, Thread, main_thread

import polars as pl

from privfit.tables.quiet import unreadable

WAITING = 2
"""Batches that the engine may be ahead: enough that neither side waits for the other, and no more memory than that."""
PATIENCE = 0.1
"""Seconds after which a waiting engine looks whether anybody still reads; only an abandoned read ever waits that long.
"""


@dataclass(frozen=True)
class _End:
    """How a query ended: of its own accord, or with an error of this type."""

    error: str | None


def query_batches(query: pl.LazyFrame, rows: int, label: str) -> Iterator[pl.DataFrame]:
    """The rows of a query in batches of about `rows`, in order; an error if the engine did not come to the end of them.

    `LazyFrame.collect_batches` runs a query on a thread of its own and takes the end of that thread for the end of the
    rows. If the query panics on the value in one cell, the thread ends and the rest of the table is missing without an
    error: one row decides what becomes of the others. `sink_batches` returns after the last batch, or raises what
    stopped it, a panic too. It calls back; the queue turns that round. Nothing of the engine's error but its type is
    kept.
    """
    handed: Queue[pl.DataFrame | _End] = Queue(WAITING)
    left = Event()

    def hand_on(frame: pl.DataFrame) -> bool:
        """Called by the engine. True tells it that nobody reads any more."""
        return not _put(handed, frame, left)

    def run() -> None:
        kind = None
        try:
            query.sink_batches(hand_on, chunk_size=rows, maintain_order=True, engine="streaming")
        except BaseException as error:
            kind = type(error).__name__
        _put(handed, _End(kind), left)

    engine = Thread(target=run, name="privfit-query")
    engine.start()
    try:
        while not isinstance(part := handed.get(), _End):
            yield part
        if part.error is not None:
            raise unreadable(label, part.error)
    finally:
        left.set()
        engine.join()


def _put(handed: Queue[pl.DataFrame | _End], part: pl.DataFrame | _End, left: Event) -> bool:
    """Whether the reader took it. A reader that went away, or a program that ends, takes nothing."""
    while not left.is_set() and main_thread().is_alive():
        try:
            handed.put(part, timeout=PATIENCE)
        except Full:
            continue
        return True
    return False
