"""count, mean, quantile, histogram, crosstab: what they return and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import polars as pl
import pytest

import privfit as pf

RNG = np.random.default_rng(0)
TABLE = pl.DataFrame(
    {
        "income": RNG.lognormal(10.3, 0.8, 20_000),
        "age": RNG.integers(18, 90, 20_000),
        "sex": RNG.choice(["f", "m"], 20_000),
        "gain": RNG.normal(100, 500, 20_000),
    }
)
INCOME, AGE = pf.Numeric("income", 0, 1_000_000), pf.Numeric("age", 0, 120)
SEX, GAIN = pf.Category("sex", ["f", "m"]), pf.Numeric("gain", -1e6, 1e6)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("column", "close"), [(INCOME, 0.01), (AGE, 0.01), (GAIN, 0.15)])
def test_means_and_medians_are_close(column, close, adjacency) -> None:
    values = TABLE[column.name].to_numpy()
    given = {"epsilon": 2.0, "adjacency": adjacency, "expected_rows": 20_000, "random_state": 1}
    mean, median = pf.mean(TABLE, column, **given), pf.quantile(TABLE, column, **given)
    assert mean == pytest.approx(values.mean(), rel=close)
    assert median == pytest.approx(np.median(values), rel=close)
    for figure in (mean, median):
        low, high = figure.interval
        assert low < figure < high


def test_several_quantiles_at_one_price_are_an_array_with_intervals() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    found = pf.quantile(TABLE, INCOME, [0.1, 0.5, 0.9], epsilon=1.0, ledger=ledger)
    assert ledger.spent.epsilon == 1.0
    assert found.shape == (3,)
    assert found.interval.shape == (3, 2)
    assert np.asarray(found) == pytest.approx(np.quantile(TABLE["income"], [0.1, 0.5, 0.9]), rel=0.02)
    assert found.labels == ((0.1, 0.5, 0.9),)


def test_without_intervals_the_whole_price_goes_into_the_quantile() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    bare = pf.quantile(TABLE, INCOME, 0.5, epsilon=1.0, ledger=ledger, intervals=False)
    assert bare.interval == (0.0, 1_000_000.0)
    (part,) = ledger.entries()[0].event.parts
    assert part.epsilon == 1.0


def test_a_value_that_many_share_is_found() -> None:
    hours = np.where(np.arange(5000) % 3 == 0, 20.0, 40.0)[:, None]
    assert pf.quantile(hours, pf.Numeric("hours", 0, 100), 0.5, epsilon=1.0) == 40.0
    assert pf.quantile(np.zeros((500, 1)), pf.Numeric("debt", 0, 1e6), 0.5, epsilon=1.0) < 2.0


def test_counts_are_of_the_rows_asked_for() -> None:
    age = TABLE["age"].to_numpy()
    exact = {"epsilon": 50.0, "random_state": 1}
    assert pf.count(TABLE, AGE, (18, 65), **exact) == np.sum(age < 65)
    assert pf.count(TABLE, AGE, (65, 120), **exact) == np.sum(age >= 65)
    assert pf.count(TABLE, AGE, (-5, 40), **exact) == np.sum(age < 40)
    assert pf.count(TABLE, AGE, (30, 40), **exact) == np.sum((age >= 30) & (age < 40))
    assert pf.count(TABLE, SEX, "f", **exact) == TABLE.filter(pl.col("sex") == "f").height
    assert pf.count(TABLE, SEX, ["m"], **exact).interval[0] <= TABLE.filter(pl.col("sex") == "m").height


def test_histograms_and_crosstabs_have_labels_and_add_up() -> None:
    exact = {"epsilon": 50.0, "random_state": 1}
    bins = pf.histogram(TABLE, pf.Numeric("age", 0, 120, bins=[20, 60]), **exact)
    assert bins.labels == (((0.0, 20.0), (20.0, 60.0), (60.0, 120.0)),)
    assert bins.tolist() == np.histogram(TABLE["age"], [0, 20, 60, 121])[0].tolist()
    assert pf.histogram(TABLE, SEX, **exact).labels == (("f", "m"),)
    cross = pf.crosstab(TABLE, [pf.Numeric("age", 0, 120, bins=[20, 60]), SEX], **exact)
    assert cross.shape == (3, 2)
    assert cross.interval.shape == (3, 2, 2)
    assert cross.sum(axis=1).tolist() == bins.tolist()
    assert cross[0, 1] == TABLE.filter((pl.col("age") < 20) & (pl.col("sex") == "m")).height


def test_counts_are_not_made_positive() -> None:
    """Figures that are computed from them would be biased."""
    empty = [pf.histogram(TABLE[:10], pf.Numeric("age", 0, 120), epsilon=0.1, random_state=seed) for seed in range(20)]
    assert min(map(np.min, empty)) < 0


def test_figures_act_as_numbers_and_keep_their_interval_in_copies() -> None:
    figure = pf.mean(TABLE, AGE, epsilon=1.0)
    assert isinstance(figure, float)
    assert type(figure + 1) is float
    for same in (pickle.loads(pickle.dumps(figure)), copy.deepcopy(figure)):
        assert (same, same.interval) == (figure, figure.interval)
    assert str(figure).count("to") == 1
    figures = pf.histogram(TABLE, SEX, epsilon=1.0)
    assert type(figures + 1) is np.ndarray
    assert figures[:1].interval is None
    for same in (pickle.loads(pickle.dumps(figures)), copy.deepcopy(figures)):
        np.testing.assert_array_equal(same, figures)
        np.testing.assert_array_equal(same.interval, figures.interval)


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda **more: pf.quantile(TABLE, INCOME, 1.5, **more), "quantile"),
        (lambda **more: pf.quantile(TABLE, INCOME, [], **more), "no quantiles"),
        (lambda **more: pf.quantile(TABLE, INCOME, ["half"], **more), "quantile"),
        (lambda **more: pf.quantile(TABLE, SEX, 0.5, **more), "Category"),
        (lambda **more: pf.mean(TABLE, "income", **more), "str"),
        (lambda **more: pf.count(TABLE, SEX, "x", **more), "levels"),
        (lambda **more: pf.count(TABLE, SEX, [], **more), "levels"),
        (lambda **more: pf.count(TABLE, AGE, (0, 120), **more), "not all"),
        (lambda **more: pf.count(TABLE, AGE, (30, 20), **more), "pair"),
        (lambda **more: pf.count(TABLE, AGE, 30, **more), "pair"),
        (lambda **more: pf.histogram(TABLE, "age", **more), "str"),
        (lambda **more: pf.crosstab(TABLE, [], **more), "no columns"),
        (lambda **more: pf.crosstab(TABLE, [pf.Numeric("age", 0, 120, bins=5000)] * 2, **more), "more than once|cells"),
    ],
)
def test_what_means_nothing_is_refused_and_charges_nothing(ask, match) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises((pf.PrivacyError, pf.SchemaError), match=match):
        ask(epsilon=0.5, ledger=ledger)
    assert ledger.n_entries == 0
