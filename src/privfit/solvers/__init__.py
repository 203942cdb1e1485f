"""Solvers: from released statistics to model weights. They never see a row."""

from privfit.solvers.logistic import chebyshev_curvature, logistic_length
from privfit.solvers.quadratic import REPAIRS, NoiseLevel, Repair, Solution, is_bounded, minimise
from privfit.solvers.reduction import ReducedQuadratic, consistent, reduce_quadratic

__all__ = [
    "REPAIRS",
    "NoiseLevel",
    "ReducedQuadratic",
    "Repair",
    "Solution",
    "chebyshev_curvature",
    "consistent",
    "is_bounded",
    "logistic_length",
    "minimise",
    "reduce_quadratic",
]
