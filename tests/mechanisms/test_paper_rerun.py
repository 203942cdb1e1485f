"""Lemma 5 of the functional-mechanism paper: drawing again until the objective is bounded, as printed and as it is done
here.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest, laplace

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.functional.defaults import USUAL_RERUNS
from privfit.mechanisms.functional.problem import noise_kind
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.tables import open_table
from tests.support.noise import Call, RecordingNoise

BOX = pf.Schema([pf.Numeric("a", 0, 1), pf.Numeric("b", 0, 1)], target=pf.Numeric("y", -1, 1))
LINEAR_EXAMPLE = [(1.0, 0.4), (0.9, 0.3), (-0.5, -1.0)]
"""The paper's worked example of linear regression."""

# -- Lemma 5: drawing again until the objective is bounded -----------------------------------------

DECAY = Fraction(1, 2)
"""e^(-epsilon/2), so that one draw costs log 2 and the whole may cost 2 log 2, in exact fractions."""
WHOLE = 1 / DECAY**2


def mass(noisy: int, exact: int, decay: Fraction = DECAY) -> Fraction:
    """The chance of a value under discrete Laplace noise, whose scale fits a sensitivity of 1."""
    return (1 - decay) / (1 + decay) * decay ** abs(noisy - exact)


def mass_above_zero(exact: int, decay: Fraction) -> Fraction:
    return 1 - decay**exact / (1 + decay) if exact >= 1 else decay ** (1 - exact) / (1 + decay)


def sets_of_values() -> list[tuple[int, ...]]:
    places = range(-3, 5)
    return [chosen for size in range(1, len(places) + 1) for chosen in itertools.combinations(places, size)]


def kept(accepted: tuple[int, ...], exact: int) -> dict[int, Fraction]:
    """The law of a draw that is repeated until it lands in the set."""
    share = sum(mass(value, exact) for value in accepted)
    return {value: mass(value, exact) / share for value in accepted}


def test_two_draws_worth_of_epsilon_cover_every_set_and_one_does_not() -> None:
    """Lemma 5 with neighbours at 0 and 1 and every accepted set of 8 places, exactly: e^epsilon is never passed,
    e^(epsilon/2) is.
    """
    worst = Fraction(0)
    for accepted in sets_of_values():
        here, there = kept(accepted, 0), kept(accepted, 1)
        assert sum(here.values()) == 1
        ratios = [here[value] / there[value] for value in accepted]
        worst = max(worst, *ratios, *(1 / ratio for ratio in ratios))
    assert worst <= WHOLE
    assert worst > Fraction(9, 10) * WHOLE, (
        "the price of two draws is nearly reached, so half of epsilon for each is needed"
    )


def test_giving_up_by_a_coin_stays_within_epsilon_and_a_count_does_not() -> None:
    """docs/proofs/rerun.md: the mechanism's own coin, exactly; and why it is not a number of tries."""
    coin = Fraction(1, USUAL_RERUNS)

    def law(accepted: tuple[int, ...], exact: int) -> dict[int | None, Fraction]:
        share = sum(mass(value, exact) for value in accepted)
        ends = share + coin * (1 - share)
        return {None: coin * (1 - share) / ends} | {value: mass(value, exact) / ends for value in accepted}

    for accepted in sets_of_values():
        here, there = law(accepted, 0), law(accepted, 1)
        assert sum(here.values()) == 1 == sum(there.values())
        assert all(1 / WHOLE <= here[end] / there[end] <= WHOLE for end in here)
    tries = 5
    refused = [(1 - mass_above_zero(exact, DECAY)) ** tries for exact in (0, 1)]
    assert refused[0] / refused[1] > WHOLE


def test_the_objective_of_one_column_drawn_until_it_curves_upward() -> None:
    """The real accepted set, for d = 1: a w^2 - b w with a > 0.

    The pair moves by 2 in L1, so e^(epsilon/2) is decay^-2.
    """
    decay = Fraction(2, 3)
    whole = decay ** (-2 * 2)
    worst = Fraction(0)
    for (a, b), (c, d) in [((3, 1), (2, 2)), ((1, 0), (0, 1)), ((0, 0), (-2, 0)), ((1, 1), (1, -1))]:
        for u, v in itertools.product(range(1, 8), range(-7, 8)):
            here = mass(u, a, decay) * mass(v, b, decay) / mass_above_zero(a, decay)
            there = mass(u, c, decay) * mass(v, d, decay) / mass_above_zero(c, decay)
            worst = max(worst, here / there, there / here)
    assert decay**-2 <= worst <= whole


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("calibration", "noise"), [("paper", "laplace"), ("tight", "laplace"), ("tight", "linf"), ("tight", "l2")]
)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_one_draw_of_rerun_has_the_noise_of_half_of_epsilon_and_the_price_of_all(
    adjacency, calibration, noise, epsilon
) -> None:
    """Lemma 5 asks of one draw only that it is private, so it holds for every pure shape of the noise."""
    objective = QuadraticProblem(SQUARED)
    again = pf.FunctionalMechanism(calibration=calibration, repair="rerun", noise=noise)
    once = pf.FunctionalMechanism(calibration=calibration, noise=noise)
    geometry = once.geometry(BOX, objective)
    event, half = (
        mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(price), adjacency), 10), objective).event
        for mechanism, price in ((again, epsilon), (once, epsilon / 2))
    )
    assert noise_kind(event) == noise_kind(half) == noise
    (repeat,), (draw,) = event.parts, half.parts
    assert (repeat.parts, repeat.one_in) == ((draw,), USUAL_RERUNS)
    assert event.scale == half.scale
    assert event.sensitivity == half.sensitivity
    assert (event.epsilon, half.epsilon) == (epsilon, epsilon / 2)


ONE_COLUMN = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
AGAIN = pf.FunctionalMechanism(repair="rerun", noise="laplace")
NO_INTERCEPT = QuadraticProblem(SQUARED, fit_intercept=False)


def one_column_rows() -> Rows:
    table = np.array(LINEAR_EXAMPLE, dtype=np.float64)
    return Rows(open_table(table), ONE_COLUMN, AGAIN.geometry(ONE_COLUMN, NO_INTERCEPT))


class ScriptedNoise(RecordingNoise):
    """Adds what it was told to the first value, one number a call, in units of the statistic."""

    def __init__(self, script: list[float], unit: int) -> None:
        super().__init__()
        self._script, self._unit = script, unit

    def _answer(self, kind: str, values: np.ndarray, scale: float) -> np.ndarray:
        output = values.copy()
        output[0] += round(self._script[len(self.calls)] * self._unit)
        self.calls.append(Call(kind, values.copy(), scale, output))
        return output

    def one_in(self, count: int) -> bool:
        return False


def test_refused_draws_leave_no_trace_and_cost_nothing_more() -> None:
    """Two draws that curve downward, then one that does not: it is returned as it is, made from the exact sums, and
    charged once.
    """
    rows = one_column_rows()
    terms = PrivacyParameters(Budget(0.25))
    plan = AGAIN.plan(PublicFacts.before_reading(rows, terms), NO_INTERCEPT)
    noise = ScriptedNoise([-5.0, -2.0601, 0.5, 9.0], plan.moments.unit)
    ledger = pf.Ledger(epsilon=1.0)
    release = AGAIN.release(rows, terms, ledger, noise, NO_INTERCEPT)
    assert len(noise.calls) == 3
    assert release.value.products[0, 0] == pytest.approx(2.56, abs=1e-4)
    assert AGAIN.solve(release, rows.geometry, NO_INTERCEPT).solution.bounded
    assert all((call.values == noise.calls[0].values).all() for call in noise.calls)
    assert {call.scale for call in noise.calls} == {release.event.scale}
    assert ledger.spent == 0.25
    assert len(ledger.entries()) == 1


def test_what_is_returned_follows_the_law_of_a_draw_given_that_it_is_bounded() -> None:
    """The curvature that rerun releases, over 500 seeds, against Laplace noise cut at zero, and against Laplace noise
    that is not.
    """

    class PatientNoise(SeededNoise):
        """Never gives up, so that every seed counts."""

        def one_in(self, count: int) -> bool:
            return False

    rows = one_column_rows()
    terms = PrivacyParameters(Budget(2.0))
    released = np.array(
        [
            AGAIN.release(rows, terms, None, PatientNoise(seed), NO_INTERCEPT).value.products[0, 0]
            for seed in range(500)
        ],
        dtype=np.float64,
    )
    event = AGAIN.plan(PublicFacts.before_reading(rows, terms), NO_INTERCEPT).event
    plain = laplace(loc=2.06, scale=event.scale / event.unit)
    below = plain.cdf(0.0)
    assert below > 0.15, "draws are refused often enough to see it"
    assert (released > 0).all()
    assert kstest(released, lambda value: (plain.cdf(value) - below) / (1 - below)).pvalue > 0.01
    assert kstest(released, plain.cdf).pvalue < 1e-6
