"""PrivGene for classes: what is decided before a row is read, from public facts, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.losses.margins import GRAIN
from privfit.mechanisms import PrivGene
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.genetic.moves import MovesPlan
from privfit.mechanisms.genetic.schedule import automatic_rounds
from privfit.privacy import Budget, PrivacyError, PrivacyParameters, SeededNoise
from privfit.privacy.parts import Repeat, Selection
from tests.support.genetic import LOSSES, SCHEMAS, SMALL, all_rows, domain, geometry_of, risk_of, rows_of


def plan_for(terms: PrivacyParameters, loss: str = "logistic", n_rows: int | None = 5000, **options) -> MovesPlan:
    mechanism = PrivGene(**options)
    facts = PublicFacts(geometry_of(SCHEMAS["levels"], mechanism, loss), terms, n_rows)
    return mechanism.plan(facts, risk_of(loss))


@pytest.mark.parametrize(
    "options", [{}, {"rounds": 1}, {"rounds": 37}, {"first_step": 3.0, "last_step": 0.05}, {"moves": "coordinates"}]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_shares_add_up_to_epsilon_exactly(options, epsilon) -> None:
    plan = plan_for(PrivacyParameters(Budget(epsilon)), **options)
    each = plan.schedule.choices.each
    assert sum(each) == Fraction(str(epsilon))
    assert all(share > 0 for share in each)
    assert len(each) == len(plan.schedule.steps) == plan.event.n_values
    assert (plan.event.epsilon, plan.event.delta, plan.event.rho) == (epsilon, 0.0, 0.0)
    assert sum(part.epsilon for part in plan.event.parts) == pytest.approx(epsilon)


@pytest.mark.parametrize("options", [{}, {"rounds": 37}, {"selection": "enhanced"}, {"selection": "exponential"}])
def test_with_a_delta_the_squares_of_shares_add_up_to_no_more_than_rho(options) -> None:
    plan = plan_for(PrivacyParameters(Budget(1.0, 1e-6)), n_rows=200_000, **options)
    event = plan.event
    spent = sum(share**2 for share in plan.schedule.choices.each) / 8
    assert event.delta == 1e-6
    assert event.kinds == ("exponential",)
    assert sum(part.rho for part in event.parts) == pytest.approx(event.rho)
    assert Fraction(event.rho) * (1 - Fraction(1, 10**9)) < spent <= Fraction(str(event.rho))


def test_permute_and_flip_leaves_a_delta_alone() -> None:
    plan = plan_for(PrivacyParameters(Budget(1.0, 1e-6)), selection="permute-and-flip")
    assert (plan.event.rho, plan.event.delta) == (0.0, 0.0)
    assert sum(plan.schedule.choices.each) == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_shrink_from_the_first_to_the_last_in_eighths_of_a_share(loss) -> None:
    plan = plan_for(PrivacyParameters(Budget(1.0)), loss, rounds=20).schedule
    assert all(step % 8 == 0 and step > 0 for step in plan.steps)
    assert plan.steps[0] == (1.5 if loss == "logistic" else 1.0) * GRAIN
    assert abs(plan.steps[-1] - 0.2 * GRAIN) <= 4
    assert list(plan.steps) == sorted(plan.steps, reverse=True)
    assert plan.loss.reach == sum(plan.steps)
    shares = [float(share) * math.sqrt(step) for share, step in zip(plan.choices.each, plan.steps, strict=True)]
    np.testing.assert_allclose(shares, shares[0])


def test_rounds_grow_with_public_facts_alone() -> None:
    geometry = geometry_of(SCHEMAS["levels"], PrivGene())
    few, many = (automatic_rounds(geometry, PrivacyParameters(Budget(1.0)), n) for n in (100, 10**6))
    assert 3 == few < many < automatic_rounds(geometry, PrivacyParameters(Budget(2.0)), 10**6)
    assert automatic_rounds(geometry, PrivacyParameters(Budget(1.0), rows_per_person=4), 10**6) < many
    assert automatic_rounds(geometry, PrivacyParameters(Budget(1e9)), 10**9) <= 2000


@pytest.mark.parametrize("moves", ["columns", "coordinates", "genes"])
def test_under_add_remove_the_number_of_rows_decides_nothing(moves) -> None:
    """Tables of 40 and of 4000 rows: the same rounds, steps and scales."""
    mechanism = PrivGene(moves=moves, candidates="auto")
    schema = SMALL
    events, asked = [], []
    for size in (40, 4000):
        noise = Recording()
        geometry = mechanism.geometry(schema, risk_of("logistic"), mechanism.numbers("auto", "splines"))
        rows = rows_of(domain(schema) * (size // 8), schema, geometry)
        release = mechanism.release(
            rows, PrivacyParameters(Budget(1.0), "add-remove", 1, 3000), None, noise, risk_of("logistic")
        )
        events.append(release.event)
        asked.append(noise.scales)
    assert events[0] == events[1]
    assert len(asked[0]) == len(asked[1])
    assert asked[0] == asked[1] or moves == "genes"  # whose candidates depend on what was chosen


class Recording(SeededNoise):
    """Writes down at what scale it was asked."""

    def __init__(self) -> None:
        super().__init__(0)
        self.scales: list[float] = []

    def pattern(self, chains, scale):
        self.scales.append(scale)
        return super().pattern(chains, scale)

    def select_each(self, menus, scale, rule):
        self.scales.append(scale)
        return super().select_each(menus, scale, rule)


def test_a_large_enough_number_of_steps_meets_every_weight_the_constants_too() -> None:
    """Every level of every column moves in some fit: a constant for all rows is a column that moves as one."""
    geometry = geometry_of(SCHEMAS["levels"], PrivGene())
    for moves in ("columns", "coordinates"):
        mechanism = PrivGene(moves=moves, rounds=60, selection="permute-and-flip", candidates=20)
        rows = rows_of(all_rows(SCHEMAS["levels"]), SCHEMAS["levels"], geometry)
        release = mechanism.release(rows, PrivacyParameters(Budget(0.01)), None, SeededNoise(2), risk_of("logistic"))
        assert np.all(release.value.weights != 0)


@pytest.mark.parametrize(("options", "before"), [({}, ()), ({"candidates": 20}, ("random-bits",))])
def test_the_event_is_short_where_rounds_are_alike(options, before) -> None:
    """Equal choices stand together, and all scales follow from public facts."""
    plan = plan_for(PrivacyParameters(Budget(1.0)), rounds=500, first_step=0.2, **options)
    found, scales = [], []
    for part in plan.event.parts:
        own = part.parts * part.times if isinstance(part, Repeat) else (part,)
        found += [one.kind for one in own]
        scales += [one.scale for one in own if isinstance(one, Selection)]
    assert found == [*before, "selection"] * 500
    assert len(plan.event.parts) < 60
    schedule = plan.schedule
    sensitivities = [schedule.sensitivity(place, PrivacyParameters(Budget(1.0))) for place in range(500)]
    assert scales == [schedule.choices.scale(place, most) for place, most in enumerate(sensitivities)]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"moves": "all"},
            r"moves='all' was given; it is 'columns', 'coordinates' or 'genes'. Use 'columns' if in doubt.",
        ),
        (
            {"calibration": "printed"},
            r"calibration='printed' was given; it is 'tight' or 'paper'. Use 'tight' if in doubt.",
        ),
        (
            {"parents": 2},
            r"parents=2 was given with moves='columns', which move one parent. Use moves='genes' for it.",
        ),
        ({"moves": "genes", "parents": 200}, "parents=200 of candidates=200 were given"),
        ({"moves": "genes", "mutation": 0}, "mutation=0 was given; it is above 0 and at most 1"),
        ({"moves": "genes", "decay": 2.0}, "decay=2.0 was given"),
        *(
            (
                {"candidates": wrong, "moves": moves},
                "candidates=.* was given; it is 'all', 'auto' or an integer of at least 2",
            )
            for wrong in (1, 2.5, True, "many", None)
            for moves in ("columns", "genes")
        ),
        (
            {"candidates": "all", "selection": "permute-and-flip"},
            "candidates='all' was given with permute-and-flip or single coordinates",
        ),
        ({"candidates": "all", "moves": "coordinates"}, "candidates='all' was given"),
        ({"candidates": "all", "moves": "genes"}, "candidates='all' was given"),
        *(
            ({"first_step": wrong}, "first_step=.* was given; it is 'auto' or a number from 0.05 to 10")
            for wrong in (0, -1, 11, True, "far")
        ),
        ({"last_step": float("nan")}, "last_step=nan was given"),
        *(
            ({"rounds": wrong}, "rounds=.* was given; it is 'auto' or an integer from 1 to")
            for wrong in (0, 1.5, "few", True, 10**6)
        ),
    ],
)
def test_parameters_that_mean_nothing_are_refused_in_a_clear_sentence(options, words) -> None:
    with pytest.raises(PrivacyError, match=words):
        PrivGene(**options).check()


def test_parameters_that_mean_something_are_not() -> None:
    assert PrivGene().check() is None
    assert PrivGene("enhanced", 2, "coordinates", 1, 0.05, 10).check() is None
    assert PrivGene(moves="genes", candidates=10, parents=9, mutation=1, decay=1).check() is None
    assert PrivGene(candidates=np.int64(7), rounds=np.int64(3)).check() is None


def test_knots_that_would_move_alone_are_refused() -> None:
    with pytest.raises(PrivacyError, match="splines"):
        PrivGene(moves="coordinates").geometry(SCHEMAS["knots"], risk_of("logistic"), "splines")


def test_the_mechanism_is_part_of_the_library() -> None:
    assert pf.PrivGene is PrivGene
