"""Convex losses of one linear predictor that state how steep and how curved they are: what perturbed objectives are
calibrated from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = Callable[[Any, Any], Any]

LINKS = ("identity", "logistic", "slopes")
ROUNDING = 1e-9
FINE_ROUNDING = 2.0**-49
STEP = 1e-4
_MOST_STEEP = 64
_HALVINGS = 12
_MANY_HALVINGS = 36
LEAST_JUMP = 1e-3
_TRIED = np.concatenate([np.linspace(-40.0, 40.0, 4001), np.geomspace(41.0, 1e4, 40), -np.geomspace(41.0, 1e4, 40)])


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
    """How far from zero the predictor is computed, where it is measured from elsewhere: what rounding in it is
    proportional to.
    """
    smoothness: float | None = None
    """A Lipschitz constant of the slope, for the solver of output perturbation.

    `most_curvature` stands for it where that is stated.
    """
    excess_at_zero: float | None = None
    """The most by which the loss at z = 0 exceeds its infimum, over all targets; None where unknown.

    It bounds the length of every minimum.
    """
    likely_excess: float | None = None
    """The same where it is not stated but found on a grid (`found_excess`): precision is planned for it, no bound rests
    on it alone.
    """
    least_at_target: bool = False
    """Whether the loss of every target y is least at z = y. Then `scaled` knows the excess at zero."""

    def __post_init__(self) -> None:
        for name in (
            "most_slope",
            "most_curvature",
            "taper",
            "offset",
            "smoothness",
            "excess_at_zero",
        ):  # as plain floats: calibration computes with them
            if _is_number(value := getattr(self, name)):
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
        PrivacyError
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
        self._check_on_grid(targets)

    def _tried(self, name: str, z: Floats, y: Floats) -> Floats:
        """Slopes or curvatures at these predictors and targets, if they are real and finite numbers."""
        try:
            found = np.asarray(getattr(self, name)(z, y))
            found = np.broadcast_to(found, np.broadcast_shapes(z.shape, y.shape))
        except Exception as error:  # a function of the user's own
            raise ValueError(
                f"The {self.name} has a {name} that is no function of arrays z and y, or whose result does not fit "
                f"them ({error}). Write {name}=lambda z, y: ... with numpy."
            ) from None
        if found.dtype.kind not in "fiub" or not np.isfinite(found.astype(np.float64)).all():
            raise ValueError(
                f"The {self.name} has slopes or curvatures that are no finite numbers. Write functions that are finite "
                "and real for every z."
            )
        return found.astype(np.float64)

    def _sharpest_places(self, targets: Floats) -> tuple[Floats, Floats]:
        """Places, one column for each target, where the slope rises fastest, and how fast, but for rounding."""
        low, high = self._steepest(targets, _HALVINGS)
        rise = (self._tried("slope", high, targets[None, :]) - self._tried("slope", low, targets[None, :])) / (
            high - low
        )
        return (low + high) / 2, rise - self._rounded(low, high, rise)

    def _rounded(self, low: Floats, high: Floats, rise: Floats) -> Floats:
        """What rounding in predictors and slopes can do to a rise between two predictors."""
        return np.asarray(
            (float(self.most_slope or 0.0) + rise * (np.abs(low) + np.abs(high) + self.offset))
            * FINE_ROUNDING
            / (high - low)
        )

    @property
    def jumps(self) -> bool:
        """Whether the slope jumps: rises by a large part of its bound within an interval hardly wider than rounding.

        Returns
        -------
        bool
            True where it jumps.
        """
        targets = np.array([-1.0, 0.0, 1.0])
        low, high = self._steepest(targets, _MANY_HALVINGS)
        rises = self._tried("slope", high, targets[None, :]) - self._tried("slope", low, targets[None, :])
        return bool(rises.max() > LEAST_JUMP * float(self.most_slope or 0.0))

    def _steepest(self, targets: Floats, halvings: int) -> tuple[Floats, Floats]:
        """Short intervals of predictors, one column for each target: halves of those of the grid in which the slope
        rises most, the steeper one each time.
        """
        grid = np.sort(_TRIED) * max(1.0, float(np.abs(targets).max()))
        slope = self._tried("slope", grid[:, None], targets[None, :])
        first = np.argsort(-np.diff(slope, axis=0), axis=0)[:_MOST_STEEP]
        low, high = grid[first], grid[first + 1]
        for _ in range(halvings):
            middle = (low + high) / 2
            at_low, at_middle, at_high = (self._tried("slope", z, targets[None, :]) for z in (low, middle, high))
            left = at_middle - at_low >= at_high - at_middle
            low, high = np.where(left, low, middle), np.where(left, middle, high)
        return low, high

    def _check_on_grid(self, targets: Floats) -> None:
        z, y = _TRIED[:, None] * max(1.0, float(np.abs(targets).max())), targets[None, :]
        order = np.argsort(z[:, 0])
        slope, curvature = self._tried("slope", z, y), self._tried("curvature", z, y)
        assert self.most_slope is not None
        small = ROUNDING * self.most_slope
        rise = np.diff(slope[order], axis=0) / np.diff(z[order], axis=0)
        rise = rise - self._rounded(z[order][:-1], z[order][1:], rise)
        ends = np.abs(slope[order])
        flattest = np.where(slope[order][1:] * slope[order][:-1] < 0, 0.0, np.minimum(ends[1:], ends[:-1]))
        places, steepest = self._sharpest_places(targets)
        sharp = max(float(self._tried("curvature", places, y).max()), float(steepest.max()))
        found = [
            (
                np.abs(slope).max() > self.most_slope + small,
                f"has a slope of {np.abs(slope).max():.6g} and states most_slope={self.most_slope:g}",
            ),
            (
                np.diff(slope[order], axis=0).min() < -small or curvature.min() < -small,
                "has a slope that falls somewhere, and is not convex",
            ),
            (
                self.most_curvature is not None
                and max(curvature.max(), rise.max() - small, sharp) > self.most_curvature * (1 + ROUNDING),
                f"has a curvature of {max(curvature.max(), rise.max(), sharp):.6g} and states "
                f"most_curvature={self.most_curvature}",
            ),
            (
                self.smoothness is not None and max(rise.max() - small, sharp) > self.smoothness * (1 + ROUNDING),
                f"has a slope that rises by {max(rise.max(), sharp):.6g} and states smoothness={self.smoothness}",
            ),
            (
                self.excess_at_zero is not None
                and self._least_excess(z[order], slope[order]) > self.excess_at_zero * (1 + ROUNDING),
                f"falls by more from z = 0 to its least value than its excess_at_zero={self.excess_at_zero}",
            ),
            (
                self.least_at_target and np.abs(self._tried("slope", targets, targets)).max() > small,
                "has a slope at z = y and states least_at_target=True",
            ),
            (
                self.taper is not None
                and self._bends_more_than_its_taper(curvature, np.abs(slope), rise, flattest, small),
                f"has more curvature somewhere than its taper={self.taper} times what its slope leaves",
            ),
            (
                self.one_sided and np.any((slope.min(axis=0) < -small) & (slope.max(axis=0) > small)),
                "has slopes of both signs and states one_sided=True",
            ),
            (
                self.value is not None and self._derivative_is_off(z, y, slope),
                "has a slope that is not the derivative of its value",
            ),
        ]
        for wrong, what in found:
            if wrong:
                raise ValueError(
                    f"The {self.name} {what}; privacy rests on these facts. Correct the loss or what it states."
                )

    def _bends_more_than_its_taper(
        self, curvature: Floats, size: Floats, rise: Floats, flattest: Floats, small: float
    ) -> bool:
        assert self.taper is not None
        assert self.most_slope is not None
        allowed = small * max(1.0, self.taper)
        stated = curvature - self.taper * (self.most_slope - size)
        found = rise - self.taper * (self.most_slope - flattest)
        return bool(max(stated.max(), found.max()) > allowed)

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
        z = np.sort(np.append(_TRIED, 0.0))[:, None] * max(1.0, float(np.abs(targets).max()))
        slope, width = self._tried("slope", z, targets[None, :]), np.diff(z, axis=0)
        falls = np.where(z[:-1] >= 0, np.maximum(-slope[:-1], 0.0), 0.0)
        rises = np.where(z[1:] <= 0, np.maximum(slope[1:], 0.0), 0.0)
        ends = max(float(-slope[-1].min()), float(slope[0].max()))
        if ends > ROUNDING * float(self.most_slope or 0.0):
            return math.inf
        return float(np.maximum((falls * width).sum(axis=0), (rises * width).sum(axis=0)).max())

    def _least_excess(self, z: Floats, slope: Floats) -> float:
        """A lower bound of the loss at zero above its infimum: lower sums of the slope's integral, which is monotone,
        on a sorted grid.
        """
        width = np.diff(z, axis=0)
        above, below = (z[:-1] >= 0), (z[1:] <= 0)
        falls = np.where(above, np.maximum(-slope[1:], 0.0), 0.0)  # towards larger z
        rises = np.where(below, np.maximum(slope[:-1], 0.0), 0.0)  # towards smaller z
        return float(np.maximum((falls * width).sum(axis=0), (rises * width).sum(axis=0)).max())

    def _derivative_is_off(self, z: Floats, y: Floats, slope: Floats) -> bool:
        assert self.value is not None
        assert self.most_slope is not None
        near = np.abs(z[:, 0]) <= 41 * max(1.0, float(np.abs(y).max()))
        z, slope = z[near], slope[near]
        step = STEP * max(1.0, float(np.abs(y).max()))
        rise = (np.asarray(self.value(z + step, y)) - np.asarray(self.value(z - step, y))) / (2 * step)
        jump = np.abs(
            np.broadcast_to(self.slope(z + step, y), slope.shape)
            - np.broadcast_to(self.slope(z - step, y), slope.shape)
        )
        return bool((np.abs(rise - slope) > 1e-3 * self.most_slope + jump).any())

    @property
    def sharpest(self) -> float:
        """Lipschitz constant of the slope: as stated, or as found on a grid where none is.

        Rounding errors of the predictor are multiplied by it.

        Returns
        -------
        float
            The constant.
        """
        stated = self.smoothness if self.most_curvature is None else self.most_curvature
        if stated is not None:
            return stated
        targets = np.array([-1.0, 0.0, 1.0])
        places, rise = self._sharpest_places(targets)
        every = self._tried("curvature", np.sort(_TRIED)[:, None], targets[None, :])
        return float(max(every.max(), self._tried("curvature", places, targets[None, :]).max(), rise.max()))

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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def is_positive(value: object) -> bool:
    """Whether this is a finite number above zero."""
    return _is_number(value) and bool(0 < value < math.inf)  # type: ignore[operator]
