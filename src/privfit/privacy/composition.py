"""What several releases cost together.

Pure and (epsilon, delta) costs add up. Gaussian releases cost rho in zero-concentrated privacy (zCDP); their rhos add up and are
turned into an epsilon once, at a Renyi order that is fixed when the budget is made. Fixing the order beforehand keeps the total
valid when later releases are chosen after seeing earlier ones (a Renyi privacy filter). Proof: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privfit.privacy.budget import Budget, exact
from privfit.privacy.errors import PrivacyError

_LEAST_DELTA = sys.float_info.min  # below it floats lose their digits
_DOUBT = Fraction(1, 10**9)  # more than the part by which stated epsilons differ where logarithms are rounded otherwise


@dataclass(frozen=True)
class Cost:
    """The price of one release: epsilon and delta, or rho when it is a zCDP release."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)


def _fixed_part(order: float, delta: float) -> float:
    """What a Renyi divergence of this order needs besides: it implies an epsilon larger by this much, at this delta (rounded up).

    Guarantee: docs/proofs/composition.md, Lemma 1, for every delta that rounds to this float, so also for the number that a person wrote.
    """
    delta = math.nextafter(delta, 0.0) or delta  # near 1 the last digit of delta is much of its logarithm; below 5e-324 is only 0
    shrink = math.log1p(-1 / order) if order > 2 else math.log((order - 1) / order)  # either way without cancellation
    terms = shrink, -math.log(delta) / (order - 1), -math.log(order) / (order - 1)
    return max(math.fsum(terms) + 2.0**-48 * math.fsum(map(abs, terms)), 0.0)  # each term errs by a few 2^-52 of itself


def _best_order(gain: Callable[[float], float]) -> float:
    """The Renyi order with the largest gain, as far as a grid and a search around its best point find it. Every order above 1 is valid."""

    def at(exponent: float) -> float:
        return gain(1 + math.exp(exponent))

    centre = max(range(-30, 70), key=at)
    low, high = centre - 1.0, centre + 1.0
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if at(left) < at(right) else (low, right)
    return 1 + math.exp((low + high) / 2)


@lru_cache(maxsize=4096)
def order_for(epsilon: float, delta: float) -> float:
    """The Renyi order at which a budget of (epsilon, delta) buys the most zCDP."""
    return _best_order(lambda order: (epsilon - _fixed_part(order, delta)) / order)


def rho_of(epsilon: float, delta: float) -> float:
    """A rho whose zCDP guarantee implies (epsilon, delta): the largest but for the margins of the search and of rounding.

    Guarantee: rho-zCDP implies (epsilon, delta)-DP; docs/proofs/composition.md, Lemma 1.
    """
    order = order_for(epsilon, delta)
    return max((epsilon - _fixed_part(order, delta)) / order * (1 - 2.0**-47), 0.0)


def epsilon_of(rho: float, delta: float) -> float:
    """An epsilon that rho-zCDP implies at this delta, rounded up (docs/proofs/composition.md, Lemma 1)."""
    order = _best_order(lambda order: -rho * order - _fixed_part(order, delta))
    return (rho * order + _fixed_part(order, delta)) * (1 + 2.0**-50)


def total(costs: Iterable[Cost], epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
    """The epsilon and delta of these costs, in the order in which they came, in a ledger whose budget is (epsilon, delta).

    Costs add up as they are stated while their deltas stay within half of the ledger's. zCDP costs are also pooled, the other half of delta set
    aside for them; whichever of the two totals has the smaller epsilon counts. What pooled costs stated while they could still have been added up stays
    spent: a history may have stopped there. But if the first zCDP cost states more than half of the ledger's delta, or nothing limits the ledger,
    all costs add up as stated, within the whole delta.

    Guarantee: if every charge that would bring the total above the budget is refused, all releases are together (epsilon, delta)-DP,
    however they, their costs and the moment to stop were chosen; docs/proofs/composition.md, Theorem 1. What is returned is itself a
    guarantee only if the costs, and how many there are, were fixed beforehand: this is a filter, not an odometer. With an infinite
    epsilon there is no budget, so what is returned is a running total, and a guarantee in that one case alone.
    """
    costs = list(costs)
    first = next((cost for cost in costs if cost.rho), None)
    if first is None:
        return _added(costs)
    stated = [_stated(cost) for cost in costs] if all(cost.delta >= _LEAST_DELTA for cost in costs if cost.rho) else None
    if first.delta and (math.isinf(epsilon) or 2 * first.delta > exact(delta)):
        if stated is None:
            raise PrivacyError(
                "A Gaussian release without a delta of its own was to be charged to a ledger that adds stated deltas up. "
                "Give the release a delta, or use a new ledger with a delta for it."
            )
        return _added(stated)
    aside = exact(delta) / 2
    if aside < _LEAST_DELTA:
        raise PrivacyError(
            "A Gaussian release was to be charged, and the ledger has no delta to pay with. Make one: Ledger(epsilon=1.0, delta=1e-6)."
        )
    order = Fraction(order_for(epsilon if math.isfinite(epsilon) else 1.0, float(aside)))
    fixed = Fraction(_fixed_part(float(order), float(aside)))  # rounded up; what follows is exact
    pooled = sum((cost.rho * order if cost.rho else cost.epsilon for cost in costs), Fraction(0)) + fixed
    if stated is not None:
        simple = _added(stated)
        if simple[0] <= pooled and simple[1] <= aside:
            return simple
    return pooled, _counted_delta(costs, epsilon, aside) + aside


def _counted_delta(costs: list[Cost], epsilon: float, aside: Fraction) -> Fraction:
    """The deltas that can have failed besides the pool: of direct costs, and of zCDP costs while all could be added up as stated.

    In doubt a delta is counted: the epsilons of zCDP costs are computed anew each time, perhaps on another machine.
    """
    counted, so_far_epsilon, so_far_delta, could_stop = Fraction(0), Fraction(0), Fraction(0), True
    for cost in costs:
        could_stop = could_stop and (not cost.rho or cost.delta >= _LEAST_DELTA)
        if could_stop:
            stated = _stated(cost)
            so_far_epsilon, so_far_delta = so_far_epsilon + stated.epsilon, so_far_delta + stated.delta
            could_stop = (math.isinf(epsilon) or so_far_epsilon <= exact(epsilon) * (1 + _DOUBT)) and so_far_delta <= aside
        if could_stop or not cost.rho:
            counted += cost.delta
    return counted


def _added(costs: list[Cost]) -> tuple[Fraction, Fraction]:
    """The sum of all, each multiplied by how often it is there: fractions add up slowly, and fits often cost the same."""
    each, many = {id(cost): cost for cost in costs}, Counter(map(id, costs))
    epsilon = sum((cost.epsilon * many[key] for key, cost in each.items()), Fraction(0))
    return epsilon, sum((cost.delta * many[key] for key, cost in each.items()), Fraction(0))


def _stated(cost: Cost) -> Cost:
    """A cost as the (epsilon, delta) that it states, or the epsilon that its rho implies if that is more."""
    epsilon, delta = float(cost.epsilon), float(cost.delta)
    if not cost.rho or (epsilon > 0 and cost.rho <= exact(rho_of(epsilon, delta))):
        return Cost(cost.epsilon, cost.delta)
    return Cost(max(cost.epsilon, Fraction(epsilon_of(float(cost.rho), delta))), cost.delta)


def affordable(spent: tuple[Fraction, Fraction], budget: Budget) -> bool:
    """Whether what is spent lies within the budget."""
    return spent[0] <= exact(budget.epsilon) and spent[1] <= exact(budget.delta)
