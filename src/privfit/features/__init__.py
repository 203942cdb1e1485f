"""Public maps from encoded rows to the columns of a design. None depends on data.

- feature_map.py: FeatureMap, what a map offers, and the norms that its rows have at most.
- fourier.py: random Fourier features, behind which a linear model has a Gaussian kernel.
- shortened_rows.py: rows that are shortened to a public length.
"""

from privfit.features.feature_map import FeatureMap
from privfit.features.fourier import FourierFeatures
from privfit.features.shortened_rows import ShortenedRows

__all__ = ["FeatureMap", "FourierFeatures", "ShortenedRows"]
