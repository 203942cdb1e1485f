"""The promise of a private search, exactly: on small domains all neighbouring tables are listed, and the law of
everything that is chosen is computed from the scores and scales that the mechanism itself uses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from privfit.mechanisms import Breeding, GeneticMechanism, Search
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.schema import Schema
from privfit.statistics import RowFitness, TableFitness
from privfit.tables import open_table
from tests.privacy.laws import LAWS, excess, most_told, renyi
from tests.support.genetic import released_often

pytestmark = pytest.mark.usefixtures("in_this_thread")

VALUES = (0.0, 1.0, 4.0)
SCHEMA = Schema.box(0, 4).with_features(["x"])
GEOMETRY = SCHEMA.geometry(numeric="slope", intercept=False, several=True)
START = np.array([[0.0], [1.0], [4.0]])
EPSILON = 2.0
DELTA = 0.05
SELECTIONS = ("enhanced", "exponential", "permute-and-flip", "auto")
ADJACENCIES = ("replace-one", "add-remove")


def distance(rows: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    return -np.abs(rows - candidates.T)


FITNESSES = {
    "domain": RowFitness(distance, domain=VALUES),
    "spread": RowFitness(distance, spread=lambda w: float(np.ptp(w))),
    "bounds": RowFitness(distance, bounds=(-4.0, 0.0)),
    "bounds by candidate": RowFitness(distance, bounds=lambda w: (-np.maximum(w[:, 0], 4 - w[:, 0]), np.zeros(len(w)))),
    "a spread that lies": RowFitness(lambda rows, w: 1e3 * distance(rows, w), spread=1.0),
    "with a prior": RowFitness(distance, spread=4.0, prior=lambda w: -w[:, 0]),
    "table": TableFitness(lambda rows, w: distance(rows, w).sum(axis=0), sensitivity=4.0),
}


class Scripted:
    """Makes the choices it is told to, with the same public coins every time, and adds up how likely they were."""

    private = True

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script, self._coins = list(script), SeededNoise(7)
        self.chance, self.asked = 1.0, []

    def below(self, limits):
        return self._coins.below(limits)

    def select_each(self, menus, scale, rule):
        answer = []
        for menu in menus:
            answer.append(self._script.pop(0))
            self.chance *= LAWS[rule](menu, scale)[answer[-1]]
        self.asked.append(([len(menu) for menu in menus], scale, rule))
        return answer


def scripts(rounds: int, parents: int, size: int) -> Iterator[tuple[int, ...]]:
    """All sequences of choices: parents are taken one after the other from those that are left."""
    one = [range(size - taken) for taken in range(parents)]
    return itertools.product(*(one * (rounds - 1)), range(size))


def law_of(rows: tuple[float, ...], fitness, selection: str, adjacency: str, delta: float, rounds: int, parents: int):
    """The chance of every sequence of choices on this table, and what was asked for and released on the way."""
    terms = PrivacyParameters(Budget(EPSILON, delta), adjacency, 1, 100)
    mechanism = GeneticMechanism(selection, Breeding(candidates=3, parents=parents, mutation=0.25), rounds)
    law, asked, event = [], [], None
    table = Rows(open_table(np.array(rows)[:, None]), SCHEMA, GEOMETRY)
    release = released_often(mechanism, table, terms, Search(fitness, np.array([0.0]), np.array([4.0]), START))
    for script in scripts(rounds, parents, 3):
        value, event = release(noise := Scripted(script))
        law.append(noise.chance)
        asked.append((noise.asked, value.tolist()))
    assert math.isclose(math.fsum(law), 1.0)
    return law, asked, event


def tables(size: int) -> list[tuple[float, ...]]:
    return list(itertools.combinations_with_replacement(VALUES, size))


def neighbours(adjacency: str, size: int) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    found = set()
    for table in tables(size):
        for place in range(size):
            rest = table[:place] + table[place + 1 :]
            others = [rest] if adjacency == "add-remove" else [tuple(sorted((*rest, value))) for value in VALUES]
            found |= {(table, other) for other in others if table != other}
    return sorted(found)


def compared(
    fitness, selection: str, adjacency: str, delta: float = 0.0, rounds: int = 1, parents: int = 1, size: int = 5
):
    laws = {}
    for pair in neighbours(adjacency, size):
        for table in pair:
            if table not in laws:
                laws[table] = law_of(table, fitness, selection, adjacency, delta, rounds, parents)
        (one, asked, event), (other, asked_too, event_too) = laws[pair[0]], laws[pair[1]]
        assert asked == asked_too, "what is asked of the noise, or released, depends on the rows beyond the choices"
        assert event == event_too
        yield one, other, event


def can(selection: str, fitness) -> bool:
    """The exponential rule as the paper has it needs to know how far a score moves."""
    return selection != "exponential" or isinstance(fitness, TableFitness) or fitness.spread is None


def cases(names) -> list[tuple[str, str]]:
    return [(name, selection) for name in names for selection in SELECTIONS if can(selection, FITNESSES[name])]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("name", "selection"), cases(FITNESSES))
def test_a_choice_gives_away_no_more_than_epsilon(name, selection, adjacency) -> None:
    worst = max(most_told(one, other) for one, other, _event in compared(FITNESSES[name], selection, adjacency))
    assert worst <= EPSILON * (1 + 1e-9)
    assert worst > 0.1 * EPSILON, "the tables make no difference: nothing was tested"


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("selection", ["enhanced", "permute-and-flip", "auto"])
@pytest.mark.parametrize("name", ["domain", "spread"])
def test_the_range_bound_wastes_next_to_nothing(name, selection, adjacency) -> None:
    """Some two tables are told apart by nearly epsilon: with less noise the promise would break."""
    worst = max(most_told(one, other) for one, other, _event in compared(FITNESSES[name], selection, adjacency, size=8))
    assert 0.95 * EPSILON < worst <= EPSILON * (1 + 1e-9)


def test_less_noise_than_the_range_asks_for_is_caught(monkeypatch) -> None:
    """The check works: at three quarters of the scale it fails."""
    from privfit.mechanisms.genetic.selections import Choices

    paid = Choices.scale
    monkeypatch.setattr(Choices, "scale", lambda self, place, most: 0.75 * paid(self, place, most))
    assert (
        max(
            most_told(one, other)
            for one, other, _event in compared(FITNESSES["domain"], "enhanced", "replace-one", size=8)
        )
        > EPSILON
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("parents", [1, 2])
@pytest.mark.parametrize(("name", "selection"), cases(["domain", "spread", "bounds", "table"]))
def test_rounds_that_depend_on_rounds_before_give_away_no_more_than_epsilon_together(
    name, parents, selection, adjacency
) -> None:
    worst = 0.0
    for one, other, event in compared(
        FITNESSES[name], selection, adjacency, rounds=2, parents=parents, size=4 - parents
    ):
        worst = max(worst, most_told(one, other))
        assert (event.epsilon, event.delta, event.rho) == (EPSILON, 0.0, 0.0)
    assert 0.05 * EPSILON < worst <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("selection", ["enhanced", "exponential"])
@pytest.mark.parametrize("parents", [1, 2])
@pytest.mark.parametrize("name", ["domain", "bounds"])
def test_with_a_delta_all_rounds_together_stay_within_rho_and_within_epsilon_and_delta(
    name, parents, selection, adjacency
) -> None:
    used = 0.0
    for one, other, event in compared(
        FITNESSES[name], selection, adjacency, DELTA, rounds=2, parents=parents, size=4 - parents
    ):
        assert event.delta == DELTA
        assert event.rho > 0
        for order in (1.001, 2.0, 10.0, 60.0):
            used = max(
                used, renyi(one, other, order) / (order * event.rho), renyi(other, one, order) / (order * event.rho)
            )
        assert max(excess(one, other, EPSILON), excess(other, one, EPSILON)) <= DELTA
    assert 0.05 < used <= 1 + 1e-9
