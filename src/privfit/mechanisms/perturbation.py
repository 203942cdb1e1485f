"""Output and objective perturbation: regularised fits of any convex loss that states how steep and how curved it is.

Chaudhuri and Monteleoni: Privacy-preserving logistic regression, NIPS 2008; Chaudhuri, Monteleoni and Sarwate, JMLR 2011. Here in sum form (the ridge
belongs to the sum over rows, not to their mean, so that the number of rows is nowhere), with the volume term that the first paper forgot, noise in the norm that suits
the schema, and a certificate for what the solver leaves undone.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.losses.convex import is_positive
from privfit.mechanisms.minima import (
    OUTPUT_STEPS,
    Plan,
    Risk,
    RiskFit,
    check_number,
    check_price,
    finest,
    minimised,
    public_rows,
    with_output_noise,
)
from privfit.mechanisms.precision import most_rows, objective_precision, output_precision, precise_ridge, quiet_ridge, solvable_ridge
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.rules import FOR_CERTIFICATE, Numbers, automatic_output_ridge, automatic_ridge
from privfit.mechanisms.shrinkage import unshrunk
from privfit.mechanisms.tilts import SAFE, TILTS, Tilt, candidates, checks, free_ridge, make_tilt, refuse_gaussian_without_delta
from privfit.privacy import Event, Ledger, Noise, PrivacyError, PrivacyWarning, Terms, exact, noised
from privfit.privacy.event import laplace_scale
from privfit.privacy.normal import gaussian_delta, least_scale
from privfit.rows import KeptRows, Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import Gradients

Floats = NDArray[np.float64]
NoiseKind = Literal["auto", "laplace", "linf", "l2", "mixed", "gaussian"]

DRAWN = {"laplace": "laplace", "linf": "linf", "l2": "l2", "gaussian": "normal"}
FOR_SLOPES = 0.8
STEEPEST = 0.5
SHARPEST = 50.0
CLEARLY = 0.97
TINIEST = 1e-200
LOUD = 0.5


@dataclass(frozen=True)
class Perturbation:
    """What both mechanisms share.

    Guarantee: that of the mechanism; docs/proofs/perturbation.md.
    """

    ridge: float | Literal["auto"] = "auto"
    noise: NoiseKind = "auto"

    name = "perturbation"
    numeric: ClassVar[Numbers] = "splines"
    kinds: ClassVar[tuple[str, ...]] = TILTS

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.ridge != "auto" and not is_positive(self.ridge):
            raise PrivacyError(
                f"ridge={self.ridge!r} was given; it is 'auto' or a positive number, and multiplies half the squared weights beside a sum over rows. Use 'auto' if in doubt."
            )
        if self.noise not in ("auto", *self.kinds):
            raise PrivacyError(f"noise={self.noise!r} was given; it is one of {('auto', *self.kinds)}. Use 'auto' if in doubt.")

    def geometry(self, schema: Schema, numeric: Numbers, objective: Risk) -> Geometry:
        """How rows are encoded: without an intercept column where a category carries the constant already, because every column counts."""
        anchored: Literal["no", "all"] = "no" if objective.fit_intercept else "all"
        plain = schema.geometry(numeric=numeric, intercept=False, several=True, anchored=anchored, knots=objective.knots)
        if objective.fit_intercept and (objective.features is not None or plain.count("levels") + plain.count("hats") == 0):
            return schema.geometry(numeric=numeric, intercept=objective.features is None, several=True, knots=objective.knots)
        return plain

    # -- the plan, from public facts ------------------------------------------------------------------------------

    def plan(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None) -> Plan:
        """The least noise there is for this schema, and everything that goes with it. `n_rows` is None where it is private."""
        refuse_gaussian_without_delta(self.noise, terms.budget.delta)
        laplace_scale(1, exact(terms.budget.epsilon))  # refuses an epsilon that no noise can serve
        gradients = self._gradients(geometry, terms, objective)
        kinds = (
            (self.noise,)
            if self.noise != "auto"
            else tuple(kind for kind in candidates(gradients, terms.budget.delta) if kind in self.kinds)
        )
        plans: list[Plan] = []
        refusals: list[PrivacyError] = []
        for kind in kinds:
            try:
                with np.errstate(all="ignore"):
                    plans.append(self._plan_with(kind, gradients, terms, n_rows))
            except PrivacyError as error:  # more noise than this kind can hold
                refusals.append(error)
            except (ArithmeticError, ValueError):
                refusals.append(_beyond_floats())
        if not plans:
            raise refusals[0]
        return min(plans, key=lambda plan: plan.sd if not plan.event.delta else plan.sd / CLEARLY)

    def _plan_with(self, kind: str, gradients: Gradients, terms: Terms, n_rows: int | None) -> Plan:
        raise NotImplementedError

    def _gradients(self, geometry: Geometry, terms: Terms, objective: Risk) -> Gradients:
        loss, targets = objective.loss, _targets(geometry)
        loss.check(targets)
        if loss.excess_at_zero is None:
            loss = replace(loss, likely_excess=loss.found_excess(targets))
        if loss.most_curvature is None and loss.jumps:
            raise PrivacyError(
                f"The {loss.name} has a slope that jumps, so that no gradient certifies a minimum. Round the corner, as pf.losses.hinge() does. Nothing was charged."
            )
        people, replaced = int(terms.rows_per_person), terms.adjacency == "replace-one"
        return Gradients(objective.norms(geometry), loss, objective.classes, objective.coupling, people, replaced)

    # -- the release ----------------------------------------------------------------------------------------------

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk) -> Release[RiskFit]:
        """Read the rows, charge the ledger, draw, and minimise until the gradient is certified."""
        check_ledger(ledger, noise)
        check_price(ledger, rows, terms, lambda known: self.plan(rows.geometry, terms, objective, known).event)
        kept = self._kept(rows, objective)
        check_number(kept.n_rows, terms)
        return self._release_from(kept, rows, terms, ledger, noise, objective, public_rows(kept.n_rows, terms))

    def _kept(self, rows: Rows, objective: Risk) -> KeptRows:
        return KeptRows(rows, objective.features)

    def _release_from(
        self, kept: KeptRows, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk, n_rows: int | None
    ) -> Release[RiskFit]:
        """The same from rows that were read; `n_rows` is their number as far as it is public."""
        plan = self.plan(rows.geometry, terms, objective, n_rows)  # public facts only
        self._tell_of_a_tiny_ridge(plan)
        if ledger is not None:
            ledger.charge(plan.event, dataset=rows.label)  # durable before any draw
        return Release(self._fit(plan, kept, noise, objective, n_rows), plan.event, noise.private)

    def _tell_of_a_tiny_ridge(self, plan: Plan) -> None:
        """Warn, before the charge, where noise for the solver's precision will drown the weights."""
        blurred = math.sqrt(2.0) * plan.output_scale / plan.output_unit
        if self.ridge != "auto" and blurred > LOUD:
            warnings.warn(
                f"The ridge of {plan.ridge:.3g} is so small that every weight has noise of about {blurred:.3g} for the precision of the solver alone. Use a larger one, or 'auto'.",
                PrivacyWarning,
                stacklevel=2,
            )

    def _fit(self, plan: Plan, kept: KeptRows, noise: Noise, objective: Risk, n_rows: int | None) -> RiskFit:
        weights = self._perturbed(plan, kept, noise)
        return RiskFit(weights, plan.ridge, plan.gradients.loss, objective.coupling, objective.features, n_rows=n_rows)

    def _perturbed(self, plan: Plan, kept: KeptRows, noise: Noise) -> Floats:
        raise NotImplementedError

    def solve(self, release: Release[RiskFit], geometry: Geometry, objective: Risk) -> RiskFit:
        """The weights are what was released."""
        return release.value


@dataclass(frozen=True)
class ObjectivePerturbation(Perturbation):
    """Add a random linear term to the objective, and release its minimum.

    Parameters
    ----------
    ridge : what multiplies half the squared weights, beside the sum of the loss over rows. "auto" follows a public rule: a share of the noise. For logistic regression with two classes it
        also undoes half of what ridge and noise did to each column's weights, as far as the released weights tell. A ridge below what privacy, or a solver that must not fail, needs is raised, and the report says so.
    noise : the shape of the random term. "laplace" protects against the sum of what a row pulls, "l2" against its length, "linf" against its largest part; "mixed" protects
        blocks of columns (the levels of a category, the knots of a number) of about the same width together, against the largest pull on one of them, with shares of epsilon by size; "gaussian" needs a delta. "auto" takes whichever is least for this schema.
    steepest : for logistic regression, the largest slope of the loss. At 1 it is the logistic loss. "auto" is a half: rows on the wrong side pull no harder than rows on the
        fence, which halves the noise; probabilities follow from the slopes and stay calibrated.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to
    a chance below 2^-64; docs/proofs/perturbation.md, Theorems 1 to 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    steepest: float | Literal["auto"] = "auto"

    name = "objective"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        super().check()
        if self.steepest != "auto" and not (is_positive(self.steepest) and self.steepest <= 1):
            raise PrivacyError(
                f"steepest={self.steepest!r} was given; it is 'auto' or above 0 and at most 1, the logistic loss. Use 'auto' if in doubt."
            )

    def _plan_with(self, kind: str, gradients: Gradients, terms: Terms, n_rows: int | None) -> Plan:
        epsilon, delta = terms.budget.epsilon * (1 - FOR_CERTIFICATE) * SAFE, terms.budget.delta
        if gradients.loss == LOGISTIC and gradients.coupling != "softmax" and self.steepest != 1:
            gradients = self._tempered(kind, gradients, epsilon, delta, n_rows)
        if gradients.loss.most_curvature is None:
            raise PrivacyError(
                f"The {gradients.loss.name} states no most_curvature, and a perturbed objective is private only if curvature is bounded. "
                "State it, or use mechanism='output', which does not need it."
            )
        rows = most_rows(terms, n_rows)
        tilt = self._tilt(kind, gradients, epsilon, delta, None)
        free = self._free_ridge(kind, gradients, epsilon)
        ridge = self._ridge(gradients, tilt, n_rows)
        if self.ridge == "auto":
            ridge = quiet_ridge(gradients, rows, max(ridge, free if math.isfinite(free) else 0.0), tilt, epsilon)
        if ridge < free:
            ridge = max(ridge, gradients.forced_ridge((1 - FOR_SLOPES) * epsilon))
            tilt = self._tilt(kind, gradients, epsilon, delta, gradients.bend_cost(ridge))
            if self.ridge == "auto":  # more noise means longer minima; a larger ridge costs less curvature
                ridge = quiet_ridge(gradients, rows, ridge, tilt, epsilon)
        ridge = solvable_ridge(gradients, rows, ridge, tilt)
        event = tilt.event("objective perturbation", terms)
        precision = objective_precision(gradients, rows, ridge, tilt)
        return with_output_noise(Plan(gradients, ridge, event, precision, tilt.sd, tilt), terms)

    def _tilt(self, kind: str, gradients: Gradients, epsilon: float, delta: float, bend_cost: float | None) -> Tilt:
        return make_tilt(kind, gradients, epsilon, delta, bend_cost)

    def _free_ridge(self, kind: str, gradients: Gradients, epsilon: float) -> float:
        return free_ridge(kind, gradients, epsilon)

    def _ridge(self, gradients: Gradients, tilt: Tilt, n_rows: int | None) -> float:
        return automatic_ridge(gradients, tilt.sd, n_rows) if self.ridge == "auto" else float(self.ridge)

    def _tempered(self, kind: str, gradients: Gradients, epsilon: float, delta: float, n_rows: int | None) -> Gradients:
        """The logistic loss with smaller slopes, bending as sharply as a free curvature allows."""
        steepest = STEEPEST if self.steepest == "auto" else float(self.steepest)
        gentle = replace(gradients, loss=tempered_logistic(steepest, 1.0))
        ridge = self._ridge(gentle, self._tilt(kind, gentle, epsilon, delta, None), n_rows)
        taper = min(max(SAFE * ridge / self._free_ridge(kind, gentle, epsilon), 1.0), SHARPEST)
        return replace(gradients, loss=tempered_logistic(steepest, taper))

    def _perturbed(self, plan: Plan, kept: KeptRows, noise: Noise) -> Floats:
        shape = (kept.n_columns, plan.gradients.classes)
        assert plan.tilt is not None
        found = minimised(plan, kept, plan.tilt.drawn(noise, plan.event))
        whole = np.rint(found * plan.output_unit).astype(np.int64)
        drawn = noise.laplace(whole.ravel(), plan.output_scale).reshape(shape)
        return np.asarray(drawn / plan.output_unit, dtype=np.float64)

    def solve(self, release: Release[RiskFit], geometry: Geometry, objective: Risk) -> RiskFit:
        """The released weights, less shrunk where the ridge was left to the rule and probabilities are wanted."""
        fit = release.value
        if self.ridge != "auto" or fit.n_rows is None or objective.features is not None:
            return fit
        if objective.loss != LOGISTIC or objective.coupling != "one":
            return fit
        return unshrunk(fit, objective.norms(geometry), geometry.intercept, release.event.usual_sd, fit.n_rows)


@dataclass(frozen=True)
class OutputPerturbation(Perturbation):
    """Minimise, and add noise to the minimum.

    Parameters
    ----------
    ridge : as for ObjectivePerturbation; "auto" balances what noise and what the ridge do to the loss, by a public rule.
    noise : "l2" (a ball; the default without a delta), "laplace", "linf", or "gaussian", which needs a delta.

    The loss needs a bounded slope that does not jump, and nothing else: the hinge loss will do with its corner rounded (pf.losses.hinge()). Noise is far larger than that of a perturbed objective.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to
    a chance below 2^-64; docs/proofs/perturbation.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "output"
    kinds: ClassVar[tuple[str, ...]] = ("laplace", "linf", "l2", "gaussian")

    def _plan_with(self, kind: str, gradients: Gradients, terms: Terms, n_rows: int | None) -> Plan:
        values, rows = gradients.values, most_rows(terms, n_rows)
        if self.ridge == "auto":
            ridge = precise_ridge(gradients, rows, automatic_output_ridge(gradients, terms.budget.epsilon, n_rows))
        else:
            ridge = float(self.ridge)
        exact_apart = gradients.sensitivity("l2") / ridge
        if not TINIEST <= exact_apart <= 1 / TINIEST:
            raise PrivacyError(
                f"A ridge of {ridge:.3g} was asked for; it leaves no weights, or nothing but noise. Use a {'larger' if exact_apart > 1 else 'smaller'} one, or 'auto'."
            )
        precision, apart = output_precision(gradients, rows, ridge)
        apart /= SAFE
        stretch = {"laplace": math.sqrt(values)}.get(kind, 1.0)
        if kind == "gaussian":
            per_shift = least_scale(
                lambda sd: gaussian_delta(terms.budget.epsilon * SAFE, 1 / sd), terms.budget.delta * SAFE, 1 / terms.budget.epsilon
            )
        fine = math.ceil(math.log2(OUTPUT_STEPS * max(1.0, terms.budget.epsilon) * math.sqrt(values) / apart))
        unit = 1 << max(0, min(fine, finest(precision)))
        rounded = math.ceil(apart * unit) + math.ceil(math.sqrt(values))  # of two roundings, in L2
        sensitivity = math.ceil(rounded * stretch)
        scale = sensitivity * per_shift / SAFE if kind == "gaussian" else laplace_scale(sensitivity, exact(terms.budget.epsilon))
        event = Event(
            mechanism="output perturbation",
            epsilon=terms.budget.epsilon,
            delta=terms.budget.delta if kind == "gaussian" else 0.0,
            adjacency=terms.adjacency,
            rows_per_person=int(terms.rows_per_person),
            noise=DRAWN[kind],
            sensitivity=sensitivity,
            scale=scale,
            unit=unit,
            n_values=values,
        )
        checks[event.noise](values, scale)
        return Plan(gradients, ridge, event, precision, event.noise_sd)

    def _perturbed(self, plan: Plan, kept: KeptRows, noise: Noise) -> Floats:
        shape = (kept.n_columns, plan.gradients.classes)
        found = minimised(plan, kept, np.zeros(shape))
        whole = np.rint(found * plan.event.unit).astype(np.int64)
        return np.asarray(noised(noise, whole.ravel(), plan.event).reshape(shape) / plan.event.unit, dtype=np.float64)


# -- details -------------------------------------------------------------------------------------------------------------


def _beyond_floats() -> PrivacyError:
    return PrivacyError(
        "The ridge, epsilon, the loss and the bounds that were given lead to numbers beyond all floats. "
        "Use units in which they are of usual size. Nothing was charged."
    )


def _targets(geometry: Geometry) -> Floats:
    """Targets to check a loss at."""
    target = geometry.target
    return np.linspace(-1.0, 1.0, 9) if target is not None and target.kind == "slope" else np.array([-1.0, 1.0])
