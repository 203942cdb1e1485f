"""How the price of one release is split among its parts, where it is made of several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privfit.privacy import PrivacyParameters, exact
from privfit.privacy.budget import rho_of
from privfit.privacy.event import gaussian_scale, laplace_scale
from privfit.privacy.parts import Additive, DiscreteGaussian, Laplace
from privfit.statistics import Norm


@dataclass(frozen=True)
class BudgetSplit:
    """What parts of one release may spend: shares of rho with Gaussian noise, of epsilon with Laplace noise.

    They add up to at most the whole.

    Guarantee: a part drawn at `scale` costs its share for persons with at most `rows_per_person` rows;
    docs/proofs/laplace.md and gaussian.md.
    """

    parameters: PrivacyParameters
    rho: float

    @classmethod
    def of(cls, parameters: PrivacyParameters) -> BudgetSplit:
        """Gaussian noise if there is a delta, Laplace noise if there is none."""
        budget = parameters.budget
        return cls(parameters, rho_of(budget.epsilon, budget.delta) if budget.delta > 0 else 0.0)

    @property
    def kind(self) -> Literal["laplace", "gaussian"]:
        """The kind of noise."""
        return "gaussian" if self.parameters.budget.delta > 0 else "laplace"

    @property
    def norm(self) -> Norm:
        """The norm in which the noise protects."""
        return "l2" if self.kind == "gaussian" else "l1"

    def scale(self, sensitivity: int, share: Fraction) -> float:
        """The scale of the noise on a part with this sensitivity and this share of the whole price."""
        total = sensitivity * int(self.parameters.rows_per_person)
        if self.kind == "gaussian":
            return gaussian_scale(total, exact(self.rho) * share)
        return laplace_scale(total, self.parameters.budget.exact * share)

    def sd(self, scale: float) -> float:
        """The standard deviation of noise with this scale."""
        return scale if self.kind == "gaussian" else math.sqrt(2) * scale

    def part(self, purpose: str, size: int, share: Fraction, sensitivity: int = 0, unit: int = 1) -> Additive:
        """The part of an event with this share; without a sensitivity its scale follows from what is released before
        it.
        """
        total = sensitivity * int(self.parameters.rows_per_person)
        scale = self.scale(sensitivity, share) if sensitivity else 0.0
        if self.kind == "gaussian":
            spent = self.rho * float(share)
            return DiscreteGaussian(purpose=purpose, size=size, scale=scale, sensitivity=total, unit=unit, rho=spent)
        spent = self.parameters.budget.epsilon * float(share)
        return Laplace(purpose=purpose, size=size, scale=scale, sensitivity=total, unit=unit, epsilon=spent)
