"""Solvers: from released statistics to model weights. They never see a row."""

from privfit.solvers.logistic import calibrate, chebyshev_curvature
from privfit.solvers.quadratic import REPAIRS, NoiseLevel, Repair, Solution, is_bounded, minimise, plausible_mean, plausible_means
from privfit.solvers.reduction import ReducedQuadratic, consistent, reduce_quadratic

__all__ = [
    "REPAIRS",
    "NoiseLevel",
    "ReducedQuadratic",
    "Repair",
    "Solution",
    "calibrate",
    "chebyshev_curvature",
    "consistent",
    "is_bounded",
    "minimise",
    "plausible_mean",
    "plausible_means",
    "reduce_quadratic",
]
