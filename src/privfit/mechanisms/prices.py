"""What the parts of one release cost, where it is made of several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Noise, Terms, exact
from privfit.privacy.composition import rho_of
from privfit.privacy.event import gaussian_scale, laplace_scale
from privfit.statistics import Norm

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Prices:
    """What parts of one release may cost: shares of rho with Gaussian noise, of epsilon with Laplace noise. They add up to at most the whole.

    Guarantee: a part drawn at `scale` costs its share for persons with at most `rows_per_person` rows; docs/proofs/laplace.md and gaussian.md.
    """

    terms: Terms
    rho: float

    @classmethod
    def of(cls, terms: Terms) -> Prices:
        """Gaussian noise if there is a delta, Laplace noise if there is none."""
        budget = terms.budget
        return cls(terms, rho_of(budget.epsilon, budget.delta) if budget.delta > 0 else 0.0)

    @property
    def kind(self) -> Literal["laplace", "gaussian"]:
        """The kind of noise."""
        return "gaussian" if self.terms.budget.delta > 0 else "laplace"

    @property
    def norm(self) -> Norm:
        """The norm in which the noise protects."""
        return "l2" if self.kind == "gaussian" else "l1"

    def scale(self, sensitivity: int, share: Fraction) -> float:
        """The scale of the noise on a part with this sensitivity and this share of the whole price."""
        reach = sensitivity * int(self.terms.rows_per_person)
        if self.kind == "gaussian":
            return gaussian_scale(reach, exact(self.rho) * share)
        return laplace_scale(reach, exact(self.terms.budget.epsilon) * share)

    def sd(self, scale: float) -> float:
        """The standard deviation of noise with this scale."""
        return scale if self.kind == "gaussian" else math.sqrt(2) * scale

    def drawn(self, noise: Noise, values: Integers, scale: float) -> Integers:
        """The values with noise."""
        return noise.gaussian(values, scale) if self.kind == "gaussian" else noise.laplace(values, scale)
