"""Functions of the user's own: whatever one does, nothing of it gets out, other rows count as before, and a real Ctrl-C
still ends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

from privfit.privacy.draws import quietly
from privfit.privacy.guarded import attempted, each_row, guarded_values, in_own_thread, real_numbers, tried


class Own(BaseException):
    """An error of the user's own that is no Exception."""


ERRORS = [
    ValueError("a cell: 7"),
    SystemExit(7),
    KeyboardInterrupt("7"),
    GeneratorExit(),
    StopIteration(7),
    MemoryError(),
    RecursionError(),
    Own(7),
]


def raising(error):
    def function(*_):
        raise error

    return function


# -- one call --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("where", ["main thread", "another"])
def test_errors_of_any_kind_stay_inside_and_leave_nothing(error, where) -> None:
    found: list[object] = []

    def run() -> None:
        found.append(attempted(raising(error)))
        found.append(sys.exc_info())

    if where == "main thread":
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == [None, (None, None, None)]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_on_public_facts_an_error_is_handed_over_to_be_told(error) -> None:
    assert tried(raising(error)) == (None, error)
    assert tried(lambda: 3) == (3, None)


def test_errors_of_ours_in_a_task_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda _: 1 / 0)


def test_what_a_function_sets_in_its_context_ends_with_it() -> None:
    attempted(lambda: np.seterr(all="raise"))
    attempted(lambda: attempted(lambda: np.seterr(all="raise")))
    with np.errstate(all="ignore"):
        assert np.isinf(np.float64(1.0) / np.float64(0.0))
    before = np.geterr()
    in_own_thread(lambda _: [attempted(lambda: np.seterr(all="raise")), attempted(lambda: np.log(np.zeros(1)))])
    assert np.geterr() == before


@pytest.mark.parametrize("users", ["raise", "warn", "print"])
def test_numpy_is_quiet_whatever_the_user_set(users, capsys) -> None:
    with np.errstate(all=users), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = attempted(lambda: np.log(np.array([0.0, -1.0])) * np.exp(1e4))
        assert np.geterr()["divide"] == users
    assert found is not None
    assert caught == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "found",
    [
        ["1.0"],
        1j,
        np.array([1 + 0j]),
        [None],
        object(),
        [[1.0], [1.0, 2.0]],
        np.array(["2020-01-01"], dtype="M8[D]"),
        b"1",
        {1: 2},
    ],
)
def test_what_is_no_real_number_is_refused(found) -> None:
    with pytest.raises((ValueError, TypeError)):
        real_numbers(found)


def test_real_numbers_are_a_copy() -> None:
    kept = np.zeros(3)
    found = real_numbers(kept)
    kept += 1
    assert found.tolist() == [0.0, 0.0, 0.0]
    assert real_numbers([True, 2, np.nan, np.float32(0.5)])[:2].tolist() == [1.0, 2.0]


# -- a real Ctrl-C ---------------------------------------------------------------------------------


CHILD = """
import sys, threading, time, warnings
import numpy as np
import privfit as pf

def slow(rows, *_):
    print("running", flush=True)
    while {endless}:
        time.sleep(0.05)
    raise KeyboardInterrupt("the function's own")

SCHEMA = pf.Schema.box(0, 10)
table = np.full((50, 1), 3.0)

def real(function, made_up):
    def called(rows, *rest):
        return function(rows, *rest) if (np.asarray(rows) == 3.0).all() else made_up(rows, *rest)
    return called

def search(fitness):
    return pf.GeneticSearch(fitness, low=[0], high=[10], rounds=2, candidates=4, schema=SCHEMA)

MODELS = dict(
    search=lambda: search(pf.RowFitness(real(slow, lambda r, w: -np.abs(r - w.T)), spread=10.0)),
    table=lambda: search(pf.TableFitness(real(slow, lambda r, w: -np.abs(r - w.T).sum(axis=0)), 10.0)),
    blocks=lambda: pf.Aggregate(real(slow, lambda r: 1.0), low=0, high=10, schema=SCHEMA),
)
for name in MODELS:
    try:
        MODELS[name]().set_params(ledger=pf.Ledger(epsilon=9.0)).fit(table)
        print(name, "released", flush=True)
    except KeyboardInterrupt:
        print(name, "interrupted", flush=True)
"""
KINDS = ("search", "table", "blocks")


def test_a_real_signal_ends_the_fit_in_the_middle_of_a_function() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD.format(endless=True))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        for kind in KINDS:
            assert child.stdout.readline() == "running\n"
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == f"{kind} interrupted\n"
        child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 0


def test_an_interrupt_that_the_function_raises_itself_does_not() -> None:
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD.format(endless=False))],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    said = child.stdout.splitlines()
    assert [line for line in said if line != "running"] == [f"{kind} released" for kind in KINDS]
    assert child.stderr == ""


def test_after_a_signal_no_further_row_is_tried() -> None:
    """The search for rows that fail ends when nobody waits for it."""
    seen = []

    def call(places):
        seen.append(len(seen))
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        raise ValueError

    with pytest.raises(KeyboardInterrupt):
        each_row(call, 10_000)
    for _ in range(200):
        before = len(seen)
        time.sleep(0.1)
        if len(seen) == before:
            break
    assert len(seen) < 1_000


# -- rows one by one -------------------------------------------------------------------------------


ROWS = np.random.default_rng(0).uniform(0, 10, (203, 3))
WEIGHTS = np.random.default_rng(1).normal(size=(3, 17))


def scored(rows, bad, error=ValueError):
    """Matrix products, whose rounding depends on how many rows there are; rows whose first value is bad fail."""

    def call(places):
        if np.isin(rows[places][:, 0], bad).any():
            raise error
        return rows[places] @ WEIGHTS

    return each_row(call, len(rows))


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, Own])
@pytest.mark.parametrize(
    "places",
    [[0], [202], [57], [0, 1], [100, 101, 102], list(range(0, 203, 2)), list(range(1, 203))],
    ids=lambda p: f"{len(p)} from {p[0]}",
)
def test_rows_that_fail_are_found_and_the_others_are_the_same_to_the_last_bit(places, error) -> None:
    found = scored(ROWS, ROWS[places, 0], error)
    assert np.flatnonzero(found.failed).tolist() == places
    whole = ROWS @ WEIGHTS
    assert np.array_equal(np.delete(found.values, places, axis=0), np.delete(whole, places, axis=0))
    filled = found.filled(-1.0, whole.shape)
    assert (filled[places] == -1.0).all()


def test_where_all_rows_fail_all_get_the_default() -> None:
    found = scored(ROWS, ROWS[:, 0])
    assert found.values is None
    assert found.failed.all()
    assert np.array_equal(found.filled(-2.0, (203, 17)), np.full((203, 17), -2.0))


def test_few_failures_take_few_calls() -> None:
    calls = []

    def call(places):
        calls.append(places)
        if (np.arange(1 << 14)[places] == 777).any():
            raise ValueError
        return np.zeros(len(np.arange(1 << 14)[places]))

    assert np.flatnonzero(each_row(call, 1 << 14).failed).tolist() == [777]
    assert len(calls) <= 2 * 14 + 2


# -- losses ----------------------------------------------------------------------------------------


SCORES, TARGET = np.linspace(-3, 3, 50), np.tile([-1.0, 1.0], 25)


def slope(z, y):
    return -y / (1 + np.exp(y * z))


def broken_at(place, how):
    """The slope of the logistic loss, but at one row."""

    def function(z, y):
        found = slope(z, y)
        return how(found, np.isclose(z, SCORES[place]))

    return function


def raised(found, at):
    if at.any():
        raise KeyboardInterrupt(f"{found[at]}")
    return found


def changed(value):
    return lambda found, at: np.where(at, value, found)


HOW = {
    "raised": raised,
    "NaN": changed(np.nan),
    "inf": changed(np.inf),
    "minus inf": changed(-np.inf),
    "text": lambda found, at: found.astype(str) if at.any() else found,
    "complex": lambda found, at: found + (1j if at.any() else 0),
    "objects": lambda found, at: found.astype(object) if at.any() else found,
    "another shape": lambda found, at: found[:-1] if at.any() else found,
    "nothing": lambda found, at: None if at.any() else found,
    "warned": lambda found, at: (warnings.warn(f"{found}", stacklevel=1), changed(np.nan)(found, at))[1],
    "left": lambda found, at: sys.exit(3) if at.any() else found,
}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
@pytest.mark.parametrize("place", [0, 23, 49])
def test_one_row_of_a_loss_that_fails_counts_with_the_default_and_no_other_changes(how, place) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = guarded_values(broken_at(place, how), SCORES, TARGET, low=-1.0, high=1.0, default=0.25)
    wanted = slope(SCORES, TARGET)
    assert found[place] == 0.25
    assert np.array_equal(np.delete(found, place), np.delete(wanted, place))


def test_slopes_are_cut_at_what_is_stated_and_are_an_array_of_their_own() -> None:
    kept = 5 * np.ones(50)
    found = guarded_values(lambda z, y: kept, SCORES, TARGET, low=-0.5, high=0.75)
    assert found.tolist() == [0.75] * 50
    assert kept.tolist() == [5.0] * 50
    found[:] = 9
    assert guarded_values(lambda z, y: z, SCORES, TARGET, low=-9, high=9).tolist() == SCORES.tolist()
    assert guarded_values(lambda z, y: 0.5, SCORES[:, None] * np.ones(3), TARGET, low=0, high=1).shape == (50, 3)
    assert guarded_values(raising(ValueError()), SCORES, TARGET, low=-1, high=1, default=0.5).tolist() == [0.5] * 50


def test_a_loss_that_writes_to_its_arrays_changes_nothing_of_ours() -> None:
    def careless(z, y):
        z *= y
        y[:] = 7
        return z

    scores, target = SCORES.copy(), TARGET.copy()
    found = guarded_values(careless, scores, target, low=-9, high=9)
    assert np.array_equal(found, SCORES * TARGET)
    assert np.array_equal(scores, SCORES)
    assert np.array_equal(target, TARGET)


def test_losses_of_many_rows_and_classes_in_many_threads_at_once() -> None:
    scores = np.random.default_rng(2).normal(size=(400, 3))
    sides = np.sign(np.random.default_rng(3).normal(size=(400, 3)))
    wanted = slope(scores, sides)
    bad = [5, 77, 399]
    wanted[bad] = 0.0

    def function(z, y):
        warnings.warn(f"{z[0]}", stacklevel=1)
        if np.isin(z[:, 0], scores[bad, 0]).any():
            raise SystemExit
        return slope(z, y)

    found: list[np.ndarray] = []

    def run() -> None:
        for _ in range(5):
            found.append(guarded_values(function, scores, sides, low=-1.0, high=1.0))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 30
    assert all(np.array_equal(one, wanted) for one in found)
    assert caught == []


# -- warnings --------------------------------------------------------------------------------------


def warn(text="told", category=UserWarning) -> None:
    warnings.warn(text, category, stacklevel=1)


def in_another_thread(function) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def with_filters_of_its_own() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warn()


def for_good(action="always"):
    def function() -> None:
        warnings.simplefilter(action)
        warn()

    return function


def anew() -> None:
    warnings.resetwarnings()
    warn()


@pytest.mark.parametrize("users", ["always", "error", "default", "once", "ignore"])
@pytest.mark.parametrize(
    "function",
    [
        warn,
        lambda: in_another_thread(warn),
        with_filters_of_its_own,
        for_good(),
        for_good("error"),
        for_good("once"),
        anew,
        lambda: warn(category=DeprecationWarning),
    ],
    ids=["plain", "a thread", "filters", "filters for good", "errors for good", "once for good", "reset", "deprecated"],
)
def test_nobody_is_warned_and_the_users_filters_hold_afterwards(function, users, capsys) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(users)
        before, shown = list(warnings.filters), warnings.showwarning
        attempted(function)
        assert caught == []
        assert list(warnings.filters) == before
        assert warnings.showwarning is shown
        if users == "error":
            with pytest.raises(UserWarning):
                warn()
        else:
            warn()
            assert len(caught) == (users != "ignore")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("users", ["default", "once", "module"])
def test_whether_a_function_warned_does_not_show_in_later_warnings(users) -> None:
    """The registries that remember what was shown are those of a function that did not warn."""

    def shown_after(function) -> list[int]:
        counts = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(users)
            warn("first")
            attempted(function)
            for text in ("first", "told", "told"):
                warn(text)
                counts.append(len(caught))
        return counts

    quiet = shown_after(lambda: None)
    for function in (warn, with_filters_of_its_own, for_good(), for_good("once"), lambda: warn("first")):
        assert shown_after(function) == quiet


def test_overlapping_threads_neither_end_each_others_quiet_nor_make_it_last() -> None:
    """The order in which catch_warnings fails: the first to open is the first to close."""
    opened, closed, caught_inside = threading.Event(), threading.Event(), []

    def second() -> None:
        with quietly():
            opened.set()
            closed.wait(20)
            warn("inside the second, after the first is over")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        thread = threading.Thread(target=second)
        with quietly():
            thread.start()
            opened.wait(20)
        closed.set()
        thread.join()
        caught_inside += caught
        assert list(warnings.filters) == before
        warn()
        assert len(caught) == 1
    assert caught_inside == []


def test_a_list_of_filters_that_another_thread_brings_back_silences_nobody() -> None:
    """catch_warnings of somebody else, opened in our quiet and closed after it, restores the filters that it found."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other = warnings.catch_warnings()
        with quietly():
            other.__enter__()
        other.__exit__(None, None, None)
        warn()
        assert [str(one.message) for one in caught] == ["told"]


def test_filters_that_another_thread_has_for_a_while_do_not_stay() -> None:
    """catch_warnings of somebody else, opened before our quiet and closed in it, takes its filters away with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other = warnings.catch_warnings()
        other.__enter__()
        warnings.simplefilter("ignore")
        with quietly():
            other.__exit__(None, None, None)
        warn()
        assert [str(one.message) for one in caught] == ["told"]


def test_a_function_can_record_warnings_for_itself() -> None:
    def function():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn()
        return len(caught)

    assert attempted(function) == 1
