"""The certificate of a minimum: its noise covers what the solver leaves open and hardly shows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.problem import ERMPlan
from tests.support.perturbed import planned


@pytest.mark.parametrize("noise", ["laplace", "linf", "l2", "mixed", "gaussian"])
@pytest.mark.parametrize("classes", [1, 3, 5])
@pytest.mark.parametrize("rows", [50, 10**6, None])
def test_output_noise_covers_what_the_solver_leaves_open(noise: str, classes: int, rows: int | None) -> None:
    """Lemma 6 in exact fractions: two certified minima, in L1 and in steps of the lattice, a step more per value for
    rounding.
    """
    adjacency = "replace-one" if rows else "add-remove"
    plan = planned(pf.ObjectivePerturbation(noise=noise), rows=rows, delta=1e-6, classes=classes, adjacency=adjacency)
    values = plan.gradients.values
    off = Fraction(plan.precision.slack) + Fraction(math.sqrt(values)) / plan.event.unit / 2
    certificate = plan.certificate
    assert certificate is not None
    steps = 2 * off / Fraction(plan.ridge) * Fraction(math.sqrt(values)) * certificate.unit + values
    assert steps <= certificate.sensitivity * (1 + Fraction(1, 10**9))
    share = Fraction(0.8) * Fraction(FOR_CERTIFICATE)
    assert steps <= share * Fraction(certificate.scale) * (1 + Fraction(1, 10**9))
    assert steps > Fraction(9, 10) * share * Fraction(certificate.scale)


def certificate_sd(plan: ERMPlan) -> float:
    """The standard deviation, on a weight, of the noise that hides what the solver leaves open."""
    assert plan.certificate is not None
    return plan.certificate.sd


@pytest.mark.parametrize("classes", [1, 3, 5])
def test_the_certificate_adds_hardly_any_noise_to_weights(classes: int) -> None:
    for rows in (50, 10**4, 10**6):
        assert certificate_sd(planned(pf.ObjectivePerturbation(), rows=rows, classes=classes)) < 0.05


@pytest.mark.parametrize(("adjacency", "rows"), [("add-remove", None), ("add-remove", 10**7), ("replace-one", 10**8)])
def test_the_certificate_adds_hardly_any_noise_where_rows_may_be_many(adjacency: str, rows: int | None) -> None:
    """Noise on weights themselves, which no number of rows makes up for: logits are off by that much."""
    assert certificate_sd(planned(pf.ObjectivePerturbation(), rows=rows, expected=rows, adjacency=adjacency)) < 0.05


def test_a_plan_for_more_rows_allows_for_more_rounding() -> None:
    slacks = [planned(pf.ObjectivePerturbation(), rows=rows).precision.slack for rows in (10, 10**6, 10**8, 10**9)]
    assert slacks == sorted(slacks)
    assert slacks[-1] > slacks[0]


TINY = pf.ObjectivePerturbation(ridge=1e-15, steepest=1.0)
"""Two rows say nothing about most directions: there weights would be the noise over this ridge, far too long to compute
with.
"""
WIDE = pf.Schema([pf.Category(f"s{i}", [0, 1]) for i in range(6)], target=pf.Category("y", [0, 1]))
TABLES = [[[0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 1, 1, 1, 1]], [[1] * 7] * 2, [[0] * 7, [1] * 7]]


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
@pytest.mark.parametrize("table", TABLES)
def test_a_ridge_too_small_to_compute_with_is_raised_and_told_for_every_table(table: list) -> None:
    ledger = pf.Ledger(epsilon=300.0)
    model = pf.LogisticRegression(200.0, schema=WIDE, mechanism=TINY, ledger=ledger).fit(np.array(table))
    assert np.isfinite(model.coef_).all()
    assert "the ridge was raised from 1e-15" in str(model.report_)
    assert ledger.spent.epsilon == 200


def test_a_raised_ridge_depends_on_public_facts_alone() -> None:
    ridges = {planned(pf.ObjectivePerturbation(ridge=ridge), rows=100).ridge for ridge in (1e-300, 1e-30, 1e-15)}
    assert len(ridges) == 1 or max(ridges) / min(ridges) < 1 + 1e-8
    assert (
        planned(pf.ObjectivePerturbation(ridge=1.0), rows=100).ridge
        == planned(pf.ObjectivePerturbation(ridge=1.0), rows=10).ridge
    )
