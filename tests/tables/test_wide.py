"""Tables of 100,000 columns: a fit in bounded time and memory, or a refusal before anything is charged."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.mechanisms.perturbation.precision import MOST_WEIGHTS
from privfit.rows import SampledDesign

COLUMNS, ROWS = 100_000, 12
SECONDS = 60.0
"""Of the processor. A fit takes 3 to 6; a search among names for every name would take hours."""


@pytest.fixture(scope="module")
def wide() -> tuple[pl.DataFrame, list[pf.Numeric]]:
    values = np.random.default_rng(0).uniform(0, 1, (ROWS, COLUMNS))
    frame = pl.from_numpy(values, schema=[f"c{place}" for place in range(COLUMNS)])
    return frame.with_columns(y=pl.Series(["no", "yes"] * (ROWS // 2))), [
        pf.Numeric(name, 0, 1) for name in frame.columns
    ]


@pytest.mark.parametrize("form", [lambda frame: frame, lambda frame: frame.to_arrow()])
def test_a_classifier_is_fitted_and_predicts(form: Callable, wide: tuple[pl.DataFrame, list[pf.Numeric]]) -> None:
    frame, features = wide
    start, ledger = time.process_time(), pf.Ledger(epsilon=1.0)
    schema = pf.Schema(features, target=pf.Category("y", ["no", "yes"]))
    model = pf.LogisticRegression(1.0, schema=schema, numeric="slope", ledger=ledger).fit(form(frame))
    assert (model.coef_.shape, ledger.spent) == ((1, COLUMNS), 1.0)
    assert len(model.predict(form(frame))) == ROWS
    assert time.process_time() - start < SECONDS


def test_no_matrix_is_made_whose_size_is_the_square_of_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = MOST_WEIGHTS + 1
    schema = pf.Schema.box(0, 1, n_features=columns, target=[0, 1])
    values, labels = np.random.default_rng(0).uniform(0, 1, (ROWS, columns)), np.arange(ROWS) % 2
    monkeypatch.setattr(SampledDesign, "hessian", lambda *_: pytest.fail("a matrix of second derivatives was made"))
    model = pf.LogisticRegression(1.0, schema=schema, numeric="slope").fit(values, labels)
    assert model.coef_.shape == (1, columns)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("make", "target"),
    [
        (lambda **given: pf.LinearRegression(1.0, mechanism="functional", **given), pf.Numeric("z", 0, 1)),
        (lambda **given: pf.KMeans(2, epsilon=1.0, **given), None),
        (lambda **given: pf.PCA(1, epsilon=1.0, **given), None),
    ],
)
def test_what_would_release_squares_of_columns_is_refused_and_not_charged(
    make: Callable, target: pf.Numeric | None, wide: tuple[pl.DataFrame, list[pf.Numeric]]
) -> None:
    frame, features = wide
    start, ledger = time.process_time(), pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.SchemaError, match="at most"):
        make(schema=pf.Schema(features, target=target), ledger=ledger).fit(frame.with_columns(z=0.5))
    assert ledger.spent == 0
    assert time.process_time() - start < SECONDS


def test_columns_are_found_by_name_in_any_order_and_twice_is_refused() -> None:
    pytest.importorskip("pandas")
    frame = pl.from_numpy(np.tile(np.linspace(0, 1, 500), (4, 1)), schema=[f"c{place}" for place in range(500)])
    schema = pf.Schema([pf.Numeric(name, 0, 1) for name in frame.columns], target=pf.Numeric("y", 0, 1))
    model = pf.LinearRegression(1.0, schema=schema, random_state=0)
    given, turned = frame.with_columns(y=0.5), frame.with_columns(y=0.5).select(["y", *frame.columns[::-1]])
    np.testing.assert_array_equal(model.fit(given).coef_, model.fit(turned).coef_)
    twice = given.to_pandas()
    twice.columns = ["c1" if name == "c3" else name for name in twice.columns]
    with pytest.raises(pf.DataError, match=r"no column 'c3'"):
        model.fit(twice)
    with pytest.raises(pf.DataError, match=r"more than one column called 'c1'"):
        pf.LinearRegression(schema=pf.Schema(schema.features[:3], schema.target), random_state=0).fit(twice)
