"""Rows that a solver starts from: chosen by what they hold, never by where they stand."""

from __future__ import annotations

import time
from functools import partial, reduce

import numpy as np
import pytest

from privfit.rows import cached_rows
from privfit.rows.cached_rows import CountedRows, RowHash, SmallestHashes, counted_rows
from privfit.rows.workers import Chunk, added
from privfit.schema import Category, Numeric, Schema
from tests.support.cached_tables import kept_from


def chunk_of(rng: np.random.Generator, n: int, different: int) -> Chunk:
    codes = rng.integers(0, different, (n, 2)).astype(np.int32)
    return Chunk(codes, (codes[:, :1] % 5) / 4.0, np.where(codes[:, 1] % 2, 1.0, -1.0))


def brute_force(chunk: Chunk, hashes: np.ndarray, most: int) -> list[tuple]:
    """(hash, row, count) of the different rows with the smallest hashes, by a dictionary."""
    counts: dict[tuple, int] = {}
    for line in zip(hashes.tolist(), chunk.codes.tolist(), chunk.numbers.tolist(), chunk.target.tolist(), strict=True):
        key = (line[0], tuple(line[1]), tuple(line[2]), line[3])
        counts[key] = counts.get(key, 0) + 1
    return [(*key, counts[key]) for key in sorted(counts)[:most]]


def shown(found: CountedRows) -> list[tuple]:
    rows = found.rows
    lines = zip(
        found.hashes.tolist(),
        map(tuple, rows.codes.tolist()),
        map(tuple, rows.numbers.tolist()),
        rows.target.tolist(),
        found.counts.tolist(),
        strict=True,
    )
    return list(lines)


def added_over(parts: list[Chunk], task: SmallestHashes) -> CountedRows:
    return reduce(added, (task(0, part) for part in parts))[0]


@pytest.mark.parametrize("bits", [64, 6, 0])
@pytest.mark.parametrize("different", [2, 9, 10_000])
@pytest.mark.parametrize("most", [1, 5, 60, 5000])
def test_the_rows_with_the_smallest_hashes_are_taken_and_counted(most: int, different: int, bits: int) -> None:
    """Also where different rows share a hash, or all do."""
    rng = np.random.default_rng(most)
    chunk = chunk_of(rng, 1500, different)

    class Hash(RowHash):
        def __call__(self, chunk: Chunk) -> np.ndarray:
            mixed = cached_rows._mixed((chunk.codes[:, 0] * 20_000 + chunk.codes[:, 1]).astype(np.uint64))
            return mixed >> np.uint64(64 - bits) if bits else mixed & np.uint64(0)

    hashed = Hash(None, np.zeros(0), np.zeros(1))
    wanted = brute_force(chunk, hashed(chunk), most)
    for cut in (40, 333, 1500):
        order = rng.permutation(1500)
        shuffled = Chunk(chunk.codes[order], chunk.numbers[order], chunk.target[order])
        found = counted_rows(partial(added_over, shuffled.parts(cut)), 1500, hashed, most)
        assert shown(found) == wanted


def test_a_table_of_equal_rows_is_one_row_and_takes_no_time() -> None:
    schema = Schema([Numeric("a", -1, 1), Category("c", list(range(40)))], Category("y", [0, 1]))
    table = np.tile([0.5, 3, 1], (200_000, 1))
    kept = kept_from(table, schema, schema.geometry())
    start = time.process_time()
    sample = kept.sample()
    assert (len(sample._target), sample.n_rows, sample.weight) == (1, 200_000, 1.0)
    weights = np.zeros((kept.n_columns, 1))
    hessian = kept.hessian(weights, lambda z, y: np.ones_like(z))
    assert hessian[0, 0, 0] == 200_000
    assert time.process_time() - start < 5


def test_hashes_tell_rows_apart_and_spread_them_evenly() -> None:
    schema = Schema([Numeric("a", -1, 1), Numeric("b", -1, 1), Category("c", list(range(40)))], Numeric("y", -1, 1))
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(-1, 1, (50_000, 2)), rng.integers(0, 40, 50_000), rng.uniform(-1, 1, 50_000)])
    table[1] = table[0]
    for column, other in enumerate((0.25, 0.75, 39 - table[0, 2], -table[0, 3])):  # one cell is another
        table[2 + column] = table[0]
        table[2 + column, column] = other
    kept = kept_from(table, schema, schema.geometry())
    chunk = Chunk.joined(list(kept._every_chunk()))
    hashes = RowHash.of(kept._layout, chunk.numbers.shape[1])(chunk)
    assert hashes[0] == hashes[1]
    assert len(np.unique(hashes)) == 49_999
    spread = np.histogram(hashes / 2.0**64, 10, (0, 1))[0]
    assert ((spread - 5000) ** 2 / 5000).sum() < 40
