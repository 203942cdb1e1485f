"""Sums in fixed point: exact integers, the same for all cuts and orders, wherever a chunk is summed."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.features import FourierFeatures, ShortenedRows
from privfit.losses import LOGISTIC
from privfit.rows import CachedDesign
from privfit.rows.fixed_point import (
    LOW_BITS,
    GradientPass,
    Predictors,
    on_lattice,
    power_of_two,
    slope_unit,
)
from privfit.rows.workers import Chunk
from privfit.schema import Category, Numeric, Schema
from tests.support.cached_tables import kept_from, mixed, schema_for

WIDE = Schema([Numeric(f"x{i}", -1, 1) for i in range(300)], Numeric("y", -1, 1))


@cache
def kinds(n: int) -> dict[str, tuple[Any, Schema, dict[str, Any], Any]]:
    rng = np.random.default_rng(4)
    table = rng.uniform(-1, 1, (n, 5))
    box = Schema([Numeric(f"x{i}", -1, 1) for i in range(4)], Numeric("y", -1, 1))
    return {
        "numbers and levels": (mixed(n, "two classes"), schema_for("two classes"), {}, None),
        "splines": (mixed(n, "two classes"), schema_for("two classes"), {"numeric": "splines"}, None),
        "only numbers": (table, box, {"intercept": False}, None),
        "many numbers": (rng.uniform(-1, 1, (n, 301)), WIDE, {}, None),
        "Fourier features": (table, box, {"intercept": False}, FourierFeatures(4, 30, 0.5)),
        "shortened rows": (table, box, {"intercept": False}, ShortenedRows(4, 0.7, constant=True)),
    }


KINDS = list(kinds(1))


def kept_of(kind: str, n: int, order: Any = slice(None), **options: Any) -> CachedDesign:
    table, schema, geometry, features = kinds(n)[kind]
    table = table.iloc[order] if hasattr(table, "iloc") else table[order]
    return kept_from(table, schema, schema.geometry(**geometry), features=features, **options)


def slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(LOGISTIC.slope(z, y if z.ndim == 1 else np.where(y[:, None] > np.arange(z.shape[1]) / 9, 1, -1)))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_no_cut_and_no_order_of_rows_changes_a_bit(kind: str, classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of the sample that a solver starts from, which is a part of the rows here."""
    monkeypatch.setattr("privfit.rows.cached_design.SAMPLE_VALUES", 3000)
    monkeypatch.setattr("privfit.rows.cached_design.LEAST_SAMPLE", 1)
    rng, n = np.random.default_rng(0), 2500
    weights, sums, curved = None, set(), set()
    for cut in (31, 1024, 2500):
        for order in (np.arange(n), rng.permutation(n)):
            kept = kept_of(kind, n, order, batch_rows=cut, threads=int(rng.integers(1, 4)))
            if weights is None:
                weights = rng.normal(size=(kept.n_columns, classes))
            sums.add(kept.gradient(weights, slopes, 1.0).tobytes())
            sample = kept.sample()
            curved.add((sample.gradient(weights, slopes).tobytes(), kept.hessian(weights, slopes).tobytes()))
    assert len(sums) == len(curved) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_integers(kind: str) -> None:
    """Of the slopes that the pass itself sees, rounded, times encoded rows: in fractions."""
    kept = kept_of(kind, 400)
    weights = np.random.default_rng(1).normal(size=(kept.n_columns, 1))
    chunk = Chunk.joined(list(kept._every_chunk()))
    seen = slopes(kept._predictors(weights)(chunk)[:, 0], chunk.target)
    step = slope_unit(0.9)
    whole = [round(Fraction(slope) / Fraction(step)) for slope in np.clip(seen, -0.9, 0.9).tolist()]
    exact = [
        sum(Fraction(entry) * slope for entry, slope in zip(column, whole, strict=True) if entry)
        for column in kept._dense(chunk).T.tolist()
    ]
    found = kept.gradient(weights, slopes, 0.9)[:, 0]
    np.testing.assert_array_almost_equal_nulp(found, [float(one * Fraction(step)) for one in exact], 4)


def gradient_pass(kept: CachedDesign, weights: Any, rows: int) -> GradientPass:
    layout = None if kept._features else kept._layout
    return GradientPass(Predictors.of(layout, weights), slopes, 1.0, slope_unit(1.0), rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_can_be_sent_elsewhere_and_its_integers_added_in_any_order(kind: str) -> None:
    kept = kept_of(kind, 5000, batch_rows=300)
    weights = np.random.default_rng(1).normal(size=(kept.n_columns, 1))
    chunks = [part for chunk in kept._every_chunk() for part in chunk.parts(170)]
    for rows in (kept.n_rows, 1 << 40):
        one_pass = gradient_pass(kept, weights, rows)
        elsewhere = pickle.loads(pickle.dumps(one_pass))
        parts = [elsewhere(chunk) for chunk in chunks]
        assert {part.dtype for part in parts} == {np.dtype(np.int64)}
        np.random.default_rng(2).shuffle(parts)
        pairs = [sum(parts[start : start + 3]) for start in range(0, len(parts), 3)]
        np.testing.assert_array_equal(one_pass.total(sum(pairs[::-1])), kept.gradient(weights, slopes, 1.0))


def test_a_pass_is_small_to_send() -> None:
    kept = kept_of("only numbers", 5000)
    weights = np.zeros((kept.n_columns, 1))
    kept.gradient(weights, slopes, 1.0)
    assert len(pickle.dumps(gradient_pass(kept, weights, 5000))) < 10_000
    mixed_rows = kept_of("numbers and levels", 5000)
    weights = np.zeros((mixed_rows.n_columns, 1))
    mixed_rows.gradient(weights, slopes, 1.0)  # fills what matrices share
    codes = mixed_rows._layout.n_codes
    assert len(pickle.dumps(gradient_pass(mixed_rows, weights, 5000))) < 8 * codes + 10_000


def test_long_chunks_are_summed_exactly() -> None:
    """Of 98,309 rows with the largest slopes, all odd in steps: sums have 55 bits."""
    n = (3 << 15) + 5
    schema = Schema([Numeric("a", -1, 1), Category("c", [0, 1, 2])], Numeric("y", -1, 1))
    table = np.column_stack([np.full(n, 1 - 2.0**-16), np.ones(n), np.zeros(n)])
    kept = kept_from(table, schema, schema.geometry(intercept=False))
    chunk, steps = Chunk.joined(list(kept._every_chunk())), (1 << 38) - 1 - 2 * (np.arange(n) % 7)
    sided = Chunk(chunk.codes, chunk.numbers, steps * 2.0**-38)
    one_pass = GradientPass(kept._predictors(np.zeros((4, 1))), lambda z, y: y, 1.0, slope_unit(1.0), n)
    codes, rows, high, low = np.split(one_pass(sided)[0, :, 0], [3, 4, 5])
    exact = sum(steps.tolist())
    assert codes.tolist() == [0, exact, 0]
    assert rows.tolist() == [exact]
    assert (high.item() << 19) + low.item() == exact * ((1 << 16) - 1)


def test_more_rows_than_64_bits_hold_are_added_in_two_parts() -> None:
    """As if 2^40 chunks had come."""
    kept = kept_of("numbers and levels", 500)
    weights = np.random.default_rng(1).normal(size=(kept.n_columns, 1))
    one_pass = gradient_pass(kept, weights, 500 << 30)
    sums = one_pass(Chunk.joined(list(kept._every_chunk())))
    assert np.abs(sums[1]).max() < 1 << LOW_BITS
    np.testing.assert_array_equal(one_pass.total(sums << 30), kept.gradient(weights, slopes, 1.0) * 2.0**30)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40),
    st.sampled_from([1e-150, 1.0, 1e100]),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_predictors_are_within_the_rounding_that_is_counted(weights: list[float], size: float, seed: int) -> None:
    """Of numbers alone: a few units in the last place of |x| |w|, however many there are."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-(1 << 16), 1 << 16, (3, len(weights))) / 2.0**16
    given_weights = np.array(weights)[:, None] * size
    schema = Schema([Numeric(f"x{i}", -1, 1) for i in range(len(weights))])
    kept = kept_from(numbers, schema, schema.geometry(intercept=False))
    chunk = Chunk.joined(list(kept._every_chunk()))
    found = kept._predictors(given_weights)(chunk)[:, 0]
    for row, score in zip(chunk.numbers.tolist(), found.tolist(), strict=True):
        exact = sum(Fraction(x) * Fraction(w) for x, w in zip(row, given_weights[:, 0].tolist(), strict=True))
        length = float(np.linalg.norm(row)) * float(np.linalg.norm(given_weights))
        assert abs(Fraction(score) - exact) <= 8 * 2.0**-53 * length + 2.0**-250


def test_predictors_of_a_row_do_not_depend_on_its_neighbours() -> None:
    for kind in KINDS:
        kept = kept_of(kind, 700)
        weights = np.random.default_rng(1).normal(size=(kept.n_columns, 2))
        predictors, chunk = kept._predictors(weights), Chunk.joined(list(kept._every_chunk()))
        whole = predictors(chunk)
        for rows in (slice(0, 1), slice(3, 10), slice(111, 400), slice(699, 700), slice(5, 600, 7)):
            np.testing.assert_array_equal(predictors(chunk.of(rows)), whole[rows])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_weights_without_a_gradient_have_none_whatever_the_rows(bad: float) -> None:
    kept = kept_of("numbers and levels", 50)
    weights = np.zeros((kept.n_columns, 1))
    weights[3] = bad
    assert np.isnan(kept.gradient(weights, slopes, 1.0)).all()


def test_slopes_out_of_bounds_are_cut_and_what_is_no_number_counts_nothing() -> None:
    schema = Schema([Numeric("a", -1, 1)], Numeric("y", -1, 1))
    kept = kept_from(np.column_stack([np.ones(4), [-1, 0, 0.5, 1]]), schema, schema.geometry(intercept=False))
    odd = {-1.0: -np.inf, 0.0: np.nan, 0.5: 0.25, 1.0: 7.0}
    found = kept.gradient(np.zeros((1, 1)), lambda z, y: np.array([odd[one] for one in y.tolist()]), 2.0)
    assert found[0, 0] == -2 + 0.25 + 2


def test_features_are_rounded_towards_zero() -> None:
    values = np.random.default_rng(0).normal(size=(200, 7))
    rounded = on_lattice(values)
    assert (np.abs(rounded) <= np.abs(values)).all()
    assert (np.abs(values - rounded) < 2.0**-22).all()
    assert not np.signbit(on_lattice(np.array([-(2.0**-30)]))).any()


def test_powers_of_two() -> None:
    assert [power_of_two(value) for value in (0.0, 0.3, 0.5, 1.0, 1.1, 3.0)] == [0.0, 0.5, 0.5, 1.0, 2.0, 4.0]
    assert Predictors.of(None, np.zeros((3, 1))).parts.shape[1:] == (3, 1)
