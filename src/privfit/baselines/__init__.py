"""Published methods that the papers compare with, with the constants they print, behind the same promise as every other fit.

They are here to be compared with: `pf.LogisticRegression` and `pf.LinearSVC` need less noise for the same epsilon.
"""

from __future__ import annotations

from privfit.baselines.erm import PrivateERM
from privfit.baselines.svm import PrivateSVM
from privfit.models import LOADABLE

BASELINES = (PrivateERM, PrivateSVM)
LOADABLE.update({baseline.__name__: baseline for baseline in BASELINES})

__all__ = ["BASELINES", "PrivateERM", "PrivateSVM"]
