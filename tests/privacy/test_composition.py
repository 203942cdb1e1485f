"""What several releases cost together, against exact sums and against the true privacy loss."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from privfit.privacy import PrivacyError, exact
from privfit.privacy.budget import (
    Cost,
    History,
    _fixed_part,
    epsilon_of,
    order_for,
    rho_of,
    stated_epsilon,
    total,
)
from privfit.privacy.ledger.chain import history_fields, read_history

WHOLE = (5.0, 1e-6)
EPSILONS = st.floats(1e-3, 50)
DELTAS = st.floats(-280, -1).map(lambda power: 10.0**power)
RHOS = st.floats(1e-6, 10)


def pure(*epsilons) -> list[Cost]:
    return [Cost(exact(epsilon)) for epsilon in epsilons]


def gaussian(*rhos) -> list[Cost]:
    return [Cost(Fraction(0), rho=exact(rho)) for rho in rhos]


def fits(costs, epsilon, delta=0.0) -> bool:
    spent = total(costs, epsilon, delta)
    return spent[0] <= exact(epsilon) and spent[1] <= exact(delta)


# -- pure and approximate costs add up -------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "times", "whole"), [(0.1, 10, 1.0), (0.1, 3, 0.3), (0.01, 100, 1.0), (0.7, 10, 7.0), (1e-4, 3000, 0.3)]
)
def test_as_many_parts_fit_as_a_person_would_count_and_not_one_more(part, times, whole):
    assert fits(pure(*[part] * times), whole)
    assert not fits(pure(*[part] * (times + 1)), whole)


@given(st.lists(st.floats(1e-6, 10), max_size=20), st.lists(st.floats(0, 1e-3), max_size=20))
def test_epsilons_and_deltas_are_summed_exactly(epsilons, deltas):
    costs = pure(*epsilons) + [Cost(exact(0.5), exact(delta)) for delta in deltas]
    epsilon, delta = total(costs, 1.0, 0.0)
    assert epsilon == sum(map(exact, epsilons), Fraction(len(deltas), 2))
    assert delta == sum(map(exact, deltas), Fraction(0))


def test_a_delta_beyond_the_budget_does_not_fit_though_epsilon_does():
    cost = Cost(exact(0.1), exact(1e-6))
    assert fits([cost] * 5, 1.0, 5e-6)
    assert not fits([cost] * 6, 1.0, 5e-6)
    assert not fits([cost], 1.0)


def test_nothing_costs_nothing():
    assert total([], *WHOLE) == (0, 0)
    assert total([], 1.0, 0.0) == (0, 0)


# -- zCDP ------------------------------------------------------------------------------------------


def epsilon_at(order: float, rho: float, delta: float) -> Decimal:
    """The epsilon that a Renyi divergence of order * rho implies (Balle et al. 2020; Canonne, Kamath, Steinke 2020), to
    60 digits.

    Rho and delta are the numbers that a person wrote; the order is the float itself.
    """
    with localcontext() as context:
        context.prec = 60
        alpha, rho_, delta_ = Decimal(order), Decimal(repr(rho)), Decimal(repr(delta))
        return rho_ * alpha + ((alpha - 1) / alpha).ln() - (delta_.ln() + alpha.ln()) / (alpha - 1)


def least_epsilon(rho: float, delta: float) -> float:
    """The least over orders, by a grid and ever finer grids around its best point: as good as doubles are."""
    low, high = -25.0, 60.0
    for points in (20_001, 401, 401, 401, 401, 401):
        exponents = np.linspace(low, high, points)
        values = _epsilons(exponents, rho, delta)
        best, step = int(np.argmin(values)), (high - low) / (points - 1)
        low, high = exponents[best] - step, exponents[best] + step
    return float(values.min())


def _epsilons(exponents: np.ndarray, rho: float, delta: float) -> np.ndarray:
    """What every order 1 + exp(exponent) gives; where that is below the Renyi divergence itself, the latter."""
    orders = 1 + np.exp(exponents)
    shrink = np.where(orders > 2, np.log1p(-1 / orders), np.log((orders - 1) / orders))
    return rho * orders + np.maximum(shrink - (np.log(delta) + np.log(orders)) / (orders - 1), 0.0)


@given(EPSILONS, DELTAS)
@example(1.0, 1e-6)
@example(1e-3, 1e-280)
@example(50.0, 0.9999999)
def test_rho_of_never_buys_more_than_epsilon_pays_for_and_hardly_less(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert epsilon_at(order_for(epsilon, delta), rho, delta) <= Decimal(repr(epsilon))
    assert least_epsilon(rho * (1 + 1e-4), delta) > epsilon


ORDERS = [1.0000000000001015, *(1 + 1.37 * 2.0**power for power in range(-44, 101, 4))]
NEAR_ONE = [0.9999999994317543, 0.9991563242875364, *(1 - 1.1 * 2.0**-power for power in range(1, 53, 3))]
ALL_DELTAS = [*NEAR_ONE, *(1.7 * 10.0**-power for power in (1, 2, 6, 30, 300)), 1e-310, 5e-324]


@pytest.mark.parametrize("delta", ALL_DELTAS)
def test_the_fixed_part_is_never_rounded_down_and_hardly_up(delta):
    for order in ORDERS:
        part, true = Decimal(_fixed_part(order, delta)), epsilon_at(order, 0.0, delta)
        size = 1 - (math.log(delta) - math.log(order)) / (order - 1)
        last_digit = (delta - math.nextafter(delta, 0.0)) / delta / (order - 1)
        assert 0 <= part - max(true, Decimal(0)) <= Decimal(2.0**-46 * size + 2 * last_digit), order


@pytest.mark.parametrize("delta", NEAR_ONE)
def test_rho_of_keeps_its_promise_when_delta_is_close_to_one(delta):
    for epsilon in (4.0179695354179815e-22, 2.179802309320607e-06, 1e-3, 1.0, 30.0):
        rho = rho_of(epsilon, delta)
        assert rho == 0 or epsilon_at(order_for(epsilon, delta), rho, delta) <= Decimal(repr(epsilon)), epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-8])
def test_rho_of_beats_the_simple_conversion_and_stays_under_the_exact_one(epsilon, delta):
    log = -math.log(delta)
    simple = (math.sqrt(epsilon + log) - math.sqrt(log)) ** 2  # Bun and Steinke 2016
    assert rho_of(epsilon, delta) > 1.2 * simple
    assert gaussian_delta(rho_of(epsilon, delta), epsilon) <= delta
    assert gaussian_delta(1.4 * rho_of(epsilon, delta), epsilon) > delta


@given(RHOS, DELTAS)
def test_epsilon_of_is_never_below_what_holds_and_hardly_above(rho, delta):
    epsilon = epsilon_of(rho, delta)
    assert gaussian_delta(rho, epsilon) <= delta * (1 + 1e-9)
    assert epsilon <= least_epsilon(rho, delta) * (1 + 1e-9)


@given(EPSILONS, DELTAS)
def test_there_and_back_never_gains_privacy(epsilon, delta):
    assert epsilon * (1 - 2e-3) <= epsilon_of(rho_of(epsilon, delta), delta) <= epsilon * (1 + 1e-12)


@given(EPSILONS, DELTAS)
def test_a_ledger_can_spend_on_one_gaussian_all_the_rho_that_its_budget_buys_and_not_more(epsilon, delta):
    rho = rho_of(epsilon, delta / 2)
    assert fits(gaussian(rho), epsilon, delta)
    assert not fits(gaussian(rho * (1 + 1e-9) + 1e-12), epsilon, delta)


# -- a Gaussian release that states more than half of the ledger's delta ---------------------------


def test_one_gaussian_fit_can_have_the_whole_ledger():
    cost = Cost(exact(1.0), exact(1e-6), exact(rho_of(1.0, 1e-6)))
    assert total([cost], 1.0, 1e-6) == (1, exact(1e-6))
    assert not fits([cost, Cost(exact(1e-9))], 1.0, 1e-6)


def test_stated_deltas_add_up_once_the_first_gaussian_took_more_than_half():
    first = Cost(exact(0.5), exact(6e-7), exact(rho_of(0.5, 6e-7)))
    second = Cost(exact(0.5), exact(4e-7), exact(rho_of(0.5, 4e-7)))
    assert total([Cost(exact(0.25)), first, second], 2.0, 1e-6) == (exact(1.25), exact(1e-6))
    assert not fits([first, first], 2.0, 1e-6)


def test_a_stated_epsilon_below_what_the_rho_implies_is_not_believed():
    liar = Cost(exact(0.1), exact(1e-6), exact(1.0))
    assert float(total([liar], 50.0, 1e-6)[0]) >= epsilon_of(1.0, 1e-6)


def test_a_few_gaussians_add_up_as_stated_and_many_are_pooled():
    cost = Cost(exact(0.5), exact(1e-7), exact(rho_of(0.5, 1e-7)))
    assert total([cost], 10.0, 1e-5) == (exact(0.5), exact(1e-7))
    assert total([cost, Cost(exact(1.5))], 2.0, 1e-5) == (2, exact(1e-7))
    many = total([cost] * 30, 10.0, 1e-5)
    assert many[0] < 15
    assert exact(1e-5) / 2 < many[1] <= exact(1e-5)  # what the first ones stated stays spent
    assert total([cost] * 30, 10.0, 1e-5)[0] <= sum(c.epsilon for c in [cost] * 30)


def test_stated_deltas_beyond_half_of_the_ledger_s_are_not_added_up_as_stated():
    cost = Cost(exact(0.01), exact(3e-6), exact(rho_of(0.01, 3e-6)))
    assert total([cost], 10.0, 1e-5)[1] == exact(3e-6)
    assert (
        total([cost] * 2, 10.0, 1e-5)[1] == exact(3e-6) + exact(1e-5) / 2
    )  # 6e-6 is more than half: pooled, and the first stays spent


def test_who_stops_when_a_stated_delta_has_failed_and_goes_on_otherwise_cannot_fail_more_often_than_delta():
    """Stated deltas, then the pool, then direct deltas: a history that stops at its first failure meets all three, and
    they must fit together.
    """
    epsilon, delta = 1.0, exact(1e-3)
    gauss = Cost(exact(0.2), exact(1e-4), exact(rho_of(0.2, 1e-4)))
    for stated in range(1, 6):
        for direct in (0, 1, 2, 3, 4, 5):
            history = [gauss] * stated + [Cost(exact(0.0), exact(1e-4))] * direct + gaussian(1e-9)
            if not fits(history, epsilon, 1e-3):
                continue
            could_fail = sum((cost.delta for cost in [gauss] * stated), Fraction(0)) + direct * exact(1e-4) + delta / 2
            assert could_fail <= delta, (stated, direct)
    assert fits([gauss] * 4 + gaussian(1e-9), epsilon, 1e-3)
    assert not fits([gauss] * 4 + [Cost(exact(0.0), exact(1e-4))] * 2 + gaussian(1e-9), epsilon, 1e-3)


def test_a_history_that_chooses_its_rule_by_what_it_saw_stays_within_the_budget():
    """After one fair answer a transcript goes on either as stated or pooled: the two failures together stay below
    delta.
    """
    epsilon, delta = 1.0, 1e-3
    stated = [Cost(exact(0.3), exact(1e-4), exact(rho_of(0.3, 1e-4)))] * 3
    assert fits(stated, epsilon, delta)
    rho = rho_of(epsilon, delta / 2)
    assert fits(gaussian(rho), epsilon, delta)
    as_stated = gaussian_delta(3 * rho_of(0.3, 1e-4), epsilon)
    pooled = gaussian_delta(rho, epsilon)
    assert as_stated <= 3e-4
    assert pooled <= delta / 2
    assert as_stated + pooled <= delta


@pytest.mark.parametrize(("beyond", "counted"), [(1e-13, 2), (1e-6, 1)])
def test_in_doubt_whether_costs_could_be_added_up_as_stated_a_delta_is_counted(beyond, counted):
    cost = Cost(exact(0.5), exact(1e-7), exact(rho_of(0.5, 1e-7)))
    assert total([*pure(beyond), cost, cost], 1.0, 1e-5)[1] == counted * exact(1e-7) + exact(1e-5) / 2


def test_who_repeats_a_leaky_release_until_it_leaks_stays_within_the_budget_though_not_within_the_total():
    leaky = Cost(Fraction(0), exact(0.01))
    times = max(n for n in range(1, 20) if fits([leaky] * n, 1.0, 0.1))
    leaks = 1 - Fraction(99, 100) ** times
    assert times == 10
    assert total([leaky], 1.0, 0.1)[1] < leaks <= exact(0.1)


def test_without_a_limit_stated_costs_add_up():
    cost = Cost(exact(1.0), exact(1e-6), exact(rho_of(1.0, 1e-6)))
    assert total([cost, cost], math.inf, 0.0) == (2, exact(2e-6))


@given(st.lists(RHOS, min_size=1, max_size=5), EPSILONS, DELTAS)
def test_the_total_is_never_below_the_best_conversion_of_the_summed_rho(rhos, epsilon, delta):
    spent, spent_delta = total(gaussian(*rhos), epsilon, delta)
    best = least_epsilon(sum(rhos), delta / 2)
    assert spent_delta == exact(delta) / 2
    assert float(spent) >= best * (1 - 1e-12)  # no order gives less than the best one, and totals are rounded up


@pytest.mark.parametrize("whole", [(0.5, 1e-9), (1.0, 1e-6), (5.0, 1e-6), (20.0, 1e-3)])
@pytest.mark.parametrize("rho", [1e-5, 1e-3, 0.05, 0.5, 3.0])
def test_the_total_covers_the_true_privacy_loss_of_a_gaussian_mechanism(whole, rho):
    spent, spent_delta = total(gaussian(*[rho / 4] * 4), *whole)
    assert gaussian_delta(rho, float(spent)) <= float(spent_delta)


@pytest.mark.parametrize("whole", [(1.0, 1e-6), (5.0, 1e-6), (5.0, 1e-2)])
@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.2])
@pytest.mark.parametrize("epsilons", [[0.1], [1.0], [0.5, 0.25, 2.0]])
def test_the_total_covers_the_true_privacy_loss_of_randomised_answers_and_a_gaussian_together(whole, rho, epsilons):
    spent, spent_delta = total(pure(*epsilons) + gaussian(rho), *whole)
    assert mixed_delta(rho, epsilons, float(spent)) <= float(spent_delta)


def test_the_true_privacy_loss_is_not_trivially_covered():
    """The two checks above could fail: without the conversion's second term they do."""
    assert gaussian_delta(0.5, 0.5) > 1e-3
    assert mixed_delta(0.2, [1.0], 1.2) > 1e-3


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of the Gaussian mechanism that is rho-zCDP (Balle and Wang 2018)."""
    if rho == 0:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0
    ratio = math.sqrt(2 * rho)  # sensitivity / sigma
    return float(norm.cdf(ratio / 2 - epsilon / ratio) - math.exp(epsilon + log_ndtr(-ratio / 2 - epsilon / ratio)))


def mixed_delta(rho: float, epsilons: list[float], epsilon: float) -> float:
    """The exact delta of randomised response at each epsilon, and that Gaussian mechanism, together."""
    if not epsilons:
        return gaussian_delta(rho, epsilon)
    first, rest = epsilons[0], epsilons[1:]
    truth = 1 / (1 + math.exp(-first))
    return truth * mixed_delta(rho, rest, epsilon - first) + (1 - truth) * mixed_delta(rho, rest, epsilon + first)


@given(st.lists(RHOS, min_size=2, max_size=5), EPSILONS, DELTAS)
def test_the_order_is_fixed_beforehand_so_that_every_rho_costs_the_same_whenever_it_comes(rhos, epsilon, delta):
    """A total that is optimised after the fact is no filter: it would not be affine in rho."""
    totals = [total(gaussian(*rhos[: i + 1]), epsilon, delta)[0] for i in range(len(rhos))]
    slopes = {(after - before) / exact(rho) for before, after, rho in zip(totals, totals[1:], rhos[1:], strict=False)}
    assert len(slopes) == 1
    assert slopes.pop() > 1


def test_the_order_is_the_one_at_which_the_budget_buys_the_most():
    epsilon, delta = 1.0, 1e-6
    order = order_for(epsilon, delta)

    def bought(other):
        return (epsilon - float(epsilon_at(other, 0.0, delta))) / other

    assert bought(order) == pytest.approx(rho_of(epsilon, delta), rel=1e-9)
    assert bought(order) > max(bought(order * 1.01), bought(order / 1.01))


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=5), st.lists(RHOS, min_size=1, max_size=5), st.randoms())
def test_mixed_costs_are_the_direct_sum_plus_one_conversion_in_any_order(epsilons, rhos, random):
    direct = [*pure(*epsilons), Cost(exact(0.25), exact(1e-7))]
    costs = direct + gaussian(*rhos)
    random.shuffle(costs)
    epsilon, delta = total(costs, *WHOLE)
    alone = total(gaussian(*rhos), *WHOLE)
    assert epsilon == total(direct, *WHOLE)[0] + alone[0]
    assert delta == exact(1e-7) + alone[1]


def test_a_gaussian_release_is_priced_by_its_rho_and_not_by_its_nominal_epsilon_and_delta():
    named = Cost(exact(3.0), exact(1e-7), exact(0.01))
    epsilon, delta = total([named], *WHOLE)
    assert epsilon == total(gaussian(0.01), *WHOLE)[0]
    assert delta == total(gaussian(0.01), *WHOLE)[1] + exact(1e-7)  # a history may have stopped at what it states


@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-310])
def test_a_ledger_without_delta_cannot_pay_for_a_gaussian(delta):
    with pytest.raises(PrivacyError, match="no delta to pay with"):
        total(gaussian(1e-9), 1.0, delta)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-12, 1e6, math.inf])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.999])
def test_extreme_budgets_still_give_a_finite_and_growing_total(epsilon, delta):
    small, large = (total(gaussian(rho), epsilon, delta)[0] for rho in (1e-9, 1e-3))
    assert 0 < small < large
    assert math.isfinite(float(large))


def test_half_of_delta_is_kept_for_gaussians_once_there_is_one():
    half = Cost(exact(0.1), exact(5e-7))
    assert fits([half, *gaussian(0.001)], *WHOLE)
    assert fits([half, half], *WHOLE)
    assert not fits([half, half, *gaussian(0.001)], *WHOLE)


# -- sums instead of all entries -------------------------------------------------------------------


def total_of_all(costs, epsilon, delta):
    """The rule as docs/proofs/composition.md writes it down, from all costs at once."""
    first = next((cost for cost in costs if cost.rho), None)
    deltas = sum((cost.delta for cost in costs), Fraction(0))
    if first is None:
        return sum((cost.epsilon for cost in costs), Fraction(0)), deltas
    stated = [stated_epsilon(cost) for cost in costs]
    simple = (sum(stated, Fraction(0)), deltas) if None not in stated else None
    if first.delta and (math.isinf(epsilon) or first.delta > exact(delta) / 2):
        return simple
    aside = exact(delta) / 2
    order = Fraction(order_for(epsilon, float(aside)))
    fixed = Fraction(_fixed_part(float(order), float(aside)))
    pooled = sum((cost.rho * order if cost.rho else cost.epsilon for cost in costs), fixed)
    if simple is not None and simple[0] <= pooled and simple[1] <= aside:
        return simple
    counted = Fraction(0)
    for place, cost in enumerate(costs, 1):
        so_far = stated[:place]
        within = None not in so_far and sum(so_far) <= exact(epsilon) * (1 + Fraction(1, 10**9))
        if not cost.rho or (within and sum(one.delta for one in costs[:place]) <= aside):
            counted += cost.delta
    return pooled, counted + aside


prices = st.one_of(
    st.builds(Cost, st.floats(1e-300, 0.4).map(exact), st.sampled_from([0.0, 1e-9, 3e-7, 1e-320]).map(exact)),
    st.builds(
        Cost,
        st.floats(0, 0.4).map(exact),
        st.sampled_from([0.0, 1e-9, 2e-7, 6e-7]).map(exact),
        st.floats(1e-8, 0.05).map(exact),
    ),
)


@given(st.lists(prices, max_size=12), st.sampled_from([0.5, 2.0, 40.0]), st.sampled_from([1e-6, 1e-4]))
def test_a_history_of_sums_has_the_total_of_all_its_costs_to_the_last_digit(costs, epsilon, delta):
    try:
        found = total(costs, epsilon, delta)
    except PrivacyError:
        found = None
    assert found == total_of_all(costs, epsilon, delta)


@given(st.lists(prices, max_size=6))
def test_a_history_survives_its_file(costs):
    history = History()
    for cost in costs:
        history = history.after(cost, stated_epsilon(cost), 2.0, 1e-6)
    assert read_history(json.loads(json.dumps(history_fields(history)))) == history


@pytest.mark.parametrize("field", ["direct", "rho", "stated", "delta", "counted", "first"])
@pytest.mark.parametrize("value", ["-1/2", "1e9", "", "1/", 0.5, True, [], "x"], ids=repr)
def test_a_sum_that_is_none_is_not_read(field, value):
    with pytest.raises((ValueError, TypeError)):
        read_history(history_fields(History()) | {field: value})


def test_sums_do_not_grow_with_the_number_of_costs():
    """Prices of all sizes that floats have, all different: what is kept of ten thousand is hardly longer than of a
    hundred.
    """
    sizes = np.concatenate(
        [[5e-324, 1.7e308, 2.2250738585072014e-308], 10.0 ** np.random.default_rng(3).uniform(-320, 300, 10_000)]
    )
    history, lengths = History(), []
    for size in sizes:
        cost = Cost(exact(float(size)))
        history = history.after(cost, stated_epsilon(cost), math.inf, 0.0)
        lengths.append(len(str(history_fields(history))))
    assert lengths[-1] < 1.05 * lengths[99] < 5_000
