"""Any loss of one linear predictor, replaced by a polynomial of low degree: Algorithm 2 of the functional-mechanism
paper, and more.

A row costs f(z, y), where z = x'w + b and y is its target. The functional mechanism needs the cost as a polynomial in
z, because then a table enters only by sums over its rows. The paper expands every part of f by Taylor at a point; a
Chebyshev series follows f on a whole interval instead. Only the public function f and the public bounds of y are used
here: no row is ever seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from privfit.losses.expansion import chebyshev_series, rescaled, values
from privfit.losses.quadratic import QuadraticLoss
from privfit.losses.terms import Method, Part, Whole, check_part, is_number

Floats = NDArray[np.float64]
Link = Literal["identity", "exp", "logistic"]
Interval = float | tuple[float, float] | Literal["target"]

LINKS: tuple[str, ...] = get_args(Link)
DEGREES = (2, 3, 4)
"""Higher degrees release more monomials than any table in use has budget for, and have no bound here."""
ERROR_GRID = 2001
"""Points at which the approximation error is evaluated: more take longer. Not measured."""
SAME_COEFFICIENT = 1e-7
"""Relative difference below which coefficients count as equal: far above rounding. It decides which of two private
releases is made."""


@dataclass(frozen=True, repr=False)
class PolynomialLoss:
    """The loss f(z, y) of a row, and the polynomial in z in its place.

    Make one with `fit`, `from_parts` or a ready-made function of `pf.losses`. y is the target in the user's units, or
    -1 and 1 for the first and the second of two classes. The functions are public: they are called with points of the
    public bounds, never with rows.

    Parameters
    ----------
    parts : tuple of Part
        The terms of the loss.
    degree : int, default=2
        Degree of the polynomial: 2, 3 or 4.
    interval : float, tuple of float or 'target', default=4.0
        Where z is expected: L for [-L, L], a pair (low, high), or "target" for the public bounds of the target.
    link : {'identity', 'exp', 'logistic'}, default='identity'
        What predictions are: z, e^z, or 1 / (1 + e^-z).
    name : str, default='loss'
        Name of the loss in reports and errors.

    See Also
    --------
    FunctionalRegressor : Fits such a loss to numbers.
    FunctionalClassifier : Fits such a loss to two classes.
    ConvexLoss : A loss that is perturbed instead of expanded.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> loss = pf.PolynomialLoss.fit(lambda z, y: np.cosh(z - y), interval=1.0)
    >>> bool(loss.approximation_error([0.0]) < 0.01)
    True
    """

    parts: tuple[Whole | Part, ...]
    degree: int = 2
    interval: Interval = 4.0
    link: Link = "identity"
    name: str = "loss"

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or self.degree not in DEGREES:
            raise ValueError(
                f"A loss was given degree={self.degree!r}; a degree is 2, 3 or 4. Use 2 unless there are few columns "
                "and many rows."
            )
        if self.link not in LINKS:
            raise ValueError(
                f"A loss was given link={self.link!r}; a link is one of {LINKS}. Use 'identity' and transform "
                "predictions yourself."
            )
        object.__setattr__(self, "interval", _checked_interval(self.interval))
        if not self.parts:
            raise ValueError("A loss was given no parts, and there is nothing to minimise. Give at least one Part.")
        for part in self.parts:
            check_part(part, self.degree)

    @classmethod
    def fit(
        cls,
        f: Callable[[Any, Any], Any],
        *,
        degree: int = 2,
        interval: Interval = 4.0,
        method: Method = "chebyshev",
        at: float | None = None,
        derivatives: Sequence[Callable[[Any], Any]] | None = None,
        link: Link = "identity",
    ) -> PolynomialLoss:
        """Make a polynomial for f(z, y), a function that takes numpy arrays of either and broadcasts.

        Parameters
        ----------
        f : callable
            The loss of a row. Constants that do not depend on z do not matter.
        degree : int, default=2
            2, 3 or 4. The number of released values grows like columns^degree.
        interval : float, tuple of float or 'target', default=4.0
            Where z is expected: L for [-L, L], a pair (low, high), or "target" for the public bounds of the target.
        method : {'chebyshev', 'taylor'}, default='chebyshev'
            "chebyshev" truncates the Chebyshev series on the interval, close to the best uniform approximation there;
            "taylor" expands at a point.
        at : float or None, default=None
            Point of the Taylor expansion; None is the middle of the interval.
        derivatives : sequence of callable or None, default=None
            For "taylor", functions of y: f and its derivatives in z at that point, degree + 1 of them; None finds them
            numerically.
        link : {'identity', 'exp', 'logistic'}, default='identity'
            What predictions are: z, e^z, or 1 / (1 + e^-z).

        Returns
        -------
        PolynomialLoss
            The loss with its polynomial.
        """
        name = getattr(f, "__name__", type(f).__name__)
        return cls(
            (Whole(f, at, method, None if derivatives is None else tuple(derivatives)),), degree, interval, link, name
        )

    @classmethod
    def from_parts(
        cls, parts: Sequence[Part], *, degree: int = 2, interval: Interval = 4.0, link: Link = "identity"
    ) -> PolynomialLoss:
        """Make a loss of terms f_l(shift_l + slope_l z), each expanded in its own way (Algorithm 2 of the paper).

        Parameters
        ----------
        parts : sequence of Part
            The terms, which are summed.
        degree : int, default=2
            Degree of the polynomial: 2, 3 or 4.
        interval : float, tuple of float or 'target', default=4.0
            Where z is expected. A term that is expanded by Chebyshev follows its function there, and the reported error
            is that of the whole sum there.
        link : {'identity', 'exp', 'logistic'}, default='identity'
            What predictions are: z, e^z, or 1 / (1 + e^-z).

        Returns
        -------
        PolynomialLoss
            The loss with its polynomial.
        """
        return cls(tuple(parts), degree, interval, link, "sum of parts")

    # -- the interval ------------------------------------------------------------------------------

    def on_target(self, low: float, high: float) -> PolynomialLoss:
        """Return the same loss with its interval settled, for a target with these bounds.

        Parameters
        ----------
        low : float
            Lower bound of the target.
        high : float
            Upper bound of the target.

        Returns
        -------
        PolynomialLoss
            The loss with a numeric interval.
        """
        return replace(self, interval=(low, high)) if self.interval == "target" else self

    @property
    def bounds(self) -> tuple[float, float]:
        """Ends of the interval.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        if isinstance(self.interval, tuple):
            return self.interval
        if self.interval == "target":
            raise ValueError(
                "A loss was given interval='target', and its bounds depend on the target's. Write loss.on_target(low, "
                "high) first, or give a pair."
            )
        return -self.interval, self.interval

    @property
    def reach(self) -> float:
        """Largest |z| of the interval.

        Returns
        -------
        float
            The larger end, in absolute value.
        """
        return max(abs(end) for end in self.bounds)

    # -- the polynomial ----------------------------------------------------------------------------

    def coefficients(self, y: Any, middle: float = 0.0, half: float = 1.0) -> Floats:
        """Return c_0(y), ..., c_degree(y) with f(z, y) close to the sum of c_j(y) ((z - middle) / half)^j.

        Parameters
        ----------
        y : array-like
            The targets.
        middle : float, default=0.0
            Origin of z.
        half : float, default=1.0
            Unit of z.

        Returns
        -------
        ndarray of shape (degree + 1, n_targets)
            One column per target.
        """
        targets = np.atleast_1d(np.asarray(y, dtype=np.float64))
        low, high = self.bounds
        centre, radius = low / 2 + high / 2, high / 2 - low / 2
        total = np.zeros((self.degree + 1, len(targets)))
        for part in self.parts:
            if part.method == "taylor":
                total += part.taylor(self.degree, targets, centre, radius)
            else:
                total += chebyshev_series(part.value, self.degree, targets, centre, radius)
        if not np.isfinite(total).all():
            raise ValueError(
                f"The {self.name} was given on [{low:g}, {high:g}], where it or its expansion is not a finite number "
                "for some target; a polynomial needs finite "
                "values. Choose an interval, or bounds of the target, on which it is finite."
            )
        return rescaled(total, (middle - centre) / radius, half / radius)

    def approximation_error(self, y: Any) -> float:
        """Return the largest |f - polynomial| for z in the interval and these targets, on a grid of 2,001 values of z.

        A fit that keeps z in the interval for every row costs a row at most twice this much more than the best such fit
        (Lemma 3 of the paper).

        Parameters
        ----------
        y : array-like
            The targets.

        Returns
        -------
        float
            The largest distance.
        """
        targets = np.atleast_1d(np.asarray(y, dtype=np.float64))
        low, high = self.bounds
        centre, radius = low / 2 + high / 2, high / 2 - low / 2
        scaled = np.linspace(-1.0, 1.0, ERROR_GRID)
        coefficients = self.coefficients(targets, centre, radius)
        true = sum(values(part.value, centre + radius * scaled, targets) for part in self.parts)
        with np.errstate(invalid="ignore"):
            error = float(np.abs(true - polyval(scaled, coefficients).T).max())
        if not math.isfinite(error):
            return math.inf
        return error if error > 1e-12 * float(np.abs(true).max()) else 0.0

    def as_quadratic(self, t: Floats, y: Floats) -> QuadraticLoss | None:
        """Return the same loss as a QuadraticLoss in the scaled target t, if it is one.

        It is one if the coefficient of z^2 does not depend on the target and that of z is linear in it. Moments of
        degree two then suffice, and their noise is far smaller.

        Parameters
        ----------
        t : ndarray
            Points of [-1, 1].
        y : ndarray
            The targets that they stand for.

        Returns
        -------
        QuadraticLoss or None
            The quadratic; None if there is none.
        """
        reach = self.reach
        _, first, second, *others = self.coefficients(y, 0.0, reach)
        size = SAME_COEFFICIENT * max(float(np.abs(first).max()), float(np.abs(second).max()))
        middle, tilt = np.linalg.lstsq(np.column_stack([np.ones(len(t)), t]), first, rcond=None)[0]
        if (
            np.ptp(second) > size
            or np.abs(middle + tilt * t - first).max() > size
            or np.abs(others).max(initial=0.0) > size
        ):
            return None
        offset = -float(middle) / reach if abs(middle) > size else 0.0
        return QuadraticLoss(curvature=float(second.mean()) / reach**2, slope=-float(tilt) / reach, offset=offset)

    def __repr__(self) -> str:
        methods = sorted({part.method for part in self.parts})
        return (
            f"PolynomialLoss({self.name}, degree={self.degree}, interval={self.interval}, {' and '.join(methods)}, "
            f"link={self.link!r})"
        )


def _checked_interval(interval: Any) -> Interval:
    if isinstance(interval, str) and interval == "target":
        return "target"
    if is_number(interval) and interval > 0:
        return float(interval)
    if (
        isinstance(interval, tuple | list)
        and len(interval) == 2
        and all(map(is_number, interval))
        and interval[0] < interval[1]
    ):
        return float(interval[0]), float(interval[1])
    raise ValueError(
        f"A loss was given interval={interval!r}; an interval is a positive number L for [-L, L], a pair (low, high), "
        "or 'target'. "
        "Write where you expect the linear predictor, for example 4.0."
    )
