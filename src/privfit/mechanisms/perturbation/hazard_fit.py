"""What a release of log hazards holds, and what follows from it: ratios, the baseline of one person, and its band."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.losses.stopped_hazard import MOST_HAZARD
from privfit.mechanisms.perturbation.certainty import Certainty
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.mechanisms.summaries.survival_bands import SurvivalRelease
from privfit.privacy import seeded_generator
from privfit.schema import Geometry, RowNorms
from privfit.solvers.hazard_calibration import MarginalHazard

Floats = NDArray[np.float64]

LEAST_CURVATURE = 1e-3
"""What a row's mean curvature counts as at least. Chosen, not measured."""
LEAST_PART = 0.1
"""The part of the squared spread of scores that is not taken for errors of weights, at least. Chosen, not measured."""
OWN_ERROR = 0.01
"""What the factor is off by, as a share of itself, beside noise: bins of time, and scores that are not normal. Without
it, intervals of the largest of four ratios covered 83% to 88% at 50,000 rows and epsilon 1."""
DRAWS = 60
"""Of noise on counts, from which the variance of the factor follows: more make it steadier and take longer. Chosen, not
measured."""
DRAWS_SEED = 20281987405
"""No secret: the release is all there is. Long, so that it is nobody's random_state."""
MOST_VARIANCE = 1.0
"""Of the factor, which is from 0 to 3."""


@dataclass(frozen=True)
class NoisyTimes:
    """Noisy counts of events and of censored times, and what follows from them.

    Parameters
    ----------
    counts : the counts.
    n_rows : the number of rows, where it is public.
    rows : that, or a noisy one.
    hazards : the cumulative hazard of the table at the ends of bins, the beginning first.
    at_risk : the share of people at risk there, falling from 1.
    """

    counts: SurvivalRelease
    n_rows: int | None
    rows: float
    hazards: Floats
    at_risk: Floats

    @classmethod
    def of(cls, counts: SurvivalRelease, n_rows: int | None) -> NoisyTimes:
        """From the counts: nothing is divided by less than the noise on one of them."""
        table, least = counts.table(n_rows), max(counts.sd, 1.0)
        alive = np.clip(table.survival(least)[0], math.exp(-MOST_HAZARD), 1.0)
        there = np.append(table.at_risk[0], table.left[0])
        rows = max(float(n_rows or there[0]), least)
        return cls(counts, n_rows, rows, np.append(0.0, -np.log(alive)), falling_shares(there / rows))


@dataclass(frozen=True)
class HazardRelease:
    """All that was released, and the plan of the weights.

    Parameters
    ----------
    plan : the plan of the weights.
    weights : the weights of all encoded columns.
    times : what was released of times.
    square : the mean squared score.
    square_sd : the standard deviation of its noise.
    certainty : how sure the weights are, which then have no penalty, where that was bought.
    """

    plan: ERMPlan
    weights: Floats
    times: NoisyTimes
    square: float
    square_sd: float = 0.0
    certainty: Certainty | None = None

    @property
    def marginal(self) -> MarginalHazard:
        """The hazard of the table."""
        return MarginalHazard(self.times.hazards, self.times.at_risk)


@dataclass(frozen=True)
class HazardFit:
    """Log hazard ratios of encoded columns without the constant; the log hazard of somebody with average scores is 0.

    Parameters
    ----------
    weights : the log ratios.
    intercept : what is added, so that scores have the mean 0.
    baseline : the cumulative hazard at a log hazard of 0, at the ends of bins, the beginning first.
    band : ends of a 90% band of the survival that follows.
    clear : whether people are clearly at risk up to there, as far as noise shows.
    factor : what the released weights were multiplied by.
    spread : the standard deviation of log hazards.
    ridge : the ridge of the fit.
    certainty : how sure log ratios are, over all encoded columns, where that was bought.
    """

    weights: Floats
    intercept: float
    baseline: Floats
    band: Floats
    clear: NDArray[np.bool_]
    factor: float
    spread: float
    ridge: float
    certainty: Certainty | None = None


def fitted(release: HazardRelease, geometry: Geometry) -> HazardFit:
    """The fit.

    Guarantee: post-processing; docs/proofs/cox-objective.md, after Theorem 2.
    """
    centring, plan, marginal = centred(geometry), release.plan, release.marginal
    own, constant = centring @ release.weights, _constant(release.weights, geometry)
    spread, shrinkage, certainty = marginal.spread(release.square), 0.0, None
    with np.errstate(all="ignore"):  # weights can be so long that their squares are infinite
        if release.certainty is None:
            shrinkage = _shrinkage(release, own, centring, marginal, spread)
        else:
            spread = true_spread(release, release.certainty, marginal, spread)
    factor = marginal.factor(spread, shrinkage)
    if release.certainty is not None:
        certainty = of_ratios(release, release.certainty, own, marginal, spread, factor)
    band, clear = _band(release, marginal, factor * spread)
    kept = own[int(geometry.intercept) :]
    baseline = marginal.baseline(release.times.hazards, factor * spread)
    middle = constant - marginal.mean(spread, factor)
    return HazardFit(
        factor * kept, factor * middle, baseline, band, clear, factor, factor * spread, plan.ridge, certainty
    )


def centred(geometry: Geometry) -> Floats:
    """The matrix that takes the constant out of weights: the columns of a block have the mean 0, and that of the
    intercept is 0.
    """
    found = np.eye(geometry.n_columns)
    found[0, 0] = 0.0 if geometry.intercept else 1.0
    for start, stop in RowNorms.of(geometry).blocks:
        found[start:stop, start:stop] -= 1 / (stop - start)
    return found


def _constant(weights: Floats, geometry: Geometry) -> float:
    """What it takes out of every score."""
    means = [float(weights[start:stop].mean()) for start, stop in RowNorms.of(geometry).blocks]
    return sum(means) + (float(weights[0]) if geometry.intercept else 0.0)


def _shrinkage(release: HazardRelease, own: Floats, centring: Floats, marginal: MarginalHazard, spread: float) -> float:
    """What penalty and noise add to the mean of slope times score, on average over the noise: at a minimum w with
    Hessian H, penalty P and linear term b, the mean of w'b is minus the trace of (H + P)^-1 times the covariance of b.

    H is taken to be the same along all directions, and as the weights see it.
    """
    plan, square = release.plan, float(own @ own)
    assert plan.noise is not None
    penalised = float(plan.penalised(release.weights[:, None])[:, 0] @ own)
    variance = float(np.trace(centring @ plan.noise.covariance() @ centring))
    curvature = max(marginal.slopes(spread, 1.0).at(marginal.mean(spread))[2], 0.0)
    most = plan.ridge + (0.0 if plan.penalty is None else plan.penalty.largest)
    hessian = release.times.rows * curvature * spread**2 / square if square > 0 else 0.0
    return float(np.nan_to_num((penalised - variance / (hessian + most)) / release.times.rows))


def falling_shares(shares: Floats) -> Floats:
    """Noisy shares that begin with 1 and rise nowhere."""
    held = np.clip(np.append(1.0, shares[1:]), 0.0, 1.0)
    return np.asarray(np.minimum.accumulate(held))


def _band(release: HazardRelease, marginal: MarginalHazard, spread: float) -> tuple[Floats, NDArray[np.bool_]]:
    """The band of the table's own curve, for somebody with average scores: an increasing function of it."""
    curves = release.times.counts.curves(release.times.n_rows)
    ends = np.stack([np.append(1.0, ends[0]) for ends in curves.band])
    hazards = -np.log(np.clip(ends, np.finfo(float).tiny, 1.0))
    found = np.exp(-np.stack([marginal.baseline(one, spread) for one in hazards]))
    clear = np.append(True, np.isfinite(curves.survival.value[0]))
    return np.where(ends > 0, found, 0.0).T, clear


# -- how sure ratios are -----------------------------------------------------------------------------


def true_spread(release: HazardRelease, certainty: Certainty, marginal: MarginalHazard, spread: float) -> float:
    """The spread of scores without what errors of the weights add to it."""
    directions, bread = certainty.sandwich.directions, certainty.sandwich.bread
    errors = directions.T @ (certainty.sampling + certainty.noise) @ directions
    slopes = marginal.slopes(spread, 1.0)
    rows = release.times.rows * max(slopes.at(slopes.mean)[2], LEAST_CURVATURE)
    added = float(np.nan_to_num(np.trace(bread @ errors))) / rows
    return math.sqrt(float(np.clip(spread**2 - added, LEAST_PART * spread**2, spread**2)))


def of_ratios(
    release: HazardRelease, certainty: Certainty, own: Floats, marginal: MarginalHazard, spread: float, factor: float
) -> Certainty:
    """How sure the weights times the factor are: the factor has errors of its own, along the weights."""
    variance = np.nan_to_num(_factor_variance(release, marginal, spread, factor)) + (OWN_ERROR * factor) ** 2
    along = variance * np.outer(own, own)
    square = factor**2
    return replace(
        certainty,
        weights=factor * certainty.weights,
        sampling=square * certainty.sampling,
        noise=square * certainty.noise + along,
        shrinkage=square * certainty.shrinkage,
    )


def _factor_variance(release: HazardRelease, marginal: MarginalHazard, spread: float, factor: float) -> float:
    """The variance that noise on counts and on the sum of squares gives to the factor.

    Weights are fitted beside the hazard that noisy counts make, whatever it is: what matters is what the hazard is
    taken to be true for.
    """
    counts, generator = release.times.counts, seeded_generator(DRAWS_SEED)

    def left(truth: MarginalHazard, spread: float, factor: float) -> float:
        slopes = truth.slopes(spread, factor, beside=marginal)
        return slopes.at(slopes.mean)[1]

    base = left(marginal, spread, factor)
    by_factor = (left(marginal, spread, factor * 1.01 + 1e-6) - base) / (0.01 * factor + 1e-6)
    by_square = (left(marginal, 1.01 * spread, factor) - base) / (0.0201 * spread**2)
    variance = (by_square * min(release.square_sd, release.square)) ** 2
    for _ in range(DRAWS):
        moved = replace(counts, noisy=counts.noisy + generator.normal(0.0, counts.sd, counts.noisy.shape))
        times = NoisyTimes.of(moved, release.times.n_rows)
        variance += (left(MarginalHazard(times.hazards, times.at_risk), spread, factor) - base) ** 2 / DRAWS
    return min(variance / max(by_factor**2, np.finfo(float).tiny), MOST_VARIANCE)
