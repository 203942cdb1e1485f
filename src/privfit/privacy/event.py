"""What happened: one release, described by public facts alone, before it happens."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from privfit.privacy.adjacency import Adjacency
from privfit.privacy.budget import Budget, exact
from privfit.privacy.composition import Cost
from privfit.privacy.errors import PrivacyError


@dataclass(frozen=True)
class Event:
    """One release: which mechanism, at which price, with how much noise. Frozen, and the same after a round trip through JSON.

    `sensitivity` and `scale` are whole-lattice numbers: `unit` lattice steps are 1 in the units of the statistic.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    rho: float = 0.0
    adjacency: Adjacency = "replace-one"
    rows_per_person: int = 1
    noise: str = "laplace"
    sensitivity: int = 0
    scale: float = 0.0
    unit: int = 1
    n_values: int = 0

    @classmethod
    def laplace(
        cls,
        mechanism: str,
        budget: Budget,
        *,
        sensitivity: int,
        adjacency: Adjacency,
        rows_per_person: int = 1,
        unit: int = 1,
        n_values: int = 1,
        share: float = 1.0,
    ) -> Event:
        """A release of whole numbers with discrete Laplace noise.

        `sensitivity` is the largest L1 change that one row can make; `rows_per_person` rows change it at most that many times as
        much. `share` is the part of epsilon that one draw may use, when a mechanism draws more than once.

        Guarantee: epsilon-DP for a person with at most `rows_per_person` rows, in the adjacency named; docs/proofs/laplace.md.
        """
        reach = sensitivity * rows_per_person
        scale = laplace_scale(reach, exact(budget.epsilon) * exact(share))
        return cls(
            mechanism=mechanism,
            epsilon=budget.epsilon,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            sensitivity=reach,
            scale=scale,
            unit=unit,
            n_values=n_values,
        )

    @property
    def cost(self) -> Cost:
        """What a ledger charges for it."""
        return Cost(exact(self.epsilon), exact(self.delta), exact(self.rho))

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise on one released value, in the units of the statistic."""
        return (math.sqrt(2.0) if self.noise == "laplace" else 1.0) * self.scale / self.unit

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values."""
        return asdict(self)

    def to_json(self) -> str:
        """The event as one line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Event:
        """The event that `to_json` wrote."""
        return cls(**json.loads(text))


def laplace_scale(sensitivity: int, epsilon: Fraction) -> float:
    """The smallest float scale with sensitivity / scale <= epsilon, compared exactly."""
    if sensitivity <= 0 or epsilon <= 0:
        raise PrivacyError(
            f"A Laplace scale was asked for with sensitivity {sensitivity} and epsilon {float(epsilon)}; both must be positive. "
            "A statistic that no row can change needs no noise."
        )
    try:
        scale = float(Fraction(sensitivity) / epsilon)
    except OverflowError:
        scale = math.inf
    while math.isfinite(scale) and Fraction(sensitivity) > Fraction(scale) * epsilon:
        scale = math.nextafter(scale, math.inf)
    if scale > 2.0**62:
        raise PrivacyError(
            f"epsilon={float(epsilon):.3g} asks for more noise than 64-bit whole numbers can hold. Choose a larger epsilon, or fewer columns."
        )
    return scale
