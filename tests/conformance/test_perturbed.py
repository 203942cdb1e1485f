"""The attack on models that release weights: for neighbours and any weights, how much likelier one makes them than the
other, computed exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import Perturbation
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.privacy import Budget, PrivacyParameters
from privfit.privacy.parts import RELEASE, Additive
from privfit.rows import CachedDesign, Rows, SampledDesign
from privfit.tables import open_table
from tests.conformance.cases import Neighbours, attacks, frame, neighbours, perturbed_variants, schema_for
from tests.support.lengths import length
from tests.support.objective_noise import less_noise

EPSILON = 0.7
ESTIMATORS = [pf.LogisticRegression, pf.LinearSVC, pf.ERM]


def numeric_of(model: Any, mechanism: Any) -> Any:
    """How a fit with many rows encodes numbers."""
    return mechanism.numeric if model.numeric == "auto" else model.numeric


def plans(estimator: type, pair: Neighbours, variant: dict) -> tuple[ERMPlan, CachedDesign, CachedDesign]:
    """What a fit plans for these neighbours, and the rows of both."""
    model = estimator(epsilon=EPSILON, **variant)
    mechanism, schema = model._chosen_mechanism(), schema_for(estimator)
    risk = model._problem(mechanism, schema, numeric_of(model, mechanism))
    geometry = mechanism.geometry(schema, risk, numeric_of(model, mechanism))
    left, right = (
        CachedDesign(Rows(open_table(frame(rows)), schema, geometry), risk.features) for rows in (pair.left, pair.right)
    )
    terms = PrivacyParameters(
        Budget(EPSILON, variant.get("delta", 0.0)),
        pair.adjacency,
        variant.get("rows_per_person", 1),
        variant.get("expected_rows"),
    )
    known = left.n_rows if pair.adjacency == "replace-one" else variant.get("expected_rows")
    return mechanism.plan(PublicFacts(geometry, terms, known), risk), left, right


def log_density(plan: ERMPlan, kept: CachedDesign, weights: np.ndarray, sample: SampledDesign | None = None) -> float:
    """The logarithm of the density of the perturbed minimum at these weights, up to a constant that is the same for all
    tables.
    """
    respond, bend = plan.gradients.row_slopes, plan.gradients.row_curvatures
    tilt = -(kept.gradient(weights, respond, plan.gradients.slope_norm["linf"]) + plan.ridge * weights)
    hessian = (sample or kept.sample()).hessian(weights, bend)[0] + plan.ridge * np.eye(len(weights))
    total = 0.0
    assert plan.noise is not None
    drawn = [part for part in plan.event.parts if isinstance(part, Additive) and part.purpose == RELEASE]
    for group, part in zip(plan.noise.groups, drawn, strict=True):
        own = tilt[list(group.columns)].ravel() * part.unit / part.scale
        total += length(group.kind, own, group.blocks)
    return -total + float(np.linalg.slogdet(hessian)[1])


def last_row(kept: CachedDesign) -> np.ndarray:
    *_, chunk = kept._every_chunk()
    return kept._dense(chunk)[-1]


def worst_loss(plan: ERMPlan, left: CachedDesign, right: CachedDesign, seed: int = 0) -> float:
    """The largest difference over many weights, near and far."""
    rng = np.random.default_rng(seed)
    apart = last_row(left) - last_row(right)  # along which both rows can be on the wrong side
    directions = [
        apart,
        -apart,
        *(rng.choice([-1.0, 1.0], left.n_columns) * rng.uniform(0.2, 1.0, left.n_columns) for _ in range(3)),
    ]
    sizes = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
    tried = [np.zeros((left.n_columns, 1)), *(size * way[:, None] for size in sizes for way in directions)]
    one, other = left.sample(), right.sample()
    return max(
        abs(log_density(plan, left, weights, one) - log_density(plan, right, weights, other)) for weights in tried
    )


def is_pure_objective(estimator: type, variant: dict) -> bool:
    mechanism = estimator(**variant)._chosen_mechanism()
    return isinstance(mechanism, pf.ObjectivePerturbation) and not variant.get("delta")


def pure_variants(estimator: type) -> list[dict]:
    return [variant for variant in perturbed_variants(estimator) if is_pure_objective(estimator, variant)]


@pytest.mark.parametrize(("estimator", "pair", "variant"), attacks(ESTIMATORS, pure_variants))
def test_no_weights_are_much_likelier_for_one_neighbour(estimator, pair, variant) -> None:
    plan, left, right = plans(estimator, pair, variant)
    assert plan.noise is not None
    claimed = EPSILON * (1 - FOR_CERTIFICATE) / variant.get("rows_per_person", 1)
    assert worst_loss(plan, left, right) <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_attack_comes_close_to_the_claim_and_catches_less_noise(estimator) -> None:
    """Rows of other levels and the other class: both can be on the wrong side at once.

    With noise a third smaller the claim breaks.
    """
    schema = pf.Schema([pf.Category(name, ["p", "q", "r"]) for name in "uvw"], target=pf.Category("y", ["a", "b"]))
    model = estimator(epsilon=EPSILON, mechanism=pf.ObjectivePerturbation(steepest=0.5))
    mechanism = model._chosen_mechanism()
    risk = model._problem(mechanism, schema, numeric_of(model, mechanism))
    geometry = mechanism.geometry(schema, risk, "slope")
    tables = [
        np.array([["r", "r", "r", "a"], row], dtype=object) for row in (["p", "p", "p", "a"], ["q", "q", "q", "b"])
    ]
    left, right = (CachedDesign(Rows(open_table(table), schema, geometry)) for table in tables)
    plan = mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(EPSILON)), 2), risk)
    assert worst_loss(plan, left, right) > 0.95 * EPSILON
    assert worst_loss(less_noise(plan, 1.1), left, right) > EPSILON


def test_a_forgotten_volume_is_caught() -> None:
    """With a ridge far below what privacy needs, curvature alone breaks the claim: the printed algorithm of 2008."""
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Category("y", ["a", "b"]))
    model = pf.LogisticRegression(
        EPSILON, numeric="slope", fit_intercept=False, mechanism=pf.ObjectivePerturbation(steepest=1.0, ridge=0.01)
    )
    mechanism = model._chosen_mechanism()
    assert isinstance(mechanism, Perturbation)
    risk = model._problem(mechanism, schema, numeric_of(model, mechanism))
    geometry = mechanism.geometry(schema, risk, "slope")
    left, right = (
        CachedDesign(Rows(open_table(np.array([[0.0, "a"], [x, "b"]], dtype=object)), schema, geometry))
        for x in (1.0, 0.0)
    )
    plan = mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(EPSILON)), 2), risk)
    at_zero = np.zeros((1, 1))
    assert plan.ridge > 0.01
    assert abs(log_density(plan, left, at_zero) - log_density(plan, right, at_zero)) <= EPSILON
    printed = replace(plan, ridge=0.01)
    assert abs(log_density(printed, left, at_zero) - log_density(printed, right, at_zero)) > 2 * EPSILON


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("noise", ["gaussian", "l2", "laplace"])
def test_minima_move_no_further_than_output_noise_covers(estimator, noise) -> None:
    """Two tables' minima, found by the solver, in the norm and on the lattice of the noise."""
    from privfit.mechanisms.perturbation.precision import minimised

    for pair in neighbours(estimator):
        variant = {
            "mechanism": pf.OutputPerturbation(ridge=3.0, noise=noise),
            "delta": 1e-6 if noise == "gaussian" else 0.0,
        }
        plan, left, right = plans(estimator, pair, variant)
        minima = [
            np.rint(minimised(plan, kept, np.zeros((kept.n_columns, 1))) * plan.event.unit) for kept in (left, right)
        ]
        moved = minima[0] - minima[1]
        length = np.abs(moved).sum() if noise == "laplace" else np.linalg.norm(moved)
        assert 0 < length <= plan.event.sensitivity
        if noise != "gaussian":
            assert plan.event.sensitivity / plan.event.scale <= EPSILON * (1 + 1e-12)


def test_slopes_of_a_row_that_leaves_and_curvature_are_paid_together() -> None:
    """The free ridge is not larger than it needs to be: with a fifth of it, some weights break the claim."""
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Category("y", ["a", "b"]))
    model = pf.LogisticRegression(EPSILON, numeric="slope", fit_intercept=False)
    mechanism = model._chosen_mechanism()
    risk = model._problem(mechanism, schema, numeric_of(model, mechanism))
    geometry = mechanism.geometry(schema, risk, "slope")
    tables = [np.array([[1.0, "b"]], dtype=object), np.array([[-1.0, "b"]], dtype=object)]
    left, right = (CachedDesign(Rows(open_table(table), schema, geometry)) for table in tables)
    plan = mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(EPSILON)), 1), risk)

    def worst(ridge: float) -> float:
        changed = replace(plan, ridge=ridge)
        grid = np.linspace(-6, 6, 241)
        return max(
            abs(log_density(changed, left, np.full((1, 1), w)) - log_density(changed, right, np.full((1, 1), w)))
            for w in grid
        )

    assert worst(plan.ridge) <= EPSILON
    assert worst(plan.ridge / 50) > EPSILON
    assert math.isfinite(plan.ridge)
