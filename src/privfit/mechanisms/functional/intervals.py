"""How sure a fit is of its coefficients: a parametric bootstrap on the release.

Post-processing; nothing is read or spent.

Ferrando, Wang, Sheldon: Parametric bootstrap for differentially private confidence intervals, AISTATS 2022. The release
is taken for the truth: targets are drawn again around the fit, noise is drawn again as the mechanism drew it, and the
fit is made again by the same solver. How far the new fits fall from the truth they were made of says how far the fit
itself may be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Release
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.problem import LinearFit, QuadraticProblem, noise_kind
from privfit.privacy import Event, SeededNoise, noised, seeded_generator
from privfit.schema import Geometry
from privfit.solvers import ReducedQuadratic, consistent, plausible_means, reduce_quadratic
from privfit.statistics import Moments, MomentValues

Floats = NDArray[np.float64]

DRAWS = 200
"""Bootstrap fits: more steady the ends of an interval and take longer. papers/experiments/coverage.py measures coverage
with this number; others were not measured."""
BOOTSTRAP_SEED = 20220328123
"""No secret: anybody may know it, the release is all there is. Long, so that it is nobody's random_state."""
LEAST_KEPT = 0.7
"""A coefficient is identified where shrinkage has left so much of it: its squared length along the directions of the
fit, each as far as it was kept. With less than half left 60% of own intervals cover, with more 86% to 96%. `python
papers/experiments/coverage.py --own` measures own coverage."""
LEAST_SPREAD = 0.05
"""The least share of the target's released variance that is taken to be left over."""


@dataclass(frozen=True)
class Bootstrap:
    """How far fits fall from the truth that they were made of: one row per draw.

    In the units of encoded columns and the scaled target.
    """

    weights: Floats
    intercepts: Floats
    residual_variance: float
    identified: NDArray[np.bool_]
    """Whether each coefficient shown is identified: others were decided by shrinkage."""
    sampling: Floats | None = None
    """What sampling alone adds to the errors of weights, as far as moments say; None for a model from a file."""


def bootstrap(
    mechanism: FunctionalMechanism,
    release: Release[MomentValues],
    fit: LinearFit,
    geometry: Geometry,
    problem: QuadraticProblem,
    draws: int = DRAWS,
) -> Bootstrap:
    """Refit `draws` times to what the release and the fit suggest the data could have been.

    The fit that is taken for the truth has been shrunk, so new fits show too little of what shrinking hides. That is
    made good by weights drawn from what the shrinkage took for likely, along each direction as far as it was not kept.
    """
    moments = mechanism.statistic(geometry, problem, noise_kind(release.event))
    generator = seeded_generator(BOOTSTRAP_SEED)
    reduced = reduce_quadratic(release.value, geometry, problem.loss, problem.fit_intercept)
    truth = _plausible(release.value, reduced, geometry)
    weights = np.append(fit.intercept, fit.weights) if geometry.intercept else fit.weights
    explained = truth.products @ weights
    left_over = _left_over(truth, explained, weights)
    values, vectors = np.linalg.eigh(truth.products)
    root = vectors * np.sqrt(np.maximum(values, 0.0) * left_over)
    hidden = reduced.basis @ (
        fit.solution.directions * ((1 - np.clip(fit.solution.kept, 0.0, 1.0)) * fit.solution.size)
    )
    noise = SeededNoise(generator)
    errors, intercepts, alone = np.empty((draws, len(fit.weights))), np.empty(draws), np.empty((draws, len(weights)))
    back = np.linalg.pinv(truth.products, rcond=1e-9, hermitian=True) @ root
    for draw in range(draws):
        drawn = _noise_moments(moments, release, noise)
        normal = generator.standard_normal(len(weights))
        sampled, alone[draw] = explained + root @ normal, back @ normal
        made = replace(release.value, products=truth.products + drawn.products, with_target=sampled + drawn.with_target)
        again = mechanism.solve(replace(release, value=made), geometry, problem)
        lost = hidden @ generator.standard_normal(hidden.shape[1])
        errors[draw] = again.weights - fit.weights + lost
        intercepts[draw] = again.intercept - fit.intercept - plausible_means(reduced.feature_means) @ lost
    kept = identified(reduced.basis @ fit.solution.directions, fit.solution.kept)
    return Bootstrap(errors, intercepts, left_over, _shown(kept, geometry), alone[:, int(geometry.intercept) :])


def identified(directions: Floats, kept: Floats) -> NDArray[np.bool_]:
    """Whether shrinkage has left enough of each weight: what it is along each direction, one line each, and how much of
    each direction was kept.
    """
    squares = directions**2
    share = squares @ np.clip(kept, 0.0, 1.0) / np.maximum(squares.sum(axis=1), np.finfo(float).tiny)
    return np.asarray(share >= LEAST_KEPT)


def _shown(weights: NDArray[np.bool_], geometry: Geometry) -> NDArray[np.bool_]:
    """One entry per coefficient shown, from one per weight without the constant: two levels share one weight, and a
    last level without a weight is known.
    """
    found: list[bool] = []
    for block in geometry.blocks:
        own = weights[block.start - geometry.intercept : block.stop - geometry.intercept].tolist()
        found += own * 2 if block.kind == "sign" else own + [True] * (len(block.labels) - len(own))
    return np.array(found)


def _noise_moments(moments: Moments, release: Release[MomentValues], noise: SeededNoise) -> MomentValues:
    """Fresh noise as the mechanism would draw it, made consistent as the mechanism makes it."""
    event: Event = release.event
    zeros = np.zeros(moments.n_values(event.adjacency), dtype=np.int64)
    return consistent(
        moments, noised(noise, zeros, event.flat()).astype(np.float64), 0 if event.adjacency == "replace-one" else None
    )


def _plausible(value: MomentValues, reduced: ReducedQuadratic, geometry: Geometry) -> MomentValues:
    """The released moments with the centred part raised to where a table could be."""
    values, vectors = np.linalg.eigh(reduced.matrix)
    raised = (vectors * (np.maximum(values, 0.0) - values)) @ vectors.T
    offset = int(geometry.intercept)
    products = value.products.copy()
    products[offset:, offset:] += reduced.basis @ raised @ reduced.basis.T
    return replace(value, products=products)


def _left_over(truth: MomentValues, explained: Floats, weights: Floats) -> float:
    """The variance of the target around the fit, from the released sum of its squares; never negative, never more than
    there is.
    """
    n = max(truth.n_rows, 1.0)
    assert truth.target_square is not None
    total = min(max(truth.target_square / n, 1e-6), 1.0)
    mean = truth.with_target[0] / n if truth.products[0, 0] == truth.n_rows else 0.0
    around_mean = max(total - min(mean**2, total), 1e-6)
    left = (truth.target_square - 2 * float(truth.with_target @ weights) + float(weights @ explained)) / n
    return float(min(max(left, LEAST_SPREAD * around_mean), around_mean))
