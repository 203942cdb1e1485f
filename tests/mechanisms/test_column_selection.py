"""Columns that are selected: all small tables and their neighbours, what is noised, and exact laws of the choices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import ColumnChoice, ColumnSelection
from privfit.mechanisms.summaries import column_selection as module
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.statistics.associations import UNIT, association_scores, association_sensitivity, class_shares
from privfit.tables import open_table
from tests.privacy.laws import flip_law, most_told
from tests.support.noise import Call, RecordingNoise, ReplayingNoise

EPSILON = 0.6
FEATURES = [pf.Numeric("a", 0, 2, bins=[1]), pf.Numeric("b", 0, 2, bins=[1])]
CLASSES = pf.Schema(FEATURES, pf.Category("y", [0, 1]))
NUMBER = pf.Schema(FEATURES, pf.Numeric("y", 0, 1))
ROWS = tuple(product((0.5, 1.5), (0.5, 1.5), (0.0, 1.0)))
SCHEMAS = {"classes": CLASSES, "number": NUMBER}
ADJACENCIES = ("replace-one", "add-remove")
BULK = ((0.5, 1.5, 0.0),) * 12 + ((1.5, 0.5, 0.0), (1.5, 0.5, 1.0), (1.5, 0.5, 1.0))
"""Rows in whose company one row is rarer than its class in one column, and more frequent in the other."""
TOLD = ((3, 3), (9, 1), (4, 0))
"""Noisy counts of classes, which may come out as anything."""


def calls(schema: pf.Schema, table: tuple, adjacency: str, people: int, noise: RecordingNoise) -> list[Call]:
    """What one release asks for."""
    mechanism, problem = ColumnSelection(), ColumnChoice(2)
    parameters = PrivacyParameters(Budget(EPSILON), adjacency, people)  # type: ignore[arg-type]
    rows = Rows(open_table(np.array(table)), schema, mechanism.geometry(schema, problem), threads=1)
    mechanism.release(rows, parameters, None, noise, problem)
    return noise.calls


def pairs(adjacency: str, people: int) -> Iterator[tuple[tuple, tuple]]:
    """A person's rows are others, or are not there; the rest is the same."""
    for rest in (BULK, *((row,) for row in ROWS[::3])):
        for own in combinations_with_replacement(ROWS, people):
            if adjacency == "add-remove":
                yield (*own, *rest), rest
            else:
                yield from (((*own, *rest), (*new, *rest)) for new in combinations_with_replacement(ROWS, people))


def largest(schema: pf.Schema, adjacency: str, people: int) -> float:
    """The most that a person costs: all choices by their exact laws, the counts by their norm."""
    loss = 0.0
    cut = [] if schema is CLASSES else [Call("permute-and-flip", np.zeros(1), 1.0, np.zeros(1, dtype=int))]
    for (left, right), told in product(pairs(adjacency, people), TOLD):
        known = [*cut, Call("laplace", np.zeros(2), 1.0, np.array(told))]
        first = calls(schema, left, adjacency, people, ReplayingNoise(known))
        second = calls(schema, right, adjacency, people, ReplayingNoise(first))
        spent = 0.0
        for one, other in zip(first, second, strict=True):
            assert (one.kind, one.scale, one.values.shape) == (other.kind, other.scale, other.values.shape)
            moved = (one.values.astype(object) - other.values.astype(object)).tolist()
            if one.kind == "laplace":
                spent += sum(map(abs, moved)) / one.scale
            else:
                exact = most_told(flip_law(one.values, one.scale), flip_law(other.values, one.scale))
                spent += max((max(moved) - min(moved)) / one.scale, exact)
        loss = max(loss, spent)
    return loss


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_person_costs_no_more_than_paid_for(name: str, adjacency: str, people: int, monkeypatch) -> None:
    monkeypatch.setattr(module, "TARGET_CELLS", 2)
    if people == 2:
        monkeypatch.setattr("tests.mechanisms.test_column_selection.ROWS", ROWS[1::3])
    assert largest(SCHEMAS[name], adjacency, people) <= EPSILON * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_sensitivity_that_is_too_small_is_seen(adjacency: str, monkeypatch) -> None:
    small = association_sensitivity(adjacency) // 4  # type: ignore[arg-type]
    monkeypatch.setattr(module, "association_sensitivity", lambda adjacency: small)
    assert largest(CLASSES, adjacency, 1) > EPSILON


def moves(counts: np.ndarray, shares: list[int], adjacency: str) -> Iterator[int]:
    """How far one row that is added, or that is another one, moves the score of one table."""
    before = association_scores([counts], shares, 0)[0]
    places = list(np.ndindex(counts.shape))
    for place in places:
        more = counts.copy()
        more[place] += 1
        if adjacency == "add-remove":
            yield association_scores([more], shares, 0)[0] - before
            continue
        for other in (other for other in places if counts[other]):
            changed = more.copy()
            changed[other] -= 1
            yield association_scores([changed], shares, 0)[0] - before


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_moves_a_score_further_than_proved_and_some_move_it_so_far(adjacency: str) -> None:
    """Random tables and shares, the extreme ones among them; differences of two scores move twice as far."""
    rng, most = np.random.default_rng(0), 0
    for turn in range(300):
        levels, classes = rng.integers(1, 4), rng.integers(2, 4)
        noisy = np.round(rng.standard_cauchy(classes) * 10).astype(np.int64)
        shares = class_shares(np.array([1, *[0] * (classes - 1)]) if turn % 3 == 0 else noisy)
        assert sum(shares) <= UNIT
        assert min(shares) >= 0
        counts = rng.integers(0, 4, (levels, classes))
        most = max(most, *map(abs, moves(counts, shares, adjacency)), 0)
    bound = association_sensitivity(adjacency) // 2  # type: ignore[arg-type]
    assert (0.7 if adjacency == "replace-one" else 0.99) * bound <= most <= bound


def test_the_choices_go_by_scores_of_what_is_left() -> None:
    class Greedy(RecordingNoise):
        def select_each(self, menus: Any, scale: float, rule: Any) -> list[int]:
            return [int(np.argmax(menu)) for menu in menus]

        def laplace(self, values: Any, scale: float) -> Any:
            return values

    y = np.arange(400) % 2
    noise = np.random.default_rng(0).integers(0, 2, 400)
    table = np.column_stack([np.where(np.arange(400) < 40, y, noise) + 0.5, y + 0.5, y])
    mechanism, problem = ColumnSelection(), ColumnChoice(2)
    rows = Rows(open_table(table), CLASSES, mechanism.geometry(CLASSES, problem))
    found = mechanism.release(rows, PrivacyParameters(Budget(1.0), "replace-one"), None, Greedy(), problem)
    assert found.value == (1, 0)
    assert (found.event.epsilon, len(found.event.parts)) == (1.0, 2)
