"""The certificate of a minimum: its noise covers what the solver leaves open and hardly shows; without it nothing is released, and the refusal tells nothing of the rows."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms.minima import Plan
from privfit.mechanisms.rules import FOR_CERTIFICATE
from tests.support.beats import assert_told_in_order
from tests.support.chains import told_by
from tests.support.perturbed import SCHEMA, planned, table_of


@pytest.mark.parametrize("noise", ["laplace", "linf", "l2", "mixed", "gaussian"])
@pytest.mark.parametrize("classes", [1, 3, 5])
@pytest.mark.parametrize("rows", [50, 10**6, None])
def test_output_noise_covers_what_the_solver_leaves_open(noise: str, classes: int, rows: int | None) -> None:
    """Lemma 6 in exact fractions: two certified minima, in L1 and in steps of the lattice, a step more per value for rounding."""
    adjacency = "replace-one" if rows else "add-remove"
    plan = planned(pf.ObjectivePerturbation(noise=noise), rows=rows, delta=1e-6, classes=classes, adjacency=adjacency)
    values = plan.gradients.values
    off = Fraction(plan.slack) + Fraction(math.sqrt(values)) / plan.event.unit / 2
    steps = 2 * off / Fraction(plan.ridge) * Fraction(math.sqrt(values)) * plan.output_unit + values
    share = Fraction(0.8) * Fraction(FOR_CERTIFICATE)
    assert steps <= share * Fraction(plan.output_scale) * (1 + Fraction(1, 10**9))
    assert steps > Fraction(9, 10) * share * Fraction(plan.output_scale)


def certificate_sd(plan: Plan) -> float:
    """The standard deviation, on a weight, of the noise that hides what the solver leaves open."""
    return math.sqrt(2) * plan.output_scale / plan.output_unit


@pytest.mark.parametrize("classes", [1, 3, 5])
def test_the_certificate_adds_hardly_any_noise_to_weights(classes: int) -> None:
    for rows in (50, 10**4, 10**6):
        assert certificate_sd(planned(pf.ObjectivePerturbation(), rows=rows, classes=classes)) < 0.05


@pytest.mark.parametrize(("adjacency", "rows"), [("add-remove", None), ("add-remove", 10**7), ("replace-one", 10**8)])
def test_the_certificate_adds_hardly_any_noise_where_rows_may_be_many(adjacency: str, rows: int | None) -> None:
    """Noise on weights themselves, which no number of rows makes up for: logits are off by that much."""
    assert certificate_sd(planned(pf.ObjectivePerturbation(), rows=rows, expected=rows, adjacency=adjacency)) < 0.05


def test_a_plan_for_more_rows_allows_for_more_rounding() -> None:
    slacks = [planned(pf.ObjectivePerturbation(), rows=rows).slack for rows in (10, 10**6, 10**8, 10**9)]
    assert slacks == sorted(slacks)
    assert slacks[-1] > slacks[0]


STUCK = pf.ObjectivePerturbation(ridge=1e-15, steepest=1.0)
"""Two rows say nothing about most directions: there weights are the noise over this ridge, far too long to compute with."""
WIDE = pf.Schema([pf.Category(f"s{i}", [0, 1]) for i in range(6)], target=pf.Category("y", [0, 1]))


def stuck(table: list, **given_: Any) -> BaseException:
    with pytest.raises(pf.PrivacyError) as refused:
        pf.LogisticRegression(200.0, schema=WIDE, mechanism=STUCK, **given_).fit(np.array(table))
    return refused.value


def test_a_minimum_that_cannot_be_certified_is_not_released_and_stays_charged(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=300.0)
    error = stuck([[0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 1, 1, 1, 1]], ledger=ledger)
    assert_told_in_order(
        str(error), ["was given 7 columns and a ridge of 1e-15", "did not reach the precision", "charge stands", "larger ridge"]
    )
    assert ledger.spent.epsilon == 200


def test_a_failure_to_certify_tells_the_same_of_any_two_tables() -> None:
    tables = [[[0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 1, 1, 1, 1]], [[1] * 7] * 5, [[0, 0, 0, 0, 0, 0, 1]]]
    texts = {str(stuck(table, random_state=seed)) for seed, table in enumerate(tables)}
    assert len(texts) == 1
    assert re.findall(r"\d[\d.e-]*", texts.pop()) == ["7", "1e-15"]  # columns and ridge: public


def test_a_failure_to_certify_drags_along_no_error_that_knows_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privfit.mechanisms.minima.TOLERANCE", 1e-30)
    monkeypatch.setattr("privfit.mechanisms.minima.LONG_TILT", 0.0)
    monkeypatch.setattr("privfit.rows.kept.UNIT_ROUNDOFF", 1e-40)  # a precision that no float reaches
    texts = set()
    for seed in (0, 2):
        with pytest.raises(pf.PrivacyError) as refused:
            pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0).fit(table_of(300, seed))
        texts.add(told_by(refused.value))
    assert len(texts) == 1


def test_a_refused_fit_leaves_no_model_behind() -> None:
    model = pf.LogisticRegression(200.0, schema=WIDE, mechanism=STUCK, random_state=0)
    with pytest.raises(pf.PrivacyError):
        model.fit(np.array([[1] * 7] * 2))
    assert not hasattr(model, "coef_")
