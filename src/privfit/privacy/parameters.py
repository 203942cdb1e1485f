"""Privacy parameters: how much may be spent, and against which neighbouring tables a release protects.

Every number that a price or a scale depends on is checked here, by `settle`, when the object that holds it is made.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Literal, get_args

from privfit.privacy.errors import PrivacyError

Adjacency = Literal["replace-one", "add-remove"]
"""replace-one: one row takes other values; the number of rows is public. add-remove: one row is there or not."""
NumberKind = Literal["float", "integer", "either"]

MOST_ROWS = 1 << 62
"""Counts of rows above this are mistakes: products with them would overflow 64-bit integers and lose digits as floats.
"""


@dataclass(frozen=True)
class Budget:
    """An epsilon and a delta to spend on one release."""

    epsilon: float
    delta: float = 0.0
    exact: Fraction = field(init=False, repr=False, compare=False)
    """The epsilon that a person wrote, as a fraction."""

    def __post_init__(self) -> None:
        positive = "epsilon is a positive finite number. Smaller is more private; 1.0 is a common start"
        settle(self, "epsilon", least=math.ulp(0.0), wanted=positive)
        share = "delta is at least 0 and below 1. Use 0 for pure privacy, or far less than 1 / rows"
        settle(self, "delta", below=1, wanted=share)
        object.__setattr__(self, "exact", exact(self.epsilon))


@dataclass(frozen=True)
class PrivacyParameters:
    """Everything public that a guarantee depends on besides the schema.

    `rows_per_person` is the most rows that one person can have: the guarantee is for a person. `expected_rows` is a
    public guess of the number of rows, for mechanisms that need one under add-remove, where the true number is private.
    """

    budget: Budget
    adjacency: Adjacency = "replace-one"
    rows_per_person: int = 1
    expected_rows: int | None = None
    promise: tuple[Adjacency, int] | None = None
    """The adjacency and the rows per person that are promised, where the fields above say something that implies it
    (`for_rows_left_out`); otherwise None.
    """

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        for name in ("rows_per_person",) if self.expected_rows is None else ("rows_per_person", "expected_rows"):
            count = f"it is an integer from 1 to 2^62, and public. Write, for example, {name}=1"
            settle(self, name, "integer", least=1, below=MOST_ROWS + 1, wanted=count)

    def for_rows_left_out(self, slots: int | None) -> PrivacyParameters:
        """The same promise for a table of which some rows are left out, so that the number of rows used is private.

        A row that is replaced is one row that leaves and one that enters, or only one of both. So replace-one for m
        rows of a person follows from add-remove for 2 m rows. `slots` is the public number of rows that could be used.

        Guarantee: what is private for these parameters keeps `promise`; docs/proofs/rows-left-out.md, Theorem 1.
        """
        if self.adjacency == "add-remove":
            return self
        return replace(
            self,
            adjacency="add-remove",
            rows_per_person=2 * self.rows_per_person,
            expected_rows=self.expected_rows or slots,
            promise=(self.adjacency, self.rows_per_person),
        )


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

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return self.epsilon, self.delta

    def __repr__(self) -> str:
        return f"{self.epsilon:.10g}" if self.delta == 0 else f"{self.epsilon:.10g} (delta {self.delta:.3g})"


def checked_adjacency(adjacency: object) -> Adjacency:
    """The adjacency, if it is one."""
    if adjacency not in get_args(Adjacency):
        raise PrivacyError(
            f"adjacency={adjacency!r} was given; it is 'replace-one' (one person's row changes, the number of rows is "
            "public) or 'add-remove' (one person's row is there or not). Choose one of the two."
        )
    return adjacency  # type: ignore[return-value]


def settle(
    record: object,
    name: str,
    kind: NumberKind = "float",
    least: float = 0,
    below: float = math.inf,
    wanted: str = "",
) -> None:
    """Keep a plain number in place of what a frozen record was given, if it is of its kind and within its limits.

    "either" keeps an integer as it is, however large, and makes a float of any other number. A negative price would be
    a refund. `wanted` says in words what is needed, and what to do.
    """
    given = getattr(record, name)
    try:
        integer = None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        integer = None
    if kind == "float" or (kind == "either" and integer is None):
        value = number(given)
    else:
        value = math.nan if integer is None else integer
    if not least <= value < below:
        shown = "more than 2^62" if integer is not None and integer > MOST_ROWS else repr(given)
        wanted = wanted or f"it is {'an integer' if kind == 'integer' else 'a number'} of at least {least}"
        raise PrivacyError(f"{type(record).__name__} was given {name}={shown}; {wanted}.")
    object.__setattr__(record, name, value)


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
