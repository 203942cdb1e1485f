"""AdaSSP and its boosted form: what a row can move, what parts cost, what is refused, and what the fit comes to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression as PlainLinear

import privfit as pf
from privfit.mechanisms.functional.problem import noise_kind
from privfit.models import private
from privfit.privacy import Event, exact
from privfit.rows import Rows
from privfit.statistics import STEP
from privfit.statistics.eigenvalue import eigenvalue_sensitivity
from privfit.statistics.residuals import ResidualMoments, whole_weights
from tests.support.beats import assert_told_in_order
from tests.support.corners import MIXED, NUMBER, corners, geometry_of, rows_of
from tests.support.noise import RecordingNoise
from tests.support.people import people

DELTA = 1e-6


# -- what parts cost -------------------------------------------------------------------------------

MECHANISMS = [pf.AdaSSP(), pf.AdaSSP(rounds=2), pf.AdaSSP(rounds=4), pf.AdaSSP(rounds=10, residual_bound=0.5)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_shares_are_positive_and_add_up_to_exactly_one(mechanism: pf.AdaSSP, fit_intercept: bool) -> None:
    shares = mechanism.shares(geometry_of(MIXED, fit_intercept)[1])
    assert sum(shares.values()) == 1
    assert min(shares.values()) > 0
    assert all(isinstance(share, Fraction) for share in shares.values())


def fitted(monkeypatch, mechanism, noise, epsilon: float = 0.7, **settings):
    frame, schema = people(300, 0, 200)
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=1e-3)
    model = pf.LinearRegression(epsilon, schema=schema, mechanism=mechanism, ledger=ledger, **settings).fit(frame)
    return model, ledger


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("delta", [DELTA, 0.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("persons_rows", [1, 3])
def test_the_parts_cost_no_more_than_the_one_entry_in_the_ledger(
    monkeypatch, mechanism, delta, adjacency, persons_rows
) -> None:
    """In exact arithmetic: what each draw may cost at its scale, by the sensitivity of what was summed for it."""
    summed = []
    whole_sum = Rows.sum
    monkeypatch.setattr(Rows, "sum", lambda self, kernel: summed.append(kernel) or whole_sum(self, kernel))
    noise = RecordingNoise()
    model, ledger = fitted(
        monkeypatch, mechanism, noise, delta=delta, adjacency=adjacency, rows_per_person=persons_rows
    )
    (entry,) = ledger.entries()
    event = entry.event
    assert event == Event.from_dict(model.report_.event) == Event.from_json(event.to_json())
    assert (event.epsilon, event.delta, event.rho > 0) == (0.7, delta, delta > 0)

    norm, geometry = "l2" if delta else "l1", model._geometry
    sensitivities = [
        mechanism.statistic(geometry, noise_kind(event)).sensitivity(adjacency, norm),
        eigenvalue_sensitivity(geometry),
    ]
    if mechanism.rounds > 1:
        sensitivities.append(STEP**2 * (1 if adjacency == "add-remove" else 2))
    sensitivities += [statistic.sensitivity(adjacency, norm) for statistic in summed[1:]]
    reaches = [Fraction(persons_rows * sensitivity) for sensitivity in sensitivities]
    scales = [Fraction(call.scale) for call in noise.calls]
    assert len(scales) == len(mechanism.shares(geometry)) == len(reaches)
    assert sum(call.values.size for call in noise.calls) == event.n_values
    if delta:
        costs = [reach**2 / (2 * scale**2) for reach, scale in zip(reaches, scales, strict=True)]
    else:
        costs = [reach / scale for reach, scale in zip(reaches, scales, strict=True)]
    claimed = exact(event.rho if delta else event.epsilon)
    assert claimed * (1 - Fraction(1, 10**9)) < sum(costs) <= claimed


def test_a_person_with_more_rows_scales_every_noise(monkeypatch) -> None:
    one, three = RecordingNoise(1), RecordingNoise(1)
    for noise, persons_rows in ((one, 1), (three, 3)):
        fitted(monkeypatch, pf.AdaSSP(rounds=3, residual_bound=0.5), noise, delta=DELTA, rows_per_person=persons_rows)
    for left, right in zip(one.calls, three.calls, strict=True):
        assert right.scale == pytest.approx(3 * left.scale, rel=1e-12)


def test_the_ledger_is_charged_once_and_before_the_first_draw(monkeypatch) -> None:
    class Broken(RecordingNoise):
        def _answer(self, kind, values, scale):
            raise RuntimeError("no noise today")

    frame, schema = people(300, 0, 200)
    monkeypatch.setattr(private, "noise_source", lambda random_state: Broken())
    ledger = pf.Ledger(epsilon=1.0, delta=1e-5)
    model = pf.LinearRegression(0.5, delta=DELTA, schema=schema, mechanism="boosted-adassp", ledger=ledger)
    with pytest.raises(RuntimeError):
        model.fit(frame)
    assert [(entry.epsilon, entry.event.delta) for entry in ledger.entries()] == [(0.5, DELTA)]


def test_a_budget_that_is_too_small_refuses_before_anything_is_drawn(monkeypatch) -> None:
    noise = RecordingNoise()
    frame, schema = people(300, 0, 200)
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=0.5, delta=1e-5)
    with pytest.raises(pf.BudgetExceeded):
        pf.LinearRegression(0.7, delta=DELTA, schema=schema, mechanism="boosted-adassp", ledger=ledger).fit(frame)
    assert noise.calls == []
    assert ledger.entries() == []


def test_noise_beyond_64_bits_is_refused_before_anything_is_charged(monkeypatch) -> None:
    for epsilon in (1e-9, 3e-9, 1e-8, 3e-8):
        frame, schema = people(300, 0, 200)
        ledger = pf.Ledger(epsilon=1.0, delta=1e-5)
        model = pf.LinearRegression(epsilon, schema=schema, mechanism=pf.AdaSSP(rounds=10), ledger=ledger)
        try:
            model.fit(frame)
        except pf.PrivacyError as error:
            assert_told_in_order(str(error), ["more noise than 64-bit", "larger epsilon"])
            assert ledger.entries() == []
        else:
            assert len(ledger.entries()) == 1


# -- attacks that must work ------------------------------------------------------------------------


def test_residuals_that_are_not_cut_are_found_out(monkeypatch) -> None:
    """The replay of tests/conformance compares noised values with the price; without the cut they move too far."""
    schema, geometry = geometry_of(NUMBER, True)
    statistic = ResidualMoments(geometry, whole_weights([0.0, 0.0]), 0.1)
    claimed = statistic.sensitivity("replace-one", "l2")

    def moved() -> float:
        left, right = (
            rows_of(np.array([[1.0, y]]), schema, geometry).sum(statistic).astype(float) for y in (-1.0, 1.0)
        )
        return float(np.linalg.norm(left - right))

    assert 0.99 * claimed < moved() <= claimed
    monkeypatch.setattr(ResidualMoments, "residuals", lambda self, encoded: np.rint(encoded[-1] / (1 << self.shift)))
    assert moved() > 5 * claimed


# -- what is refused -------------------------------------------------------------------------------


def stream(frame: pl.DataFrame):
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(frame.to_arrow().schema, frame.to_arrow().to_batches())


def test_a_stream_is_kept_for_rounds_that_read_it_again() -> None:
    frame, schema = people(300, 0, 200)
    for mechanism in ("boosted-adassp", "adassp"):
        model = pf.LinearRegression(1.0, delta=DELTA, schema=schema, mechanism=mechanism, random_state=3)
        expected = model.fit(frame).coef_
        assert np.array_equal(model.fit(stream(frame)).coef_, expected)


@pytest.mark.parametrize("estimator", [pf.Ridge, pf.Lasso, pf.ElasticNet])
@pytest.mark.parametrize("mechanism", ["adassp", "boosted-adassp", pf.AdaSSP(rounds=2)])
def test_penalties_refuse_it(estimator, mechanism) -> None:
    frame, schema = people(100, 0, 200)
    with pytest.raises(pf.PrivacyError) as caught:
        estimator(1.0, schema=schema, mechanism=mechanism, random_state=0).fit(frame)
    assert_told_in_order(str(caught.value), ["was given to", "it knows 'auto', 'functional'", "Use 'auto'"])


@pytest.mark.parametrize("mechanism", ["adassp", pf.AdaSSP()])
def test_classifiers_refuse_it(mechanism) -> None:
    schema = pf.Schema(NUMBER, target=pf.Category("y", ["a", "b"]))
    model = pf.LogisticRegression(1.0, schema=schema, mechanism=mechanism, random_state=0)
    with pytest.raises(pf.PrivacyError, match="LogisticRegression; it knows 'auto', 'objective', 'output', 'genetic'"):
        model.fit(np.array([[0.1], [0.2]]), ["a", "b"])


def test_an_unknown_name_is_told_all_known_ones() -> None:
    frame, schema = people(100, 0, 200)
    with pytest.raises(pf.PrivacyError, match="'adassp', 'boosted-adassp'"):
        pf.LinearRegression(1.0, schema=schema, mechanism="adasp", random_state=0).fit(frame)


@pytest.mark.parametrize("rounds", [0, -1, 11, 2.0, True, "3", None])
def test_rounds_that_mean_nothing_are_refused(rounds) -> None:
    with pytest.raises(pf.PrivacyError) as caught:
        pf.AdaSSP(rounds=rounds).check()
    assert_told_in_order(str(caught.value), ["was given", "it is an integer", "Use 1"])


@pytest.mark.parametrize("bound", [0, -0.5, 1.5, np.nan, np.inf, True, "wide", None])
def test_bounds_that_mean_nothing_are_refused(bound) -> None:
    with pytest.raises(pf.PrivacyError) as caught:
        pf.AdaSSP(rounds=3, residual_bound=bound).check()
    assert_told_in_order(str(caught.value), ["was given", "it is 'auto' or a share", "Use 'auto'"])


@pytest.mark.parametrize("mechanism", ["adassp", "boosted-adassp"])
def test_there_are_no_intervals(mechanism) -> None:
    frame, schema = people(300, 0, 200)
    model = pf.LinearRegression(1.0, delta=DELTA, schema=schema, mechanism=mechanism, random_state=0).fit(frame)
    with pytest.raises(AttributeError, match="Intervals were asked"):
        _ = model.coef_interval_
    assert not hasattr(model, "intercept_interval_")


# -- what it comes to ------------------------------------------------------------------------------


def design(frame: pl.DataFrame) -> np.ndarray:
    levels = [(frame["region"] == level).to_numpy().astype(float) for level in "nesw"] + [
        (frame["member"] == "yes").to_numpy().astype(float)
    ]
    return np.column_stack([frame["age"].to_numpy(), frame["hours"].to_numpy(), *levels])


@pytest.mark.parametrize("mechanism", ["adassp", "boosted-adassp", pf.AdaSSP(rounds=2, residual_bound=1.0)])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_without_noise_it_is_least_squares(mechanism, adjacency: str, delta: float) -> None:
    frame, schema = people(3000, 0, 200)
    model = pf.LinearRegression(
        1e7, delta=delta, schema=schema, mechanism=mechanism, adjacency=adjacency, random_state=0
    ).fit(frame)
    plain = PlainLinear().fit(design(frame), frame["income"].to_numpy())
    np.testing.assert_allclose(model.predict(frame), plain.predict(design(frame)), atol=0.02)


@pytest.mark.parametrize("mechanism", ["adassp", "boosted-adassp"])
def test_without_noise_and_without_an_intercept_it_is_least_squares(mechanism) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = X @ [0.5, -0.2, 0.1] + rng.normal(0, 0.1, 3000)
    schema = pf.Schema.box(-1, 1, target=(-2, 2))
    model = pf.LinearRegression(
        1e7, delta=DELTA, schema=schema, mechanism=mechanism, fit_intercept=False, random_state=0
    ).fit(X, y)
    plain = PlainLinear(fit_intercept=False).fit(X, np.clip(y, -2, 2))
    assert model.intercept_ == 0
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


@pytest.mark.parametrize("features", [NUMBER, MIXED[2:]], ids=["number", "levels"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "mechanism", [pf.AdaSSP(), pf.AdaSSP(rounds=2), pf.AdaSSP(rounds=2, residual_bound=0.5)], ids=str
)
def test_few_columns_are_fitted_or_refused_before_the_charge(features, fit_intercept, adjacency, mechanism) -> None:
    """Without an intercept, under add-remove, nothing may tell how many rows there are."""
    schema = pf.Schema(features, target=pf.Numeric("y", -1, 1))
    table = np.array(corners(features) * 20)
    ledger = pf.Ledger(epsilon=5.0, delta=1e-5)
    model = pf.LinearRegression(
        1.0,
        delta=DELTA,
        schema=schema,
        mechanism=mechanism,
        adjacency=adjacency,
        fit_intercept=fit_intercept,
        ledger=ledger,
    )
    unknown = adjacency == "add-remove" and not fit_intercept and mechanism == pf.AdaSSP(rounds=2)
    if unknown:
        with pytest.raises(pf.PrivacyError) as caught:
            model.fit(table[:, :-1], table[:, -1])
        assert_told_in_order(
            str(caught.value),
            ["residual_bound='auto' was given", "follows from the number of rows", "Give a public guess"],
        )
        assert ledger.entries() == []
        model.set_params(expected_rows=100)
    model.fit(table[:, :-1], table[:, -1])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    assert len(ledger.entries()) == 1


def error(mechanism, half: float, epsilon: float, seed: int, delta: float = DELTA) -> float:
    frame, schema = people(20_000, 100 - half, 100 + half, seed)
    model = pf.LinearRegression(epsilon, delta=delta, schema=schema, mechanism=mechanism, random_state=seed).fit(frame)
    return float(np.sqrt(np.mean((model.predict(frame) - frame["income"].to_numpy()) ** 2)))


@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_with_wide_target_bounds_the_boosted_form_is_far_better(delta: float) -> None:
    """Bounds 150 standard deviations of the target to either side; the error of least squares is 8, of predicting the
    mean 13.
    """
    plain = [error("adassp", 2000, 0.5, seed, delta) for seed in range(4)]
    boosted = [error("boosted-adassp", 2000, 0.5, seed, delta) for seed in range(4)]
    assert max(boosted) < 10 < 13 < min(plain)


def test_tables_drowned_in_noise_stay_near_the_bounds() -> None:
    frame, schema = people(40, 0, 200)
    for mechanism in ("adassp", "boosted-adassp"):
        for seed in range(5):
            model = pf.LinearRegression(0.1, delta=DELTA, schema=schema, mechanism=mechanism, random_state=seed).fit(
                frame
            )
            assert np.isfinite(model.predict(frame)).all()


def test_the_report_says_what_the_price_was_spent_on() -> None:
    frame, schema = people(300, 0, 200)
    model = pf.LinearRegression(1.0, delta=DELTA, schema=schema, mechanism="boosted-adassp", random_state=0).fit(frame)
    told = str(model.report_)
    assert_told_in_order(
        told, ["AdaSSP, boosted in 4 rounds", "adaptive ridge", "share its price", "smallest eigenvalue 5%", "round 4"]
    )
    assert "delta was not needed" not in told
