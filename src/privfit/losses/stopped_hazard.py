"""The loss of a log hazard: an exponential one that stops where a person's cumulative hazard has used itself up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privfit.losses.convex import ConvexLoss, ready_made

Floats = NDArray[np.float64]

TIME_STEPS = 1 << 15
"""Steps from the beginning of the times to their end: targets are signed times on a lattice of twice as many."""
LEAST_HAZARD, MOST_HAZARD = 2.0**-20, 8.0
"""What a cumulative hazard counts as at least and at most. A minimum exists for any table because neither is 0 or
infinite, and is shorter where they are nearer; a survival of e^-8 is beyond what a table with noise shows."""
MOST_CURVATURE = (10 + 7 * math.sqrt(7.0)) / 54
"""The largest q (1 - q) (1 + 2 q), at q = (1 + sqrt(7)) / 6."""


@dataclass(frozen=True, eq=False)
class StoppedHazard:
    """The loss of a predictor z where H = u e^z is the cumulative hazard up to a person's time, and u is looked up.

    With q = 1 / (1 + H) and d = 1 for an event, it is -log q - d (q + log(1 - q)): its slope is 1 - q - d q^2. Targets
    are from 1/2 to 1 in size, at the beginning and at the end of the times, and positive for an event.
    """

    log_hazards: Floats
    """log u at every step of time, the beginning first."""

    def _terms(self, z: Any, y: Any) -> tuple[Any, Any]:
        """q, and whether there was an event."""
        return expit(-(z + self.log_hazards[time_steps(y)])), np.asarray(y) > 0

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        alive, event = self._terms(z, y)
        return 1.0 - alive - event * alive * alive

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        alive, event = self._terms(z, y)
        return alive * (1.0 - alive) * (1.0 + 2.0 * event * alive)

    def value(self, z: Any, y: Any) -> Any:
        """The loss itself."""
        log_hazard = z + self.log_hazards[time_steps(y)]
        alive, event = self._terms(z, y)
        left = np.logaddexp(0.0, log_hazard)  # -log q; and log(1 - q) is the log hazard less that
        return left - event * (alive + log_hazard - left)


def time_steps(y: Any) -> NDArray[np.intp]:
    """The step of time that a signed time of a row stands for."""
    steps = np.rint(np.abs(np.asarray(y, dtype=np.float64)) * (2 * TIME_STEPS)) - TIME_STEPS
    return np.asarray(np.clip(steps, 0, TIME_STEPS), dtype=np.intp)


def stopped_hazard(hazards: Floats | None = None) -> ConvexLoss:
    """The loss of a log hazard ratio, for a cumulative hazard that is known at every step of time.

    Cox's partial likelihood is no sum over rows, and the likelihood of an exponential time, u e^z - d z, has no bounded
    slope. Here a person is followed until the cumulative hazard has used itself up: slopes are the integral of dN - Y
    dH, with weights (1 + H)^-2 that fall with H, so that where the hazard is the true one they have the mean 0, as the
    score of the likelihood has.

    Parameters
    ----------
    hazards : ndarray of shape (TIME_STEPS + 1,) or None, default=None
        The cumulative hazard at every step of time; None is 1 everywhere, which has the same constants.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    CoxRegression : Fits it at a hazard that is released first.

    Examples
    --------
    >>> from privfit.losses.stopped_hazard import stopped_hazard
    >>> loss = stopped_hazard()
    >>> loss.most_slope, loss.taper, round(loss.most_curvature, 4)
    (1.0, 1.0, 0.5282)
    """
    held = np.ones(TIME_STEPS + 1) if hazards is None else np.nan_to_num(hazards, nan=LEAST_HAZARD)
    own = StoppedHazard(np.log(np.clip(held, LEAST_HAZARD, MOST_HAZARD)))
    return ConvexLoss(
        own.slope,
        own.curvature,
        most_slope=1.0,
        most_curvature=MOST_CURVATURE * (1 + 1e-12),
        taper=1.0,
        value=own.value,
        name="stopped hazard",
        excess_at_zero=-math.log(LEAST_HAZARD) - 1.8,
    )
