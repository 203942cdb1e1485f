"""Published methods that the papers compare with, with the constants they print, behind the same promise as every other fit.

They are here to be compared with: `pf.LogisticRegression` and `pf.LinearSVC` need less noise for the same epsilon.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.baselines.erm import PrivateERM
from privfit.baselines.svm import PrivateSVM
from privfit.models import saving

BASELINES = (PrivateERM, PrivateSVM)


def load_model(path: str | Path) -> Any:
    """The baseline that `model.save(path)` wrote. Runs no code from the file."""
    return saving.load(path, {baseline.__name__: baseline for baseline in BASELINES})


__all__ = ["BASELINES", "PrivateERM", "PrivateSVM", "load_model"]
