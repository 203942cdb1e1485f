"""Record and replay over many pairs of neighbouring tables: with the same noisy values, fits cannot be told apart, and
the noise covers what a person moves.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.support.noise import Call, RecordingNoise, ReplayingNoise

ORDERS = {"laplace": 1, "l2": 2, "linf": np.inf}


def told(fit: Callable[[Any], Any], table: Any, source: RecordingNoise, monkeypatch: Any) -> tuple[Any, list[str]]:
    """What a fit with this noise returns, and its warnings."""
    monkeypatch.setattr("privfit.models.private.noise_source", lambda _: source)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return fit(table), [str(one.message) for one in said]


def moved(one: Call, other: Call) -> float:
    """How far neighbours move what is noised, in the norm of the noise, as a share of its scale."""
    apart = (one.values - other.values).astype(np.float64)
    return float(np.linalg.norm(apart, ORDERS[one.kind]) / one.scale)


def furthest_moved(fit: Callable[[Any], Any], pairs: Iterable[tuple[Any, Any]], monkeypatch: Any) -> tuple[int, float]:
    """How many pairs were tried, and the most that any moved what is noised over the noise's scale.

    `fit` returns all that a reader of the fit can see, as things that compare equal. Every pair is first fitted with
    noise that is written down, then the other table with the same noisy values.
    """
    gc.collect()  # what other tests forgot to close warns when it is collected: not while a fit is watched
    tried, furthest = 0, 0.0
    for left, right in pairs:
        first = RecordingNoise(seed=tried)
        seen = told(fit, left, first, monkeypatch)
        second = ReplayingNoise(first.calls)
        assert told(fit, right, second, monkeypatch) == seen
        assert [(call.kind, call.scale) for call in first.calls] == [(call.kind, call.scale) for call in second.calls]
        tried += 1
        added = [pair for pair in zip(first.calls, second.calls, strict=True) if pair[0].kind in ORDERS]
        furthest = max(furthest, *(moved(*pair) for pair in added))
    return tried, furthest
