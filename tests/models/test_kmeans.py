"""Private k-means: nothing but noisy values leaves, and one charge before the first draw."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.mechanisms.clustering.cell_means import CellClusterer
from privfit.mechanisms.clustering.grid import HybridClusterer
from privfit.models import private
from privfit.privacy.parts import Additive
from privfit.rows import Points
from tests.support.noise import RecordingNoise, ReplayingNoise

MECHANISMS = ("auto", "hybrid", "grid", "cells", "lloyd")
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
SCHEMA = pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("offset", 100, 101), pf.Numeric("from_zero", 0, 1)])
LOW, HIGH, MIDDLE = (0.0, 100.0, 0.0), (100.0, 101.0, 1.0), (50.0, 100.5, 0.5)
OUTSIDE = (1e300, -np.inf, np.inf)

# -- scikit-learn's own checks ---------------------------------------------------------------------

EXCEPTIONS: dict[str, str] = {}
"""Checks that may fail, with the reason. Empty: all pass."""


@parametrize_with_checks(
    [
        pf.KMeans(epsilon=epsilon, schema="public", mechanism=mechanism)
        for epsilon, mechanism in ((1.0, "cells"), (1e6, "auto"))
    ],
    expected_failed_checks=lambda estimator: EXCEPTIONS,
)
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


# -- record and replay -----------------------------------------------------------------------------


def table(n: int = 60, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    own = rng.integers(3, size=n)
    middles = np.array([[20, 100.2, 0.8], [60, 100.7, 0.2], [85, 100.4, 0.5]])
    return middles[own] + rng.normal(0, 1, (n, 3)) * [6, 0.05, 0.05]


def with_row(base: np.ndarray, row: tuple) -> np.ndarray:
    return np.concatenate([base, [row]])


BASE = table()
FAR_CLUSTER = np.concatenate([np.tile(MIDDLE, (40, 1)), [HIGH]])  # whose lone member leaves or stays
PAIRS = [
    *(
        (f"{name} swapped", with_row(BASE, a), with_row(BASE, b), "replace-one")
        for name, a, b in [
            ("corners", LOW, HIGH),
            ("outside", OUTSIDE, LOW),
            ("middle", MIDDLE, HIGH),
            ("near", MIDDLE, (50.1, 100.5, 0.5)),
        ]
    ),
    *(
        (f"{name} added", BASE, with_row(BASE, row), "add-remove")
        for name, row in [("corner", HIGH), ("outside", OUTSIDE), ("middle", MIDDLE)]
    ),
    ("an emptied cluster", FAR_CLUSTER, np.tile(MIDDLE, (41, 1)), "replace-one"),
    ("a lone point that leaves", FAR_CLUSTER, FAR_CLUSTER[:-1], "add-remove"),
    ("the only two rows", np.array([LOW, LOW]), np.array([LOW, HIGH]), "replace-one"),
    ("the last but one row", np.array([LOW]), np.array([LOW, HIGH]), "add-remove"),
]
WITH_A_CATEGORY = pf.Schema([pf.Numeric("age", 0, 100), pf.Category("offset", [1, 2]), pf.Numeric("from_zero", 0, 1)])
VARIANTS = [{}, {"rows_per_person": 2}, {"n_clusters": 1}, {"expected_rows": 5000, "epsilon": 3.0}]
NORMS = {"laplace": lambda moved: np.abs(moved).sum(), "linf": lambda moved: np.abs(moved).max()}


def fitted(monkeypatch, rows: np.ndarray, noise: Any, **parameters: Any) -> tuple[pf.KMeans, pf.Ledger, list[str]]:
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0)
    model = pf.KMeans(**{"n_clusters": 4, "epsilon": 0.7, "schema": SCHEMA, "ledger": ledger, **parameters})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows)
    return model, ledger, [str(warning.message) for warning in caught]


def replayed(monkeypatch, left_rows: np.ndarray, right_rows: np.ndarray, **parameters: Any) -> tuple[float, Any]:
    """The loss between two tables under the same noisy values, and the noise calls; fails if anything else differs."""
    first = RecordingNoise(seed=3)
    left, left_ledger, left_warnings = fitted(monkeypatch, left_rows, first, **parameters)
    second = ReplayingNoise(first.calls)
    right, right_ledger, right_warnings = fitted(monkeypatch, right_rows, second, **parameters)
    shape = [(call.kind, call.values.shape, call.scale) for call in first.calls]
    assert shape
    assert shape == [(call.kind, call.values.shape, call.scale) for call in second.calls], (
        "calls to noise depend on data"
    )
    assert [entry.event for entry in left_ledger.entries()] == [entry.event for entry in right_ledger.entries()]
    assert left_warnings == right_warnings
    assert left.__dict__.keys() == right.__dict__.keys()
    np.testing.assert_array_equal(left.cluster_centers_, right.cluster_centers_)
    for name in left.__dict__.keys() - {"ledger", "cluster_centers_"}:
        assert repr(left.__dict__[name]) == repr(right.__dict__[name]), name
    assert str(left.report_) == str(right.report_)
    moves = [(call, call.values - other.values) for call, other in zip(first.calls, second.calls, strict=True)]
    return sum(NORMS[call.kind](moved) / call.scale for call, moved in moves), left


@each_mechanism
@pytest.mark.parametrize(("name", "left", "right", "adjacency"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_noised_values_move_no_further_than_paid_for_and_nothing_else_leaves(
    monkeypatch, mechanism, name, left, right, adjacency
) -> None:
    for variant in VARIANTS:
        lost, model = replayed(monkeypatch, left, right, mechanism=mechanism, adjacency=adjacency, **variant)
        assert variant.get("rows_per_person", 1) * lost <= model.epsilon * (1 + 1e-12)
        assert np.isfinite(model.cluster_centers_).all()


@each_mechanism
def test_two_rows_of_one_person_are_paid_for(monkeypatch, mechanism) -> None:
    left, right = np.concatenate([BASE, [LOW, LOW]]), np.concatenate([BASE, [HIGH, HIGH]])
    lost, model = replayed(monkeypatch, left, right, mechanism=mechanism, rows_per_person=2)
    assert lost <= model.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", ["hybrid", "grid", "lloyd"])
def test_the_worst_neighbours_come_close_to_the_claim(monkeypatch, mechanism) -> None:
    """Noise is not far larger than it must be: opposite corners, far from all else."""
    lost, model = replayed(monkeypatch, with_row(BASE, LOW), with_row(BASE, HIGH), mechanism=mechanism)
    assert lost >= 0.9 * model.epsilon


@each_mechanism
def test_events_describe_the_draws_as_they_were_made(monkeypatch, mechanism) -> None:
    noise = RecordingNoise()
    _, ledger, _ = fitted(monkeypatch, BASE, noise, mechanism=mechanism)
    (entry,) = ledger.entries()
    parts = [part for part in entry.event.parts if isinstance(part, Additive)]
    kinds = {"laplace": "laplace", "k-norm": "linf", "discrete-gaussian": "gaussian"}
    described = [
        (kinds[part.kind], size, part.scale) for part in parts for size in getattr(part, "blocks", ()) or (part.size,)
    ]
    assert [(call.kind, call.values.size, call.scale) for call in noise.calls] == described


@each_mechanism
def test_under_add_remove_the_number_of_rows_changes_nothing_but_values(monkeypatch, mechanism) -> None:
    """Not even by a thousand times as many rows: what is planned follows from the public guess."""
    for expected in (None, 700):
        asked = []
        for rows in (BASE[:2], table(3000)):
            noise = RecordingNoise()
            _, ledger, _ = fitted(
                monkeypatch, rows, noise, mechanism=mechanism, adjacency="add-remove", expected_rows=expected
            )
            asked.append(
                ([(call.kind, call.values.shape, call.scale) for call in noise.calls], ledger.entries()[0].event)
            )
        assert asked[0] == asked[1]


# -- who pays --------------------------------------------------------------------------------------


@each_mechanism
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_ledger_is_charged_once_after_reading_and_before_any_draw(monkeypatch, mechanism, adjacency) -> None:
    happened: list[str] = []

    class Watching(RecordingNoise):
        def _answer(self, kind, values, scale):
            happened.append("draw")
            return super()._answer(kind, values, scale)

    read, charge = Points.read, pf.Ledger.charge
    monkeypatch.setattr(Points, "read", lambda self: (happened.append("read"), read(self))[1])
    monkeypatch.setattr(
        pf.Ledger, "charge", lambda self, *a, **b: (happened.append("charge"), charge(self, *a, **b))[1]
    )
    model, ledger, _ = fitted(monkeypatch, BASE, Watching(), mechanism=mechanism, adjacency=adjacency)
    assert happened.count("charge") == 1
    assert set(happened[: happened.index("charge")]) == {"read"}
    assert set(happened[happened.index("charge") + 1 :]) == {"draw"}
    assert ledger.spent.epsilon == 0.7
    assert ledger.spent.delta == 0.0
    assert model.report_.private
    assert model.report_.epsilon == 0.7


def test_a_ledger_with_too_little_refuses_before_reading(monkeypatch) -> None:
    monkeypatch.setattr(Points, "read", lambda self: pytest.fail("read before the ledger was asked"))
    ledger = pf.Ledger(epsilon=0.5)
    with pytest.raises(pf.BudgetExceeded):
        pf.KMeans(3, 0.7, schema=SCHEMA, ledger=ledger).fit(BASE)
    assert not ledger.entries()


def test_a_seed_is_not_private_and_repeats() -> None:
    one, two = (pf.KMeans(3, schema=SCHEMA, random_state=5).fit(BASE) for _ in range(2))
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert not one.report_.private
    with pytest.raises(pf.PrivacyError, match="random_state"):
        pf.KMeans(3, schema=SCHEMA, random_state=5, ledger=pf.Ledger(epsilon=1.0)).fit(BASE)


def test_a_delta_is_not_spent() -> None:
    ledger = pf.Ledger(epsilon=1.0, delta=1e-6)
    model = pf.KMeans(3, 0.5, delta=1e-6, schema=SCHEMA, ledger=ledger).fit(BASE)
    assert ledger.spent.delta == 0
    assert "delta was not spent" in str(model.report_)


BAD = {
    "a NaN": (with_row(BASE, (np.nan, 100.5, 0.5)), pf.DataError),
    "text": (pl.DataFrame({"age": ["a", "b"], "offset": [100.0, 101.0], "from_zero": [0.0, 1.0]}), pf.DataError),
    "a missing column": (pl.DataFrame({"age": [1.0, 2.0], "offset": [100.0, 101.0]}), pf.DataError),
    "another width": (BASE[:, :2], pf.DataError),
    "no rows": (BASE[:0], pf.DataError),
    "one dimension": (BASE[0], ValueError),
}


@each_mechanism
@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_and_nothing_is_charged(mechanism, name) -> None:
    rows, error = BAD[name]
    for adjacency in ("replace-one", "add-remove"):
        ledger = pf.Ledger(epsilon=5.0)
        model = pf.KMeans(3, schema=SCHEMA, mechanism=mechanism, adjacency=adjacency, ledger=ledger)
        with pytest.raises(error):
            model.fit(rows)
        assert not ledger.entries()
        assert not hasattr(model, "cluster_centers_")


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"n_clusters": 0}, pf.PrivacyError, "n_clusters=0"),
        ({"epsilon": -1.0}, pf.PrivacyError, "epsilon"),
        ({"mechanism": "objective"}, pf.PrivacyError, "k-means has"),
        ({"adjacency": "swap"}, pf.PrivacyError, "adjacency"),
        ({"schema": None}, pf.SchemaError, "no schema"),
        ({"schema": WITH_A_CATEGORY}, pf.SchemaError, "Leave them out"),
        ({"schema": pf.Schema.box(0, 1, 17), "mechanism": "grid"}, pf.DataError, "17"),
    ],
)
def test_settings_that_mean_nothing_are_refused(parameters, error, said) -> None:
    ledger = pf.Ledger(epsilon=5.0)
    with pytest.raises(error, match=said):
        pf.KMeans(**{"n_clusters": 3, "schema": SCHEMA, "ledger": ledger, **parameters}).fit(BASE)
    assert not ledger.entries()


# -- what a person sees ----------------------------------------------------------------------------


def test_labels_exist_for_public_tables_only() -> None:
    private_fit = pf.KMeans(3, schema=SCHEMA, random_state=0).fit(BASE)
    for name in ("labels_", "inertia_", "n_iter_"):
        assert not hasattr(private_fit, name)
    for method in ("fit_predict", "fit_transform"):
        ledger = pf.Ledger(epsilon=1.0)
        with pytest.raises(pf.PrivacyError, match=rf"{method} was called on a private table.*Call fit"):
            getattr(pf.KMeans(3, schema=SCHEMA, ledger=ledger), method)(BASE)
        assert not ledger.entries()
    public = pf.KMeans(3, schema="public", random_state=0)
    np.testing.assert_array_equal(public.fit_predict(BASE), public.predict(BASE))
    assert public.fit_transform(BASE).shape == (60, 3)
    public.set_params(schema=SCHEMA).fit(BASE)
    assert not hasattr(public, "labels_"), "labels of an earlier public fit stay behind"


def test_predict_transform_and_score_agree_in_scaled_units() -> None:
    model = pf.KMeans(3, 5.0, schema=SCHEMA, random_state=0).fit(BASE)
    halves = np.array([50, 0.5, 0.5])
    distances = np.linalg.norm((BASE[:, None] - model.cluster_centers_[None]) / halves, axis=2)
    np.testing.assert_allclose(model.transform(BASE), distances, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(BASE), distances.argmin(axis=1))
    assert model.score(BASE) == pytest.approx(-(distances.min(axis=1) ** 2).sum())
    assert list(model.get_feature_names_out()) == ["kmeans0", "kmeans1", "kmeans2"]
    assert model.n_features_in_ == 3
    with pytest.raises(NotFittedError):
        pf.KMeans(schema=SCHEMA).predict(BASE)


@each_mechanism
def test_centres_lie_within_the_bounds(mechanism) -> None:
    for epsilon, k in itertools.product((0.001, 1.0, 1e4), (1, 2, 30)):
        centres = pf.KMeans(k, epsilon, schema=SCHEMA, mechanism=mechanism, random_state=1).fit(BASE).cluster_centers_
        assert centres.shape == (k, 3)
        assert (centres >= np.array(LOW) - 1e-9).all()
        assert (centres <= np.array(HIGH) + 1e-9).all()


@each_mechanism
@pytest.mark.parametrize(
    "rows", [np.tile(MIDDLE, (500, 1)), np.array([HIGH])], ids=["all points equal", "a lone point"]
)
def test_degenerate_tables_fit(mechanism, rows) -> None:
    for adjacency in ("replace-one", "add-remove"):
        model = pf.KMeans(3, schema=SCHEMA, mechanism=mechanism, adjacency=adjacency, random_state=0).fit(rows)
        assert np.isfinite(model.cluster_centers_).all()


def test_every_guise_of_a_table_gives_the_same_centres(tmp_path) -> None:
    frame = pl.DataFrame(BASE, schema=["age", "offset", "from_zero"])
    frame.write_parquet(tmp_path / "rows.parquet")
    wanted = pf.KMeans(3, schema=SCHEMA, random_state=0).fit(BASE).cluster_centers_
    shuffled = frame.select("from_zero", "age", "offset").with_columns(extra=pl.lit("x"))
    for guise in (
        frame,
        shuffled,
        frame.to_pandas(),
        frame.to_arrow(),
        frame.to_arrow().to_reader(),
        tmp_path / "rows.parquet",
    ):
        np.testing.assert_array_equal(pf.KMeans(3, schema=SCHEMA, random_state=0).fit(guise).cluster_centers_, wanted)


def test_a_target_in_the_schema_and_bins_are_left_aside() -> None:
    columns = [pf.Numeric("age", 0, 100, bins=5), *SCHEMA.features[1:]]
    schema = pf.Schema(columns, target=pf.Category("ill", ["no", "yes"]))
    frame = pd.DataFrame(BASE, columns=["age", "offset", "from_zero"]).assign(ill="no")
    wanted = pf.KMeans(3, schema=SCHEMA, random_state=0).fit(BASE).cluster_centers_
    np.testing.assert_array_equal(pf.KMeans(3, schema=schema, random_state=0).fit(frame).cluster_centers_, wanted)
    np.testing.assert_array_equal(
        pf.KMeans(3, schema=SCHEMA, random_state=0).fit(BASE, y=np.arange(60)).cluster_centers_, wanted
    )


def test_mechanisms_come_by_name_or_as_they_are() -> None:
    for name, instance in (("hybrid", HybridClusterer()), ("cells", CellClusterer())):
        by_name, given = (
            pf.KMeans(3, schema=SCHEMA, mechanism=one, random_state=0).fit(BASE) for one in (name, instance)
        )
        np.testing.assert_array_equal(by_name.cluster_centers_, given.cluster_centers_)
    assert clone(pf.KMeans(3, mechanism=CellClusterer())).mechanism == CellClusterer()


def test_the_report_says_what_was_done_and_warns_where_nothing_can_be_good() -> None:
    model = pf.KMeans(3, schema=SCHEMA, random_state=0).fit(BASE)
    assert "the grid 60%, one step 40%" in str(model.report_)
    assert "scaled by their bounds" in str(model.report_)
    assert "mostly noise" not in str(model.report_)
    few, many = np.zeros((50, 6)), np.zeros((5000, 6))
    box = pf.Schema.box(-1, 1)
    assert "mostly noise" in str(pf.KMeans(3, schema=box, random_state=0).fit(few).report_)
    assert "mostly noise" not in str(pf.KMeans(3, schema=box, random_state=0).fit(many).report_)
    guessed = pf.KMeans(3, schema=box, adjacency="add-remove", expected_rows=5000, random_state=0).fit(few)
    assert "mostly noise" not in str(guessed.report_), "the number of rows is private under add-remove"


def test_a_saved_model_predicts_the_same_to_the_bit(tmp_path) -> None:
    frame = pl.DataFrame(BASE, schema=["age", "offset", "from_zero"])
    for mechanism in MECHANISMS:
        model = pf.KMeans(3, schema=SCHEMA, mechanism=mechanism, random_state=0).fit(frame)
        model.save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        assert type(loaded) is pf.KMeans
        assert loaded.n_clusters == 3
        np.testing.assert_array_equal(loaded.cluster_centers_, model.cluster_centers_)
        np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
        assert str(loaded.report_) == str(model.report_)
        assert loaded.schema_ == model.schema_
        assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())
    with pytest.raises(NotFittedError):
        pf.KMeans(3).save(tmp_path / "none.json")
