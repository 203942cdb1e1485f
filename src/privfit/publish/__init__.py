"""Publishing: a weighted or synthetic table in place of a private one."""

from __future__ import annotations

from privfit.publish.publisher import WEIGHT, Publisher
from privfit.publish.weights import ImportanceWeights

__all__ = ["WEIGHT", "ImportanceWeights", "Publisher"]
