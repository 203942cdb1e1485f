"""What the functional mechanism minimises, plans, sums and fits; and the noise of its moments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.losses import QuadraticLoss
from privfit.mechanisms.base import Description, ReleasePlan
from privfit.mechanisms.functional import defaults
from privfit.privacy import Draws, Event, PrivacyParameters
from privfit.privacy.parts import Additive, KNorm
from privfit.solvers import (
    NoiseLevel,
    Penalty,
    Solution,
    consistent,
)
from privfit.statistics import (
    Moments,
    MomentValues,
    Norm,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NORMS: dict[str, Norm] = {"laplace": "l1", "linf": "linf", "l2": "l2", "gaussian": "l2"}
"""The norm in which each kind of noise needs the sensitivity."""
MOSTLY_NOISE = (
    "noise dominates more than half of the directions: what is left is mostly a cautious guess; more rows, fewer "
    "columns or a larger epsilon would help"
)


@dataclass(frozen=True)
class QuadraticProblem:
    """What is minimised: a loss of degree two, with or without an intercept, with or without a penalty on the
    coefficients.

    `spread` buys the sum of the target's squares besides, for intervals.
    """

    loss: QuadraticLoss
    fit_intercept: bool = True
    spread: bool = False
    penalty: Penalty | None = None
    max_weight: float | None = None
    """The bound of rows' weights, where they have some."""
    probabilities: bool = False
    """Whether the length of the coefficients is calibrated, so that scores are log-odds."""
    interactions: int | str = 0
    """How many interaction terms are asked for, where a perturbed objective is minimised."""
    apart: tuple[str, ...] = ()
    """Names of columns that have no interaction terms."""


@dataclass(frozen=True)
class LinearFit:
    """Weights of the encoded columns, the intercept, and what it took to find them."""

    weights: Floats
    intercept: float
    target_mean: float
    solution: Solution
    moments: MomentValues
    penalty: tuple[Floats, Floats] | None = None
    """What multiplied |c_j| and c_j^2 / 2, per column shown, where there was a penalty."""
    gap: float = 0.0
    length: float = 1.0
    """By what the coefficients were stretched to become log-odds."""
    at_edge: ClassVar[bool] = False
    """A quadratic has no interval whose edge could matter."""

    @property
    def rows(self) -> float:
        """The number of rows that alpha is per."""
        return self.moments.n_rows


@dataclass(frozen=True)
class MomentsPlan(ReleasePlan):
    """The moments that are released."""

    moments: Moments
    every_entry: bool = field(default=False, kw_only=True)
    """Whether all entries of X'X get noise of their own, equal ones too."""


@dataclass(frozen=True)
class FunctionalPlan(MomentsPlan):
    """The moments that are released, and what they are for."""

    problem: QuadraticProblem


@dataclass(frozen=True)
class ExactMoments:
    """The moments of all rows that are released, without noise; `n_rows` is their number where it is public."""

    values: Integers
    n_rows: int | None

    @classmethod
    def of(cls, plan: MomentsPlan, sums: Integers, n_rows: int) -> ExactMoments:
        """The values that the plan releases, of exact sums over so many rows."""
        adjacency = plan.facts.parameters.adjacency
        if plan.every_entry:
            d = plan.facts.geometry.n_columns
            return cls(np.concatenate([sums[:d, :d].ravel(), sums[:d, -1]]).astype(np.int64), n_rows)
        return cls(plan.moments.distinct(sums, n_rows, adjacency), n_rows if adjacency == "replace-one" else None)

    def with_noise(self, plan: MomentsPlan, draws: Draws) -> MomentValues:
        """The next draw of noise added, and what must add up in every table made to add up again (not where every
        entry has noise of its own: then w'Mw sees the symmetric part, and nothing else is done).
        """
        if plan.every_entry:
            return _whole_matrix(plan.moments, draws.add(self.values).astype(np.float64), float(self.n_rows or 0))
        return consistent(plan.moments, draws.add(self.values).astype(np.float64), self.n_rows)


def _whole_matrix(moments: Moments, noisy: Floats, n_rows: float) -> MomentValues:
    """Moments whose matrix has noise on every entry, made symmetric."""
    d = moments.geometry.n_columns
    matrix = noisy[: d * d].reshape(d, d) / moments.unit
    return MomentValues((matrix + matrix.T) / 2, noisy[d * d :] / (moments.unit * moments.target_weight), n_rows)


def moments_event(
    mechanism: str,
    moments: Moments,
    parameters: PrivacyParameters,
    kind: str,
    *,
    sensitivity: int | None = None,
    n_values: int | None = None,
    share: float = 1.0,
) -> Event:
    """One draw of noise of this kind on all moments. Sensitivity and number of values are those of the moments, unless
    others are printed somewhere.
    """
    adjacency, rows_per_person = parameters.adjacency, int(parameters.rows_per_person)
    if sensitivity is None:
        sensitivity = moments.row_sensitivity(parameters, NORMS[kind])
    values = moments.n_values(adjacency) if n_values is None else n_values
    if kind == "gaussian":
        return Event.gaussian(
            mechanism,
            parameters.budget,
            sensitivity=sensitivity,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            unit=moments.unit,
            n_values=values,
        )
    return Event.pure(
        mechanism,
        parameters.budget,
        noise=kind,
        sensitivity=sensitivity,
        adjacency=adjacency,
        rows_per_person=rows_per_person,
        unit=moments.unit,
        n_values=values,
        blocks=moments.parts(adjacency) if kind == "linf" else (),
        share=share,
    )


def noise_level(moments: Moments, event: Event, target_mean: float = 0.0) -> NoiseLevel:
    """The standard deviations of the noise on the matrix's and the vector's entries, in units of 1."""
    part = event.main[0]
    assert isinstance(part, Additive)
    first = last = part.sd
    if isinstance(part, KNorm) and part.norm == "linf":
        first, last = (part.block_sd(block) * part.scale / part.unit for block in (0, -1))
    return NoiseLevel(first * moments.scale, last * moments.scale / moments.target_weight, target_mean)


def noise_kind(event: Event) -> str:
    """What `noise=` calls the noise of a release."""
    return {"k-norm-linf": "linf", "k-norm-l2": "l2", "discrete-gaussian": "gaussian"}.get(event.kinds[0], "laplace")


def described_repair(repair: str, solution: Solution) -> Description:
    """What was done to a noisy quadratic, and a caution where noise has hidden most of it."""
    directions = len(solution.weights)
    repairs = {
        "kind": repair,
        "ridge": solution.ridge,
        "eigenvalues_changed": solution.eigenvalues_changed,
        "directions_kept": solution.directions_kept,
        "directions": directions,
        "bounded": solution.bounded,
    }
    drowned = repair == "floor" and solution.directions_kept < directions / 2
    return Description(repairs, (MOSTLY_NOISE,) if drowned else ())


def expected_error(plan: FunctionalPlan) -> float:
    """The variance that `target_weight` makes small: what noise does to weights of the usual size."""
    noise = noise_level(plan.moments, plan.event)
    return noise.vector**2 + (noise.matrix * defaults.EXPECTED_WEIGHT_NORM) ** 2
