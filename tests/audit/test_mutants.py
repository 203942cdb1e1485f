"""Every mutant is caught by its attack, and the same attack finds nothing wrong without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import privfit as pf
from privfit.audit.estimators import (
    SETTINGS,
    Attacked,
    _schema_for,
    attack_ledger,
    attack_order,
    attack_replay,
)
from privfit.audit.rows import RowMaker
from privfit.audit.table import Finding
from tests.audit.mutants import FITS, FUNCTIONS, Mutant, laplace

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def found(attack: str) -> Finding:
    """What one attack finds on a linear regression."""
    schema = _schema_for(pf.LinearRegression, None)
    attacked = Attacked(pf.LinearRegression, SETTINGS[0], schema, RowMaker(schema, 0))
    pairs = list(attacked.rows.pairs(1))
    if attack == "replay":
        return next(attack_replay(attacked, pairs, 0))
    return {"order": attack_order, "ledger": attack_ledger}[attack](attacked, pairs[0])


@pytest.mark.parametrize("attack", ["replay", "order", "ledger"])
def test_nothing_is_found_without_a_mutant(attack: str) -> None:
    finding = found(attack)
    assert not finding.violated, finding.detail


@pytest.mark.parametrize("mutant", FITS, ids=lambda mutant: mutant.name)
def test_a_broken_fit_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.break_(monkeypatch)
    assert found(mutant.attack).violated


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_broken_function_is_caught(name: str) -> None:
    assert pf.audit.black_box(FUNCTIONS[name], [1, 0], [1, 1], epsilon=1.0, delta=1e-6, runs=600).violated


def test_the_same_function_with_enough_noise_is_not() -> None:
    result = pf.audit.black_box(lambda table: laplace(table, 1.0), [1, 0], [1, 1], epsilon=1.0, runs=600)
    assert not result.violated
    assert 0.2 < result.lower_bound < 1


def test_the_page_lists_every_mutant() -> None:
    listed = set(re.findall(r"^\| ([^|]+) \| (?:black box|replay|order|ledger) \|$", PAGE.read_text(), flags=re.M))
    assert listed == {*FUNCTIONS, *(mutant.name for mutant in FITS)}
