"""Rows with weights in naive Bayes and principal components: what they mean, and how far a row and its weight reach."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.naive_bayes import GaussianNB as PlainNB

import privfit as pf
from privfit.mechanisms import NaiveBayes, SecondMoments
from privfit.mechanisms.functional import second_moments
from privfit.mechanisms.histograms.class_sums import ClassSums
from privfit.models import private
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Encoder, RowWeights
from privfit.statistics import WEIGHT_LEVELS, WeightedMoments
from tests.support.noise import RecordingNoise, ReplayingNoise

SECTOR, SEX = pf.Category("sector", ["public", "private", "none"]), pf.Category("sex", ["f", "m"])
FEATURES = [pf.Numeric("age", 0, 100), pf.Numeric("offset", 100, 101, fill="missing"), SECTOR, SEX]
STATE = pf.Category("state", ["ill", "well"])
MODELS: dict[str, tuple[type, pf.Schema, dict[str, Any]]] = {
    "means": (pf.GaussianNB, pf.Schema(FEATURES, STATE), {"numeric": "slope"}),
    "bins": (pf.GaussianNB, pf.Schema([FEATURES[0], SECTOR, SEX], STATE), {"numeric": "bins"}),
    "components": (pf.PCA, pf.Schema(FEATURES), {}),
}
NORMS = {
    "laplace": lambda moved: np.abs(moved).sum(),
    "linf": lambda moved: np.abs(moved).max(),
    "gaussian": np.linalg.norm,
}


def table(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.35
    offset = 100 + rng.beta(np.where(ill, 4, 2), 3)
    offset[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": rng.normal(np.where(ill, 60, 45), 12).clip(0, 100),
            "offset": offset,
            "sector": rng.choice(["public", "private", "none"], n, p=[0.5, 0.3, 0.2]),
            "sex": np.where(rng.random(n) < np.where(ill, 0.6, 0.45), "m", "f"),
            "state": np.where(ill, "ill", "well"),
            "w": rng.choice([0.0, 0.5, 1.0, 3.0], n),
        }
    )


def learned(model: Any) -> list[np.ndarray]:
    if isinstance(model, pf.PCA):
        return [model.mean_, model.get_covariance(), model.explained_variance_ratio_]
    return [model.class_prior_, model.theta_, model.var_, *model.level_prob_.values()]


# -- what weights mean ---------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_with_much_budget_classes_are_those_of_scikit_learn(adjacency: str, unit: float) -> None:
    """In whatever units weights are: survey weights may be thousands, or shares of 1."""
    rows = table()
    X, weights = rows[["age", "offset"]].fillna(100.5).to_numpy(), rows["w"].to_numpy() * unit
    schema = pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("offset", 100, 101)], STATE)
    model = pf.GaussianNB(1e7, schema=schema, adjacency=adjacency, numeric="slope", max_weight=3 * unit)
    model.fit(X, rows["state"], sample_weight=weights)
    exact = PlainNB().fit(X, rows["state"], weights)
    np.testing.assert_allclose(model.theta_, exact.theta_, rtol=1e-4)
    np.testing.assert_allclose(model.var_, exact.var_, rtol=1e-3)
    np.testing.assert_allclose(model.class_count_, exact.class_count_, rtol=1e-4)
    assert np.abs(PlainNB().fit(X, rows["state"]).theta_ - exact.theta_).max() > 0.1


@pytest.mark.parametrize("unit", [1.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_with_much_budget_components_are_those_of_the_weighted_covariance(adjacency: str, unit: float) -> None:
    rows = table()
    X, weights = rows[["age", "offset"]].fillna(100.5).to_numpy(), rows["w"].to_numpy() * unit
    schema = pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("offset", 100, 101)])
    model = pf.PCA(epsilon=1e7, schema=schema, adjacency=adjacency, scale="bounds", max_weight=3 * unit)
    model.fit(X, sample_weight=weights)
    exact = np.cov((X / [50, 0.5]).T, aweights=weights, ddof=0)
    np.testing.assert_allclose(model.explained_variance_, np.linalg.eigvalsh(exact)[::-1], rtol=1e-3)
    np.testing.assert_allclose(model.get_covariance(), exact, atol=1e-4)
    np.testing.assert_allclose(model.mean_, np.average(X, axis=0, weights=weights), rtol=1e-4)
    np.testing.assert_allclose(model.singular_values_**2, model.explained_variance_ * weights.sum(), rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_of_three_is_three_rows(name: str) -> None:
    estimator, schema, options = MODELS[name]
    rows = table(3000)
    thrice = np.where(rows["sex"] == "m", 3, 1)
    given = {"schema": schema, **options}
    weighed = estimator(epsilon=1e7, max_weight=3.0, **given).fit(rows, sample_weight=thrice)
    repeated = estimator(epsilon=1e7, **given).fit(rows.loc[rows.index.repeat(thrice)])
    if name == "bins":  # their number follows from the number of rows
        assert weighed.level_prob_["age"].shape == repeated.level_prob_["age"].shape
    for one, other in zip(learned(weighed), learned(repeated), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)
    assert not np.allclose(learned(weighed)[0], learned(estimator(epsilon=1e7, **given).fit(rows))[0], rtol=1e-2)


@pytest.mark.parametrize("name", MODELS)
def test_columns_arrays_streams_and_saved_models_agree(name: str, tmp_path: Any) -> None:
    estimator, schema, options = MODELS[name]
    rows = table(400)
    frame, model = pl.from_pandas(rows), estimator(0.5, schema=schema, max_weight=2.0, random_state=0, **options)
    if estimator is pf.PCA:
        model.set_params(n_components=None, epsilon=0.5)
    forms = [rows, frame, frame.lazy(), frame.to_arrow().to_reader(max_chunksize=7)]
    found = [learned(model.fit(form, sample_weight="w")) for form in forms]
    found += [learned(model.fit(rows.drop(columns="w"), sample_weight=np.minimum(rows["w"], 2.0)))]
    for one in found[1:]:
        for value, other in zip(one, found[0], strict=True):
            np.testing.assert_array_equal(value, other)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    for one, other in zip(learned(loaded), learned(model), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.max_weight == 2.0


@pytest.mark.parametrize("name", MODELS)
def test_partitions_and_persons_give_the_same_bits(name: str) -> None:
    frames = pytest.importorskip("dask.dataframe")
    estimator, schema, options = MODELS[name]
    rows = table(300).assign(p=np.arange(300) // 3)
    own = pf.Schema(schema.features, schema.target, person="p")
    model = estimator(epsilon=2.0, schema=own, max_weight=2.0, random_state=0, rows_per_person=2, **options)
    forms = [rows, rows.sample(frac=1.0, random_state=1), frames.from_pandas(rows, npartitions=3)]
    found = [learned(model.fit(form, sample_weight="w")) for form in forms]
    for one in found[1:]:
        for value, other in zip(one, found[0], strict=True):
            np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("name", MODELS)
def test_weights_that_mean_nothing_are_refused_before_the_charge(name: str) -> None:
    estimator, schema, options = MODELS[name]
    rows, ledger = table(60), pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="without max_weight"):
        estimator(epsilon=1.0, schema=schema, ledger=ledger, **options).fit(rows, sample_weight="w")
    rows.loc[7, "w"] = -0.125
    with pytest.raises(pf.DataError, match="negative, NaN or missing") as caught:
        estimator(epsilon=1.0, schema=schema, ledger=ledger, max_weight=1.0, **options).fit(rows, sample_weight="w")
    assert "0.125" not in str(caught.value)
    assert ledger.spent.epsilon == 0


# -- how far a row and its weight reach ----------------------------------------------------------------

MOST = 3.0
CORNERS = [
    {"age": age, "offset": offset, "sector": sector, "sex": sex, "state": state, "w": weight}
    for age, offset, sector, sex, state, weight in itertools.product(
        (0, 100), (100, 101, None), ("public", "none"), ("f", "m"), ("ill", "well"), (0.0, 1.1, 99.0)
    )
]


def fitted(monkeypatch: Any, name: str, rows: pd.DataFrame, noise: Any, **more: Any) -> tuple[Any, list[Any]]:
    monkeypatch.setattr(private, "noise_source", lambda seed: noise)
    estimator, schema, options = MODELS[name]
    ledger = pf.Ledger(epsilon=10.0, delta=1e-3)
    model = estimator(**{"epsilon": 0.7, "schema": schema, "ledger": ledger, "max_weight": MOST, **options, **more})
    model.fit(rows, sample_weight="w")
    return model, [entry.event for entry in ledger.entries()]


def loss(monkeypatch: Any, name: str, rows: pd.DataFrame, other: pd.DataFrame, **more: Any) -> float:
    """How far values move in units of their noise; fails if the replayed fit differs in anything."""
    first = RecordingNoise(seed=3)
    left, charged = fitted(monkeypatch, name, rows, first, **more)
    second = ReplayingNoise(first.calls)
    right, charged_too = fitted(monkeypatch, name, other, second, **more)
    assert charged == charged_too
    for attribute in left.__dict__.keys() - {"ledger"}:
        assert repr(left.__dict__[attribute]) == repr(right.__dict__[attribute]), attribute
    pairs = list(zip(first.calls, second.calls, strict=True))
    assert [(one.kind, one.scale, one.values.shape) for one, _ in pairs] == [
        (two.kind, two.scale, two.values.shape) for _, two in pairs
    ]
    return float(sum(NORMS[one.kind](one.values - two.values) / one.scale for one, two in pairs))


def largest_loss(monkeypatch: Any, name: str, persons_rows: int, adjacency: str, **more: Any) -> float:
    """Over pairs of corners: so many rows are replaced, or come."""
    corners = [row for row in CORNERS if row["offset"] is not None] if name == "bins" else CORNERS
    base, rng, found = table(30).fillna({"offset": 100.5}), np.random.default_rng(1), 0.0
    opposite = [(corners[place], corners[-1 - place]) for place in range(0, len(corners), 17)]
    drawn = [tuple(corners[place] for place in rng.integers(len(corners), size=2)) for _ in range(6)]
    for one, other in [*opposite, *drawn, ({**corners[-1], "w": 99.0}, {**corners[0], "w": 99.0})]:
        left, right = (pd.concat([base, pd.DataFrame([row] * persons_rows)], ignore_index=True) for row in (one, other))
        first = left if adjacency == "replace-one" else base
        own = {"adjacency": adjacency, "rows_per_person": persons_rows, **more}
        found = max(found, loss(monkeypatch, name, first, right, **own))
    return found


@pytest.mark.parametrize("persons_rows", [1, 3])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", MODELS)
def test_no_person_moves_noised_values_further_than_paid_for(monkeypatch, name, adjacency, persons_rows) -> None:
    more = {"expected_rows": 30} if adjacency == "add-remove" else {}
    found = largest_loss(monkeypatch, name, persons_rows, adjacency, **more)
    assert found <= 0.7 * (1 + 1e-9)
    assert found > 0.4


@pytest.mark.parametrize("name", MODELS)
def test_a_bound_for_rows_that_count_half_as_much_is_caught(monkeypatch, name) -> None:
    own = WeightedMoments if name == "components" else ClassSums
    honest = own.row_sensitivity
    monkeypatch.setattr(own, "row_sensitivity", lambda self, *given: honest(self, *given) // 2)
    assert largest_loss(monkeypatch, name, 1, "replace-one") > 0.7


GEOMETRIES = {
    "numbers": ([pf.Numeric("x", -1, 1), pf.Numeric("z", 0, 1)], 2),
    "mixed": ([pf.Numeric("x", 0, 1), SECTOR, SEX], 2),
    "levels, three classes": ([SECTOR, SEX], 3),
    "missing, three classes": ([pf.Numeric("x", 0, 1, fill="missing"), SEX], 3),
}


def grid(features: list[Any], classes: int) -> tuple[ClassSums, np.ndarray]:
    """The sums, and what every row on a grid with every weight adds to them, one line each."""
    geometry = NaiveBayes().geometry(pf.Schema(features, pf.Category("y", list(range(classes)))))
    sums, weights = ClassSums(geometry, weighed=True), RowWeights(pf.Numeric("w", 0, MOST), MOST, WEIGHT_LEVELS)
    encoder = Encoder(geometry, sums.step, sums.target_units, weights)
    cells = [
        np.arange(len(column.levels), dtype=np.int32)
        if isinstance(column, pf.Category)
        else np.array([*np.linspace(column.low, column.high, 4), *([np.nan] if column.fill == "missing" else [])])
        for column in (*features, pf.Category("y", list(range(classes))))
    ]
    cells.append(np.array([0.0, 1.1, 99.0]))
    added = []
    for row in itertools.product(*cells):
        batch = [np.array([value], dtype=part.dtype) for value, part in zip(row, cells, strict=True)]
        added.append(sums.released(sums(encoder.encode(batch)).astype(np.int64), "add-remove"))
    return sums, np.array(added, dtype=np.float64)


@pytest.mark.parametrize("persons_rows", [1, 3])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_sensitivity_of_class_sums_by_brute_force(name, adjacency, norm, persons_rows) -> None:
    """Every pair of rows and weights; of three rows of a person the worst pair thrice, and many triples."""
    sums, added = grid(*GEOMETRIES[name])
    planned = PrivacyParameters(Budget(1.0), adjacency, persons_rows).for_rows_left_out(None)
    claimed = sums.row_sensitivity(planned, norm) * int(planned.rows_per_person)
    changes = added if adjacency == "add-remove" else (added[:, None] - added[None]).reshape(-1, added.shape[1])
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    worst = changes[int(np.argmax(np.linalg.norm(changes, order, axis=1)))]
    several = np.random.default_rng(0).choice(changes, (2000, persons_rows)).sum(axis=1)
    found = np.linalg.norm(np.vstack([several, persons_rows * worst]), order, axis=1).max()
    assert found <= claimed
    assert found > 0.85 * claimed  # a bound that is a sixth smaller would be refuted here


def test_the_noise_of_components_is_for_the_largest_weight() -> None:
    model = pf.PCA(epsilon=1.0, schema=pf.Schema(FEATURES), max_weight=MOST, random_state=0)
    rows = table(300)
    noise = [
        model.set_params(max_weight=most).fit(rows, sample_weight=np.ones(300)).report_.noise_deviation
        for most in (1.0, MOST)
    ]
    assert noise[0] == noise[1]  # in units of the largest weight
    geometry = SecondMoments().geometry(pf.Schema(FEATURES))
    assert second_moments._moments(geometry, MOST).scale == MOST
    with pytest.raises(AssertionError):
        ClassSums(geometry, weighed=True).row_sensitivity(PrivacyParameters(Budget(1.0)), "l1")
