"""The ledger: what it remembers, what it refuses, and that there is only one of it."""

from __future__ import annotations

import copy
import io
import math
import multiprocessing
import os
import pickle
import sqlite3
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import joblib
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import privfit as pf
from privfit.privacy import Budget, Event, exact, process_ledger
from privfit.privacy.budget import rho_of
from privfit.privacy.ledger import ledger as ledger_module


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def event(epsilon=0.1, **facts) -> Event:
    return Event.laplace("test", Budget(epsilon), sensitivity=7, adjacency="replace-one", **facts)


def charges_that_succeed(ledger, epsilon, tries) -> int:
    done = 0
    for _ in range(tries):
        try:
            ledger.charge(epsilon)
        except pf.BudgetExceeded:
            continue
        done += 1
    return done


# -- spending --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("part", "times", "whole"), [(0.1, 10, 1.0), (0.1, 3, 0.3), (0.01, 7, 0.07)])
def test_a_budget_is_spent_to_the_last_part_and_not_beyond(new, part, times, whole):
    ledger = new(epsilon=whole)
    for _ in range(times):
        ledger.charge(part)
    assert (ledger.spent, ledger.remaining) == (whole, 0.0)
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(part)
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(5e-324)
    assert len(ledger.entries()) == times


def test_a_refusal_says_what_was_asked_and_what_is_left_and_writes_nothing(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0, delta=1e-6)
    ledger.charge(0.75)
    before = kept.content()
    with pytest.raises(
        pf.BudgetExceeded, match=r"epsilon 0\.5 was asked for, and the ledger has epsilon 0\.25 and delta 1e-06 left"
    ) as error:
        ledger.charge(0.5)
    assert isinstance(error.value, pf.LedgerError)
    assert kept.content() == before
    ledger.charge(0.25)
    assert ledger.remaining == 0


def test_a_refusal_carries_what_is_left_across_processes_and_it_can_be_spent(new):
    ledger = new(epsilon=1.0, delta=1e-6)
    ledger.charge(0.1, 1e-7)
    ledger.charge(0.12345678901234567)
    with pytest.raises(pf.BudgetExceeded) as refusal:
        ledger.charge(0.9)
    again = pickle.loads(pickle.dumps(refusal.value))
    assert str(again) == str(refusal.value)
    assert tuple(again.remaining) == tuple(refusal.value.remaining) == tuple(ledger.remaining)
    ledger.charge(*again.remaining)
    assert ledger.remaining < 1e-15


def test_only_another_promise_warns(new, recwarn):
    warnings.simplefilter("always", pf.PrivacyWarning)
    ledger = new(epsilon=10.0)
    ledger.charge(0.1, mechanism="outside")  # its promise is unknown
    for _ in range(2):
        ledger.check(event())
        ledger.charge(event())
    assert [w for w in recwarn if issubclass(w.category, pf.PrivacyWarning)] == []
    for other in (event(rows_per_person=2), replace(event(), adjacency="add-remove")):
        with pytest.warns(pf.PrivacyWarning, match="do not add up to one guarantee"):
            ledger.check(other)


def test_a_release_made_elsewhere_that_states_another_promise_warns_too(new):
    ledger = new(epsilon=10.0)
    ledger.charge(event())
    for stated in ({"adjacency": "add-remove"}, {"rows_per_person": 2}):
        with pytest.warns(pf.PrivacyWarning, match="do not add up to one guarantee"):
            ledger.check(Event("outside", 0.1, elsewhere=True, **stated))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger.check(Event("outside", 0.1, elsewhere=True))


def test_check_refuses_what_charge_would_refuse_and_charges_nothing(new):
    ledger = new(epsilon=0.5)
    ledger.check(event(0.5))
    assert ledger.entries() == []
    with pytest.raises(pf.BudgetExceeded):
        ledger.check(event(0.6))
    ledger.charge(event(0.5))
    with pytest.raises(pf.BudgetExceeded):
        ledger.check(event(0.1))


def test_deltas_are_spent_too(new):
    ledger = new(epsilon=1.0, delta=3e-6)
    for _ in range(3):
        ledger.charge(0.1, 1e-6)
    assert tuple(ledger.spent) == (0.3, 3e-6)
    assert tuple(ledger.remaining) == (0.7, 0.0)
    with pytest.raises(pf.BudgetExceeded, match="delta 1e-06 was asked"):
        ledger.charge(0.1, 1e-6)
    ledger.charge(0.7)


@pytest.mark.parametrize("price", [-1.0, 0.0, math.nan, math.inf, "1", None, True], ids=repr)
def test_a_price_that_is_no_price_is_refused_and_nothing_is_written(new, price):
    ledger = new(epsilon=1.0)
    with pytest.raises(pf.PrivacyError):
        ledger.charge(price)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "refund", [{"epsilon": -0.5}, {"epsilon": 0.1, "delta": -1e-6}, {"epsilon": 0.1, "rho": -0.5}], ids=repr
)
def test_no_event_can_give_budget_back(new, refund):
    ledger = new(epsilon=1.0, delta=1e-6)
    ledger.charge(1.0)
    with pytest.raises(pf.PrivacyError):
        ledger.charge(Event("refund", **refund))
    assert (ledger.spent, len(ledger.entries())) == (1.0, 1)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(1e-3, 0.2), max_size=4), st.lists(st.floats(0, 1e-7), min_size=4, max_size=4))
@example([0.1, 0.12345678901234567], [1e-8, 1.2345678901234567e-08, 0.0, 0.0])
@example([1 / 3 / 2, 1 / 7], [1e-9 / 3, 1e-9 / 7, 0.0, 0.0])
def test_what_is_said_to_remain_can_be_spent_and_no_more_than_a_hair_is_lost(epsilons, deltas):
    ledger = pf.Ledger(epsilon=1.0, delta=1e-6)
    for epsilon, delta in zip(epsilons, deltas, strict=False):
        ledger.charge(epsilon, delta)
    true = 1 - sum(map(exact, epsilons), Fraction(0))
    spent, left = ledger.spent, ledger.remaining
    assert exact(spent) >= 1 - true
    assert 0 <= true - exact(left) < Fraction(1, 10**15)
    ledger.charge(*left)
    assert ledger.remaining < 1e-15


def test_gaussian_releases_compose_by_rho_and_need_a_delta(new):
    ledger = new(epsilon=1.0, delta=1e-6)
    rho = rho_of(1.0, 5e-7) / 16
    for _ in range(15):
        ledger.charge(Event("gaussian", 0.25, 1e-7, rho))
    assert ledger.spent < 1.0
    assert ledger.spent.delta == 9e-7  # half for the pool, and four releases that could have been added up as stated
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(Event("gaussian", 0.25, 1e-7, 2 * rho))
    ledger.charge(float(ledger.remaining))
    assert len(ledger.entries()) == 16


def test_a_gaussian_release_is_refused_before_it_is_written_where_there_is_no_delta(new):
    ledger = new(epsilon=1.0)
    with pytest.raises(pf.BudgetExceeded, match="delta 0 left"):
        ledger.charge(Event("gaussian", 0.1, 1e-7, 1e-6))
    with pytest.raises(pf.PrivacyError, match="no delta"):
        ledger.charge(Event("gaussian", 0.0, 0.0, 1e-6))
    assert ledger.entries() == []


def test_a_ledger_without_a_limit_adds_gaussian_releases_up_as_they_state_themselves(new):
    ledger = new(epsilon=math.inf)
    for _ in range(2):
        ledger.charge(Event.gaussian("gaussian", Budget(0.5, 1e-7), sensitivity=3, adjacency="replace-one"))
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 2e-7)


# -- making and opening ----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, -math.inf, "1", True, [1.0]], ids=repr)
def test_no_ledger_is_made_with_a_budget_that_is_none(kept, epsilon):
    with pytest.raises(pf.PrivacyError, match="epsilon="):
        pf.Ledger(kept.address, epsilon=epsilon)
    assert not kept.exists()


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("delta", [1.0, -1e-9, math.nan, math.inf, "0", True], ids=repr)
def test_no_ledger_is_made_with_a_delta_that_is_none(kept, epsilon, delta):
    with pytest.raises(pf.PrivacyError, match="delta="):
        pf.Ledger(kept.address, epsilon=epsilon, delta=delta)
    assert not kept.exists()


def test_a_ledger_without_a_budget_is_refused(kept):
    with pytest.raises(pf.LedgerError, match="without a budget"):
        pf.Ledger()
    with pytest.raises(pf.LedgerError, match="needs a budget"):
        pf.Ledger(kept.address)
    assert not kept.exists()


def test_making_a_ledger_leaves_one_file_and_reading_it_leaves_no_other(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.1)
    assert ledger.spent == 0.1
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_a_reopened_ledger_remembers_everything(kept):
    first = pf.Ledger(kept.address, epsilon=1.0, delta=1e-6)
    first.charge(event(0.25), dataset="people.parquet")
    first.charge(0.5, 1e-7, mechanism="elsewhere")
    again = pf.Ledger(kept.address)
    assert (again.epsilon, again.delta) == (1.0, 1e-6)
    assert tuple(again.spent) == (0.75, 1e-7)
    one, two = again.entries()
    assert (one.id, one.dataset, one.mechanism, one.epsilon, one.delta, one.event) == (
        1,
        "people.parquet",
        "test",
        0.25,
        0.0,
        event(0.25),
    )
    assert (two.id, two.dataset, two.mechanism, two.epsilon, two.delta) == (2, "", "elsewhere", 0.5, 1e-7)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(one.time)) < timedelta(minutes=5)
    again.charge(0.25)
    assert first.remaining == 0


@pytest.mark.parametrize("path_type", [str, lambda path: path])
def test_the_same_budget_may_be_repeated_when_opening(path, path_type):
    pf.Ledger(path, epsilon=0.3, delta=1e-6).charge(0.1)
    assert pf.Ledger(path_type(path), epsilon=0.3, delta=1e-6).spent == 0.1
    assert pf.Ledger(path_type(path), epsilon=0.3).spent == 0.1


@pytest.mark.parametrize(
    "other",
    [{"epsilon": 2.0}, {"epsilon": math.inf}, {"epsilon": math.nan}, {"delta": 1e-5}, {"delta": 0.0}, {"epsilon": "x"}],
)
def test_a_different_budget_is_refused_and_the_first_one_stands(kept, other):
    pf.Ledger(kept.address, epsilon=1.0, delta=1e-6)
    with pytest.raises(pf.LedgerError, match="A budget does not change"):
        pf.Ledger(kept.address, **other)
    again = pf.Ledger(kept.address)
    assert (again.epsilon, again.delta) == (1.0, 1e-6)


def test_a_relative_path_stays_the_same_file_when_the_folder_changes(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    ledger = pf.Ledger("ledger.db", epsilon=1.0)
    (path.parent / "elsewhere").mkdir()
    monkeypatch.chdir(path.parent / "elsewhere")
    ledger.charge(0.5)
    assert pf.Ledger(path).spent == 0.5


def test_a_symbolic_link_is_the_same_ledger(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    link = path.parent / "link.db"
    link.symlink_to(path)
    pf.Ledger(link).charge(0.75)
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(0.5)


def test_ledgers_without_a_path_are_apart_from_each_other():
    one, two = pf.Ledger(epsilon=1.0), pf.Ledger(epsilon=1.0)
    one.charge(0.5)
    assert (one.spent, two.spent) == (0.5, 0.0)
    assert one.path != two.path


def test_many_who_make_the_same_ledger_at_once_get_one(kept):
    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: pf.Ledger(kept.address, epsilon=1.0), range(16)))
    for ledger in ledgers[:10]:
        ledger.charge(0.1)
    with pytest.raises(pf.BudgetExceeded):
        ledgers[-1].charge(0.1)
    assert len(ledgers[0].entries()) == 10


def test_many_who_make_the_same_file_at_once_leave_one(path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: pf.Ledger(path, epsilon=1.0), range(16)))
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_charges_are_synced_with_their_folder(path):
    """synchronous = EXTRA (3): with less, power lost after a commit can bring the journal back and take the charge
    away.
    """
    with pf.Ledger(path, epsilon=1.0)._placed.opened() as (records, _):
        assert records.connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert records.connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# -- copies are references -------------------------------------------------------------------------


def through_joblib(ledger):
    buffer = io.BytesIO()
    joblib.dump(ledger, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy inside": lambda ledger: copy.deepcopy([{"ledger": ledger}])[0]["ledger"],
    "pickle": lambda ledger: pickle.loads(pickle.dumps(ledger)),
    "oldest pickle": lambda ledger: pickle.loads(pickle.dumps(ledger, protocol=0)),
    "joblib": through_joblib,
    "clone": lambda ledger: clone(pf.LinearRegression(ledger=ledger)).ledger,
    "set_params": lambda ledger: pf.LinearRegression().set_params(ledger=ledger).get_params()["ledger"],
    "pickled estimator": lambda ledger: pickle.loads(pickle.dumps(pf.LogisticRegression(ledger=ledger))).ledger,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("temporary", [True, False])
def test_a_copy_is_a_reference_to_the_one_budget(kept, how, temporary):
    ledger = pf.Ledger(None if temporary else kept.address, epsilon=1.0, delta=1e-6)
    again = COPIES[how](ledger)
    assert (again.epsilon, again.delta, again.path) == (1.0, 1e-6, ledger.path)
    again.charge(0.75)
    assert ledger.spent == 0.75
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(0.5)
    ledger.charge(0.25)
    with pytest.raises(pf.BudgetExceeded):
        again.charge(0.01)


def test_a_pickle_holds_no_budget_of_its_own(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    stored = pickle.dumps(ledger)
    ledger.charge(0.75)
    assert pickle.loads(stored).remaining == 0.25


def test_a_pickle_of_a_ledger_that_is_gone_is_refused_when_it_is_used(kept):
    stored = pickle.dumps(pf.Ledger(kept.address, epsilon=1.0))
    kept.remove()
    for use in USES.values():
        with pytest.raises(pf.LedgerError, match="gone"):
            use(pickle.loads(stored))
    assert not kept.exists()


def test_a_pickled_model_predicts_without_its_ledger(kept):
    table = np.linspace(-1, 1, 50).reshape(-1, 1)
    model = pf.LinearRegression(
        0.5, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=pf.Ledger(kept.address, epsilon=1.0)
    ).fit(table, table[:, 0])
    stored = pickle.dumps(model)
    kept.remove()
    loaded = pickle.loads(stored)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    with pytest.raises(pf.LedgerError, match="gone"):
        loaded.fit(table, table[:, 0])


def test_a_pickle_cannot_bring_a_larger_budget_along(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    forged = copy.copy(pickle.loads(pickle.dumps(ledger)))
    forged._placed = replace(forged._placed, epsilon=100.0)
    with pytest.raises(pf.LedgerError, match="replaced"):
        forged.charge(2.0)


def test_a_pickle_of_a_ledger_that_was_replaced_is_refused(kept):
    stored = pickle.dumps(pf.Ledger(kept.address, epsilon=1.0))
    kept.remove()
    pf.Ledger(kept.address, epsilon=1.0)
    for use in USES.values():
        with pytest.raises(pf.LedgerError, match="replaced"):
            use(pickle.loads(stored))


USES = {
    "charge": lambda ledger: ledger.charge(0.1),
    "check": lambda ledger: ledger.check(event()),
    "spent": lambda ledger: ledger.spent,
    "remaining": lambda ledger: ledger.remaining,
    "entries": lambda ledger: ledger.entries(),
}


@pytest.mark.parametrize("use", USES)
def test_a_ledger_whose_file_is_gone_refuses_and_is_not_started_again(kept, use):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    kept.remove()
    with pytest.raises(pf.LedgerError, match="gone"):
        USES[use](ledger)
    assert not kept.exists()


@pytest.mark.parametrize("use", USES)
def test_a_file_that_vanishes_between_two_looks_is_not_started_again(path, use, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1.0)
    path.unlink()
    looked, facts = os.stat, os.stat(path.parent)
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", lambda asked, **told: facts if asked == path else looked(asked, **told))
        with pytest.raises(pf.LedgerError, match="cannot be read or written"):
            USES[use](ledger)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("use", USES)
def test_a_ledger_whose_file_was_replaced_by_another_refuses(kept, use):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    ledger.charge(0.9)
    other = kept.other()
    other.make(epsilon=1.0)
    kept.remove()
    other.move_to(kept)
    with pytest.raises(pf.LedgerError, match="replaced"):
        USES[use](ledger)
    assert pf.Ledger(kept.address).entries() == []


def test_a_ledger_that_was_moved_away_and_back_goes_on(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    ledger.charge(0.5)
    away = kept.other()
    kept.move_to(away)
    with pytest.raises(pf.LedgerError):
        ledger.charge(0.1)
    away.move_to(kept)
    ledger.charge(0.5)
    assert ledger.remaining == 0


# -- many at once ----------------------------------------------------------------------------------


def test_threads_spend_exactly_what_there_is(kept):
    ledger = pf.Ledger(kept.address, epsilon=0.3)
    with ThreadPoolExecutor(8) as pool:
        succeeded = sum(pool.map(lambda _: charges_that_succeed(ledger, 0.01, 6), range(8)))
    assert succeeded == len(ledger.entries()) == 30
    assert ledger.remaining == 0


def test_spawned_processes_that_are_handed_a_ledger_spend_from_it():
    ledger = pf.Ledger(epsilon=0.1)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        succeeded = [pool.submit(charges_that_succeed, ledger, 0.01, 8) for _ in range(2)]
        assert sum(future.result() for future in succeeded) == len(ledger.entries()) == 10


# -- order and time --------------------------------------------------------------------------------


def test_a_clock_that_jumps_changes_neither_order_nor_total(kept, monkeypatch):
    times = iter(["2030-01-01", "1970-01-01", "2024-02-29", "2024-02-29", "9999-12-31"])

    class Jumping(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromisoformat(next(times)).replace(tzinfo=tz)

    ledger = pf.Ledger(kept.address, epsilon=1.0)
    monkeypatch.setattr(ledger_module, "datetime", Jumping)
    for part in range(1, 5):
        ledger.charge(part / 10)
    entries = ledger.entries()
    assert [entry.epsilon for entry in entries] == [0.1, 0.2, 0.3, 0.4]
    assert [entry.id for entry in entries] == [1, 2, 3, 4]
    assert [entry.time[:4] for entry in entries] == ["2030", "1970", "2024", "2024"]
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(0.1)


def test_ids_are_never_used_twice(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.1)
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(5.0)
    ledger.charge(0.2)
    assert [entry.id for entry in ledger.entries()] == [1, 2]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT seq FROM sqlite_sequence").fetchall() == [(2,)]
    connection.close()


# -- the ledger of fits that were given none -------------------------------------------------------


@pytest.fixture
def fresh_process_ledger(monkeypatch):
    monkeypatch.setattr(ledger_module, "_process_ledger", None)
    return process_ledger()


def fit_without_ledger(epsilon):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    return pf.LinearRegression(epsilon, schema=pf.Schema.box(-1, 1, target=(-1, 1))).fit(X, X[:, 0])


def test_the_process_ledger_is_one_and_has_no_cap(fresh_process_ledger):
    assert process_ledger() is fresh_process_ledger
    fresh_process_ledger.charge(1e6)
    fresh_process_ledger.charge(1e6, 0.5)
    assert tuple(fresh_process_ledger.spent) == (2e6, 0.5)
    assert fresh_process_ledger.remaining == math.inf


def test_fits_without_a_ledger_warn_of_the_running_total_from_the_second_on(fresh_process_ledger, recwarn):
    warnings.simplefilter("always", pf.PrivacyWarning)
    fit_without_ledger(0.5)
    assert [w for w in recwarn if issubclass(w.category, pf.PrivacyWarning)] == []
    with pytest.warns(pf.PrivacyWarning, match=r"^2 private fits in this process have spent epsilon 0\.75 together"):
        fit_without_ledger(0.25)
    with pytest.warns(
        pf.PrivacyWarning, match=r"^3 private fits in this process have spent epsilon 1\.75 together"
    ) as caught:
        fit_without_ledger(1.0)
    assert caught[0].filename == __file__
    assert len(fresh_process_ledger.entries()) == 3


def test_fits_with_a_ledger_of_their_own_neither_warn_nor_count_in_the_process_ledger(fresh_process_ledger, recwarn):
    warnings.simplefilter("always", pf.PrivacyWarning)
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    model = pf.LinearRegression(0.1, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=pf.Ledger(epsilon=1.0))
    for _ in range(3):
        model.fit(X, X[:, 0])
    assert fresh_process_ledger.entries() == []
    assert [w for w in recwarn if issubclass(w.category, pf.PrivacyWarning)] == []


def test_what_was_spent_beyond_all_floats_is_told_as_endless(new):
    ledger = new(epsilon=math.inf)
    for _ in range(3):
        ledger.charge(1.5e308)
    assert ledger.spent.epsilon == math.inf
    ledger.charge(0.5)
    assert len(ledger.entries()) == 4
