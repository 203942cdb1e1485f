"""Boosting of AdaSSP: rounds that fit what the fit so far has left of the target, and what such a release is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import ReleasePlan
from privfit.mechanisms.functional.budget_split import BudgetSplit
from privfit.mechanisms.functional.problem import ExactMoments
from privfit.privacy import Adjacency, Draws
from privfit.rows import Rows
from privfit.schema import Geometry
from privfit.solvers import plausible_mean
from privfit.solvers.adaptive import AdaptiveRidge
from privfit.statistics import STEP, Moments, MomentValues
from privfit.statistics.residuals import WEIGHT_STEP, AbsoluteResidual, ResidualMoments, whole_weights
from privfit.tables import NOT_CHARGED, DataError

if TYPE_CHECKING:
    from privfit.mechanisms.functional.adassp import AdaSSP

Floats = NDArray[np.float64]


LEAST_CUT = 1.5
"""Residuals are cut at this multiple of their mean size at least: a smaller one has less noise and more bias. Not
measured."""
CUT = 0.4
"""Residuals are cut at their mean size times this, over the root of what noise would do to predictions if they were not
cut; times LEAST_CUT at least.
"""
SPREAD_MARGIN = 1.5
"""How many standard deviations of its noise are added to the mean size of residuals."""
LEAST_BOUND = 2.0**-12
"""The least cut, as a share of the target's range: below it the lattice of residuals would have no bits left."""


@dataclass(frozen=True)
class Adapted:
    """What was released: moments, the smallest eigenvalue, and the weights that rounds of residuals led to, if there
    were any.

    With rounds, `moments.with_target` has the products with what was left of the target before the last one.
    """

    moments: MomentValues
    smallest: float
    weights: Floats | None = None

    target_square: ClassVar[None] = None
    """Not bought, so that there are no intervals."""


@dataclass(frozen=True)
class AdaptivePlan(ReleasePlan):
    """The moments that are released first, and how the price is split."""

    moments: Moments
    split: BudgetSplit
    shares: dict[str, Fraction]


@dataclass(frozen=True)
class AdaptiveSums:
    """Exact moments, their smallest eigenvalue and the sum of the target; and the rows, which boosting reads again."""

    rows: Rows
    exact: ExactMoments
    smallest: int
    target_sum: int


@dataclass(frozen=True)
class Boosting:
    """The rounds of one release: each sums what the fit so far has left of the target, adds noise, and fits that.

    Guarantee: docs/proofs/adassp.md, Theorem 1; every sensitivity is a function of public facts and of what has been
    released before.
    """

    mechanism: AdaSSP
    data: AdaptiveSums
    plan: AdaptivePlan
    draws: Draws
    value: Adapted

    def _sum(self, statistic: AbsoluteResidual | ResidualMoments) -> NDArray[np.int64]:
        """A later reading of the table: after the charge, so an error must not say that nothing was charged."""
        try:
            return self.data.rows.sum(statistic)
        except DataError as error:
            told = str(error).replace(NOT_CHARGED, "")
        raise DataError(f"{told} The table was being read again, and is not what it was at first. The charge stands.")

    @property
    def geometry(self) -> Geometry:
        """The shape of encoded rows."""
        return self.plan.facts.geometry

    @property
    def split(self) -> BudgetSplit:
        """How the price is split."""
        return self.plan.split

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours that the promise is about."""
        return self.plan.facts.parameters.adjacency

    @property
    def n_rows(self) -> float:
        """The number of rows: public, as released, or a public guess; without any of them nothing is taken for too
        large.
        """
        n_rows = self.value.moments.n_rows
        if math.isnan(n_rows):
            return float(self.plan.facts.parameters.expected_rows or math.inf)
        return max(n_rows, 1.0)

    def drawn(self) -> Adapted:
        """All rounds, from the sum of the target on."""
        moments = replace(self.value.moments, n_rows=self.n_rows)
        ridge = AdaptiveRidge(moments, self.geometry, self.value.smallest, self.plan.event.noise_sd)
        weights = np.zeros(self.geometry.n_columns)
        mean_sd = 0.0
        if self.geometry.intercept:
            weights[0], mean_sd = self._mean(self.data.target_sum)
        bound = self._bound(ridge, weights, mean_sd)
        for t in range(self.mechanism.rounds):
            whole = whole_weights(weights)
            left = self._left(ResidualMoments(self.geometry, whole, bound), self.plan.shares[f"round {t + 1}"])
            weights = np.array(whole) / WEIGHT_STEP + ridge.step(left).weights
        return Adapted(replace(moments, with_target=left), self.value.smallest, weights)

    def _mean(self, target_sum: int) -> tuple[float, float]:
        """The noisy mean of the target, and how noisy it is."""
        unit = STEP * STEP
        sensitivity = unit * (1 if self.adjacency == "add-remove" else 2)
        noisy = float(self.draws.add(np.array([target_sum]))[0])
        sd = self.split.sd(self.split.scale(sensitivity, self.plan.shares["the target's mean"])) / unit / self.n_rows
        return plausible_mean(noisy / unit / self.n_rows, sd), sd

    def _bound(self, ridge: AdaptiveRidge, weights: Floats, mean_sd: float) -> float:
        """Where residuals are cut: as given, or a multiple of the noisy mean of their size."""
        if self.mechanism.residual_bound != "auto":
            return float(self.mechanism.residual_bound)
        statistic = AbsoluteResidual(self.geometry, whole_weights(weights))
        scale = self.split.scale(
            statistic.sensitivity(self.adjacency, self.split.norm), self.plan.shares["the target's spread"]
        )
        noisy = float(self.draws.add(self._sum(statistic), scale=scale)[0]) / statistic.unit
        sd = self.split.sd(scale) / statistic.unit / self.n_rows
        spread = max(noisy / self.n_rows, 0.0) + SPREAD_MARGIN * sd + mean_sd
        multiple = max(LEAST_CUT, CUT / math.sqrt(max(ridge.error_in_predictions(self._last_sd()), LEAST_BOUND**2)))
        return float(np.clip(multiple * spread, LEAST_BOUND, 1.0))

    def _last_sd(self) -> float:
        """The standard deviation of the noise in the last round, if residuals were not cut."""
        widest = ResidualMoments(self.geometry, (0,) * self.geometry.n_columns)
        sensitivity = widest.sensitivity(self.adjacency, self.split.norm)
        return (
            self.split.sd(self.split.scale(sensitivity, self.plan.shares[f"round {self.mechanism.rounds}"]))
            / widest.unit
        )

    def _left(self, statistic: ResidualMoments, share: Fraction) -> Floats:
        """Noisy products of the columns with residuals, held where those of any table would be."""
        scale = self.split.scale(statistic.sensitivity(self.adjacency, self.split.norm), share)
        noisy = self.draws.add(self._sum(statistic), scale=scale) / statistic.unit
        most = statistic.bound * self.n_rows
        return np.clip(noisy, -most, most)
