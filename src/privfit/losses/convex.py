"""Convex losses of one linear predictor that state their Lipschitz constant and their smoothness: what perturbed
objectives are calibrated from. The logistic ones stand here, others in files of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.losses.checks import check_on_grid, found_excess, found_smoothness, is_positive, jumps

Floats = NDArray[np.float64]
Function = Callable[[Any, Any], Any]
Marked = TypeVar("Marked")
LINKS = ("identity", "logistic", "slopes")


@dataclass(frozen=True)
class ConvexLoss:
    """A convex loss of the linear predictor z and the target y, with its derivatives in z and bounds of both.

    For classes the target is -1 or 1. For a number, z and y are in its own units.

    Parameters
    ----------
    slope : callable
        First derivative in z, a function of arrays z and y.
    curvature : callable
        Second derivative in z, a function of arrays z and y. Where it jumps, either side will do.
    most_slope : float or None, default=None
        Lipschitz constant: the largest |slope| for any z and any target. The noise is proportional to it.
    most_curvature : float or None, default=None
        The largest curvature. Objective perturbation needs it; output perturbation does not.
    taper : float or None, default=None
        A number t with curvature <= t (most_slope - |slope|) everywhere, if there is one: the curvature is then
        self-bounded, and the log-determinant term costs nothing once the ridge is large enough. The logistic loss has
        1.
    value : callable or None, default=None
        The loss itself. Only used to check that `slope` is its derivative.
    one_sided : bool, default=False
        Whether the slope has one sign for every single target, as losses of the margin y z have.
    link : {'identity', 'logistic', 'slopes'}, default='identity'
        What predictions are: "identity" is z; "logistic" is the probability 1 / (1 + e^-z); "slopes" is the probability
        at which the expected loss is flat, slope(z, -1) / (slope(z, -1) - slope(z, 1)).
    name : str, default='loss'
        Name of the loss in reports and errors.
    offset : float, default=0.0
        How far from zero the predictor is computed, where it is measured from elsewhere: its rounding error is
        proportional to this.
    smoothness : float or None, default=None
        Lipschitz constant of the slope, for the solver of output perturbation; `most_curvature` takes its place where
        that is stated.
    excess_at_zero : float or None, default=None
        Largest excess of the loss at z = 0 above its infimum, over all targets; None where unknown. It bounds the norm
        of every minimum.
    likely_excess : float or None, default=None
        The same as found on a grid (`found_excess`) where it is not stated: precision is planned for it, and no bound
        rests on it alone.
    least_at_target : bool, default=False
        Whether the loss of every target y is smallest at z = y. Then `scaled` knows the excess at zero.

    See Also
    --------
    ERM : Fits any such loss.
    privfit.losses.robust : Huber's loss, ready made.
    PolynomialLoss : A loss that is fitted by sums over rows.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> loss = pf.ConvexLoss(
    ...     slope=lambda z, y: np.tanh(z - y),
    ...     curvature=lambda z, y: np.cosh(np.clip(z - y, -300, 300)) ** -2,
    ...     most_slope=1.0,
    ...     most_curvature=1.0,
    ...     value=lambda z, y: np.logaddexp(z - y, y - z),
    ...     name="log-cosh loss",
    ... )
    >>> loss.check(np.array([-1.0, 0.0, 1.0]))  # nothing contradicts what it states
    """

    slope: Function
    curvature: Function
    most_slope: float | None = None
    most_curvature: float | None = None
    taper: float | None = None
    value: Function | None = None
    one_sided: bool = False
    link: str = "identity"
    name: str = "loss"
    offset: float = 0.0
    smoothness: float | None = None
    excess_at_zero: float | None = None
    likely_excess: float | None = None
    least_at_target: bool = False
    own_derivatives: tuple[bool, bool] = field(init=False, repr=False, compare=False)  # others are guarded

    def __post_init__(self) -> None:
        object.__setattr__(self, "own_derivatives", (is_ready_made(self.slope), is_ready_made(self.curvature)))
        for name in ("most_slope", "most_curvature", "taper", "offset", "smoothness", "excess_at_zero"):
            if isinstance(value := getattr(self, name), Real) and not isinstance(value, bool):  # as plain floats
                try:
                    object.__setattr__(self, name, float(value))
                except OverflowError:
                    object.__setattr__(self, name, math.inf)

    def check(self, targets: Floats) -> None:
        """Refuse a loss whose functions contradict what it states, on a grid of predictors.

        Parameters
        ----------
        targets : ndarray
            The targets to check it for.

        Raises
        ------
        ValueError
            If a derivative is not finite, exceeds its bound, or is not the derivative of `value`.
        """
        if self.link not in LINKS:
            raise ValueError(
                f"The {self.name} was given link={self.link!r}; a link is one of {LINKS}. Use 'identity' if in doubt."
            )
        if not is_positive(self.most_slope):
            raise ValueError(
                f"The {self.name} states most_slope={self.most_slope!r}; noise is calibrated from the largest slope "
                "that any row can have, a positive number. "
                "State it: ConvexLoss(..., most_slope=1.0). A loss that grows like a square has none."
            )
        for name in ("most_curvature", "taper", "smoothness", "excess_at_zero"):
            if getattr(self, name) is not None and not is_positive(getattr(self, name)):
                raise ValueError(
                    f"The {self.name} states {name}={getattr(self, name)!r}; it is a positive number. State one, or "
                    "leave it out."
                )
        check_on_grid(self, targets)

    def found_smoothness(self) -> float:
        """Return a Lipschitz constant of the slope as a grid shows it: no bound.

        Returns
        -------
        float
            The constant.
        """
        return found_smoothness(self)

    @property
    def sharpest(self) -> float:
        """Lipschitz constant of the slope: as stated, or as found on a grid where none is.

        Returns
        -------
        float
            The constant.
        """
        stated = self.smoothness if self.most_curvature is None else self.most_curvature
        return self.found_smoothness() if stated is None else stated

    @property
    def jumps(self) -> bool:
        """Whether the slope jumps, as far as a grid shows: then no gradient certifies a minimum.

        Returns
        -------
        bool
            True where it jumps.
        """
        return jumps(self)

    def found_excess(self, targets: Floats) -> float:
        """Bound the loss at zero above its infimum for these targets, by upper sums of the slope on a grid.

        Parameters
        ----------
        targets : ndarray
            The targets.

        Returns
        -------
        float
            The bound; infinite where the loss still falls at the end of the grid.
        """
        return found_excess(self, targets)

    def scaled(self, middle: float, half: float) -> ConvexLoss:
        """Return the same loss of a predictor and a target measured from `middle` in units of `half`.

        Parameters
        ----------
        middle : float
            The new origin.
        half : float
            The new unit.

        Returns
        -------
        ConvexLoss
            The loss on the new scale.
        """
        return ConvexLoss(
            slope=lambda z, y: half * self.slope(middle + half * z, middle + half * y),
            curvature=lambda z, y: half**2 * self.curvature(middle + half * z, middle + half * y),
            most_slope=None if self.most_slope is None else half * self.most_slope,
            most_curvature=None if self.most_curvature is None else half**2 * self.most_curvature,
            taper=None if self.taper is None else half * self.taper,
            one_sided=self.one_sided,
            link=self.link,
            name=self.name,
            offset=abs(middle) / half,
            smoothness=None if self.smoothness is None else half**2 * self.smoothness,
            excess_at_zero=half * self.most_slope if self.least_at_target and self.most_slope is not None else None,
            least_at_target=self.least_at_target,
        )

    def log_odds(self, z: Floats) -> Floats:
        """Return the log-odds of the second class at these predictors, by the link of the loss.

        Where the expected loss of a row is flat, the probability of the second class times its slope is minus that of
        the first class times its slope.

        Parameters
        ----------
        z : ndarray
            Linear predictors.

        Returns
        -------
        ndarray
            The log-odds.
        """
        if self.link == "logistic":
            return z
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.slope(z, -1.0)) - np.log(-np.asarray(self.slope(z, 1.0))), dtype=np.float64)

    def __repr__(self) -> str:
        return (
            f"ConvexLoss({self.name}, most_slope={self.most_slope}, most_curvature={self.most_curvature}, "
            f"taper={self.taper})"
        )


_OWN: list[object] = []  # compared by identity: what wraps one of these has its name and module, and is none of them


def ready_made(function: Marked) -> Marked:
    """Mark a slope or a curvature of privfit's own, which never fails and keeps to its bounds."""
    _OWN.append(function)
    return function


def is_ready_made(function: Function) -> bool:
    """Whether a slope or curvature is one of privfit's own; others are called with a guard.

    Parameters
    ----------
    function : callable
        A slope or a curvature.

    Returns
    -------
    bool
        True for a function of privfit.

    See Also
    --------
    ConvexLoss : What slopes and curvatures belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.losses import LOGISTIC, is_ready_made
    >>> is_ready_made(LOGISTIC.slope), is_ready_made(lambda z, y: z - y)
    (True, False)
    """
    own = getattr(function, "__func__", function)
    return any(own is ours for ours in _OWN)


def sigmoid(z: Any) -> Any:
    """1 / (1 + e^-z), several times faster than a general one and as exact where slopes need it."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-np.asarray(z, dtype=np.float64)))


@ready_made
@np.errstate(all="ignore")
def _logistic_slope(z: Any, y: Any) -> Any:
    return -y * sigmoid(-y * z)


@ready_made
@np.errstate(all="ignore")
def _logistic_curvature(z: Any, y: Any) -> Any:
    return sigmoid(z) * sigmoid(-z)


def _logistic_value(z: Any, y: Any) -> Any:
    return np.logaddexp(0.0, -y * z)


LOGISTIC = ConvexLoss(
    slope=_logistic_slope,
    curvature=_logistic_curvature,
    most_slope=1.0,
    most_curvature=0.25,
    taper=1.0,
    value=_logistic_value,
    one_sided=True,
    link="logistic",
    name="logistic loss",
    excess_at_zero=math.log(2.0),
)
"""log(1 + e^(-y z)). Its curvature is p (1 - p) where its slope is p: never more than what the slope leaves of 1."""


@dataclass(frozen=True)
class _TemperedLogistic:
    """Slopes are logistic above the margin `at`, where their size is `turn`, and approach the cap below it."""

    cap: float
    taper: float
    turn: float
    at: float

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        margin = y * z
        size = 1.0 / (1.0 + np.exp(np.maximum(margin, self.at)))  # few passes over rows: most of a fit's time is here
        size += (self.cap - self.turn) * (1 - np.exp(self.taper * np.minimum(margin - self.at, 0.0)))
        return -y * np.minimum(size, self.cap)

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        margin = y * z
        logistic = 1.0 / (1.0 + np.exp(np.maximum(margin, self.at)))
        beyond = self.taper * (self.cap - self.turn) * np.exp(self.taper * np.minimum(margin - self.at, 0.0))
        return np.where(margin >= self.at, logistic * (1 - logistic), beyond)


def tempered_logistic(cap: float, taper: float) -> ConvexLoss:
    """The logistic loss with slopes that stay below `cap`.

    It has the slopes of the logistic loss while these are allowed, then approaches the cap. With p the size of the
    slope, the curvature is the smaller of p (1 - p) and taper (cap - p): it is self-bounded, so that it costs nothing
    when the noise is calibrated. The smaller the cap, the smaller the noise; rows far on the wrong side then have
    smaller gradients than in logistic regression. Probabilities follow from the slopes.

    Parameters
    ----------
    cap : float
        Largest slope.
    taper : float
        How quickly the curvature falls towards the cap.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    ObjectivePerturbation : Uses it by default.

    Examples
    --------
    >>> from privfit.losses import tempered_logistic
    >>> tempered_logistic(cap=0.5, taper=1.0).most_slope
    0.5
    """
    if not (0 < cap <= 1 and taper >= 1):
        raise ValueError(
            f"The tempered logistic loss was given cap={cap!r} and taper={taper!r}; cap is above 0 and at most 1, "
            "taper at least 1. Use 1 and 1 for the logistic loss."
        )
    if cap >= 1 - 1e-12:
        return LOGISTIC
    half = (1 + taper) / 2  # p (1 - p) = taper (cap - p) at the turn
    turn = taper * cap / (half + math.sqrt(half**2 - taper * cap))
    own = _TemperedLogistic(float(cap), float(taper), turn, math.log((1 - turn) / turn))
    return ConvexLoss(
        own.slope,
        own.curvature,
        own.cap,
        0.25 if turn >= 0.5 else turn * (1 - turn),
        own.taper,
        one_sided=True,
        link="slopes",
        name=f"logistic loss with slopes up to {cap:.3g}",
        excess_at_zero=math.log(2.0),  # its slopes are nowhere steeper than the logistic ones
    )
