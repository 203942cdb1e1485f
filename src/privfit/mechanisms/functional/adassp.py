"""AdaSSP: ridge regression on noisy moments with a ridge that adapts, in one step or boosted.

Wang: Revisiting differentially private linear regression, UAI 2018. Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu:
Improved differentially private regression via gradient boosting, 2023. The boosted form fits what the fit before has
left of the target, cut at a bound: the noise follows that bound, not the bounds of the target, and only the last
round's noise stays in the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import QuadraticLoss
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.functional.boosting import Adapted, AdaptivePlan, AdaptiveSums, Boosting
from privfit.mechanisms.functional.budget_split import BudgetSplit
from privfit.mechanisms.functional.defaults import target_weight
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.problem import (
    ExactMoments,
    LinearFit,
    QuadraticProblem,
    described_repair,
    noise_kind,
)
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import RELEASE
from privfit.rows import Rows
from privfit.schema import Geometry, Schema
from privfit.solvers import consistent, plausible_mean
from privfit.solvers.adaptive import AdaptiveRidge, whole_basis
from privfit.statistics import STEP, Moments
from privfit.statistics.eigenvalue import EIGENVALUE_GRID, eigenvalue_sensitivity, smallest_eigenvalue
from privfit.statistics.residuals import ResidualMoments

Floats = NDArray[np.float64]

BOOSTED_ROUNDS = 4
"""Rounds of the boosted form: more share epsilon among more releases, fewer cut residuals less tightly: python
papers/experiments/adassp.py."""
MOST_ROUNDS = 10
"""Every round reads the table once more and has less of epsilon. Chosen, not measured."""
PLAIN_SHARES = {"the moments": Fraction(9, 10), "the smallest eigenvalue": Fraction(1, 10)}
BOOSTED_SHARES = {
    "the moments of features": Fraction(5, 20),
    "the smallest eigenvalue": Fraction(1, 20),
    "the target's mean": Fraction(1, 20),
    "the target's spread": Fraction(1, 20),
}
GROWTH = Fraction(3, 2)
"""How much more each round of residuals is given than the one before: the noise of early rounds is corrected by later
ones.
"""


@dataclass(frozen=True)
class AdaSSP(Mechanism[QuadraticProblem, AdaptivePlan, AdaptiveSums, Adapted]):
    """Release moments and their smallest eigenvalue with noise, and fit with a ridge chosen from both.

    Parameters
    ----------
    rounds : int, default=1
        1 is AdaSSP [1]_. More is its boosted form [2]_: the moments of the features are released once, then in every
        round the products of the columns with clipped residuals of the target. It reads the table once more for every
        round, and once for the bound.
    residual_bound : float or 'auto', default='auto'
        With more than one round, where residuals are clipped: a public share of the half-width of the target's bounds,
        above 0 and at most 1. "auto" buys the target's mean and mean absolute deviation at a twentieth of the price
        each and clips at a multiple of that; the multiple grows with the number of rows and with epsilon, so that
        clipping does not bias large fits.

    See Also
    --------
    LinearRegression : Takes it as a mechanism.
    FunctionalMechanism : Moments without an adaptive ridge.

    Notes
    -----
    With a delta the noise is Gaussian and the parts of a release share rho; without one it is Laplace noise and they
    share epsilon.

    The shares, the growth from round to round and the rule for the bound were chosen on generated tables: python
    experiments/adassp.py. The smallest eigenvalue needs no more than a tenth (a twentieth when boosted): it is compared
    with the size of the whole noise matrix, beside which its own noise is small.

    Guarantee: (epsilon, delta)-DP with a delta, epsilon-DP without one, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/adassp.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] Y.-X. Wang, "Revisiting differentially private linear regression: optimal and adaptive prediction and
       estimation in unbounded domain", UAI 2018.
    .. [2] S. Tang, S. Aydore, M. Kearns, S. Rho, A. Roth, Y. Wang, Y.-X. Wang and Z. S. Wu, "Improved differentially
       private regression via gradient boosting", 2023.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.LinearRegression(epsilon=1.0, delta=1e-6, mechanism=pf.AdaSSP(), schema=schema)
    >>> bool(abs(model.fit(X, 0.5 * X[:, 0]).coef_[0] - 0.5) < 0.1)
    True
    """

    rounds: int = 1
    residual_bound: float | Literal["auto"] = "auto"

    name = "adassp"
    solves = "least-squares"
    repair = "adaptive ridge"
    calibration = "tight"
    loss: ClassVar[QuadraticLoss | None] = None

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.rounds, int) or isinstance(self.rounds, bool) or not 1 <= self.rounds <= MOST_ROUNDS:
            raise PrivacyError(
                f"rounds={self.rounds!r} was given; it is an integer from 1 to {MOST_ROUNDS}. Use 1 for AdaSSP, "
                f"{BOOSTED_ROUNDS} for its boosted form."
            )
        bound = self.residual_bound
        if bound != "auto" and (
            isinstance(bound, str | bool) or not isinstance(bound, int | float) or not 0 < bound <= 1
        ):
            raise PrivacyError(
                f"residual_bound={bound!r} was given; it is 'auto' or a share of the half-width of the target's "
                "bounds, above 0 and at most 1. Use 'auto' if in doubt."
            )

    def settle(self, problem: QuadraticProblem) -> QuadraticProblem:
        """Without the target's squares, which are not bought: there are no intervals."""
        return replace(problem, spread=False)

    def describe(self, fit: LinearFit, schema: Schema, geometry: Geometry) -> Description:
        """The ridge that adapted, and what the price was spent on."""
        described = described_repair("adaptive ridge", fit.solution)
        parts = ", ".join(f"{part} {float(share):.0%}" for part, share in self.shares(geometry).items())
        told = f"the noise shown is that of the moments; the parts of the release share its price: {parts}"
        return replace(described, notes=(told, *described.notes))

    def geometry(self, schema: Schema, problem: QuadraticProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded for this mechanism."""
        return FunctionalMechanism().geometry(schema, problem, numeric)

    def shares(self, geometry: Geometry) -> dict[str, Fraction]:
        """Return the share of the price of every part of the release, from public facts; they add up to 1.

        Parameters
        ----------
        geometry : Geometry
            How rows are encoded.

        Returns
        -------
        dict of str to Fraction
            The shares, by part.
        """
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

    def statistic(self, geometry: Geometry, kind: str) -> Moments:
        """Return the moments that are released.

        Where rounds of residuals follow, they are without the products with the target.

        Parameters
        ----------
        geometry : Geometry
            How rows are encoded.
        kind : str
            The noise.

        Returns
        -------
        Moments
            The statistic.
        """
        if self.rounds > 1:
            return Moments(replace(geometry, target=None))
        return Moments(geometry, target_units=max(1, round(target_weight(geometry, kind) * STEP)))

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> AdaptivePlan:
        """What is released, part by part, and its price, from public facts alone."""
        self.check()
        geometry, parameters = facts.geometry, facts.parameters
        split, shares = BudgetSplit.of(parameters), self.shares(geometry)
        moments = self.statistic(geometry, split.kind)
        self._check_count(moments, geometry, parameters)
        sensitivity = max(moments.row_sensitivity(parameters, split.norm), 1)
        widest = ResidualMoments(geometry, (0,) * geometry.n_columns).sensitivity(parameters.adjacency, split.norm)
        split.scale(
            max(sensitivity, 2 * widest), min(shares.values())
        )  # refuses more noise than 64 bits hold, in any part, now
        n_moments = moments.n_values(parameters.adjacency)
        first = split.part(RELEASE, n_moments, next(iter(shares.values())), sensitivity, moments.unit)
        sensitivities = {
            "the smallest eigenvalue": eigenvalue_sensitivity(geometry),
            "the target's mean": STEP * STEP * (1 if parameters.adjacency == "add-remove" else 2),
        }
        later = [
            split.part(name, geometry.n_columns if name.startswith("round") else 1, share, sensitivities.get(name, 0))
            for name, share in list(shares.items())[1:]
        ]
        event = Event(
            f"AdaSSP, boosted in {self.rounds} rounds" if self.rounds > 1 else "AdaSSP",
            parameters.budget.epsilon,
            parameters.budget.delta,
            split.rho,
            parameters.adjacency,
            int(parameters.rows_per_person),
            (first, *later),
        )
        return AdaptivePlan(event, facts, moments, split, shares)

    def _check_count(self, moments: Moments, geometry: Geometry, parameters: PrivacyParameters) -> None:
        """Where residuals are cut follows from the number of rows: public, released, or a public guess."""
        known = (
            parameters.adjacency == "replace-one"
            or moments.counts_rows(parameters.adjacency)
            or parameters.expected_rows is not None
        )
        if "the target's spread" in self.shares(geometry) and not known:
            raise PrivacyError(
                "residual_bound='auto' was given without an intercept and with adjacency='add-remove'; the bound "
                "follows from the number of rows, which nothing "
                "releases here. Give a public guess, expected_rows=..., or a residual_bound between 0 and 1. Nothing "
                "was charged."
            )

    def read(self, rows: Rows, plan: AdaptivePlan, problem: QuadraticProblem, draws: Draws) -> AdaptiveSums:
        """The moments and their smallest eigenvalue, exactly."""
        if self.rounds > 1:
            rows.keep()
        geometry, d = rows.geometry, rows.geometry.n_columns
        sums = rows.sum(Moments(geometry, target_units=plan.moments.target_units))
        smallest = smallest_eigenvalue(sums[:d, :d], plan.moments.unit, whole_basis(geometry))
        adjacency = plan.facts.parameters.adjacency
        values = plan.moments.distinct(sums, rows.n_rows, adjacency)
        exact = ExactMoments(values, rows.n_rows if adjacency == "replace-one" else None)
        return AdaptiveSums(rows, exact, smallest, int(sums[0, d]) if geometry.intercept else 0)

    def draw(self, data: AdaptiveSums, plan: AdaptivePlan, draws: Draws) -> Adapted:
        """Noise on the moments and the eigenvalue; then, round by round, sum residuals and add noise."""
        noisy = draws.add(data.exact.values).astype(np.float64)
        eigenvalue = float(draws.add(np.array([data.smallest]))[0]) / EIGENVALUE_GRID
        value = Adapted(consistent(plan.moments, noisy, data.exact.n_rows), eigenvalue)
        return Boosting(self, data, plan, draws, value).drawn() if self.rounds > 1 else value

    def solve(self, release: Release[Adapted], geometry: Geometry, problem: QuadraticProblem) -> LinearFit:
        """The ridge fit to the released moments, or the fit that the rounds led to: post-processing of the release."""
        value, noise_sd = release.value, release.event.noise_sd
        step = AdaptiveRidge(value.moments, geometry, value.smallest, noise_sd).step(value.moments.with_target)
        mean, weights = step.target_mean, step.weights
        if value.weights is not None:
            weights = value.weights
            mean = (
                float(value.moments.products[0] @ weights) / max(value.moments.n_rows, 1.0)
                if geometry.intercept
                else 0.0
            )
        elif geometry.intercept:
            weight = self.statistic(geometry, noise_kind(release.event)).target_weight
            mean = plausible_mean(step.target_mean, noise_sd / weight / max(value.moments.n_rows, 1.0))
            weights = np.append(weights[0] + mean - step.target_mean, weights[1:])
        intercept, weights = (float(weights[0]), weights[1:]) if geometry.intercept else (0.0, weights)
        return LinearFit(weights, intercept, mean, step.solution, value.moments)
