"""PrivGene for classes: what one row can do in a round, against all rows and all patterns; and the law of whole fits on
tiny tables.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from privfit.mechanisms import PrivGene
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.genetic.moves import MoveSchedule
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.privacy.samplers.patterns import Chain
from privfit.rows import CachedDesign, MarginRows
from privfit.schema import Geometry, Numeric, Schema
from tests.privacy.laws import LAWS, excess, most_told, renyi
from tests.support.genetic import (
    ADJACENCIES,
    LOSSES,
    SCHEMAS,
    SMALL,
    TARGET,
    all_rows,
    domain,
    geometry_of,
    kept_of,
    released_often,
    risk_of,
    rows_of,
)

DOWN, UP = 0, 1


def gains_of_row(
    row: tuple, schema: Schema, geometry: Geometry, plan: MoveSchedule, moves: list[tuple[int, tuple[int, ...]]]
) -> list[int]:
    """What every candidate of the next round gains on this row alone, after these moves; a level that stays gains
    nothing.
    """
    margins = MarginRows(kept_of((row,), schema, geometry), plan.loss)
    for (column, signs), step in zip(moves, plan.steps, strict=False):
        margins.move(column, signs, step)
    chains = [Chain(*pair) for pair in margins.gains(plan.steps[len(moves)])]
    found = [0]
    for chain in chains:
        found += [chain.gain(signs) for signs in itertools.product((DOWN, UP), repeat=chain.levels)]
        if chain.linked is None:
            found += [int(gain) for gain in chain.alone.ravel()]
    return found


def told(gains: np.ndarray, adjacency: str) -> int:
    """The most by which any row (or any two) changes a difference of two candidates: gains are (rows, candidates)."""
    apart = gains[:, :, None] - gains[:, None, :]
    most = apart.max(axis=0)  # over rows, for every two candidates
    return int((most + most.T).max()) if adjacency == "replace-one" else int(np.abs(apart).max())


def planned(
    schema: str, loss: str, adjacency: str, selection: str = "auto", people: int = 1, **options
) -> tuple[MoveSchedule, Geometry, PrivacyParameters]:
    mechanism = PrivGene(selection=selection, rounds=4, **options)
    geometry = geometry_of(SCHEMAS[schema], mechanism, loss)
    terms = PrivacyParameters(Budget(1.0), adjacency, people, 100)
    return mechanism.schedule(PublicFacts(geometry, terms, 100), risk_of(loss)), geometry, terms


# -- what a row can do -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_no_row_tells_two_candidates_apart_by_more_than_the_sensitivity_and_some_nearly_do(schema, loss) -> None:
    """All rows, all patterns and single levels, after moves that drive margins as far as they go, and after others."""
    plan, geometry, _ = planned(schema, loss, "replace-one", first_step=1.0, last_step=0.3)
    rng = np.random.default_rng(0)
    rows = all_rows(SCHEMAS[schema])
    for place in range(len(plan.steps)):
        nearest = dict.fromkeys(ADJACENCIES, 0.0)
        for trial in range(3):
            moves = []
            for _ in range(place):
                column = int(rng.integers(len(geometry.blocks))) if trial > 1 else 0
                width = geometry.blocks[column].width
                moves.append((column, (trial,) * width if trial < 2 else tuple(rng.integers(0, 2, width).tolist())))
            gains = np.array([gains_of_row(row, SCHEMAS[schema], geometry, plan, moves) for row in rows])
            for adjacency in ADJACENCIES:
                found, claimed = (
                    told(gains, adjacency),
                    plan.sensitivity(place, PrivacyParameters(Budget(1.0), adjacency)),
                )
                assert found <= claimed, (place, moves, adjacency)
                nearest[adjacency] = max(nearest[adjacency], found / claimed)
        assert min(nearest.values()) > 0.85, place


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_usual_exponential_rule_pays_for_how_far_a_score_moves(loss, adjacency) -> None:
    """Twice the change of one score, the largest of all candidates: what is scored is the loss itself, not only what is
    gained.
    """
    plan, geometry, terms = planned("levels", loss, adjacency, "exponential")
    values, reach = plan.loss.values, plan.loss.reach
    for place, step in enumerate(plan.steps):
        most = plan.within(place) + step
        high, low = values[reach - most], values[reach + most]
        assert plan.sensitivity(place, terms) == 2 * (high - (low if adjacency == "replace-one" else 0))
        gains = np.array(
            [
                gains_of_row(row, SCHEMAS["levels"], geometry, plan, [(0, (UP, UP))] * place)
                for row in all_rows(SCHEMAS["levels"])
            ]
        )
        assert told(gains, adjacency) <= plan.sensitivity(place, terms)
    better = planned("levels", loss, adjacency)[0]
    assert all(better.sensitivity(place, terms) <= plan.sensitivity(place, terms) for place in range(4))
    assert better.sensitivity(3, terms) < 0.5 * plan.sensitivity(3, terms)


@pytest.mark.parametrize("selection", ["enhanced", "exponential"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_several_rows_a_person_change_as_often_as_much(selection, adjacency) -> None:
    one, _, terms = planned("levels", "hinge", adjacency, selection)
    three, _, terms_of_three = planned("levels", "hinge", adjacency, selection, people=3)
    for place in range(4):
        assert three.sensitivity(place, terms_of_three) == 3 * one.sensitivity(place, terms)


def test_under_add_remove_half_as_far() -> None:
    swapped, _, terms = planned("levels", "logistic", "replace-one")
    added, _, terms_too = planned("levels", "logistic", "add-remove")
    assert [2 * added.sensitivity(place, terms_too) for place in range(4)] == [
        swapped.sensitivity(place, terms) for place in range(4)
    ]


def test_margins_never_leave_the_table_of_losses() -> None:
    """All moves in one direction, in one column: the farthest that there is."""
    for schema in SCHEMAS:
        plan, geometry, _ = planned(schema, "logistic", "replace-one", first_step=10.0, last_step=0.05)
        for sign in (DOWN, UP):
            margins = MarginRows(CachedDesign(rows_of(all_rows(SCHEMAS[schema]), SCHEMAS[schema], geometry)), plan.loss)
            for place, step in enumerate(plan.steps):
                margins.gains(step)
                margins.move(0, (sign,) * geometry.blocks[0].width, step)
                assert margins._margins is not None
                assert max(int(np.abs(part).max()) for part in margins._margins) == plan.within(place + 1)
            assert plan.within(4) == plan.loss.reach


# -- the law of a fit ------------------------------------------------------------------------------


def pattern_law(chains: list[Chain], scale: float) -> dict[tuple[int, tuple[int, ...]], float]:
    found = {}
    for place, chain in enumerate(chains):
        for signs in itertools.product((DOWN, UP), repeat=chain.levels):
            found[place, signs] = chain.gain(signs) / scale - chain.levels * math.log(2)
    top = max(found.values())
    total = math.fsum(math.exp(value - top) for value in found.values())
    return {pattern: math.exp(value - top) / total for pattern, value in found.items()}


class Scripted:
    """Makes the choices it is told to, with the same public coins every time, and multiplies how likely they were."""

    private = True

    def __init__(self, script: tuple, shrink: float = 1.0) -> None:
        self._script, self._coins, self._shrink = list(script), SeededNoise(7), shrink
        self.chance, self.asked = 1.0, []

    def below(self, limits):
        return self._coins.below(limits)

    def pattern(self, chains, scale):
        answer = self._script.pop(0)
        self.chance *= pattern_law(chains, scale * self._shrink)[answer]
        self.asked.append(("pattern", [chain.levels for chain in chains], scale))
        return answer

    def select_each(self, menus, scale, rule):
        (menu,) = menus
        answer = self._script.pop(0)
        self.chance *= LAWS[rule](menu, scale * self._shrink)[answer]
        self.asked.append((rule, len(menu), scale))
        return [answer]


BENT = Schema([Numeric("x", 0, 1)], TARGET)
EPSILON = 1.5


def law_of(
    rows: list[tuple],
    schema: Schema,
    mechanism: PrivGene,
    terms: PrivacyParameters,
    loss: str,
    scripts: list[tuple],
    shrink: float = 1.0,
):
    """The chance of every sequence of choices, and all that was asked for or released on the way."""
    geometry = geometry_of(schema, mechanism, loss, knots=2)
    law, seen, event = [], [], None
    release = released_often(mechanism, rows_of(rows, schema, geometry), terms, risk_of(loss, 2))
    for script in scripts:
        value, event = release(noise := Scripted(script, shrink))
        law.append(noise.chance)
        seen.append((noise.asked, value.weights.tolist(), value.loss.name))
    assert math.isclose(math.fsum(law), 1.0, rel_tol=1e-9)
    return law, seen, event


def neighbours(schema: Schema, adjacency: str, common: list[list[tuple]]) -> list[tuple[list[tuple], list[tuple]]]:
    rows = domain(schema)
    if adjacency == "add-remove":
        return [(base, [*base, row]) for base in common if base for row in rows]
    return [([*base, one], [*base, other]) for base in common for one, other in itertools.combinations(rows, 2)]


def compared(
    schema: Schema, mechanism: PrivGene, adjacency: str, loss: str, scripts: list[tuple], common, delta=0.0, shrink=1.0
):
    terms = PrivacyParameters(Budget(EPSILON, delta), adjacency, 1, 100)
    laws: dict[tuple, tuple] = {}
    for pair in neighbours(schema, adjacency, common):
        for rows in pair:
            key = tuple(sorted(rows))
            if key not in laws:
                laws[key] = law_of(rows, schema, mechanism, terms, loss, scripts, shrink)
        (one, seen, event), (other, seen_too, event_too) = (laws[tuple(sorted(rows))] for rows in pair)
        assert seen == seen_too, "what is asked of the noise, or released, depends on the rows beyond the choices"
        assert event == event_too
        yield one, other, event


def patterns(schema: Schema, width: int = 2) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (place, signs) for place in range(len(schema.features)) for signs in itertools.product((DOWN, UP), repeat=width)
    ]


CROWDS = {"small": [[("p", "q", "a")] * 12, []], "bent": [[(0.3, "b")] * 12, []]}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["small", "bent"])
def test_one_round_gives_away_no_more_than_epsilon_and_nearly_that(name, loss, adjacency) -> None:
    """All patterns, all rows that a table can differ by, beside a crowd and alone."""
    schema = SMALL if name == "small" else BENT
    mechanism = PrivGene(rounds=1)
    scripts = [(pattern,) for pattern in patterns(schema)]
    worst = max(
        most_told(one, other) for one, other, _ in compared(schema, mechanism, adjacency, loss, scripts, CROWDS[name])
    )
    assert 0.9 * EPSILON < worst <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["small", "bent"])
def test_two_rounds_together_give_away_no_more_than_epsilon(name, adjacency) -> None:
    schema = SMALL if name == "small" else BENT
    mechanism = PrivGene(rounds=2, first_step=1.0, last_step=0.5)
    scripts = list(itertools.product(patterns(schema), repeat=2))
    common = [[("p", "q", "a")] * 12] if name == "small" else CROWDS["bent"]
    worst = max(
        most_told(one, other) for one, other, _ in compared(schema, mechanism, adjacency, "logistic", scripts, common)
    )
    assert 0.6 * EPSILON < worst <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("selection", ["enhanced", "exponential", "permute-and-flip"])
@pytest.mark.parametrize("moves", ["columns", "coordinates"])
def test_listed_candidates_give_away_no_more_than_epsilon(selection, moves) -> None:
    mechanism = PrivGene(selection=selection, moves=moves, candidates=4, rounds=2, first_step=1.0, last_step=0.5)
    scripts = list(itertools.product(range(4), repeat=2))
    for adjacency in ADJACENCIES:
        worst = max(
            most_told(one, other)
            for one, other, _ in compared(SMALL, mechanism, adjacency, "huber", scripts, CROWDS["small"][:1])
        )
        assert 0.1 * EPSILON < worst <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_with_a_delta_the_choices_stay_within_the_rho_of_their_event(adjacency) -> None:
    delta = 0.2  # large enough that already two choices are cheaper in zCDP
    mechanism = PrivGene(selection="enhanced", rounds=2, first_step=1.0, last_step=0.5)
    scripts = list(itertools.product(patterns(BENT), repeat=2))
    most = 0.0
    for one, other, event in compared(BENT, mechanism, adjacency, "logistic", scripts, CROWDS["bent"], delta):
        assert event.rho > 0
        assert event.delta == delta
        for order in (1.1, 2.0, 5.0):
            for left, right in ((one, other), (other, one)):
                most = max(most, renyi(left, right, order) / (order * event.rho))
        assert max(excess(one, other, EPSILON), excess(other, one, EPSILON)) <= delta
    assert 0.05 < most <= 1 + 1e-9


def test_less_noise_than_is_paid_for_is_caught() -> None:
    scripts = [(pattern,) for pattern in patterns(SMALL)]
    worst = max(
        most_told(one, other)
        for one, other, _ in compared(
            SMALL, PrivGene(rounds=1), "replace-one", "hinge", scripts, CROWDS["small"], shrink=0.8
        )
    )
    assert worst > EPSILON


def test_a_spread_for_the_wrong_adjacency_is_caught(monkeypatch) -> None:
    """Under replace-one two rows speak: with the sensitivity of one of them the promise breaks."""
    right = MoveSchedule.sensitivity
    monkeypatch.setattr(
        MoveSchedule, "sensitivity", lambda self, place, told: right(self, place, replace(told, adjacency="add-remove"))
    )
    scripts = [(pattern,) for pattern in patterns(BENT)]
    worst = max(
        most_told(one, other)
        for one, other, _ in compared(BENT, PrivGene(rounds=1), "replace-one", "logistic", scripts, CROWDS["bent"])
    )
    assert worst > 1.5 * EPSILON
