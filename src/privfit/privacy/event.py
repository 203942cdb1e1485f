"""An event: what one release draws and what it costs, from public facts alone, before it happens."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from privfit.privacy.adjacency import Adjacency, checked_adjacency
from privfit.privacy.budget import Budget, exact, number
from privfit.privacy.composition import Cost, rho_of
from privfit.privacy.errors import PrivacyError
from privfit.privacy.event_files import parts_of_version_two
from privfit.privacy.parts import (
    CANDIDATE,
    CERTIFICATE,
    RELEASE,
    Additive,
    DiscreteGaussian,
    KNorm,
    Laplace,
    Part,
    Repeat,
    RoundedGaussian,
    Selection,
    Threshold,
    read_part,
)
from privfit.privacy.samplers.norms import check_ball, check_cube

PURE = ("laplace", "l2", "linf")
ROUNDING = 1e-9
"""How much the shares of all parts may exceed the price: they are rounded to floats."""


@dataclass(frozen=True)
class Event:
    """One release: which mechanism, at which price, and the recipe of every draw. Frozen, and the same after a round
    trip through JSON.

    `parts` are drawn in order, by `Draws`; the report, the ledger and the attacks read them too. `elsewhere` is True
    for a release that other software made, of which only the price is known.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    rho: float = 0.0
    adjacency: Adjacency = "replace-one"
    rows_per_person: int = 1
    parts: tuple[Part, ...] = ()
    elsewhere: bool = False

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        whole = hasattr(self.rows_per_person, "__index__") and not isinstance(self.rows_per_person, bool)
        self._settle("rows_per_person", operator.index(self.rows_per_person) if whole else math.nan, 1)
        object.__setattr__(self, "parts", tuple(self.parts))
        if not all(isinstance(part, Part) for part in self.parts):
            raise PrivacyError(
                f"An event {self.mechanism!r} was given parts that are no parts. Each draw is described by a "
                "Laplace(...), KNorm(...), Selection(...) or another class of privfit.privacy.parts."
            )
        for name in ("epsilon", "rho", "delta"):
            self._settle(name, number(getattr(self, name)), 0, below=1 if name == "delta" else math.inf)
        if not (self.epsilon or self.rho or self.delta):
            raise PrivacyError(
                f"An event {self.mechanism!r} was given that costs nothing. A release costs epsilon, rho or delta; "
                "what no row can change needs no event."
            )
        for name, price in (("epsilon", self.epsilon), ("rho", self.rho)):
            shares = math.fsum(_share(part, name) for part in self.parts)
            if shares > price * (1 + ROUNDING):
                raise PrivacyError(
                    f"The parts of an event {self.mechanism!r} spend {name} {shares:g}, and its price is {price:g}. "
                    "Parts spend at most the price. Nothing was charged."
                )

    def _settle(self, name: str, value: float, least: float, below: float = math.inf) -> None:
        """Keep a plain number in place of what was given, if it may be what it says it is.

        A negative price would be a refund.
        """
        if not least <= value < below:
            raise PrivacyError(
                f"An event was given {name}={getattr(self, name)!r}; it is a number of at least {least} and below "
                f"{below}. Describe the release as it will be made."
            )
        object.__setattr__(self, name, value)

    @classmethod
    def laplace(cls, mechanism: str, budget: Budget, *, sensitivity: int, adjacency: Adjacency, **facts: Any) -> Event:
        """A release of integers with discrete Laplace noise; `sensitivity` is the largest L1 change that one row can
        make.

        Guarantee: as `pure`; docs/proofs/laplace.md.
        """
        return cls.pure(mechanism, budget, noise="laplace", sensitivity=sensitivity, adjacency=adjacency, **facts)

    @classmethod
    def pure(
        cls,
        mechanism: str,
        budget: Budget,
        *,
        noise: str,
        sensitivity: int,
        adjacency: Adjacency,
        rows_per_person: int = 1,
        unit: int = 1,
        n_values: int = 1,
        blocks: tuple[int, ...] = (),
        share: float = 1.0,
    ) -> Event:
        """A release of integers with noise that spends epsilon alone.

        `noise` is "laplace", "l2" or "linf"; `sensitivity` is the largest change that one row can make, in the norm L1,
        L2 or L-infinity; with `blocks`, the sum of the changes of the blocks. `rows_per_person` rows change it at most
        that many times as much. `share` is the part of epsilon that one draw may use, when a mechanism draws more than
        once.

        Guarantee: epsilon-DP for a person with at most `rows_per_person` rows, in the adjacency named;
        docs/proofs/laplace.md for Laplace noise, docs/proofs/shapes.md for the others (up to a chance below 2^-64 for
        "l2", 2^-150 for "linf").
        """
        if not 0 < share <= 1:
            raise PrivacyError(
                f"share={share!r} was given; it is above 0 and at most 1. Use 1.0 for a mechanism that draws once."
            )
        if noise not in PURE or (blocks and noise != "linf"):
            raise PrivacyError(
                f"noise={noise!r} was given with blocks={blocks!r}; noise that spends epsilon alone is one of {PURE}, "
                "and 'linf' alone has blocks. Use 'laplace' if in doubt."
            )
        total = operator.index(sensitivity) * operator.index(rows_per_person)
        scale = laplace_scale(total, exact(budget.epsilon) * exact(share))
        for size in blocks or (n_values,):
            if noise != "laplace":
                (check_cube if noise == "linf" else check_ball)(size, scale)
        facts: dict[str, Any] = {
            "size": n_values,
            "scale": scale,
            "sensitivity": total,
            "unit": unit,
            "epsilon": budget.epsilon * share,
        }
        part = Laplace(**facts) if noise == "laplace" else KNorm(norm=noise, blocks=blocks, **facts)  # type: ignore[arg-type]
        return cls(mechanism, budget.epsilon, adjacency=adjacency, rows_per_person=rows_per_person, parts=(part,))

    @classmethod
    def gaussian(
        cls,
        mechanism: str,
        budget: Budget,
        *,
        sensitivity: int,
        adjacency: Adjacency,
        rows_per_person: int = 1,
        unit: int = 1,
        n_values: int = 1,
    ) -> Event:
        """A release of integers with discrete Gaussian noise; `sensitivity` is the largest L2 change that one row can
        make.

        Guarantee: rho-zCDP, hence (epsilon, delta)-DP, for a person with at most `rows_per_person` rows, in the
        adjacency named; docs/proofs/gaussian.md.
        """
        if budget.delta <= 0:
            raise PrivacyError(
                "Gaussian noise was asked for with delta=0; it needs a small chance to fail. Give one: delta=1e-6."
            )
        total = operator.index(sensitivity) * operator.index(rows_per_person)
        rho = rho_of(budget.epsilon, budget.delta)
        scale = gaussian_scale(total, exact(rho))
        part = DiscreteGaussian(size=n_values, scale=scale, sensitivity=total, unit=unit, rho=rho)
        return cls(mechanism, budget.epsilon, budget.delta, rho, adjacency, rows_per_person, (part,))

    @cached_property
    def cost(self) -> Cost:
        """What a ledger charges for it."""
        return Cost(exact(self.epsilon), exact(self.delta), exact(self.rho))

    # -- what the parts say together ---------------------------------------------------------------

    def flat(self) -> Iterator[Part]:
        """The parts, those of repetitions once."""
        for part in self.parts:
            yield from part.parts if isinstance(part, Repeat) else (part,)

    @cached_property
    def main(self) -> tuple[Part, ...]:
        """What a report tells of: the noise and choices for the release itself; where no part is said to be, those with
        the purpose of the first of them.
        """
        drawn = [part for part in self.flat() if isinstance(part, Additive | Selection | Threshold)]
        drawn = [part for part in drawn if part.purpose not in (CANDIDATE, CERTIFICATE)]
        purposes = [part.purpose for part in drawn]
        told = [RELEASE] if RELEASE in purposes else purposes[:1]
        return tuple(part for part in drawn if part.purpose in told)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of noise or choices of the main parts, each once."""
        return tuple(dict.fromkeys(_kind(part) for part in self.main))

    @property
    def in_words(self) -> str:
        """The noise or choices of the main parts in the words of the field, as in a report; of a release made elsewhere
        nothing is known.
        """
        return "unknown" if self.elsewhere else " and ".join(dict.fromkeys(part.in_words for part in self.main))

    @property
    def n_values(self) -> int:
        """How many values are released, or choices made."""
        chooses, total = bool(self.main) and isinstance(self.main[0], Selection), 0
        for part in self.parts:
            times, own = (part.times or 1, part.parts) if isinstance(part, Repeat) else (1, (part,))
            total += times * sum(_values(one) for one in own if isinstance(one, Selection) == chooses)
        return total

    @property
    def sensitivity(self) -> float:
        """What a person can change of the main parts: the sum over parts, or of Gaussian parts the largest."""
        all_ = [part.sensitivity for part in self.main if isinstance(part, Additive | Threshold)]
        gaussian = any(isinstance(part, RoundedGaussian) for part in self.main)
        return (max(all_) if gaussian else sum(all_)) if all_ else 0

    @property
    def scale(self) -> float:
        """The scale of the noise of the first main part, in lattice steps; 0 where it follows from earlier values."""
        first = self._first
        return 0.0 if first is None else first.scale

    @property
    def unit(self) -> int:
        """How many lattice steps of the first main part are 1 in the units of the statistic."""
        return self._first.unit if isinstance(self._first, Additive) else 1

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise on one released value of the first main part, in the units of the
        statistic.
        """
        if isinstance(self._first, Threshold):
            return math.sqrt(2.0) * self._first.scale
        return self._first.sd if isinstance(self._first, Additive) else 0.0

    @property
    def usual_sd(self) -> float:
        """The root of the mean square of the noise on one released value, over all main parts."""
        parts = [part for part in self.main if isinstance(part, Additive)]
        if len(parts) < 2:
            return self.noise_sd
        return math.sqrt(sum(part.size * part.sd**2 for part in parts) / sum(part.size for part in parts))

    @property
    def _first(self) -> Additive | Threshold | None:
        first = self.main[0] if self.main else None
        return first if isinstance(first, Additive | Threshold) else None

    # -- files -------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values."""
        plain = {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "adjacency": self.adjacency,
            "rows_per_person": self.rows_per_person,
            "parts": [part.to_dict() for part in self.parts],
        }
        return {**plain, "elsewhere": True} if self.elsewhere else plain

    def to_json(self) -> str:
        """The event as one line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Event:
        """The event that `to_dict` wrote, in this version or an earlier one."""
        if "noise" in plain:
            return cls(**parts_of_version_two(plain))
        parts = tuple(read_part(part) for part in plain.get("parts", ()))
        return cls(**{**plain, "parts": parts})

    @classmethod
    def from_json(cls, text: str) -> Event:
        """The event that `to_json` wrote."""
        return cls.from_dict(json.loads(text))


def _share(part: Part, name: str) -> float:
    """What a part spends of the event's price: a repetition at least what its draws spend together, and where a coin
    ends it, twice what one of them spends (docs/proofs/rerun.md).
    """
    own: float = getattr(part, name)
    if not isinstance(part, Repeat):
        return own
    each = math.fsum(getattr(one, name) for one in part.parts)
    return max(own, (part.times or 2) * each)


def _kind(part: Part) -> str:
    """What a report calls the draw by."""
    if isinstance(part, KNorm):
        return f"k-norm-{part.norm}"
    return part.rule if isinstance(part, Selection) else part.kind


def _values(part: Part) -> int:
    if part.purpose in (CERTIFICATE, CANDIDATE):
        return 0
    if isinstance(part, Selection):
        return part.count
    return part.size if isinstance(part, Additive | Threshold) else 0


def value_sd(kind: str, values: int) -> float:
    """The standard deviation of one of so many values of noise of scale 1."""
    if kind == "linf":
        return math.sqrt((values + 1) * (values + 2) / 3)
    if kind == "l2":
        return math.sqrt(values + 1)
    return math.sqrt(2.0) if kind == "laplace" else 1.0


def laplace_scale(sensitivity: int, epsilon: Fraction) -> float:
    """The smallest float scale with sensitivity / scale <= epsilon, compared exactly."""
    if sensitivity <= 0 or epsilon <= 0:
        raise PrivacyError(
            f"A Laplace scale was asked for with sensitivity {sensitivity} and epsilon {float(epsilon)}; both must be "
            "positive. "
            "A statistic that no row can change needs no noise."
        )
    try:
        scale = float(Fraction(sensitivity) / epsilon)
    except OverflowError:
        scale = math.inf
    while math.isfinite(scale) and Fraction(sensitivity) > Fraction(scale) * epsilon:
        scale = math.nextafter(scale, math.inf)
    return _held(scale, f"epsilon={float(epsilon):.3g}")


def gaussian_scale(sensitivity: int, rho: Fraction) -> float:
    """The smallest float scale, or one of the next two, with sensitivity^2 / (2 scale^2) <= rho, compared exactly."""
    if sensitivity <= 0 or rho <= 0:
        raise PrivacyError(
            f"A Gaussian scale was asked for with sensitivity {sensitivity} and rho {float(rho)}; both must be "
            "positive. "
            "A statistic that no row can change needs no noise; an epsilon too small to square needs another."
        )
    scale = sensitivity / math.sqrt(2 * float(rho)) if sensitivity < 2**900 else math.inf
    while math.isfinite(scale) and Fraction(sensitivity) ** 2 > 2 * rho * Fraction(scale) ** 2:
        scale = math.nextafter(scale, math.inf)
    return _held(scale, f"rho={float(rho):.3g}")


def _held(scale: float, price: str) -> float:
    if scale > 2.0**62:
        raise PrivacyError(
            f"{price} asks for more noise than 64-bit whole numbers can hold. Choose a larger epsilon, or fewer "
            "columns."
        )
    return scale
