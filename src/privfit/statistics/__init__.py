"""Statistics: what is summed over rows. Each knows how far one row can move it."""

from privfit.statistics.fourier import FourierFeatures
from privfit.statistics.gradients import Coupling, Gradients, RowNorms
from privfit.statistics.moments import STEP, Moments, MomentValues
from privfit.statistics.monomials import products_of
from privfit.statistics.sensitivity import Norm, distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity
from privfit.statistics.weighted import EXPECTED_SIZE, TargetLattice, WeightedMonomials

__all__ = [
    "EXPECTED_SIZE",
    "STEP",
    "Coupling",
    "FourierFeatures",
    "Gradients",
    "MomentValues",
    "Moments",
    "Norm",
    "RowNorms",
    "TargetLattice",
    "WeightedMonomials",
    "distinct_sensitivity",
    "linf_sensitivities",
    "products_of",
    "squared_l2_sensitivity",
]
