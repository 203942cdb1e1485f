"""Functions of the user's own that do their worst: two neighbouring tables, one of which has a row that sets them off,
differ in nothing but what the noise covers.

For every function and every model that takes one: outcome, type and text of errors, warnings, what is printed, ledger,
report, and the number, kind, scale and shape of draws are the same; the draws themselves cost no more than was paid.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import privfit as pf
from privfit.models import private
from tests.support.noise import RecordingNoise, ReplayingNoise

pytestmark = pytest.mark.usefixtures("collecting_costs_little")

BAD = 7.25
"""The value that sets functions off. No row that is made up from the schema has it."""
SCHEMA = pf.Schema.box(0, 10)
REST = np.random.default_rng(0).integers(0, 11, 40).astype(float)


class Own(BaseException):
    """An error of the user's own that is no Exception."""


class Hostile:
    """Something that fails when numpy looks at it."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise SystemExit(f"{BAD}")


class LateError(Exception):
    """An error that fails when it is printed."""

    def __str__(self) -> str:
        raise SystemExit(f"{BAD}")


def raising(make):
    def act(found, rows):
        raise make(f"bad value {rows.max()}")

    return act


def warned(found, rows):
    warnings.warn(f"bad value {rows.max()}", UserWarning, stacklevel=1)
    return found


def warned_by_a_thread(found, rows):
    thread = threading.Thread(target=lambda: warnings.warn(f"bad value {rows.max()}", UserWarning, stacklevel=1))
    thread.start()
    thread.join()
    return found


def warned_with_filters(found, rows):
    warnings.simplefilter("always")
    warnings.warn(f"bad value {rows.max()}", UserWarning, stacklevel=1)
    return found


def raised_from_a_cause(found, rows):
    try:
        raise ValueError(f"cause {rows.max()}")
    except ValueError as error:
        raise KeyError(f"effect {rows.max()}") from error


def numpy_errors_raised(found, rows):
    np.seterr(all="raise")
    return np.log(np.zeros(3)) + found


def written_over(found, rows):
    rows.flags.writeable = True
    rows[:] = 0.0
    return found


def written_to_base(found, rows):
    base = rows if rows.base is None else rows.base
    base.flags.writeable = True
    base[:] = 0.0
    return found


def generator_closed(found, rows):
    raise GeneratorExit(rows.max())


def deep(found, rows):
    return deep(found, rows)


def left_by_sys(found, rows):
    sys.exit(f"bad value {rows.max()}")


ACTS = {
    "ValueError": raising(ValueError),
    "SystemExit": raising(SystemExit),
    "sys.exit": left_by_sys,
    "KeyboardInterrupt": raising(KeyboardInterrupt),
    "GeneratorExit": generator_closed,
    "StopIteration": raising(StopIteration),
    "MemoryError": raising(MemoryError),
    "an error of its own": raising(Own),
    "an error that cannot be printed": raising(LateError),
    "a chain": raised_from_a_cause,
    "endless recursion": deep,
    "a warning": warned,
    "a warning from a thread": warned_by_a_thread,
    "a warning and filters": warned_with_filters,
    "errors of numpy": numpy_errors_raised,
    "NaN": lambda found, rows: found * np.nan,
    "inf": lambda found, rows: found + np.inf,
    "minus inf": lambda found, rows: found - np.inf,
    "huge": lambda found, rows: found * 1e308 * 10,
    "text": lambda found, rows: np.asarray(found).astype(str),
    "complex": lambda found, rows: found * 1j,
    "objects": lambda found, rows: np.asarray(found).astype(object),
    "nothing": lambda found, rows: None,
    "another shape": lambda found, rows: np.asarray(found)[..., :-1],
    "a number": lambda found, rows: 1.0,
    "ragged": lambda found, rows: [[1.0], [1.0, 2.0]],
    "something hostile": lambda found, rows: Hostile(),
    "written over": written_over,
    "written to base": written_to_base,
    "collected": lambda found, rows: gc.collect() and found * np.nan,
}


def row_scores(act):
    """A row fitness: minus the distance; a bad row acts, on its own scores or by ending the call."""

    def score(rows, w):
        found = -np.abs(rows - w.T)
        bad = rows[:, 0] == BAD
        if not bad.any():
            return found
        acted = act(found[bad], rows)
        if isinstance(acted, np.ndarray) and acted.shape == found[bad].shape and acted.dtype == float:
            found[bad] = acted
            return found
        return acted

    return score


def block_answers(act):
    def function(rows):
        found = np.array([np.median(rows), rows.mean()])
        return act(found, rows) if (rows == BAD).any() else found

    return function


@dataclass(frozen=True)
class Model:
    make: Any
    counted: bool
    """Whether what the pair really costs is known to be covered: a TableFitness is believed."""


def search(fitness, **settings):
    return pf.GeneticSearch(
        fitness,
        low=[0.0],
        high=[10.0],
        schema=SCHEMA,
        rounds=3,
        candidates=6,
        epsilon=0.7,
        expected_rows=40,
        **settings,
    )


def table_scores(act):
    """A function of the whole table that keeps its word where it does not fail."""

    def score(rows, w):
        found = -np.abs(rows - w.T).clip(0, 10).sum(axis=0)
        return act(found, rows) if (rows == BAD).any() else found

    return score


MODELS = {
    "spread": Model(lambda act: search(pf.RowFitness(row_scores(act), spread=10.0)), True),
    "bounds": Model(
        lambda act: search(pf.RowFitness(row_scores(act), bounds=(-10.0, 0.0)), selection="exponential"), True
    ),
    "two parents": Model(lambda act: search(pf.RowFitness(row_scores(act), spread=10.0), parents=2, delta=1e-6), False),
    "table": Model(lambda act: search(pf.TableFitness(table_scores(act), 10.0)), False),
    "blocks": Model(
        lambda act: pf.Aggregate(
            block_answers(act), low=[0, 0], high=[10, 10], schema=SCHEMA, epsilon=0.7, expected_rows=40
        ),
        True,
    ),
    "blocks in threads": Model(
        lambda act: pf.Aggregate(
            block_answers(act),
            low=[0, 0],
            high=[10, 10],
            schema=SCHEMA,
            epsilon=0.7,
            expected_rows=40,
            mechanism=pf.SampleAndAggregate(7, resampling=2, workers="threads"),
        ),
        True,
    ),
}
PAIRS = {
    "replace-one": (np.append(REST, BAD), np.append(REST, 3.0)),
    "add-remove": (np.append(REST, BAD), REST),
}


@dataclass(frozen=True)
class Seen:
    """All that a caller can see of a fit, but for draws."""

    outcome: str
    error: tuple[str, str, str]
    warned: list[str]
    printed: tuple[str, str]
    entries: list[Any]
    report: str
    draws: list[tuple[str, float, tuple[int, ...]]]
    filters: list[Any]
    numpy: dict[str, str]


def fitted(monkeypatch, capsys, model, values, noise) -> Seen:
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=1e-2)
    model = clone(model).set_params(ledger=ledger)
    outcome, error = "released", ("", "", "")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(np.asarray(values)[:, None])
        except BaseException as raised:
            outcome, error = (
                "raised",
                (type(raised).__name__, str(raised), repr((raised.__context__, raised.__cause__))),
            )
        filters = list(warnings.filters)
    entries = [(entry.event, entry.epsilon, entry.delta) for entry in ledger.entries()]
    draws = [(call.kind, call.scale, call.values.shape) for call in noise.calls]
    return Seen(
        outcome,
        error,
        [str(one.message) for one in caught],
        tuple(capsys.readouterr()),
        entries,
        str(getattr(model, "report_", "")),
        draws,
        filters,
        np.geterr(),
    )


def price(one, other) -> Fraction:
    """What the pair really costs, in epsilon."""
    total = Fraction(0)
    for a, b in zip(one.calls, other.calls, strict=True):
        moves = [int(x) - int(y) for x, y in zip(a.values.ravel().tolist(), b.values.ravel().tolist(), strict=True)]
        apart = {"laplace": sum(map(abs, moves)), "linf": max(map(abs, moves))}.get(a.kind, max(moves) - min(moves))
        total += Fraction(apart) / Fraction(a.scale)
    return total


def all_acts() -> list[Any]:
    """Every act with every model; in `make test` under one adjacency each, in turn."""
    many = product(enumerate(ACTS), enumerate(MODELS), enumerate(PAIRS))
    return [
        pytest.param(act, kind, adjacency, marks=() if (i + j + k) % 2 == 0 else pytest.mark.slow)
        for (i, act), (j, kind), (k, adjacency) in many
    ]


@pytest.mark.parametrize(("act", "kind", "adjacency"), all_acts())
def test_a_row_that_sets_a_function_off_is_seen_in_nothing_but_noise(monkeypatch, capsys, act, kind, adjacency) -> None:
    model = MODELS[kind].make(ACTS[act]).set_params(adjacency=adjacency)
    with_it, without = PAIRS[adjacency]
    recorder = RecordingNoise()
    left = fitted(monkeypatch, capsys, model, with_it, recorder)
    replayer = ReplayingNoise(recorder.calls)
    right = fitted(monkeypatch, capsys, model, without, replayer)
    assert left == right
    assert left.outcome == "released"
    assert left.warned == []
    assert left.printed == ("", "")
    assert len(left.entries) == 1
    assert str(BAD) not in repr(left)
    if MODELS[kind].counted:
        assert price(recorder, replayer) <= Fraction("0.7")


# -- one row changes its own scores only -----------------------------------------------------------


@pytest.mark.parametrize("act", [act for act in ACTS if act not in ("written to base", "written over")])
def test_the_scores_of_other_rows_do_not_change(act) -> None:
    """Sums with the bad row and without it differ by what one row can do, and that row's own scores do not depend on
    the others.
    """
    from privfit.mechanisms.genetic.scores import SumScorer
    from privfit.privacy import Budget, PrivacyParameters
    from privfit.rows import PlainRows, Rows
    from privfit.tables import open_table

    schema = SCHEMA.with_features(["x"])
    geometry = schema.geometry(numeric="slope", intercept=False, several=True)
    candidates = np.array([[0.0], [2.5], [9.0]])
    fitness = pf.RowFitness(row_scores(ACTS[act]), spread=10.0)

    def sums(values):
        plain = PlainRows(Rows(open_table(np.array(values)[:, None]), schema, geometry))
        plain.read()
        scorer = SumScorer(plain, fitness)
        return scorer(candidates, scorer.sensitivity(candidates, PrivacyParameters(Budget(1.0)), True))[0]

    alone = sums([BAD])
    for rest in ([1.0], [1.0, 4.0, 9.5], list(REST)):
        np.testing.assert_array_equal(sums([*rest, BAD]) - sums(rest), alone)
        np.testing.assert_array_equal(sums([BAD, *rest]) - sums(rest), alone)


# -- what is told: made-up rows only ---------------------------------------------------------------


def always(act):
    return lambda rows, *w: act(np.zeros((len(rows), len(w[0]))) if w else np.zeros(2), rows)


HARMLESS = ("a warning", "a warning from a thread", "a warning and filters", "written over", "written to base", "huge")
TOLD = [act for act in ACTS if act not in HARMLESS]


@pytest.mark.parametrize("act", TOLD)
def test_a_function_that_can_only_fail_is_told_so_before_the_table_is_read(monkeypatch, act) -> None:
    from privfit.rows import Rows

    ledger = pf.Ledger(epsilon=5.0)
    for fitness in (pf.RowFitness(always(ACTS[act]), spread=1.0), pf.TableFitness(always(ACTS[act]), 1.0)):
        with monkeypatch.context() as patched:
            patched.setattr(Rows, "batches", lambda self: pytest.fail("rows were read"))
            with pytest.raises(pf.PrivacyError, match="made up from the schema") as error:
                search(fitness, ledger=ledger).fit(np.full((20, 1), 3.5))
        assert "Nothing was charged" in str(error.value)
    assert ledger.entries() == []


def test_a_fitness_that_looks_at_other_rows_is_refused() -> None:
    """What one row can change is calibrated for rows that are scored by themselves."""

    def standardised(rows, w):
        return -np.abs((rows - rows.mean()) / (rows.std() + 1) - w.T)

    ledger = pf.Ledger(epsilon=5.0)
    with pytest.raises(pf.PrivacyError, match="otherwise alone than beside other rows"):
        search(pf.RowFitness(standardised, spread=10.0), ledger=ledger).fit(REST[:, None])
    with pytest.raises(pf.PrivacyError, match="scores of shape"):
        search(pf.RowFitness(lambda rows, w: np.squeeze(-np.abs(rows - w.T)), spread=10.0), ledger=ledger).fit(
            REST[:, None]
        )
    assert ledger.entries() == []


@pytest.mark.parametrize("what", ["spread", "bounds", "prior", "sensitivity"])
@pytest.mark.parametrize("error", [ValueError("w=3"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_a_fitness_states_about_candidates_may_fail_too_and_is_told_without_words(what, error) -> None:
    """Candidates were chosen privately: that it fails may be told, and what it says may be not."""
    calls = []

    def fails_later(w):
        calls.append(len(w))
        if len(w) != 3:  # not the three candidates of the trial
            raise error
        return {"bounds": (-10.0, 0.0), "prior": np.zeros(len(w))}.get(what, 10.0)

    score = row_scores(warned)
    fitness = (
        pf.TableFitness(lambda rows, w: score(rows, w).sum(axis=0), fails_later)
        if what == "sensitivity"
        else pf.RowFitness(score, **({"spread": 10.0} if what == "prior" else {}), **{what: fails_later})
    )
    ledger = pf.Ledger(epsilon=5.0)
    with pytest.raises(pf.PrivacyError, match="the charge stands") as raised:
        search(fitness, ledger=ledger).fit(REST[:, None])
    assert raised.value.__context__ is None
    assert "w=3" not in str(raised.value)
    assert len(ledger.entries()) == 1
    assert len(calls) > 1


def test_a_domain_whose_row_fails_for_some_candidates_still_gives_an_answer() -> None:
    def score(rows, w):
        if (w > 5).any() and (rows == 3).any() and len(w) != 3:
            raise SystemExit
        return -np.abs(rows - w.T)

    ledger = pf.Ledger(epsilon=5.0)
    model = search(pf.RowFitness(score, domain=range(11)), ledger=ledger).fit(REST[:, None])
    assert model.report_.private
    assert 0 <= model.best_[0] <= 10
