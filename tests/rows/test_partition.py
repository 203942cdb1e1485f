"""Blocks of rows: each has its own rows and no others, and what goes wrong in one stays there."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from privfit.rows import CachedDesign, PartitionedRows, Rows
from privfit.schema import Category, Numeric, Schema
from privfit.tables import DataError, open_table

SCHEMA = Schema([Numeric("age", 0, 100), Category("town", ["a", "b", "c"])], target=Category("ill", ["no", "yes"]))
AGES = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
TOWNS = ["a", "b", "c", "a", "b", "c"]
ILL = ["no", "yes", "no", "yes", "no", "yes"]
PLACES = np.array([[0], [2], [0], [2], [0], [2]])
RNG = np.random.default_rng(0)


def rows_of(ages=AGES, towns=TOWNS, ill=ILL, numeric="slope", **options) -> Rows:
    import polars as pl

    geometry = SCHEMA.geometry(numeric=numeric, intercept=False)
    return Rows(open_table(pl.DataFrame({"age": ages, "town": towns, "ill": ill})), SCHEMA, geometry, **options)


def dealt(encoded=False, **options) -> PartitionedRows:
    found = PartitionedRows(rows_of(**options), encoded=encoded)
    found.read()
    return found


def test_every_block_sees_its_own_rows_in_their_order() -> None:
    seen = {}

    def note(rows):
        seen[rows[0, 0]] = rows
        return rows.sum(axis=0)

    answers = dealt().answers(PLACES, 3, note, 3)
    assert np.array_equal(seen[10.0], [[10, 0, 0], [30, 2, 0], [50, 1, 0]])
    assert np.array_equal(seen[20.0], [[20, 1, 1], [40, 0, 1], [60, 2, 1]])
    assert np.array_equal(answers[[0, 2]], [[90, 3, 0], [120, 3, 3]])
    assert np.isnan(answers[1]).all()  # no rows


@pytest.mark.parametrize("numeric", ["slope", "bins", "splines"])
def test_encoded_blocks_are_what_linear_models_sum_over(numeric) -> None:
    rows = rows_of(numeric=numeric)
    found = PartitionedRows(rows, encoded=True)
    found.read()
    columns = rows.geometry.n_columns
    answers = found.answers(PLACES, 3, lambda block: block[:, :-1].T @ block[:, -1], columns)
    whole = CachedDesign(rows_of(numeric=numeric)).gradient(np.zeros((columns, 1)), lambda z, y: y, 8.0)
    assert np.allclose(np.nansum(answers, axis=0), whole[:, 0], atol=1e-12)


def test_a_row_may_be_in_several_blocks() -> None:
    places = np.array([[0, 1], [1, 2], [2, 0], [0, 1], [1, 2], [2, 0]])
    answers = dealt().answers(places, 3, lambda rows: rows[:, 0], 4)
    assert np.array_equal(answers, [[10, 30, 40, 60], [10, 20, 40, 50], [20, 30, 50, 60]])


def raising(rows):
    raise ValueError(f"a cell: {rows[0, 0]}")


def leaving(rows):
    raise SystemExit(1)


def warning(rows):
    warnings.warn(f"a cell: {rows[0, 0]}", UserWarning, stacklevel=1)
    return np.log(-rows[0, 0])


@pytest.mark.parametrize(
    "broken",
    [
        raising,
        leaving,
        warning,
        lambda rows: [1.0, 2.0],
        lambda rows: [[]],
        lambda rows: np.nan,
        lambda rows: "text",
        lambda rows: None,
    ],
)
def test_what_goes_wrong_in_a_block_stays_in_it(broken) -> None:
    def function(rows):
        return broken(rows) if rows[0, 0] == 10.0 else rows[0, 0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = dealt().answers(PLACES, 3, function, 1)
    assert np.array_equal(answers, [[np.nan], [np.nan], [20.0]], equal_nan=True)


def test_one_bad_number_of_several_makes_the_whole_answer_bad() -> None:
    answers = dealt().answers(PLACES, 3, lambda rows: [1.0, np.nan if rows[0, 0] == 10 else np.inf], 2)
    assert np.isnan(answers[:2]).all()
    assert np.array_equal(answers[2], [1.0, np.inf])


def test_a_function_that_changes_its_rows_changes_nothing_else() -> None:
    def greedy(rows):
        first = rows[0, 0]
        rows[:] = -1
        return first

    both = dealt()
    once = both.answers(PLACES, 3, greedy, 1)
    assert np.array_equal(once, both.answers(PLACES, 3, greedy, 1), equal_nan=True)


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("kind", ["replaced", "inserted"])
def test_other_blocks_answer_the_same_to_the_bit(encoded, kind) -> None:
    n, blocks = 200, 7
    ages, towns, ill = RNG.uniform(0, 100, n), RNG.choice(["a", "b", "c"], n), RNG.choice(["no", "yes"], n)
    places = RNG.integers(0, blocks, (n, 1))
    size = 3 if not encoded else 5

    def function(rows):
        return np.sin(rows).sum(axis=0)

    before = dealt(encoded, ages=ages, towns=towns, ill=ill).answers(places, blocks, function, size)
    for at in (0, 57, n - 1):
        if kind == "replaced":
            changed = [
                np.concatenate([column[:at], [new], column[at + 1 :]])
                for column, new in ((ages, 99.0), (towns, "c"), (ill, "yes"))
            ]
            own, moved = places, {int(places[at, 0])}
        else:
            changed = [np.insert(column, at, new) for column, new in ((ages, 99.0), (towns, "c"), (ill, "yes"))]
            own, moved = np.insert(places, at, [[3]], axis=0), {3}
        after = dealt(encoded, ages=changed[0], towns=changed[1], ill=changed[2]).answers(own, blocks, function, size)
        differ = {block for block in range(blocks) if not np.array_equal(before[block], after[block])}
        assert differ == moved


def test_blocks_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def function(rows):
        meeting.wait()
        return len(rows)

    assert np.array_equal(dealt(threads=2).answers(PLACES, 3, function, 1)[[0, 2]], [[3], [3]])


@pytest.mark.slow
def test_a_process_that_dies_takes_no_other_block_with_it() -> None:
    def function(rows):
        import os

        if rows[0, 0] == 10.0:
            os._exit(1)
        return os.getpid() > 0, rows[0, 0]

    answers = dealt(threads=2).answers(PLACES, 3, function, 2, processes=True)
    assert np.array_equal(answers, [[np.nan, np.nan], [np.nan, np.nan], [1.0, 20.0]], equal_nan=True)


def test_processes_answer_as_threads_do() -> None:
    def function(rows):
        if rows[0, 0] == 10.0:
            raise ValueError
        return rows.sum(axis=0)

    by_threads, by_processes = (
        dealt(threads=2).answers(PLACES, 3, function, 3, processes) for processes in (False, True)
    )
    assert np.array_equal(by_threads, by_processes, equal_nan=True)
    assert np.array_equal(by_threads[2], [120, 3, 3])


@pytest.mark.parametrize("encoded", [False, True])
def test_a_table_that_does_not_fit_is_refused_before_the_charge(encoded) -> None:
    with pytest.raises(DataError, match="Nothing was charged"):
        PartitionedRows(rows_of(), encoded=encoded, most_bytes=1).read()


@pytest.mark.parametrize("encoded", [False, True])
def test_errors_in_the_table_surface_when_it_is_read(encoded) -> None:
    with pytest.raises(DataError):
        PartitionedRows(rows_of(ages=[*AGES[:5], np.nan]), encoded=encoded).read()
