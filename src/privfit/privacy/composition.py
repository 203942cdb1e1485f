"""What several releases cost together.

Pure and (epsilon, delta) costs add up. Gaussian releases cost rho in zero-concentrated privacy (zCDP); their rhos add up and are
turned into an epsilon once, at a Renyi order that is fixed when the budget is made. Fixing the order beforehand keeps the total
valid when later releases are chosen after seeing earlier ones (a Renyi privacy filter). Proof: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from privfit.privacy.budget import Budget, exact
from privfit.privacy.errors import PrivacyError

_LEAST_DELTA = sys.float_info.min  # below it floats lose their digits


@dataclass(frozen=True)
class Cost:
    """The price of one release: epsilon and delta, or rho when it is a zCDP release."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP guarantee implies (epsilon, delta), less a margin for rounding.

    Guarantee: rho-zCDP implies (rho + 2 sqrt(rho log(1/delta)), delta)-DP; docs/proofs/composition.md, Lemma 1.
    """
    log = -math.log(delta)
    root = epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))  # sqrt(epsilon + log) - sqrt(log) without cancellation
    return root * root * (1 - 2.0**-47)  # each step above errs by at most 2^-52 of itself


def epsilon_of(rho: float, delta: float) -> float:
    """An epsilon that rho-zCDP implies at this delta, rounded up (docs/proofs/composition.md, Lemma 1)."""
    return (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 2.0**-50)


def order_for(epsilon: float, delta: float) -> float:
    """The Renyi order at which a budget of (epsilon, delta) buys the most zCDP. Any order above 1 is valid; a huge one buys nothing."""
    log = -math.log(delta)
    return min(1 + math.sqrt(log) * (math.sqrt(epsilon + log) + math.sqrt(log)) / epsilon, 2.0**100)


def total(costs: Iterable[Cost], epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
    """The epsilon and delta of these costs together, in a ledger whose budget is (epsilon, delta).

    Half of the ledger's delta is set aside for zCDP costs, the other half for costs that state a delta of their own.

    Guarantee: an adaptive sequence of releases with these costs is (returned)-DP; docs/proofs/composition.md, Theorem 1.
    """
    costs = list(costs)
    direct = sum((cost.epsilon for cost in costs if not cost.rho), Fraction(0))
    spent_delta = sum((cost.delta for cost in costs if not cost.rho), Fraction(0))
    rho = sum((cost.rho for cost in costs), Fraction(0))
    if not rho:
        return direct, spent_delta
    aside = exact(delta) / 2
    if aside < _LEAST_DELTA:
        raise PrivacyError(
            "A Gaussian release was to be charged, and the ledger has no delta to pay with. Make one: Ledger(epsilon=1.0, delta=1e-6)."
        )
    order = Fraction(order_for(epsilon if math.isfinite(epsilon) else 1.0, float(aside)))
    log = Fraction(-math.log(float(aside)) * (1 + 2.0**-50))  # rounded up; what follows is exact
    return direct + rho * order + log / (order - 1), spent_delta + aside


def affordable(spent: tuple[Fraction, Fraction], budget: Budget) -> bool:
    """Whether what is spent lies within the budget."""
    return spent[0] <= exact(budget.epsilon) and spent[1] <= exact(budget.delta)
