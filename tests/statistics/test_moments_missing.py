"""Brute force against docs/proofs/moments.md, Theorem 7: slopes whose missing values have a coefficient."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.rows import Encoder
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.statistics import Moments, distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity
from tests.statistics.test_moments_sensitivity import places

SHAPES = [
    (k, s, q, o, c)
    for k in range(3)
    for s in range(2)
    for q in range(3)
    for o in range(1, 4)
    for c in (False, True)
    if k + s + q + o < 5
]
WEIGHTS = [Fraction(1, 2), Fraction(1), Fraction(5, 2)]


def geometry_of(k: int, s: int, q: int, o: int, c: bool) -> Geometry:
    features = [Category(f"c{i}", ["a", "b", "c"]) for i in range(k)]
    features += [Category(f"s{i}", [0, 1]) for i in range(s)]
    features += [Numeric(f"q{i}", -1, 1) for i in range(q)]
    features += [Numeric(f"o{i}", -1, 1, fill="missing") for i in range(o)]
    return Schema(features, target=Numeric("y", -1, 1)).geometry(intercept=c, gaps="slope")


def rows_of(geometry: Geometry, shape: tuple[int, int, int, int, bool], weight: float) -> np.ndarray:
    """The distinct products of every row on a grid, the number of rows last where it may be released."""
    k, s, q, o, c = shape
    levels = [[(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]] * k
    signs = [[(-1.0,), (1.0,)]] * s
    slopes = [[(-1.0,), (0.0,), (1.0,)]] * q
    gaps = [[(-1.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 1.0)]] * o
    targets = [[(-1.0,), (1.0,)]]
    parts = itertools.product(*levels, *signs, *slopes, *gaps, *targets)
    rows = np.array([[1.0] * c + [entry for part in row for entry in part] for row in parts])
    first, second = places(geometry)
    products = rows[:, first] * rows[:, second]
    products[:, np.maximum(first, second) == geometry.n_columns] *= weight
    return np.column_stack([products, np.full(len(rows), float(c or s > 0))])


@pytest.mark.parametrize("shape", SHAPES)
def test_no_rows_move_moments_further_than_claimed(shape) -> None:
    geometry, weight = geometry_of(*shape), WEIGHTS[sum(shape) % 3]
    rows = rows_of(geometry, shape, float(weight))
    if len(rows) > 500:
        rows = rows[np.random.default_rng(sum(shape)).choice(len(rows), 500, replace=False)]
    apart = rows[:, None, :] - rows[None, :, :]
    claims = {
        "l1": (np.abs(apart).sum(axis=2).max(), float(distinct_sensitivity(geometry, weight, "replace-one"))),
        "l2": (
            math.sqrt((apart**2).sum(axis=2).max()),
            math.sqrt(squared_l2_sensitivity(geometry, weight, "replace-one")),
        ),
        "added, l1": (np.abs(rows).sum(axis=1).max(), float(distinct_sensitivity(geometry, weight, "add-remove"))),
        "added, l2": (
            math.sqrt((rows**2).sum(axis=1).max()),
            math.sqrt(squared_l2_sensitivity(geometry, weight, "add-remove")),
        ),
    }
    for name, (found, claimed) in claims.items():
        assert found <= claimed + 1e-9, name
        assert found >= 0.75 * claimed, f"{name}: the claim should be close to what is reached"
    about_target = np.append(np.maximum(*places(geometry)) == geometry.n_columns, False)
    features, target = linf_sensitivities(geometry, weight, "replace-one")
    assert np.abs(apart[:, :, ~about_target]).max(initial=0.0) <= features
    assert np.abs(apart[:, :, about_target]).max() <= target


def test_a_bound_that_takes_them_for_slopes_is_too_small() -> None:
    shape = (0, 0, 0, 3, True)
    plain = Schema([Numeric(f"o{i}", -1, 1) for i in range(3)], target=Numeric("y", -1, 1)).geometry()
    rows = rows_of(geometry_of(*shape), shape, 1.0)
    found = np.abs(rows[:, None, :] - rows[None, :, :]).sum(axis=2).max()
    assert found > float(distinct_sensitivity(plain, Fraction(1), "replace-one"))


def test_a_row_has_its_value_or_the_indicator_and_is_no_longer() -> None:
    geometry = geometry_of(1, 0, 1, 1, True)
    encoder = Encoder(geometry, 100, 100)
    batch = [
        np.array([0, 1, 2]),
        np.array([0.5, -1.0, 1.0]),
        np.array([np.nan, 5.0, -0.25]),
        np.array([1.0, -1.0, 0.0]),
    ]
    encoded = encoder.encode(batch)
    np.testing.assert_array_equal(encoded[5:7], [[0.0, 100.0, -25.0], [100.0, 0.0, 0.0]])
    assert (np.linalg.norm(encoded[:-1] / 100, axis=0) <= geometry.l2).all()
    assert (np.abs(encoded[:-1] / 100).sum(axis=0) <= geometry.l1).all()
    moments = Moments(geometry)
    sums = moments(Encoder(geometry, moments.step, moments.target_units).encode(batch))
    assert sums[5, 6] == 0  # a value and its indicator are never both there
    assert sums[6, 6] == sums[0, 6]


@pytest.mark.parametrize(
    "schema_of",
    [
        lambda column: pf.KMeans(2, schema=pf.Schema([column])),
        lambda column: pf.LogisticRegression(kernel="rbf", schema=pf.Schema([column], pf.Category("y", ["a", "b"]))),
        lambda column: pf.LinearRegression(
            mechanism=pf.FunctionalMechanism(calibration="paper"), schema=pf.Schema([column], pf.Numeric("y", 0, 1))
        ),
    ],
)
def test_where_it_makes_no_sense_it_is_refused(schema_of) -> None:
    import polars as pl

    table = pl.DataFrame({"x": [0.0, None, 1.0], "y": [0.0, 1.0, 0.5]})
    with pytest.raises(pf.SchemaError, match="can have no coefficient of their own"):
        schema_of(pf.Numeric("x", 0, 1, fill="missing")).fit(table)
