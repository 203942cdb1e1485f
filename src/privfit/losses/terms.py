"""Terms of a loss, each a function of a linear predictor and the target, and their Taylor series."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privfit.losses.expansion import rescaled, taylor_series

Floats = NDArray[np.float64]
Method = Literal["chebyshev", "taylor"]


@dataclass(frozen=True)
class Part:
    """One term of a loss: a function of shift + slope * z, expanded at its own point.

    It is f_l(g_l) in the functional-mechanism paper.

    Parameters
    ----------
    f : callable
        A function of one array.
    shift : float or callable, default=0.0
        A number, or a function of the target, in g = shift + slope * z.
    slope : float or callable, default=1.0
        A number, or a function of the target, in g = shift + slope * z.
    at : float, default=0.0
        The point z_l of the Taylor expansion, as a value of g.
    method : {'taylor', 'chebyshev'}, default='taylor'
        "taylor" as in the paper, or "chebyshev", which follows f over the loss's whole interval of z.
    derivatives : tuple of float or None, default=None
        Values of f and its derivatives at `at`, one for every degree from 0; None finds them numerically.

    See Also
    --------
    PolynomialLoss.from_parts : Makes a loss of several parts.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> softplus = pf.Part(lambda g: np.logaddexp(0, g))
    >>> line = pf.Part(lambda g: g, shift=0.0, slope=lambda y: -(y + 1) / 2)
    >>> pf.PolynomialLoss.from_parts([softplus, line], link="logistic").coefficients([1.0]).round(3).ravel().tolist()
    [0.693, -0.5, 0.125]
    """

    f: Callable[[Any], Any]
    shift: float | Callable[[Any], Any] = 0.0
    slope: float | Callable[[Any], Any] = 1.0
    at: float = 0.0
    method: Method = "taylor"
    derivatives: tuple[float, ...] | None = None

    def value(self, z: Floats, y: Floats) -> Any:
        """Evaluate f(shift + slope z).

        Parameters
        ----------
        z : ndarray
            Linear predictors.
        y : ndarray
            Targets.

        Returns
        -------
        ndarray
            The values.
        """
        return self.f(_at(self.shift, y) + _at(self.slope, y) * z)

    def taylor(self, degree: int, y: Floats, middle: float, half: float) -> Floats:
        """Expand the term in powers of (z - middle) / half.

        Parameters
        ----------
        degree : int
            The highest power.
        y : ndarray
            Targets.
        middle : float
            Origin of z.
        half : float
            Unit of z.

        Returns
        -------
        ndarray of shape (degree + 1, n_targets)
            The coefficients, one column per target.
        """
        if self.derivatives is None:
            series = taylor_series(lambda z, _: self.f(z), degree, np.zeros(1), self.at, half)
        else:
            series = np.array([[value / math.factorial(k)] for k, value in enumerate(self.derivatives)])
        shift, slope = _at(self.shift, y), _at(self.slope, y)
        return rescaled(series, np.broadcast_to(shift + slope * middle - self.at, y.shape), slope * half)


@dataclass(frozen=True)
class Whole:
    """A loss f(z, y) that is expanded as it is.

    `derivatives` are functions of y: f and its derivatives in z at `at`.
    """

    f: Callable[[Any, Any], Any]
    at: float | None = None
    method: Method = "chebyshev"
    derivatives: tuple[Callable[[Any], Any], ...] | None = None

    def value(self, z: Floats, y: Floats) -> Any:
        """f(z, y)."""
        return self.f(z, y)

    def taylor(self, degree: int, y: Floats, middle: float, half: float) -> Floats:
        """The expansion as coefficients of powers of  (z - middle) / half,  one column per target."""
        at = middle if self.at is None else self.at
        if self.derivatives is None:
            series = taylor_series(self.f, degree, y, at, half)
        else:
            series = np.array(
                [np.broadcast_to(d(y), y.shape) / math.factorial(k) for k, d in enumerate(self.derivatives)]
            )
        return rescaled(series, middle - at, half)


def _at(value: float | Callable[[Any], Any], y: Floats) -> Any:
    return value(y) if callable(value) else value


# -- checks ----------------------------------------------------------------------------------------


def is_number(value: object) -> bool:
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def check_part(part: Any, degree: int) -> None:
    if not isinstance(part, Whole | Part):
        raise ValueError(
            f"A loss was given a part of type {type(part).__name__}; parts are pf.Part(f, shift, slope, at). Write one."
        )
    if not callable(part.f):
        raise ValueError(
            f"A loss was given f={part.f!r}; it is a function of arrays. Write, for example, lambda z, y: (y - z) ** 2."
        )
    if part.method not in get_args(Method):
        raise ValueError(
            f"A loss was given method={part.method!r}; it is 'chebyshev' or 'taylor'. Use 'chebyshev' if in doubt."
        )
    if part.at is not None and not is_number(part.at):
        raise ValueError(
            f"A loss was given at={part.at!r}; Taylor's point is a finite number. Leave it out for the middle of the "
            "interval."
        )
    if part.derivatives is not None and len(part.derivatives) != degree + 1:
        raise ValueError(
            f"A loss of degree {degree} was given {len(part.derivatives)} derivatives; it needs {degree + 1}, "
            "beginning with the function itself. "
            "List them, or leave them out to have them found."
        )
