"""Statistics: what is summed over rows. Each knows how far one row can move it."""

from privfit.features.fourier import FourierFeatures
from privfit.features.row_norms import ShortenedRows
from privfit.statistics.fitness import Dampening, RowFitness, TableFitness, as_scores, enumerated
from privfit.statistics.gradients import Coupling, Gradients, RowNorms
from privfit.statistics.moments import STEP, Moments, MomentValues
from privfit.statistics.monomials import products_of
from privfit.statistics.sensitivity import Norm, distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity
from privfit.statistics.weighted import EXPECTED_SIZE, TargetLattice, WeightedMonomials

__all__ = [
    "EXPECTED_SIZE",
    "STEP",
    "Coupling",
    "Dampening",
    "FourierFeatures",
    "Gradients",
    "MomentValues",
    "Moments",
    "Norm",
    "RowFitness",
    "RowNorms",
    "ShortenedRows",
    "TableFitness",
    "TargetLattice",
    "WeightedMonomials",
    "as_scores",
    "distinct_sensitivity",
    "enumerated",
    "linf_sensitivities",
    "products_of",
    "squared_l2_sensitivity",
]
