"""Persons: at most so many rows of each, the same ones in every order and on every engine, whoever else is there."""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.rows import on_progress, persons, used_rows
from privfit.rows.persons import content_hash
from privfit.tables import DataError, identifiers, open_table
from privfit.tables.identifiers import PersonColumn, hashed, hashed_array, hashed_series
from privfit.tables.polars_tables import PolarsTable

KEY = bytes(range(16))
SCHEMA = pf.Schema([pf.Numeric("x", 0, 1), pf.Category("level", ["a", "b"])], pf.Numeric("y", 0, 1), person="id")


def table(rows: int = 500, seed: int = 1) -> pl.DataFrame:
    """Persons with up to about 20 rows each, many of which hold the same."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"person {number}" for number in (60 * rng.random(rows) ** 3).astype(int)],
            "x": rng.integers(0, 3, rows) / 2,
            "level": rng.choice(["a", "b"], rows),
            "y": rng.integers(0, 3, rows) / 2,
        }
    )


def used(
    source: object, most: int = 3, schema: pf.Schema = SCHEMA, key: bytes = KEY, max_memory: int | None = None
) -> Counter:
    """The multiset of rows that are used."""
    opened = used_rows(open_table(source), schema, most, key, True, max_memory=max_memory)
    columns = schema.columns
    found: Counter = Counter()
    for batch in opened.batches(columns, opened.positions(columns), 64):
        found.update(zip(*(values.tolist() for values in batch), strict=True))
    return found


@pytest.mark.parametrize(
    ("message", "expected"),
    [(b"", "a3817f04ba25a8e66df67214c7550293"), (b"\x00", "da87c1d86b99af44347659119b22fc45")],
)
def test_the_hash_is_siphash_as_its_authors_print_it(message: bytes, expected: str) -> None:
    found = hashed(np.frombuffer(message, dtype=np.uint8), np.array([0, len(message)]), KEY)[0]
    assert b"".join(int(found[half]).to_bytes(8, "little") for half in ("high", "low")).hex() == expected


def test_texts_and_integers_of_every_kind_have_one_hash() -> None:
    column, numbers = PersonColumn("id", KEY), [7, 12345678901, -3]
    wanted = hashed_series(pl.Series([str(number) for number in numbers]), column)
    for same in (
        hashed_series(pl.Series(numbers), column),
        hashed_series(pl.Series(numbers, dtype=pl.Float64), column),
        hashed_array(np.array(numbers), column),
        hashed_array(np.array(numbers, dtype=object), column),
        hashed_array(np.array([str(number) for number in numbers], dtype=object), column),
    ):
        assert (same == wanted).all()
    lengths = [b"x" * size for size in range(40)]
    ends = np.cumsum([0, *map(len, lengths)])
    whole = hashed(np.frombuffer(b"".join(lengths), dtype=np.uint8), ends, KEY)
    assert len(set(whole.tolist())) == 40
    assert all(
        whole[place] == hashed(np.frombuffer(text, dtype=np.uint8), np.array([0, len(text)]), KEY)[0]
        for place, text in enumerate(lengths)
    )


def test_digits_of_integers_are_written_as_texts_have_them() -> None:
    """Whatever way integers go, by their size, they have the hashes of their texts."""
    rng = np.random.default_rng(4)
    edges = [10**power + add for power in range(16) for add in (-1, 0, 1)]
    drawn = (10 ** rng.uniform(0, 15.2, 3000)).astype(np.int64).tolist()
    column = PersonColumn("id", KEY)
    for numbers in ([*edges, *drawn], [number for number in drawn if number < 10**7], [*drawn, -7]):
        series = pl.Series(numbers, dtype=pl.Int64)
        assert (hashed_series(series, column) == hashed_series(series.cast(pl.String), column)).all()
    kinds = [pl.Int8, pl.UInt16, pl.UInt64, pl.Int128]  # numpy has no integers of 128 bits
    small = pl.Series([0, 7, 99, 100, 127])
    for kind in kinds:
        assert (hashed_series(small.cast(kind), column) == hashed_series(small, column)).all()
    for kind in (pl.UInt64, pl.Int128):  # numpy has no integers of 128 bits
        series = pl.Series(drawn, dtype=kind)
        assert (hashed_series(series, column) == hashed_series(series.cast(pl.String), column)).all()
    every = np.concatenate([np.arange(100_000), rng.integers(0, 10**8, 50_000)]).astype(np.uint64)
    wanted = "".join(f"{number:08}" for number in every.tolist())
    assert identifiers._eight_digits(every).astype("<u8").tobytes().decode() == wanted


def test_the_quick_choice_is_that_of_all_bits(monkeypatch) -> None:
    """Of each person the rows with the m smallest tags, as a sort by person and tag has them: also where the first bits
    of tags say nothing, and where few rows are sorted together.
    """
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 400)
    person, rows = np.repeat(np.arange(400), sizes), int(sizes.sum())
    high = rng.integers(0, 1 << 64, 400, dtype=np.uint64)[person]
    content = rng.integers(0, 1 << 64, rows, dtype=np.uint64)
    content[rng.random(rows) < 0.2] = 7  # rows that hold the same
    before = [content[np.flatnonzero(person[:place] == person[place])] for place in range(rows)]
    occurrence = np.array([(own == held).sum() for own, held in zip(before, content, strict=True)], dtype=np.uint64)
    for mask in (~np.uint64(0), np.uint64(0xFFFF)):
        given = persons._tags
        monkeypatch.setattr(persons, "_tags", lambda *words, mask=mask, given=given: given(*words) & mask)
        tags = persons._tags(high, content, occurrence)
        place = persons._place(persons._differs(person))
        order = np.lexsort((tags, person))
        wanted = np.zeros(rows, dtype=bool)
        wanted[order[place < 3]] = True
        for few in (16, 1 << 14):
            monkeypatch.setattr(persons, "FEW_ROWS", few)
            part = np.stack([high, ~high, content, np.arange(rows, dtype=np.uint64)])
            left, number = persons._left_out(part, 3)
            assert number == 400
            np.testing.assert_array_equal(np.sort(left), np.flatnonzero(~wanted))
        monkeypatch.setattr(persons, "_tags", given)


def test_no_person_has_more_rows_than_stated_and_none_has_fewer_than_could_be() -> None:
    frame = table()
    for most in (1, 3, 8, 1000):
        opened = used_rows(open_table(frame), SCHEMA, most, KEY, True)
        chosen = np.concatenate([opened._chosen.used(first, 10) for first in range(0, 500, 10)])
        had, counts = Counter(frame["id"]), Counter(frame.filter(pl.Series(chosen))["id"])
        assert counts == {person: min(most, rows) for person, rows in had.items()}
        assert opened.slots == most * len(had)


def test_the_choice_is_the_same_in_every_order_and_on_every_engine(tmp_path: Path) -> None:
    frame = table()
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    wanted = used(frame)
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    sources = [frame.to_pandas(), frame.lazy(), tmp_path / "t.parquet", tmp_path / "t.csv", frame.to_arrow(), relation]
    sources += [frame.sample(fraction=1, shuffle=True, seed=seed) for seed in range(3)]
    sources += [frame.to_arrow().to_reader(50), frame[::-1]]
    for source in sources:
        assert used(source) == wanted
    assert used(frame, key=bytes(16)) != wanted


def test_one_persons_rows_do_not_change_which_of_others_are_used() -> None:
    frame = table()
    mine = pl.col("id") == "person 0"
    before, alone = used(frame), used(frame.filter(mine))
    replaced = pl.concat([frame.filter(~mine), table(40, seed=9).with_columns(id=pl.lit("person 0"))])
    others = before - alone
    assert sum((used(replaced) - others).values()) == 3
    assert not others - used(replaced)


class Shuffled(PolarsTable):
    """A table that hands out its rows in another order every time, as a database may."""

    in_memory = False

    def __init__(self, frame: pl.DataFrame) -> None:
        super().__init__(frame)
        self.passes = 0

    def read(self, columns, positions, rows):
        self.passes += 1
        shuffled = PolarsTable(self._frame.sample(fraction=1, shuffle=True, seed=self.passes))
        yield from shuffled.read(columns, positions, rows)


def test_a_table_in_another_order_in_every_pass_is_kept_before_rows_are_chosen() -> None:
    """Rows are known by their places between passes: other rows must not come to stand there."""
    frame = table()
    shuffled = Shuffled(frame)
    opened = used_rows(shuffled, SCHEMA, 3, KEY, True)
    for _ in range(3):
        found: Counter = Counter()
        for batch in opened.batches(SCHEMA.columns, opened.positions(SCHEMA.columns), 64):
            found.update(zip(*(values.tolist() for values in batch), strict=True))
        assert found == used(frame)
    assert shuffled.passes == 1


def test_equal_rows_are_chosen_as_often_as_others() -> None:
    """Of nine rows that hold the same and one that does not, each is used as likely as any other."""
    frame = pl.DataFrame({"id": ["p"] * 10, "x": [0.0] * 9 + [1.0], "level": ["a"] * 10, "y": [0.0] * 10})
    rare = sum(used(frame, 1, key=number.to_bytes(16))[(1.0, 0, 0.0)] for number in range(400))
    assert 20 < rare < 65  # 40 expected, with a standard deviation of 6


def test_what_is_spilled_is_chosen_as_what_is_held(monkeypatch, tmp_path: Path) -> None:
    wanted = used(table())
    monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path))
    monkeypatch.setattr(persons, "HELD_BYTES", 1000)
    modes = []
    parts = persons.PersonRows._parts

    def looked_at(self):
        modes.extend(stat.S_IMODE(os.fstat(file.fileno()).st_mode) for file in self._files)
        modes.extend(os.fstat(file.fileno()).st_nlink for file in self._files)
        return parts(self)

    monkeypatch.setattr(persons.PersonRows, "_parts", looked_at)
    for frame in (table(), table()[::-1]):
        assert used(frame, max_memory=1) == wanted
    assert set(modes) == {0o600, 0}
    assert list(tmp_path.iterdir()) == []


def test_zeros_and_missing_values_have_one_content() -> None:
    zeros = content_hash([np.array([0.0, -0.0]), np.array([np.nan, -np.nan])], KEY)
    assert zeros[0] == zeros[1]
    many = content_hash([np.arange(2000) / 7, np.arange(2000, dtype=np.int32) % 3], KEY)
    assert len(set(many.tolist())) == 2000


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", None, "b"], "has missing values"),
        ([1.0, float("nan"), 2.0], "has missing values"),
        ([1.5, 2.0, 3.0], "neither texts nor integers"),
        ([True, False, True], "neither texts nor integers"),
    ],
)
def test_identifiers_that_are_none_are_refused_before_the_charge_and_not_quoted(ids: list, says: str) -> None:
    frame = pl.DataFrame({"id": ids, "x": [0.0, 0.5, 1.0], "level": ["a", "b", "a"], "y": [0.0, 0.5, 1.0]})
    ledger = pf.Ledger(epsilon=1.0)
    for source in (frame, frame.to_pandas()):
        with pytest.raises(DataError, match=says) as caught:
            pf.LinearRegression(0.5, schema=SCHEMA, ledger=ledger).fit(source)
        assert "1.5" not in str(caught.value)
        assert "Nothing was charged" in str(caught.value)
    assert ledger.entries() == []


def test_a_table_without_names_or_without_the_column_is_refused() -> None:
    with pytest.raises(DataError, match="have no names"):
        pf.LinearRegression(schema=SCHEMA).fit(np.zeros((4, 3)))
    with pytest.raises(DataError, match="no column 'id'"):
        pf.LinearRegression(schema=SCHEMA).fit(table().drop("id"))


def test_nothing_of_an_identifier_is_in_model_report_or_ledger(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=1.0)
    model = pf.LinearRegression(0.5, schema=SCHEMA, rows_per_person=3, ledger=ledger).fit(table())
    model.save(tmp_path / "model.json")
    assert "person 0" not in (tmp_path / "model.json").read_text() + str(model.report_) + repr(ledger.entries())
    assert b"person 0" not in (tmp_path / "ledger.db").read_bytes()
    assert "at most 3: others were left out" in str(model.report_)
    assert "the number of persons" in str(model.report_)
    loaded = pf.load_model(tmp_path / "model.json")
    assert loaded.schema_ == model.schema_ == SCHEMA
    assert str(loaded.report_) == str(model.report_)
    plain = pf.Schema(SCHEMA.features, SCHEMA.target)
    trusted = pf.LinearRegression(0.5, schema=plain, rows_per_person=3, ledger=pf.Ledger(epsilon=1.0)).fit(table())
    assert "at most 3, taken on trust" in str(trusted.report_)


def test_a_target_given_apart_goes_with_persons() -> None:
    frame = table()
    whole = pf.LinearRegression(1.0, schema=SCHEMA, random_state=0).fit(frame)
    apart = pf.LinearRegression(1.0, schema=SCHEMA, random_state=0).fit(frame.drop("y"), frame["y"].to_numpy())
    np.testing.assert_array_equal(whole.coef_, apart.coef_)


def test_the_quick_order_is_that_of_a_stable_sort() -> None:
    """Also where the bits beside the place decide nothing, or the wrong way."""
    rng = np.random.default_rng(3)
    drawn = rng.integers(0, 1 << 64, 300, dtype=np.uint64)
    tables = [drawn[rng.integers(0, 300, size)] for size in (0, 1, 2, 255, 256, 1000)]  # persons with several rows
    tables += [rng.integers(0, most, 1000, dtype=np.uint64) for most in (1, 2, 1 << 10, 1 << 11, 1 << 20)]
    tables += [words[::-1] for words in tables] + [~words for words in tables]
    for words in tables:
        np.testing.assert_array_equal(persons._stable_order(words), np.argsort(words, kind="stable"))


def test_a_batch_has_the_hashes_of_its_texts_whatever_their_lengths() -> None:
    """Batches of one length go another way than others."""
    texts = [*(f"{number:07}" for number in range(50)), *("x" * size for size in range(30))]
    column = PersonColumn("id", KEY)
    whole = hashed_series(pl.Series(texts), column)
    for part in (slice(0, 50), slice(10, 20), slice(3, 3), slice(45, 80)):
        assert (hashed_series(pl.Series(texts, dtype=pl.String)[part], column) == whole[part]).all()


FLIPPED = np.uint64((1 << 63) ^ (1 << 34))


def test_rows_that_share_a_hash_depend_on_no_other_person() -> None:
    """Two rows of each person have one content hash under every key; another person takes the place of one."""
    rng = np.random.default_rng(1)
    persons_, schema = 3000, pf.Schema([pf.Numeric("a", -9, 9), pf.Numeric("b", -9, 9)], person="id")
    a, b = rng.normal(size=persons_), rng.normal(size=persons_)
    alike = (b.view(np.uint64) ^ FLIPPED).view(np.float64)
    assert (content_hash([a, b], KEY) == content_hash([-a, alike], KEY)).all()
    ids = np.tile(np.arange(persons_), 2)
    columns = {"a": np.concatenate([a, -a]), "b": np.concatenate([b, alike])}
    left = used(pl.DataFrame({"id": ids, **columns}), 1, schema)
    right = used(pl.DataFrame({"id": np.where(ids == 0, persons_ + 7, ids), **columns}), 1, schema)
    assert sum(((left - right) + (right - left)).values()) <= 2


def test_rows_that_share_a_hash_are_chosen_alike_wherever_they_wait(monkeypatch) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=300), rng.normal(size=300)
    alike = (b.view(np.uint64) ^ FLIPPED).view(np.float64)
    batch = [np.concatenate([a, -a]), np.concatenate([b, alike])]
    ids = hashed_series(pl.Series(np.tile(np.arange(300), 2)), PersonColumn("id", KEY))

    def chosen(held_bytes: int) -> list[bool]:
        monkeypatch.setattr(persons, "HELD_BYTES", held_bytes)
        taken = persons.PersonRows(1)
        for part in (slice(0, 400), slice(400, 600)):
            columns = [values[part] for values in batch]
            taken.add(*persons.entries(ids[part], columns, np.ones(len(columns[0]), dtype=bool), KEY))
        return taken.chosen(1).used(0, 600).tolist()

    assert chosen(10_000) == chosen(1 << 26)


def test_no_progress_shows_how_many_rows_are_used() -> None:
    seen: list[int] = []
    with on_progress(seen.append):
        pf.LinearRegression(1.0, schema=SCHEMA, rows_per_person=3, random_state=0).fit(table())
    assert seen == []


def test_a_guess_of_the_number_of_rows_refuses_no_table_by_those_that_are_used() -> None:
    frame = pl.DataFrame({"x": np.zeros(140_000), "y": np.arange(140_000) % 2 * 1.0})
    schema = pf.Schema([pf.Numeric("x", 0, 1)], pf.Numeric("y", 0, 1), where={"x": (0, 1)})
    mechanism = pf.ObjectiveRegression()
    model = pf.LinearRegression(1.0, schema=schema, expected_rows=20_000, mechanism=mechanism, random_state=0)
    assert model.fit(frame).coef_.shape == (1,)


def test_a_fitness_of_the_whole_table_is_refused_where_rows_are_left_out() -> None:
    fitness = pf.TableFitness(lambda rows, candidates: np.zeros(len(candidates)), sensitivity=1.0)
    search = pf.GeneticSearch(fitness, low=[0.0], high=[1.0], schema=SCHEMA, rows_per_person=3, random_state=0)
    with pytest.raises(pf.PrivacyError, match="leaves rows out"):
        search.fit(table())


def test_a_description_states_what_is_promised() -> None:
    told = str(pf.describe(table(), SCHEMA, epsilon=1.0, rows_per_person=3, random_state=0).report)
    assert "replace-one" in told
    assert "the number of persons" in told
    assert "add-remove" not in told
