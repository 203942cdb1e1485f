"""The privacy loss of a perturbed objective with normal noise, alone or with pure steps beside it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfit.privacy.gaussian import log_gaussian_deltas
from privfit.statistics import Gradients

Floats = NDArray[np.float64]


def objective_delta(
    gradients: Gradients, epsilon: float, shift: float, extra: float = 0.0, beside: tuple[float, ...] = ()
) -> float:
    """An upper bound of delta for a normal noise whose standard deviation is one over `shift` times the largest
    gradient of a row, and pure steps beside it.

    `extra` is what a leaving row without slope can still bend. The loss of privacy is convex in the slopes of the rows
    that leave and enter, so that it is largest where each is none or the largest one; each such corner is a Gaussian
    mechanism, and their deltas are added up.

    Guarantee: docs/proofs/perturbation.md, Theorem 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    losses, chances = losses_beside(beside)
    people, entering, corners = gradients.people, gradients.people if gradients.replace else 0, gradients.corners
    if not gradients.loss.one_sided:  # then none is no corner
        total = people + entering
        every = log_gaussian_deltas(epsilon - losses, np.full(losses.shape, total * shift))
        return _sum_of_exps(total * math.log(corners) + chances + every)
    left, entered = np.meshgrid(np.arange(people + 1), np.arange(entering + 1), indexing="ij")
    number = _log_choose(people, left) + _log_choose(entering, entered) + (left + entered) * math.log(corners)
    each = np.asarray(epsilon - (people - left) * extra, dtype=np.float64)
    shifts = np.broadcast_to((left + entered) * shift, (*losses.shape, *each.shape)).astype(np.float64)
    deltas = log_gaussian_deltas(each - losses[:, None, None], shifts)
    return _sum_of_exps(number + chances[:, None, None] + deltas)


def losses_beside(steps: tuple[float, ...]) -> tuple[Floats, Floats]:
    """What pure steps of so many epsilons can give away together, and the logarithm of how likely that is: each gives
    its epsilon away, or the same the other way.

    Losses that are nearly the same are counted as the larger one.

    Guarantee: docs/proofs/pairs.md, Theorem 2: no pure step is told apart better than such a coin.
    """
    losses, chances = np.zeros(1), np.zeros(1)
    for step in sorted(set(steps)):
        times = steps.count(step)
        up = np.arange(times + 1)
        own = _log_choose(times, up) + up * step - times * np.logaddexp(0.0, step)
        losses = (losses[:, None] + step * (2 * up - times)[None, :]).ravel()
        chances = (chances[:, None] + own[None, :]).ravel()
    if not steps:
        return losses, chances
    least = sum(steps) * 2.0**-40
    found, places = np.unique(np.ceil(losses / least), return_inverse=True)
    together = np.full(len(found), -np.inf)
    np.logaddexp.at(together, places, chances)
    return found * least, together


def _sum_of_exps(logs: Floats) -> float:
    total = float(logsumexp(logs)) + 1e-9
    return math.exp(total) if total < 700 else math.inf


def _log_choose(people: int, some: NDArray[np.int64]) -> Floats:
    """The logarithm of the number of ways to choose some of these people."""
    return np.asarray(gammaln(people + 1) - gammaln(some + 1) - gammaln(people - some + 1), dtype=np.float64)
