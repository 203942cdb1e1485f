"""Private choices, one after the other: by which rule, and what each of them may spend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privfit.privacy import Event, PrivacyError, PrivacyParameters, exact
from privfit.privacy.budget import rho_of
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import RELEASE, Part, Selection
from privfit.privacy.samplers.selection import Rule

SelectionRule = Literal["auto", "enhanced", "exponential", "permute-and-flip"]

SELECTION_RULES: tuple[str, ...] = ("auto", "enhanced", "exponential", "permute-and-flip")
EXPONENTIAL_MARGIN = Fraction(6, 5)
"""With a delta, permute-and-flip gives way to the exponential rule where that may then spend this much more on a
choice.
"""


@dataclass(frozen=True)
class Choices:
    """How a number of choices are made and paid for.

    Guarantee: if no person can change a difference of two scores of the i-th choice (added up over its menus) by more
    than `sensitivity`, and the scale is `scale(i, sensitivity)`, all choices together keep the promise of `event`, also
    when each depends on those before; docs/proofs/selection.md, Theorem 2.
    """

    mechanism: str
    parameters: PrivacyParameters
    rule: Rule
    by_range: bool
    """Whether scores may be compared by how far one row can change their differences, and not only by how far it can
    change a score.
    """
    each: tuple[Fraction, ...]
    """The epsilon of every choice."""
    rho: float = 0.0
    """What all of them cost in zCDP, where that is how they are charged."""

    def scale(self, place: int, sensitivity: int) -> float:
        """The scale of a choice whose differences of scores one person can change by `sensitivity`."""
        return laplace_scale(max(sensitivity, 1), self.each[place])

    def refuse_too_much_noise(self, sensitivity: int) -> None:
        """Refuse a sensitivity for which the choice with the least epsilon would need more noise than 64 bits hold."""
        self.scale(self.each.index(min(self.each)), sensitivity)

    def part(self, place: int, count: int = 1, sensitivity: int | None = None, purpose: str = RELEASE) -> Selection:
        """So many choices with one share each, from this one on.

        Without a sensitivity, that and the scale follow from the candidates.
        """
        spent = self.each[place : place + count]
        return Selection(
            rule=self.rule,
            count=count,
            scale=0.0 if sensitivity is None else self.scale(place, sensitivity),
            sensitivity=sensitivity or 0,
            purpose=purpose,
            epsilon=0.0 if self.rho else float(sum(spent)),
            rho=float(sum(one**2 for one in spent) / 8) if self.rho else 0.0,
        )

    def event(self, parts: Iterable[Part]) -> Event:
        """The price of all choices, with the recipe of every draw."""
        budget = self.parameters.budget
        return Event(
            mechanism=self.mechanism,
            epsilon=budget.epsilon,
            delta=budget.delta if self.rho else 0.0,
            rho=self.rho,
            adjacency=self.parameters.adjacency,
            rows_per_person=int(self.parameters.rows_per_person),
            parts=tuple(parts),
        )


def plan_choices(
    mechanism: str,
    parameters: PrivacyParameters,
    selection: SelectionRule,
    shares: Sequence[Fraction],
    usual: Rule = "permute-and-flip",
) -> Choices:
    """The choices that this budget can pay for, each with its share of epsilon; `usual` is the rule of "auto" where a
    delta does not make the exponential one better.

    With a delta, the exponential rule is charged in zCDP where that is sharper: there a choice at epsilon costs
    epsilon^2 / 8. Permute-and-flip, at a sum of epsilons, leaves the delta alone.
    """
    if selection not in SELECTION_RULES:
        raise PrivacyError(
            f"selection={selection!r} was given; it is one of {SELECTION_RULES}. Use 'auto' if in doubt."
        )
    budget = parameters.budget
    total = sum(shares, Fraction(0))
    pure = tuple(budget.exact * share / total for share in shares)
    rho = exact(rho_of(budget.epsilon, budget.delta)) if budget.delta > 0 else Fraction(0)
    squares = sum((share**2 for share in shares), Fraction(0))
    pooled = tuple(_root(8 * rho * share**2 / squares) for share in shares)  # in the same proportions
    wanted = (EXPONENTIAL_MARGIN if selection == "auto" else 1) * sum(pure, Fraction(0))
    by_rho = rho > 0 and selection != "permute-and-flip" and sum(pooled, Fraction(0)) > wanted
    rule: Rule = "exponential" if by_rho or selection in ("enhanced", "exponential") else "permute-and-flip"
    if selection == "auto" and not by_rho:
        rule = usual
    return Choices(
        mechanism,
        parameters,
        rule,
        by_range=selection != "exponential",
        each=pooled if by_rho else pure,
        rho=float(rho) if by_rho else 0.0,
    )


def _root(value: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(int(value * 2**120)), 2**60)
