"""Ready-made losses: least squares, logistic, Poisson and Huber regression as polynomials."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from privfit.losses.polynomial import Interval, PolynomialLoss
from privfit.losses.terms import Method


def squared() -> PolynomialLoss:
    """The squared loss (y - z)^2, a polynomial already.

    Returns
    -------
    PolynomialLoss
        The loss.

    See Also
    --------
    LinearRegression : Least squares, with confidence intervals.

    Examples
    --------
    >>> from privfit.losses import squared
    >>> bool(squared().on_target(0.0, 1.0).approximation_error([0.0, 1.0]) < 1e-9)
    True
    """
    return replace(PolynomialLoss.fit(_squared, interval="target"), name="squared loss")


def logistic(degree: int = 2, interval: Interval = 4.0, method: Method = "chebyshev") -> PolynomialLoss:
    """The logistic loss log(1 + e^(-y z)) for the classes y = -1 and 1, as a polynomial.

    Parameters
    ----------
    degree : int, default=2
        Degree of the polynomial: 2, 3 or 4.
    interval : float, tuple of float or 'target', default=4.0
        Where z is expected: L for [-L, L], or a pair (low, high).
    method : {'chebyshev', 'taylor'}, default='chebyshev'
        How the polynomial is made.

    Returns
    -------
    PolynomialLoss
        The loss.

    See Also
    --------
    FunctionalClassifier : Fits it.

    Examples
    --------
    >>> from privfit.losses import logistic
    >>> logistic(method="taylor").coefficients([1.0]).round(3).ravel().tolist()
    [0.693, -0.5, 0.125]
    """
    return replace(
        PolynomialLoss.fit(_logistic, degree=degree, interval=interval, method=method, link="logistic"),
        name="logistic loss",
    )


def poisson(degree: int = 2, interval: Interval = 2.0, method: Method = "chebyshev") -> PolynomialLoss:
    """The loss e^z - y z of Poisson regression, as a polynomial.

    For counts y; z is the logarithm of their mean.

    Parameters
    ----------
    degree : int, default=2
        Degree of the polynomial: 2, 3 or 4.
    interval : float, tuple of float or 'target', default=2.0
        Where z is expected: L for [-L, L], or a pair (low, high).
    method : {'chebyshev', 'taylor'}, default='chebyshev'
        How the polynomial is made.

    Returns
    -------
    PolynomialLoss
        The loss.

    See Also
    --------
    FunctionalRegressor : Fits it.

    Examples
    --------
    >>> from privfit.losses import poisson
    >>> poisson().link
    'exp'
    """
    return replace(
        PolynomialLoss.fit(_poisson, degree=degree, interval=interval, method=method, link="exp"), name="Poisson loss"
    )


def huber(
    threshold: float, degree: int = 2, interval: Interval = "target", method: Method = "chebyshev"
) -> PolynomialLoss:
    """The loss of Huber as a polynomial: regression that is less sensitive to outliers.

    Half the square of y - z up to the threshold, linear beyond. The Taylor expansion needs derivatives, which Huber's
    loss does not have at the threshold; it is then made of the smooth threshold^2 (sqrt(1 + ((y - z) / threshold)^2) -
    1), at the middle of the interval.

    Parameters
    ----------
    threshold : float
        Where the loss becomes linear.
    degree : int, default=2
        Degree of the polynomial: 2, 3 or 4.
    interval : float, tuple of float or 'target', default='target'
        Where z is expected; "target" is the public bounds of the target.
    method : {'chebyshev', 'taylor'}, default='chebyshev'
        How the polynomial is made.

    Returns
    -------
    PolynomialLoss
        The loss.

    See Also
    --------
    robust : The loss itself, for ERM.

    Examples
    --------
    >>> from privfit.losses import huber
    >>> huber(1.0, interval=2.0).degree
    2
    """
    if not (isinstance(threshold, int | float) and 0 < threshold < math.inf):
        raise ValueError(
            f"The Huber loss was given threshold={threshold!r}; it is a positive number in the target's units. Use the "
            "size of a usual residual."
        )
    if method != "taylor":
        loss = PolynomialLoss.fit(
            partial(_huber, threshold=float(threshold)), degree=degree, interval=interval, method=method
        )
        return replace(loss, name=f"Huber loss at {threshold:g}")
    if interval == "target":
        raise ValueError(
            "The Huber loss was given method='taylor' and interval='target'; Taylor's expansion needs a point now. "
            "Give the interval as a pair (low, high)."
        )
    low, high = PolynomialLoss.fit(_squared, interval=interval).bounds
    at = low / 2 + high / 2
    derivatives = [
        partial(_smooth_huber_derivative, at, order=order, threshold=float(threshold)) for order in range(degree + 1)
    ]
    smooth = partial(_smooth_huber, threshold=float(threshold))
    loss = PolynomialLoss.fit(smooth, degree=degree, interval=interval, method=method, at=at, derivatives=derivatives)
    return replace(loss, name=f"smooth Huber loss at {threshold:g}")


def _squared(z: Any, y: Any) -> Any:
    return (y - z) ** 2


def _logistic(z: Any, y: Any) -> Any:
    return np.logaddexp(0.0, -y * z)


def _poisson(z: Any, y: Any) -> Any:
    return np.exp(z) - y * z


def _huber(z: Any, y: Any, threshold: float) -> Any:
    size = np.abs(y - z)
    return np.where(size <= threshold, size**2 / 2, threshold * (size - threshold / 2))


def _smooth_huber(z: Any, y: Any, threshold: float) -> Any:
    return threshold**2 * (np.sqrt(1 + ((y - z) / threshold) ** 2) - 1)


def _smooth_huber_derivative(z: Any, y: Any, order: int, threshold: float) -> Any:
    """Derivatives in z of the smooth Huber loss, of order 0 to 4."""
    r = (y - z) / threshold
    root = np.sqrt(1 + r**2)
    if order == 0:
        return threshold**2 * (root - 1)
    inner = {1: -r / root, 2: 1 / root**3, 3: 3 * r / root**5, 4: 3 * (4 * r**2 - 1) / root**7}
    return threshold ** (2 - order) * inner[order]
