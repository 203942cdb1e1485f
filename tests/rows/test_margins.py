"""What a move of one column gains, against scoring every row of every candidate anew: equal integers, however the
rows are held.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.losses import LOGISTIC, hinge, tempered_logistic
from privfit.losses.margins import MarginLoss
from privfit.rows import CachedDesign, MarginRows, Rows, losses_of
from privfit.rows.layout import STEPS_PER_KNOT
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.tables import open_table

FEATURES = [
    Category("member", ["no", "yes"]),
    Numeric("age", 0, 80),
    Category("region", ["n", "e", "s", "w"], other=True),
    Numeric("wage", 0, 1e9),
    Numeric("size", -4, 4, bins=3),
    Numeric("half", 0, 1, bins=2),
]
SCHEMA = Schema(FEATURES, Category("y", ["a", "b"]))
DOWN, UP = 0, 1


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "member": rng.choice(["no", "yes"], n),
            "age": np.where(rng.random(n) < 0.3, rng.choice([-5.0, 0.0, 40.0, 80.0, 99.0], n), rng.uniform(0, 80, n)),
            "region": rng.choice(["n", "e", "s", "w", "elsewhere"], n),
            "wage": np.exp(rng.uniform(0, 21, n)),
            "size": rng.normal(0, 3, n),
            "half": rng.uniform(0, 1, n),
            "y": rng.choice(["a", "b"], n),
        }
    )


def kept_from(
    frame, geometry: Geometry, schema: Schema = SCHEMA, most_bytes: int | None = None, **options
) -> CachedDesign:
    return CachedDesign(Rows(open_table(frame), schema, geometry, **options), most_bytes=most_bytes)


def geometry_of(numeric: str = "splines", knots: int = 4, schema: Schema = SCHEMA) -> Geometry:
    return schema.geometry(numeric=numeric, intercept=False, knots=knots, whole=True)


def encoded(frame, geometry: Geometry, schema: Schema = SCHEMA) -> tuple[list[list[Fraction]], list[int]]:
    """Every row's entries as fractions, from the words of the schema, and its side."""
    rows: list[list[Fraction]] = [[] for _ in range(len(frame))]
    for column, block in zip(schema.features, geometry.blocks, strict=True):
        for row, value in zip(rows, frame[column.name].tolist(), strict=True):
            entries = [Fraction(0)] * block.width
            if isinstance(column, Category):
                entries[column.levels.index(value if value in column.levels else "other")] = Fraction(1)
            elif block.kind == "spline":
                place = Fraction(nearest_eighth(column, value, block.width), STEPS_PER_KNOT)
                entries = [max(Fraction(0), 1 - abs(place - knot)) for knot in range(block.width)]
            else:
                entries[sum(value >= edge for edge in block.edges)] = Fraction(1)
            row += entries
    return rows, [1 if value == "b" else -1 for value in frame["y"].tolist()]


def nearest_eighth(column: Numeric, value: float, knots: int) -> int:
    inside = min(max(value, column.low), column.high)
    return round(float(column.on_scale(np.array([inside]))[0]) * (knots - 1) * STEPS_PER_KNOT)


def total_loss(loss: MarginLoss, rows, sides, weights: np.ndarray) -> int:
    """Scored anew, row by row."""
    values, total = loss.values.astype(np.int64).tolist(), 0
    for row, side in zip(rows, sides, strict=True):
        margin = side * sum(entry * weight for entry, weight in zip(row, weights.tolist(), strict=True) if entry)
        assert margin.denominator == 1, "margins are integers of lattice steps"
        total += values[int(margin) + loss.reach]
    return total


def gain_of(alone: np.ndarray, linked: np.ndarray | None, signs) -> int:
    """What a pattern is said to gain; a level that stays gains nothing."""
    total = sum(int(alone[level, sign]) for level, sign in enumerate(signs) if sign is not None)
    if linked is not None:
        total += sum(int(linked[level, one, other]) for level, (one, other) in enumerate(itertools.pairwise(signs)))
    return total


def moved(weights: np.ndarray, block, signs, step: int) -> np.ndarray:
    found = weights.copy()
    for level, sign in enumerate(signs):
        found[block.start + level] += 0 if sign is None else (2 * sign - 1) * step
    return found


def some_patterns(rng: np.random.Generator, width: int, may_stay: bool) -> list[tuple[int | None, ...]]:
    options = [DOWN, UP, None] if may_stay else [DOWN, UP]
    drawn = [tuple(options[place] for place in rng.integers(0, len(options), width)) for _ in range(3)]
    return [(UP,) * width, (DOWN,) * width, *drawn]


@pytest.mark.parametrize("most_bytes", [None, 0], ids=["kept", "read again"])
@pytest.mark.parametrize(("numeric", "knots"), [("splines", 4), ("splines", 2), ("splines", 8), ("bins", 8)])
def test_gains_are_what_scoring_anew_finds_move_after_move(numeric, knots, most_bytes) -> None:
    rng = np.random.default_rng(knots)
    frame, geometry = table(60, knots), geometry_of(numeric, knots)
    rows, sides = encoded(frame, geometry)
    steps = (64, 8, 256, 24, 16)
    loss = MarginLoss(tempered_logistic(0.5, 50.0), sum(steps))
    margins = MarginRows(kept_from(frame, geometry, most_bytes=most_bytes), loss)
    weights = np.zeros(geometry.n_columns, dtype=np.int64)
    for step in steps:
        before = total_loss(loss, rows, sides, weights)
        gains = margins.gains(step)
        assert len(gains) == len(geometry.blocks)
        for block, (alone, linked) in zip(geometry.blocks, gains, strict=True):
            assert alone.shape == (block.width, 2)
            for signs in some_patterns(rng, block.width, may_stay=linked is None):
                after = total_loss(loss, rows, sides, moved(weights, block, signs, step))
                assert gain_of(alone, linked, signs) == before - after, (block.column.name, signs)
        column = int(rng.integers(len(geometry.blocks)))
        signs = some_patterns(rng, geometry.blocks[column].width, may_stay=gains[column][1] is None)[-1]
        margins.move(column, signs, step)
        weights = moved(weights, geometry.blocks[column], signs, step)
        np.testing.assert_array_equal(margins.weights, weights)


def test_every_pattern_of_a_short_spline_gains_what_it_does() -> None:
    schema = Schema([Numeric("x", -1, 1)], Category("y", ["a", "b"]))
    frame = pd.DataFrame({"x": np.linspace(-1.2, 1.2, 41), "y": ["a", "b", "b", "a"] * 10 + ["b"]})
    geometry = geometry_of(knots=4, schema=schema)
    rows, sides = encoded(frame, geometry, schema)
    loss = MarginLoss(hinge(), 512 + 64)
    margins = MarginRows(kept_from(frame, geometry, schema), loss)
    margins.move(0, (UP, DOWN, DOWN, UP), 512)
    weights = margins.weights.copy()
    before = total_loss(loss, rows, sides, weights)
    ((alone, linked),) = margins.gains(64)
    for signs in itertools.product((DOWN, UP), repeat=4):
        after = total_loss(loss, rows, sides, moved(weights, geometry.blocks[0], signs, 64))
        assert gain_of(alone, linked, signs) == before - after


def played(kept: CachedDesign, loss: MarginLoss, seed: int) -> list[np.ndarray]:
    """Gains and moves for a while, as flat arrays."""
    rng = np.random.default_rng(seed)
    margins, found = MarginRows(kept, loss), []
    for step in (128, 64, 32):
        gains = margins.gains(step)
        found += [part for pair in gains for part in pair if part is not None]
        column = int(rng.integers(len(gains)))
        margins.move(column, tuple(rng.integers(0, 2, len(gains[column][0])).tolist()), step)
    return [*found, margins.weights]


@settings(max_examples=12)
@given(
    st.integers(1, 400),
    st.sampled_from([1, 7, 100, 1 << 16]),
    st.sampled_from([1, 2, 3]),
    st.booleans(),
    st.integers(0, 50),
)
def test_batches_threads_and_memory_change_no_number(n, batch_rows, threads, again, seed) -> None:
    frame, geometry, loss = table(n, seed), geometry_of(), MarginLoss(LOGISTIC, 224)
    plain = played(kept_from(frame, geometry), loss, seed)
    other = played(
        kept_from(frame, geometry, batch_rows=batch_rows, threads=threads, most_bytes=0 if again else None), loss, seed
    )
    for one, two in zip(plain, other, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_several_chunks_and_any_order_of_rows_give_the_same(most_bytes) -> None:
    frame, geometry, loss = table(40_000), geometry_of(), MarginLoss(LOGISTIC, 224)
    plain = played(kept_from(frame, geometry), loss, 3)
    shuffled = frame.sample(frac=1, random_state=1)
    other = played(kept_from(shuffled, geometry, batch_rows=9000, threads=2, most_bytes=most_bytes), loss, 3)
    for one, two in zip(plain, other, strict=True):
        np.testing.assert_array_equal(one, two)


def test_gains_of_two_tables_together_are_the_sum_of_both() -> None:
    """A row's part in a score depends on that row alone."""
    one, two, geometry, loss = table(150, 1), table(70, 2), geometry_of(), MarginLoss(LOGISTIC, 224)
    parts = [played(kept_from(frame, geometry), loss, 8) for frame in (one, two, pd.concat([one, two]))]
    for left, right, both in zip(*parts, strict=True):
        if both is not parts[2][-1]:  # the weights
            np.testing.assert_array_equal(left + right, both)


def test_many_columns_are_held_in_several_groups() -> None:
    schema = Schema(
        [*(Category(f"c{k}", list(range(30))) for k in range(4)), Numeric("x", 0, 1)], Category("y", ["a", "b"])
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {f"c{k}": rng.integers(0, 30, 80) for k in range(4)}
        | {"x": rng.uniform(0, 1, 80), "y": rng.choice(["a", "b"], 80)}
    )
    geometry = geometry_of(schema=schema)
    kept = kept_from(frame, geometry, schema)
    assert len(kept._layout.groups) > 1
    rows, sides = encoded(frame, geometry, schema)
    loss = MarginLoss(LOGISTIC, 200)
    margins = MarginRows(kept, loss)
    for column, block in enumerate(geometry.blocks):
        margins.move(column, tuple(rng.integers(0, 2, block.width).tolist()), 32)
    before = total_loss(loss, rows, sides, margins.weights)
    for block, (alone, linked) in zip(geometry.blocks, margins.gains(40), strict=True):
        for signs in some_patterns(rng, block.width, may_stay=False):
            assert gain_of(alone, linked, signs) == before - total_loss(
                loss, rows, sides, moved(margins.weights, block, signs, 40)
            )


def test_slopes_are_refused() -> None:
    geometry = SCHEMA.geometry(numeric="slope", intercept=False, whole=True)
    with pytest.raises(TypeError, match="a slope moves every row by another amount"):
        MarginRows(kept_from(table(5), geometry), MarginLoss(LOGISTIC, 8))


# -- the loss of any weights -----------------------------------------------------------------------


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("numeric", ["slope", "bins"])
def test_losses_of_weights_are_those_of_scoring_anew(numeric, most_bytes) -> None:
    schema = Schema(
        [Category("member", ["no", "yes"]), Numeric("x", -1, 1), Category("region", ["n", "e", "s"])],
        Category("y", ["a", "b"]),
    )
    rng = np.random.default_rng(0)
    sixteenths = rng.integers(-20, 21, 50) / 16  # some beyond the bounds; exact in steps of 2^-16
    frame = pd.DataFrame(
        {
            "member": rng.choice(["no", "yes"], 50),
            "x": sixteenths,
            "region": rng.choice(["n", "e", "s"], 50),
            "y": rng.choice(["a", "b"], 50),
        }
    )
    geometry = schema.geometry(numeric=numeric, whole=True)
    candidates = rng.integers(-2560, 2561, (geometry.n_columns, 9))
    loss = MarginLoss(LOGISTIC, 2560 * 4 + 1)
    values = loss.values.astype(np.int64).tolist()
    wanted = []
    for weights in candidates.T.tolist():
        total = 0
        for member, x, region, y in frame.itertuples(index=False):
            entries = {0: Fraction(1)}
            for column, block, value in zip(schema.features, geometry.blocks, (member, x, region), strict=True):
                if block.kind == "slope":
                    entries[block.start] = Fraction(min(max(value, -1.0), 1.0))
                elif isinstance(column, Category):
                    entries[block.start + column.levels.index(value)] = Fraction(1)
                else:
                    entries[block.start + sum(value >= edge for edge in block.edges)] = Fraction(1)
            margin = (1 if y == "b" else -1) * sum(entry * weights[place] for place, entry in entries.items())
            total += values[round(margin) + loss.reach]
        wanted.append(total)
    found = losses_of(
        kept_from(frame, geometry, schema, most_bytes=most_bytes, batch_rows=11, threads=2), loss, candidates
    )
    assert found.tolist() == wanted


class Heavy:
    """A loss of the same large number for all margins."""

    reach = 64

    def __init__(self, value: int) -> None:
        self.values = np.full(2 * self.reach + 1, float(value))


class Slanted(Heavy):
    """A loss that falls by a large number from margin to margin."""

    def __init__(self, fall: int) -> None:
        self.values = float(fall) * np.arange(2 * self.reach, -1, -1)


MANY = (1 << 19) + 1


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_sums_beyond_what_floats_hold_are_exact(most_bytes) -> None:
    """Half a million rows with losses of 2^36 add up to more than 2^53; a sum that is rounded would depend on the order
    of rows.
    """
    schema = Schema([Category("c", ["p", "q"])], Category("y", ["a", "b"]))
    frame = pd.DataFrame({"c": np.repeat("p", MANY), "y": np.repeat("b", MANY)})
    kept = kept_from(frame, geometry_of(schema=schema), schema, most_bytes=most_bytes)
    assert losses_of(kept, Heavy((1 << 36) + 1), np.zeros((2, 1), dtype=np.int64)).tolist() == [MANY * ((1 << 36) + 1)]
    ((alone, _linked),) = MarginRows(kept, Slanted((1 << 32) + 1)).gains(16)
    gained = MANY * 16 * ((1 << 32) + 1)
    assert alone.tolist() == [[-gained, gained], [0, 0]]
