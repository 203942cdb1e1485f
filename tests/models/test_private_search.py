"""Private search: one charge, candidates of all forms, failures that score worst, and what neighbours see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import uniform
from sklearn.base import clone

import privfit as pf
from privfit.audit.recording import noise_from
from privfit.models import setting_trials
from privfit.rows import holdout
from tests.support.noise import RecordingNoise, ReplayingNoise

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (1500, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
COLUMNS = [pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)]
SCHEMA = pf.Schema(COLUMNS, pf.Category("y", ["no", "yes"]))
NUMBERS = pf.Schema(COLUMNS, pf.Numeric("y", -2, 2))
FRAME = pl.DataFrame(X, schema=["a", "b"]).with_columns(y=pl.Series(Y))
GRID = {"mechanism": ["objective", "output"], "fit_intercept": [True, False]}


@pytest.fixture
def ledger() -> pf.Ledger:
    return pf.Ledger(epsilon=10.0)


def search(candidates: Any = GRID, model: Any = None, **parameters: Any) -> pf.PrivateSearch:
    chosen = model or pf.LogisticRegression(schema=SCHEMA, numeric="slope")
    return pf.PrivateSearch(chosen, candidates, **{"epsilon": 3.0, **parameters})


def test_one_charge_for_all(ledger: pf.Ledger) -> None:
    found = search(ledger=ledger).fit(X, Y)
    (entry,) = ledger.entries()
    assert (entry.epsilon, entry.model, entry.mechanism) == (3.0, "PrivateSearch", "private search among 4")
    assert found.best_params_ in found.candidates_
    assert found.best_estimator_.epsilon == 1.0
    assert found.score(X, Y) > 0.85
    assert found.predict_proba(X).shape == (1500, 2)
    assert found.report_.private
    assert found.report_.epsilon == 3.0
    assert not hasattr(found, "best_score_")


def test_the_chosen_model_says_what_its_choice_cost(ledger: pf.Ledger, tmp_path: Path) -> None:
    found = search(ledger=ledger).fit(X, Y)
    found.best_estimator_.save(tmp_path / "model.json")
    for model in (found.best_estimator_, pf.load_model(tmp_path / "model.json")):
        assert (model.report_.model, model.report_.epsilon) == ("LogisticRegression", 3.0)
        assert model.report_.event == ledger.entries()[0].event.to_dict()
        assert ledger.verify(model.report_.receipt).entries == 1
        assert any("at epsilon 1" in note for note in model.report_.notes)


@pytest.mark.parametrize("table", [FRAME, FRAME.to_pandas(), FRAME.to_arrow()], ids=["polars", "pandas", "arrow"])
def test_tables_that_hold_the_target(table: Any, ledger: pf.Ledger) -> None:
    found = search([{"mechanism": "objective"}, {"mechanism": "output"}], ledger=ledger).fit(table)
    assert found.best_estimator_.epsilon == 1.5
    assert found.score(pd.DataFrame(X, columns=["a", "b"]), Y) > 0.85
    assert ledger.spent.epsilon == 3.0


@pytest.mark.parametrize("scoring", [None, "absolute"])
def test_numbers_and_distributions(scoring: str | None, ledger: pf.Ledger) -> None:
    model = pf.Ridge(schema=NUMBERS, adjacency="add-remove", expected_rows=1500)
    found = search({"alpha": uniform(0, 100)}, model, scoring=scoring, n_iter=4, ledger=ledger).fit(X, X[:, 0])
    assert len(found.candidates_) == 4
    assert found.score(X, X[:, 0]) > 0.7
    assert ledger.entries()[0].event.adjacency == "add-remove"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"candidates": [{"mechanism": "output"}]}, "1 candidates"),
        ({"candidates": {"epsilon": [1.0, 2.0]}}, "The same for all is: epsilon"),
        ({"candidates": {"nothing": [1.0, 2.0]}}, "of the parameters"),
        ({"candidates": {"mechanism": ["output", "?"]}}, "mechanism='\\?'"),
        ({"model": pf.KMeans(2, schema=pf.Schema(COLUMNS))}, "predicts a target"),
        ({"model": pf.LogisticRegression(schema=SCHEMA, delta=1e-6)}, "with a delta"),
        ({"model": pf.LogisticRegression(schema=SCHEMA, rows_per_person=2)}, "several rows per person"),
        ({"model": pf.LogisticRegression(schema="public")}, "schema that is public"),
        ({"scoring": "squared"}, "scoring='squared'"),
        ({"share": 1.0}, "share=1.0"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_what_means_nothing_is_refused_and_charges_nothing(parameters, words, ledger) -> None:
    with pytest.raises((pf.PrivacyError, pf.SchemaError), match=words):
        search(ledger=ledger, **parameters).fit(X, Y)
    assert not ledger.entries()


def test_errors_in_the_rows_come_before_the_charge(ledger: pf.Ledger) -> None:
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(pf.DataError, match="NaN"):
        search(ledger=ledger).fit(broken, Y)
    with pytest.raises(pf.DataError, match=r"one\s+target per row"):
        search(ledger=ledger).fit(X, Y[:-1])
    assert not ledger.entries()


def test_a_fit_that_fails_scores_worst(ledger: pf.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = setting_trials.SettingTrials._fitted

    def fitted(self: Any, place: int, epsilon: float, seed: int | None) -> Any:
        if place == 0 and seed is None:
            raise FloatingPointError("overflow")
        return whole(self, place, epsilon, seed)

    monkeypatch.setattr(setting_trials.SettingTrials, "_fitted", fitted)
    found = search([{"mechanism": "output"}, {"mechanism": "objective"}], ledger=ledger).fit(X, Y)
    assert found.best_index_ == 1
    assert len(ledger.entries()) == 1


def test_fits_outside_charge_as_ever(ledger: pf.Ledger) -> None:
    found = search(ledger=ledger).fit(X, Y)
    clone(found.best_estimator_).set_params(ledger=ledger).fit(X, Y)
    assert [entry.epsilon for entry in ledger.entries()] == [3.0, 1.0]
    with pytest.raises(pf.PrivacyError, match="random_state"):
        search(ledger=ledger, random_state=0).fit(X, Y)
    one, other = (search(random_state=0).fit(X, Y) for _ in range(2))
    assert one.best_index_ == other.best_index_
    assert not one.report_.private


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", ["csv", "lazy", "stream"])
def test_tables_whose_number_of_rows_is_known_late(
    kind: str, adjacency: str, ledger: pf.Ledger, tmp_path: Path
) -> None:
    """The number of rows is public under replace-one, and is stated only by the pass that divides them."""
    FRAME.write_csv(tmp_path / "table.csv")
    tables = {"csv": tmp_path / "table.csv", "lazy": FRAME.lazy(), "stream": FRAME.to_arrow().to_reader()}
    model = pf.LogisticRegression(schema=SCHEMA, adjacency=adjacency, expected_rows=1500)
    found = search({"fit_intercept": [True, False]}, model, ledger=ledger).fit(tables[kind])
    assert found.score(FRAME, Y) > 0.85
    assert ledger.spent.epsilon == 3.0


@pytest.mark.parametrize(("adjacency", "right"), [("replace-one", slice(None)), ("add-remove", slice(1, None))])
def test_record_and_replay(adjacency: str, right: slice) -> None:
    """Under the same noise, neighbours give the same search: two candidates, so that all draws are compared."""
    other, other_y = X[:200].copy(), Y[:200].copy()
    other[0], other_y[0] = (1.0, -1.0), "no"
    made, calls = [], None
    for rows, y in ((X[:200], Y[:200]), (other[right], other_y[right])):
        noise = RecordingNoise(3) if calls is None else ReplayingNoise(calls)
        model = pf.LogisticRegression(
            schema=SCHEMA, adjacency=adjacency, mechanism=pf.FunctionalMechanism(), numeric="slope"
        )
        if adjacency == "add-remove":
            model.set_params(expected_rows=200)
        with noise_from(noise):
            ledger = pf.Ledger(epsilon=10.0)
            made.append(search({"fit_intercept": [True, False]}, model, ledger=ledger).fit(rows, y))
        shape = [(call.kind, call.scale, call.values.shape) for call in noise.calls]
        assert calls is None or shape == [(call.kind, call.scale, call.values.shape) for call in calls]
        calls = noise.calls
        assert len(ledger.entries()) == 1
    assert made[0].best_params_ == made[1].best_params_
    np.testing.assert_array_equal(made[0].best_estimator_.coef_, made[1].best_estimator_.coef_)
    assert str(made[0].report_) == str(made[1].report_)


PRINTED = pf.ObjectivePerturbation(calibration="paper", ridge=100.0)


@pytest.mark.parametrize("inside", [True, False], ids=["a setting", "the estimator"])
def test_settings_that_are_not_private_are_refused_by_a_ledger(inside: bool, ledger: pf.Ledger) -> None:
    model = pf.LogisticRegression(schema=SCHEMA, mechanism="objective" if inside else PRINTED)
    settings = [{"mechanism": PRINTED}, {"mechanism": "output"}] if inside else {"fit_intercept": [True, False]}
    with pytest.raises(pf.PrivacyError, match="not private"):
        search(settings, model, ledger=ledger).fit(X, Y)
    assert not ledger.entries()
    assert not search(settings, model).fit(X, Y).report_.private


def test_no_row_to_fit_on_is_refused_before_the_charge(ledger: pf.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failure would show that it is empty; a part without a row to compare on scores 0."""
    model = pf.LogisticRegression(schema=SCHEMA, adjacency="add-remove", expected_rows=100)
    monkeypatch.setattr(holdout, "below_share", lambda drawn, share: np.ones(len(drawn), dtype=bool))
    with pytest.raises(pf.DataError, match="to fit on"):
        search(model=model, ledger=ledger).fit(X, Y)
    assert not ledger.entries()
    monkeypatch.undo()
    assert all(search(model=model, share=0.1).fit(X[:20], Y[:20]).best_estimator_ is not None for _ in range(3))
