"""Gradients of a loss, summed over rows: their sensitivity, and the cost of the Hessian in the density of a minimum
(the log-determinant term).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from privfit.losses import ConvexLoss
from privfit.schema import Norm, RowNorms

LARGEST_EXPONENT = 700.0
"""exp overflows beyond; a log-determinant term that may cost more than this needs hardly any ridge."""
UNSTATED = 2.0
"""A safety factor on a smoothness or an excess that a grid finds: it costs a factor of sqrt(2) in passes of a solver
that is hardly ever used (`solvers/accelerated.py`).
"""
Coupling = Literal["one", "softmax", "one-vs-rest"]


@dataclass(frozen=True)
class Gradients:
    """The gradients of a loss over rows with these norms, of one linear predictor or of one per class.

    `coupling` says how several classes share a row: "softmax" is logistic regression for all of them together,
    "one-vs-rest" is the loss of every class against the others, added up. A person has at most `rows_per_person` rows
    that leave and, where neighbours replace rows, as many that enter.

    Guarantee: docs/proofs/perturbation.md, Lemmas 1 to 3.
    """

    norms: RowNorms
    loss: ConvexLoss
    classes: int = 1
    coupling: Coupling = "one"
    rows_per_person: int = 1
    replace: bool = True
    values: int = field(init=False, repr=False, compare=False)
    """How many weights there are."""
    slope_norm: dict[Norm, float] = field(init=False, repr=False, compare=False)
    """The largest norms of a row's slopes: the Lipschitz constant of the loss, times what classes add to it."""
    gradient_norm: dict[Norm, float] = field(init=False, repr=False, compare=False)
    """The largest norms of one row's gradient."""
    sensitivity: dict[Norm, float] = field(init=False, repr=False, compare=False)
    """The largest differences, in these norms, of neighbours' sums of gradients at the same weights."""
    smoothness: float = field(init=False, repr=False, compare=False)
    """A bound of the largest eigenvalue of a row's Hessian in its predictors; twice what a grid finds where the loss
    states none.
    """
    self_bound: float = field(init=False, repr=False, compare=False)
    """Over epsilon it is the least ridge at which noise that is calibrated to this epsilon for gradients alone covers
    the log-determinant term as well, if the slopes of several predictors add up in its norm: where the curvature is
    self-bounded (`ConvexLoss.taper`), a row with the largest slope has no curvature left. Infinite if there is none.
    """
    offset: float = field(init=False, repr=False, compare=False)
    """How far from zero the predictors of a row are computed, in L2."""
    excess_at_zero: float = field(init=False, repr=False, compare=False)
    """The most by which a row's loss at zero weights exceeds its infimum; infinite where the loss does not say."""
    likely_excess: float = field(init=False, repr=False, compare=False)
    """The same, or where it is not stated, twice what a grid finds: how long minima are planned to be."""

    def __post_init__(self) -> None:
        """Softmax slopes are probabilities less the indicator of the row's class: their positive part sums to at most
        1, and so does their negative part. The largest eigenvalue of diag(p) - pp' is a half.
        """
        loss, norms, classes, softmax = self.loss, self.norms, self.classes, self.coupling == "softmax"
        several: dict[str, tuple[float, float]] = {
            "one": (1.0, 1.0),
            "softmax": (2.0, math.sqrt(2.0)),
            "one-vs-rest": (float(classes), math.sqrt(classes)),
        }
        (l1, l2), lipschitz = several[self.coupling], loss.most_slope
        assert lipschitz is not None
        slopes: dict[Norm, float] = {"l1": lipschitz * l1, "l2": lipschitz * l2, "linf": lipschitz}
        largest: dict[Norm, float] = {"l1": norms.l1, "l2": norms.l2, "linf": norms.linf}
        gradients = {norm: slopes[norm] * largest[norm] for norm in slopes}
        neighbours = (2 if self.replace else 1) * self.rows_per_person
        curvature = loss.smoothness if loss.most_curvature is None else loss.most_curvature
        if curvature is None and not softmax:
            curvature = UNSTATED * loss.found_smoothness()
        free = math.inf
        if loss.taper is not None and not softmax:
            free = loss.taper * neighbours * classes * lipschitz * norms.l2**2
        excess = math.inf if loss.excess_at_zero is None else classes * loss.excess_at_zero
        excess = math.log(classes) if softmax else excess
        found = math.inf if loss.likely_excess is None else UNSTATED * classes * loss.likely_excess
        derived = {
            "values": norms.columns * classes,
            "slope_norm": slopes,
            "gradient_norm": gradients,
            "sensitivity": {norm: neighbours * gradients[norm] for norm in gradients},
            "smoothness": 0.5 if softmax else curvature,
            "self_bound": free,
            "offset": loss.offset * (math.sqrt(classes) if self.coupling == "one-vs-rest" else 1.0),
            "excess_at_zero": excess,
            "likely_excess": min(excess, found),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def corners(self) -> int:
        """How many corners, other than none at all, the set of a row's slopes has."""
        if self.coupling == "one":
            return 1 if self.loss.one_sided else 2
        return self.classes - 1 if self.coupling == "softmax" else 2**self.classes - self.loss.one_sided

    # -- second derivatives: what the log-determinant term costs -----------------------------------

    def log_determinant_cost(self, ridge: float) -> float:
        """The most by which the rows of one person change the log-determinant of the Hessian, with this ridge: an
        amount of epsilon.
        """
        directions, curvature = self._row_curvature
        return self.rows_per_person * directions * math.log1p(curvature * self.norms.l2**2 / ridge)

    def ridge_for_cost(self, cost: float) -> float:
        """The least ridge at which `log_determinant_cost` is at most this much."""
        directions, curvature = self._row_curvature
        share, row = cost / (self.rows_per_person * directions), curvature * self.norms.l2**2
        return row / math.expm1(share) if share < LARGEST_EXPONENT else row * math.exp(-LARGEST_EXPONENT)

    @property
    def _row_curvature(self) -> tuple[int, float]:
        """The rank of a row's Hessian in its predictors, and a bound of the mean of its eigenvalues."""
        if self.coupling == "softmax":  # the trace of diag(p) - p p' is at most 1 - 1 / classes
            return self.classes - 1, 1 / self.classes
        curvature = self.loss.most_curvature
        return self.classes, math.inf if curvature is None else curvature
