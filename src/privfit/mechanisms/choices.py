"""Private choices, one after the other: by which rule, and what each of them may spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privfit.privacy import Event, Noise, PrivacyError, Terms, exact
from privfit.privacy.composition import rho_of
from privfit.privacy.event import laplace_scale
from privfit.privacy.selection import Rule

Selection = Literal["auto", "enhanced", "exponential", "permute-and-flip"]

SELECTIONS: tuple[str, ...] = ("auto", "enhanced", "exponential", "permute-and-flip")
CLEARLY = Fraction(6, 5)
"""With a delta, permute-and-flip gives way to the exponential rule where that may then spend this much more on a choice."""


@dataclass(frozen=True)
class Choices:
    """How a number of choices are made and paid for.

    Guarantee: if no person can change a difference of two scores of the i-th choice (added up over its menus) by more than `reach`, and the scale is `scale(i, reach)`, all choices
    together keep the promise of `event`, also when each depends on those before; docs/proofs/selection.md, Theorem 2.
    """

    rule: Rule
    by_range: bool
    """Whether scores may be compared by how far one row can tell candidates apart, and not only by how far it can move a score."""
    each: tuple[Fraction, ...]
    event: Event

    def scale(self, place: int, reach: int) -> float:
        """The scale of a choice whose differences of scores one person can change by `reach`."""
        return laplace_scale(max(reach, 1), self.each[place])

    def choose(self, noise: Noise, place: int, menus: Sequence[Sequence[int]], reach: int) -> list[int]:
        """Make a choice from every menu."""
        return noise.select_each(menus, self.scale(place, reach), self.rule)


def plan_choices(
    mechanism: str, terms: Terms, selection: Selection, shares: Sequence[Fraction], usual: Rule = "permute-and-flip"
) -> Choices:
    """The choices that these terms can pay for, each with its share of epsilon; `usual` is the rule of "auto" where a delta does not speak for the exponential one.

    With a delta, the exponential rule is charged in zCDP where that is sharper: there a choice at epsilon costs epsilon^2 / 8. Permute-and-flip, at a sum of epsilons, leaves the delta alone.
    """
    if selection not in SELECTIONS:
        raise PrivacyError(f"selection={selection!r} was given; it is one of {SELECTIONS}. Use 'auto' if in doubt.")
    total = sum(shares, Fraction(0))
    epsilon = exact(terms.budget.epsilon)
    pure = tuple(epsilon * share / total for share in shares)
    rho = exact(rho_of(terms.budget.epsilon, terms.budget.delta)) if terms.budget.delta > 0 else Fraction(0)
    squares = sum((share**2 for share in shares), Fraction(0))
    pooled = tuple(_root(8 * rho * share**2 / squares) for share in shares)  # in the same proportions
    wanted = (CLEARLY if selection == "auto" else 1) * sum(pure, Fraction(0))
    by_rho = rho > 0 and selection != "permute-and-flip" and sum(pooled, Fraction(0)) > wanted
    rule: Rule = "exponential" if by_rho or selection in ("enhanced", "exponential") else "permute-and-flip"
    if selection == "auto" and not by_rho:
        rule = usual
    event = Event(
        mechanism=mechanism,
        epsilon=terms.budget.epsilon,
        delta=terms.budget.delta if by_rho else 0.0,
        rho=float(rho) if by_rho else 0.0,
        adjacency=terms.adjacency,
        rows_per_person=int(terms.rows_per_person),
        noise=rule,
        n_values=len(shares),
    )
    return Choices(rule, selection != "exponential", pooled if by_rho else pure, event)


def _root(value: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(int(value * 2**120)), 2**60)
