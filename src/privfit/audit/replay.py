"""Record and replay: what is noised moves no further than paid for, and nothing that is not noised leaves a fit.

One table is fitted with noise that is written down, its neighbour with the same noisy values. All that can be seen must
then be the same: calls, shapes, scales, ledger, warnings, errors, fitted attributes and the report.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.audit.recording import Call, RecordingNoise, ReplayingNoise, noise_from
from privfit.models.private import AnyModel
from privfit.privacy import Event, Ledger
from privfit.privacy.parts import CERTIFICATE, Additive
from privfit.schema import Geometry, Schema

LIMIT = 1e6
"""Budget of the ledgers of an audit: no fit of it is refused by accident."""
ROUNDING = 1e-9
"""By how much a loss in floats may exceed a claim in fractions."""


@dataclass(frozen=True)
class Seen:
    """All that a fit shows, and what it asked of noise."""

    model: AnyModel
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


def spacious_ledger() -> Ledger:
    """A ledger in memory that refuses no fit of an audit."""
    return Ledger(epsilon=LIMIT, delta=0.5)


def watched_fit(make: Callable[[Ledger], AnyModel], table: object, calls: list[Call] | None = None) -> Seen:
    """Fit with noise that is written down, or that answers as other calls did; errors are kept."""
    ledger = spacious_ledger()

    def entries() -> int:
        return ledger.n_entries

    noise = RecordingNoise(3, entries) if calls is None else ReplayingNoise(calls, entries)
    model, error = make(ledger), ""
    with warnings.catch_warnings(record=True) as caught, noise_from(noise):
        warnings.simplefilter("always")
        try:
            model.fit(table)
        except Exception as raised:  # an error that depends on a row is what is looked for
            error = f"{type(raised).__name__}: {raised}"
    events = [entry.event for entry in ledger.entries()]
    return Seen(model, events, [str(one.message) for one in caught], error, noise)


def compared(one: Seen, other: Seen) -> Replay:
    """What a fit and its replay on a neighbour differ in."""
    faults = [f"raises after the charge: {seen.error[:80]}" for seen in (one, other) if seen.error and seen.events]
    shapes = [[(call.kind, call.values.shape, call.scale) for call in seen.noise.calls] for seen in (one, other)]
    differs = {
        "calls to noise": shapes[0] != shapes[1],
        "ledger entries": one.events != other.events,
        "warnings": one.said != other.said,
        "errors": one.error != other.error,
        "fitted attributes": different_state(vars(one.model), vars(other.model)),
    }
    faults += [f"{name} depend on rows" for name, found in differs.items() if found]
    if not one.events:
        return Replay(math.inf, None, (*faults, "nothing was charged"))
    faults += undeclared(one.noise.calls, one.events)
    found = None if faults else loss(one, other)
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
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return one == other if isinstance(one, Geometry | Schema) else repr(one) == repr(other)


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
    pairs = zip(one.noise.calls, other.noise.calls, strict=True)
    moves = [(call, call.values.astype(object) - second.values.astype(object)) for call, second in pairs]
    if one.events[0].rho:
        kinds = {call.kind for call, _ in moves}
        return sum(_squared(moved) / (2 * call.scale**2) for call, moved in moves) if kinds == {"gaussian"} else None
    if not all(call.kind in NORMS for call, _ in moves):
        return None
    return sum(NORMS[call.kind](moved) / call.scale for call, moved in moves)


def _squared(moved: NDArray[np.object_]) -> float:
    return float(sum(int(move) ** 2 for move in moved.ravel()))


NORMS: dict[str, Callable[[NDArray[np.object_]], float]] = {
    "laplace": lambda moved: sum(abs(int(move)) for move in moved.ravel()),
    "linf": lambda moved: max(abs(int(move)) for move in moved.ravel()),
    "permute-and-flip": lambda moved: max(moved) - min(moved),
    "l2": lambda moved: math.sqrt(_squared(moved)),
}
"""How far neighbours move what is noised, in the norm that each kind of noise protects."""


def exceeds(replay: Replay) -> bool:
    """Whether a claim is refuted."""
    return bool(replay.faults) or replay.ratio > 1 + ROUNDING
