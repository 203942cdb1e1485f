"""Published methods that the papers compare with, with the constants they print, behind the same promise as every other
fit.

They are here to be compared with: `pf.LogisticRegression` and `pf.LinearSVC` need less noise for the same epsilon.
NoPrivacy and Truncated are not private, say so, and refuse a ledger.
"""

from __future__ import annotations

from privfit.baselines.erm import PrivateERM
from privfit.baselines.majority import Majority
from privfit.baselines.no_privacy import NoPrivacy
from privfit.baselines.svm import PrivateSVM
from privfit.baselines.truncated import Truncated
from privfit.models import LOADABLE
from privfit.publish.filter_priority import FilterPriority
from privfit.publish.histograms import DPME, cells_per_axis
from privfit.publish.values import LaplacePublisher

BASELINES = (PrivateERM, PrivateSVM)
LOADABLE.update({baseline.__name__: baseline for baseline in BASELINES})

__all__ = [
    "BASELINES",
    "DPME",
    "FilterPriority",
    "LaplacePublisher",
    "Majority",
    "NoPrivacy",
    "PrivateERM",
    "PrivateSVM",
    "Truncated",
    "cells_per_axis",
]
