"""Inner edges of bins between two bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction


def equal_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """Equal bins, computed exactly and rounded once."""
    width = Fraction(high) - Fraction(low)
    return _rising(float(Fraction(low) + width * i / count) for i in range(1, count))


def log_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """Equal bins of a logarithm that starts at `low`, or, when the range spans zero, grows away from zero both ways."""
    if low < 0.0 < high:
        start, stop = -math.log1p(-low), math.log1p(high)
        steps = (start + (stop - start) * i / count for i in range(1, count))
        return _rising(math.copysign(math.expm1(abs(step)), step) for step in steps)
    width = math.log1p(high - low)
    return _rising(low + math.expm1(width * i / count) for i in range(1, count))


def _rising(edges: Iterable[float]) -> tuple[float, ...]:
    return tuple(sorted(set(edges)))
