"""What a private choice comes out as, exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def flip_law(scores: Sequence[int], scale: float) -> list[float]:
    """Permute-and-flip, by what came before: in a random order, k given others are all that come before a candidate
    with probability k! (n - 1 - k)! / n!, and it is their turn to be passed over.

    Products over all sets of k others are added up by their elementary symmetric polynomial.
    """
    keep = [math.exp((score - max(scores)) / scale) for score in scores]
    n = len(scores)
    law = []
    for place in range(n):
        products = [1.0]
        for other in range(n):
            if other != place:
                passed = 1 - keep[other]
                products = [a + passed * b for a, b in zip([*products, 0.0], [0.0, *products], strict=True)]
        law.append(keep[place] * math.fsum(p / (n * math.comb(n - 1, k)) for k, p in enumerate(products)))
    return law


def listed_flip_law(scores: Sequence[int], scale: float) -> list[float]:
    """The same, by enumeration of all orders: n! of them."""
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
