"""pf.evaluate: what it tells, what it refuses, and that its page runs."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from sklearn.exceptions import NotFittedError

import privfit as pf
from privfit.evaluation.cells import NoisyCells, TrimmedCells

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"
RNG = np.random.default_rng(0)
ROWS = 20_000
SIZE, JOB = RNG.normal(size=ROWS), RNG.choice(["cook", "smith"], ROWS)
SCORE = 1.5 * SIZE + (JOB == "cook") - 0.5
TABLE = pl.DataFrame(
    {
        "size": SIZE,
        "job": JOB,
        "ill": np.where(RNG.random(ROWS) < 1 / (1 + np.exp(-SCORE)), "yes", "no"),
        "id": RNG.integers(0, ROWS // 2, ROWS),
    }
)
FEATURES = [pf.Numeric("size", -3, 3), pf.Category("job", ["cook", "smith"])]
SCHEMA = pf.Schema(FEATURES, pf.Category("ill", ["yes", "no"]))
FITTED, HELD = TABLE[:10_000], TABLE[10_000:]


@pytest.fixture(scope="module")
def model() -> pf.LogisticRegression:
    return pf.LogisticRegression(epsilon=5.0, schema=SCHEMA).fit(FITTED)


def test_with_much_budget_figures_are_those_of_scikit_learn(model: Any) -> None:
    found = pf.evaluate(model, HELD, epsilon=1000.0, random_state=1)
    true, shares = HELD["ill"].to_numpy(), model.predict_proba(HELD)[:, 1]
    predicted, ones = model.predict(HELD), (true == "yes").astype(int)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(true, predicted), abs=1e-3)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(true, predicted), abs=1e-3)
    assert found.auc == pytest.approx(metrics.roc_auc_score(ones, shares), abs=2e-3)
    assert found.log_loss == pytest.approx(metrics.log_loss(ones, shares), abs=3e-3)
    assert found.brier == pytest.approx(metrics.brier_score_loss(ones, shares), abs=1e-3)
    expected = metrics.confusion_matrix(true, predicted, labels=["no", "yes"])
    assert np.asarray(found.confusion) == pytest.approx(expected, abs=3)
    assert found.confusion.labels == (("no", "yes"), ("no", "yes"))
    edge = min(found.roc.thresholds, key=lambda one: abs(one - 0.3))
    lenient = metrics.confusion_matrix(ones, shares > edge)
    assert np.asarray(found.confusion_at(0.3)) == pytest.approx(lenient, abs=3)
    for place, threshold in enumerate(np.asarray(found.roc.thresholds)[1:-1], start=1):
        assert found.roc.true_positive_rate[place] == pytest.approx((shares[ones == 1] > threshold).mean(), abs=2e-3)
        assert found.roc.false_positive_rate[place] == pytest.approx((shares[ones == 0] > threshold).mean(), abs=2e-3)
    assert (found.roc.true_positive_rate[0], found.roc.true_positive_rate[-1]) == (0.0, 1.0)


def test_figures_come_with_intervals_and_one_entry_of_the_ledger(model: Any) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    found = pf.evaluate(model, HELD, epsilon=0.4, ledger=ledger)
    (entry,) = ledger.entries()
    assert (entry.model, entry.target, entry.event.epsilon) == ("evaluate", "ill", 0.4)
    for one in found.figures.values():
        low, high = one.interval
        assert low < one < high
        assert one.report is found.report
    assert found.calibration.observed.interval.shape == (len(found.calibration.observed), 2)
    assert list(found.figures) == ["accuracy", "balanced_accuracy", "auc", "log_loss", "brier"]


def test_a_saved_model_is_evaluated_alike(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    HELD.write_parquet(tmp_path / "held.parquet")
    loaded = pf.load_model(tmp_path / "model.json")
    one = pf.evaluate(model, HELD, epsilon=0.5, random_state=3)
    other = pf.evaluate(loaded, tmp_path / "held.parquet", epsilon=0.5, random_state=3)
    assert {**one.to_dict(), "report": 0} == {**other.to_dict(), "report": 0}


def test_arrays_and_targets_apart() -> None:
    X = np.column_stack([SIZE, RNG.normal(size=ROWS)])
    y = (TABLE["ill"] == "yes").to_numpy().astype(int)
    boxed = pf.LogisticRegression(epsilon=5.0, schema=pf.Schema.box(-3, 3, target=[0, 1])).fit(X, y)
    by_array = pf.evaluate(boxed, X, y, epsilon=1.0, random_state=1)
    named = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "target": y})
    assert by_array.auc == pf.evaluate(boxed, named.select("a", "b"), y, epsilon=1.0, random_state=1).auc
    public = pf.LogisticRegression(epsilon=5.0, schema="public").fit(X, y)
    assert pf.evaluate(public, X, y, epsilon=1.0, random_state=1).auc > 0.7
    with pytest.raises(pf.DataError, match="y"):
        pf.evaluate(boxed, X, epsilon=1.0)
    with pytest.raises(pf.DataError, match="2 features"):
        pf.evaluate(boxed, X[:, :1], y, epsilon=1.0)


def test_classifiers_without_probabilities() -> None:
    machine = pf.LinearSVC(epsilon=5.0, schema=SCHEMA).fit(FITTED)
    found = pf.evaluate(machine, HELD, epsilon=100.0, random_state=1)
    ones = (HELD["ill"] == "yes").to_numpy().astype(int)
    assert found.auc == pytest.approx(metrics.roc_auc_score(ones, machine.decision_function(HELD)), abs=5e-3)
    assert found.accuracy == pytest.approx(machine.score(HELD, HELD["ill"].to_numpy()), abs=2e-3)
    with pytest.raises(AttributeError, match="log_loss was asked of an evaluation of a LinearSVC"):
        _ = found.log_loss
    most = pf.baselines.Majority(epsilon=1.0, schema=SCHEMA).fit(FITTED)
    assert list(pf.evaluate(most, HELD, epsilon=1.0).figures) == ["accuracy", "balanced_accuracy"]


def test_numbers() -> None:
    target = pf.Numeric("cost", 0, 1000)
    table = TABLE.with_columns(cost=50 + 3 * pl.col("size") + pl.Series(RNG.normal(0, 2, ROWS)))
    line = pf.LinearRegression(epsilon=5.0, schema=pf.Schema(FEATURES, target)).fit(table[:10_000])
    held = table[10_000:]
    found = pf.evaluate(line, held, epsilon=100.0, random_state=1)
    true, predicted = held["cost"].to_numpy(), line.predict(held)
    assert found.r2 == pytest.approx(metrics.r2_score(true, predicted), abs=0.01)
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(true, predicted), rel=0.02)
    assert found.mae == pytest.approx(metrics.mean_absolute_error(true, predicted), rel=0.02)
    for adjacency in ("replace-one", "add-remove"):
        rough = pf.evaluate(line, held, epsilon=0.5, adjacency=adjacency, expected_rows=10_000, random_state=1)
        assert all(one.interval[0] < one < one.interval[1] for one in rough.figures.values())
        assert rough.rmse == pytest.approx(found.rmse, rel=0.1)
    assert np.isnan(pf.evaluate(line, held[:40], epsilon=0.01, random_state=2).r2)


def test_more_classes() -> None:
    table = TABLE.with_columns(
        kind=pl.Series(np.array(["a", "b", "c"])[np.digitize(SIZE + RNG.normal(0, 0.5, ROWS), [-0.5, 0.5])])
    )
    schema = pf.Schema(FEATURES, pf.Category("kind", ["a", "b", "c"]))
    three = pf.LogisticRegression(epsilon=5.0, schema=schema).fit(table[:10_000])
    held = table[10_000:]
    found = pf.evaluate(three, held, epsilon=200.0, random_state=1)
    true, predicted = held["kind"].to_numpy(), three.predict(held)
    assert np.asarray(found.confusion) == pytest.approx(metrics.confusion_matrix(true, predicted), abs=3)
    assert found.accuracy == pytest.approx((true == predicted).mean(), abs=1e-3)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(true, predicted), abs=1e-3)
    sure = three.predict_proba(held).max(axis=1) > 0.9
    assert found.calibration.observed[-1] == pytest.approx((true == predicted)[sure].mean(), abs=0.05)
    assert pf.evaluate(three, held, epsilon=1.0, metrics="accuracy").report.released_values == 9


def test_clusters() -> None:
    table = TABLE.select(a=pl.col("size").clip(-3, 3), b=pl.Series(RNG.normal(0, 0.5, ROWS)))
    schema = pf.Schema([pf.Numeric("a", -3, 3), pf.Numeric("b", -3, 3)])
    centres = pf.KMeans(n_clusters=3, epsilon=5.0, schema=schema).fit(table)
    found = pf.evaluate(centres, table, epsilon=20.0, random_state=1)
    exact = (centres.transform(table).min(axis=1) ** 2).mean()
    assert found.mean_squared_distance == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantiles(quantile: float) -> None:
    noise = pl.Series(RNG.exponential(2, ROWS))
    table = TABLE.with_columns(cost=50 + 3 * pl.col("size") + noise)
    schema = pf.Schema(FEATURES, pf.Numeric("cost", 0, 1000))
    fit = pf.QuantileRegressor(5.0, quantile=quantile, schema=schema, random_state=0).fit(table[:10_000])
    held = table[10_000:]
    true, predicted = held["cost"].to_numpy(), fit.predict(held)
    found = pf.evaluate(fit, held, epsilon=100.0, random_state=1)
    loss = metrics.mean_pinball_loss(true, predicted, alpha=quantile)
    assert found.pinball_loss == pytest.approx(loss, rel=0.02)
    assert found.share_below == pytest.approx((true <= predicted).mean(), abs=2e-3)
    assert found.mae == pytest.approx(metrics.mean_absolute_error(true, predicted), rel=0.02)
    for adjacency in ("replace-one", "add-remove"):
        rough = pf.evaluate(fit, held, epsilon=0.5, adjacency=adjacency, expected_rows=10_000, random_state=1)
        assert rough.pinball_loss.interval[0] < loss < rough.pinball_loss.interval[1] < 2.5 * loss
        assert rough.share_below.interval[0] < (true <= predicted).mean() < rough.share_below.interval[1]
    few = pf.evaluate(fit, held, epsilon=1.0, metrics="share_below")
    assert list(few.figures) == ["share_below"]
    line = pf.LinearRegression(epsilon=5.0, schema=schema).fit(table[:1000])
    with pytest.raises(pf.PrivacyError, match="a regression of a quantile has 'pinball_loss'"):
        pf.evaluate(line, held, epsilon=1.0, metrics="pinball_loss")


@pytest.mark.parametrize("scale", ["none", "bounds"])
def test_components(scale: str) -> None:
    table = TABLE.select(a=pl.col("size").clip(-3, 3), b=pl.col("size") + pl.Series(RNG.normal(0, 0.5, ROWS)))
    features = [pf.Numeric("a", -3, 3), pf.Numeric("b", -6, 6, fill=0.0), pf.Category("job", ["cook", "smith"])]
    table = table.with_columns(job=pl.Series(RNG.choice(["cook", "smith"], ROWS)))
    model = pf.PCA(1, epsilon=50.0, schema=pf.Schema(features), scale=scale).fit(table)
    distances = model.squared_distances(table)
    exact = 1 - distances[:, 0].mean() / distances[:, 1].mean()
    assert exact == pytest.approx(float(model.explained_variance_ratio_[0]), abs=0.01)
    assert distances.max() <= 1
    found = pf.evaluate(model, table, epsilon=50.0, random_state=1)
    assert found.explained_variance_ratio == pytest.approx(exact, abs=0.01)
    for seed, adjacency in enumerate(("replace-one", "add-remove") * 3):
        rough = pf.evaluate(model, table, epsilon=0.5, adjacency=adjacency, random_state=seed, expected_rows=ROWS)
        low, high = rough.explained_variance_ratio.interval
        assert low < exact < high
        assert high - low < 0.3
    everything = pf.PCA(epsilon=50.0, schema=pf.Schema(features), scale=scale).fit(table)
    sure = pf.evaluate(everything, table, epsilon=5.0).explained_variance_ratio
    assert 0.99 < sure <= sure.interval[1] == 1
    nothing = pf.evaluate(model, table[:40], epsilon=0.01, random_state=2).explained_variance_ratio
    assert np.isnan(nothing) or nothing.interval[1] - nothing.interval[0] > 0.5


def test_components_of_bounds_whose_squares_are_infinite() -> None:
    schema = pf.Schema([pf.Numeric("far", -1e200, 1e200), pf.Numeric("near", -1, 1)])
    rows = np.random.default_rng(0).random((400, 2)) * [1e200, 1]
    model = pf.PCA(1, epsilon=1.0, schema=schema).fit(rows)
    assert np.isfinite(model.squared_distances(rows)).all()
    assert pf.evaluate(model, rows, epsilon=5.0).explained_variance_ratio > 0.5


def test_fewer_figures_are_more_accurate(model: Any) -> None:
    few = pf.evaluate(model, HELD, epsilon=0.1, metrics="accuracy")
    assert (list(few.figures), list(few.curves)) == (["accuracy"], [])
    assert few.report.released_values == 4
    assert np.ptp(few.accuracy.interval) < np.ptp(pf.evaluate(model, HELD, epsilon=0.1).accuracy.interval)
    assert list(pf.evaluate(model, HELD, epsilon=0.1, metrics=["auc", "roc"]).curves) == ["roc"]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_persons_filters_and_dropped_targets_leave_rows_out(adjacency: str) -> None:
    target = pf.Category("ill", ["no", "yes"], fill="drop")
    schema = pf.Schema(FEATURES, target, person="id", where={"size": (0, None)})
    more = {"adjacency": adjacency, "rows_per_person": 2, "expected_rows": 10_000}
    gaps = TABLE.with_columns(pl.when(pl.col("size") < 1).then(pl.col("ill")).alias("ill"))
    own = pf.LogisticRegression(epsilon=5.0, schema=schema, **more).fit(gaps)
    ledger = pf.Ledger(epsilon=100.0)
    found = pf.evaluate(own, gaps, epsilon=50.0, ledger=ledger, **more)
    used = gaps.filter((pl.col("size") >= 0) & pl.col("ill").is_not_null())
    assert found.accuracy == pytest.approx(own.score(used, used["ill"].to_numpy()), abs=0.02)
    assert np.asarray(found.confusion).sum() < len(used)
    (entry,) = ledger.entries()
    assert (entry.event.adjacency, entry.event.rows_per_person) == (adjacency, 2)
    assert "how many rows were used is private" in str(found.report)


def test_a_class_with_too_few_rows_is_not_known(model: Any) -> None:
    rare = HELD.filter((pl.col("ill") == "no") | (pl.int_range(pl.len()) % 500 == 0))
    found = pf.evaluate(model, rare, epsilon=0.05, random_state=1)
    assert np.isnan(found.auc)
    assert found.auc.interval == (0.0, 1.0)
    assert found.accuracy > 0.5
    assert "not known" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["figures"]["auc"]["value"] is None


def test_it_prints_copies_and_goes_into_json(model: Any) -> None:
    found = pf.evaluate(model, HELD, epsilon=0.5)
    assert str(found).splitlines()[0].split() == ["figure", "value", "90%", "interval"]
    assert "predicted yes" in str(found)
    assert "<table>" in found._repr_html_()
    assert repr(found).startswith("<Evaluation of a LogisticRegression")
    assert "auc" in dir(found)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["figures"]["auc"]["interval"] == list(found.auc.interval)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other.auc.interval == found.auc.interval
        assert np.array_equal(other.confusion_at(0.2), found.confusion_at(0.2))


def test_it_is_drawn(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pf.evaluate(model, HELD, epsilon=0.2).plot(tmp_path / "model.png")
    assert (tmp_path / "model.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"model": 5}, pf.PrivacyError, "int"),
        ({"model": pf.LogisticRegression(schema=SCHEMA)}, NotFittedError, "not fitted"),
        ({"metrics": "speed"}, pf.PrivacyError, "speed"),
        ({"metrics": ["r2"]}, pf.PrivacyError, "a regression has 'r2'"),
        ({"X": HELD.drop("ill")}, pf.DataError, "ill"),
        ({"X": HELD.drop("size")}, pf.DataError, "size"),
        ({"X": HELD.with_columns(job=pl.lit("secret"))}, pf.DataError, "job"),
        ({"X": HELD.with_columns(ill=pl.lit(None, pl.String))}, pf.DataError, "Leave such rows out"),
        ({"y": HELD["ill"].to_numpy()}, pf.DataError, "twice"),
        ({"epsilon": -1.0}, pf.PrivacyError, "epsilon"),
    ],
)
def test_refusals_charge_nothing_and_quote_no_cell(
    model: Any, given: dict[str, Any], error: type[Exception], match: str
) -> None:
    ledger = pf.Ledger(epsilon=10.0)
    asked = {"model": model, "X": HELD, "epsilon": 0.1, "ledger": ledger, **given}
    with pytest.raises(error, match=match) as refused:
        pf.evaluate(**asked)
    assert "secret" not in str(refused.value)
    assert ledger.n_entries == 0


def test_other_thresholds_are_numbers(model: Any) -> None:
    found = pf.evaluate(model, HELD, epsilon=0.5)
    with pytest.raises(pf.PrivacyError, match="0 to 1"):
        found.confusion_at(7)
    with pytest.raises(AttributeError, match="no 'speed'"):
        _ = found.speed
    with pytest.raises(AttributeError, match="no 'speed'"):
        _ = found.roc.speed


def test_a_model_that_is_not_private_says_so() -> None:
    seeded = pf.LogisticRegression(epsilon=1.0, schema=SCHEMA, random_state=0).fit(FITTED)
    found = pf.evaluate(seeded, HELD, epsilon=0.5, ledger=pf.Ledger(epsilon=1.0))
    assert found.report.private
    assert any("the model itself is not private" in note for note in found.report.notes)


def test_the_examples_of_the_page_run() -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M))
    names: dict[str, Any] = {"print": lambda *values: None}
    exec(compile(code, PAGE.name, "exec"), names)
    assert names["ledger"].spent.epsilon == pytest.approx(0.6)
    assert 0.7 < names["low"] < names["high"] < 0.9
    assert names["careful"].shape == (2, 2)
    assert all(f"`{name}`" in PAGE.read_text(encoding="utf-8") for name in names["found"].figures)


@pytest.mark.parametrize(("heavy", "held"), [(False, 0.85), (True, 0.7)])
def test_intervals_hold_although_a_range_hides_the_tail_of_residuals(heavy: bool, held: float) -> None:
    """A log-normal law has a third of its squares beyond the range that epsilon 0.1 buys at 10,000 rows."""
    generator = np.random.default_rng(0)

    def drawn(rows: int) -> pl.DataFrame:
        size = generator.normal(size=rows).clip(-3, 3)
        noise = generator.lognormal(0, 0.8, rows) if heavy else generator.normal(size=rows)
        return pl.DataFrame({"size": size, "cost": 20 + size + noise})

    schema = pf.Schema(FEATURES[:1], pf.Numeric("cost", 0, 100))
    line = pf.LinearRegression(epsilon=100.0, schema=schema, random_state=0).fit(drawn(10_000))
    many = drawn(200_000)
    truth = metrics.root_mean_squared_error(many["cost"], line.predict(many))
    found = [pf.evaluate(line, drawn(10_000), epsilon=0.1, random_state=run).rmse.interval for run in range(20)]
    assert np.mean([low <= truth <= high for low, high in found]) >= held
    assert np.median([high for _, high in found]) < 1.5 * truth


def test_empty_cells_at_the_ends_of_scores_add_no_noise() -> None:
    """A model whose scores are all near 1/2: AUC's noise is that of the cells which hold rows."""
    noisy = np.array([9.0, -40.0, 2500.0, 2600.0, 20.0, -30.0, -5.0, 12.0, 2400.0, 2450.0, -8.0, 3.0])
    cells = NoisyCells(noisy, 28.0, 10_000)
    trimmed = TrimmedCells.of(cells)
    assert (trimmed.low, trimmed.high) == (2, 2)
    assert trimmed.counts[[0, 1, 4, 5, 6, 7, 10, 11]].tolist() == [0.0] * 8
    assert trimmed.counts.sum() == pytest.approx(10_000)
    weights = np.array([1.0, 1.0, 0.2, -0.2, -1.0, -1.0] * 2)
    assert trimmed.noise_variance(weights) < 0.35 * cells.noise_variance(weights)
    assert TrimmedCells.of(NoisyCells(np.full(12, 800.0), 28.0, None)).low == 0
    nothing = TrimmedCells.of(NoisyCells(np.zeros(12), 28.0, 10_000))
    assert (nothing.low, nothing.high) == (0, 0)
