"""The plan of a perturbed fit, and the noise on its weights that covers what a solver leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from privfit.mechanisms.base import ReleasePlan
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.objective_noise import MOST_FINE, SAFE, ObjectiveNoise
from privfit.mechanisms.perturbation.precision import Precision
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.privacy import PrivacyError, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import CERTIFICATE, Laplace
from privfit.statistics import Gradients

OUTPUT_STEPS = 64
"""How many lattice steps two minima lie apart at least: rounding them adds about one in so many to their distance."""
COARSEST = 64
MOST_BITS = 61
"""Weights on their lattice stay below 2^61, so that they are exact as 64-bit integers with noise on them."""


@dataclass(frozen=True)
class ERMPlan(ReleasePlan):
    """All that is decided before a row is read, and its price."""

    problem: ERMProblem
    gradients: Gradients
    ridge: float
    precision: Precision
    """How near its minimum the solver comes, whatever the rows are."""
    sd: float
    """The size of the noise, to compare kinds by."""
    noise: ObjectiveNoise | None = None
    """The random linear term; None where noise is on the minimum."""

    @property
    def slack(self) -> float:
        """How large the L2 norm of the gradient may be where the solver stops, rounding included."""
        return self.precision.slack

    @property
    def certificate(self) -> Laplace | None:
        """The noise on the weights that covers what the solver leaves open; None where noise is on the minimum."""
        found = [part for part in self.event.parts if isinstance(part, Laplace) and part.purpose == CERTIFICATE]
        return found[0] if found else None


def with_certificate(plan: ERMPlan) -> ERMPlan:
    """The plan with the noise on the weights that covers what the solver and the lattice of the objective noise leave
    open.

    Two minima that are known up to a gradient of L2 norm g lie within 2 g / ridge of where they would be: at most
    sqrt(values) times that in L1, and a lattice step per value.
    """
    values, epsilon = plan.gradients.values, plan.facts.parameters.budget.epsilon
    assert plan.noise is not None
    certified = plan.slack + plan.noise.lattice_error
    apart = 2 * certified * math.sqrt(values) / plan.ridge
    if not apart * COARSEST >= values * 2.0**-MOST_FINE:
        raise PrivacyError(
            f"A ridge of {plan.ridge:.3g} was asked for; weights would be smaller than the lattice that they are "
            "released on. Use a smaller one, or 'auto'."
        )
    fine = min(math.ceil(math.log2(OUTPUT_STEPS * values / apart)), MOST_FINE, finest(plan.precision))
    unit = 1 << max(0, fine)
    sensitivity = math.ceil(apart * unit / SAFE) + values
    part = Laplace(
        size=values,
        scale=laplace_scale(sensitivity, exact(epsilon) * exact(FOR_CERTIFICATE)),
        sensitivity=sensitivity,
        unit=unit,
        purpose=CERTIFICATE,
        epsilon=epsilon * FOR_CERTIFICATE,
    )
    return replace(plan, event=replace(plan.event, parts=(*plan.event.parts, part)))


def finest(precision: Precision) -> int:
    """The logarithm of the finest lattice on which every point of the ball is a 64-bit integer, with room for noise.

    A ball that no lattice of integers can hold is refused, from public facts.
    """
    if not precision.ball < 2.0**MOST_BITS:
        raise PrivacyError(
            f"The weights that this ridge and this noise allow are up to {precision.ball:.3g} long, beyond all 64-bit "
            "integers. "
            "Use a larger ridge or epsilon. Nothing was charged."
        )
    return MOST_BITS - math.ceil(math.log2(max(precision.ball, 1e-300)))
