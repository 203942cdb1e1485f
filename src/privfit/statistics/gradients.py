"""Gradients of a loss, summed over rows: how far one person can move them, and how much one person can bend the
objective.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from privfit.features import RowNorms
from privfit.losses import ConvexLoss
from privfit.schema import Norm

MUCH = 700.0
UNSTATED = 2.0
"""A safety factor on the smoothness that a grid finds: it costs a factor of sqrt(2) in passes of a solver that is
hardly ever used.
"""
Coupling = Literal["one", "softmax", "one-vs-rest"]


@dataclass(frozen=True)
class Gradients:
    """The gradients of a loss over rows with these norms, of one linear predictor or of one per class.

    `coupling` says how several classes share a row: "softmax" is logistic regression for all of them together,
    "one-vs-rest" is the loss of every class against the others, added up. A person has at most `people` rows that leave
    and, where neighbours replace rows, as many that enter.

    Guarantee: docs/proofs/perturbation.md, Lemmas 1 to 3.
    """

    norms: RowNorms
    loss: ConvexLoss
    classes: int = 1
    coupling: Coupling = "one"
    people: int = 1
    replace: bool = True

    @property
    def values(self) -> int:
        """How many weights there are."""
        return self.norms.columns * self.classes

    @property
    def most_slope(self) -> float:
        """The largest slope of a row in one predictor."""
        assert self.loss.most_slope is not None
        return self.loss.most_slope

    def of_slopes(self, norm: Norm) -> float:
        """The largest norm of a row's slopes.

        Those of softmax are chances less the row's own class: up by as much in all as that one is down.
        """
        several = {
            "one": {"l1": 1.0, "l2": 1.0, "linf": 1.0},
            "softmax": {"l1": 2.0, "l2": math.sqrt(2.0), "linf": 1.0},
            "one-vs-rest": {"l1": float(self.classes), "l2": math.sqrt(self.classes), "linf": 1.0},
        }
        return self.most_slope * several[self.coupling][norm]

    @property
    def sharpest(self) -> float:
        """By how much a row's slopes can move when its predictors do: the largest eigenvalue of diag(p) - pp' is a
        half.
        """
        return 0.5 if self.coupling == "softmax" else self.loss.sharpest

    @property
    def smoothness(self) -> float:
        """A bound of the largest eigenvalue of a row's Hessian in its predictors, for step lengths: twice what a grid
        finds where the loss states none.
        """
        stated = self.coupling == "softmax" or self.loss.most_curvature is not None or self.loss.smoothness is not None
        return self.sharpest if stated else UNSTATED * self.sharpest

    @property
    def offset(self) -> float:
        """How far from zero the predictors of a row are computed, in L2."""
        return self.loss.offset * (math.sqrt(self.classes) if self.coupling == "one-vs-rest" else 1.0)

    @property
    def excess_at_zero(self) -> float:
        """The most by which a row's loss at zero weights exceeds its infimum; infinite where the loss does not say."""
        if self.coupling == "softmax":
            return math.log(self.classes)
        return math.inf if self.loss.excess_at_zero is None else self.classes * self.loss.excess_at_zero

    @property
    def likely_excess(self) -> float:
        """The same, or where it is not stated, twice what a grid finds: how long minima are planned to be."""
        likely = self.loss.likely_excess
        return self.excess_at_zero if likely is None else min(self.excess_at_zero, UNSTATED * self.classes * likely)

    def of_one_row(self, norm: Norm) -> float:
        """The largest norm of one row's gradient."""
        return self.of_slopes(norm) * self.norms[norm]

    @property
    def corners(self) -> int:
        """How many corners, other than none at all, the set of a row's slopes has."""
        if self.coupling == "one":
            return 1 if self.loss.one_sided else 2
        return self.classes - 1 if self.coupling == "softmax" else 2**self.classes - self.loss.one_sided

    def sensitivity(self, norm: Norm) -> float:
        """How far neighbours' sums of gradients can lie apart, at the same weights."""
        return (2 if self.replace else 1) * self.people * self.of_one_row(norm)

    def bend_cost(self, ridge: float) -> float:
        """The most that the rows of one person change the logarithm of the volume around a minimum, with this ridge: an
        amount of epsilon.
        """
        directions, bend = self._bends
        return self.people * directions * math.log1p(bend * self.norms.l2**2 / ridge)

    def forced_ridge(self, cost: float) -> float:
        """The least ridge at which `bend_cost` is at most this much."""
        directions, bend = self._bends
        share = cost / (self.people * directions)
        return (
            bend * self.norms.l2**2 / math.expm1(share) if share < MUCH else bend * self.norms.l2**2 * math.exp(-MUCH)
        )

    @property
    def _bends(self) -> tuple[int, float]:
        """In how many directions a row bends, and by how much on average over them."""
        if self.coupling == "softmax":  # the trace of diag(p) - p p' is at most 1 - 1 / classes
            return self.classes - 1, 1 / self.classes
        curvature = self.loss.most_curvature
        return self.classes, math.inf if curvature is None else curvature

    def free_ridge(self, epsilon: float, adds_up: bool = True) -> float:
        """The least ridge at which noise that is calibrated to this epsilon for slopes alone covers curvature as well;
        infinite if there is none.

        A row that is as steep as it can be has no curvature left where the loss has a taper. `adds_up` says whether the
        slopes of several predictors add up in the noise's norm.
        """
        if self.loss.taper is None or self.coupling == "softmax" or (self.coupling == "one-vs-rest" and not adds_up):
            return math.inf
        neighbours = (2 if self.replace else 1) * self.people
        return self.loss.taper * neighbours * self.classes * self.most_slope * self.norms.l2**2 / epsilon
