"""AdaSSP: ridge regression on noisy moments with a ridge that adapts, in one step or boosted.

Wang: Revisiting differentially private linear regression, UAI 2018. Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu: Improved differentially private
regression via gradient boosting, 2023. The boosted form fits what the fit before has left of the target, cut at a bound: the noise follows that bound, not the
bounds of the target, and only the last round's noise stays in the fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import QuadraticLoss
from privfit.mechanisms.functional import FunctionalMechanism, LinearFit, Objective, target_weight
from privfit.mechanisms.prices import Prices
from privfit.mechanisms.release import Release, check_ledger
from privfit.privacy import Event, Ledger, Noise, PrivacyError, Terms
from privfit.rows import Rows
from privfit.schema import Geometry, Schema
from privfit.solvers import consistent, plausible_mean
from privfit.solvers.adaptive import AdaptiveRidge, whole_basis
from privfit.statistics import STEP, Moments, MomentValues
from privfit.statistics.eigenvalue import GRID, eigenvalue_sensitivity, smallest_eigenvalue
from privfit.statistics.residuals import WEIGHT_STEP, AbsoluteResidual, ResidualMoments, whole_weights
from privfit.tables import NOT_CHARGED, DataError

Floats = NDArray[np.float64]

BOOSTED_ROUNDS = 4
MOST_ROUNDS = 10
PLAIN_SHARES = {"the moments": Fraction(9, 10), "the smallest eigenvalue": Fraction(1, 10)}
BOOSTED_SHARES = {
    "the moments of features": Fraction(5, 20),
    "the smallest eigenvalue": Fraction(1, 20),
    "the target's mean": Fraction(1, 20),
    "the target's spread": Fraction(1, 20),
}
GROWTH = Fraction(3, 2)
"""How much more each round of residuals is given than the one before: the noise of early rounds is corrected by later ones."""
LEAST_CUT = 1.5
CUT = 0.4
"""Residuals are cut at their mean size times this, over the root of what noise would do to predictions if they were not cut; times LEAST_CUT at least."""
SPREAD_MARGIN = 1.5
"""How many standard deviations of its noise are added to the mean size of residuals."""
LEAST_BOUND = 2.0**-12


@dataclass(frozen=True)
class Adapted:
    """What was released: moments, the smallest eigenvalue, and the weights that rounds of residuals led to, if there were any.

    With rounds, `moments.with_target` has the products with what was left of the target before the last one.
    """

    moments: MomentValues
    smallest: float
    weights: Floats | None = None

    target_square: ClassVar[None] = None
    """Not bought, so that there are no intervals."""


@dataclass(frozen=True)
class AdaSSP:
    """Release moments and their smallest eigenvalue with noise, and fit with a ridge that is as large as the two ask for.

    Parameters
    ----------
    rounds : 1 is AdaSSP. More is its boosted form: the moments of features are released once, then round after round the products of the columns
        with what is left of the target, cut at a bound. It reads the table once more for every round, and once for the bound.
    residual_bound : with more than one round, where residuals are cut: a public share of the half-width of the target's bounds, above 0 and at most 1. "auto"
        buys the target's mean and mean absolute deviation at a twentieth of the price each and cuts at a multiple of that; the multiple grows with the
        number of rows and with epsilon, so that cutting does not bias large fits.

    With a delta the noise is Gaussian and the parts of a release share rho; without one it is Laplace noise and they share epsilon.

    The shares, the growth from round to round and the rule for the bound were chosen on generated tables: python experiments/adassp.py. The smallest eigenvalue needs
    no more than a tenth (a twentieth when boosted): it is compared with the size of the whole noise matrix, beside which its own noise is small.

    Guarantee: (epsilon, delta)-DP with a delta, epsilon-DP without one, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/adassp.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    rounds: int = 1
    residual_bound: float | Literal["auto"] = "auto"

    name = "adassp"
    repair = "adaptive ridge"
    calibration = "tight"
    loss: ClassVar[QuadraticLoss | None] = None

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.rounds, int) or isinstance(self.rounds, bool) or not 1 <= self.rounds <= MOST_ROUNDS:
            raise PrivacyError(
                f"rounds={self.rounds!r} was given; it is a whole number from 1 to {MOST_ROUNDS}. Use 1 for AdaSSP, {BOOSTED_ROUNDS} for its boosted form."
            )
        bound = self.residual_bound
        if bound != "auto" and (isinstance(bound, str | bool) or not isinstance(bound, int | float) or not 0 < bound <= 1):
            raise PrivacyError(
                f"residual_bound={bound!r} was given; it is 'auto' or a share of the half-width of the target's bounds, above 0 and at most 1. Use 'auto' if in doubt."
            )

    def geometry(self, schema: Schema, numeric: Literal["slope", "bins", "splines"], objective: Objective) -> Geometry:
        """How rows are encoded for this mechanism."""
        return FunctionalMechanism().geometry(schema, numeric, objective)

    def shares(self, geometry: Geometry) -> dict[str, Fraction]:
        """Which part of the release has which share of its price, from public facts; they add up to 1."""
        if self.rounds == 1:
            return dict(PLAIN_SHARES)
        shares = dict(BOOSTED_SHARES)
        if not geometry.intercept:
            del shares["the target's mean"]
        if self.residual_bound != "auto":
            del shares["the target's spread"]
        sizes = [Fraction(GROWTH**t) for t in range(self.rounds)]
        rest = Fraction(1 - sum(shares.values())) / sum(sizes)
        return shares | {f"round {t}": rest * size for t, size in enumerate(sizes, start=1)}

    def notes(self, geometry: Geometry) -> tuple[str, ...]:
        """A line for the report: what the price was spent on."""
        parts = ", ".join(f"{part} {float(share):.0%}" for part, share in self.shares(geometry).items())
        return (f"the noise shown is that of the moments; the parts of the release share its price: {parts}",)

    def statistic(self, geometry: Geometry, kind: str) -> Moments:
        """The moments that are released: with the target's products, or without them when rounds of residuals follow."""
        if self.rounds > 1:
            return Moments(replace(geometry, target=None))
        return Moments(geometry, target_units=max(1, round(target_weight(geometry, kind) * STEP)))

    def event(self, geometry: Geometry, terms: Terms) -> Event:
        """The price of everything, and the noise of the moments, from public facts alone."""
        self.check()
        prices, shares = Prices.of(terms), self.shares(geometry)
        moments = self.statistic(geometry, prices.kind)
        self._check_count(moments, geometry, terms)
        sensitivity = max(moments.sensitivity(terms.adjacency, prices.norm), 1)
        widest = ResidualMoments(geometry, (0,) * geometry.n_columns).sensitivity(terms.adjacency, prices.norm)
        prices.scale(max(sensitivity, 2 * widest), min(shares.values()))  # refuses more noise than 64 bits hold, in any part, now
        singles = sum(part in shares for part in ("the smallest eigenvalue", "the target's mean", "the target's spread"))
        rounds = self.rounds if self.rounds > 1 else 0
        return Event(
            mechanism=f"AdaSSP, boosted in {self.rounds} rounds" if rounds else "AdaSSP",
            epsilon=terms.budget.epsilon,
            delta=terms.budget.delta,
            rho=prices.rho,
            adjacency=terms.adjacency,
            rows_per_person=int(terms.rows_per_person),
            noise=prices.kind,
            sensitivity=sensitivity * int(terms.rows_per_person),
            scale=prices.scale(sensitivity, next(iter(shares.values()))),
            unit=moments.unit,
            n_values=moments.n_values(terms.adjacency) + singles + rounds * geometry.n_columns,
        )

    def _check_count(self, moments: Moments, geometry: Geometry, terms: Terms) -> None:
        """Where residuals are cut follows from the number of rows: public, released, or a public guess."""
        known = terms.adjacency == "replace-one" or moments.counts_rows(terms.adjacency) or terms.expected_rows is not None
        if "the target's spread" in self.shares(geometry) and not known:
            raise PrivacyError(
                "residual_bound='auto' was given without an intercept and with adjacency='add-remove'; the bound follows from the number of rows, which nothing "
                "releases here. Give a public guess, expected_rows=..., or a residual_bound between 0 and 1. Nothing was charged."
            )

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Objective) -> Release[Adapted]:
        """Sum the moments exactly, charge the ledger for everything, add noise; then, round by round, sum residuals and add noise."""
        check_ledger(ledger, noise)
        if self.rounds > 1 and rows.passes_once:
            raise DataError(
                f"A {rows.label} was given to a fit in {self.rounds} rounds; it passes by once, and every round reads the table. "
                "Give a table or a file, or use mechanism='adassp'. Nothing was charged."
            )
        geometry = rows.geometry
        event, prices, shares = self.event(geometry, terms), Prices.of(terms), self.shares(geometry)  # public facts only up to here
        moments = self.statistic(geometry, prices.kind)
        if ledger is not None:
            ledger.check(event)
        d = geometry.n_columns
        summed = Moments(geometry, target_units=moments.target_units)
        sums = rows.sum(summed)
        smallest = smallest_eigenvalue(sums[:d, :d], moments.unit, whole_basis(geometry))
        values = moments.distinct(sums, rows.n_rows, terms.adjacency)
        n_public = rows.n_rows if terms.adjacency == "replace-one" else None
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        drawn = prices.drawn(noise, values, event.scale).astype(np.float64)
        scale = prices.scale(eigenvalue_sensitivity(geometry), shares["the smallest eigenvalue"])
        eigenvalue = float(prices.drawn(noise, np.array([smallest]), scale)[0]) / GRID
        value = Adapted(consistent(moments, drawn, n_public), eigenvalue)
        if self.rounds > 1:
            value = Boosting(self, rows, prices, shares, noise, value, event.noise_sd).release(int(sums[0, d]) if geometry.intercept else 0)
        return Release(value, event, noise.private)

    def solve(self, release: Release[Adapted], geometry: Geometry, objective: Objective) -> LinearFit:
        """The ridge fit to the released moments, or the fit that the rounds led to: post-processing of the release."""
        value, noise_sd = release.value, release.event.noise_sd
        step = AdaptiveRidge(value.moments, geometry, value.smallest, noise_sd).step(value.moments.with_target)
        mean, weights = step.target_mean, step.weights
        if value.weights is not None:
            weights = value.weights
            mean = float(value.moments.products[0] @ weights) / max(value.moments.n_rows, 1.0) if geometry.intercept else 0.0
        elif geometry.intercept:
            weight = self.statistic(geometry, release.event.noise).target_weight
            mean = plausible_mean(step.target_mean, noise_sd / weight / max(value.moments.n_rows, 1.0))
            weights = np.append(weights[0] + mean - step.target_mean, weights[1:])
        intercept, weights = (float(weights[0]), weights[1:]) if geometry.intercept else (0.0, weights)
        return LinearFit(weights, intercept, mean, step.solution, value.moments)


@dataclass(frozen=True)
class Boosting:
    """The rounds of one release: each sums what the fit so far has left of the target, adds noise, and fits that.

    Guarantee: docs/proofs/adassp.md, Theorem 1; every sensitivity is a function of public facts and of what has been released before.
    """

    mechanism: AdaSSP
    rows: Rows
    prices: Prices
    shares: dict[str, Fraction]
    noise: Noise
    value: Adapted
    noise_sd: float

    def _sum(self, statistic: AbsoluteResidual | ResidualMoments) -> NDArray[np.int64]:
        """A later reading of the table: after the charge, so an error must not say that nothing was charged."""
        try:
            return self.rows.sum(statistic)
        except DataError as error:
            told = str(error).replace(NOT_CHARGED, "")
        raise DataError(f"{told} The table was being read again, and is not what it was at first. The charge stands.")

    @property
    def geometry(self) -> Geometry:
        """The shape of encoded rows."""
        return self.rows.geometry

    @property
    def n_rows(self) -> float:
        """The number of rows: public, as released, or a public guess; without any of them nothing is taken for too large."""
        n_rows = self.value.moments.n_rows
        if math.isnan(n_rows):
            return float(self.prices.terms.expected_rows or math.inf)
        return max(n_rows, 1.0)

    def release(self, target_sum: int) -> Adapted:
        """All rounds, from the sum of the target on."""
        moments = replace(self.value.moments, n_rows=self.n_rows)
        ridge = AdaptiveRidge(moments, self.geometry, self.value.smallest, self.noise_sd)
        weights = np.zeros(self.geometry.n_columns)
        mean_sd = 0.0
        if self.geometry.intercept:
            weights[0], mean_sd = self._mean(target_sum)
        bound = self._bound(ridge, weights, mean_sd)
        for t in range(self.mechanism.rounds):
            whole = whole_weights(weights)
            left = self._left(ResidualMoments(self.geometry, whole, bound), self.shares[f"round {t + 1}"])
            weights = np.array(whole) / WEIGHT_STEP + ridge.step(left).weights
        return Adapted(replace(moments, with_target=left), self.value.smallest, weights)

    def _mean(self, target_sum: int) -> tuple[float, float]:
        """The noisy mean of the target, and how noisy it is."""
        unit = STEP * STEP
        sensitivity = unit * (1 if self.prices.terms.adjacency == "add-remove" else 2)
        scale = self.prices.scale(sensitivity, self.shares["the target's mean"])
        noisy = float(self.prices.drawn(self.noise, np.array([target_sum]), scale)[0])
        sd = self.prices.sd(scale) / unit / self.n_rows
        return plausible_mean(noisy / unit / self.n_rows, sd), sd

    def _bound(self, ridge: AdaptiveRidge, weights: Floats, mean_sd: float) -> float:
        """Where residuals are cut: as given, or a multiple of the noisy mean of their size."""
        if self.mechanism.residual_bound != "auto":
            return float(self.mechanism.residual_bound)
        statistic = AbsoluteResidual(self.geometry, whole_weights(weights))
        scale = self.prices.scale(statistic.sensitivity(self.prices.terms.adjacency, self.prices.norm), self.shares["the target's spread"])
        noisy = float(self.prices.drawn(self.noise, self._sum(statistic), scale)[0]) / statistic.unit
        sd = self.prices.sd(scale) / statistic.unit / self.n_rows
        spread = max(noisy / self.n_rows, 0.0) + SPREAD_MARGIN * sd + mean_sd
        multiple = max(LEAST_CUT, CUT / math.sqrt(max(ridge.error_in_predictions(self._last_sd()), LEAST_BOUND**2)))
        return float(np.clip(multiple * spread, LEAST_BOUND, 1.0))

    def _last_sd(self) -> float:
        """The standard deviation of the noise in the last round, if residuals were not cut."""
        widest = ResidualMoments(self.geometry, (0,) * self.geometry.n_columns)
        sensitivity = widest.sensitivity(self.prices.terms.adjacency, self.prices.norm)
        return self.prices.sd(self.prices.scale(sensitivity, self.shares[f"round {self.mechanism.rounds}"])) / widest.unit

    def _left(self, statistic: ResidualMoments, share: Fraction) -> Floats:
        """Noisy products of the columns with residuals, held where those of any table would be."""
        scale = self.prices.scale(statistic.sensitivity(self.prices.terms.adjacency, self.prices.norm), share)
        noisy = self.prices.drawn(self.noise, self._sum(statistic), scale) / statistic.unit
        most = statistic.bound * self.n_rows
        return np.clip(noisy, -most, most)
