"""Frequent sets of items: every sequence of choices by its exact law, over all small tables and their neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import ItemsetSearch
from privfit.mechanisms.genetic.selections import Choices
from privfit.mechanisms.summaries import itemsets as module
from privfit.mechanisms.summaries.itemsets import ItemsetProblem
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.statistics.itemsets import Baskets, Frontier, itemset_numbers, listed_items
from privfit.tables import open_table
from tests.privacy.laws import LAWS, excess
from tests.support.noise import RecordingNoise

EPSILON = 0.6
COLUMNS = [pf.Category(name, [0, 1]) for name in "abc"]
SCHEMA = pf.Schema(COLUMNS)
ROWS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0))
ADJACENCIES = ("replace-one", "add-remove")
K = 2


class Forced(RecordingNoise):
    """Chooses what it is told to, and adds nothing to counts."""

    def __init__(self, places: tuple[int, ...]) -> None:
        super().__init__()
        self.places, self.laws, self.scores, self.added = list(places), [], [], []

    def select_each(self, menus: Any, scale: float, rule: Any) -> list[int]:
        place = self.places.pop(0)
        law = LAWS[rule](menus[0], scale)
        if place >= len(law):
            raise IndexError
        self.laws.append(np.log(law[place]))
        self.scores.append((np.array(menus[0]), scale))
        return [place]

    def linf(self, values: Any, scale: float) -> Any:
        self.added.append((np.array(values), scale))
        return values

    def gaussian(self, values: Any, scale: float) -> Any:
        return self.linf(values, scale)


def told(table: tuple, adjacency: str, people: int, delta: float = 0.0) -> dict[tuple[int, ...], tuple]:
    """For every sequence of choices its logarithmic probability, the scores, and the counts that noise is added to."""
    mechanism, problem = ItemsetSearch(), ItemsetProblem(K, 2)
    parameters = PrivacyParameters(Budget(EPSILON, delta), adjacency, people)  # type: ignore[arg-type]
    found = {}
    for places in product(range(3), repeat=K):
        noise = Forced(places)
        rows = Rows(open_table(np.array(table)), SCHEMA, mechanism.geometry(SCHEMA, problem), threads=1)
        try:
            mechanism.release(rows, parameters, None, noise, problem)
        except IndexError:
            continue
        ((values, scale),) = noise.added
        found[places] = sum(noise.laws), noise.scores, values, scale
    return found


def pairs(adjacency: str, people: int, most: int) -> Iterator[tuple[tuple, tuple]]:
    """A person's rows are others, or are not there; the rest is the same."""
    for size in range(1, most + 1):
        for rest in combinations_with_replacement(ROWS, size):
            for own in combinations_with_replacement(ROWS, people):
                if adjacency == "add-remove":
                    yield (*own, *rest), rest
                else:
                    yield from (((*own, *rest), (*new, *rest)) for new in combinations_with_replacement(ROWS, people))


def largest(adjacency: str, people: int, most: int = 1) -> float:
    """The most that a person costs: choices by differences of scores and by their exact law, counts by their largest
    change.
    """
    known = cache(lambda table: told(table, adjacency, people))
    loss = 0.0
    for left, right in pairs(adjacency, people, most):
        one, other = known(tuple(sorted(left))), known(tuple(sorted(right)))
        assert one.keys() == other.keys()
        for places, (law, scores, values, scale) in one.items():
            again, changed, moved, same = other[places]
            assert scale == same
            chosen = sum(np.ptp(a - b) / own for (a, own), (b, _) in zip(scores, changed, strict=True))
            loss = max(loss, max(chosen, abs(law - again)) + np.abs(values - moved).max() / scale)
    return loss


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_person_costs_no_more_than_paid_for_and_most_of_it(adjacency: str, people: int) -> None:
    spent = largest(adjacency, people, 2 if people == 1 else 1)
    assert 0.99 * EPSILON < spent <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_choices_with_half_the_noise_are_seen(adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = Choices.scale
    monkeypatch.setattr(Choices, "scale", lambda self, place, sensitivity: scale(self, place, sensitivity) / 2)
    assert largest(adjacency, 1) > EPSILON


def test_counts_with_half_the_noise_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_fits", lambda *facts: None)
    scale = module.laplace_scale
    monkeypatch.setattr(module, "laplace_scale", lambda sensitivity, epsilon: scale(sensitivity, epsilon) / 3)
    assert largest("add-remove", 1) > EPSILON


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_with_a_delta_choices_stay_within_their_zcdp(adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the exact laws of whole sequences: the delta that they need at this epsilon, without the counts."""
    monkeypatch.setattr("privfit.mechanisms.genetic.selections.EXPONENTIAL_MARGIN", 0)
    mechanism, problem, delta = ItemsetSearch(), ItemsetProblem(K, 2), 0.01
    known = cache(lambda table: told(table, adjacency, 1, delta))
    parameters = PrivacyParameters(Budget(EPSILON, delta), adjacency, 1)  # type: ignore[arg-type]
    rows = Rows(open_table(np.array(ROWS)), SCHEMA, mechanism.geometry(SCHEMA, problem), threads=1)
    event = mechanism.release(rows, parameters, None, RecordingNoise(), problem).event
    assert event.rho > 0
    assert sum(part.rho for part in event.parts) <= event.rho * (1 + 1e-12)
    for left, right in pairs(adjacency, 1, 2):
        one, other = known(tuple(sorted(left))), known(tuple(sorted(right)))
        laws = [[np.exp(own[places][0]) for places in one] for own in (one, other)]
        assert sum(laws[0]) == pytest.approx(1.0)
        assert max(excess(*laws, EPSILON), excess(*laws[::-1], EPSILON)) <= delta
        for places, (_, _, values, scale) in one.items():
            assert np.square(values - other[places][2]).sum() / (2 * scale**2) <= event.parts[-1].rho * (1 + 1e-12)


def all_sets(items: Any, size: int) -> list[tuple[int, ...]]:
    """All sets of items of different columns."""
    return [
        one
        for width in range(1, size + 1)
        for one in combinations(range(len(items)), width)
        if len({items[place].column for place in one}) == width
    ]


@pytest.mark.parametrize("rows", [1, 2, 40, 8, 301])
def test_counts_are_those_of_the_rows(rows: int) -> None:
    schema = pf.Schema([*COLUMNS[:2], pf.Category("c", [0, 1, 2]), pf.Numeric("d", 0, 9, bins=[3])])
    table = np.random.default_rng(rows).integers(0, 2, (rows, 4)).astype(float)
    table[:, 3] *= 5
    geometry = cell_geometry(schema, cells=1)
    items = listed_items(geometry)
    assert [item.label for item in items] == ["a", "b", "c_0", "c_1", "c_2", "d_[0, 3)", "d_[3, 9]"]
    baskets = Baskets(CellGrid(geometry), count_cells(Rows(open_table(table), schema, geometry)), items)
    held = np.column_stack(
        [
            table[:, 0] == 1,
            table[:, 1] == 1,
            *(table[:, 2] == own for own in range(3)),
            table[:, 3] < 3,
            table[:, 3] >= 3,
        ]
    )
    for itemset in all_sets(items, 4):
        assert baskets.count(itemset) == held[:, list(itemset)].all(axis=1).sum()
    assert itemset_numbers(items, 4, 1000) == len(all_sets(items, 4))
    assert itemset_numbers(items, 2, 10) == 10


def test_many_columns_are_counted_too() -> None:
    table = np.random.default_rng(0).integers(0, 2, (5000, 70)).astype(float)
    table[:, 3] = table[:, 69]
    schema = pf.Schema([pf.Category(f"x{place}", [0, 1]) for place in range(70)])
    geometry = cell_geometry(schema, cells=1)
    baskets = Baskets(
        CellGrid(geometry), count_cells(Rows(open_table(table), schema, geometry)), listed_items(geometry)
    )
    for itemset in ((0,), (3, 69), (1, 35, 64)):
        assert baskets.count(itemset) == table[:, list(itemset)].all(axis=1).sum()


def test_all_sets_become_open_once_whatever_is_chosen() -> None:
    schema = pf.Schema([*COLUMNS[:2], pf.Category("c", [0, 1, 2])])
    items = listed_items(cell_geometry(schema, cells=1))
    rng = np.random.default_rng(0)
    for _ in range(50):
        frontier, chosen = Frontier(items, 3), []
        while frontier.open:
            itemset, new = frontier.choose(int(rng.integers(len(frontier.open))))
            chosen.append(itemset)
            assert frontier.open[len(frontier.open) - len(new) :] == new
            assert all(part in chosen for part in combinations(itemset, len(itemset) - 1) if part)
        assert Counter(chosen) == Counter(all_sets(items, 3))


def test_without_noise_the_most_frequent_sets_are_found() -> None:
    rng = np.random.default_rng(0)
    table = (rng.random((20_000, 8)) < np.linspace(0.9, 0.2, 8)).astype(float)
    items = listed_items(cell_geometry(pf.Schema([pf.Category(f"x{place}", [0, 1]) for place in range(8)]), cells=1))
    counts = {one: int(table[:, list(one)].all(axis=1).sum()) for one in all_sets(items, 8)}
    best = sorted(counts, key=lambda one: -counts[one])[:30]
    found = pf.frequent_itemsets(table, k=30, epsilon=1e5, max_size=8, random_state=0)
    assert set(found) == {tuple(f"x{place}" for place in one) for one in best}
    assert max(abs(rows - counts[tuple(int(own[1:]) for own in one)]) for one, rows in found.items()) < 1


@pytest.mark.parametrize("kind", ["pure", "delta"])
def test_intervals_of_counts_hold_nine_times_out_of_ten(kind: str) -> None:
    """Of the k counts together, at several k: 90% but for the error of 400 releases."""
    parameters = {"epsilon": 1.0, **({"delta": 1e-5} if kind == "delta" else {})}
    table = np.tile([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], (40, 1))
    for k in (1, 12):
        held = []
        for seed in range(100 if k > 1 else 400):
            found = pf.frequent_itemsets(table, k=k, random_state=seed, **parameters)
            for one, rows in found.items():
                low, high = rows.interval
                held.append(low <= table[:, [int(own[1:]) for own in one]].all(axis=1).sum() <= high)
        assert 0.86 < np.mean(held) < 0.94
