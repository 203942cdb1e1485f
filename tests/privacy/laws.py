"""What a private choice comes out as, exactly: by enumeration of all orders, or by weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def flip_law(scores: Sequence[int], scale: float) -> list[float]:
    """Permute-and-flip, by enumeration of all orders."""
    keep = [math.exp((score - max(scores)) / scale) for score in scores]
    law = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        open_ = 1.0 / math.factorial(len(scores))
        for place in order:
            law[place] += open_ * keep[place]
            open_ *= 1 - keep[place]
    return law


def weight_law(scores: Sequence[int], scale: float) -> list[float]:
    """The exponential mechanism."""
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


LAWS = {"permute-and-flip": flip_law, "exponential": weight_law}


def most_told(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest log-ratio of two laws, either way: the epsilon that they give away."""
    return max(abs(math.log(a) - math.log(b)) for a, b in zip(one, other, strict=True))


def renyi(one: Sequence[float], other: Sequence[float], order: float) -> float:
    """The Renyi divergence of this order."""
    return math.log(math.fsum(a**order * b ** (1 - order) for a, b in zip(one, other, strict=True))) / (order - 1)


def excess(one: Sequence[float], other: Sequence[float], epsilon: float) -> float:
    """The delta that two laws need at this epsilon."""
    return math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(one, other, strict=True))
