"""Crossovers and mutations of the user's own that do their worst: neighbouring tables differ in nothing but what the
noise covers.

They never see a row, so that all they can tell of is candidates that were chosen privately. They behave on the made-up
candidates of the trial and once more, and then raise, warn, write to their arguments, keep state, or return what is no
set of candidates. Everything that a fit shows is watched: tests/conformance/control_flow.py.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import Breeding
from privfit.privacy import SeededNoise
from privfit.rows import Rows
from tests.conformance.control_flow import Setting
from tests.conformance.flow_tables import FORMS, family
from tests.conformance.test_control_flow import found_in
from tests.conformance.test_functions import Hostile, LateError, Own

pytestmark = pytest.mark.usefixtures("collecting_costs_little")

Act = Callable[[Any, tuple[Any, ...]], Any]
KEPT: list[Any] = []


def raising(make: Callable[[str], BaseException]) -> Act:
    def act(found: Any, given: tuple[Any, ...]) -> Any:
        raise make(f"candidate {given[0][0]}")

    return act


def warned(found: Any, given: tuple[Any, ...]) -> Any:
    warnings.simplefilter("always")
    warnings.warn(f"candidate {given[0][0]}", UserWarning, stacklevel=1)
    return found


def warned_by_a_thread(found: Any, given: tuple[Any, ...]) -> Any:
    thread = threading.Thread(target=lambda: warnings.warn(f"{given[0]}", UserWarning, stacklevel=1))
    thread.start()
    thread.join()
    return found


def written_over(found: Any, given: tuple[Any, ...]) -> Any:
    generation = given[-1]
    for array in (*given[:-1], generation.low, generation.high, generation.step):
        base = array if array.base is None else array.base
        base.flags.writeable = True
        base[...] = 7.0
    return found


def kept_and_written_later(found: Any, given: tuple[Any, ...]) -> Any:
    for array in KEPT:
        array[...] = -3.0
    KEPT.extend([*given[:-1], *(found if isinstance(found, tuple) else (found,))])
    return found


def numpy_errors_raised(found: Any, given: tuple[Any, ...]) -> Any:
    np.seterr(all="raise")
    return np.log(np.zeros(3))


def each(change: Callable[[Any], Any]) -> Act:
    """What becomes of every array that an operator returns."""

    def act(found: Any, given: tuple[Any, ...]) -> Any:
        return tuple(map(change, found)) if isinstance(found, tuple) else change(found)

    return act


def deep(found: Any, given: tuple[Any, ...]) -> Any:
    return deep(found, given)


def left_by_sys(found: Any, given: tuple[Any, ...]) -> Any:
    sys.exit(f"candidate {given[0][0]}")


ACTS: dict[str, Act] = {
    "ValueError": raising(ValueError),
    "SystemExit": raising(SystemExit),
    "sys.exit": left_by_sys,
    "KeyboardInterrupt": raising(KeyboardInterrupt),
    "GeneratorExit": raising(GeneratorExit),
    "MemoryError": raising(MemoryError),
    "an error of its own": raising(Own),
    "an error that cannot be printed": raising(LateError),
    "endless recursion": deep,
    "a warning": warned,
    "a warning from a thread": warned_by_a_thread,
    "errors of numpy": numpy_errors_raised,
    "written over": written_over,
    "kept and written later": kept_and_written_later,
    "NaN": each(lambda array: array * np.nan),
    "some NaN": each(lambda array: np.where(np.arange(array.size).reshape(array.shape) % 3, array, np.nan)),
    "inf": each(lambda array: array + np.inf),
    "huge": each(lambda array: array * 1e308 * 10),
    "text": each(lambda array: array.astype(str)),
    "complex": each(lambda array: array * 1j),
    "objects": each(lambda array: array.astype(object)),
    "fewer": each(lambda array: array[:-1]),
    "wider": each(lambda array: np.hstack([array, array])),
    "nothing": lambda found, given: None,
    "a number": lambda found, given: 1.0,
    "ragged": lambda found, given: [[1.0], [1.0, 2.0]],
    "something hostile": lambda found, given: Hostile(),
    "collected": lambda found, given: gc.collect() and None,
}


@dataclass
class Operator:
    """A crossover or a mutation that counts its calls, keeps all that it saw, and acts from the third call on."""

    name: str
    crosses: bool
    calls: int = 0
    seen: list[Any] = field(default_factory=list, repr=False)

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        arrays, generation = given[:-1], given[-1]
        step = generation.step * (1 + self.calls % 2)  # what it does depends on what was before
        found = arrays[::-1] if self.crosses else arrays[0] + step * generation.random.normal(size=arrays[0].shape)
        self.seen.append([array.copy() for array in arrays])
        return found if self.calls < 3 else ACTS[self.name](found, given)

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"


def operators(act: str, which: str) -> dict[str, Any]:
    """New functions for every fit: what they keep starts at nothing."""
    KEPT.clear()
    return {which: Operator(act, which == "crossover")}


SMALL = {"moves": "genes", "candidates": 7, "rounds": 5, "parents": 2}
FITNESS = pf.RowFitness(
    lambda rows, w: -np.abs(rows[:, :1] - w[:, 0]), spread=lambda w: float(np.ptp(w[:, 0])), bounds=(-3.0, 0.0)
)
COLUMNS = [pf.Numeric("x", -1, 1), pf.Category("p", ["a", "b", "c"])]


def _classes(act: str, which: str) -> Setting:
    return Setting(
        f"LogisticRegression({act}, {which})",
        lambda **given: pf.LogisticRegression(
            0.7, mechanism=pf.PrivGene(**SMALL, **operators(act, which)), expected_rows=12, **given
        ),
        pf.Schema(COLUMNS, pf.Category("y", ["a", "b"])),
        "add-remove",
    )


def _many_classes(act: str, which: str) -> Setting:
    return Setting(
        f"LinearSVC({act}, {which})",
        lambda **given: pf.LinearSVC(
            0.7, loss="hinge", mechanism=pf.PrivGene(**SMALL, elitism=False, **operators(act, which)), **given
        ),
        pf.Schema(COLUMNS, pf.Category("y", ["a", "b", "c"])),
    )


def _clusters(act: str, which: str) -> Setting:
    return Setting(
        f"KMeans({act}, {which})",
        lambda **given: pf.KMeans(
            2, 0.7, mechanism=pf.PrivGene(**SMALL, start="scattered", **operators(act, which)), **given
        ),
        pf.Schema([pf.Numeric("x", -1, 1), pf.Numeric("z", 0, 5)]),
    )


def _searches(act: str, which: str) -> Setting:
    return Setting(
        f"GeneticSearch({act}, {which})",
        lambda **given: pf.GeneticSearch(
            FITNESS,
            low=[-1.0, 0.0],
            high=[1.0, 1.0],
            epsilon=0.7,
            candidates=7,
            rounds=5,
            parents=2,
            expected_rows=12,
            **operators(act, which),
            **given,
        ),
        pf.Schema([pf.Numeric("x", -1, 1)]),
        "add-remove",
    )


MODELS = {"two classes": _classes, "three classes": _many_classes, "clusters": _clusters, "search": _searches}


def all_acts() -> list[Any]:
    """Every act with every model, as a crossover and as a mutation; in `make test` half of them, in turn."""
    many = product(enumerate(ACTS), enumerate(["crossover", "mutate"]), enumerate(MODELS))
    return [
        pytest.param(act, which, model, marks=() if (i + j + k) % 2 == 0 else pytest.mark.slow)
        for (i, act), (j, which), (k, model) in many
    ]


@pytest.mark.parametrize(("act", "which", "model"), all_acts())
def test_neighbours_differ_in_nothing_but_noise_whatever_operators_do(
    act: str, which: str, model: str, tmp_path: Path
) -> None:
    setting = MODELS[model](act, which)
    tables = (family(setting.schema, kind, 12, setting.adjacency, kind, 1) for kind in (1, 6))
    assert found_in(setting, tables, "polars", tmp_path) == []


@pytest.mark.parametrize("model", MODELS)
def test_what_they_keep_is_what_was_chosen_and_they_act_in_the_middle_of_a_search(model: str, tmp_path: Path) -> None:
    """The attack is one: operators are called after the trial, and what they return is used."""
    setting = MODELS[model]("inf", "mutate")
    fitted = setting.make(schema=setting.schema, adjacency=setting.adjacency, random_state=0)
    table = family(setting.schema, 1, 12, setting.adjacency, 0, 1)
    setting.fit(fitted, FORMS["polars"](setting.schema, table.rows, tmp_path))
    own = fitted.mutate if hasattr(fitted, "mutate") else fitted.mechanism.mutate
    searches = 3 if model == "three classes" else 1
    assert own.calls == 1 + 4 * searches
    if model == "search":
        np.testing.assert_array_equal(fitted.best_, [1.0, 1.0])  # clipped to the box


def test_the_attack_finds_a_mutation_that_was_told_of_rows(tmp_path: Path) -> None:
    """What the user is asked not to do: a fitness that hands on what it sees."""
    known = [0.0]

    def score(rows: Any, w: Any) -> Any:
        known[0] = float(rows[:, 0].min())
        return -np.abs(rows[:, :1] - w[:, 0])

    def told(children: Any, generation: pf.Generation) -> Any:
        return np.full_like(children, known[0])

    setting = Setting(
        "GeneticSearch(told)",
        lambda **given: pf.GeneticSearch(
            pf.RowFitness(score, spread=2.0), low=[-1.0], high=[1.0], candidates=4, rounds=3, mutate=told, **given
        ),
        pf.Schema([pf.Numeric("x", -1, 1)]),
    )
    tables = (family(setting.schema, kind, 12, "replace-one", kind, 1) for kind in (1, 6))
    assert found_in(setting, tables, "polars", tmp_path)


# -- what is told: made-up candidates only ---------------------------------------------------------

HARMLESS = ("a warning", "a warning from a thread", "written over", "kept and written later", "inf", "huge")


@pytest.mark.parametrize("which", ["crossover", "mutate"])
@pytest.mark.parametrize("act", [act for act in ACTS if act not in HARMLESS])
def test_one_that_can_only_fail_is_told_so_before_the_table_is_read(
    act: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rows, "batches", lambda self: pytest.fail("rows were read"))
    ledger = pf.Ledger(epsilon=5.0)
    for make in MODELS.values():
        setting = make(act, which)
        model = setting.make(schema=setting.schema, adjacency=setting.adjacency, ledger=ledger)
        own = getattr(model, which, None) or getattr(model.mechanism, which)
        own.calls = 5
        rows = np.zeros((12, len(setting.schema.features) + (setting.schema.target is not None)))
        with pytest.raises(pf.PrivacyError, match="made-up candidates") as error:
            model.fit(rows[:, :-1], np.full(12, "a")) if setting.schema.target is not None else model.fit(rows)
        assert "Nothing was charged" in str(error.value)
    assert ledger.entries() == []


# -- what becomes of candidates --------------------------------------------------------------------

LOW, HIGH = np.array([-1.0, 0.0, 10.0]), np.array([1.0, 4.0, 30.0])
PARENTS = np.array([[0.0, 1.0, 20.0], [0.5, 2.0, 15.0]])


@pytest.mark.parametrize("elitism", [True, False])
@pytest.mark.parametrize("which", ["crossover", "mutate"])
@pytest.mark.parametrize("act", ACTS)
def test_there_are_as_many_candidates_as_asked_for_all_of_them_numbers_in_the_box(
    act: str, which: str, elitism: bool
) -> None:
    parents, (own,) = PARENTS.copy(), operators(act, which).values()
    breeding = Breeding(9, 2, elitism=elitism, **{which: own})
    for number in range(4):
        found = breeding.offspring(parents, LOW, HIGH, number, SeededNoise(number))
        assert found.shape == (9, 3)
        assert ((found >= LOW) & (found <= HIGH)).all()
        np.testing.assert_array_equal(parents, PARENTS)
        if elitism:
            np.testing.assert_array_equal(found[:2], PARENTS)
    np.testing.assert_array_equal(LOW, [-1.0, 0.0, 10.0])
