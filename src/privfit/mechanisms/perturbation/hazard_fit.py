"""What a release of log hazards holds, and what follows from it: ratios, the baseline of one person, and its band."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.losses.stopped_hazard import MOST_HAZARD
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.mechanisms.summaries.survival_bands import SurvivalRelease
from privfit.schema import Geometry, RowNorms
from privfit.solvers.hazard_calibration import MarginalHazard

Floats = NDArray[np.float64]


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
    """

    plan: ERMPlan
    weights: Floats
    times: NoisyTimes
    square: float

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
    ridge : the ridge of the fit.
    """

    weights: Floats
    intercept: float
    baseline: Floats
    band: Floats
    clear: NDArray[np.bool_]
    factor: float
    ridge: float


def fitted(release: HazardRelease, geometry: Geometry) -> HazardFit:
    """The fit.

    Guarantee: post-processing; docs/proofs/cox-objective.md, after Theorem 2.
    """
    centring = centred(geometry)
    own, plan = centring @ release.weights, release.plan
    constant = _constant(release.weights, geometry)
    marginal = release.marginal
    spread = marginal.spread(release.square)
    with np.errstate(all="ignore"):  # weights can be so long that their squares are infinite
        shrinkage = _shrinkage(release, own, centring, marginal, spread)
    factor = marginal.factor(spread, shrinkage)
    band, clear = _band(release, marginal, factor * spread)
    kept = own[int(geometry.intercept) :]
    baseline = marginal.baseline(release.times.hazards, factor * spread)
    middle = constant - marginal.mean(spread, factor)
    return HazardFit(factor * kept, factor * middle, baseline, band, clear, factor, plan.ridge)


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
