"""Parts of a table: who is in which, what neighbours change, and the joint loss of two parts by enumeration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.privacy import Split
from privfit.rows.holdout import divided, identities
from privfit.tables import open_table

SCHEMA = pf.Schema([pf.Numeric("x", 0, 9), pf.Category("c", ["a", "b", "d"], other=True)], pf.Numeric("y", 0, 1))
KEY = bytes(range(32)).hex()
SPLIT = Split("id", "holdout", KEY, "content", "", "3/10")
RNG = np.random.default_rng(0)
ROWS = 4000
FRAME = pl.DataFrame(
    {
        "x": RNG.integers(0, 4, ROWS).astype(float),
        "c": RNG.choice(["a", "b", "z"], ROWS),
        "y": RNG.integers(0, 2, ROWS).astype(float),
        "who": RNG.integers(0, 500, ROWS),
    }
)
Identities = list[tuple[int, ...]]


def read(table: Any, schema: pf.Schema = SCHEMA) -> Counter:
    """The rows that a part hands out, as a multiset."""
    columns = list(schema.columns)
    batches = table.batches(columns, table.positions(columns), 1000)
    return Counter(row for batch in batches for row in zip(*(values.tolist() for values in batch), strict=True))


@pytest.fixture
def ledger() -> pf.Ledger:
    return pf.Ledger(epsilon=1.0)


def test_parts_are_disjoint_whole_and_the_same_in_every_order_and_source(ledger: pf.Ledger, tmp_path: Path) -> None:
    import duckdb

    FRAME.write_parquet(tmp_path / "t.parquet")
    FRAME.write_csv(tmp_path / "t.csv")
    sources = [
        FRAME, FRAME.sample(fraction=1.0, shuffle=True, seed=1), FRAME.to_pandas(), FRAME.to_arrow(), FRAME.lazy(),
        tmp_path / "t.parquet", tmp_path / "t.csv", duckdb.from_arrow(FRAME.to_arrow()),
        FRAME.to_arrow().to_reader(100),
    ]  # fmt: skip
    expected = None
    for source in sources:
        parts = pf.holdout(source, ledger=ledger, schema=SCHEMA, share=0.3)
        found = read(parts.fit), read(parts.evaluate)
        assert found[0] + found[1] == read(open_table(FRAME))
        assert parts.fit.n_rows == found[0].total()
        assert expected in (None, found)
        expected = found
    assert expected is not None
    assert 0.25 < expected[1].total() / ROWS < 0.35
    other = pf.holdout(FRAME, ledger=ledger, schema=SCHEMA, share=0.3, name="other")
    assert read(other.evaluate) != expected[1]
    assert not ledger.entries()


def test_a_person_is_in_one_part_whatever_the_rows_hold(ledger: pf.Ledger) -> None:
    schema = pf.Schema(SCHEMA.features, SCHEMA.target, person="who")
    changed = FRAME.with_columns(x=pl.lit(1.0), y=pl.lit(0.0)).sample(fraction=1.0, shuffle=True, seed=2)
    named, found = pf.Schema([pf.Numeric("who", 0, 500)]), []
    for frame in (FRAME, changed):
        parts = pf.holdout(frame, ledger=ledger, schema=schema)
        held = [frame["who"].to_numpy()[part._held] for part in (parts.fit, parts.evaluate)]  # type: ignore[attr-defined]
        assert not set(held[0]) & set(held[1])
        found.append(tuple(map(frozenset, held)))
    assert found[0] == found[1]
    assert 50 < len(found[0][1]) < 150
    with pytest.raises(pf.DataError, match="divided without it"):
        read(parts.fit, named)


def test_columns_that_did_not_divide_rows_are_refused(ledger: pf.Ledger) -> None:
    parts = pf.holdout(FRAME, ledger=ledger, schema=SCHEMA)
    same = pf.Schema([pf.Category("c", ["b", "a"], other=True), pf.Numeric("x", 3, 4)])
    assert sum(read(parts.fit, same).values()) == parts.fit.n_rows
    recoded = {(1, x): n for (x, c, _), n in read(parts.fit).items() if c == 0}  # "a" is the second level now
    assert {place for place, _ in read(parts.fit, same)} == {0, 1, -1}
    assert {key[1] for key in recoded} == {x for place, x in read(parts.fit, same) if place == 1}
    for column in (pf.Numeric("who", 0, 9), pf.Category("c", ["a", "z"]), pf.Category("x", [1, 2])):
        with pytest.raises(pf.DataError, match=r"divided without it, or with other\s+levels"):
            read(parts.fit, pf.Schema([column]))
        model = pf.LinearRegression(schema=pf.Schema([column], SCHEMA.target), ledger=ledger)
        with pytest.raises(pf.DataError, match="divided without it"):
            model.fit(parts.fit)
    person = pf.Schema(SCHEMA.features, SCHEMA.target, person="who")
    with pytest.raises(pf.DataError, match="was not divided by them"):
        pf.LinearRegression(schema=person, ledger=ledger).fit(parts.fit)
    by_person = pf.holdout(FRAME, ledger=ledger, schema=person, name="persons")
    with pytest.raises(pf.DataError, match="divided by persons was given, and a schema without"):
        pf.LinearRegression(schema=SCHEMA, ledger=ledger).fit(by_person.fit)
    assert not ledger.entries()


# -- what neighbours change ------------------------------------------------------------------------

CELLS = (0.0, 1.0)
SMALL = pf.Schema([pf.Numeric("x", 0, 1)])


def of(table: Sequence[float], numbered: bool = True) -> Identities:
    """The identities of a table of one column; without the number of equal rows, those of a version that is wrong."""
    words = identities(open_table(np.array(table, dtype=float)[:, None]), SMALL, SPLIT)
    if not numbered:
        words = words[:2]
    return list(zip(*(word.tolist() for word in words), strict=True))


def neighbours(adjacency: str, most: int = 3) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    for length in range(2, most + 1):
        for table in product(CELLS, repeat=length):
            if adjacency == "add-remove":
                yield table, table[1:]
            else:
                yield from ((table, (value, *table[1:])) for value in CELLS)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_neighbours_differ_in_one_identity_and_no_table_has_one_twice(adjacency: str) -> None:
    for left, right in neighbours(adjacency, 4):
        one, other = set(of(left)), set(of(right))
        assert (len(one), len(other)) == (len(left), len(right))
        assert len(one - other) <= 1
        assert len(other - one) <= (1 if adjacency == "replace-one" else 0)


PRICES = (1.0, 0.6)
"""Epsilon of a count on either part."""


def law(count: int, epsilon: float, sensitivity: int, value: int) -> float:
    """Discrete Laplace noise on a count of ones."""
    decay = math.exp(-epsilon / sensitivity)
    return (1 - decay) / (1 + decay) * decay ** abs(value - count)


def joint(table: Sequence[float], numbered: bool, sensitivity: int) -> Callable[[int, int], float]:
    """The law of the counts of ones of both parts, noised, over all ways to give identities a part."""
    own = of(table, numbered)
    distinct = sorted(set(own))
    mixture: Counter = Counter()
    for bits in product((0, 1), repeat=len(distinct)):
        part = dict(zip(distinct, bits, strict=True))
        chance = math.prod(0.3 if bit else 0.7 for bit in bits)
        ones = [sum(int(x) for x, who in zip(table, own, strict=True) if part[who] == bit) for bit in (0, 1)]
        mixture[tuple(ones)] += chance
    return lambda a, b: sum(
        chance * law(ones[0], PRICES[0], sensitivity, a) * law(ones[1], PRICES[1], sensitivity, b)
        for ones, chance in mixture.items()
    )


def loss(adjacency: str, numbered: bool = True) -> float:
    most = 0.0
    for left, right in neighbours(adjacency):
        one, other = joint(left, numbered, 1), joint(right, numbered, 1)
        for a, b in product(range(-2, 6), repeat=2):
            most = max(most, abs(math.log(one(a, b) / other(a, b))))
    return most


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_two_parts_lose_what_the_dearer_one_loses_and_no_more(adjacency: str) -> None:
    """Each count is for one row; whoever is swapped is in one of the two parts."""
    found = loss(adjacency)
    assert found <= max(PRICES) * (1 + 1e-9)
    assert found > 0.7 * max(PRICES)


def sizes(table: Sequence[float], numbered: bool) -> dict[int, float]:
    """The law of the number of rows to fit on, which is public under replace-one."""
    own = Counter(of(table, numbered))
    found: Counter = Counter()
    for bits in product((0, 1), repeat=len(own)):
        rows = sum(count for count, bit in zip(own.values(), bits, strict=True) if not bit)
        found[rows] += math.prod(0.3 if bit else 0.7 for bit in bits)
    return {rows: round(likely, 12) for rows, likely in found.items()}


def test_sizes_of_parts_say_nothing_and_would_if_rows_that_hold_the_same_went_together() -> None:
    for left, right in neighbours("replace-one", 4):
        assert sizes(left, True) == sizes(right, True)
    assert set(sizes((1.0, 0.0, 0.0, 0.0), False)) != set(sizes((0.0, 0.0, 0.0, 0.0), False))


# -- releases on parts -----------------------------------------------------------------------------


def test_every_kind_of_release_is_charged_to_its_part(ledger: pf.Ledger) -> None:
    parts = pf.holdout(FRAME, ledger=ledger, schema=SCHEMA)
    own: dict[str, Any] = {"schema": SCHEMA, "ledger": ledger, "epsilon": 0.25}
    pf.LinearRegression(**own).fit(parts.fit)
    pf.KMeans(2, schema=pf.Schema([SCHEMA.features[0]]), ledger=ledger, epsilon=0.25).fit(parts.fit)
    pf.mean(parts.evaluate, SCHEMA.target, epsilon=0.25, ledger=ledger)
    pf.SelectPrivate(1, **own).fit(parts.evaluate)
    where = pf.Schema(SCHEMA.features, SCHEMA.target, where={"x": (1, None)})
    model = pf.LinearRegression(schema=where, ledger=ledger, epsilon=0.25).fit(parts.fit)
    assert ledger.spent.epsilon == 0.75
    assert [entry.event.split_part for entry in ledger.entries()] == ["fit", "fit", "evaluate", "evaluate", "fit"]
    assert len(model.predict(parts.evaluate)) == parts.evaluate.n_rows
    pf.LinearRegression(**own).fit(FRAME)
    assert ledger.spent.epsilon == 1.0
    with pytest.raises(pf.BudgetExceeded):
        pf.LinearRegression(**own).fit(parts.fit)
    pf.mean(parts.evaluate, SCHEMA.target, epsilon=0.25, ledger=ledger)
    ledger.verify()


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
def test_persons_and_several_rows(ledger: pf.Ledger) -> None:
    person = pf.Schema(SCHEMA.features, SCHEMA.target, person="who")
    for schema, name, spent in ((SCHEMA, "rows", 0.4), (person, "persons", 0.6)):
        parts = pf.holdout(FRAME, ledger=ledger, schema=schema, name=name)
        for part in (parts.fit, parts.evaluate):
            pf.LinearRegression(0.2, schema=schema, ledger=ledger, rows_per_person=3).fit(part)
        assert ledger.spent.epsilon == spent


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
def test_a_model_is_evaluated_on_the_other_part_at_no_further_price(ledger: pf.Ledger) -> None:
    person = pf.Schema(SCHEMA.features, SCHEMA.target, person="who")
    for schema, name, spent in ((SCHEMA, "rows", 0.4), (person, "persons", 0.8)):
        parts = pf.holdout(FRAME, ledger=ledger, schema=schema, name=name)
        model = pf.LinearRegression(0.4, schema=schema, ledger=ledger).fit(parts.fit)
        pf.evaluate(model, parts.evaluate, epsilon=0.4, ledger=ledger)
        assert ledger.spent.epsilon == spent
        assert [entry.event.split_part for entry in ledger.entries()][-2:] == ["fit", "evaluate"]


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
def test_parts_by_persons_are_refused_where_persons_are_not_asked_for(ledger: pf.Ledger) -> None:
    """How many rows such a part has is private: whoever took it for public would show it."""
    model = pf.LinearRegression(1.0, schema=SCHEMA).fit(FRAME)
    person = pf.Schema(SCHEMA.features, SCHEMA.target, person="who")
    parts = pf.holdout(FRAME, ledger=ledger, schema=person)
    search = pf.PrivateSearch(pf.LinearRegression(schema=SCHEMA), {"numeric": ["slope", "bins"]}, epsilon=0.1)
    for release in (
        lambda: pf.evaluate(model, parts.evaluate, epsilon=0.1, ledger=ledger),
        lambda: search.set_params(ledger=ledger).fit(parts.fit),
        lambda: pf.mean(parts.fit, SCHEMA.target, epsilon=0.1, ledger=ledger),
        lambda: pf.levels(parts.fit, pf.Category("c", ["a", "b"]), epsilon=0.1, ledger=ledger),
        lambda: pf.bounds(parts.fit, {"x": (0, 9)}, epsilon=0.1, ledger=ledger),
    ):
        with pytest.raises(pf.DataError, match="divided by persons"):
            release()
    assert not ledger.entries()


def test_other_ledgers_targets_apart_and_parts_of_parts_are_refused(ledger: pf.Ledger) -> None:
    parts = pf.holdout(FRAME, ledger=ledger, schema=SCHEMA)
    with pytest.raises(pf.LedgerError, match="has not made this split"):
        pf.LinearRegression(schema=SCHEMA, ledger=pf.Ledger(epsilon=1.0)).fit(parts.fit)
    with pytest.raises(pf.LedgerError, match="has not made this split"):
        pf.LinearRegression(schema=SCHEMA).fit(parts.fit)
    features = pf.holdout(FRAME.select("x"), ledger=ledger, schema=pf.Schema([SCHEMA.features[0]]), name="features")
    model = pf.LinearRegression(schema=pf.Schema([SCHEMA.features[0]], SCHEMA.target), ledger=ledger)
    with pytest.raises(pf.DataError, match="given apart"):
        model.fit(features.fit, np.zeros(features.fit.n_rows or 0))
    with pytest.raises(pf.LedgerError, match="whole tables are divided"):
        pf.holdout(parts.fit, ledger=ledger, schema=SCHEMA, name="again")
    with pytest.raises(pf.LedgerError, match="another share"):
        pf.holdout(FRAME, ledger=ledger, schema=SCHEMA, share=0.5)
    for share in (0, 1, True, "x", float("nan")):
        with pytest.raises(pf.PrivacyError, match="share="):
            pf.holdout(FRAME, ledger=ledger, schema=SCHEMA, share=share)
    with pytest.raises(pf.DataError, match="no rows"):
        pf.holdout(FRAME.head(0), ledger=ledger, schema=SCHEMA, name="none")
    assert not ledger.entries()


def test_arrays_and_boxes(ledger: pf.Ledger) -> None:
    rows = RNG.uniform(-1, 1, (3000, 3))
    box = pf.Schema.box(-1, 1, target=(-1, 1))
    parts = pf.holdout(rows, ledger=ledger, schema=pf.Schema.box(-1, 1, 3))
    assert (divided(open_table(rows), parts.fit._schema, parts.fit.part.split) == parts.evaluate._held).all()  # type: ignore[attr-defined]
    pf.KMeans(2, schema=pf.Schema.box(-1, 1, 3), ledger=ledger, epsilon=0.3).fit(parts.fit)
    pf.KMeans(2, schema=pf.Schema.box(-1, 1), ledger=ledger, epsilon=0.3).fit(parts.evaluate)
    assert ledger.spent.epsilon == 0.3
    frame = pl.DataFrame(rows, schema=["a", "b", "target"])
    parts = pf.holdout(frame, ledger=ledger, schema=box, name="frame")
    pf.LinearRegression(0.3, schema=box, ledger=ledger).fit(parts.fit)
    pf.LinearRegression(0.3, schema=box, ledger=ledger).fit(parts.evaluate)
    assert ledger.spent.epsilon == 0.6
