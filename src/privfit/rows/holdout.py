"""A table divided into two parts of persons or rows: which rows are in which, and tables that hand out one part each.

Every identity has a part by itself, a keyed hash of it: a person, or what a row holds together with how many rows that
hold the same came before it. Rows that hold the same cannot be distinguished by any release on a part, because a
release may read no other columns than those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Split
from privfit.rows.contingency import cell_geometry
from privfit.rows.errors import no_rows
from privfit.rows.level_counts import count_levels
from privfit.rows.persons import _by_person, _place, _words
from privfit.rows.rows import BATCH_ROWS, Rows
from privfit.schema import OTHER, Category, Column, Geometry, Schema
from privfit.tables import ABSENT, UNKNOWN, Batch, DataError, PersonColumn, Table, Values
from privfit.tables.identifiers import siphash

Words = NDArray[np.uint64]

EIGHT_BYTES = np.uint64(8 << 56)
"""Ends a message of whole words: its length, as SipHash wants it, up to multiples of 256 bytes. Messages under one key
have one length."""


@dataclass(frozen=True)
class Part:
    """Which part of which split a table hands out."""

    split: Split
    name: str


class PartRows(Table):
    """The rows of one part of a table, for whatever reads a table.

    Guarantee: which part a row is in depends on its person, or on its content and on how many rows hold the same,
    under a secret key; docs/proofs/holdout.md, Lemma 1.
    """

    same_order = True

    def __init__(self, table: Table, schema: Schema, split: Split, name: str, held: NDArray[np.bool_]) -> None:
        self._table, self._schema, self._held = table, schema, held
        self.label, self.names, self.labels = table.label, table.names, table.labels
        self.width, self.is_csv, self.n_rows = table.width, table.is_csv, int(held.sum())
        self.part = Part(split, name)
        self.needs_person = schema.person
        self._key = person_key(split)
        self._places = dict(zip(table.positions(schema.columns), schema.columns, strict=True))

    def positions(self, columns: Sequence[Column]) -> list[int]:
        """Where the whole table has these columns."""
        return self._table.positions(columns)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of the part's rows, some of them empty."""
        own = [self._covered(column, place) for column, place in zip(columns, positions, strict=True)]
        first = 0
        for batch in self._table.batches(own, positions, rows):
            count = len(batch[0]) if batch else 0
            places = np.flatnonzero(self._held[first : first + count])
            first += count
            yield [_as_asked(values.take(places), *each) for values, *each in zip(batch, own, columns, strict=True)]
        if first != len(self._held):
            raise DataError(
                f"The table {self.label!r} has other rows than when it was divided. Divide it again with pf.holdout. "
                "Nothing was charged."
            )

    def _covered(self, column: Column, place: int) -> Column:
        """The column as it was read when rows were divided; refuses one that was not."""
        if isinstance(column, PersonColumn) and column.name == self.needs_person:
            return cast("Column", PersonColumn(column.name, self._key))
        known = self._places.get(place)
        alike = known is not None and type(known) is type(column)
        if alike and isinstance(column, Category) and isinstance(known, Category):
            named = set(map(_level, column.levels)) - ({_level(OTHER)} if column.other else set())
            alike = named <= set(map(_level, known.levels))
        if not alike or known is None:
            raise DataError(
                f"The column {column.name!r} was asked of a part of a table that was divided without it, or with other "
                "levels or another kind. Rows have parts by the columns of the schema that pf.holdout was given: list "
                "every column there that any release on a part reads. Nothing was charged."
            )
        return known


def _level(level: object) -> tuple[bool, object]:
    return isinstance(level, str), level


def _as_asked(values: Values, own: Column, asked: Column) -> Values:
    """Values that were read as one column, as if another one had been asked for: other levels, or another key."""
    if isinstance(asked, PersonColumn):
        persons = cast(Any, values)
        return cast(Values, siphash(_message([persons["high"], persons["low"]]), asked.key))
    if not isinstance(own, Category) or not isinstance(asked, Category) or own.levels == asked.levels:
        return values
    places = {_level(level): place for place, level in enumerate(asked.levels)}
    codes = [places.get(_level(level), UNKNOWN) for level in own.levels]
    table = np.array([*codes, ABSENT, UNKNOWN], dtype=np.int32)  # -2 is absent and -1 unknown, counted from the end
    return table[values.astype(np.intp)]


def person_key(split: Split) -> bytes:
    """The key under which persons or contents are hashed."""
    return bytes.fromhex(split.key)[:16]


def part_key(split: Split) -> bytes:
    """The key under which identities get their part."""
    return bytes.fromhex(split.key)[16:32]


def divided(table: Table, schema: Schema, split: Split) -> NDArray[np.bool_]:
    """For every row whether it is one to evaluate on, in one pass."""
    return below_share(siphash(_message(identities(table, schema, split)), part_key(split))["high"], split.share)


def divided_once(table: Table, schema: Schema, keys: bytes, share: str) -> tuple[PartRows, PartRows]:
    """Two parts of a table for one release, by the places of its rows: bits of their own for every row.

    Every cell is read, so that what it may refuse, it refuses now.

    Guarantee: docs/proofs/search.md; the bits are used for one release, and rows keep their places meanwhile.
    """
    split = Split("", "", keys.hex(), "content", "", share)
    if table.passes_once or not (table.in_memory or table.same_order):
        table.keep(schema.columns)
    cells = cell_geometry(schema, 2)
    blocks = cells.blocks if cells.target is None else (*cells.blocks, cells.target)
    rows = Rows(table, Schema(schema.columns), Geometry(blocks, False))
    n_rows = int(count_levels(rows)[0].sum())
    places = np.arange(n_rows, dtype=np.uint64)
    held = below_share(siphash(_message([places]), part_key(split))["high"], share)
    if held.all():
        raise DataError(
            "A table was divided, and none of its few rows is one to fit on. Give a table with more rows, or a smaller "
            "share. Nothing was charged."
        )
    fit, evaluate = (PartRows(table, schema, split, "", own) for own in (~held, held))
    fit.part = evaluate.part = None  # the release is charged as a whole
    return fit, evaluate


def identities(table: Table, schema: Schema, split: Split) -> list[Words]:
    """Who or what has a part, for every row, as three words: the hash of the person; or of what the row holds, and how
    many rows that hold the same come before it.

    A table that passes by once, or whose rows may come in another order next time, is kept in a temporary file for it.
    """
    columns = list(schema.columns)
    if schema.person is not None:
        columns.append(cast(Any, PersonColumn(schema.person, person_key(split))))
    if table.passes_once or not (table.in_memory or table.same_order):
        table.keep(columns)
    asked = columns if schema.person is None else columns[-1:]
    batches = table.batches(asked, table.positions(columns)[-len(asked) :], BATCH_ROWS)
    hashes = [_hashes(batch, schema.person is not None, person_key(split)) for batch in batches]
    if not hashes:
        raise no_rows()
    high, low = (np.concatenate([own[half] for own in hashes]) for half in ("high", "low"))
    number = np.zeros(len(high), dtype=np.uint64)
    if schema.person is None:
        order, first = _by_person(high, low)
        number[order] = _place(first).astype(np.uint64)
    return [high, low, number]


def below_share(drawn: Words, share: str) -> NDArray[np.bool_]:
    """Which of some random words belong to a share of all."""
    return np.asarray(drawn < np.uint64(int(Fraction(share) * 2**64)))


def _hashes(batch: Batch, persons: bool, key: bytes) -> NDArray[np.void]:
    if persons:
        return cast("NDArray[np.void]", batch[0])
    return siphash(_message([_words(values) for values in batch]), key)


def _message(words: Sequence[Words]) -> Words:
    """Words as messages of one length, one column each."""
    return np.stack([*words, np.full(len(words[0]), EIGHT_BYTES)])
