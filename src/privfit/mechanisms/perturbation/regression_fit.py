"""What a regression by a perturbed objective is, the penalty that its coefficients are shown to have had, and rules of
public facts that several regressions follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.perturbation.absolute_penalty import SparseWeights
from privfit.mechanisms.perturbation.certainty import Certainty
from privfit.mechanisms.perturbation.defaults import MOMENTS_FROM, OBJECTIVE_FROM
from privfit.mechanisms.perturbation.problem import PairTable
from privfit.privacy import Budget, PrivacyError, PrivacyParameters, exact
from privfit.schema import Block, Geometry
from privfit.solvers import Penalty

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionFit:
    """Weights of the encoded columns without the constant, and the intercept, where half the target's range is 1."""

    weights: Floats
    intercept: float
    centre: float
    threshold: float
    ridge: float
    shift: float = 0.0
    """The noisy mean of the residuals that the weights leave, which is part of the intercept."""
    contrast_ridge: float = 0.0
    """The penalty on effects by the public rule: on contrasts of blocks and on single columns."""
    bands: Floats | None = None
    """Half the width of a 90% band of what every encoded column adds about the mean of its block: noise alone."""
    penalty: tuple[Floats, Floats] | None = None
    """What multiplied |c_j| and c_j^2 / 2, per column shown, where there was a penalty."""
    sparse: SparseWeights | None = None
    """The weights in units of the threshold, where there was a penalty on absolute values."""
    rows: float = 0.0
    """The number of rows that alpha is per, where it is."""
    pairs: tuple[PairTable, ...] = ()
    """Interaction terms that count beside the weights."""
    rounding: float = 0.0
    """The width over which a corner of the loss is rounded, in units of the threshold, where it has one."""
    certainty: Certainty | None = None
    """How sure the weights are, in units of `unit`, where that was bought."""
    gap: ClassVar[float] = 0.0
    """A minimum is certified."""

    @property
    def unit(self) -> float:
        """The unit of weights in the objective."""
        return self.threshold


def with_shown_penalty(fit: RegressionFit, geometry: Geometry, penalty: Penalty, times: float) -> RegressionFit:
    """The fit with the penalty on every coefficient that is shown: beside half the sum of squared errors, in the units
    of the table. Rows count up to so many `times`.
    """
    target = geometry.target
    assert target is not None
    absolute: list[float] = []
    squared: list[float] = []
    for block in geometry.blocks:
        strength = 0.0 if fit.sparse is None else float(fit.sparse.strengths[block.start])
        unit = coefficient_unit(block)
        size = 0.5 if block.kind == "sign" else math.sqrt(unit)
        rule = strength * size * target.unit * fit.threshold, fit.contrast_ridge * unit
        if penalty.alpha != "auto":
            alpha = float(penalty.alpha) * (1.0 if penalty.ridge else fit.rows) / times
            rule = alpha * penalty.l1_ratio, alpha * (1 - penalty.l1_ratio)
        absolute += [rule[0] * times] * len(block.labels)
        squared += [rule[1] * times] * len(block.labels)
    return replace(fit, penalty=(np.array(absolute), np.array(squared)))


def check_rows(penalty: Penalty, facts: PublicFacts, problem: QuadraticProblem) -> None:
    """Refuse an alpha that is per row where nobody knows how many rows there are, or how much they weigh."""
    if penalty.ridge or penalty.alpha == "auto":
        return
    if facts.n_rows is None:
        raise PrivacyError(
            f"alpha={penalty.alpha!r} was given with mechanism='objective' and a private number of rows, which alpha "
            "is a penalty per row of. Give a public guess, expected_rows=..., or use alpha='auto' or "
            "mechanism='functional'. Nothing was charged."
        )
    if problem.max_weight is not None:
        raise PrivacyError(
            f"alpha={penalty.alpha!r} was given with mechanism='objective' and weights of rows, whose sum is private "
            "and which alpha is a penalty per unit of. Use alpha='auto' or mechanism='functional'. Nothing was charged."
        )


def coefficient_unit(block: Block) -> float:
    """What a penalty on a squared weight is on the squared coefficients that it is shown as."""
    if block.kind == "slope":
        return block.unit**2
    return 0.5 if block.kind == "sign" else 1.0


def perturbs_objective(parameters: PrivacyParameters, n_rows: int | None, geometry: Geometry) -> bool:
    """Whether "auto" fits a regression by a perturbed objective and not by moments, from public facts; by moments where
    the number of rows is not known.
    """
    signal = (n_rows or 0) * parameters.budget.epsilon / parameters.rows_per_person
    return OBJECTIVE_FROM <= signal < MOMENTS_FROM * geometry.n_columns * geometry.l2**4


def rounded_down(budget: Budget, share: Fraction) -> Budget:
    """A share of epsilon, and all of delta."""
    whole = exact(budget.epsilon) * share
    part = float(whole)
    return Budget(part if exact(part) <= whole else math.nextafter(part, 0.0), budget.delta)
