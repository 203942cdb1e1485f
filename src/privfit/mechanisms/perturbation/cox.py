"""Log hazard ratios by a perturbed objective: Cox's regression, by a loss that is a sum over rows.

One release of three parts. Events and censored times are counted on a grid, with noise: they make the cumulative hazard
of the whole table. Beside that every person has one loss with slopes of at most 1, whose weights are perturbed as those
of any other loss. Last comes the sum of squared scores, by which ratios are moved from the hazard of the table to that
of one person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.losses import ConvexLoss
from privfit.losses.hazard_tables import HazardTables
from privfit.losses.stopped_hazard import MOST_CURVATURE, TIME_STEPS, stopped_hazard
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.perturbation.base import Calibration, NoiseKind
from privfit.mechanisms.perturbation.bought_moments import FOR_BREAD, FOR_MEAT, BoughtMatrices
from privfit.mechanisms.perturbation.hazard_fit import HazardFit, HazardRelease, NoisyTimes, fitted
from privfit.mechanisms.perturbation.interaction_terms import integer_weights, score_bits
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem
from privfit.mechanisms.perturbation.regression_fit import rounded_down
from privfit.mechanisms.perturbation.regression_weights import RegressionWeights
from privfit.mechanisms.perturbation.with_intervals import certainty_of
from privfit.mechanisms.summaries.survival_bands import SurvivalRelease
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace
from privfit.rows import COUNT_UNIT, SQUARE_STEPS, CachedDesign, Rows, count_by_target, sum_of_squares
from privfit.schema import Geometry, RowNorms, Schema
from privfit.solvers.hazard_calibration import smooth_hazard

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOR_TIMES, FOR_SPREAD = Fraction(8, 100), Fraction(4, 100)
"""Shares of epsilon beside the weights' 88%. `python papers/experiments/cox.py --shares` varies them."""
LEAST_REACH, ROUGH_SPREADS = 3.0, 4.0
"""Scores are cut for the sum of their squares at 3, or at four times what they would spread if columns were spread
evenly over their bounds, where that is more: wider has less bias where scores spread further, and more noise. Chosen,
not measured."""
USUAL_PART = 0.5
"""Of that even spread's square, what is expected before the sum is looked at. Chosen, not measured."""
WIDEST, FINE_STEPS = 4.0, 1_601
"""How far, as a logarithm, a squared spread may lie from the usual one, and how finely that is tried: half a percent of
it."""
MOST_BINS = 500
"""The most bins of time: a calibration goes over all of them a thousand times, which takes seconds then."""


@dataclass(frozen=True)
class HazardProblem:
    """What is fitted: hazards on a grid of time, and log ratios of encoded columns.

    Parameters
    ----------
    ends : the last step of every bin of time, in TIME_STEPS; the last is TIME_STEPS.
    times : the same in the units of the table, the beginning of the first bin first.
    max_weight : the bound of rows' weights, where they have some.
    """

    ends: tuple[int, ...]
    times: tuple[float, ...] = field(repr=False)
    max_weight: float | None = None

    @property
    def count_unit(self) -> int:
        """What a row of the largest weight counts in the counts of times."""
        return 1 if self.max_weight is None else COUNT_UNIT

    @property
    def erm(self) -> ERMProblem:
        """The problem of the weights, at a hazard of 1."""
        return ERMProblem(stopped_hazard(), max_weight=self.max_weight)

    @property
    def signed_grid(self) -> Floats:
        """What divides signed times into those who leave the grid, censored times by bin, the last bin first, and
        events by bin.
        """
        inner = (TIME_STEPS + np.array(self.ends, dtype=np.float64) - 0.5) / (2 * TIME_STEPS)
        return np.concatenate([-inner[::-1], [0.0], inner[:-1]])

    def in_order(self, counts: Integers) -> Integers:
        """Counts by signed time as events by bin, censored times by bin, and those who left.

        Guarantee: every row is in one of them; docs/proofs/cox-objective.md, Lemma 1.
        """
        bins = len(self.ends)
        return np.concatenate([counts[bins + 1 :], counts[bins:0:-1], counts[:1]])

    def at_steps(self, hazards: Floats) -> Floats:
        """A cumulative hazard at the ends of bins, the beginning first, in the middle of every step of time."""
        middles = np.minimum(np.arange(TIME_STEPS + 1) + 0.5, TIME_STEPS)
        return smooth_hazard(np.array([0, *self.ends], dtype=np.float64), hazards, middles)


@dataclass(frozen=True)
class HazardWeights(RegressionWeights):
    """The weights of log hazards, beside a hazard that is released before.

    Guarantee: docs/proofs/cox-objective.md, Lemma 2 and Theorem 1.
    """

    def loss_at(self, centre: float, threshold: float) -> ConvexLoss:
        """The loss at a hazard of 1, whose constants are those of any other."""
        return stopped_hazard()

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        plan = ObjectivePerturbation._plan_with(self, found, facts, problem)
        own = self.at(plan, 0.0, 1.0)
        assert own.certificate is not None
        return replace(own, event=replace(plan.event, parts=(*plan.event.parts[:-1], own.certificate)))


@dataclass(frozen=True)
class HazardPlan(ReleasePlan):
    """All that is decided before a row is read."""

    problem: HazardProblem
    times: Laplace
    steps: HazardWeights
    weights: ERMPlan
    spread: Laplace
    bits: int
    matrices: BoughtMatrices | None = None
    """Where intervals are asked for."""


@dataclass(frozen=True)
class ObjectiveHazards(Mechanism[HazardProblem, HazardPlan, CachedDesign, HazardRelease]):
    """Log hazard ratios, and a baseline hazard on a grid of time, by a perturbed objective.

    Three parts share epsilon: counts of events and of censored times (8%), the weights (88%), and the sum of squared
    scores (4%).

    Parameters
    ----------
    noise : {'auto', 'laplace', 'l2', 'linf', 'mixed', 'gaussian'}, default='auto'
        The distribution of the random term, as in `ObjectivePerturbation`.
    intervals : bool, default=False
        Whether 25% of epsilon, taken from the weights, buy the Hessian and the second moments of gradients, from which
        intervals follow.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/cox-objective.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    noise: NoiseKind = "auto"
    intervals: bool = False

    name = "objective hazards"
    solves = "hazards"
    takes_splines = takes_weights = weighs_intervals = True

    @property
    def _beside(self) -> Fraction:
        """The share of epsilon beside the weights."""
        return FOR_TIMES + FOR_SPREAD + (FOR_BREAD + FOR_MEAT if self.intervals else 0)

    @property
    def _steps(self) -> HazardWeights:
        return HazardWeights(noise=self.noise)

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self._steps.check()

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """Without delta: nothing is proved here of Gaussian noise in the objective where rows are left out."""
        planned = super().for_rows_left_out(parameters, slots)
        return planned if planned.promise is None else replace(planned, budget=Budget(planned.budget.epsilon))

    def geometry(self, schema: Schema, problem: HazardProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded: as for perturbed objectives of other losses, with a signed time as the target."""
        return self._steps.geometry(schema, problem.erm, numeric)

    # -- the plan ----------------------------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: HazardProblem) -> HazardPlan:
        """Noise for counts, weights and the sum of squares.

        Guarantee: docs/proofs/cox-objective.md, Theorem 2.
        """
        if len(problem.ends) > MOST_BINS:
            raise PrivacyError(
                f"Hazards were asked for on {len(problem.ends):,} bins of time; at most {MOST_BINS:,} are released. "
                "Give the time fewer bins. Nothing was charged."
            )
        parameters, steps = facts.parameters, self._steps
        own = replace(facts, parameters=replace(parameters, budget=rounded_down(parameters.budget, 1 - self._beside)))
        weights = steps.plan(own, problem.erm)
        bits = score_bits(weights.gradients.norms.columns)
        if bits < 1:
            raise PrivacyError("Log hazards have too many encoded columns for exact scores. Leave out columns.")
        people, epsilon = int(parameters.rows_per_person), exact(parameters.budget.epsilon)
        each, unit = people * (2 if parameters.adjacency == "replace-one" else 1), problem.count_unit
        cells = 2 * len(problem.ends) + 1
        times = _laplace(cells, each * unit, unit, epsilon * FOR_TIMES, "events and censored times")
        spread = _laplace(1, people * SQUARE_STEPS, SQUARE_STEPS, epsilon * FOR_SPREAD, "squared scores")
        matrices = BoughtMatrices.planned(facts, MOST_CURVATURE) if self.intervals else None
        bought = () if matrices is None else matrices.parts
        event = Event(
            "objective perturbation of log hazards",
            parameters.budget.epsilon,
            weights.event.delta,
            adjacency=parameters.adjacency,
            rows_per_person=people,
            parts=(times, *weights.event.parts, *bought, spread),
        )
        weights = replace(weights, facts=own)
        return HazardPlan(event, facts, problem, times, steps, weights, spread, bits, matrices)

    # -- the release -------------------------------------------------------------------------------

    def read(self, rows: Rows, plan: HazardPlan, problem: HazardProblem, draws: Draws) -> CachedDesign:
        """A cached design of all rows."""
        return plan.steps.read(rows, plan.weights, plan.weights.problem, draws)

    def draw(self, data: CachedDesign, plan: HazardPlan, draws: Draws) -> HazardRelease:
        """Count times, minimise the perturbed objective beside the hazard that they make, and sum up squared scores."""
        times = self._times(data, plan, draws)
        loss = stopped_hazard(plan.problem.at_steps(times.hazards))
        own = replace(plan.weights, gradients=replace(plan.weights.gradients, loss=loss))
        noise, certificate = own.noise, own.certificate
        assert noise is not None
        assert certificate is not None
        term = noise.by_column(draws.add(np.zeros(own.gradients.values, dtype=np.int64)))
        steps = np.rint(minimised(own, data, term) * certificate.unit).astype(np.int64)
        weights = np.asarray(draws.add(steps) / certificate.unit, dtype=np.float64)

        certainty = None
        if plan.matrices is not None:
            tables = HazardTables.of(own.gradients.loss)
            found = plan.matrices.drawn(data, weights, tables.curvature, tables.square, draws)
            certainty = certainty_of(plan.matrices, own, weights[:, 0], found)
            weights = certainty.weights[:, None]

        rough = rough_variance(own.gradients.norms, weights[:, 0], plan.facts.geometry.intercept)
        reach = max(LEAST_REACH, ROUGH_SPREADS * math.sqrt(rough))
        whole = integer_weights(weights / reach, plan.bits)
        noisy = int(draws.add(np.array([sum_of_squares(data, whole, plan.bits)], dtype=np.int64))[0])
        sd, mean = reach**2 * plan.spread.sd / times.rows, reach**2 * noisy / (SQUARE_STEPS * times.rows)
        square = plausible_square(mean, sd, USUAL_PART * rough)
        return HazardRelease(own, weights[:, 0], times, square, sd, certainty)

    def _times(self, data: CachedDesign, plan: HazardPlan, draws: Draws) -> NoisyTimes:
        """Counts of events and of censored times, and the hazard that they make."""
        counts = draws.add(plan.problem.in_order(count_by_target(data, plan.problem.signed_grid)))
        unit, counted = plan.problem.count_unit, plan.facts.parameters.adjacency == "replace-one"
        known = SurvivalRelease(counts / unit, plan.times.scale / unit, len(plan.problem.ends))
        return NoisyTimes.of(known, plan.facts.n_rows if counted and plan.problem.max_weight is None else None)

    def solve(self, release: Release[HazardRelease], geometry: Geometry, problem: HazardProblem) -> HazardFit:
        """Ratios and the baseline of one person, in units of encoded columns."""
        return fitted(release.value, geometry)

    def describe(self, fit: HazardFit, schema: Schema, geometry: Geometry) -> Description:
        """The ridge, and what was done after the weights."""
        notes = (
            f"the cumulative hazard of the whole table, on {len(fit.baseline) - 1} bins of time, was released first, "
            "and log hazards were fitted beside it",
            f"log hazard ratios were then multiplied by {fit.factor:.4g}: from the hazard of a mixture of people to "
            "that of one, and for what penalty and noise did to them; this costs nothing",
            *(() if fit.certainty is None else fit.certainty.notes()),
        )
        return Description({"kind": "ridge", "ridge": fit.ridge, "factor": fit.factor}, notes)


def _laplace(size: int, sensitivity: int, unit: int, epsilon: Fraction, purpose: str) -> Laplace:
    return Laplace(
        size=size,
        scale=laplace_scale(sensitivity, epsilon),
        sensitivity=sensitivity,
        unit=unit,
        purpose=purpose,
        epsilon=float(epsilon),
    )


def rough_variance(norms: RowNorms, weights: Floats, has_intercept: bool) -> float:
    """The variance of scores if single columns were spread evenly from -1 to 1, and levels equally frequent."""
    singles = weights[np.array(norms.singles, dtype=np.intp)][int(has_intercept) :]
    with np.errstate(over="ignore"):
        blocks = sum(float(np.var(weights[start:stop])) for start, stop in norms.blocks)
        return min(float(singles @ singles) / 3 + blocks, 1e6)


def plausible_square(noisy: float, sd: float, usual: float) -> float:
    """The mean squared score, which is positive: the mean of what the noisy one leaves plausible, where before it is
    looked at a factor of e to either side of the usual one is as likely as a standard deviation of a normal law.
    """
    logs = np.linspace(-WIDEST, WIDEST, FINE_STEPS)
    tried = float(np.clip(usual, 1e-6, 16.0)) * np.exp(logs)
    held = float(np.clip(np.nan_to_num(noisy, nan=usual), -1e9, 1e9))
    far = ((held - tried) / max(sd, 1e-9)) ** 2 + logs**2
    weights = np.exp(-(far - far.min()) / 2)
    return float(np.clip(weights @ tried / weights.sum(), 1e-6, 16.0))
