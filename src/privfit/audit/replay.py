"""Record and replay: what is noised moves no further than paid for, and nothing that is not noised leaves a fit.

One table is fitted with noise that is written down, its neighbour with the same noisy values. All that can be seen must
then be the same: calls, shapes, scales, ledger, warnings, errors, fitted attributes and the report.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.audit.cases import Fits
from privfit.audit.recording import Call, RecordingNoise, ReplayingNoise, noise_from
from privfit.privacy import Event, Ledger
from privfit.privacy.gaussian import gaussian_delta
from privfit.privacy.parts import CERTIFICATE, Additive
from privfit.privacy.samplers.patterns import Chain
from privfit.schema import Geometry, Schema

HALVINGS = 60
"""Of a bracket of epsilons: a float has hardly more digits."""
ROUNDING = 1e-9
"""By how much a loss in floats may exceed a claim in fractions."""


@dataclass(frozen=True)
class Seen:
    """All that a fit shows, and what it asked of noise."""

    model: Fits
    events: list[Event]
    said: list[str]
    error: str
    noise: RecordingNoise


@dataclass(frozen=True)
class Replay:
    """What a pair of neighbours showed: the loss claimed and found (None where no distance is a loss), and faults."""

    claimed: float
    found: float | None
    faults: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """The loss that was found as a share of the claim."""
        return 0.0 if self.found is None else self.found / self.claimed


def watched_fit(
    model: Fits, table: object, ledger: Ledger, calls: list[Call] | None = None, watches: bool = False
) -> Seen:
    """Fit with noise that is written down, or that answers as other calls did; errors are kept. The ledger is the
    model's own; how many entries it has at every call is written down where it `watches` them.
    """
    before, error = ledger.n_entries, ""

    def entries() -> int:
        return ledger.n_entries - before

    watch = entries if watches else None
    noise = RecordingNoise(3, watch) if calls is None else ReplayingNoise(calls, watch)
    with warnings.catch_warnings(record=True) as caught, noise_from(noise):
        warnings.simplefilter("always")
        try:
            model.fit(table)
        except Exception as raised:  # an error that depends on a row is what is looked for
            error = f"{type(raised).__name__}: {raised}"
    events = [entry.event for entry in ledger.entries(charged)] if (charged := entries()) else []
    return Seen(model, events, [str(one.message) for one in caught], error, noise)


def compared(one: Seen, other: Seen, exact: bool = True, declared: bool = True) -> Replay:
    """What a fit and its replay on a neighbour differ in. Unless it is `exact`, how many draws count, and so what is
    released, may depend on rows where only the law of the output may not. If all scales are `declared`, each is one of
    the event's.
    """
    faults = [f"raises after the charge: {seen.error[:80]}" for seen in (one, other) if seen.error and seen.events]
    shapes = [[(call.kind, call.values.shape, call.scale) for call in seen.noise.calls] for seen in (one, other)]
    differs = {
        "calls to noise": exact and shapes[0] != shapes[1],
        "ledger entries": one.events != other.events,
        "warnings": one.said != other.said,
        "errors": one.error != other.error,
        "fitted attributes": exact and different_state(vars(one.model), vars(other.model)),
    }
    faults += [f"{name} depend on rows" for name, found in differs.items() if found]
    if not one.events:
        return Replay(math.inf, None, (*faults, "nothing was charged"))
    faults += undeclared(one.noise.calls, one.events) if declared else []
    found = None if faults or not exact else loss(one, other)
    claimed = one.events[0].rho or one.events[0].epsilon
    return Replay(claimed, found, tuple(faults))


def different_state(left: Mapping[str, object], right: Mapping[str, object]) -> list[str]:
    """Attributes of a model that differ although its noisy values are the same."""
    return [
        name
        for name in sorted(left.keys() | right.keys())
        if name != "ledger" and not (name in left and name in right and _same(left[name], right[name]))
    ]


def _same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray):
        floats = one.dtype.kind == "f"
        same_kind = isinstance(other, np.ndarray) and floats == (other.dtype.kind == "f")
        return same_kind and np.array_equal(one, other, equal_nan=floats)  # type: ignore[arg-type]
    return one == other if isinstance(one, Geometry | Schema) else _words(one) == _words(other)


def _words(value: object) -> str:
    """What it prints, without where in memory it lies."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def undeclared(calls: list[Call], events: list[Event]) -> list[str]:
    """Scales that were drawn and that no part of the event has, where its parts state all of theirs."""
    parts = [part for event in events for part in event.flat()]
    scales = {float(getattr(part, "scale", 0.0)) for part in parts}
    if any(not getattr(part, "scale", 1.0) for part in parts):
        return []  # a scale that follows from values released before
    return [f"noise of scale {call.scale:.6g} is in no part" for call in calls if float(call.scale) not in scales]


def loss(one: Seen, other: Seen) -> float | None:
    """The privacy loss that the moves of all noised values add up to; None for a perturbed objective, whose noise is
    on no sum over rows, and for noise whose loss is not of that form.
    """
    parts = [part for event in one.events for part in event.flat()]
    if any(part.purpose == CERTIFICATE for part in parts if isinstance(part, Additive)):
        return None
    pairs = list(zip(one.noise.calls, other.noise.calls, strict=True))
    if one.events[0].rho:
        gaussian = all(call.kind == "gaussian" for call, _ in pairs)
        return sum(_squared(moved(*pair)) / (2 * pair[0].scale ** 2) for pair in pairs) if gaussian else None
    normal = [pair for pair in pairs if pair[0].kind == "normal"]
    shift = math.sqrt(sum(_squared(moved(*pair)) / pair[0].scale ** 2 for pair in normal))
    losses = [pure_loss(*pair) for pair in pairs if pair[0].kind != "normal"]
    if any(found is None for found in losses) or (normal and losses):
        return None
    return gaussian_epsilon(shift, one.events[0].delta) if normal else sum(found for found in losses if found)


def moved(one: Call, other: Call) -> NDArray[np.object_]:
    """How far neighbours are apart in what is noised."""
    return np.asarray(one.values.astype(object) - other.values.astype(object))


def pure_loss(one: Call, other: Call) -> float | None:
    """The privacy loss of one call; None for noise whose loss is not a distance."""
    if one.kind == "pattern":
        ends = [end for pair in zip(one.chains, other.chains, strict=True) for end in _ends(*pair)]
        return (max(ends) - min(ends)) / one.scale
    norm = NORMS.get(one.kind)
    return None if norm is None else norm(moved(one, other)) / one.scale


def _ends(one: Chain, other: Chain) -> tuple[int, int]:
    """The smallest and the largest difference of what a pattern gains, over all patterns of a chain."""
    alone = one.alone - other.alone
    low = high = alone[0]
    for level in range(1, one.levels):
        linked = np.zeros((2, 2), dtype=np.int64)
        if one.linked is not None and other.linked is not None:
            linked = one.linked[level - 1] - other.linked[level - 1]
        low = (low[:, None] + linked).min(axis=0) + alone[level]
        high = (high[:, None] + linked).max(axis=0) + alone[level]
    return int(low.min()), int(high.max())


def gaussian_epsilon(shift: float, delta: float) -> float:
    """The least epsilon at which normal noise of standard deviation 1 hides this shift, up to delta."""
    low, high = 0.0, 1.0
    if gaussian_delta(0.0, shift) <= delta:
        return 0.0
    while gaussian_delta(high, shift) > delta:
        high *= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, shift) <= delta else (middle, high)
    return low


def _squared(move: NDArray[np.object_]) -> float:
    return float(sum(int(step) ** 2 for step in move.ravel()))


NORMS: dict[str, Callable[[NDArray[np.object_]], float]] = {
    "laplace": lambda move: sum(abs(int(step)) for step in move.ravel()),
    "linf": lambda move: max(abs(int(step)) for step in move.ravel()),
    "permute-and-flip": lambda move: max(move) - min(move),
    "exponential": lambda move: max(move) - min(move),
    "l2": lambda move: math.sqrt(_squared(move)),
}
"""How far neighbours move what is noised, in the norm that each kind of noise protects."""


def exceeds(replay: Replay) -> bool:
    """Whether a claim is refuted."""
    return bool(replay.faults) or replay.ratio > 1 + ROUNDING
