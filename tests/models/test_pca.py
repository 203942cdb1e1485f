"""Private principal components: nothing but noisy moments leaves, and with much budget they are scikit-learn's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA as PlainPCA
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.models import private
from privfit.statistics import Moments
from tests.models.test_sklearn_checks import REPEATED_ROWS
from tests.support.noise import RecordingNoise, ReplayingNoise

SCHEMA = pf.Schema(
    [
        pf.Numeric("age", 0, 100),
        pf.Numeric("offset", 100, 101, fill="missing"),
        pf.Category("sector", ["public", "private", "none"]),
        pf.Category("sex", ["f", "m"]),
    ]
)
NAMES = ["age", "offset", "offset_missing", "sector_public", "sector_private", "sector_none", "sex_f", "sex_m"]
NORMS = {"laplace": lambda moved: np.abs(moved).sum(), "linf": lambda moved: np.abs(moved).max()}


@parametrize_with_checks(
    [pf.PCA(epsilon=epsilon, schema="public") for epsilon in (1.0, 1e6)],
    expected_failed_checks=lambda estimator: REPEATED_ROWS,
)
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


# -- against scikit-learn --------------------------------------------------------------------------


def table(n: int = 5000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, n).clip(0, 100)
    offset = 100 + (age / 100 + rng.normal(0, 0.1, n)).clip(0, 1)
    offset[rng.random(n) < 0.1] = np.nan
    sector = rng.choice(["public", "private", "none"], n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {"age": age, "offset": offset, "sector": sector, "sex": np.where(age + rng.normal(0, 9, n) > 50, "m", "f")}
    )


def plain(rows: pd.DataFrame, scale: str) -> np.ndarray:
    columns = [rows["age"], rows["offset"].fillna(100.5), rows["offset"].isna()]
    columns += [rows["sector"] == level for level in ("public", "private", "none")]
    columns += [rows["sex"] == level for level in ("f", "m")]
    units = [50, 0.5, 1, 1, 1, 1, 1, 1] if scale == "bounds" else 1
    return np.column_stack(columns).astype(float) / units


@pytest.mark.parametrize("scale", ["none", "bounds"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_with_much_budget_it_is_that_of_scikit_learn(scale, adjacency, tmp_path) -> None:
    rows = table()
    model = pf.PCA(3, epsilon=1e7, schema=SCHEMA, scale=scale, adjacency=adjacency).fit(rows)
    exact = PlainPCA(3).fit(plain(rows, scale))
    assert list(model.get_column_names()) == NAMES
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(model.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-4)
    np.testing.assert_allclose(model.singular_values_, exact.singular_values_, rtol=1e-4)
    np.testing.assert_allclose(model.noise_variance_, exact.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(np.abs(model.components_ @ exact.components_.T), np.eye(3), atol=1e-3)
    scores, others = model.transform(rows), exact.transform(plain(rows, scale))
    np.testing.assert_allclose(np.abs(scores), np.abs(others), atol=0.02 if scale == "bounds" else 0.2)
    np.testing.assert_allclose(model.get_covariance(), exact.get_covariance(), atol=1e-2)
    model.save(tmp_path / "pca.json")
    loaded = pf.load_model(tmp_path / "pca.json")
    np.testing.assert_array_equal(loaded.transform(rows), scores)
    np.testing.assert_array_equal(loaded.inverse_transform(scores), model.inverse_transform(scores))
    assert str(loaded.report_) == str(model.report_)


def test_all_components_give_the_rows_back() -> None:
    rows = table(500)
    model = pf.PCA(epsilon=1.0, schema=SCHEMA, scale="bounds").fit(rows)
    np.testing.assert_allclose(model.inverse_transform(model.transform(rows)), plain(rows, "none"), atol=1e-9)
    assert model.n_components_ == len(NAMES)
    assert list(model.get_feature_names_out())[:2] == ["pca0", "pca1"]


def test_a_share_of_the_variance_keeps_enough_components() -> None:
    rows = table()
    model = pf.PCA(0.9, epsilon=1e6, schema=SCHEMA, scale="bounds").fit(rows)
    exact = PlainPCA(0.9).fit(plain(rows, "bounds"))
    assert model.n_components_ == exact.n_components_ > 1


def test_with_hardly_any_budget_nothing_is_negative_or_infinite() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        model = pf.PCA(epsilon=1e-4, schema=pf.Schema.box(0, 1), random_state=seed).fit(rng.random((50, 6)))
        assert (model.explained_variance_ >= 0).all()
        assert np.isfinite(model.components_).all()
        assert (model.mean_ >= 0).all()
        assert (model.mean_ <= 1).all()
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-9)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_units_whose_squares_are_infinite_end_no_fit() -> None:
    schema = pf.Schema([pf.Numeric("far", -1e200, 1e200), pf.Numeric("near", -1, 1)])
    widest = pf.Schema([pf.Numeric("far", 0, 1.7e308), pf.Numeric("near", -1, 1)])
    rows = np.random.default_rng(0).random((400, 2)) * [1.7e308, 1]
    for adjacency, wide in itertools.product(("replace-one", "add-remove"), (schema, widest)):
        model = pf.PCA(epsilon=1.0, schema=wide, adjacency=adjacency).fit(rows)
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.explained_variance_ratio_).all()


# -- privacy ---------------------------------------------------------------------------------------


def fitted(monkeypatch, rows: pd.DataFrame, noise: Any, **parameters: Any) -> tuple[pf.PCA, pf.Ledger]:
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0)
    model = pf.PCA(**{"n_components": 2, "epsilon": 0.7, "schema": SCHEMA, "ledger": ledger, **parameters})
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
    {"age": age, "offset": offset, "sector": sector, "sex": sex}
    for age, offset, sector, sex in itertools.product((0, 100, 1e300), (100, 101, None), ("public", "none"), ("f", "m"))
]


@pytest.mark.parametrize("parameters", [{}, {"rows_per_person": 2}, {"epsilon": 4.0, "n_components": 0.5}])
def test_noised_values_move_no_further_than_paid_for(monkeypatch, parameters) -> None:
    base = table(30)
    largest = 0.0
    for row, other in itertools.islice(itertools.combinations(CORNERS, 2), 0, None, 23):
        left, right = (pd.concat([base, pd.DataFrame([entry])], ignore_index=True) for entry in (row, other))
        replaced = replayed(monkeypatch, left, right, **parameters)
        added = replayed(monkeypatch, base, left, adjacency="add-remove", **parameters)
        persons, epsilon = parameters.get("rows_per_person", 1), parameters.get("epsilon", 0.7)
        assert max(replaced, added) * persons <= epsilon * (1 + 1e-12)
        largest = max(largest, replaced * persons / epsilon)
    assert largest > 0.5


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "schema",
    [
        pf.Schema.box(-1, 1, n_features=3),
        pf.Schema([pf.Numeric("x", 0, 1), pf.Category("a", ["u", "v", "w"]), pf.Category("b", ["u", "v"])]),
        pf.Schema([pf.Category("a", ["u", "v", "w"]), pf.Category("b", ["u", "v", "w"])]),
        pf.Schema([pf.Category("b", ["u", "v"]), pf.Numeric("x", 0, 1, fill="missing")]),
    ],
    ids=["numbers", "mixed", "levels", "missing"],
)
def test_sensitivity_without_a_target_by_brute_force(schema, adjacency, norm) -> None:
    """All rows of a fine grid. No pair moves the moments further than claimed; some pair comes close."""
    from privfit.mechanisms import SecondMoments
    from privfit.rows.encoding import Encoder

    geometry = SecondMoments().geometry(schema, None)
    moments = Moments(geometry)
    values = [
        np.arange(len(column.levels), dtype=np.int32)
        if isinstance(column, pf.Category)
        else np.array([*np.linspace(column.low, column.high, 5), *([np.nan] if column.fill == "missing" else [])])
        for column in schema.features
    ]
    grid = list(itertools.product(*values))
    encoder = Encoder(geometry, moments.step, moments.target_units)
    released = []
    for row in grid:
        batch = [np.array([value], dtype=part.dtype) for value, part in zip(row, values, strict=True)]
        sums = moments(encoder.encode(batch)).astype(np.int64)
        released.append(moments.distinct(sums, 1, adjacency))
    points = np.array(released, dtype=np.float64)
    moves = points if adjacency == "add-remove" else (points[:, None] - points[None]).reshape(-1, points.shape[1])
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    largest = np.linalg.norm(moves, order, axis=1).max()
    claimed = moments.sensitivity(adjacency, norm)
    assert largest <= claimed
    assert largest > 0.8 * claimed  # a sensitivity that were a fifth smaller would be refuted here


def test_a_draw_with_half_the_scale_is_caught(monkeypatch) -> None:
    honest = Moments.sensitivity
    monkeypatch.setattr(Moments, "sensitivity", lambda self, *given: honest(self, *given) // 2)
    worst = [
        pd.concat([table(30), pd.DataFrame([row])], ignore_index=True) for row in (CORNERS[0], CORNERS[-1], CORNERS[5])
    ]
    lost = max(replayed(monkeypatch, left, right) for left, right in itertools.combinations(worst, 2))
    assert lost > 0.7


# -- refusals, all before the charge ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 9}, "makes 8 columns"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"n_components": "mle"}, "'mle'"),
        ({"n_components": True}, "True"),
        ({"scale": "rows"}, "scale='rows'"),
    ],
)
def test_settings_that_mean_nothing_are_refused_before_the_charge(parameters, told) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match=told):
        pf.PCA(schema=SCHEMA, ledger=ledger, **parameters).fit(table(50))
    assert ledger.spent.epsilon == 0


def test_persons_and_filters_are_inside_the_promise() -> None:
    rows = table(4000)
    rows["person"] = np.arange(4000) // 4
    schema = pf.Schema(SCHEMA.features, person="person", where={"age": (20, None)})
    ledger = pf.Ledger(epsilon=2.0)
    model = pf.PCA(2, epsilon=2.0, schema=schema, rows_per_person=2, ledger=ledger, scale="bounds").fit(rows)
    assert ledger.spent.epsilon == 2.0
    assert "person" in str(model.report_)
    assert model.transform(rows.head(3)).shape == (3, 2)
