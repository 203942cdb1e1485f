"""The smallest eigenvalue of the moments of encoded rows: how far the columns are from collinear."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Geometry

Floats = NDArray[np.float64]

EIGENVALUE_GRID = 1 << 8
"""How many steps of the lattice of eigenvalues make 1."""


def smallest_eigenvalue(products: NDArray[np.int64], unit: int, basis: Floats) -> int:
    """The smallest eigenvalue of basis' X'X basis in steps of the lattice, rounded down, but for errors that
    `eigenvalue_sensitivity` covers.

    `products` are exact sums, `unit` of them (a power of two) to 1. Found by halving: t is too large where no Cholesky
    factor of the matrix minus t exists. How wrong that answer can be follows from the arithmetic, not from how well an
    iteration has converged.
    """
    matrix = basis.T @ (products.astype(np.float64) / unit) @ basis
    low, high = 0, math.floor(float(matrix.diagonal().min()) * EIGENVALUE_GRID) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_positive(matrix, middle / EIGENVALUE_GRID) else (low, middle)
    return low


def _is_positive(matrix: Floats, less: float) -> bool:
    try:
        np.linalg.cholesky(matrix - less * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def eigenvalue_sensitivity(geometry: Geometry) -> int:
    """The most that one row, added, removed or replaced, changes `smallest_eigenvalue`, in steps of its lattice.

    The largest squared norm of an encoded row; more of it for the errors of floating point, which grow with the square
    of the number of columns; and one step for rounding.

    Guarantee: docs/proofs/adassp.md, Lemma 1.
    """
    square = geometry.n_blocks + geometry.intercept
    return math.ceil(EIGENVALUE_GRID * square * (1 + Fraction((geometry.n_columns + 3) ** 2, 1 << 20))) + 1
