"""How sure released weights are: covariances of what sampling, noise and the undoing of a penalty leave open."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.perturbation.bought_moments import Sandwich

Floats = NDArray[np.float64]

SECOND_ORDER = 0.5
"""A Newton step that undoes a penalty is wrong by about so much of itself, times how far it moves predictors and how
quickly the curvature changes: Taylor's formula. It widens intervals and moves nothing."""


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
        noise: Floats,
        certificate_sd: float,
        ridge: float,
        taper: float,
    ) -> Certainty:
        """From released weights, the gradient of their penalty, the noisy second moments of gradients, the covariance
        of the noise in the objective, and what the noise of the certificate adds to each weight.

        Guarantee: post-processing; docs/proofs/bought-moments.md, after Theorem 2.
        """
        back, hidden = sandwich.inverse()
        step = back @ penalised
        sampling = sandwich.covariance(meat, np.zeros_like(noise), np.zeros_like(penalised))
        both = sandwich.covariance(np.zeros_like(meat), noise, penalised) + certificate_sd**2 * np.eye(len(released))
        off = SECOND_ORDER * taper * sandwich.typical_change(step)
        shrinkage = off**2 * np.outer(step, step)
        if hidden.shape[1]:
            shrinkage = shrinkage + _of_hidden(hidden, released, noise, ridge)
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


def _of_hidden(hidden: Floats, released: Floats, noise: Floats, ridge: float) -> Floats:
    """What weights may be along hidden directions, for predictions: as large as along the others, with the noise that
    the ridge alone holds back.
    """
    across = released - hidden @ (hidden.T @ released)
    size = float(across @ across) / max(len(released) - hidden.shape[1], 1)
    inner = size * np.eye(hidden.shape[1]) + hidden.T @ noise @ hidden / ridge**2
    return np.asarray(hidden @ inner @ hidden.T, dtype=np.float64)


def ellipse(covariance: Floats) -> Floats:
    """Columns whose products with a row, squared and added up, are the variance of its predictor."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > max(float(values[-1]), 0.0) * len(values) * math.ulp(1.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]), dtype=np.float64)
