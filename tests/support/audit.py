"""A black-box attack: how well can outputs on two neighbouring tables be told apart?"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

FALSE_ALARM = 1e-6


def epsilon_at_least(left: np.ndarray, right: np.ndarray, threshold: float | None = None) -> float:
    """A lower bound on epsilon from scores of outputs on either table, wrong with probability at most FALSE_ALARM.

    P(score > threshold) is bounded from below on one table and from above on the other (Clopper-Pearson). Where the
    law of the scores is known, so is the best threshold, and all scores count; otherwise the first half of them
    chooses one for the second. Chosen ones are sometimes poor, far out in a tail: a test that asks the bound to be
    large should give a threshold.
    """
    if threshold is not None:
        return _bound(left, right, threshold)
    half = len(left) // 2
    thresholds = np.quantile(np.concatenate([left[:half], right[:half]]), np.linspace(0.02, 0.98, 97))
    best = max(thresholds, key=lambda threshold: _bound(left[:half], right[:half], threshold))
    return _bound(left[half:], right[half:], best)


def delta_at_least(left: np.ndarray, right: np.ndarray, epsilon: float, threshold: float | None = None) -> float:
    """A lower bound on delta at this epsilon, from P(score > threshold) - e^epsilon Q(score > threshold), wrong as
    rarely. For scores that are logarithms of likelihood ratios the best threshold is epsilon.
    """
    if threshold is not None:
        return _excess(left, right, threshold, epsilon)
    half = len(left) // 2
    thresholds = np.quantile(np.concatenate([left[:half], right[:half]]), np.linspace(0.02, 0.98, 97))
    best = max(thresholds, key=lambda threshold: _excess(left[:half], right[:half], threshold, epsilon))
    return _excess(left[half:], right[half:], best, epsilon)


def _excess(left: np.ndarray, right: np.ndarray, threshold: float, epsilon: float) -> float:
    low, high = _chances(left, right, threshold)
    return low - float(np.exp(epsilon)) * high


def _bound(left: np.ndarray, right: np.ndarray, threshold: float) -> float:
    low, high = _chances(left, right, threshold)
    return float(np.log(low / high)) if low > 0 else 0.0


def _chances(left: np.ndarray, right: np.ndarray, threshold: float) -> tuple[float, float]:
    """The least chance to pass the threshold on the left, and the largest on the right."""
    hits, alarms = int((left > threshold).sum()), int((right > threshold).sum())
    low = beta.ppf(FALSE_ALARM / 2, hits, len(left) - hits + 1) if hits else 0.0
    high = beta.ppf(1 - FALSE_ALARM / 2, alarms + 1, len(right) - alarms) if alarms < len(right) else 1.0
    return float(low), float(high)
