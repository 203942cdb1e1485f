"""Statistics: what is summed over rows. Each knows how far one row can move it."""

from privfit.statistics.moments import STEP, Moments, MomentValues, distinct_sensitivity

__all__ = ["STEP", "MomentValues", "Moments", "distinct_sensitivity"]
