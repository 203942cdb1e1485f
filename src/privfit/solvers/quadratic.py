"""The minimum of a noisy quadratic, after a repair that makes it have one. Sees moments, never rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Repair = Literal["floor", "trim", "ridge", "rerun"] | None
REPAIRS: tuple[Repair, ...] = ("floor", "trim", "ridge", "rerun", None)

Floats = NDArray[np.float64]


EXPECTED_NORM = 0.5
"""The length of the weights that shrinkage expects: python papers/experiments/constants.py varies it."""
EXPECTED_MEAN = 0.5
"""The standard deviation of the target's mean around the middle of its bounds, as a share of half their width. A guess:
python papers/experiments/constants.py varies it and does not respond."""
NORM_SPREAD = 2.0
"""How uncertain that length is, on a logarithm: raised from 1 to 2 for wide target bounds, docs/decisions.md; python
papers/experiments/constants.py varies it."""
NOISE_SHARE = 0.7
"""The share of the noise's variance that counts in shrinkage: less shrinks too little, more too much; python
papers/experiments/constants.py varies it."""
_SIZES = np.exp(np.linspace(np.log(1e-4), np.log(3.0), 60))[:, None]
"""Sizes of weights that empirical Bayes averages over: a finer grid takes longer. Not measured."""


@dataclass(frozen=True)
class NoiseLevel:
    """How noisy the quadratic is: the standard deviations of the matrix's and the vector's entries, and the mean of the
    target.
    """

    matrix: float
    vector: float
    target_mean: float = 0.0


@dataclass(frozen=True)
class Solution:
    """A minimiser, and what was done to the quadratic to have one. Everything here follows from noisy moments."""

    weights: Floats
    ridge: float
    eigenvalues_changed: int
    directions_kept: float
    bounded: bool
    directions: Floats
    factors: Floats
    """What v was multiplied by along each of the directions: the inverse of the repaired matrix."""
    kept: Floats
    """Which share of each direction was kept: the factor times the eigenvalue."""
    size: float
    """How large a weight is taken to be along a direction, where shrinkage had to know."""


def is_bounded(matrix: Floats) -> bool:
    """Whether  w'Mw - 2v'w  has a single minimum: M is positive definite."""
    return bool(np.linalg.eigvalsh(matrix).min(initial=np.inf) > 0)


def minimise(matrix: Floats, vector: Floats, noise: NoiseLevel, repair: Repair) -> Solution:
    """The w that minimises  w'Mw - 2v'w  for a noisy symmetric M and a noisy v, repaired as asked.

    floor   negative eigenvalues are raised to zero, then every direction is shrunk by how much of it is noise (see
    `_shrinkage`) ridge   4 standard deviations of the noise are added to the diagonal (functional-mechanism paper,
    section 6.1) trim    the same, and directions whose eigenvalue is still not positive are left out (section 6.2)
    rerun, None   nothing; the mechanism has made sure of a minimum, or the user did not want it made sure
    """
    d = len(vector)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    along = vectors.T @ vector
    ridge = 4 * noise.matrix if repair in ("ridge", "trim") else 0.0
    if repair == "floor":
        changed = int(np.count_nonzero(values < 0))
        values = np.maximum(values, 0.0)
        (factors, size), bounded = _shrinkage(values, along, noise), True
    else:
        values, size = values + ridge, 0.0
        keep = (values > 0) if repair == "trim" else (values != 0)
        changed = int(d - np.count_nonzero(keep)) if repair == "trim" else 0
        factors = np.divide(1.0, values, out=np.zeros(d), where=keep)
        bounded = bool((values[keep] > 0).all())
    kept = factors * values
    return Solution(
        vectors @ (factors * along), float(ridge), changed, float(kept.sum()), bounded, vectors, factors, kept, size
    )


def _shrinkage(values: Floats, along: Floats, noise: NoiseLevel) -> tuple[Floats, float]:
    """What to multiply v by in each eigendirection instead of 1 / eigenvalue, and the likely size g of weights.

    If w were normal with standard deviation g in every direction, v = M w + error would be normal, and the best
    estimate of w would be  l / (l^2 + t^2 / g^2) v  for an eigenvalue l, where t^2 is the variance of the error: that
    of v, plus that of M times the squared size of the weights and of the mean. The size g is unknown; the released v
    itself says how likely each g is (empirical Bayes), with a vague public guess in front, and the factors are averaged
    over it. When v looks like noise alone, all factors go to zero and the model predicts the mean, as noisy as that is.
    """
    d = len(values)
    error = NOISE_SHARE * (noise.vector**2 + noise.matrix**2 * (noise.target_mean**2 + d * _SIZES**2))
    spread = values**2 * _SIZES**2 + error
    guess = np.log(_SIZES[:, 0] * np.sqrt(d) / EXPECTED_NORM) / NORM_SPREAD
    surprise = np.sum(np.log(spread) + along**2 / spread, axis=1) + guess**2
    likely = np.exp((surprise.min() - surprise) / 2)
    likely = likely / likely.sum()
    factors: Floats = likely @ (values / (values**2 + error / _SIZES**2))
    return factors, float(np.sqrt(likely @ _SIZES[:, 0] ** 2))


def plausible_mean(mean: float, noise_sd: float) -> float:
    """A noisy mean of a target in [-1, 1], shrunk towards the middle of its bounds as far as it is noise.

    As if the mean were normal around the middle with a standard deviation of half the half-width: next to nothing
    happens to a mean that is known well, and one that is dominated by noise cannot leave the bounds or wander far.
    """
    trust = EXPECTED_MEAN**2 / (EXPECTED_MEAN**2 + noise_sd**2)
    return float(np.clip(trust * mean, -1.0, 1.0))


def plausible_means(means: Floats) -> Floats:
    """Noisy means of encoded features, brought back into their bounds."""
    return np.clip(means, -1.0, 1.0)


assert set(REPAIRS) == {*get_args(get_args(Repair)[0]), None}
