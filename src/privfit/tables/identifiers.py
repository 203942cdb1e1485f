"""Identifiers of persons: handed out as keyed hashes of 128 bits, and never as they are.

An identifier is a text or an integer; an integer is the text of its digits, so that every engine hashes the same bytes.
The hash is SipHash-2-4 with 128 bits (Aumasson and Bernstein 2012) under a key that is drawn for one fit: two persons
have one hash with a probability of about n^2 / 2^129, and without the key nobody finds out whose hash it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.tables.errors import DataError

if TYPE_CHECKING:
    from privfit.tables.table import Values

Words = NDArray[np.uint64]

HASH = np.dtype([("high", np.uint64), ("low", np.uint64)])
"""What a person is known by during one fit."""
AT_ONCE = 1 << 14
"""Texts that are hashed together: so many words stay close to the processor. No command varies it."""
FIRST_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(9)], dtype=np.uint64)
"""Masks of the first bytes of a word."""
TENS = np.array([10**power for power in range(16)], dtype=np.uint64)
"""Powers of ten; integers below the last one are written as digits without the way over texts."""
LANES = tuple(
    tuple(map(np.uint64, numbers))
    for numbers in (
        (100, 10486, 20, 0x0000007F0000007F, 16),
        (10, 103, 10, 0x000F000F000F000F, 8),
    )
)
"""How two and four numbers in the lanes of a word are each divided in two: by 100, as a product with 10486 / 2^20,
which is exact below 10,000, and by 10, as one with 103 / 2^10, which is exact below 100."""
ZEROS = np.uint64(0x3030303030303030)
"""Eight letters that are zeros."""
EXACT_WHOLE = float(1 << 53)
"""Identifiers that are floats are integers below this: larger ones are no longer distinguished."""


@dataclass(frozen=True)
class PersonColumn:
    """The column that says whose row it is, handed out as hashes under this key."""

    name: str
    key: bytes = field(repr=False)


def hashed_array(values: NDArray[Any], column: PersonColumn) -> Values:
    """The hashes of an array's column."""
    if values.dtype.kind in "iu":
        return hashed_series(pl.Series(values), column)
    if values.dtype.kind == "f":
        return hashed_series(pl.Series(values, nan_to_null=True), column)
    if values.dtype.kind not in "OUST":
        raise _wrong_kind(column)
    cells = [None if value is None or value != value else value for value in values.tolist()]
    if all(cell is None or isinstance(cell, str) for cell in cells):
        return hashed_series(pl.Series(cells, dtype=pl.String), column)
    if all(cell is None or (isinstance(cell, int) and not isinstance(cell, bool)) for cell in cells):
        return hashed_series(
            pl.Series([None if cell is None else str(cell) for cell in cells], dtype=pl.String), column
        )
    raise _wrong_kind(column)


def hashed_series(series: pl.Series, column: PersonColumn) -> Values:
    """The hashes of a polars column."""
    series = _checked(series, column)
    if series.null_count():
        raise _missing(column)
    if series.dtype.is_integer() and len(series) and series.min() >= 0 and series.max() < TENS[-1]:  # type: ignore[operator]
        return cast("Values", _hashed_integers(series.cast(pl.UInt64).to_numpy(), column.key))
    texts = series.cast(pl.String)
    held = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = held.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64, count=len(texts) + 1 + held.offset)[held.offset :]
    letters = np.frombuffer(data if data is not None else b"", dtype=np.uint8)
    return cast("Values", hashed(letters, ends, column.key))


def _checked(series: pl.Series, column: PersonColumn) -> pl.Series:
    """A column of texts or integers; floats without a fraction count as integers."""
    dtype = series.dtype
    if dtype.is_float():
        series = series.fill_nan(None)
        whole = series.cast(pl.Int64, strict=False)
        if not ((whole.cast(dtype) == series) & (series.abs() < EXACT_WHOLE)).all():
            raise _wrong_kind(column)
        return whole
    if dtype.is_integer() or dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return series
    if series.null_count() == len(series):
        raise _missing(column)
    raise _wrong_kind(column)


def _hashed_integers(values: Words, key: bytes) -> NDArray[np.void]:
    """The hashes of the digits of integers below the last of `TENS`: those of up to seven are messages of one word."""
    found = np.empty(len(values), dtype=HASH)
    for start in range(0, len(values), AT_ONCE):
        own = values[start : start + AT_ONCE]
        few = own < TENS[7]
        if few.all():
            found[start : start + AT_ONCE] = siphash(_digits(own), key)
        else:
            found[start : start + AT_ONCE][few] = siphash(_digits(own[few]), key)
            found[start : start + AT_ONCE][~few] = siphash(_more_digits(own[~few]), key)
    return found


def _digits(values: Words) -> Words:
    """The digits of integers below 10^7, as `_padded` has texts."""
    length = np.ones(len(values), dtype=np.uint64)
    for ten in TENS[1:7]:
        length += values >= ten
    return np.stack([(_eight_digits(values) >> (np.uint64(64) - (length << np.uint64(3)))) | (length << np.uint64(56))])


def _more_digits(values: Words) -> Words:
    """The digits of integers from 10^7 to below 10^15, as `_padded` has texts."""
    length = np.full(len(values), 8, dtype=np.uint64)
    for ten in TENS[8:15]:
        length += values >= ten
    first, last = (_eight_digits(own) for own in np.divmod(values, TENS[8]))
    absent = (np.uint64(15) - length) << np.uint64(3)  # eight bits less than there are: no shift is by a whole word
    eight = np.uint64(8)
    high = (first >> absent >> eight) | (last << (np.uint64(56) - absent))
    return np.stack([high, (last >> absent >> eight) | (length << np.uint64(56))])


def _eight_digits(values: Words) -> Words:
    """Integers below 10^8 as eight letters, the first of which is the lowest byte.

    Halves, quarters and eighths of the digits are divided in their lanes of one word, by products that are exact there.
    """
    found = values // TENS[4]
    found |= (values - found * TENS[4]) << np.uint64(32)
    for ten, factor, shift, lanes, half in LANES:
        left = (found * factor >> shift) & lanes
        found = left | ((found - left * ten) << half)
    return np.asarray(found + ZEROS)


def hashed(letters: NDArray[np.uint8], ends: NDArray[np.int64], key: bytes) -> NDArray[np.void]:
    """The hash of every text: its bytes lie between two neighbouring `ends`."""
    lengths = np.diff(ends)
    words = lengths // 8 + 1
    counts = np.flatnonzero(np.bincount(words))
    if len(counts) == 1:
        return siphash(_padded(letters, ends[:-1], lengths, int(counts[0])), key)
    found = np.empty(len(lengths), dtype=HASH)
    for count in counts:
        own = np.flatnonzero(words == count)
        found[own] = siphash(_padded(letters, ends[own], lengths[own], int(count)), key)
    return found


def _padded(letters: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], words: int) -> Words:
    """The bytes of texts of about one length as words, one column per text; the last byte is the length."""
    held = np.concatenate([letters, np.zeros(8, dtype=np.uint8)])
    every = np.ndarray((len(letters) + 1,), dtype="<u8", buffer=held.data, strides=(1,))  # eight bytes from each on
    found = np.empty((words, len(starts)), dtype=np.uint64)
    for place, line in enumerate(found):
        line[:] = every[np.minimum(starts + 8 * place, len(letters))]
        line &= FIRST_BYTES[np.clip(lengths - 8 * place, 0, 8)]
    found[-1] |= (lengths & 0xFF).astype(np.uint64) << np.uint64(56)
    return found


def siphash(words: Words, key: bytes) -> NDArray[np.void]:
    """SipHash-2-4 with 128 bits of messages that are given in words, one column each, the last one with the length in
    its last byte.
    """
    found = np.empty(words.shape[1], dtype=HASH)
    for start in range(0, len(found), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        found["high"][some], found["low"][some] = _halves(words[:, some], key)
    return found


def _halves(words: Words, key: bytes) -> Iterator[Words]:
    """The first 64 bits of hashes, and then the others."""
    k0, k1 = np.frombuffer(key, dtype="<u8")
    start = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)
    state = [np.full(words.shape[1], np.uint64(word) ^ (k0, k1)[place % 2]) for place, word in enumerate(start)]
    for word in words:
        state[3] ^= word
        _rounds(state, 2)
        state[0] ^= word
    for place, mark in ((2, 0xEE), (1, 0xDD)):
        state[place] ^= np.uint64(mark)
        _rounds(state, 4)
        yield state[0] ^ state[1] ^ state[2] ^ state[3]


def _rounds(state: list[Words], count: int) -> None:
    """SipRounds, in place; sums are taken modulo 2^64."""
    v0, v1, v2, v3 = state
    spare = np.empty_like(v0)
    steps = ((v0, v1, 13), (v2, v3, 16), (v0, v3, 21), (v2, v1, 17))
    for _ in range(count):
        for one, other, turn in steps:
            one += other
            _turn(other, turn, spare)
            other ^= one
            if other is v1:
                _turn(one, 32, spare)


def _turn(word: Words, by: int, spare: Words) -> None:
    np.right_shift(word, np.uint64(64 - by), out=spare)
    word <<= np.uint64(by)
    word |= spare


def _missing(column: PersonColumn) -> DataError:
    return DataError(
        f"The person column {column.name!r} has missing values, and it must be known whose row each is. Give such rows "
        "identifiers of their own if each is another person's, or leave them out before fitting. Nothing was charged."
    )


def _wrong_kind(column: PersonColumn) -> DataError:
    return DataError(
        f"The person column {column.name!r} holds values that are neither texts nor integers. An identifier is a text "
        "or an integer. Convert the column. Nothing was charged."
    )
