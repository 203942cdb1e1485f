"""How good weights are: effective rows, and how estimates depend on them.

All from what was released and from public rows.

The formulas are those of Ji and Elkan (2013), corrected; docs/proofs/weights.md, Proposition 1, says where.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from privfit.privacy import Budget, PrivacyParameters
from privfit.privacy.event import laplace_scale

Floats = NDArray[np.float64]

FEW = 0.01
"""The share of the heaviest rows whose weight is looked at."""
MUCH = 0.5
"""Above this share of all weight on them a warning says that estimates depend on few rows. Chosen, not measured."""


def effective_rows(weights: Floats) -> float:
    """How many rows of equal weight would estimate a mean as precisely (Kish): the squared sum over the sum of
    squares."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def weight_of_few(weights: Floats) -> float:
    """The share of all weight that the heaviest hundredth of the rows has."""
    few = max(1, math.ceil(FEW * len(weights)))
    return float(np.sort(weights)[-few:].sum() / weights.sum())


def estimate_gradient(values: Floats, weights: Floats, design: Floats | csr_matrix) -> Floats:
    """The gradient in beta of the weighted mean of some values: their weighted covariance with every column.

    Theorem 2 prints a double sum over pairs of rows that is twice this; the derivative is the covariance itself.
    """
    shares = weights / weights.sum()
    return np.asarray(design.T @ (shares * (values - shares @ values)), dtype=np.float64)


def direct_count_deviation(
    rows: int, epsilon: float, adjacency: str = "replace-one", rows_per_person: int = 1
) -> float:
    """Section 5.1: the standard deviation of a share that is asked for directly, by a noisy count that spends all of
    epsilon on one question.
    """
    terms = PrivacyParameters(Budget(epsilon), adjacency, rows_per_person)  # type: ignore[arg-type]
    return math.sqrt(2.0) * laplace_scale(int(terms.rows_per_person), terms.budget.exact) / rows
