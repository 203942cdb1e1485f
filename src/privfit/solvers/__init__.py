"""Solvers: from released statistics to model weights. They never see a row."""

from privfit.solvers.accelerated import accelerated_descent
from privfit.solvers.certified import Minimum, minimise_certified, newton_on_sample, solver_of
from privfit.solvers.logistic import calibrate, chebyshev_curvature
from privfit.solvers.naive_bayes import ClassNoise, ClassProfiles, class_profiles
from privfit.solvers.penalised import PenalisedSolution, Penalty, minimise_penalised
from privfit.solvers.polynomial import PolynomialSolution, consistent_sums, minimise_polynomial
from privfit.solvers.quadratic import (
    REPAIRS,
    NoiseLevel,
    Repair,
    Solution,
    is_bounded,
    minimise,
    plausible_mean,
    plausible_means,
)
from privfit.solvers.reduction import ReducedQuadratic, consistent, reduce_quadratic
from privfit.solvers.stationary import local_minimum, stationary_point, without_slope
from privfit.solvers.units import shown_columns

__all__ = [
    "REPAIRS",
    "ClassNoise",
    "ClassProfiles",
    "Minimum",
    "NoiseLevel",
    "PenalisedSolution",
    "Penalty",
    "PolynomialSolution",
    "ReducedQuadratic",
    "Repair",
    "Solution",
    "accelerated_descent",
    "calibrate",
    "chebyshev_curvature",
    "class_profiles",
    "consistent",
    "consistent_sums",
    "is_bounded",
    "local_minimum",
    "minimise",
    "minimise_certified",
    "minimise_penalised",
    "minimise_polynomial",
    "newton_on_sample",
    "plausible_mean",
    "plausible_means",
    "reduce_quadratic",
    "shown_columns",
    "solver_of",
    "stationary_point",
    "without_slope",
]
