"""An event: what one release draws and what it costs, from public facts alone, before it happens."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from privfit.privacy.budget import Adjacency, Budget, Cost, checked_adjacency, exact, rho_of, settle
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
from privfit.privacy.samplers.norms import Norm, check_fits

PURE = ("laplace", "l2", "linf")
"""Noise that spends epsilon alone, by the norm of the change that it hides."""
ROUNDING = 1e-9
"""The relative excess of the sum of all parts' shares over the price that is taken for rounding: each share is a float
with a relative error of 2^-53, so that this has room for a million parts. A real mistake is far larger."""
MOST_SCALE = 2.0**62
"""The largest scale of noise, in lattice steps: noise is held in 64-bit integers."""


@dataclass(frozen=True)
class NoiseSummary:
    """What a report describes the main parts of an event.

    `sensitivity` is what a person can change: the sum over parts, or of Gaussian parts the largest. `scale` and `unit`,
    lattice steps per unit of the statistic, are those of the first part. `sd` is the standard deviation on one value of
    the first part, in the units of the statistic; `usual_sd` the root of the mean square over all values.
    """

    in_words: str
    n_values: int
    sensitivity: float
    scale: float
    unit: int
    sd: float
    usual_sd: float


@dataclass(frozen=True)
class Event:
    """One release: which mechanism, at which price, and the recipe of every draw. JSON keeps it as it is.

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
    split: str = ""
    """The number of the split of the table, where a part of one was released on, and which part (`of_split`)."""
    split_part: str = ""
    cost: Cost = field(init=False, repr=False, compare=False)
    """What a ledger charges for it."""
    of_split: tuple[str, str] | None = field(init=False, repr=False, compare=False)
    """The split and its part; None for a release on the whole table."""

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        settle(self, "rows_per_person", "integer", least=1)
        for name in ("epsilon", "rho", "delta"):
            below = 1 if name == "delta" else math.inf
            settle(self, name, below=below, wanted=f"it is a number of at least 0 and below {below}")
        object.__setattr__(self, "parts", tuple(self.parts))
        if not all(isinstance(part, Part) for part in self.parts):
            raise PrivacyError(
                f"An event {self.mechanism!r} was given parts that are no parts. Each draw is described by a "
                "Laplace(...), KNorm(...), Selection(...) or another class of privfit.privacy.parts."
            )
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
        object.__setattr__(self, "cost", Cost(exact(self.epsilon), exact(self.delta), exact(self.rho)))
        object.__setattr__(self, "of_split", (self.split, self.split_part) if self.split else None)

    def promising(self, promise: tuple[Adjacency, int]) -> Event:
        """The same event as a ledger states it, where it was planned with `PrivacyParameters.promise`."""
        return replace(self, adjacency=promise[0], rows_per_person=promise[1])

    @classmethod
    def laplace(
        cls,
        mechanism: str,
        budget: Budget,
        *,
        sensitivity: int,
        adjacency: Adjacency,
        rows_per_person: int = 1,
        unit: int = 1,
        n_values: int = 1,
        share: float = 1.0,
    ) -> Event:
        """A release of integers with discrete Laplace noise; `sensitivity` is the largest L1 change that one row can
        make.

        Guarantee: as `pure`; docs/proofs/laplace.md.
        """
        return cls.pure(
            mechanism,
            budget,
            noise="laplace",
            sensitivity=sensitivity,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            unit=unit,
            n_values=n_values,
            share=share,
        )

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
        docs/proofs/laplace.md for Laplace noise, docs/proofs/k-norm.md for the others (up to a probability below
        2^-64 for "l2", 2^-150 for "linf").
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
        scale = laplace_scale(total, budget.exact * exact(share))
        norm: Norm = "linf" if noise == "linf" else "l2"
        for size in (blocks or (n_values,)) if noise != "laplace" else ():
            check_fits(norm, size, scale)
        part: Additive = Laplace(
            size=n_values, scale=scale, sensitivity=total, unit=unit, epsilon=budget.epsilon * share
        )
        if noise != "laplace":
            part = KNorm(norm=norm, blocks=blocks, **asdict(part))
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
                "Gaussian noise was asked for with delta=0; it needs a positive delta. Give one: delta=1e-6."
            )
        total = operator.index(sensitivity) * operator.index(rows_per_person)
        rho = rho_of(budget.epsilon, budget.delta)
        scale = gaussian_scale(total, exact(rho))
        part = DiscreteGaussian(size=n_values, scale=scale, sensitivity=total, unit=unit, rho=rho)
        return cls(mechanism, budget.epsilon, budget.delta, rho, adjacency, rows_per_person, (part,))

    # -- what the parts say together ---------------------------------------------------------------

    def flat(self) -> Iterator[Part]:
        """The parts, those of repetitions once."""
        for part in self.parts:
            yield from part.parts if isinstance(part, Repeat) else (part,)

    @cached_property
    def main(self) -> tuple[Part, ...]:
        """What a report describes: the noise and choices for the release itself; where no part is said to be, those
        with the purpose of the first of them.
        """
        drawn = [part for part in self.flat() if isinstance(part, Additive | Selection | Threshold)]
        drawn = [part for part in drawn if part.purpose not in (CANDIDATE, CERTIFICATE)]
        purposes = [part.purpose for part in drawn]
        told = [RELEASE] if RELEASE in purposes else purposes[:1]
        return tuple(part for part in drawn if part.purpose in told)

    @cached_property
    def summary(self) -> NoiseSummary:
        """The main parts in one line, as in a report; of a release made elsewhere nothing is known."""
        chooses, n_values = bool(self.main) and all(isinstance(part, Selection) for part in self.main), 0
        for part in self.parts:
            times, own = (part.times or 1, part.parts) if isinstance(part, Repeat) else (1, (part,))
            told = [one for one in own if one.purpose not in (CERTIFICATE, CANDIDATE)]
            chosen = sum(one.count for one in told if isinstance(one, Selection))
            n_values += times * (
                chosen if chooses else sum(one.size for one in told if isinstance(one, Additive | Threshold))
            )
        in_words = "unknown" if self.elsewhere else " and ".join(dict.fromkeys(part.in_words for part in self.main))
        noisy = [part for part in self.main if isinstance(part, Additive | Threshold)]
        gaussian = any(isinstance(part, RoundedGaussian) for part in noisy)
        first = noisy[0] if noisy and not chooses else None
        added = [part for part in noisy if isinstance(part, Additive)]
        sd = 0.0 if first is None else first.sd
        squares = sum(part.size * part.sd**2 for part in added)
        return NoiseSummary(
            in_words=in_words,
            n_values=n_values,
            sensitivity=(max if gaussian else sum)([part.sensitivity for part in noisy]),
            scale=0.0 if first is None else first.scale,
            unit=1 if first is None else first.unit,
            sd=sd,
            usual_sd=sd if len(added) < 2 else math.sqrt(squares / sum(part.size for part in added)),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of noise or choices of the main parts, each once."""
        return tuple(dict.fromkeys(_kind(part) for part in self.main))

    @property
    def in_words(self) -> str:
        """The noise or choices of the main parts in the words of the field."""
        return self.summary.in_words

    @property
    def n_values(self) -> int:
        """How many values are released, or choices made."""
        return self.summary.n_values

    @property
    def sensitivity(self) -> float:
        """What a person can change of the main parts, in lattice steps."""
        return self.summary.sensitivity

    @property
    def scale(self) -> float:
        """The scale of the noise of the first main part, in lattice steps; 0 where it follows from earlier values."""
        return self.summary.scale

    @property
    def unit(self) -> int:
        """How many lattice steps of the first main part are 1 in the units of the statistic."""
        return self.summary.unit

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise on one released value of the first main part, in the units of the
        statistic.
        """
        return self.summary.sd

    # -- files -------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """The event as plain values."""
        plain: dict[str, object] = {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "adjacency": self.adjacency,
            "rows_per_person": self.rows_per_person,
            "parts": [part.to_dict() for part in self.parts],
        }
        plain |= {"split": self.split, "split_part": self.split_part} if self.split else {}
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
    """What a part spends of the event's price: a repetition at least what its draws spend together, and one with
    random stopping at least twice what one of them spends (docs/proofs/rerun.md).
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
    if scale > MOST_SCALE:
        raise too_much_noise(f"epsilon={float(epsilon):.3g}")
    return scale


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
    if scale > MOST_SCALE:
        raise too_much_noise(f"rho={float(rho):.3g}")
    return scale


def too_much_noise(price: str) -> PrivacyError:
    """The refusal of a price that no noise can serve."""
    return PrivacyError(
        f"{price} asks for more noise than 64-bit integers can hold. Choose a larger epsilon, or fewer columns."
    )
