"""Whether a convex loss keeps to what it states: slopes and curvatures on a grid of predictors, and what they show of
constants that are not stated.

Privacy rests on stated constants, so that a loss of a user's own is checked once, before the charge. A grid can refute
a bound and not prove it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from privfit.losses.convex import ConvexLoss

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Derivatives may exceed what is stated by this share: rounding in the user's functions is not refused."""
FINE_ROUNDING = 2.0**-49
"""Sixteen units in the last place of predictors and slopes, beside differences over short intervals."""
STEP = 1e-4
"""Differences of values over this step are compared with slopes."""
CENTRAL = 41
"""Values are compared with slopes for predictors up to this size: beyond, values are large and differences rounding."""
STEEP_INTERVALS = 64
"""So many intervals of the grid, those in which the slope rises most, are halved to find where it rises fastest."""
HALVINGS, MANY_HALVINGS = 12, 36
"""How often: for a largest curvature, and for a jump. More would find rounding."""
LEAST_JUMP = 1e-3
"""A slope that rises by this share of its bound within an interval halved 36 times jumps: no gradient certifies."""
TRIED = np.concatenate([np.linspace(-40.0, 40.0, 4001), np.geomspace(41.0, 1e4, 40), -np.geomspace(41.0, 1e4, 40)])
"""Predictors, in units of the largest target: densely where usual losses curve, sparsely far beyond."""
UNIT_TARGETS = np.array([-1.0, 0.0, 1.0])
"""Targets at which stated constants are compared with what the loss does: both ends and the middle of the bounds."""


def check_on_grid(loss: ConvexLoss, targets: Floats) -> None:
    """Refuse a loss whose functions contradict what it states, for these targets."""
    z, y = _grid(targets)[:, None], targets[None, :]
    slope, curvature = tried(loss, "slope", z, y), tried(loss, "curvature", z, y)
    for wrong in (*_of_derivatives(loss, z, y, slope, curvature), *_of_bounds(loss, z, targets, slope, curvature)):
        if wrong:
            raise ValueError(
                f"The {loss.name} {wrong}; privacy rests on these facts. Correct the loss or what it states."
            )


def _grid(targets: Floats) -> Floats:
    return np.sort(TRIED) * max(1.0, float(np.abs(targets).max()))


def tried(loss: ConvexLoss, name: str, z: Floats, y: Floats) -> Floats:
    """Slopes or curvatures at these predictors and targets, if they are real and finite numbers."""
    try:
        found = np.asarray(getattr(loss, name)(z, y))
        found = np.broadcast_to(found, np.broadcast_shapes(z.shape, y.shape))
    except Exception as error:  # a function of the user's own
        raise ValueError(
            f"The {loss.name} has a {name} that is no function of arrays z and y, or whose result does not fit "
            f"them ({error}). Write {name}=lambda z, y: ... with numpy."
        ) from None
    if found.dtype.kind not in "fiub" or not np.isfinite(found.astype(np.float64)).all():
        raise ValueError(
            f"The {loss.name} has slopes or curvatures that are no finite numbers. Write functions that are finite "
            "and real for every z."
        )
    return found.astype(np.float64)


def _of_derivatives(loss: ConvexLoss, z: Floats, y: Floats, slope: Floats, curvature: Floats) -> list[str]:
    """What is wrong with the signs of derivatives, and with slopes beside the value; empty where nothing is."""
    assert loss.most_slope is not None
    small, largest = ROUNDING * loss.most_slope, np.abs(slope).max()
    off = loss.value is not None and _derivative_is_off(loss, z, y, slope)
    at_target = loss.least_at_target and np.abs(tried(loss, "slope", y[0], y[0])).max() > small
    both_signs = loss.one_sided and np.any((slope.min(axis=0) < -small) & (slope.max(axis=0) > small))
    falls = np.diff(slope, axis=0).min() < -small or curvature.min() < -small
    return [
        f"has a slope of {largest:.6g} and states most_slope={loss.most_slope:g}"
        * bool(largest > loss.most_slope + small),
        "has a slope that falls somewhere, and is not convex" * bool(falls),
        "has a slope at z = y and states least_at_target=True" * bool(at_target),
        "has slopes of both signs and states one_sided=True" * bool(both_signs),
        "has a slope that is not the derivative of its value" * bool(off),
    ]


def _of_bounds(loss: ConvexLoss, z: Floats, targets: Floats, slope: Floats, curvature: Floats) -> list[str]:
    """Which stated bounds of curvature, smoothness and excess are too small; empty where none is."""
    assert loss.most_slope is not None
    small = ROUNDING * loss.most_slope
    rise = np.diff(slope, axis=0) / np.diff(z, axis=0)
    rise = rise - _rounding(loss, z[:-1], z[1:], rise)
    places, steepest = _fastest_rises(loss, targets)
    sharp = max(float(tried(loss, "curvature", places, targets[None, :]).max()), float(steepest.max()))
    largest, fastest = max(curvature.max(), rise.max(), sharp), max(rise.max() - small, sharp)
    bounds = [
        (
            loss.most_curvature,
            max(curvature.max(), fastest),
            f"has a curvature of {largest:.6g} and states most_curvature={loss.most_curvature}",
        ),
        (
            loss.smoothness,
            fastest,
            f"has a slope that rises by {max(rise.max(), sharp):.6g} and states smoothness={loss.smoothness}",
        ),
        (
            loss.excess_at_zero,
            _least_excess(z, slope),
            f"falls by more from z = 0 to its least value than its excess_at_zero={loss.excess_at_zero}",
        ),
    ]
    wrong = [told for stated, found, told in bounds if stated is not None and found > stated * (1 + ROUNDING)]
    if loss.taper is not None and _exceeds_taper(loss, slope, curvature, rise):
        wrong.append(f"has more curvature somewhere than its taper={loss.taper} times what its slope leaves")
    return wrong


def _exceeds_taper(loss: ConvexLoss, slope: Floats, curvature: Floats, rise: Floats) -> bool:
    """Whether curvature, as stated or as the slope rises, exceeds the self-bound t (most_slope - |slope|)."""
    assert loss.taper is not None
    assert loss.most_slope is not None
    size = np.abs(slope)
    least_size = np.where(slope[1:] * slope[:-1] < 0, 0.0, np.minimum(size[1:], size[:-1]))
    allowed = ROUNDING * loss.most_slope * max(1.0, loss.taper)
    stated = curvature - loss.taper * (loss.most_slope - size)
    found = rise - loss.taper * (loss.most_slope - least_size)
    return bool(max(stated.max(), found.max()) > allowed)


def _derivative_is_off(loss: ConvexLoss, z: Floats, y: Floats, slope: Floats) -> bool:
    assert loss.value is not None
    assert loss.most_slope is not None
    unit = max(1.0, float(np.abs(y).max()))
    near = np.abs(z[:, 0]) <= CENTRAL * unit
    z, slope, step = z[near], slope[near], STEP * unit
    rise = (np.asarray(loss.value(z + step, y)) - np.asarray(loss.value(z - step, y))) / (2 * step)
    jump = np.abs(
        np.broadcast_to(loss.slope(z + step, y), slope.shape) - np.broadcast_to(loss.slope(z - step, y), slope.shape)
    )
    return bool((np.abs(rise - slope) > 1e-3 * loss.most_slope + jump).any())


# -- where the slope rises fastest -----------------------------------------------------------------


def _steepest_intervals(loss: ConvexLoss, targets: Floats, halvings: int) -> tuple[Floats, Floats]:
    """Short intervals of predictors, one column for each target: halves of those of the grid in which the slope rises
    most, the steeper one each time.
    """
    grid = _grid(targets)
    slope = tried(loss, "slope", grid[:, None], targets[None, :])
    first = np.argsort(-np.diff(slope, axis=0), axis=0)[:STEEP_INTERVALS]
    low, high = grid[first], grid[first + 1]
    for _ in range(halvings):
        middle = (low + high) / 2
        at_low, at_middle, at_high = (tried(loss, "slope", z, targets[None, :]) for z in (low, middle, high))
        left = at_middle - at_low >= at_high - at_middle
        low, high = np.where(left, low, middle), np.where(left, middle, high)
    return low, high


def _fastest_rises(loss: ConvexLoss, targets: Floats) -> tuple[Floats, Floats]:
    """Places, one column for each target, where the slope rises fastest, and how fast, but for rounding."""
    low, high = _steepest_intervals(loss, targets, HALVINGS)
    y = targets[None, :]
    rise = (tried(loss, "slope", high, y) - tried(loss, "slope", low, y)) / (high - low)
    return (low + high) / 2, rise - _rounding(loss, low, high, rise)


def _rounding(loss: ConvexLoss, low: Floats, high: Floats, rise: Floats) -> Floats:
    """What rounding in predictors and slopes can do to a rise between two predictors."""
    size = float(loss.most_slope or 0.0) + rise * (np.abs(low) + np.abs(high) + loss.offset)
    return np.asarray(size * FINE_ROUNDING / (high - low))


def jumps(loss: ConvexLoss) -> bool:
    """Whether the slope rises by a large part of its bound within an interval hardly wider than rounding."""
    low, high = _steepest_intervals(loss, UNIT_TARGETS, MANY_HALVINGS)
    y = UNIT_TARGETS[None, :]
    rises = tried(loss, "slope", high, y) - tried(loss, "slope", low, y)
    return bool(rises.max() > LEAST_JUMP * float(loss.most_slope or 0.0))


def found_smoothness(loss: ConvexLoss) -> float:
    """The largest curvature, and the fastest rise of the slope, that the grid shows."""
    places, rise = _fastest_rises(loss, UNIT_TARGETS)
    y = UNIT_TARGETS[None, :]
    every = tried(loss, "curvature", np.sort(TRIED)[:, None], y)
    return float(max(every.max(), tried(loss, "curvature", places, y).max(), rise.max()))


# -- how far the loss falls ------------------------------------------------------------------------


def found_excess(loss: ConvexLoss, targets: Floats) -> float:
    """A bound of the loss at zero above its infimum, by upper sums of the slope; infinite where the loss still falls at
    the end of the grid.
    """
    z = np.sort(np.append(TRIED, 0.0))[:, None] * max(1.0, float(np.abs(targets).max()))
    slope, width = tried(loss, "slope", z, targets[None, :]), np.diff(z, axis=0)
    if max(float(-slope[-1].min()), float(slope[0].max())) > ROUNDING * float(loss.most_slope or 0.0):
        return math.inf
    falls = np.where(z[:-1] >= 0, np.maximum(-slope[:-1], 0.0), 0.0)
    rises = np.where(z[1:] <= 0, np.maximum(slope[1:], 0.0), 0.0)
    return float(np.maximum((falls * width).sum(axis=0), (rises * width).sum(axis=0)).max())


def _least_excess(z: Floats, slope: Floats) -> float:
    """A lower bound of the same, by lower sums of the slope, which is monotone."""
    width = np.diff(z, axis=0)
    falls = np.where(z[:-1] >= 0, np.maximum(-slope[1:], 0.0), 0.0)  # towards larger z
    rises = np.where(z[1:] <= 0, np.maximum(slope[:-1], 0.0), 0.0)  # towards smaller z
    return float(np.maximum((falls * width).sum(axis=0), (rises * width).sum(axis=0)).max())


def is_positive(value: object) -> bool:
    """Whether this is a finite number above zero."""
    number = isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
    return number and bool(0 < value < math.inf)  # type: ignore[operator]
