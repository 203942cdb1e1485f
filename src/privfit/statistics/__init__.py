"""Statistics: what is summed over rows. Each knows how far one row can move it."""

from privfit.statistics.moments import STEP, Moments, MomentValues
from privfit.statistics.sensitivity import Norm, distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity

__all__ = ["STEP", "MomentValues", "Moments", "Norm", "distinct_sensitivity", "linf_sensitivities", "squared_l2_sensitivity"]
