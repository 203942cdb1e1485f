"""The functional mechanism: the paper's printed facts, calibration, repairs, and what it converges to."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic

import privfit as pf
from privfit.losses import SQUARED, truncated_logistic
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.functional import functional
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.statistics import Moments
from privfit.tables import open_table
from tests.support.noise import RecordingNoise
from tests.support.people import people

ALMOST_NO_NOISE = 1e7


def plain_design(frame: pl.DataFrame, names: np.ndarray) -> np.ndarray:
    columns = []
    for name in names:
        if name in frame.columns:
            columns.append(frame[name].to_numpy())
        else:
            column, level = name.rsplit("_", 1)
            columns.append((frame[column] == level).to_numpy().astype(float))
    return np.column_stack(columns)


def test_the_worked_example_of_the_paper_has_its_printed_numbers() -> None:
    """Section 4.2: 2.06 w^2 - 2.34 w + 1.25, minimum at 117/206, sensitivity 8."""
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
    table = np.array([[1, 0.4], [0.9, 0.3], [-0.5, -1]])
    geometry = schema.geometry(intercept=False)
    moments = Moments(geometry)
    sums = Rows(open_table(table), schema, geometry).sum(moments) / moments.unit
    assert sums[0, 0] == pytest.approx(2.06, abs=1e-4)
    assert -2 * sums[0, 1] == pytest.approx(-2.34, abs=1e-4)
    assert float(table[:, 1] @ table[:, 1]) == pytest.approx(1.25), "the constant, which is never summed for release"
    assert sums[1, 1] == 0
    assert SQUARED.printed_sensitivity(1) == 8
    model = pf.LinearRegression(
        1e9, schema=schema, fit_intercept=False, mechanism=pf.FunctionalMechanism(repair=None)
    ).fit(table)
    assert model.coef_[0] == pytest.approx(117 / 206, abs=1e-4)


@pytest.mark.parametrize("d", [1, 4, 8, 13])
def test_printed_sensitivities_are_the_printed_ones(d: int) -> None:
    assert SQUARED.printed_sensitivity(d) == 2 * (d + 1) ** 2
    assert truncated_logistic().printed_sensitivity(d) == d * d / 4 + 3 * d


def test_the_truncation_error_of_the_paper_and_its_tight_value() -> None:
    """Section 5.2 prints 0.015 for |x'w| <= 1; the remainder has one sign and stays within 0.0049."""
    z = np.linspace(-1, 1, 20_001)
    remainder = np.logaddexp(0, z) - (np.log(2) + z / 2 + z**2 / 8)
    assert remainder.max() <= 1e-15
    assert -0.0049 <= remainder.min() <= -0.0048
    e = np.e
    assert (e**2 - e) / (6 * (1 + e) ** 3) == pytest.approx(0.015, abs=2e-4)


def test_paper_mode_scales_and_noises_as_printed() -> None:
    """Footnote 1 divides by sqrt(d): the noise on an entry of X'X in units of the unscaled columns is d times the
    printed one.
    """
    d, epsilon = 5, 0.5
    schema = pf.Schema([pf.Numeric(f"x{i}", 0, 1) for i in range(d)], target=pf.Numeric("y", -1, 1))
    for loss in (SQUARED, truncated_logistic()):
        mechanism = pf.FunctionalMechanism(calibration="paper")
        geometry = mechanism.geometry(schema, QuadraticProblem(loss))
        moments = mechanism.statistic(geometry, QuadraticProblem(loss))
        event = mechanism.event(moments, PrivacyParameters(Budget(epsilon)), loss)
        assert event.scale / moments.unit == pytest.approx(loss.printed_sensitivity(d) / epsilon * d / loss.curvature)
        coefficient_noise = event.scale / (moments.step * moments.target_units) * loss.slope / np.sqrt(d)
        assert coefficient_noise == pytest.approx(loss.printed_sensitivity(d) / epsilon, rel=1e-4)
        assert event.n_values == d * (d + 1) // 2 + d
        assert not geometry.intercept


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("repair", ["floor", "trim", "ridge", "rerun", None])
def test_much_epsilon_gives_least_squares_whatever_the_repair(adjacency, repair) -> None:
    frame, schema = people(4000)
    mechanism = pf.FunctionalMechanism(repair=repair)
    model = pf.LinearRegression(ALMOST_NO_NOISE, schema=schema, mechanism=mechanism, adjacency=adjacency).fit(frame)
    design = plain_design(frame, model.get_feature_names_out())
    plain = PlainLinear().fit(design, frame["income"].to_numpy())
    np.testing.assert_allclose(model.predict(frame), plain.predict(design), atol=0.02)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_squares_without_intercept_too(fit_intercept) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = np.clip(X @ [0.3, -0.2, 0.1] + 0.2 + rng.normal(0, 0.1, 3000), -1, 1)
    model = pf.LinearRegression(
        ALMOST_NO_NOISE, schema=pf.Schema.box(-1, 1, target=(-1, 1)), fit_intercept=fit_intercept
    ).fit(X, y)
    plain = PlainLinear(fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-4)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=2e-4)


def test_numbers_without_an_intercept_on_offset_bounds_still_predict() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(100, 101, (3000, 2))
    y = X @ [2.0, -1.0] + rng.normal(0, 0.1, 3000)
    model = pf.LinearRegression(ALMOST_NO_NOISE, schema=pf.Schema.box(100, 101, target=(98, 103))).fit(X, y)
    np.testing.assert_allclose(model.coef_, PlainLinear().fit(X, y).coef_, atol=1e-3)


def test_bins_give_the_means_of_bins() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 8, 20_000)
    y = np.sin(x) + rng.normal(0, 0.1, len(x))
    schema = pf.Schema([pf.Numeric("x", 0, 8, bins=8)], target=pf.Numeric("y", -2, 2))
    model = pf.LinearRegression(ALMOST_NO_NOISE, schema=schema).fit(x[:, None], y)
    means = [y[(x >= i) & (x < i + 1)].mean() for i in range(8)]
    np.testing.assert_allclose(model.predict(np.arange(8)[:, None] + 0.5), means, atol=1e-3)


def test_the_fit_converges_as_the_table_grows() -> None:
    """Theorem 2 of the paper: at a fixed epsilon the private fit approaches least squares."""
    errors = []
    for n in (2_000, 20_000, 200_000):
        frame, schema = people(n)
        design = None
        runs = []
        for seed in range(5):
            model = pf.LinearRegression(0.5, schema=schema, random_state=seed).fit(frame)
            if design is None:
                design = plain_design(frame, model.get_feature_names_out())
                best = PlainLinear().fit(design, frame["income"].to_numpy()).predict(design)
            runs.append(np.sqrt(np.mean((model.predict(frame) - best) ** 2)))
        errors.append(np.median(runs))
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_error_never_grows_with_epsilon_and_coefficients_stay_bounded() -> None:
    frame, schema = people(20_000)
    y = frame["income"].to_numpy()
    errors = []
    for epsilon in (0.001, 0.01, 0.1, 1.0, 10.0, 100.0):
        models = [pf.LinearRegression(epsilon, schema=schema, random_state=seed).fit(frame) for seed in range(7)]
        assert all(np.isfinite(model.coef_).all() and np.abs(model.coef_).max() < 1000 for model in models)
        errors.append(np.median([np.mean((model.predict(frame) - y) ** 2) for model in models]))
    assert all(later <= 1.02 * sooner for sooner, later in itertools.pairwise(errors))


def test_a_drowned_fit_predicts_about_the_mean_and_no_worse() -> None:
    """20,000 rows at epsilon 0.02: nothing but the mean can be learned, and that is what comes out."""
    frame, schema = people(20_000)
    y = frame["income"].to_numpy()
    ratios = [
        np.mean((pf.LinearRegression(0.02, schema=schema, random_state=s).fit(frame).predict(frame) - y) ** 2) / y.var()
        for s in range(20)
    ]
    assert np.median(ratios) < 1.2


def test_tight_calibration_beats_the_printed_one_by_far() -> None:
    frame, schema = people(50_000)
    y = frame["income"].to_numpy()

    def error(calibration: str, repair: str) -> float:
        mechanism = pf.FunctionalMechanism(calibration=calibration, repair=repair)
        runs = [
            pf.LinearRegression(0.5, schema=schema, mechanism=mechanism, random_state=seed).fit(frame).predict(frame)
            for seed in range(9)
        ]
        return float(np.median([np.mean((run - best) ** 2) for run in runs]))

    design = plain_design(
        frame, pf.LinearRegression(1.0, schema=schema, random_state=0).fit(frame).get_feature_names_out()
    )
    best = PlainLinear().fit(design, y).predict(design)
    assert 50 * error("tight", "floor") < error("paper", "trim")


def test_rerun_draws_at_half_of_epsilon_charges_all_of_it_and_ends_bounded() -> None:
    frame, schema = people(3000)
    objective = QuadraticProblem(SQUARED)
    once, again = pf.FunctionalMechanism(), pf.FunctionalMechanism(repair="rerun")
    geometry = once.geometry(schema, objective)
    moments = once.statistic(geometry, QuadraticProblem(SQUARED))
    terms = PrivacyParameters(Budget(1.0))
    assert again.event(moments, terms, SQUARED).scale == pytest.approx(2 * once.event(moments, terms, SQUARED).scale)
    noise = RecordingNoise(5)
    ledger = pf.Ledger(epsilon=1.0)
    rows = Rows(open_table(frame), schema, geometry)
    release = again.release(rows, terms, ledger, noise, objective)
    assert ledger.spent == 1.0
    assert len(noise.calls) >= 1
    assert again.solve(release, geometry, objective).solution.bounded


def test_rerun_that_never_ends_is_stopped_and_keeps_its_charge(monkeypatch) -> None:
    monkeypatch.setattr(functional, "USUAL_RERUNS", 5)
    schema = pf.Schema.box(-1, 1, n_features=6, target=(-1, 1))
    ledger = pf.Ledger(epsilon=1.0)
    model = pf.LinearRegression(0.001, schema=schema, mechanism=pf.FunctionalMechanism(repair="rerun"), ledger=ledger)
    with pytest.raises(pf.PrivacyError, match="charge stands"):
        model.fit(np.zeros((5, 6)), np.zeros(5))
    assert ledger.spent == 0.001


@pytest.mark.parametrize(
    ("loss", "stretch"),
    [(pf.QuadraticLoss(curvature=0.5, slope=1.0), 1.0), (pf.QuadraticLoss(curvature=2.0, slope=1.0), 0.25)],
)
def test_any_loss_of_degree_two_is_solved(loss, stretch) -> None:
    """curvature z^2 - slope t z has its minimum at slope / (2 curvature) times least squares."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    y = np.clip(X @ [0.4, -0.3] + 0.1, -1, 1)
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    model = pf.LinearRegression(ALMOST_NO_NOISE, schema=schema, mechanism=pf.FunctionalMechanism(loss=loss)).fit(X, y)
    np.testing.assert_allclose(model.coef_, stretch * np.array([0.4, -0.3]), atol=1e-3)
    assert model.intercept_ == pytest.approx(stretch * 0.1, abs=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_offset_in_the_loss_shifts_the_target(fit_intercept) -> None:
    """z^2 - (2 t + 2 s) z is least squares on t + s."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2)) + 0.2
    X = np.clip(X, -1, 1)
    y = np.clip(X @ [0.4, -0.3] + rng.normal(0, 0.05, 2000), -1, 1)
    loss = pf.QuadraticLoss(curvature=1.0, slope=2.0, offset=0.5)
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    model = pf.LinearRegression(
        ALMOST_NO_NOISE, schema=schema, mechanism=pf.FunctionalMechanism(loss=loss), fit_intercept=fit_intercept
    ).fit(X, y)
    plain = PlainLinear(fit_intercept=fit_intercept).fit(X, y + 0.25)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=1e-3)


def test_more_rows_per_person_mean_proportionally_more_noise() -> None:
    frame, schema = people(500)
    reports = [
        pf.LinearRegression(1.0, schema=schema, rows_per_person=m, random_state=0).fit(frame).report_ for m in (1, 4)
    ]
    assert reports[1].noise_scale == pytest.approx(4 * reports[0].noise_scale)
    assert reports[1].sensitivity == 4 * reports[0].sensitivity


def test_calibration_depends_on_public_facts_only() -> None:
    """Two unrelated tables of one schema and size: the same event, noise calls and weight of the target."""
    frame, schema = people(300)
    other = people(300, seed=9)[0].with_columns(income=pl.lit(0.0), region=pl.lit("n"))
    events = []
    for table in (frame, other):
        noise = RecordingNoise(0)
        objective = QuadraticProblem(SQUARED)
        mechanism = pf.FunctionalMechanism()
        geometry = mechanism.geometry(schema, objective)
        release = mechanism.release(
            Rows(open_table(table), schema, geometry), PrivacyParameters(Budget(0.3)), None, noise, objective
        )
        events.append((release.event, [(call.kind, call.values.shape, call.scale) for call in noise.calls]))
    assert events[0] == events[1]


def test_logistic_at_much_epsilon_is_close_to_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(0, 0.35, (40_000, 3)), -1, 1)
    score = X @ [2.0, -1.0, 0.5] - 0.8
    y = np.where(rng.uniform(size=len(X)) < 1 / (1 + np.exp(-score)), "yes", "no")
    model = pf.LogisticRegression(
        ALMOST_NO_NOISE, schema=pf.Schema.box(-1, 1, target=["yes", "no"]), mechanism="functional"
    ).fit(X, y)
    plain = PlainLogistic(C=1e6).fit(X, y)
    assert list(model.classes_) == ["no", "yes"] == list(plain.classes_)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.06)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert np.mean(model.predict(X) == plain.predict(X)) > 0.99
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "yes")).all()


def test_a_fixed_interval_changes_the_length_and_no_class() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 2))
    y = (X[:, 0] + rng.normal(0, 0.5, 5000) > 0.1).astype(int)
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    models = [
        pf.LogisticRegression(1.0, schema=schema, random_state=1, mechanism=pf.FunctionalMechanism(interval=r)).fit(
            X, y
        )
        for r in (1, 6)
    ]
    ratios = models[1].coef_ / models[0].coef_
    assert ratios == pytest.approx(ratios[0, 0])
    assert ratios[0, 0] > 1.5
    assert (models[0].predict(X) == models[1].predict(X)).all()


def test_seeded_noise_is_reproducible_and_stamped() -> None:
    frame, schema = people(500)
    models = [pf.LinearRegression(1.0, schema=schema, random_state=seed).fit(frame) for seed in (1, 1, 2)]
    assert (models[0].coef_ == models[1].coef_).all()
    assert not (models[0].coef_ == models[2].coef_).all()
    assert not models[0].report_.private
    assert "random_state" in str(models[0].report_)
    assert SeededNoise(0).private is False


def test_more_columns_than_can_be_multiplied_are_refused_with_the_widest_one_named() -> None:
    schema = pf.Schema(
        [pf.Numeric("x", 0, 1), pf.Category("town", [str(i) for i in range(5000)])], target=pf.Numeric("y", 0, 1)
    )
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.SchemaError, match=r"5002 encoded columns, 5000 of them for 'town'.*Join levels"):
        pf.LinearRegression(1.0, schema=schema, ledger=ledger).fit(
            pl.DataFrame({"x": [0.5], "town": ["7"], "y": [0.1]})
        )
    assert ledger.entries() == []
