"""All that is public about a fit but its rows and its ridge, and the bounds that follow: docs/proofs/learning.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Literal, get_args

import numpy as np
from scipy import special
from scipy.optimize import minimize_scalar

from privfit.privacy.budget import Adjacency, checked_adjacency, number

Method = Literal["objective", "output"]

MOST_ROWS = 1 << 60
"""The search for a number of rows ends here."""
GRID = 64
"""Ridges on which the search for the best one begins: more take longer. Chosen, not measured."""

_CURES = {
    "rows": "Give the number of rows that the table has or will have, such as 10_000.",
    "columns": "Give the number of encoded columns, the intercept among them.",
    "epsilon": "Smaller is more private; 1.0 is a common start.",
    "ridge": "Give the sum-form ridge (rows times the paper's lambda), or ask best_ridge for one.",
    "reference_norm": "Give the length of the weights to compare with, such as 5.0; a guess will do.",
    "slope": "Use the loss's Lipschitz constant: 1.0 for the logistic loss.",
    "curvature": "Use the loss's largest second derivative: 0.25 for the logistic loss.",
    "norm": "Use the length that rows are clipped to, such as 1.0.",
    "excess": "Give the loss above the reference's that you can accept, such as 0.05.",
    "constant": "The paper leaves it open; 16 is a start for a comparison.",
}


@dataclass(frozen=True)
class Setting:
    """All that is public about a fit but its rows and its ridge. Names are those of the module's docstring."""

    columns: int
    epsilon: float
    method: Method = "objective"
    confidence: float | None = None
    slope: float = 1.0
    curvature: float = 0.25
    norm: float = 1.0
    adjacency: Adjacency = "replace-one"
    noise_share: float = 0.8

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            name: positive(name, getattr(self, name)) for name in ("epsilon", "slope", "curvature", "norm")
        }
        checked["columns"] = whole("columns", self.columns)
        if self.method not in get_args(Method):
            raise ValueError(
                f"method={self.method!r} was given; it is 'objective' (noise in what is minimised) or 'output' (noise "
                "on the minimiser). "
                "Choose one of the two."
            )
        if self.confidence is not None:
            sure(self.confidence)
        if not 0 < number(self.noise_share) < 1:
            raise ValueError(
                f"noise_share={self.noise_share!r} was given; it is between 0 and 1, without the ends. 0.8 is a good "
                "start."
            )
        checked_adjacency(self.adjacency)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def gradient(self) -> float:
        """A bound of the gradient of a row's loss in w."""
        return self.slope * self.norm

    @property
    def hessian(self) -> float:
        """A bound of the Hessian of a row's loss in w."""
        return self.curvature * self.norm**2

    @property
    def floor(self) -> float:
        """hessian / (e^((1 - share) epsilon) - 1), written so that a large epsilon does not overflow."""
        spent = (1 - self.noise_share) * self.epsilon
        return self.hessian * math.exp(-spent) / -math.expm1(-spent)

    def used(self, ridge: float) -> float:
        """The ridge that the mechanism uses when it is given this one."""
        return max(ridge, self.floor) if self.method == "objective" else ridge

    def shift(self, ridge: float) -> float:
        """The scale of the noise in units of w: |noise| / scale, or |b| / (ridge * scale), has a Gamma law of shape
        `columns`.
        """
        left = self.epsilon - math.log1p(self.hessian / ridge) if self.method == "objective" else self.epsilon
        return (2 if self.adjacency == "replace-one" else 1) * self.gradient / (ridge * left)

    def regularised(self, rows: int, ridge: float) -> float:
        """Theorem 1."""
        scale, d = self.shift(ridge), self.columns
        if self.confidence is None:
            penalty = ridge * d * (d + 1) * scale**2 / (2 * rows)
            return (
                penalty if self.method == "objective" else penalty + self._rounded(self.norm * math.sqrt(d + 1) * scale)
            )
        failure = 1 - self.confidence
        longest = (scale * noise_quantile(d, failure)) ** 2 / 2
        if self.method == "objective":
            return ridge / rows * longest
        turned = (scale * noise_quantile(d, failure / 2)) ** 2 / 2
        return min(
            (self.hessian + ridge / rows) * longest, (self.hessian * alignment(d, failure / 2) + ridge / rows) * turned
        )

    def excess(self, rows: int, ridge: float, reference: float) -> float:
        """Theorem 2 or 3."""
        return (
            self._mean_excess(rows, ridge, reference)
            if self.confidence is None
            else self._likely_excess(rows, ridge, reference)
        )

    def _mean_excess(self, rows: int, ridge: float, reference: float) -> float:
        scale, d = self.shift(ridge), self.columns
        noise = self._rounded(self.norm * math.sqrt(d + 1) * scale)
        if self.method == "objective":
            noise = min(noise, (d + 1) * scale**2 / 2 / (1 / self.hessian + 2 * (rows + 1) / (ridge * d)))
        return self.gradient**2 / ridge + ridge * reference**2 / (4 * (rows + 1)) + noise

    def _likely_excess(self, rows: int, ridge: float, reference: float) -> float:
        assert self.confidence is not None
        failure = (1 - self.confidence) / 3
        length = self.shift(ridge) * noise_quantile(self.columns, failure)
        aligned = alignment(self.columns, failure)
        reach = length * math.sqrt(aligned)
        sample = self._sample(failure) / ridge
        if self.method == "output":
            lost = math.sqrt(sample) + reach * math.sqrt((ridge / rows + self.hessian) / 2)
            return lost * lost + ridge / rows * reference**2 / 2
        noise = length**2 / 2 / (1 / (self.hessian * aligned) + rows / ridge)
        return sample + ridge / rows * (reference + reach) ** 2 / 2 + noise

    def _rounded(self, distance: float) -> float:
        """Huber's function: how far a loss can rise on average over both signs of a step in x'w of this length."""
        corner = self.slope / self.curvature
        return self.curvature * distance**2 / 2 if distance <= corner else self.slope * (distance - corner / 2)

    def best(self, rows: int, reference: float) -> float:
        """The least of a grid, then of its neighbourhood.

        Noise falls with the ridge, so the best lies above the best without noise.
        """
        sample, weight = self.gradient**2, 1 / (4 * (rows + 1))
        if self.confidence is not None:
            sample, weight = self._sample((1 - self.confidence) / 3), 1 / (2 * rows)
        penalty = weight * reference**2
        low = self.used(math.sqrt(sample / penalty))
        high = max(low * 1.01, self.excess(rows, low, reference) / penalty)
        return lowest(lambda ridge: self.excess(rows, ridge, reference), low, high)

    def _sample(self, failure: float) -> float:
        """What the accident of which rows were drawn costs, times the ridge, but for this probability.
        docs/proofs/learning.md, Lemma 7.
        """
        return (self.gradient * (2 + math.sqrt(2 * math.log(1 / failure)))) ** 2


def lowest(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f is least between two positive numbers, on a grid of their logarithms."""
    places = np.linspace(math.log(low), math.log(high), GRID)
    heights = [f(math.exp(place)) for place in places]
    at = int(np.argmin(heights))
    around = (places[max(at - 1, 0)], places[min(at + 1, GRID - 1)])
    found = minimize_scalar(lambda place: f(math.exp(place)), bounds=around, method="bounded", options={"xatol": 1e-7})
    candidates = [low, high, math.exp(places[at]), math.exp(float(found.x))]
    return min((ridge for ridge in candidates if low <= ridge <= high), key=f)


@lru_cache(maxsize=256)
def noise_quantile(columns: int, failure: float) -> float:
    """The length that noise of scale 1 exceeds with this probability."""
    return float(special.gammainccinv(columns, failure))


@lru_cache(maxsize=256)
def alignment(columns: int, failure: float) -> float:
    """The mean, over the worst `failure` of all directions, of the square of a direction's first coordinate.
    docs/proofs/learning.md, Lemma 4.

    t + E max(square - t, 0) / failure bounds it for every t, so that an error in the quantile t is on the safe side.
    """
    if columns == 1:
        return 1.0
    rest = (columns - 1) / 2
    t = float(special.betainccinv(0.5, rest, failure))
    above = float(special.betaincc(1.5, rest, t)) / columns - t * float(special.betaincc(0.5, rest, t))
    return min(1.0, t + above / failure)


# -- what may be given -----------------------------------------------------------------------------


def positive(name: str, value: object) -> float:
    if not 0 < number(value) < math.inf:
        raise ValueError(f"{name}={value!r} was given; {name} is a positive finite number. {_CURES[name]}")
    return number(value)


def whole(name: str, value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} was given; {name} is an integer from 1 on. {_CURES[name]}")
    return int(value)


def sure(confidence: object) -> float:
    if not 0 < number(confidence) < 1:
        raise ValueError(
            f"confidence={confidence!r} was given; it is between 0 and 1, without the ends, such as 0.95. "
            "Give one; where the expected value is on offer, None asks for it."
        )
    return number(confidence)
