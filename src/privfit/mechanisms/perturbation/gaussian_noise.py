"""Gaussian noise of a perturbed objective: its covariance by blocks of columns, and its privacy loss, alone or with
pure steps beside it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfit.mechanisms.perturbation.defaults import FLAT_ROWS
from privfit.mechanisms.perturbation.objective_noise import SAFE, NoiseGroup, ObjectiveNoise
from privfit.mechanisms.perturbation.problem import Gradients
from privfit.privacy import PrivacyError
from privfit.privacy.gaussian import least_scale, log_gaussian_deltas

Floats = NDArray[np.float64]

MANY_ROWS_PER_PERSON, MOST_ROWS_PER_PERSON = 16, 2000
"""From the first on, Gaussian noise is not tried by itself, because it gains nothing; beyond the second it is refused:
its privacy loss is a sum over all ways in which rows act together."""
STEP_GRAIN = 2.0**-40
"""Losses of pure steps are rounded up to this share of their sum, so that equal ones are counted once."""


def gaussian_noise(
    gradients: Gradients,
    epsilon: float,
    delta: float,
    log_determinant: float | None,
    beside: tuple[float, ...] = (),
) -> ObjectiveNoise:
    """Gaussian noise that costs epsilon and delta together with the log-determinant term (where that costs this much,
    or nothing if None) and with pure steps of so many epsilons `beside` it.

    Guarantee: docs/proofs/perturbation.md, Theorem 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    people = gradients.rows_per_person
    if people > MOST_ROWS_PER_PERSON:
        raise PrivacyError(
            f"noise='gaussian' was given with rows_per_person={people}; it adds up the probabilities of all "
            "ways in which so many rows can act together, and gains nothing. Use 'auto'."
        )
    left = (epsilon - (log_determinant or 0.0)) * SAFE
    flat = (epsilon - sum(beside)) * FLAT_ROWS / people if log_determinant is None else 0.0
    least = least_scale(lambda sd: objective_delta(gradients, left, 1 / sd, flat, beside), delta * SAFE, 1 / left)
    return _by_blocks(gradients, least / SAFE, delta)


def _by_blocks(gradients: Gradients, ratio: float, delta: float) -> ObjectiveNoise:
    """Gaussian noise whose standard deviation is `ratio` times the largest gradient of a row when both are measured
    block by block.

    A row changes the sums of all blocks alike, by its slope, and within a block of n columns by a vector of squared
    length 1 - 1 / n at most. With standard deviation s_j in block j, and s on the sum, a row's gradient has the squared
    length of its slope times 1 / s^2 plus the sum of (1 - 1 / n_j) / s_j^2. The mean square over all directions is
    least for s_j^2 proportional to one over the root of n_j. The sum is one number to which all rows contribute, where
    one in n rows contributes to a column: it counts as one of so many, and has more noise.
    """
    norms, classes = gradients.norms, gradients.classes
    sensitivity = gradients.sensitivity["l2"]
    if not (norms.singles or norms.blocks):
        columns, scale = tuple(range(norms.columns)), ratio * gradients.gradient_norm["l2"]
        return ObjectiveNoise("gaussian", (NoiseGroup(columns, "gaussian", scale, sensitivity),), classes, delta)
    widths = [stop - start for start, stop in norms.blocks]
    of_sum = len(widths) / sum(widths) if widths else 0.0
    total = len(norms.singles) + sum((width - 1) / math.sqrt(width) for width in widths) + math.sqrt(of_sum)
    size = ratio * gradients.slope_norm["l2"] * math.sqrt(total)
    by_width: dict[int, list[int]] = {}
    for block in [(column,) for column in norms.singles] + [tuple(range(*ends)) for ends in norms.blocks]:
        by_width.setdefault(len(block), []).extend(block)
    groups = tuple(
        NoiseGroup(tuple(columns), "gaussian", size * width**-0.25, sensitivity) for width, columns in by_width.items()
    )
    return ObjectiveNoise("gaussian", groups, classes, delta, norms.blocks, size * of_sum**-0.25 if widths else 0.0)


def objective_delta(
    gradients: Gradients, epsilon: float, shift: float, extra: float = 0.0, beside: tuple[float, ...] = ()
) -> float:
    """An upper bound of delta for Gaussian noise whose standard deviation is one over `shift` times the largest
    gradient of a row, and pure steps beside it.

    `extra` is what a leaving row without slope can still change in the log-determinant. The privacy loss is convex in
    the slopes of the rows that leave and enter, so that it is largest where each is none or the largest one; each such
    corner is a Gaussian mechanism, and their deltas are added up.

    Guarantee: docs/proofs/perturbation.md, Theorem 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    losses, log_probabilities = losses_beside(beside)
    people, corners = gradients.rows_per_person, gradients.corners
    entering = people if gradients.replace else 0
    if not gradients.loss.one_sided:  # then none is no corner
        total = people + entering
        every = log_gaussian_deltas(epsilon - losses, np.full(losses.shape, total * shift))
        return _sum_of_exps(total * math.log(corners) + log_probabilities + every)
    left, entered = np.meshgrid(np.arange(people + 1), np.arange(entering + 1), indexing="ij")
    number = _log_choose(people, left) + _log_choose(entering, entered) + (left + entered) * math.log(corners)
    each = np.asarray(epsilon - (people - left) * extra, dtype=np.float64)
    shifts = np.broadcast_to((left + entered) * shift, (*losses.shape, *each.shape)).astype(np.float64)
    deltas = log_gaussian_deltas(each - losses[:, None, None], shifts)
    return _sum_of_exps(number + log_probabilities[:, None, None] + deltas)


def losses_beside(steps: tuple[float, ...]) -> tuple[Floats, Floats]:
    """The privacy losses of pure steps of so many epsilons together, and the logarithms of their probabilities: each
    step loses its epsilon, or the same with the other sign.

    Losses that are nearly the same are counted as the larger one.

    Guarantee: docs/proofs/pairs.md, Theorem 2: randomised response dominates every pure step.
    """
    losses, log_probabilities = np.zeros(1), np.zeros(1)
    for step in sorted(set(steps)):
        times = steps.count(step)
        up = np.arange(times + 1)
        own = _log_choose(times, up) + up * step - times * np.logaddexp(0.0, step)
        losses = (losses[:, None] + step * (2 * up - times)[None, :]).ravel()
        log_probabilities = (log_probabilities[:, None] + own[None, :]).ravel()
    if not steps:
        return losses, log_probabilities
    least = sum(steps) * STEP_GRAIN
    found, places = np.unique(np.ceil(losses / least), return_inverse=True)
    together = np.full(len(found), -np.inf)
    np.logaddexp.at(together, places, log_probabilities)
    return found * least, together


def _sum_of_exps(logs: Floats) -> float:
    total = float(logsumexp(logs)) + 1e-9
    return math.exp(total) if total < 700 else math.inf


def _log_choose(people: int, some: NDArray[np.int64]) -> Floats:
    """The logarithm of the number of ways to choose some of these people."""
    return np.asarray(gammaln(people + 1) - gammaln(some + 1) - gammaln(people - some + 1), dtype=np.float64)
