"""How many rows each level of a column has that nobody has listed, in one pass."""

from __future__ import annotations

from collections.abc import Iterator

from privfit.rows.rows import BATCH_ROWS, Rows
from privfit.schema.columns import EXACT_WHOLE
from privfit.tables import Batch, DataError, numbered_pieces
from privfit.tables.open_levels import counted_levels, other_kind

OpenCounts = dict[str | float, int]

MOST_HELD = 10_000_000
"""The most levels that are counted: in memory they take about 1 GB. Chosen, not measured."""


def count_open_levels(rows: Rows) -> OpenCounts:
    """How many rows each level of the only column has; rows without a value count nowhere.

    Every error that the table holds is met here.

    Guarantee: a row is in at most one level, which is a function of that row; docs/proofs/open-levels.md, Lemma 1.
    """
    column = rows.geometry.blocks[0].column
    if rows.on_workers:
        counts = rows.run(_partition_counts, _joined) or {}
    else:
        counts = _counted(batch for _, batch in rows.pieces(BATCH_ROWS))
    if len({isinstance(level, str) for level in counts}) > 1:
        raise other_kind(column)
    if len(counts) > MOST_HELD:
        raise DataError(
            f"Column {column.name!r} has more than {MOST_HELD:,} levels. So many are identifiers, or numbers: give a "
            "column whose levels many rows share. Nothing was charged."
        )
    if any(not isinstance(level, str) and not abs(level) < EXACT_WHOLE for level in counts):
        raise DataError(
            f"Column {column.name!r} holds numbers that are infinite, or of 2^53 or more in size, where they are no "
            "longer distinguished exactly. Hold such codes as texts. Nothing was charged."
        )
    return counts


def _partition_counts(_: int, batches: Iterator[Batch]) -> OpenCounts | None:
    return _counted(piece for _, piece in numbered_pieces(batches, BATCH_ROWS)) or None


def _counted(batches: Iterator[Batch]) -> OpenCounts:
    counts: OpenCounts = {}
    for batch in batches:
        counts = _joined(counts, counted_levels(batch[0]))
    return counts


def _joined(counts: OpenCounts, more: OpenCounts) -> OpenCounts:
    """The counts of both, written over the first."""
    for level, count in more.items():
        counts[level] = counts.get(level, 0) + count
    return counts
