"""How sure released weights are: covariances of what sampling, noise and the undoing of a penalty leave open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.perturbation.sandwich import Sandwich
from privfit.schema import Geometry, RowNorms

Floats = NDArray[np.float64]

SECOND_ORDER = 0.5
"""A Newton step that undoes a penalty is wrong by about so much of itself, times how far it moves predictors and how
quickly the curvature changes: Taylor's formula. It widens intervals and moves nothing."""


@dataclass(frozen=True)
class Level:
    """An intercept that was moved after the weights, so that predictions have a released mean or quantile.

    Parameters
    ----------
    ones : weights whose predictor is 1 for every row.
    sd : the standard deviation of the noise on the move, in units of the weights.
    """

    ones: Floats
    sd: float

    @classmethod
    def of(cls, geometry: Geometry, sandwich: Sandwich, noise: Callable[[float], float]) -> Level | None:
        """From what the noise on the move is where rows count so much together by their curvature; None where noise
        hides that.
        """
        ones = np.zeros(geometry.n_columns)
        if geometry.intercept:
            ones[0] = 1.0
        else:
            blocks = RowNorms.of(geometry).blocks
            for start, stop in blocks:
                ones[start:stop] = 1 / len(blocks)
        rows = sandwich.curvature_of(ones)
        return cls(ones, noise(rows)) if rows > 2 * sandwich.noise * float(ones @ ones) else None

    def kept(self, sandwich: Sandwich) -> Floats:
        """The matrix by which errors of the weights enter where a move of the intercept follows them: what rows have in
        common is measured anew.
        """
        along = self.ones @ sandwich.whole
        return np.asarray(np.eye(len(self.ones)) - np.outer(self.ones, along) / sandwich.curvature_of(self.ones))


@dataclass(frozen=True)
class Certainty:
    """Weights without their penalty, where that is known, and covariances of their errors, over all encoded columns.

    Parameters
    ----------
    weights : the released weights less the shrinkage.
    sampling : the covariance that follows from the rows being a sample.
    noise : the covariance of the noise of the mechanism.
    shrinkage : what is not known of the shrinkage, as a covariance.
    sandwich : what the matrices say.
    """

    weights: Floats
    sampling: Floats
    noise: Floats
    shrinkage: Floats
    sandwich: Sandwich

    @classmethod
    def of(
        cls,
        sandwich: Sandwich,
        released: Floats,
        penalised: Floats,
        meat: Floats,
        meat_sd: float,
        noise: Floats,
        certificate_sd: float,
        penalty: Floats,
        taper: float,
        level: Level | None = None,
    ) -> Certainty:
        """From released weights, the gradient of their penalty, the second moments of gradients with noise of this
        standard deviation, the covariance of the noise in the objective, what the noise of the certificate adds to each
        weight, the second derivative of the penalty, and how the intercept was moved, if it was.

        Guarantee: post-processing; docs/proofs/bought-moments.md, after Theorem 2.
        """
        back, hidden = sandwich.inverse()
        step = back @ penalised
        meat = sandwich.steadied(meat, meat_sd)
        sampling, both = sandwich.covariances(meat, noise, penalised)
        both = both + certificate_sd**2 * np.eye(len(released))
        off = SECOND_ORDER * taper * sandwich.typical_change(step)
        shrinkage = off**2 * np.outer(step, step)
        if hidden.shape[1]:
            shrinkage = shrinkage + _of_hidden(hidden, released, noise, penalty)
        if level is not None:
            kept = level.kept(sandwich)
            step, shrinkage = kept @ step, kept @ shrinkage @ kept.T
            both = kept @ both @ kept.T + level.sd**2 * np.outer(level.ones, level.ones)
        return cls(released + step, sampling, both, shrinkage, sandwich)

    @property
    def covariance(self) -> Floats:
        """Of all errors together."""
        return self.sampling + self.noise + self.shrinkage

    def identified(self, shown: Floats) -> NDArray[np.bool_]:
        """Whether each of these linear functions of weights is identified."""
        return self.sandwich.identified(shown)

    def notes(self) -> tuple[str, ...]:
        """What a report says."""
        hidden, whole = self.sandwich.inverse()[1].shape[1], len(self.sandwich.bread)
        told = "intervals: a quarter of epsilon bought the Hessian and the second moments of gradients"
        if not hidden:
            return (f"{told}; the ridge was undone along all {whole} directions",)
        return (
            f"{told}; noise hides {hidden} of {whole} directions, and coefficients along them are not identified at "
            "this epsilon",
        )


def _of_hidden(hidden: Floats, released: Floats, noise: Floats, penalty: Floats) -> Floats:
    """What weights may be along hidden directions, for predictions: as large as along the others, with the noise that
    the penalty alone holds back.
    """
    across = released - hidden @ (hidden.T @ released)
    size = float(across @ across) / max(len(released) - hidden.shape[1], 1)
    held = np.linalg.inv(hidden.T @ penalty @ hidden)
    inner = size * np.eye(hidden.shape[1]) + held @ hidden.T @ noise @ hidden @ held
    return np.asarray(hidden @ inner @ hidden.T, dtype=np.float64)


def ellipse(covariance: Floats) -> Floats:
    """Columns whose products with a row, squared and added up, are the variance of its predictor."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > max(float(values[-1]), 0.0) * len(values) * math.ulp(1.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]), dtype=np.float64)
