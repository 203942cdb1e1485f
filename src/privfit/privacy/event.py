"""What happened: one release, described by public facts alone, before it happens."""

from __future__ import annotations

import json
import math
import operator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from privfit.privacy.adjacency import Adjacency, checked_adjacency
from privfit.privacy.budget import Budget, exact, number
from privfit.privacy.composition import Cost, rho_of
from privfit.privacy.errors import PrivacyError
from privfit.privacy.octahedra import octahedra_sd
from privfit.privacy.shapes import check_ball, check_cube

PURE = ("laplace", "l2", "linf")


@dataclass(frozen=True)
class Event:
    """One release: which mechanism, at which price, with how much noise. Frozen, and the same after a round trip through JSON.

    `sensitivity` and `scale` are whole-lattice numbers: `unit` lattice steps are 1 in the units of the statistic.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    rho: float = 0.0
    adjacency: Adjacency = "replace-one"
    rows_per_person: int = 1
    noise: str = "laplace"
    sensitivity: int = 0
    scale: float = 0.0
    unit: int = 1
    n_values: int = 0
    parts: tuple[int, ...] = ()
    """Sizes of the parts that are noised one after the other, each with noise of its own at the same scale. Empty: all values are one part."""
    scales: tuple[float, ...] = ()
    """Where parts have scales, and kinds of noise, of their own: `noise` then names the kinds, joined by "+"."""
    widths: tuple[tuple[int, ...], ...] = ()
    """Where some of the noise is "octahedra": the sizes of their blocks of values, part by part; empty for parts of other noise."""

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        for name, least in (("rows_per_person", 1), ("sensitivity", 0), ("unit", 1), ("n_values", 0)):
            self._settle(name, _whole(getattr(self, name)), least)
        object.__setattr__(self, "parts", tuple(map(_whole, self.parts)))
        if self.parts and not (min(self.parts) >= 1 and sum(self.parts) == self.n_values):
            raise PrivacyError(
                f"An event was given parts={self.parts!r} of {self.n_values} values. Parts are positive and add up to all values."
            )
        object.__setattr__(self, "scales", tuple(map(number, self.scales)))
        if not isinstance(self.noise, str):
            raise PrivacyError(
                f"An event was given noise of type {type(self.noise).__name__}; it is a text. Name the noise: noise='laplace'."
            )
        kinds = self.noise.split("+")
        if self.scales and not (len(self.scales) == len(self.parts) == len(kinds) and all(0 <= scale < math.inf for scale in self.scales)):
            raise PrivacyError(
                f"An event was given scales={self.scales!r} and noise={self.noise!r} for {len(self.parts)} parts. Each part has a kind and a scale."
            )
        object.__setattr__(self, "widths", tuple(tuple(map(_whole, own)) for own in self.widths))
        if self.widths or "octahedra" in kinds:
            self._check_widths(kinds)
        for name in ("epsilon", "rho", "scale", "delta"):
            self._settle(name, number(getattr(self, name)), 0, below=1 if name == "delta" else math.inf)
        if not (self.epsilon or self.rho or self.delta):
            raise PrivacyError(
                f"An event {self.mechanism!r} was given that costs nothing. A release costs epsilon, rho or delta; "
                "what no row can change needs no event."
            )

    def _check_widths(self, kinds: list[str]) -> None:
        """Octahedra have blocks that add up to their part; other noise has none."""
        sizes = self.parts or (self.n_values,)
        fits = len(self.widths) == len(sizes) == len(kinds) and all(
            min(own, default=0) >= 1 and sum(own) == size if kind == "octahedra" else not own
            for kind, own, size in zip(kinds, self.widths, sizes, strict=True)
        )
        if not fits:
            raise PrivacyError(
                f"An event was given widths={self.widths!r} and noise={self.noise!r} for parts of {sizes} values. "
                "Parts with octahedra have blocks that add up to their values, and other parts have none."
            )

    def _settle(self, name: str, value: float, least: float, below: float = math.inf) -> None:
        """Keep a plain number in place of what was given, if it may be what it says it is. A negative price would be a refund."""
        if not least <= value < below:
            raise PrivacyError(
                f"An event was given {name}={getattr(self, name)!r}; it is a number of at least {least} and below {below}. "
                "Describe the release as it will be made."
            )
        object.__setattr__(self, name, value)

    @classmethod
    def laplace(cls, mechanism: str, budget: Budget, *, sensitivity: int, adjacency: Adjacency, **facts: Any) -> Event:
        """A release of whole numbers with discrete Laplace noise; `sensitivity` is the largest L1 change that one row can make.

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
        parts: tuple[int, ...] = (),
        share: float = 1.0,
    ) -> Event:
        """A release of whole numbers with noise that spends epsilon alone.

        `noise` is "laplace", "l2" or "linf"; `sensitivity` is the largest change that one row can make, in the norm L1, L2 or L-infinity; with
        `parts`, the sum of the changes of the parts. `rows_per_person` rows change it at most that many times as much. `share` is the part of epsilon that one draw may use, when a
        mechanism draws more than once.

        Guarantee: epsilon-DP for a person with at most `rows_per_person` rows, in the adjacency named; docs/proofs/laplace.md for
        Laplace noise, docs/proofs/shapes.md for the others (up to a chance below 2^-64 for "l2", 2^-150 for "linf").
        """
        if not 0 < share <= 1:
            raise PrivacyError(f"share={share!r} was given; it is above 0 and at most 1. Use 1.0 for a mechanism that draws once.")
        if noise not in PURE:
            raise PrivacyError(f"noise={noise!r} was given; noise that spends epsilon alone is one of {PURE}. Use 'laplace' if in doubt.")
        reach = operator.index(sensitivity) * operator.index(rows_per_person)
        scale = laplace_scale(reach, exact(budget.epsilon) * exact(share))
        for size in parts or (n_values,):
            if noise != "laplace":
                (check_cube if noise == "linf" else check_ball)(size, scale)
        return cls(
            mechanism=mechanism,
            epsilon=budget.epsilon,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            noise=noise,
            sensitivity=reach,
            scale=scale,
            unit=unit,
            n_values=n_values,
            parts=parts,
        )

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
        """A release of whole numbers with discrete Gaussian noise; `sensitivity` is the largest L2 change that one row can make.

        Guarantee: rho-zCDP, hence (epsilon, delta)-DP, for a person with at most `rows_per_person` rows, in the adjacency named;
        docs/proofs/gaussian.md.
        """
        if budget.delta <= 0:
            raise PrivacyError("Gaussian noise was asked for with delta=0; it needs a small chance to fail. Give one: delta=1e-6.")
        reach = operator.index(sensitivity) * operator.index(rows_per_person)
        rho = rho_of(budget.epsilon, budget.delta)
        return cls(
            mechanism=mechanism,
            epsilon=budget.epsilon,
            delta=budget.delta,
            rho=rho,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            noise="gaussian",
            sensitivity=reach,
            scale=gaussian_scale(reach, exact(rho)),
            unit=unit,
            n_values=n_values,
        )

    @cached_property
    def cost(self) -> Cost:
        """What a ledger charges for it."""
        return Cost(exact(self.epsilon), exact(self.delta), exact(self.rho))

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise on one released value (of the first part), in the units of the statistic."""
        return self.part_sd(0)

    @property
    def usual_sd(self) -> float:
        """The root of the mean square of the noise on one released value, over all parts with scales of their own; otherwise as `noise_sd`."""
        if not self.scales:
            return self.noise_sd
        return math.sqrt(sum(size * self.part_sd(i) ** 2 for i, size in enumerate(self.parts)) / self.n_values)

    def part_sd(self, part: int) -> float:
        """The standard deviation of the noise on one value of a part; the root of its mean square, where values differ (octahedra)."""
        p = self.parts[part] if self.parts else self.n_values
        kind, scale = (self.noise.split("+")[part], self.scales[part]) if self.scales else (self.noise, self.scale)
        return (octahedra_sd(self.widths[part]) if kind == "octahedra" else value_sd(kind, p)) * scale / self.unit

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values."""
        plain = {**asdict(self), "parts": list(self.parts), "scales": list(self.scales), "widths": [list(own) for own in self.widths]}
        return plain if self.widths else {key: value for key, value in plain.items() if key != "widths"}

    def to_json(self) -> str:
        """The event as one line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Event:
        """The event that `to_json` wrote."""
        return cls(**json.loads(text))


def _whole(value: Any) -> float:
    """The value as an int; NaN if it is no whole number."""
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else math.nan


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
            f"A Laplace scale was asked for with sensitivity {sensitivity} and epsilon {float(epsilon)}; both must be positive. "
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
            f"A Gaussian scale was asked for with sensitivity {sensitivity} and rho {float(rho)}; both must be positive. "
            "A statistic that no row can change needs no noise; an epsilon too small to square needs another."
        )
    scale = sensitivity / math.sqrt(2 * float(rho)) if sensitivity < 2**900 else math.inf
    while math.isfinite(scale) and Fraction(sensitivity) ** 2 > 2 * rho * Fraction(scale) ** 2:
        scale = math.nextafter(scale, math.inf)
    return _held(scale, f"rho={float(rho):.3g}")


def _held(scale: float, price: str) -> float:
    if scale > 2.0**62:
        raise PrivacyError(f"{price} asks for more noise than 64-bit whole numbers can hold. Choose a larger epsilon, or fewer columns.")
    return scale
