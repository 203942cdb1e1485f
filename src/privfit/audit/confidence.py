"""Exact bounds on probabilities, and the bound on epsilon that follows from two of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

Floats = NDArray[np.float64]


def probability_at_least(hits: ArrayLike, runs: int, error: float) -> Floats:
    """Clopper-Pearson: the true probability is below this one with probability at most `error`."""
    found = np.asarray(hits, dtype=np.float64)
    return np.where(found > 0, beta.ppf(error, np.maximum(found, 1), runs - found + 1), 0.0)


def probability_at_most(hits: ArrayLike, runs: int, error: float) -> Floats:
    """Clopper-Pearson: the true probability is above this one with probability at most `error`."""
    found = np.asarray(hits, dtype=np.float64)
    return np.where(found < runs, beta.ppf(1 - error, found + 1, np.maximum(runs - found, 1)), 1.0)


def epsilon_at_least(hits: ArrayLike, alarms: ArrayLike, runs: int, delta: float, error: float) -> Floats:
    """The least epsilon with which P(E) <= e^epsilon Q(E) + delta can hold, for an event seen `hits` times in `runs`
    on one table and `alarms` times in as many on the other. Too large with probability at most `error`.
    """
    low = probability_at_least(hits, runs, error / 2) - delta
    high = probability_at_most(alarms, runs, error / 2)
    return np.where(low > 0, np.maximum(np.log(np.maximum(low, np.finfo(float).tiny) / high), 0.0), 0.0)
