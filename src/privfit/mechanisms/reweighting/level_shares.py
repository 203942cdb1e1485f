"""Weights that give public rows the noisy shares of levels that were released: exponential tilting.

Nothing here reads a private row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp

from privfit.mechanisms.reweighting.base import Pairs, ReweightingFit, ReweightingProblem, tilted_weights
from privfit.mechanisms.reweighting.variances import covariance
from privfit.privacy import PrivacyParameters
from privfit.rows import PublicRows
from privfit.schema import Geometry, Schema
from privfit.tables import Table

Floats = NDArray[np.float64]

PAIR_SPREAD = 0.5
"""How far the log-weight of a pair is expected from zero, as a share of `spread`; `privfit bench weights`."""
PRECISION = 1e-9
"""The solver ends at this gradient: far below the noise on a share."""
MOST_STEPS = 2000
"""The most steps of the solver; what it has then is post-processing of the release like any other point."""


@dataclass(frozen=True)
class LevelShares:
    """Noisy means of encoded columns, those of pairs last; the standard deviation of the noise on each; and the number
    of rows that they are means over.
    """

    means: Floats
    deviations: Floats
    rows: float
    pairs: Pairs

    def noise_covariance(self, geometry: Geometry) -> Floats:
        """The covariance of the noise on means, with the part taken out that levels which add up to one cannot have."""
        spread = np.diag(self.deviations**2)
        for block in geometry.blocks:
            if block.kind == "levels":
                part = slice(block.start, block.stop)
                spread[part, part] -= self.deviations[block.start] ** 2 / block.width
        return spread


@dataclass(frozen=True)
class TiltingFit(ReweightingFit):
    """Weights of public rows that have the released shares, as far as the noise permits.

    `ridge` was laid on every entry of beta; `spread` is how far the log-weight of a level is expected from zero.
    """

    shares: LevelShares
    ridge: Floats
    spread: float

    @classmethod
    def of(cls, shares: LevelShares, problem: ReweightingProblem, spread: float) -> TiltingFit:
        """The weights with these shares, as near to equal weights as the noise asks for."""
        public = problem.public
        design = public.design
        if shares.pairs:
            design = sparse.hstack([design, public.products(shares.pairs)], format="csr")
        even = np.full(public.n_rows, 1 / public.n_rows)
        spreads = np.where(np.arange(design.shape[1]) < public.design.shape[1], spread, PAIR_SPREAD * spread)
        variances = weighted_variances(design, even)
        seen = np.maximum(variances, 1 / public.n_rows)
        uncertainty = shares.deviations**2 + seen / max(shares.rows, 1.0)
        ridge = uncertainty / (spreads**2 * seen)
        beta = solve_tilt(design, np.where(variances > 0, shares.means, 0.0), ridge, variances > 0)
        return cls(problem, beta, design, shares, ridge, spread)

    @property
    def pairs(self) -> Pairs:
        """The pairs of columns whose joint shares were released."""
        return self.shares.pairs

    @property
    def means(self) -> Floats:
        """The release: noisy means of the design's columns."""
        return self.shares.means

    def repairs(self) -> dict[str, float]:
        """None: every column has a ridge of its own."""
        return {}

    def notes(self) -> list[str]:
        """What was released."""
        pairs = f" and of {len(self.pairs)} pairs of columns" if self.pairs else ""
        return [f"shares of levels{pairs} were released"]

    def covariance(self) -> Floats:
        """docs/proofs/weights.md, Proposition 2: of the private sample, and of the noise on shares."""
        weights = tilted_weights(self.design @ self.beta)
        sampled = covariance(self.design, weights / weights.sum())
        inverse = np.linalg.pinv(sampled + np.diag(self.ridge), hermitian=True)
        noise = self.shares.noise_covariance(self.geometry)
        return np.asarray(inverse @ (sampled / self.shares.rows + noise) @ inverse, dtype=np.float64)

    def variance_bound(self, gradient: Floats) -> float:
        """The variance itself, to first order: there is no ridge of a regression to bound by."""
        return float(gradient @ self.covariance() @ gradient)

    def without_noise(self, reference: Table, schema: Schema, parameters: PrivacyParameters) -> Floats:
        """The beta of the exact shares of a reference, as if endlessly many rows had them. NOT private for its rows."""
        rows = PublicRows.read([reference], schema, self.geometry)
        exact = [rows.design, *([rows.products(self.pairs)] if self.pairs else [])]
        means = np.concatenate([np.asarray(part.mean(axis=0)).ravel() for part in exact])
        shares = LevelShares(means, np.zeros(len(means)), np.inf, self.pairs)
        return TiltingFit.of(shares, self.problem, self.spread).beta


def solve_tilt(design: Any, means: Floats, ridge: Floats, free: NDArray[np.bool_]) -> Floats:
    """The beta that minimises log(mean(exp(design @ beta))) - beta'means + ridge'beta^2 / 2; zero where it is not free.

    Its gradient is the difference of the weighted means and the wanted ones, plus ridge times beta: without a ridge the
    means agree.
    """
    size = design.shape[0]
    even = np.full(size, 1 / size)
    scale = np.where(free, 1 / np.sqrt(weighted_variances(design, even) + ridge + 1e-12), 0.0)

    def objective(scaled: Floats) -> tuple[float, Floats]:
        beta = scale * scaled
        scores = design @ beta
        top = float(logsumexp(scores))
        found = design.T @ np.exp(scores - top)
        value = top - math.log(size) - beta @ means + (ridge * beta**2).sum() / 2
        return float(value), np.asarray(scale * (found - means + ridge * beta), dtype=np.float64)

    found = minimize(
        objective,
        np.zeros(design.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "gtol": PRECISION, "ftol": 1e-15, "maxcor": 30},
    )
    return np.asarray(scale * found.x, dtype=np.float64)


def weighted_variances(design: Any, shares: Floats) -> Floats:
    """The variance of every column under shares that add up to one."""
    means = design.T @ shares
    return np.maximum(np.asarray(design.multiply(design).T @ shares - means**2, dtype=np.float64), 0.0)
