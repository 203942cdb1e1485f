"""Polynomials for functions f(z, y), one per target y: a cut Chebyshev series on an interval, or Taylor's expansion at
a point.

A polynomial is a column of coefficients of powers, the constant first; several targets are several columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = Callable[[Any, Any], Any]

NODES = 256
"""Chebyshev nodes of an expansion: far more than any degree in use needs, so that aliasing is below rounding."""
TAYLOR_NODES = 13
"""Nodes for derivatives at a point: enough for degree 4, few enough that rounding is not amplified. Not measured."""


def values(f: Function, z: Floats, y: Floats) -> Floats:
    """f(z, y), one row per z and one column per target."""
    with np.errstate(all="ignore"):
        found = np.asarray(f(z[:, None], y[None, :]), dtype=np.float64)
    try:
        return np.broadcast_to(found, (len(z), len(y)))
    except ValueError:
        raise ValueError(
            f"A loss was given as a function that returned the shape {found.shape} for {len(z)} values of z and "
            f"{len(y)} of y; it needs to take arrays "
            "that broadcast. Write it with numpy's functions, without loops and sums."
        ) from None


def chebyshev_series(f: Function, degree: int, y: Floats, middle: float, half: float, nodes: int = NODES) -> Floats:
    """The Chebyshev series on [middle - half, middle + half], cut after `degree`, in powers of (z - middle) / half."""
    points = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    series = 2 / nodes * chebyshev.chebvander(points, degree).T @ values(f, middle + half * points, y)
    series[0] /= 2
    in_powers = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        powers = chebyshev.cheb2poly([0.0] * k + [1.0])
        in_powers[: len(powers), k] = powers
    return np.asarray(in_powers @ series)


def taylor_series(f: Function, degree: int, y: Floats, at: float, half: float) -> Floats:
    """Taylor's expansion in powers of z - at, from values close by: the polynomial through them, found twice, and
    refused if the two differ.
    """

    def found(radius: float) -> Floats:
        through = chebyshev_series(f, TAYLOR_NODES - 1, y, at, radius, TAYLOR_NODES)
        return rescaled(through[: degree + 1], 0.0, 1 / radius)

    once, again = (rescaled(found(half / part), 0.0, half) for part in (8, 12))
    if not np.abs(once - again).max() <= 1e-4 * float(np.abs(again).max()):
        raise ValueError(
            f"A loss was given method='taylor' at {at:g}, and its derivatives there cannot be found from its values; "
            "Taylor's expansion needs a smooth "
            "function. Give derivatives=[...], or use method='chebyshev'."
        )
    return rescaled(again, 0.0, 1 / half)


def rescaled(coefficients: Floats, shift: Any, slope: Any) -> Floats:
    """The polynomials p(shift + slope u) in powers of u."""
    degree = len(coefficients) - 1
    shift, slope = np.atleast_1d(shift), np.atleast_1d(slope)
    rows = [
        sum(coefficients[k] * math.comb(k, j) * shift ** (k - j) for k in range(j, degree + 1)) * slope**j
        for j in range(degree + 1)
    ]
    return np.array(np.broadcast_arrays(*rows), dtype=np.float64)
