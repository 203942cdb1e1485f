"""Every mutant is caught by its attack, and the same attack finds nothing wrong without it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import privfit as pf
from privfit.audit.attacks import attack_black_box, attack_density, attack_ledger, attack_order, attack_replay
from privfit.audit.cases import Case
from privfit.audit.catalogue import catalogue, of_estimator
from privfit.audit.precision import attack_precision
from privfit.audit.rows import Neighbours, Row
from privfit.audit.table import Finding
from privfit.mechanisms.perturbation import objective, precision
from privfit.privacy import Adjacency, SeededNoise
from tests.audit.mutants import FIRST_ROWS, FITS, FUNCTIONS, OBJECTIVES, Mutant, laplace

CASES = {case.key: case for case in catalogue()}
PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def first_of_rows(rows: Any) -> float:
    """The first value of a block."""
    return float(rows[0, 0])


def by_position() -> tuple[Case, Neighbours]:
    """Blocks of three rows in order begin with a 0; with one more row at the start, with a 1."""
    schema = pf.Schema([pf.Numeric("u", 0, 1)])
    mechanism = pf.SampleAndAggregate(blocks=8)

    def make(adjacency: Adjacency, ledger: pf.Ledger, epsilon: float) -> pf.Aggregate:
        given: dict[str, Any] = {"adjacency": adjacency, "ledger": ledger, "epsilon": epsilon, "expected_rows": 24}
        return pf.Aggregate(first_of_rows, low=[0.0], high=[1.0], schema=schema, mechanism=mechanism, **given)

    rows: tuple[Row, ...] = ((0.0,), (0.0,), (1.0,)) * 8
    return Case("Aggregate", make, schema), Neighbours("one more", (), rows, ((1.0,), *rows), "add-remove")


def found(attack: str, key: str = "LinearRegression (defaults)") -> Finding:
    """What one attack finds on a case of the catalogue."""
    if key == FIRST_ROWS:
        return attack_black_box(*by_position(), runs=300)
    case = CASES[key]
    pairs = case.pairs()
    if attack == "replay":
        return next(attack_replay(case, pairs, 0))
    return {"order": attack_order, "ledger": attack_ledger, "precision": attack_precision}[attack](case, pairs[0])


@pytest.mark.parametrize(("attack", "key"), sorted({(mutant.attack, mutant.case) for mutant in FITS}))
def test_nothing_is_found_without_a_mutant(attack: str, key: str) -> None:
    finding = found(attack, key)
    assert not finding.violated, finding.detail


@pytest.mark.parametrize("mutant", FITS, ids=lambda mutant: mutant.name)
def test_a_broken_fit_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.break_(monkeypatch)
    assert found(mutant.attack, mutant.case).violated


def densities(gaussian: bool = False) -> list[Finding]:
    """What the exact law shows of a logistic regression of one column with hardly any ridge, and of defaults."""
    schema = pf.Schema([pf.Numeric("x", -1, 1)], pf.Category("y", ["a", "b"]))

    def make(adjacency: str, ledger: pf.Ledger, epsilon: float) -> pf.LogisticRegression:
        return pf.LogisticRegression(
            epsilon,
            schema=schema,
            ledger=ledger,
            adjacency=adjacency,
            delta=1e-6 if gaussian else 0.0,
            numeric="slope",
            fit_intercept=False,
            mechanism=pf.ObjectivePerturbation(ridge=0.01, noise="gaussian" if gaussian else "l2"),
        )

    small = Case("LogisticRegression", make, schema, {"delta": 1e-6} if gaussian else {})
    cases = [small] if gaussian else [small, next(of_estimator(pf.LogisticRegression))]
    return [finding for case in cases for finding in attack_density(case, case.pairs(), 0)]


def test_the_law_of_a_perturbed_objective_holds_and_comes_near_the_claim() -> None:
    found = densities()
    assert len(found) == 2
    assert not [finding.detail for finding in found if finding.violated]
    assert [finding.found > least for finding, least in zip(found, (0.75, 0.95), strict=True)] == [True, True]
    (gaussian,) = densities(gaussian=True)
    assert not gaussian.violated
    assert 0.3 < gaussian.found <= 1


@pytest.mark.parametrize("mutant", OBJECTIVES, ids=lambda mutant: mutant.name)
def test_a_broken_objective_is_caught_by_its_law(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.break_(monkeypatch)
    assert any(finding.violated for finding in densities())


def test_half_of_the_gaussian_noise_is_caught_by_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = objective.gaussian_noise
    monkeypatch.setattr(
        objective,
        "gaussian_noise",
        lambda gradients, epsilon, *given: usual(gradients, 2 * epsilon, *given),
    )
    assert densities(gaussian=True)[0].violated


def test_an_objective_that_is_not_the_one_drawn_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = precision.minimised
    monkeypatch.setattr(precision, "minimised", lambda plan, rows, term: usual(plan, rows, term / 2))
    assert "not what was drawn" in densities()[0].detail


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_broken_function_is_caught(name: str) -> None:
    assert pf.audit.black_box(FUNCTIONS[name], [1, 0], [1, 1], epsilon=1.0, delta=1e-6, runs=600).violated


def test_the_same_function_with_enough_noise_is_not() -> None:
    own = SeededNoise(3)  # not the one that the mutants use up, in whatever order tests run
    result = pf.audit.black_box(lambda table: laplace(table, 1.0, own), [1, 0], [1, 1], epsilon=1.0, runs=600)
    assert not result.violated
    assert 0.2 < result.lower_bound < 1


@pytest.mark.parametrize("seed", [0, 3])
def test_rare_events_do_not_hide_what_all_numbers_together_show(seed: int) -> None:
    """An event that comes up now and then on one table by luck was chosen over one that tells the tables apart."""
    own = SeededNoise(seed)

    def counted(table: Any) -> tuple[object, str]:
        counts = [
            laplace([value], 2.0, own) for value in table
        ]  # two counts that a row moves by one: epsilon 1 together
        return counts, str(counts)

    result = pf.audit.black_box(counted, [7, 7], [6, 6], epsilon=1.0, runs=4000)
    assert not result.violated
    assert result.lower_bound > 0.6


def test_the_page_lists_every_mutant() -> None:
    listed = set(
        re.findall(
            r"^\| ([^|]+) \| (?:black box|replay|order|ledger|density|precision) \|$", PAGE.read_text(), flags=re.M
        )
    )
    assert listed == {*FUNCTIONS, *(mutant.name for mutant in (*FITS, *OBJECTIVES))}
