"""The parts of an event: typed recipes, one for every draw that a release makes.

A part says what is drawn, with which scale and on how many values, what it is for, and what it spends. `Draws`
(draws.py) hands them out in order; nothing else draws noise for a release. Written to JSON and read back they are the
same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.budget import NumberKind, settle
from privfit.privacy.errors import PrivacyError
from privfit.privacy.samplers.norms import UNIT_SD, Norm, block_norm_sds
from privfit.privacy.samplers.selection import Rule
from privfit.privacy.samplers.sources import Sampler

Integers = NDArray[np.int64]
Numbers = Mapping[str, tuple[NumberKind, float]]

RELEASE = "release"
"""The purpose of noise on the values that a model is built from."""
CERTIFICATE = "certificate"
"""The purpose of noise that covers how far a solver may stop from its minimum."""
CANDIDATE = "candidate"
"""The purpose of noise on fits that a later choice of the same event is among, besides the one with the most noise: a
report describes that one."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One step of a release that needs randomness.

    `epsilon` or `rho` is what the part spends of the event's price, as far as that is a share of its own: parts that
    are calibrated together have none. The sum of all shares is at most the price.
    """

    kind: ClassVar[str] = ""
    numbers: ClassVar[Numbers] = {"epsilon": ("float", 0), "rho": ("float", 0)}
    """Fields that are numbers, with their kind and their least value."""
    purpose: str = RELEASE
    epsilon: float = 0.0
    rho: float = 0.0

    def __post_init__(self) -> None:
        for name, (kind, least) in self.numbers.items():
            settle(self, name, kind, least)
        if not isinstance(self.purpose, str):
            raise PrivacyError(f"A part was given purpose={self.purpose!r}; it is a text. Say what the draw is for.")

    @property
    def in_words(self) -> str:
        """What is drawn, in the words of the field."""
        return self.kind

    def to_dict(self) -> dict[str, object]:
        """The part as plain values; what is at its default is left out."""
        plain: dict[str, object] = {"kind": self.kind}
        for own in fields(self):
            value = getattr(self, own.name)
            if isinstance(value, tuple):
                value = [item.to_dict() if isinstance(item, Part) else item for item in value]
            if value != (list(own.default) if isinstance(own.default, tuple) else own.default):
                plain[own.name] = value
        return plain


@dataclass(frozen=True, kw_only=True)
class Additive(Part):
    """Noise that is added to `size` integers.

    `scale` and `sensitivity` are in lattice steps, `unit` of which are 1 in the units of the statistic. A scale of 0
    means that it follows from values released earlier in the same event; whoever draws then states it.
    """

    numbers: ClassVar[Numbers] = {
        **Part.numbers,
        "size": ("integer", 1),
        "unit": ("integer", 1),
        "scale": ("float", 0),
        "sensitivity": ("either", 0),
    }
    size: int
    scale: float = 0.0
    sensitivity: float = 0.0
    unit: int = 1

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
    in_words: ClassVar[str] = "discrete Laplace"
    unit_sd: ClassVar[float] = math.sqrt(2.0)

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        return sampler.laplace(values, scale)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Additive):
    """Independent discrete Gaussian noise: protects the L2 norm; `scale` is the standard deviation."""

    kind: ClassVar[str] = "discrete-gaussian"
    in_words: ClassVar[str] = "discrete Gaussian"
    unit_sd: ClassVar[float] = 1.0

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        return sampler.gaussian(values, scale)


@dataclass(frozen=True, kw_only=True)
class RoundedGaussian(Additive):
    """Independent normal noise, rounded to the lattice: of mechanisms that are proved in real arithmetic."""

    kind: ClassVar[str] = "rounded-gaussian"
    in_words: ClassVar[str] = "Gaussian, rounded"
    unit_sd: ClassVar[float] = 1.0

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        return sampler.normal(values, scale)


@dataclass(frozen=True, kw_only=True)
class KNorm(Additive):
    """K-norm noise: P(b) proportional to exp(-|b|_K / scale).

    `norm` is "l2"; "linf", the sum over `blocks` of the largest entry of each (one block if none are given); or
    "blocks", the largest over `blocks` of the sum of sizes, drawn where all blocks have the same sum.
    """

    kind: ClassVar[str] = "k-norm"
    norm: Norm
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        integers = all(hasattr(block, "__index__") and not isinstance(block, bool) for block in self.blocks)
        blocks = tuple(block.__index__() for block in self.blocks) if integers else (0,)
        fits = all(block >= 1 for block in blocks) and sum(blocks) == (self.size if blocks else 0)
        with_blocks = ("linf", "blocks") if self.blocks else ("linf", "l2")
        if not fits or self.norm not in with_blocks:
            raise PrivacyError(
                f"K-norm noise was given norm={self.norm!r} and blocks={self.blocks!r} for {self.size} values. The "
                "norm is 'linf', 'l2', which has no blocks, or 'blocks'; blocks are positive and add up to all values."
            )
        object.__setattr__(self, "blocks", blocks)

    @property
    def in_words(self) -> str:
        return {"linf": "K-norm, L-infinity", "l2": "K-norm, L2", "blocks": "K-norm, block norm"}[self.norm]

    @property
    def unit_sd(self) -> float:
        if self.norm == "blocks":
            squares = (width * sd**2 for width, sd in zip(self.blocks, block_norm_sds(self.blocks)[0], strict=True))
            return math.sqrt(sum(squares) / sum(self.blocks))
        return UNIT_SD[self.norm](self.blocks[0] if self.blocks else self.size)

    def block_sd(self, block: int) -> float:
        """For "linf", the standard deviation of one value of a block at scale 1."""
        return UNIT_SD["linf"](self.blocks[block] if self.blocks else self.size)

    def added(self, sampler: Sampler, values: Integers, scale: float) -> Integers:
        if self.norm == "l2":
            return sampler.l2(values, scale)
        if self.norm == "blocks":
            return sampler.block_norm(values, scale, self.blocks)
        pieces = np.split(values, np.cumsum(self.blocks)[:-1]) if self.blocks else [values]
        return np.concatenate([sampler.linf(piece, scale) for piece in pieces])


@dataclass(frozen=True, kw_only=True)
class Selection(Part):
    """`count` private choices among public candidates, by integer scores, one after the other.

    `scale` and `sensitivity` are in steps of the scores; a scale of 0 means that it follows from the candidates, which
    earlier choices of the same event have led to.
    """

    kind: ClassVar[str] = "selection"
    numbers: ClassVar[Numbers] = {
        **Part.numbers,
        "count": ("integer", 1),
        "scale": ("float", 0),
        "sensitivity": ("either", 0),
    }
    rule: Rule
    count: int = 1
    scale: float = 0.0
    sensitivity: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
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
    in_words: ClassVar[str] = "discrete Laplace"
    unit: ClassVar[int] = 1
    numbers: ClassVar[Numbers] = {
        **Part.numbers,
        "size": ("integer", 1),
        "threshold": ("integer", 1),
        "scale": ("float", math.ulp(0.0)),
        "sensitivity": ("either", 0),
    }
    size: int
    scale: float
    threshold: int
    sensitivity: float = 0.0

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on one count."""
        return math.sqrt(2.0) * self.scale


@dataclass(frozen=True, kw_only=True)
class HeldThreshold(Threshold):
    """Which cells that hold rows have a noisy count of at least `threshold`, with that count.

    Cells without rows never pass, whatever they are called: what that reveals costs the event's delta. `size` is the
    most cells that can hold rows, or a guess where that is private.
    """

    kind: ClassVar[str] = "held-threshold"


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
    """Parts that are drawn `times` over; or, with `one_in`, until they are accepted, or given up: after each draw with
    probability one in so many.

    Its `epsilon` or `rho` is the price of all draws together. Repetitions are not nested.
    """

    kind: ClassVar[str] = "repeat"
    numbers: ClassVar[Numbers] = {**Part.numbers, "times": ("integer", 0), "one_in": ("integer", 0)}
    parts: tuple[Part, ...]
    times: int = 0
    one_in: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parts", tuple(self.parts))
        plain = all(isinstance(part, Part) and not isinstance(part, Repeat) for part in self.parts)
        if not (self.parts and plain) or bool(self.times) == bool(self.one_in):
            raise PrivacyError(
                f"A repetition was given {len(self.parts)} parts, times={self.times} and one_in={self.one_in}. It has "
                "parts that are no repetitions, and either a number of times or a probability of giving up."
            )


KINDS: dict[str, type[Part]] = {
    kind.kind: kind
    for kind in (
        Laplace,
        DiscreteGaussian,
        RoundedGaussian,
        KNorm,
        Selection,
        Threshold,
        HeldThreshold,
        RandomBits,
        Repeat,
    )
}


def read_part(plain: Mapping[str, object]) -> Part:
    """The part that `to_dict` wrote."""
    kind = KINDS.get(str(plain.get("kind")))
    known = {own.name for own in fields(kind)} if kind else set()
    needed = {own.name for own in fields(kind) if own.default is MISSING} if kind else set()
    if kind is None or not needed <= plain.keys() - {"kind"} <= known:
        raise PrivacyError(
            f"An event has a part of kind {plain.get('kind')!r} with the fields {sorted(plain.keys() - {'kind'})}, "
            "which this version does not know. If a newer version wrote it, install that."
        )
    given = {name: value for name, value in plain.items() if name != "kind"}
    for name, value in given.items():
        if isinstance(value, list):
            given[name] = tuple(read_part(item) if isinstance(item, Mapping) else item for item in value)
    return kind(**given)  # type: ignore[arg-type]
