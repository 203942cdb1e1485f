"""How good weights are: effective rows, variances and biases of estimates. All from what was released and from public rows.

The formulas are those of Ji and Elkan (2013), Appendix B, corrected; docs/proofs/weights.md, Propositions 1 to 3, says where.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from privfit.privacy import Budget, Terms
from privfit.privacy.budget import exact
from privfit.privacy.event import laplace_scale

Floats = NDArray[np.float64]

FEW = 0.01
MUCH = 0.5


def tilted_weights(scores: Floats) -> Floats:
    """Weights proportional to the exponentials of scores, one on average."""
    return np.asarray(np.exp(log_softmax(scores) + math.log(len(scores))), dtype=np.float64)


def effective_rows(weights: Floats) -> float:
    """How many rows of equal weight would tell as much about a mean (Kish): the squared sum over the sum of squares."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def weight_of_few(weights: Floats) -> float:
    """The share of all weight that the heaviest hundredth of the rows has."""
    few = max(1, math.ceil(FEW * len(weights)))
    return float(np.sort(weights)[-few:].sum() / weights.sum())


def pull(values: Floats, weights: Floats, design: Any) -> Floats:
    """How the weighted mean of some values moves with beta: their weighted covariance with every column.

    Theorem 2 prints a double sum over pairs of rows that is twice this; the derivative is the covariance itself.
    """
    shares = weights / weights.sum()
    return np.asarray(design.T @ (shares * (values - shares @ values)), dtype=np.float64)


def covariance(design: Any, shares: Floats) -> Floats:
    """The covariance of columns under shares that add up to one."""
    means = design.T @ shares
    return np.asarray((design.T @ design.multiply(shares[:, None]).tocsr()).toarray() - np.outer(means, means), dtype=np.float64)


def curvature(design: Any, weights: Floats, beta: Floats, alpha: float, private_share: float, public_share: float) -> Floats:
    """The second derivative of the regression of private against public rows, with weighted public rows in place of the private ones."""
    scores = design @ beta
    bends = expit(scores) * expit(-scores)
    each = bends * (public_share / len(weights) + private_share * weights / weights.sum())
    return np.asarray((design.T @ design.multiply(each[:, None]).tocsr()).toarray() + alpha * np.eye(len(beta)), dtype=np.float64)


def regression_covariance(
    design: Any, weights: Floats, beta: Floats, rows: float, alpha: float, private_share: float = 1.0, public_share: float = 1.0
) -> Floats:
    """Lemma 5: the covariance of beta that comes from the private rows being a sample, with weighted public rows in their place.

    H^-1 Var[x / (1 + exp(beta'x))] H^-1 / rows, H the second derivative of the objective with all of its signs plus (the paper prints some as minus).
    """
    shares = weights / weights.sum()
    pulled = design.multiply(expit(-(design @ beta))[:, None]).tocsr()
    inverse = np.linalg.inv(curvature(design, weights, beta, alpha, private_share, public_share))
    return np.asarray(private_share**2 * inverse @ covariance(pulled, shares) @ inverse / rows, dtype=np.float64)


def regression_bound(norm: float, rows: float, alpha: float, noise_variance: float) -> float:
    """Lemmas 6 and 7: a bound of the variance of every entry of beta, for rows of at most this L2 norm. The noise has (d + 1) scale^2 in each of d entries, not 1 / (d + 1)."""
    return norm**2 / (rows * alpha**2) + noise_variance


def direct_count_deviation(rows: int, epsilon: float, adjacency: str = "replace-one", rows_per_person: int = 1) -> float:
    """Section 5.1: the standard deviation of a share that is asked for directly, by a noisy count that spends all of epsilon on one question."""
    terms = Terms(Budget(epsilon), adjacency, rows_per_person)  # type: ignore[arg-type]
    return math.sqrt(2.0) * laplace_scale(int(terms.rows_per_person), exact(terms.budget.epsilon)) / rows
