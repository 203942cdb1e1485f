"""Quantile regression by a perturbed objective: a rounded pinball loss, at a scale that is chosen privately.

One release, as for the mean: the target's centre, its spread, the weights, and last a quantile of what they leave, so
that the intended share of targets is below the predictions.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privfit.losses import ConvexLoss, smooth_pinball
from privfit.losses.tabulated import TabulatedLoss, tables_of
from privfit.mechanisms.base import Description, PublicFacts
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.perturbation.interaction_terms import integer_weights
from privfit.mechanisms.perturbation.regression import (
    ObjectiveRegression,
    RegressionPlan,
)
from privfit.mechanisms.perturbation.regression_fit import RegressionFit
from privfit.mechanisms.perturbation.regression_weights import RegressionWeights
from privfit.mechanisms.perturbation.target_scale import CENTRES, EDGES, MOST_BEYOND, signal_of
from privfit.privacy import Draws, PrivacyParameters
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Part, Selection
from privfit.rows import COUNT_UNIT, CachedDesign, count_residuals_up_to, weighed_rows
from privfit.schema import Geometry, RowNorms, Schema

Floats = NDArray[np.float64]

FOR_QUANTILE = Fraction(12, 100)
"""The share of epsilon for the shift of the intercept. Chosen, not measured."""
WIDTH = 0.125
"""The corner of the loss is rounded over so much of the threshold, which about a third of the targets lie beyond: wider
has more bias, narrower needs more ridge. `python papers/experiments/quantiles.py` measures the whole."""
SHARP_FROM = 5_000.0
"""With intervals the width falls with the third root of rows times epsilon per column, from here on: more of it leaves
more bias, less widens intervals. With 100 runs of the median at 50,000 rows and epsilon 2, four columns, the interval
of the coefficient that errors spread with covered in 80% with the width above, and with this one in 90%, 4% wider:
python papers/experiments/coverage.py --models."""
DENSITY_WIDTH = 0.25
"""The same for the Hessian that intervals are made of. Twice the width halves its noise and, where errors are
exponential, makes it some 5% too large, which makes intervals too narrow by as much."""
SHIFT_WIDTH = 2.0
"""Shifts are chosen within so many thresholds of zero, in 256 cells. Chosen, not measured."""
SHARP_CELLS = 2048
"""With intervals in so many: of 256, one is three times as wide as the error of a median of 50,000 rows, which then
depends on where in its cell the median lies. The interval of the intercept covered in 74% of 200 runs at a correlation
of .9 and epsilon 1, and with these in 88%: python papers/experiments/coverage.py --line. More cells cost time only."""
PARTS_OF_ONE = 1 << 20
"""A quantile is rounded to one in so many for the choice of a shift: scores are integers."""


@dataclass(frozen=True)
class QuantileWeights(RegressionWeights):
    """The weights of a quantile regression, in units of the threshold.

    Guarantee: docs/proofs/quantile-objective.md, Lemma 1 and Theorem 1.
    """

    quantile: float = 0.5
    width: float = WIDTH
    """The share of the threshold over which the corner is rounded: a public number."""

    has_own_loss = False

    def loss_at(self, centre: float, threshold: float) -> ConvexLoss:
        """The pinball loss, rounded over a share of the threshold."""
        return smooth_pinball(self.quantile, self.width, centre, threshold)


@dataclass(frozen=True)
class QuantileObjective(ObjectiveRegression):
    """A quantile by a perturbed objective.

    Four parts share epsilon: the target's centre (2%), a threshold that about a third of the targets lie beyond (3%),
    the weights (83%) and the quantile of what these leave (12%).

    Parameters
    ----------
    noise : {'auto', 'laplace', 'l2', 'linf', 'mixed', 'gaussian'}, default='auto'
        The distribution of the random term, as in `ObjectivePerturbation`.
    quantile : float, default=0.5
        The quantile, above 0 and below 1.
    sharp : bool, default=False
        Whether the corner of the loss is rounded less the more rows and epsilon there are, as intervals need: with less
        bias and more noise.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/quantile-objective.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    quantile: float = 0.5
    sharp: bool = False

    name = "objective quantile"
    _for_intercept: ClassVar[Fraction] = FOR_QUANTILE
    _kind: ClassVar[str] = "a quantile regression"
    _has_bands: ClassVar[bool] = False
    _has_terms: ClassVar[bool] = False

    def _weights(self, problem: QuadraticProblem, facts: PublicFacts | None = None) -> QuantileWeights:
        width = sharp_width(facts) if self.sharp and facts is not None else WIDTH
        return QuantileWeights(noise=self.noise, quantile=self.quantile, width=width)

    def _noise_on_predictions(self, sd: float, norms: RowNorms, rows: int) -> float:
        """As if it were large: slopes do not depend on the threshold, and about a third of targets may be beyond."""
        return MOST_BEYOND

    def _last_parts(self, facts: PublicFacts, epsilon: Fraction, bits: int, unit: int) -> tuple[Part, ...]:
        """A choice among shifts, by scores in which a row of the largest weight counts `unit` times."""
        sensitivity = shift_sensitivity(facts.parameters, self.quantile) * unit
        choice = Selection(
            rule="permute-and-flip",
            scale=laplace_scale(sensitivity, epsilon),
            sensitivity=sensitivity,
            purpose="quantile of residuals",
            epsilon=float(epsilon),
        )
        return (choice,)

    def draw(self, data: CachedDesign, plan: RegressionPlan, draws: Draws) -> RegressionFit:
        """As for a mean; the fit says how far the corner was rounded."""
        assert isinstance(plan.steps, QuantileWeights)
        return replace(super().draw(data, plan, draws), rounding=plan.steps.width)

    def _moved(
        self, fit: RegressionFit, weights: Floats, data: CachedDesign, plan: RegressionPlan, draws: Draws
    ) -> RegressionFit:
        """The fit moved by the noisy quantile of the residuals it leaves."""
        width = SHIFT_WIDTH * fit.threshold
        whole = integer_weights(weights * (fit.threshold / width), plan.bits)
        edges, centres = self._cells
        counts = count_residuals_up_to(data, whole, fit.centre, width, plan.bits, edges)
        rows = weighed_rows(data, COUNT_UNIT if data.weighted else 1)
        shift = width * float(centres[draws.select(shift_scores(counts.tolist(), rows, self.quantile))])
        return replace(fit, shift=shift, intercept=fit.centre + shift)

    @property
    def _cells(self) -> tuple[Floats, Floats]:
        """Inner ends and centres of the cells of shifts, as shares of how far these reach."""
        if not self.sharp:
            return EDGES, CENTRES
        ends = np.linspace(-1.0, 1.0, SHARP_CELLS + 1)
        return ends[1:-1], (ends[1:] + ends[:-1]) / 2

    def for_intervals(self) -> Self:
        """With a corner that is rounded less, where rows and epsilon allow that."""
        return replace(self, sharp=True)

    def answers(self, loss: ConvexLoss, plan: RegressionPlan) -> TabulatedLoss:
        """With a Hessian of a corner that is rounded more: it is the density of targets at the quantile."""
        own: Any = getattr(loss.slope, "__self__", None)
        wider = tables_of(smooth_pinball(self.quantile, DENSITY_WIDTH, own.centre, own.threshold))
        return replace(tables_of(loss), curvature=wider.curvature, most_curvature=wider.most_curvature)

    def noise_on_level(self, fit: RegressionFit, plan: RegressionPlan, rows: float) -> float:
        """That of the rank that is chosen, and of the width of a cell: ranks change with a shift as the slopes do."""
        choice = plan.intercept[-1]
        assert isinstance(choice, Selection)
        ranks = (
            math.sqrt(2)
            * choice.scale
            / (PARTS_OF_ONE * (1 if plan.weights.problem.max_weight is None else COUNT_UNIT))
        )
        return math.hypot(ranks / max(rows, 1.0), SHIFT_WIDTH * 2 / len(self._cells[1]) / math.sqrt(12))

    def describe(self, fit: RegressionFit, schema: Schema, geometry: Geometry) -> Description:
        """The width of the rounding, and what was done after the weights."""
        target = geometry.target
        assert target is not None
        width = fit.rounding * fit.threshold * target.unit
        notes = [f"the corner of the pinball loss was rounded over about {width:.4g}, a width chosen privately"]
        if fit.intercept:
            notes.append("the intercept was moved by a quantile, chosen privately, of what the weights leave")
        return Description({"kind": "ridge", "ridge": fit.ridge, "width": width}, tuple(notes))


def sharp_width(facts: PublicFacts) -> float:
    """Over how much of the threshold the corner is rounded where intervals are bought: from public facts."""
    return WIDTH * min(1.0, math.cbrt(SHARP_FROM / max(signal_of(facts), 1.0)))


def _numerator(quantile: float) -> int:
    """The quantile in PARTS_OF_ONE."""
    return min(max(round(quantile * PARTS_OF_ONE), 1), PARTS_OF_ONE - 1)


def shift_sensitivity(parameters: PrivacyParameters, quantile: float) -> int:
    """The most by which a person can change the difference of two shifts' scores.

    Guarantee: docs/proofs/quantile-objective.md, Lemma 2.
    """
    part = _numerator(quantile)
    row = PARTS_OF_ONE if parameters.adjacency == "replace-one" else max(part, PARTS_OF_ONE - part)
    return 2 * row * int(parameters.rows_per_person)


def shift_scores(counts: list[int], rows: int, quantile: float) -> list[int]:
    """Minus how far the ranks of a cell are from that of the quantile, in PARTS_OF_ONE of a row."""
    wanted = _numerator(quantile) * rows
    ends = [PARTS_OF_ONE * count for count in (0, *counts, rows)]
    return [-max(below - wanted, wanted - up_to, 0) for below, up_to in itertools.pairwise(ends)]
