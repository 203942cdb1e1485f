"""A black-box attack: how well can outputs on two neighbouring tables be told apart?"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

FALSE_ALARM = 1e-6


def epsilon_at_least(left: np.ndarray, right: np.ndarray) -> float:
    """A lower bound on epsilon from scores of outputs on either table, wrong with probability at most FALSE_ALARM.

    The first half of the scores chooses a threshold; on the second half P(score > threshold) is bounded from below on one table and
    from above on the other (Clopper-Pearson).
    """
    half = len(left) // 2
    thresholds = np.quantile(np.concatenate([left[:half], right[:half]]), np.linspace(0.02, 0.98, 97))
    best = max(thresholds, key=lambda threshold: _bound(left[:half], right[:half], threshold))
    return _bound(left[half:], right[half:], best)


def delta_at_least(left: np.ndarray, right: np.ndarray, epsilon: float) -> float:
    """A lower bound on delta at this epsilon, from P(score > threshold) - e^epsilon Q(score > threshold), wrong as rarely."""
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
