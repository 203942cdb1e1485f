"""Budgets and prices: how much may be spent, against which neighbouring tables a release protects, and what several
releases cost together.

Every number that a price or a scale depends on is checked here, by `settle`, when the object that holds it is made.

Pure and (epsilon, delta) costs add up. Gaussian releases cost rho in zero-concentrated privacy (zCDP); their rhos add
up and are turned into an epsilon once, at a Renyi order that is fixed when the budget is made. Fixing the order
beforehand keeps the total valid when later releases are chosen after seeing earlier ones (a Renyi privacy filter).
Proof: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Literal, get_args

from privfit.privacy.errors import PrivacyError

Adjacency = Literal["replace-one", "add-remove"]
"""replace-one: one row takes other values; the number of rows is public. add-remove: one row is there or not."""
NumberKind = Literal["float", "integer", "either"]

MOST_ROWS = 1 << 62
"""Counts of rows above this are mistakes: products with them would overflow 64-bit integers and lose digits as floats.
"""
_LEAST_DELTA = sys.float_info.min
"""The least delta of a zCDP cost: below it floats lose their digits, and a logarithm its accuracy."""
_DOUBT = Fraction(1, 10**9)
"""By how much a stated epsilon may exceed the budget and still count as one that could have been added up: logarithms
of other machines are rounded otherwise, by far less than this. To count it spends delta that was perhaps not needed."""


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
            expected_rows=max(self.expected_rows or 0, slots or 0) or None,  # so that no plan is for fewer rows
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


# -- what several releases cost together -----------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """The price of one release: epsilon and delta, or rho when it is a zCDP release."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)


def _fixed_part(order: float, delta: float) -> float:
    """What a Renyi divergence of this order needs besides: it implies an epsilon larger by this much, at this delta
    (rounded up).

    Guarantee: docs/proofs/composition.md, Lemma 1, for every delta that rounds to this float, so also for the number
    that a person wrote.
    """
    delta = math.nextafter(delta, 0.0) or delta  # near 1 its last digit is much of its logarithm; below 5e-324 is 0
    shrink = math.log1p(-1 / order) if order > 2 else math.log((order - 1) / order)  # either way without cancellation
    terms = shrink, -math.log(delta) / (order - 1), -math.log(order) / (order - 1)
    return max(math.fsum(terms) + 2.0**-48 * math.fsum(map(abs, terms)), 0.0)  # each term errs by a few 2^-52 of itself


def _best_order(gain: Callable[[float], float]) -> float:
    """The Renyi order with the largest gain, as far as a grid and a search around its best point find it.

    Every order above 1 is valid.
    """

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
    """A rho whose zCDP guarantee implies (epsilon, delta): the largest but for the margins of the search and of
    rounding.

    Guarantee: rho-zCDP implies (epsilon, delta)-DP; docs/proofs/composition.md, Lemma 1.
    """
    order = order_for(epsilon, delta)
    return max((epsilon - _fixed_part(order, delta)) / order * (1 - 2.0**-47), 0.0)


def epsilon_of(rho: float, delta: float) -> float:
    """An epsilon that rho-zCDP implies at this delta, rounded up (docs/proofs/composition.md, Lemma 1)."""
    order = _best_order(lambda order: -rho * order - _fixed_part(order, delta))
    return (rho * order + _fixed_part(order, delta)) * (1 + 2.0**-50)


SplitPart = tuple[str, str]
"""The number of a split of the table, and which of its parts."""
SUMS = ("direct", "rho", "stated", "delta", "counted")
"""The sums of a history that releases on different parts of a split do not add to together."""


@dataclass(frozen=True)
class History:
    """What the total of all costs so far depends on: a few exact sums, so that a charge costs the same however many
    came before it.

    Prices are decimal numbers of at most 17 digits, or floats, so that every sum is a fraction whose size does not grow
    with the number of its terms but for its carry: at most a few hundred digits. Nothing is rounded. Proof:
    docs/proofs/composition.md, Lemma 2.
    """

    direct: Fraction = Fraction(0)
    """The epsilons of costs without a rho."""
    rho: Fraction = Fraction(0)
    stated: Fraction = Fraction(0)
    """The epsilons of all costs as they are stated, while all can be stated."""
    delta: Fraction = Fraction(0)
    counted: Fraction = Fraction(0)
    """The deltas that can have failed besides the pool: of direct costs, and of zCDP costs while all could be added up
    as stated.
    """
    first: Fraction | None = None
    """The delta of the first zCDP cost, which decides the rule; None while there is no such cost."""
    statable: bool = True
    """Whether all zCDP costs have a delta of their own."""
    exposed: bool = True
    """Whether all costs so far could be added up as stated.

    In doubt they could: their epsilons are rounded, perhaps on another machine.
    """
    parts: Mapping[SplitPart, tuple[Fraction, ...]] = field(default_factory=dict)
    """The SUMS of every part of a split. The sums above hold, of each split, the largest of its parts' sums."""

    def after(
        self,
        cost: Cost,
        stated: Fraction | None,
        epsilon: float,
        delta: float,
        of_split: SplitPart | None = None,
    ) -> History:
        """The history with one cost more, in a ledger whose budget is (epsilon, delta); `stated` is
        `stated_epsilon(cost)`, as it was when the cost was charged. `of_split` names the split and its part that were
        released on, if it was not the whole table.

        Guarantee: docs/proofs/holdout.md, Theorem 2, for costs of parts.
        """
        statable = self.statable and stated is not None
        added = self._added(of_split, (Fraction(0) if cost.rho else cost.epsilon, cost.rho, stated or Fraction(0)))
        as_stated = self.stated + added[2] if statable else self.stated
        deltas = self.delta + self._added(of_split, (cost.delta,), 3)[0]
        within = math.isinf(epsilon) or as_stated <= exact(epsilon) * (1 + _DOUBT)
        exposed = self.exposed and statable and within and 2 * deltas <= exact(delta)
        counted = cost.delta if exposed or not cost.rho else Fraction(0)
        own = (Fraction(0) if cost.rho else cost.epsilon, cost.rho, stated or Fraction(0), cost.delta, counted)
        return History(
            direct=self.direct + added[0],
            rho=self.rho + added[1],
            stated=as_stated,
            delta=deltas,
            counted=self.counted + self._added(of_split, (counted,), 4)[0],
            first=cost.delta if cost.rho and self.first is None else self.first,
            statable=statable,
            exposed=exposed,
            parts=self.parts if of_split is None else {**self.parts, of_split: self._with_own(of_split, own)},
        )

    def _with_own(self, of_split: SplitPart, own: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        """The sums of a part with a cost more."""
        before = self.parts.get(of_split, (Fraction(0),) * len(SUMS))
        return tuple(one + more for one, more in zip(before, own, strict=True))

    def _added(self, of_split: SplitPart | None, amounts: tuple[Fraction, ...], first: int = 0) -> tuple[Fraction, ...]:
        """By how much amounts raise the sums from number `first` on: on a part, by as much as that part's own sum then
        exceeds the largest of its split.
        """
        if of_split is None:
            return amounts
        found = []
        for place, amount in enumerate(amounts, first):
            own = self.parts.get(of_split, (Fraction(0),) * len(SUMS))[place]
            largest = max((sums[place] for (split, _), sums in self.parts.items() if split == of_split[0]), default=own)
            found.append(max(own + amount - largest, Fraction(0)))
        return tuple(found)

    def total(self, epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
        """The epsilon and delta of these costs, in a ledger whose budget is (epsilon, delta).

        Costs add up as they are stated while their deltas stay within half of the ledger's. zCDP costs are also pooled,
        the other half of delta set aside for them; whichever of the two totals has the smaller epsilon counts. What
        pooled costs stated while they could still have been added up stays spent: a history may have stopped there. But
        if the first zCDP cost states more than half of the ledger's delta, or nothing limits the ledger, all costs add
        up as stated, within the whole delta.

        Guarantee: if every charge that would bring the total above the budget is refused, all releases are together
        (epsilon, delta)-DP, however they, their costs and the moment to stop were chosen; docs/proofs/composition.md,
        Theorem 1. What is returned is itself a guarantee only if the costs, and how many there are, were fixed
        beforehand: this is a filter, not an odometer. With an infinite epsilon there is no budget, so what is returned
        is a running total, and a guarantee in that one case alone.
        """
        if self.first is None:
            return self.direct, self.delta
        if self.first and (math.isinf(epsilon) or 2 * self.first > exact(delta)):
            if not self.statable:
                raise PrivacyError(
                    "A Gaussian release without a delta of its own was to be charged to a ledger that adds stated "
                    "deltas up. "
                    "Give the release a delta, or use a new ledger with a delta for it."
                )
            return self.stated, self.delta
        aside = exact(delta) / 2
        if aside < _LEAST_DELTA:
            raise PrivacyError(
                "A Gaussian release was to be charged, and the ledger has no delta to pay with. Make one: "
                "Ledger(epsilon=1.0, delta=1e-6)."
            )
        pooled = self._pooled(epsilon, float(aside))
        if self.statable and self.stated <= pooled and self.delta <= aside:
            return self.stated, self.delta
        return pooled, self.counted + aside

    def _pooled(self, epsilon: float, aside: float) -> Fraction:
        order = order_for(epsilon if math.isfinite(epsilon) else 1.0, aside)
        fixed = Fraction(_fixed_part(order, aside))  # rounded up; what follows is exact
        return self.direct + self.rho * Fraction(order) + fixed


def total(costs: Iterable[Cost], epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
    """The epsilon and delta of these costs, in the order in which they came, in a ledger whose budget is (epsilon,
    delta): `History.total`.
    """
    history = History()
    for cost in costs:
        history = history.after(cost, stated_epsilon(cost), epsilon, delta)
    return history.total(epsilon, delta)


def stated_epsilon(cost: Cost) -> Fraction | None:
    """The epsilon that a cost states, or that its rho implies at its delta if that is more; None for a zCDP cost
    without a delta of its own.
    """
    if not cost.rho:
        return cost.epsilon
    if cost.delta < _LEAST_DELTA:
        return None
    epsilon, delta = float(cost.epsilon), float(cost.delta)
    if epsilon > 0 and cost.rho <= exact(rho_of(epsilon, delta)):
        return cost.epsilon
    return max(cost.epsilon, Fraction(epsilon_of(float(cost.rho), delta)))
