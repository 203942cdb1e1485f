"""Private naive Bayes: nothing but noisy sums leaves, and with much budget it is scikit-learn's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import CategoricalNB
from sklearn.naive_bayes import GaussianNB as PlainNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.mechanisms import NaiveBayes
from privfit.mechanisms.histograms.class_sums import ClassSums
from privfit.models import private
from privfit.rows.encoding import Encoder
from tests.models.test_sklearn_checks import REPEATED_ROWS
from tests.support.noise import RecordingNoise, ReplayingNoise

SECTOR, SEX = pf.Category("sector", ["public", "private", "none"]), pf.Category("sex", ["f", "m"])
SCHEMA = pf.Schema(
    [pf.Numeric("age", 0, 100), pf.Numeric("offset", 100, 101, fill="missing"), SECTOR, SEX],
    target=pf.Category("state", ["ill", "well"]),
)
NORMS = {"laplace": lambda moved: np.abs(moved).sum(), "linf": lambda moved: np.abs(moved).max()}


@parametrize_with_checks(
    [pf.GaussianNB(epsilon, schema="public", numeric=numeric) for epsilon, numeric in ((1.0, "slope"), (1e6, "bins"))],
    expected_failed_checks=lambda estimator: REPEATED_ROWS,
)
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


# -- against scikit-learn --------------------------------------------------------------------------


def table(n: int = 6000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.35
    age = rng.normal(np.where(ill, 60, 45), np.where(ill, 10, 14)).clip(0, 100)
    offset = 100 + rng.beta(np.where(ill, 4, 2), 3)
    offset[rng.random(n) < np.where(ill, 0.2, 0.05)] = np.nan
    sector = np.where(
        rng.random(n) < 0.3, "none", np.where(rng.random(n) < np.where(ill, 0.7, 0.4), "public", "private")
    )
    sex = np.where(rng.random(n) < np.where(ill, 0.6, 0.45), "m", "f")
    return pd.DataFrame(
        {"age": age, "offset": offset, "sector": sector, "sex": sex, "state": np.where(ill, "ill", "well")}
    )


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_with_much_budget_numbers_are_those_of_scikit_learn(adjacency, tmp_path) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 6000, p=[0.5, 0.3, 0.2])
    middle = np.select([y == "a", y == "b"], [0.0, 1.0], -2.0)
    X = np.column_stack([middle + rng.normal(0, 1, 6000), 100 + rng.normal(0, np.where(y == "a", 20, 10))])
    schema = pf.Schema([pf.Numeric("u", -10, 10), pf.Numeric("v", 0, 200)], target=pf.Category("y", ["a", "b", "c"]))
    model, exact = (
        pf.GaussianNB(1e7, schema=schema, adjacency=adjacency, numeric="slope").fit(X, y),
        PlainNB().fit(X, y),
    )
    np.testing.assert_allclose(model.theta_, exact.theta_, atol=1e-3)
    np.testing.assert_allclose(model.var_, exact.var_, rtol=1e-3)
    np.testing.assert_allclose(model.class_prior_, exact.class_prior_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-3)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.999
    model.save(tmp_path / "bayes.json")
    loaded = pf.load_model(tmp_path / "bayes.json")
    np.testing.assert_array_equal(loaded.predict_log_proba(X), model.predict_log_proba(X))
    assert list(loaded.classes_) == ["a", "b", "c"]


def test_with_much_budget_levels_and_bins_are_those_of_scikit_learn() -> None:
    rows = table()
    schema = pf.Schema([pf.Numeric("age", 0, 100, bins=4), SECTOR, SEX], target=SCHEMA.target)
    model = pf.GaussianNB(1e7, schema=schema, numeric="slope").fit(rows)
    codes = np.column_stack(
        [
            np.clip(rows["age"] // 25, 0, 3),
            [SECTOR.levels.index(level) for level in rows["sector"]],
            rows["sex"] == "m",
        ]
    ).astype(int)
    exact = CategoricalNB(alpha=1e-9).fit(codes, rows["state"])
    for name, logs in zip(("age", "sector", "sex"), exact.feature_log_prob_, strict=True):
        np.testing.assert_allclose(model.level_prob_[name], np.exp(logs), atol=5e-4)  # a level has half a row at least
    np.testing.assert_allclose(model.predict_proba(rows), exact.predict_proba(codes), atol=5e-3)


def test_missing_values_have_a_share_of_their_own() -> None:
    rows = table(20_000)
    model = pf.GaussianNB(1e7, schema=SCHEMA, numeric="slope").fit(rows)
    odds = model.predict_joint_log_proba(rows)
    missing = rows["offset"].isna().to_numpy()
    by_hand = []
    for place, state in enumerate(model.classes_):
        own = rows[rows["state"] == state]
        log = np.log(len(own) / len(rows)) + _normal(rows["age"], own["age"])
        share = own["offset"].isna().mean()
        log += np.where(missing, np.log(share), np.log1p(-share))
        log += np.where(missing, 0.0, _normal(rows["offset"].fillna(100.5), own["offset"], place))
        for name in ("sector", "sex"):
            log += np.log(rows[name].map(own[name].value_counts(normalize=True)))
        by_hand.append(log)
    np.testing.assert_allclose(odds[missing], np.column_stack(by_hand)[missing], atol=0.02)


def _normal(values: pd.Series, own: pd.Series, place: int = 0) -> pd.Series:
    mean, variance = own.mean(), own.var(ddof=0)
    return -0.5 * (np.log(2 * np.pi * variance) + (values - mean) ** 2 / variance)


def test_a_table_that_is_mostly_noise_gives_the_most_frequent_class() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 4)), np.repeat(["no", "yes"], [270, 30])
    schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    right = [
        np.mean(pf.GaussianNB(0.3, schema=schema, random_state=seed, priors=[0.9, 0.1]).fit(X, y).predict(X) == "no")
        for seed in range(20)
    ]
    assert np.median(right) == 1.0
    for seed in range(20):
        model = pf.GaussianNB(1e-3, schema=schema, random_state=seed).fit(X, y)
        assert np.isfinite(model.predict_log_proba(X)).all()
        assert (model.var_ > 0).all()


# -- privacy ---------------------------------------------------------------------------------------


def fitted(monkeypatch, rows: pd.DataFrame, noise: Any, **parameters: Any) -> tuple[pf.GaussianNB, pf.Ledger]:
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0)
    model = pf.GaussianNB(**{"epsilon": 0.7, "schema": SCHEMA, "ledger": ledger, **parameters})
    return model.fit(rows), ledger


def replayed(monkeypatch, left_rows: pd.DataFrame, right_rows: pd.DataFrame, **parameters: Any) -> float:
    """The loss between two tables under the same noisy values; fails if anything else differs."""
    first = RecordingNoise(seed=3)
    left, left_ledger = fitted(monkeypatch, left_rows, first, **parameters)
    second = ReplayingNoise(first.calls)
    right, right_ledger = fitted(monkeypatch, right_rows, second, **parameters)
    assert [(call.kind, call.values.shape, call.scale) for call in first.calls] == [
        (call.kind, call.values.shape, call.scale) for call in second.calls
    ]
    assert [entry.event for entry in left_ledger.entries()] == [entry.event for entry in right_ledger.entries()]
    assert left.__dict__.keys() == right.__dict__.keys()
    for name in left.__dict__.keys() - {"ledger"}:
        assert repr(left.__dict__[name]) == repr(right.__dict__[name]), name
    moves = [(call, call.values - other.values) for call, other in zip(first.calls, second.calls, strict=True)]
    return sum(NORMS[call.kind](moved) / call.scale for call, moved in moves)


CORNERS = [
    {"age": age, "offset": offset, "sector": sector, "sex": sex, "state": state}
    for age, offset, sector, sex, state in itertools.product(
        (0, 100), (100, 101, None), ("public", "none"), ("f", "m"), ("ill", "well")
    )
]


@pytest.mark.parametrize("parameters", [{}, {"rows_per_person": 2}, {"epsilon": 4.0, "numeric": "bins"}])
def test_noised_values_move_no_further_than_paid_for(monkeypatch, parameters) -> None:
    base = table(30)
    if parameters.get("numeric") == "bins":
        base = base.fillna({"offset": 100.5})
    largest = 0.0
    for row, other in itertools.islice(itertools.combinations(CORNERS, 2), 0, None, 53):
        left, right = (pd.concat([base, pd.DataFrame([entry])], ignore_index=True) for entry in (row, other))
        replaced = replayed(monkeypatch, left, right, **parameters)
        added = replayed(monkeypatch, base, left, adjacency="add-remove", **parameters)
        persons, epsilon = parameters.get("rows_per_person", 1), parameters.get("epsilon", 0.7)
        assert max(replaced, added) * persons <= epsilon * (1 + 1e-12)
        largest = max(largest, replaced * persons / epsilon)
    assert largest > 0.7


GEOMETRIES = {
    "numbers": ([pf.Numeric("x", -1, 1), pf.Numeric("z", 0, 1)], 2),
    "mixed": ([pf.Numeric("x", 0, 1), SECTOR, SEX], 2),
    "levels, three classes": ([SECTOR, SEX], 3),
    "missing, three classes": ([pf.Numeric("x", 0, 1, fill="missing"), SEX], 3),
}


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_sensitivity_by_brute_force(name, adjacency, norm) -> None:
    """All rows of a grid. No pair moves the values further than claimed; some pair comes close."""
    features, classes = GEOMETRIES[name]
    geometry = NaiveBayes().geometry(pf.Schema(features, pf.Category("y", list(range(classes)))))
    sums = ClassSums(geometry)
    assert geometry.target is not None
    values = [
        np.arange(len(column.levels), dtype=np.int32)
        if isinstance(column, pf.Category)
        else np.array([*np.linspace(column.low, column.high, 5), *([np.nan] if column.fill == "missing" else [])])
        for column in (*features, geometry.target.column)
    ]
    encoder, released = Encoder(geometry, sums.step, sums.target_units), []
    for row in itertools.product(*values):
        batch = [np.array([value], dtype=part.dtype) for value, part in zip(row, values, strict=True)]
        released.append(sums.released(sums(encoder.encode(batch)).astype(np.int64), adjacency))
    points = np.array(released, dtype=np.float64)
    assert points.shape[1] == sums.n_values(adjacency)
    moves = points if adjacency == "add-remove" else (points[:, None] - points[None]).reshape(-1, points.shape[1])
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    largest, claimed = np.linalg.norm(moves, order, axis=1).max(), sums.sensitivity(adjacency, norm)
    assert largest <= claimed
    assert largest > 0.85 * claimed  # a smaller sensitivity would be refuted here


def test_half_of_the_scale_is_caught(monkeypatch) -> None:
    honest = ClassSums.sensitivity
    monkeypatch.setattr(ClassSums, "sensitivity", lambda self, *given: honest(self, *given) // 2)
    left, right = (pd.concat([table(30), pd.DataFrame([row])], ignore_index=True) for row in (CORNERS[0], CORNERS[-9]))
    assert replayed(monkeypatch, left, right) > 0.7


# -- refusals and options --------------------------------------------------------------------------


@pytest.mark.parametrize("priors", [[0.5], [0.7, 0.7], [-0.5, 1.5], ["a", "b"], [float("nan"), 1.0]])
def test_priors_that_mean_nothing_are_refused_before_the_charge(priors) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="priors"):
        pf.GaussianNB(schema=SCHEMA, ledger=ledger, priors=priors).fit(table(50))
    assert ledger.spent.epsilon == 0


def test_bins_follow_public_facts_and_are_saved(tmp_path) -> None:
    rows, found = table(), []
    for epsilon, given in ((0.05, {}), (1.0, {}), (1e3, {}), (1.0, {"adjacency": "add-remove"})):
        model = pf.GaussianNB(epsilon, schema=SCHEMA, random_state=0, **given).fit(rows)
        found.append(len(model.level_prob_["age"][0]) if "age" in model.level_prob_ else None)
    assert found == [None, round(np.sqrt(6000 / 5 / 3)), 40, None]  # of 6,000 rows and four columns
    guessed = pf.GaussianNB(schema=SCHEMA, adjacency="add-remove", expected_rows=6000, random_state=0).fit(rows)
    assert guessed.level_prob_["age"].shape == (2, 20)
    assert "fall into 20" in str(guessed.report_)
    guessed.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(rows), guessed.predict_proba(rows))
    text = (tmp_path / "model.json").read_text()
    assert '"bins": 20' in text


def test_public_priors_are_used() -> None:
    model = pf.GaussianNB(1e6, schema=SCHEMA, priors=[0.1, 0.9]).fit(table())
    assert list(model.class_prior_) == [0.1, 0.9]


def test_persons_and_filters_are_inside_the_promise() -> None:
    rows = table(4000)
    rows["person"] = np.arange(4000) // 4
    schema = pf.Schema(SCHEMA.features, SCHEMA.target, person="person", where={"age": (20, None)})
    ledger = pf.Ledger(epsilon=2.0)
    model = pf.GaussianNB(2.0, schema=schema, rows_per_person=2, ledger=ledger).fit(rows)
    assert ledger.spent.epsilon == 2.0
    assert "person" in str(model.report_)
    assert model.score(rows, rows["state"]) > 0.7
