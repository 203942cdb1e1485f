"""Amounts of privacy: what a fit may spend, what a ledger has spent and has left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real

from privfit.privacy.errors import PrivacyError


@dataclass(frozen=True)
class Budget:
    """An epsilon and a delta to spend on one release."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon, delta = number(self.epsilon), number(self.delta)
        if not 0 < epsilon < math.inf:
            raise PrivacyError(
                f"epsilon={self.epsilon!r} was given; epsilon is a positive finite number. Smaller is more private; "
                "1.0 is a common start."
            )
        if not 0 <= delta < 1:
            raise PrivacyError(
                f"delta={self.delta!r} was given; delta is at least 0 and below 1. Use 0 for pure privacy, or far less "
                "than 1 / rows."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


class Amount(float):
    """An epsilon that also knows its delta: a number to compute with, or `epsilon, delta = amount`."""

    delta: float

    def __new__(cls, epsilon: float, delta: float = 0.0) -> Amount:
        amount = super().__new__(cls, epsilon)
        amount.delta = delta
        return amount

    @property
    def epsilon(self) -> float:
        return float(self)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.epsilon, self.delta))

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return self.epsilon, self.delta

    def __repr__(self) -> str:
        return f"{self.epsilon:.10g}" if self.delta == 0 else f"{self.epsilon:.10g} (delta {self.delta:.3g})"


def number(value: object) -> float:
    """The value as a float; NaN if it is no real number, or one that no float can hold."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def exact(value: float) -> Fraction:
    """The number that a person wrote: 0.1 is one tenth, so that ten tenths are one and fit a budget of one."""
    return Fraction(Decimal(repr(float(value))))
