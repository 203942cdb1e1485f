"""Covariances of weighted public rows, and of the regression of private against public rows.

The formulas are those of Ji and Elkan (2013), Appendix B, corrected; docs/proofs/weights.md, Propositions 1 and 2, says
where.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


def covariance(design: Any, shares: Floats) -> Floats:
    """The covariance of columns under shares that add up to one."""
    means = design.T @ shares
    return np.asarray(
        (design.T @ design.multiply(shares[:, None]).tocsr()).toarray() - np.outer(means, means), dtype=np.float64
    )


def curvature(
    design: Any, weights: Floats, beta: Floats, alpha: float, private_share: float, public_share: float
) -> Floats:
    """The second derivative of the regression of private against public rows, with weighted public rows in place of the
    private ones.
    """
    scores = design @ beta
    bends = expit(scores) * expit(-scores)
    each = bends * (public_share / len(weights) + private_share * weights / weights.sum())
    return np.asarray(
        (design.T @ design.multiply(each[:, None]).tocsr()).toarray() + alpha * np.eye(len(beta)), dtype=np.float64
    )


def regression_covariance(
    design: Any,
    weights: Floats,
    beta: Floats,
    rows: float,
    alpha: float,
    private_share: float = 1.0,
    public_share: float = 1.0,
) -> Floats:
    """Lemma 5: the covariance of beta that comes from the private rows being a sample, with weighted public rows in
    their place.

    H^-1 Var[x / (1 + exp(beta'x))] H^-1 / rows, H the second derivative of the objective with all of its signs plus
    (the paper prints some as minus).
    """
    shares = weights / weights.sum()
    pulled = design.multiply(expit(-(design @ beta))[:, None]).tocsr()
    inverse = np.linalg.inv(curvature(design, weights, beta, alpha, private_share, public_share))
    return np.asarray(private_share**2 * inverse @ covariance(pulled, shares) @ inverse / rows, dtype=np.float64)


def regression_bound(norm: float, rows: float, alpha: float, noise_variance: float) -> float:
    """Lemmas 6 and 7: a bound of the variance of every entry of beta, for rows of at most this L2 norm.

    The noise has (d + 1) scale^2 in each of d entries, not 1 / (d + 1).
    """
    return norm**2 / (rows * alpha**2) + noise_variance
