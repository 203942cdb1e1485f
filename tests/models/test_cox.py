"""Cox regression: near the truth and the plain fit, whatever the table is; its baseline, its file and its refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.models import private
from tests.support.noise import RecordingNoise, ReplayingNoise

EFFECTS = np.array([0.8, -0.5])
TIME = pf.Numeric("years", 0, 5)


def rows(n: int = 20_000, seed: int = 0) -> pl.DataFrame:
    """Hazards of 0.4 e^(0.8 x - 0.5 z + 0.4 [arm is new]), watched for up to six years."""
    rng = np.random.default_rng(seed)
    X, arm = rng.uniform(-1, 1, (n, 2)), rng.choice(["old", "new", "none"], n, p=[0.5, 0.3, 0.2])
    lives = rng.exponential(2.5 * np.exp(-X @ EFFECTS - 0.4 * (arm == "new")))
    watched = rng.uniform(0, 6, n)
    status = np.where(lives <= watched, "dead", "alive")
    return pl.DataFrame({"x": X[:, 0], "arm": arm, "z": X[:, 1], "years": np.minimum(lives, watched), "status": status})


FEATURES = [pf.Numeric("x", -1, 1), pf.Category("arm", ["old", "new", "none"]), pf.Numeric("z", -1, 1)]
STATUS = pf.Category("status", ["alive", "dead"])
TABLE = rows()


def fitted(table: Any = TABLE, epsilon: float = 1.0, weights: Any = None, **given: Any) -> pf.CoxRegression:
    parameters = {"schema": pf.Schema(FEATURES), "time": TIME, "event": STATUS, "random_state": 0, **given}
    return pf.CoxRegression(epsilon, **parameters).fit(table, sample_weight=weights)


def check(model: pf.CoxRegression, off: float = 0.12) -> None:
    names = list(model.get_feature_names_out())
    coef = dict(zip(names, model.coef_, strict=True))
    assert coef["x"] == pytest.approx(0.8, abs=off)
    assert coef["z"] == pytest.approx(-0.5, abs=off)
    assert coef["arm_new"] - coef["arm_old"] == pytest.approx(0.4, abs=off)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("numeric", ["auto", "slope"])
def test_log_ratios_are_near_the_truth(adjacency: str, numeric: str) -> None:
    model = fitted(adjacency=adjacency, numeric=numeric)
    check(model)
    np.testing.assert_allclose(model.hazard_ratios_, np.exp(model.coef_))


def test_with_much_budget_they_are_those_of_the_population() -> None:
    check(fitted(rows(100_000, 1), 100.0), off=0.03)


def test_a_delta_and_splines_are_taken() -> None:
    model = fitted(numeric="splines", delta=1e-6)
    scores = model.predict(TABLE)
    linear = TABLE["x"].to_numpy() * 0.8 - 0.5 * TABLE["z"].to_numpy()
    assert np.corrcoef(scores, linear)[0, 1] > 0.85


def test_the_baseline_belongs_to_average_scores() -> None:
    model = fitted(epsilon=10.0)
    scores = model.predict(TABLE)
    assert scores.mean() == pytest.approx(0.0, abs=0.03)
    assert (model.times_[0], model.times_[-1], len(model.times_)) == (0.0, 5.0, 21)
    truth = 0.8 * TABLE["x"].to_numpy() - 0.5 * TABLE["z"].to_numpy() + 0.4 * (TABLE["arm"] == "new").to_numpy()
    alive = np.exp(-0.4 * model.times_[:, None] * np.exp(truth)).mean(axis=1)
    np.testing.assert_allclose(model.predict_survival(TABLE).mean(axis=0), alive, atol=0.02)
    assert np.all(model.baseline_band_[:, 0] <= model.baseline_survival_)
    assert np.all(model.baseline_survival_ <= model.baseline_band_[:, 1])
    own = model.predict_survival(TABLE[:3], [0.0, 1.1, 7.0])
    assert own.shape == (3, 3)
    np.testing.assert_allclose(own[:, 0], 1.0)
    assert np.isnan(own[:, 2]).all()


def test_bins_of_the_time_are_those_of_the_grid() -> None:
    model = fitted(time=pf.Numeric("years", 0, 5, bins=[1, 2, 4]))
    assert model.times_.tolist() == [0, 1, 2, 4, 5]
    check(model)


# -- tables ----------------------------------------------------------------------------------------


def test_schemas_may_list_time_and_event_by_name(tmp_path: Path) -> None:
    listed = pf.Schema([FEATURES[0], STATUS, *FEATURES[1:]], target=TIME)
    expected = fitted().coef_
    for schema in (listed, pf.Schema([TIME, *listed.features])):
        np.testing.assert_array_equal(fitted(schema=schema, time="years", event="status").coef_, expected)
    listed.save(tmp_path / "schema.toml")
    found = fitted(schema=str(tmp_path / "schema.toml"), time="years", event="status")
    np.testing.assert_array_equal(found.coef_, expected)
    assert found.n_features_in_ == 3
    assert list(found.feature_names_in_) == ["x", "arm", "z"]


def test_arrays_have_time_and_event_last() -> None:
    names, died = ["x", "z", "years"], (TABLE["status"] == "dead").to_numpy()
    array = np.column_stack([TABLE.select(names).to_numpy(), died])
    model = fitted(array, schema=pf.Schema([FEATURES[0], FEATURES[2]]), event="died")
    np.testing.assert_allclose(model.coef_, EFFECTS, atol=0.12)
    assert model.predict(array[:5, :2]).shape == (5,)
    with pytest.raises(pf.DataError, match="x, z, years, died"):
        fitted(array[:, :3], schema=pf.Schema([FEATURES[0], FEATURES[2]]), event="died")


def test_every_way_to_read_a_table_has_the_same_bits(tmp_path: Path) -> None:
    import duckdb

    path, small = tmp_path / "people.parquet", TABLE[:3000]
    small.write_parquet(path)
    expected = fitted(small).coef_
    for table in (str(path), small.to_pandas(), small.to_arrow(), duckdb.from_arrow(small.to_arrow()), small.lazy()):
        np.testing.assert_array_equal(fitted(table).coef_, expected)
    np.testing.assert_array_equal(fitted(small.sample(fraction=1, shuffle=True, seed=1)).coef_, expected)


def test_rows_of_a_person_and_filters_are_kept_to() -> None:
    several = TABLE.with_columns(pl.Series("id", np.arange(TABLE.height) // 2))
    schema = pf.Schema(FEATURES, person="id", where={"x": (-0.9, None)})
    model = fitted(several, epsilon=4.0, schema=schema, rows_per_person=1)
    assert model.report_.person_column
    check(model, off=0.2)


def test_times_and_events_that_are_missing_follow_the_schema() -> None:
    gaps = TABLE.with_columns(pl.when(pl.int_range(pl.len()) < 5).then(None).otherwise(pl.col("years")).alias("years"))
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.DataError, match="years"):
        fitted(gaps, ledger=ledger, random_state=None)
    assert ledger.remaining == 1.0
    check(fitted(gaps, time=pf.Numeric("years", 0, 5, fill=2.5)))


# -- weights ---------------------------------------------------------------------------------------


def weighed(n: int = 4_000) -> pl.DataFrame:
    """Rows that count 0 to 3 times."""
    return rows(n, 5).with_columns(pl.Series("w", np.random.default_rng(6).integers(0, 4, n).astype(float)))


def test_a_weight_of_two_is_two_rows() -> None:
    table, terms = weighed(), {"epsilon": 1e6, "adjacency": "add-remove", "intervals": True}
    own = fitted(table, weights="w", max_weight=3.0, **terms)
    repeated = fitted(table[np.repeat(np.arange(len(table)), table["w"].cast(int).to_numpy())], **terms)
    np.testing.assert_allclose(own.coef_, repeated.coef_, atol=2e-3)
    np.testing.assert_allclose(own.baseline_survival_, repeated.baseline_survival_, atol=1e-3)
    apart = fitted(table.drop("w"), weights=table["w"].to_numpy(), max_weight=3.0, **terms)
    np.testing.assert_array_equal(apart.coef_, own.coef_)
    wider = own.coef_interval_ - repeated.coef_interval_  # a row of 3 is one row of the sample, and not three
    assert np.all(wider[:, 0] < 0)
    assert np.all(wider[:, 1] > 0)


@pytest.mark.parametrize("person", [None, "p"])
def test_weights_by_engine_with_persons_and_filters_give_the_same_bits(tmp_path: Path, person: str | None) -> None:
    table = weighed().with_columns(pl.Series("p", np.arange(4_000) // 3))
    table.write_parquet(tmp_path / "people.parquet")
    terms = {"rows_per_person": 2 if person else 1, "max_weight": 2.0, "weights": "w"}
    terms["schema"] = pf.Schema(FEATURES, person=person, where={"x": (-0.9, None)})
    expected = fitted(table, 20.0, **terms)
    check(expected, off=0.25)
    sources: list[Any] = [table.to_pandas(), table.lazy(), str(tmp_path / "people.parquet")]
    frames = pytest.importorskip("dask.dataframe")
    sources.append(frames.from_pandas(table.to_pandas(), npartitions=3))
    for source in sources:
        np.testing.assert_array_equal(fitted(source, 20.0, **terms).coef_, expected.coef_)


@pytest.mark.parametrize(("given", "words"), [({}, "without max_weight"), ({"max_weight": 0.0}, "positive number")])
def test_weights_without_a_bound_are_refused(given: dict[str, Any], words: str) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match=words):
        fitted(weighed(), weights="w", ledger=ledger, random_state=None, **given)
    negative = weighed().with_columns(w=pl.lit(-1.0))
    with pytest.raises(pf.DataError, match="negative"):
        fitted(negative, weights="w", max_weight=1.0, ledger=ledger, random_state=None)
    assert ledger.remaining == 1.0


# -- the release -----------------------------------------------------------------------------------


def test_all_parts_are_one_entry_of_the_ledger() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = fitted(epsilon=0.6, ledger=ledger, random_state=None)
    (entry,) = ledger.entries()
    assert entry.epsilon == 0.6
    parts = model.report_.to_dict()["event"]["parts"]
    purposes = [part.get("purpose") for part in parts]
    assert purposes[0] == "events and censored times"
    assert purposes[-1] == "squared scores"
    assert len(parts) == 4
    with pytest.raises(pf.BudgetExceeded):
        fitted(epsilon=0.6, ledger=ledger, random_state=None)


def test_nothing_is_so_small_that_it_fails() -> None:
    for table in (TABLE[:1], TABLE[:2], TABLE.filter(pl.col("status") == "alive")[:50]):
        for epsilon in (1e-3, 1.0, 1e3):
            model = fitted(table, epsilon)
            assert np.isfinite(model.coef_).all()
            survival = model.predict_survival(TABLE[:5])
            assert np.all(np.isnan(survival) | ((survival >= 0) & (survival <= 1)))


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    model = fitted(time=pf.Numeric("years", 0, 5, bins=[1, 2, 4]))
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    assert isinstance(loaded, pf.CoxRegression)
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))
    np.testing.assert_array_equal(loaded.predict_survival(TABLE[:9]), model.predict_survival(TABLE[:9]))
    np.testing.assert_array_equal(loaded.baseline_band_, model.baseline_band_)
    assert loaded.time == model.time
    assert loaded.event == STATUS
    again = loaded.set_params(random_state=0).fit(TABLE)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time": "years"}, "public bounds"),
        ({"time": STATUS}, "public bounds"),
        ({"event": TIME}, "two levels"),
        ({"event": pf.Category("status", ["a", "b", "c"])}, "two levels"),
        ({"event": "years"}, "time and as event"),
        ({"schema": pf.Schema.box(-1, 1)}, "n_features"),
        ({"schema": pf.Schema(FEATURES, target=pf.Numeric("pay", 0, 1))}, "'pay'"),
        ({"schema": pf.Schema([STATUS])}, "without features"),
        ({"schema": None}, "no schema"),
        ({"time": pf.Numeric("years", 0, 5, bins=501)}, "at most 500"),
    ],
)
def test_what_means_nothing_is_refused_before_a_charge(given: dict[str, Any], words: str) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(ValueError, match=words):
        fitted(ledger=ledger, random_state=None, **given)
    assert ledger.remaining == 1.0


def test_a_public_table_needs_a_schema_all_the_same() -> None:
    with pytest.raises(pf.SchemaError, match="from_public"):
        fitted(schema="public")


def test_y_is_refused() -> None:
    with pytest.raises(pf.DataError, match="Leave out y"):
        pf.CoxRegression(schema=pf.Schema(FEATURES), time=TIME, event=STATUS).fit(TABLE, np.zeros(TABLE.height))


# -- intervals -------------------------------------------------------------------------------------


def test_intervals_hold_the_ratios_and_survive_saving(tmp_path: Path) -> None:
    model = fitted(rows(50_000, 3), 4.0, intervals=True)
    names = list(model.get_feature_names_out())
    for name, truth in (("x", 0.8), ("z", -0.5)):
        low, high = model.confidence_intervals(0.99)[0][names.index(name)]
        assert low < truth < high
        assert high - low < 0.3
    table = model.summary()
    assert table.ratio == "hazard ratio"
    assert "intercept" not in table.names
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.coef_interval_, model.coef_interval_, rtol=1e-6)
    ends = model.predict_interval(TABLE[:20])
    assert np.all((ends[:, 0] < model.predict(TABLE[:20])) & (model.predict(TABLE[:20]) < ends[:, 1]))


def test_what_noise_hides_is_not_identified() -> None:
    model = fitted(TABLE[:500], 0.3, intervals=True)
    assert np.isinf(model.coef_interval_).all()
    assert "not identified" in str(model.summary())


def test_intervals_are_parts_of_one_entry_and_are_asked_for() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = fitted(epsilon=1.0, intervals=True, ledger=ledger, random_state=None)
    assert len(ledger.entries()) == 1
    purposes = [part.get("purpose") for part in model.report_.to_dict()["event"]["parts"]]
    assert purposes[-3:] == ["Hessian, for intervals", "gradients, for intervals", "squared scores"]
    with pytest.raises(AttributeError, match="intervals=True"):
        fitted().confidence_intervals()


# -- privacy ---------------------------------------------------------------------------------------


def played(monkeypatch: pytest.MonkeyPatch, table: pl.DataFrame, noise: Any, **given: Any) -> Any:
    """A fit with this noise, and its ledger; the rows of the middle column weigh nothing where rows have weights."""
    if "weights" in given:
        table = table.with_columns(w=pl.when(pl.col("arm") == "new").then(0.0).otherwise(7.0))
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0)
    return fitted(table, 0.7, ledger=ledger, random_state=None, **given), ledger


WEIGHED = {"weights": "w", "max_weight": 3.0}
CORNERS = [
    {"x": x, "arm": arm, "z": z, "years": years, "status": status}
    for x, z in ((-1.0, 1.0), (1.0, 1.0), (0.3, -1.0))
    for arm, years, status in (("old", 0.0, "dead"), ("new", 5.0, "dead"), ("none", 2.2, "alive"))
]


@pytest.mark.parametrize("given", [{}, {"rows_per_person": 2, "intervals": True}, {"adjacency": "add-remove"}, WEIGHED])
def test_replayed_neighbours_differ_by_counts_and_squares_that_are_paid_for(monkeypatch, given: dict) -> None:
    """What moves the weights is judged by their density, in tests/mechanisms/test_cox.py."""
    base, largest = TABLE[:40], 0.0
    for own, other in itertools.islice(itertools.combinations(CORNERS, 2), 0, None, 7):
        left, right = (base.vstack(pl.DataFrame([row], schema=base.schema)) for row in (own, other))
        if given.get("adjacency") == "add-remove":
            right = base
        first = RecordingNoise(seed=3)
        model, ledger = played(monkeypatch, left, first, **given)
        second = ReplayingNoise(first.calls)
        again, other_ledger = played(monkeypatch, right, second, **given)
        assert [(call.kind, call.values.shape, call.scale) for call in first.calls] == [
            (call.kind, call.values.shape, call.scale) for call in second.calls
        ]
        assert [entry.event for entry in ledger.entries()] == [entry.event for entry in other_ledger.entries()]
        assert model.__dict__.keys() == again.__dict__.keys()
        for name in model.__dict__.keys() - {"ledger"}:
            assert repr(model.__dict__[name]) == repr(again.__dict__[name]), name
        losses = [
            float(np.abs(call.values - same.values).sum() / call.scale)
            for call, same in zip(first.calls, second.calls, strict=True)
            if call.kind == "laplace"
        ]
        people = given.get("rows_per_person", 1)
        parts = [part for part in ledger.entries()[0].event.flat() if type(part).__name__ == "Laplace"]
        for loss, part in ((losses[0], parts[0]), (losses[-1], parts[-1])):
            assert loss * people <= part.sensitivity / part.scale * (1 + 1e-12)
            largest = max(largest, loss * people * part.scale / part.sensitivity)
    assert largest > 0.5
