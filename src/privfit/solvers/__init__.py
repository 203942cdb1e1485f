"""Solvers: from released statistics to model weights. They never see a row."""

from privfit.solvers.consistency import project
from privfit.solvers.logistic import chebyshev_curvature, logistic_length
from privfit.solvers.quadratic import REPAIRS, Repair, Solution, is_bounded, minimise

__all__ = ["REPAIRS", "Repair", "Solution", "chebyshev_curvature", "is_bounded", "logistic_length", "minimise", "project"]
