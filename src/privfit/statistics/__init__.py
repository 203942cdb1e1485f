"""Statistics: what is summed over rows. Each knows how far one row can move it."""

from privfit.schema import Norm
from privfit.statistics.fitness import Dampening, RowFitness, TableFitness, as_scores, enumerated
from privfit.statistics.moments import STEP, Moments, MomentValues
from privfit.statistics.monomials import products_of
from privfit.statistics.ranges import Ranges, candidate_ranges
from privfit.statistics.sensitivity import distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity
from privfit.statistics.weighted import EXPECTED_SIZE, TargetLattice, WeightedMonomials
from privfit.statistics.weighted_moments import WEIGHT_LEVELS, WEIGHTED_STEP, WeightedMoments

__all__ = [
    "EXPECTED_SIZE",
    "STEP",
    "WEIGHTED_STEP",
    "WEIGHT_LEVELS",
    "Dampening",
    "MomentValues",
    "Moments",
    "Norm",
    "Ranges",
    "RowFitness",
    "TableFitness",
    "TargetLattice",
    "WeightedMoments",
    "WeightedMonomials",
    "as_scores",
    "candidate_ranges",
    "distinct_sensitivity",
    "enumerated",
    "linf_sensitivities",
    "products_of",
    "squared_l2_sensitivity",
]
