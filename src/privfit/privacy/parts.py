"""The parts of an event: typed recipes, one for every draw that a release makes.

A part says what is drawn, with which scale and on how many values, what it is for, and what it spends. `Draws`
(draws.py) hands them out in order; nothing else draws noise for a release. Written to JSON and read back they are the
same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.budget import number
from privfit.privacy.errors import PrivacyError
from privfit.privacy.samplers.block_norm import octahedra_sd
from privfit.privacy.samplers.selection import Rule
from privfit.privacy.samplers.sources import Sampler

Integers = NDArray[np.int64]
BlockNorm = Literal["linf", "l2", "blocks"]

RELEASE = "release"
"""The purpose of noise on the values that a model is built from."""
CERTIFICATE = "certificate"
"""The purpose of noise that covers how far a solver may stop from its minimum."""
CANDIDATE = "candidate"
"""The purpose of noise on fits that a later choice of the same event is among, besides the one with the most noise: a
report tells of that one."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One step of a release that needs randomness.

    `epsilon` or `rho` is what the part spends of the event's price, as far as that is a share of its own: parts that
    are calibrated together have none. The sum of all shares is at most the price.
    """

    kind: ClassVar[str] = ""
    purpose: str = RELEASE
    epsilon: float = 0.0
    rho: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho"):
            _settle(self, name, number(getattr(self, name)), 0)
        if not isinstance(self.purpose, str):
            raise PrivacyError(f"A part was given purpose={self.purpose!r}; it is a text. Say what the draw is for.")

    @property
    def in_words(self) -> str:
        """What is drawn, in the words of the field."""
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """The part as plain values; what is at its default is left out."""
        plain = {own.name: getattr(self, own.name) for own in fields(self) if getattr(self, own.name) != own.default}
        return {"kind": self.kind, **{name: _plain(value) for name, value in plain.items()}}


@dataclass(frozen=True, kw_only=True)
class Additive(Part):
    """Noise that is added to `size` integers.

    `scale` and `sensitivity` are in lattice steps, `unit` of which are 1 in the units of the statistic. A scale of 0
    means that it follows from values released earlier in the same event; whoever draws then states it.
    """

    size: int
    scale: float = 0.0
    sensitivity: float = 0.0
    unit: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("size", 1), ("unit", 1)):
            _settle(self, name, _whole(getattr(self, name)), least)
        _settle(self, "scale", number(self.scale), 0)
        _settle(self, "sensitivity", _amount(self.sensitivity), 0)

    @property
    def unit_sd(self) -> float:
        """The standard deviation of one value at scale 1; that of the first block, or for a block norm the root of the
        mean square, where values differ.
        """
        raise NotImplementedError

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on one value, in the units of the statistic."""
        return self.unit_sd * self.scale / self.unit

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        """The values with noise of this scale."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Laplace(Additive):
    """Independent discrete Laplace noise: protects the L1 norm of what a person changes."""

    kind: ClassVar[str] = "laplace"

    @property
    def in_words(self) -> str:
        return "discrete Laplace"

    @property
    def unit_sd(self) -> float:
        return math.sqrt(2.0)

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        return sampler.laplace(values, scale)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Additive):
    """Independent discrete Gaussian noise: protects the L2 norm; `scale` is the standard deviation."""

    kind: ClassVar[str] = "discrete-gaussian"

    @property
    def in_words(self) -> str:
        return "discrete Gaussian"

    @property
    def unit_sd(self) -> float:
        return 1.0

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        return sampler.gaussian(values, scale)


@dataclass(frozen=True, kw_only=True)
class RoundedGaussian(Additive):
    """Independent normal noise, rounded to the lattice: of mechanisms that are proved in real arithmetic."""

    kind: ClassVar[str] = "rounded-gaussian"

    @property
    def in_words(self) -> str:
        return "Gaussian, rounded"

    @property
    def unit_sd(self) -> float:
        return 1.0

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        return sampler.normal(values, scale)


@dataclass(frozen=True, kw_only=True)
class KNorm(Additive):
    """K-norm noise: P(b) proportional to exp(-|b|_K / scale).

    `norm` is "l2"; "linf", the sum over `blocks` of the largest entry of each (one block if none are given); or
    "blocks", the largest over `blocks` of the sum of sizes, drawn where all blocks have the same sum.
    """

    kind: ClassVar[str] = "k-norm"
    norm: BlockNorm
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "blocks", tuple(_whole(block) for block in self.blocks))
        fits = all(block >= 1 for block in self.blocks) and sum(self.blocks) == (self.size if self.blocks else 0)
        with_blocks = ("linf", "blocks") if self.blocks else ("linf", "l2")
        if not fits or self.norm not in with_blocks:
            raise PrivacyError(
                f"K-norm noise was given norm={self.norm!r} and blocks={self.blocks!r} for {self.size} values. The "
                "norm is 'linf', 'l2', which has no blocks, or 'blocks'; blocks are positive and add up to all values."
            )

    @property
    def in_words(self) -> str:
        return {"linf": "K-norm, L-infinity", "l2": "K-norm, L2", "blocks": "K-norm, block norm"}[self.norm]

    @property
    def unit_sd(self) -> float:
        if self.norm == "l2":
            return math.sqrt(self.size + 1)
        if self.norm == "blocks":
            return octahedra_sd(self.blocks)
        return self.block_sd(0)

    def block_sd(self, block: int) -> float:
        """For "linf", the standard deviation of one value of a block at scale 1."""
        size = self.blocks[block] if self.blocks else self.size
        return math.sqrt((size + 1) * (size + 2) / 3)

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        if self.norm == "l2":
            return sampler.l2(values, scale)
        if self.norm == "blocks":
            return sampler.octahedra(values, scale, self.blocks)
        pieces = np.split(values, np.cumsum(self.blocks)[:-1]) if self.blocks else [values]
        return np.concatenate([sampler.linf(piece, scale) for piece in pieces])


@dataclass(frozen=True, kw_only=True)
class Selection(Part):
    """`count` private choices among public candidates, by integer scores, one after the other.

    `scale` and `sensitivity` are in steps of the scores; a scale of 0 means that it follows from the candidates, which
    earlier choices of the same event have led to.
    """

    kind: ClassVar[str] = "selection"
    rule: Rule
    count: int = 1
    scale: float = 0.0
    sensitivity: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _settle(self, "count", _whole(self.count), 1)
        _settle(self, "scale", number(self.scale), 0)
        _settle(self, "sensitivity", _amount(self.sensitivity), 0)
        if self.rule not in ("permute-and-flip", "exponential"):
            raise PrivacyError(
                f"A selection was given rule={self.rule!r}; it is 'permute-and-flip' or 'exponential'. "
                "Name one of them."
            )

    @property
    def in_words(self) -> str:
        return self.rule


@dataclass(frozen=True, kw_only=True)
class Threshold(Part):
    """Which of `size` cells have a noisy count of at least `threshold`, with that count, without listing empty cells.

    The law is that of Laplace noise of this scale on every cell.
    """

    kind: ClassVar[str] = "threshold"
    size: int
    scale: float
    threshold: int
    sensitivity: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("size", "threshold"):
            _settle(self, name, _whole(getattr(self, name)), 1)
        _settle(self, "scale", number(self.scale), math.ulp(0.0))
        _settle(self, "sensitivity", _amount(self.sensitivity), 0)

    @property
    def in_words(self) -> str:
        return "discrete Laplace"


@dataclass(frozen=True, kw_only=True)
class RandomBits(Part):
    """Randomness that hides nothing by itself and costs nothing: which rows form a part, how candidates mutate."""

    kind: ClassVar[str] = "random-bits"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon or self.rho:
            raise PrivacyError(
                f"Random bits were given epsilon={self.epsilon:g} and rho={self.rho:g}; they hide nothing and cost "
                "nothing. Describe what is noised by a part of its own."
            )


@dataclass(frozen=True, kw_only=True)
class Repeat(Part):
    """Parts that are drawn `times` over; or, with `one_in`, until they are accepted, or a coin that shows heads one
    time in so many gives up.

    Its `epsilon` or `rho` is the price of all draws together. Repetitions are not nested.
    """

    kind: ClassVar[str] = "repeat"
    parts: tuple[Part, ...]
    times: int = 0
    one_in: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parts", tuple(self.parts))
        for name in ("times", "one_in"):
            _settle(self, name, _whole(getattr(self, name)), 0)
        plain = all(isinstance(part, Part) and not isinstance(part, Repeat) for part in self.parts)
        if not (self.parts and plain) or bool(self.times) == bool(self.one_in):
            raise PrivacyError(
                f"A repetition was given {len(self.parts)} parts, times={self.times} and one_in={self.one_in}. It has "
                "parts that are no repetitions, and either a number of times or a chance to give up."
            )


KINDS: dict[str, type[Part]] = {
    kind.kind: kind
    for kind in (Laplace, DiscreteGaussian, RoundedGaussian, KNorm, Selection, Threshold, RandomBits, Repeat)
}


def read_part(plain: Mapping[str, Any]) -> Part:
    """The part that `to_dict` wrote."""
    kind = KINDS.get(str(plain.get("kind")))
    known = {own.name for own in fields(kind)} if kind else set()
    needed = {own.name for own in fields(kind) if own.default is MISSING} if kind else set()
    if kind is None or not needed <= plain.keys() - {"kind"} <= known:
        raise PrivacyError(
            f"An event has a part of kind {plain.get('kind')!r} with the fields {sorted(plain.keys() - {'kind'})}, "
            "which this version does not know. If a newer version wrote it, install that."
        )
    given = {name: _typed(value) for name, value in plain.items() if name != "kind"}
    return kind(**given)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [item.to_dict() if isinstance(item, Part) else item for item in value]
    return value


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(read_part(item) if isinstance(item, Mapping) else item for item in value)
    return value


def _whole(value: Any) -> float:
    """The value as an int; NaN if it is no integer."""
    return value.__index__() if hasattr(value, "__index__") and not isinstance(value, bool) else math.nan


def _amount(value: Any) -> float:
    """An integer as it is, however large; any other number as a float."""
    return _whole(value) if hasattr(value, "__index__") else number(value)


def _settle(part: Part, name: str, value: float, least: float) -> None:
    """Keep a plain number in place of what was given, if it may be what it says it is."""
    if not least <= value < math.inf:
        raise PrivacyError(
            f"A part of an event was given {name}={getattr(part, name)!r}; it is a number of at least {least}. "
            "Describe the draw as it will be made."
        )
    object.__setattr__(part, name, value)
