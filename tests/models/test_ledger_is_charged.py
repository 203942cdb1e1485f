"""Every way of fitting charges the one ledger, once per fit, before any noise is drawn."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import privfit as pf
from privfit.mechanisms import Perturbation
from privfit.privacy import SecureNoise
from privfit.rows import CachedDesign, Rows

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 3))
TARGETS = {
    pf.LinearRegression: np.clip(X[:, 0] + RNG.normal(0, 0.1, 120), -1, 1),
    pf.LogisticRegression: (X[:, 0] > 0).astype(int),
}
SCHEMAS = {
    pf.LinearRegression: pf.Schema.box(-1, 1, target=(-1, 1)),
    pf.LogisticRegression: pf.Schema.box(-1, 1, target=[0, 1]),
}
ESTIMATORS = list(TARGETS)

pytestmark = [
    pytest.mark.filterwarnings("error:.*Scoring failed.*:UserWarning"),
    pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning"),
]


@pytest.fixture
def ledger(tmp_path):
    return pf.Ledger(tmp_path / "ledger.db", epsilon=10.0)


@pytest.fixture(params=ESTIMATORS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


DRAWS = ("laplace", "linf", "l2")


def model(kind, ledger, epsilon=0.1, **params):
    return kind(epsilon, **{"schema": SCHEMAS[kind], "ledger": ledger, **params})


def prices(ledger) -> list[float]:
    return [entry.epsilon for entry in ledger.entries()]


@pytest.fixture
def order(monkeypatch):
    """Reading rows, charging and drawing, in the order in which they happen."""
    seen = []
    for owner, name, word in (
        (Rows, "sum", "read"),
        (CachedDesign, "read", "read"),
        (pf.Ledger, "charge", "charge"),
        *((SecureNoise, kind, "draw") for kind in DRAWS),
    ):
        original = getattr(owner, name)

        def spy(self, *args, _original=original, _word=word, **options):
            seen.append(_word)
            result = _original(self, *args, **options)
            seen.append(f"{_word} done")
            return result

        monkeypatch.setattr(owner, name, spy)
    return seen


# -- the ways of fitting ---------------------------------------------------------------------------


def test_a_fit_is_one_entry_with_the_event_of_its_report(kind, ledger):
    fitted = model(kind, ledger, 0.3).fit(X, TARGETS[kind])
    (entry,) = ledger.entries()
    assert entry.event.to_dict() == fitted.report_.event
    assert (entry.epsilon, entry.delta, entry.mechanism) == (0.3, 0.0, fitted.report_.mechanism)
    assert ledger.spent == fitted.report_.epsilon == 0.3


def test_an_entry_says_which_model_of_which_target_from_which_table_and_what_for(kind, ledger):
    study = ledger.with_note("readmission study")
    fitted = clone(model(kind, study)).fit(X, TARGETS[kind])
    (entry,) = ledger.entries()
    assert (entry.model, entry.target, entry.note) == (kind.__name__, fitted.schema_.target.name, "readmission study")
    assert (entry.dataset, entry.version) == ("array", pf.__version__)


def test_reports_and_saved_models_carry_the_head_of_the_chain_at_their_charge(kind, ledger, tmp_path):
    fits = [model(kind, ledger).fit(X, TARGETS[kind]) for _ in range(3)]
    for place, (fitted, entry) in enumerate(zip(fits, ledger.entries(), strict=True), 1):
        assert fitted.report_.receipt == {
            "ledger": fits[0].report_.receipt["ledger"],
            "entry": place,
            "head": entry.hash,
        }
        fitted.save(tmp_path / "model.json")
        assert ledger.verify(pf.load_model(tmp_path / "model.json").report_.receipt).entries == 3
    without = replace(fits[0].report_, receipt={})
    assert (without, str(without)) == (fits[0].report_, str(fits[0].report_))  # it is no part of what was promised


def test_every_thread_reports_its_own_entry(ledger):
    y = TARGETS[pf.LinearRegression]
    models = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(model(pf.LinearRegression, ledger, 0.1 + place / 1000).fit)(X, y) for place in range(12)
    )
    by_entry = {entry.id: entry for entry in ledger.entries()}
    for fitted in models:
        entry = by_entry[fitted.report_.receipt["entry"]]
        assert (entry.epsilon, entry.hash) == (fitted.epsilon, fitted.report_.receipt["head"])
    assert len({fitted.report_.receipt["entry"] for fitted in models}) == 12


def test_a_fit_that_no_ledger_of_the_user_paid_for_has_no_receipt(kind):
    assert kind(schema=SCHEMAS[kind]).fit(X, TARGETS[kind]).report_.receipt == {}
    assert kind(schema=SCHEMAS[kind], random_state=0).fit(X, TARGETS[kind]).report_.receipt == {}


def test_a_refit_pays_again(kind, ledger):
    fitted = model(kind, ledger).fit(X, TARGETS[kind])
    fitted.fit(X, TARGETS[kind])
    fitted.set_params(epsilon=0.25).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1, 0.1, 0.25]


def test_predicting_scoring_copying_and_saving_are_free(kind, ledger, tmp_path):
    y = TARGETS[kind]
    fitted = model(kind, ledger).fit(X, y)
    fitted.predict(X)
    fitted.score(X, y)
    fitted.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert prices(ledger) == [0.1]


@pytest.mark.parametrize("times", [1, 3])
def test_clones_charge_the_same_ledger(kind, ledger, times):
    original = model(kind, ledger)
    for _ in range(times):
        clone(original).fit(X, TARGETS[kind])
    clone(clone(original)).fit(X, TARGETS[kind])
    assert ledger.spent == pytest.approx(0.1 * (times + 1), rel=1e-12)
    assert prices(ledger) == [0.1] * (times + 1)


@pytest.mark.parametrize(
    "again",
    [copy.deepcopy, copy.copy, lambda fitted: pickle.loads(pickle.dumps(fitted)), clone],
    ids=["deepcopy", "copy", "pickle", "clone"],
)
def test_a_copy_of_a_fitted_model_pays_for_its_own_fits_from_the_same_ledger(kind, ledger, again):
    fitted = model(kind, ledger).fit(X, TARGETS[kind])
    again(fitted).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1, 0.1]


def test_a_model_stored_by_joblib_charges_the_ledger_that_it_was_made_with(kind, ledger, tmp_path):
    joblib.dump(model(kind, ledger), tmp_path / "model.joblib")
    joblib.load(tmp_path / "model.joblib").fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1]


def test_cross_val_score_pays_for_every_fold(kind, ledger):
    scores = cross_val_score(model(kind, ledger), X, TARGETS[kind], cv=4, error_score="raise")
    assert len(scores) == 4
    assert prices(ledger) == [0.1] * 4


def test_cross_validate_in_worker_processes_pays_for_every_fold_from_a_temporary_ledger():
    """One estimator only: worker processes take seconds to start."""
    ledger, y = pf.Ledger(epsilon=0.6), TARGETS[pf.LinearRegression]
    results = cross_validate(
        model(pf.LinearRegression, ledger), X, y, cv=5, n_jobs=2, error_score="raise", return_estimator=True
    )
    assert prices(ledger) == [0.1] * 5
    assert ledger.spent == 0.5
    returned = results["estimator"][0]
    returned.fit(X, y)
    assert ledger.remaining == 0
    with pytest.raises(pf.BudgetExceeded):
        returned.fit(X, y)


def test_grid_search_in_worker_processes_pays_for_every_candidate_fold_and_the_refit(ledger):
    grid = {"epsilon": [0.1, 0.2], "fit_intercept": [True, False]}
    search = GridSearchCV(model(pf.LogisticRegression, ledger), grid, cv=2, n_jobs=2, error_score="raise")
    search.fit(X, TARGETS[pf.LogisticRegression])
    assert sorted(prices(ledger)[:-1]) == [0.1] * 4 + [0.2] * 4
    assert prices(ledger)[-1] == search.best_params_["epsilon"]
    assert search.best_estimator_.ledger is ledger


def test_threads_of_a_grid_search_pay_for_every_candidate_fold_and_the_refit(kind, ledger):
    search = GridSearchCV(model(kind, ledger), {"epsilon": [0.1, 0.2]}, cv=3, n_jobs=4, error_score="raise")
    with joblib.parallel_config(backend="threading"):
        search.fit(X, TARGETS[kind])
    assert sorted(prices(ledger)[:-1]) == [0.1] * 3 + [0.2] * 3
    assert prices(ledger)[-1] == search.best_params_["epsilon"]


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_grid_search_stops_when_the_budget_is_spent(kind, tmp_path, n_jobs):
    ledger = pf.Ledger(tmp_path / "small.db", epsilon=0.5)
    search = GridSearchCV(model(kind, ledger), {"epsilon": [0.1, 0.2]}, cv=3, n_jobs=n_jobs, error_score="raise")
    with joblib.parallel_config(backend="threading"), pytest.raises(pf.BudgetExceeded):
        search.fit(X, TARGETS[kind])
    assert 0.4 <= ledger.spent <= 0.5
    assert not hasattr(search, "best_estimator_")


def test_scikit_learn_cannot_make_more_of_a_budget_by_swallowing_the_refusal(kind, tmp_path):
    ledger = pf.Ledger(tmp_path / "small.db", epsilon=0.2)
    with pytest.warns(Warning, match="2 fits failed"):
        scores = cross_val_score(model(kind, ledger), X, TARGETS[kind], cv=4, error_score=np.nan)
    assert np.isnan(scores).sum() == 2
    assert prices(ledger) == [0.1] * 2


def test_a_pipeline_pays_once_per_fit(kind, ledger):
    pipeline = Pipeline([("same", FunctionTransformer()), ("model", model(kind, ledger))])
    pipeline.fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1]
    cross_val_score(pipeline, X, TARGETS[kind], cv=3, error_score="raise")
    clone(pipeline).set_params(model__epsilon=0.2).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1] * 4 + [0.2]


def test_one_against_the_rest_pays_for_every_class(ledger):
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    one_vs_rest = OneVsRestClassifier(model(pf.LogisticRegression, ledger, 0.5)).fit(X, y)
    assert set(one_vs_rest.predict(X)) <= {0, 1, 2}
    assert prices(ledger) == [0.5] * 3
    assert ledger.spent == 1.5


@pytest.mark.parametrize("repair", ["floor", "trim", "ridge", None])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_every_form_of_the_mechanism_is_one_entry_at_its_epsilon(kind, ledger, calibration, repair):
    model(kind, ledger, 2.0, mechanism=pf.FunctionalMechanism(calibration, repair)).fit(X, TARGETS[kind])
    assert prices(ledger) == [2.0]


def test_a_mechanism_that_draws_again_pays_once_for_all_draws(kind, ledger, monkeypatch, order):
    from privfit.mechanisms.functional import functional

    answers = iter([False, False, True])
    monkeypatch.setattr(functional, "is_bounded", lambda matrix: next(answers))
    monkeypatch.setattr(SecureNoise, "one_in", lambda self, count: False)
    model(kind, ledger, 0.5, mechanism=pf.FunctionalMechanism(repair="rerun", noise="laplace")).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.5]
    assert order.count("draw") == 3
    assert order.count("charge") == 1


def test_a_mechanism_that_gives_up_has_paid(kind, ledger, monkeypatch, order):
    from privfit.mechanisms.functional import functional

    coins = iter([False, True])
    monkeypatch.setattr(functional, "is_bounded", lambda matrix: False)
    monkeypatch.setattr(SecureNoise, "one_in", lambda self, count: next(coins))
    with pytest.raises(pf.PrivacyError, match="The charge stands"):
        model(kind, ledger, 0.5, mechanism=pf.FunctionalMechanism(repair="rerun", noise="laplace")).fit(
            X, TARGETS[kind]
        )
    assert prices(ledger) == [0.5]
    assert order.count("draw") == 2


@pytest.mark.parametrize(
    "other", [{"adjacency": "add-remove"}, {"rows_per_person": 3}], ids=["adjacency", "rows per person"]
)
def test_a_fit_that_promises_something_else_than_the_ledger_s_entries_warns_and_pays(kind, ledger, other):
    model(kind, ledger).fit(X, TARGETS[kind])
    with pytest.warns(pf.PrivacyWarning, match="Use one ledger for each"):
        model(kind, ledger, **other).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1, 0.1]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows_per_person", [1, 5])
def test_an_entry_says_whom_it_protects(kind, ledger, adjacency, rows_per_person):
    model(kind, ledger, adjacency=adjacency, rows_per_person=rows_per_person).fit(X, TARGETS[kind])
    (entry,) = ledger.entries()
    assert (entry.event.adjacency, entry.event.rows_per_person) == (adjacency, rows_per_person)
    assert entry.epsilon == 0.1


# -- the order of things ---------------------------------------------------------------------------


def test_the_charge_is_written_before_the_first_draw_and_after_the_rows_are_read(kind, ledger, order):
    model(kind, ledger).fit(X, TARGETS[kind])
    assert order[:4] == ["read", "read done", "charge", "charge done"]
    assert order[4:6] == ["draw", "draw done"]
    assert set(order[4:]) == {"draw", "draw done"}


def test_the_charge_can_be_seen_by_others_when_the_first_noise_is_drawn(kind, ledger, monkeypatch):
    seen = []

    def looking(original):
        return lambda self, values, scale: seen.append(pf.Ledger(ledger.path).spent) or original(self, values, scale)

    for kind_of_noise in DRAWS:
        monkeypatch.setattr(SecureNoise, kind_of_noise, looking(getattr(SecureNoise, kind_of_noise)))
    model(kind, ledger).fit(X, TARGETS[kind])
    assert set(seen) == {0.1}


def test_a_spent_budget_refuses_before_rows_are_read_and_before_noise_is_drawn(kind, tmp_path, order):
    ledger = pf.Ledger(tmp_path / "small.db", epsilon=0.05)
    with pytest.raises(pf.BudgetExceeded, match="Nothing was charged or released"):
        model(kind, ledger).fit(X, TARGETS[kind])
    assert order == []
    assert ledger.entries() == []


def test_a_budget_spent_by_another_while_rows_are_read_refuses_before_noise_is_drawn(kind, tmp_path, monkeypatch):
    ledger = pf.Ledger(tmp_path / "small.db", epsilon=0.1)
    drawn = []

    def while_another_spends(read):
        return lambda self, *args: (pf.Ledger(ledger.path).charge(0.05) and None) or read(self, *args)

    for owner, name in ((Rows, "sum"), (CachedDesign, "read")):
        monkeypatch.setattr(owner, name, while_another_spends(getattr(owner, name)))
    for noise in DRAWS:
        monkeypatch.setattr(SecureNoise, noise, lambda self, values, scale: drawn.append(scale) or values)
    with pytest.raises(pf.BudgetExceeded):
        model(kind, ledger).fit(X, TARGETS[kind])
    assert drawn == []
    assert prices(ledger) == [0.05]


# -- exceptions ------------------------------------------------------------------------------------


class Broken(RuntimeError):
    """What the tests below raise in the middle of a fit."""


def raising(*args, **options):
    raise Broken


def test_noise_that_fails_leaves_the_charge_and_no_model(kind, ledger, monkeypatch):
    for noise in DRAWS:
        monkeypatch.setattr(SecureNoise, noise, raising)
    estimator = model(kind, ledger)
    with pytest.raises(Broken):
        estimator.fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1]
    assert not hasattr(estimator, "coef_")
    assert not hasattr(estimator, "report_")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_during_the_draw_leaves_the_charge(kind, ledger, monkeypatch, error):
    def interrupted(self, values, scale):
        raise error

    for noise in DRAWS:
        monkeypatch.setattr(SecureNoise, noise, interrupted)
    with pytest.raises(error):
        model(kind, ledger).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1]


def test_a_solver_that_fails_leaves_the_charge(kind, ledger, monkeypatch):
    for mechanism in (pf.FunctionalMechanism, Perturbation, pf.ObjectivePerturbation):
        monkeypatch.setattr(mechanism, "solve", raising)
    with pytest.raises(Broken):
        model(kind, ledger).fit(X, TARGETS[kind])
    assert prices(ledger) == [0.1]


def test_rows_that_cannot_be_read_cost_nothing(kind, ledger, monkeypatch, order):
    monkeypatch.setattr(Rows, "sum", raising)
    monkeypatch.setattr(CachedDesign, "read", raising)
    with pytest.raises(Broken):
        model(kind, ledger).fit(X, TARGETS[kind])
    assert order == []
    assert ledger.entries() == []


def with_nan() -> np.ndarray:
    spoiled = X.copy()
    spoiled[-1, 1] = np.nan
    return spoiled


REFUSED = {
    "NaN": (with_nan(), None, {}),
    "a wrong number of columns": (X, None, {"schema": pf.Schema([pf.Numeric("a", -1, 1)], pf.Numeric("t", -1, 1))}),
    "no rows": (X[:0], slice(0, 0), {}),
    "fewer targets than rows": (X, slice(0, 50), {}),
    "no schema": (X, None, {"schema": None}),
    "no epsilon": (X, None, {"epsilon": 0.0}),
    "a negative epsilon": (X, None, {"epsilon": -0.1}),
    "a delta of one": (X, None, {"delta": 1.0}),
    "an unknown adjacency": (X, None, {"adjacency": "other"}),
    "an unknown mechanism": (X, None, {"mechanism": "magic"}),
    "an unknown repair": (X, None, {"mechanism": pf.FunctionalMechanism(repair="glue")}),
    "no rows per person": (X, None, {"rows_per_person": 0}),
    "an unknown way with numbers": (X, None, {"numeric": "curves"}),
    "a seed": (X, None, {"random_state": 0}),
    "a random state": (X, None, {"random_state": np.random.RandomState(0)}),
    "a table declared public": (X, None, {"schema": "public"}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_fit_that_is_refused_costs_nothing_and_draws_nothing(kind, ledger, reason, order):
    data, part, params = REFUSED[reason]
    y = TARGETS[kind] if part is None else TARGETS[kind][part]
    estimator = model(kind, ledger, **params)
    with pytest.raises(ValueError) as refusal:  # every refusal of input is a ValueError, as in scikit-learn
        estimator.fit(data, y)
    assert str(refusal.value)
    assert not isinstance(refusal.value, pf.BudgetExceeded)
    assert "draw" not in order
    assert "charge" not in order
    assert ledger.entries() == []
    assert not hasattr(estimator, "coef_")


def test_an_unknown_level_costs_nothing_and_is_not_quoted(ledger, order):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {"age": [20.0, 30.0, 40.0], "region": ["north", "south", "secretville"], "income": [1.0, 2.0, 3.0]}
    )
    schema = pf.Schema(
        [pf.Numeric("age", 0, 100), pf.Category("region", ["north", "south"])], target=pf.Numeric("income", 0, 10)
    )
    with pytest.raises(ValueError) as refusal:
        pf.LinearRegression(0.1, schema=schema, ledger=ledger).fit(table)
    assert "secretville" not in str(refusal.value)
    assert "draw" not in order
    assert ledger.entries() == []


def test_an_unknown_class_costs_nothing(ledger, order):
    y = TARGETS[pf.LogisticRegression].copy()
    y[7] = 5
    with pytest.raises(ValueError):
        model(pf.LogisticRegression, ledger).fit(X, y)
    assert "draw" not in order
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "params",
    [{"random_state": 0}, {"random_state": np.random.default_rng(0)}, {"schema": "public"}],
    ids=["seed", "generator", "public"],
)
def test_a_fit_that_is_not_private_is_refused_by_name_and_before_rows_are_read(kind, ledger, params, order):
    with pytest.raises(pf.PrivacyError, match="A ledger was given to a fit that is not private"):
        model(kind, ledger, **params).fit(X, TARGETS[kind])
    assert order == []
    assert ledger.entries() == []


def test_a_seeded_fit_without_a_ledger_says_that_it_is_not_private_and_charges_none(kind, monkeypatch):
    from privfit.privacy.ledger import ledger as ledger_module

    monkeypatch.setattr(ledger_module, "_process_ledger", None)
    fitted = model(kind, None, random_state=0).fit(X, TARGETS[kind])
    assert fitted.report_.private is False
    assert ledger_module.process_ledger().entries() == []


@pytest.mark.parametrize("impostor", [1.0, "ledger.db", {"epsilon": 1.0}], ids=["number", "path", "dict"])
def test_what_is_not_a_ledger_is_refused(kind, impostor):
    with pytest.raises(pf.PrivacyError, match="ledger="):
        model(kind, impostor).fit(X, TARGETS[kind])
