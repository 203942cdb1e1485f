"""The sensitivities that two papers print, for comparison: valid, and far larger than they need to be."""

from __future__ import annotations

import math
from typing import Literal

from privfit.losses import QuadraticLoss
from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.statistics import Moments

Calibration = Literal["tight", "paper", "paper-box"]
CALIBRATIONS = ("tight", "paper", "paper-box")


def printed_sensitivity(
    calibration: Calibration, moments: Moments, parameters: PrivacyParameters, loss: QuadraticLoss, proved: int
) -> int:
    """The printed constant in lattice units, and never less than what is proved for what is released.

    Guarantee: docs/proofs/moments.md, Paper calibration, and Theorem 6 for all entries of a box.
    """
    d = moments.geometry.n_columns
    if calibration == "paper":  # of the coefficients that footnote 1 scales by 1 / sqrt(d)
        return max(proved, math.ceil(loss.printed_sensitivity(d) * d / loss.curvature * moments.unit))
    if parameters.adjacency == "add-remove" or moments.geometry.intercept:
        raise PrivacyError(
            "calibration='paper-box' was given under add-remove, or with a loss that has an offset; it is printed for "
            "tables with as many rows and for squared errors. Use replace-one, or calibration='tight'. Nothing was "
            "charged."
        )
    every = 2 * (d * d + moments.target_weight * d)
    return math.ceil(max(loss.printed_sensitivity(d) / loss.curvature, every) * moments.unit)
