"""Everything that releases something is attacked because it exists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import privfit as pf
from privfit import baselines
from privfit.audit.attacks import FULL, Effort, attack_order
from privfit.audit.catalogue import catalogue
from privfit.audit.runner import attacks
from privfit.summaries import FUNCTIONS

NOT_PRIVATE = {"NoPrivacy", "Truncated"}
"""No ledger takes these."""
PRINTED = {"PrivateERM"}
"""As printed; a ledger takes some settings alone."""


def test_everything_exported_is_attacked() -> None:
    exported = {
        name
        for place in (pf, baselines)
        for name, thing in vars(place).items()
        if isinstance(thing, type) and issubclass(thing, BaseEstimator)
    }
    known = {case.name for case in catalogue()}
    assert exported - NOT_PRIVATE - PRINTED <= known
    assert {function.__name__ for function in FUNCTIONS} <= known


def test_every_name_of_a_mechanism_is_attacked() -> None:
    known = {case.key for case in catalogue()}
    for name in ("objective", "output", "genetic", "sample-and-aggregate", "functional"):
        assert f"LogisticRegression (mechanism={name})" in known
    assert "KMeans (mechanism=lloyd)" in known
    assert "Ridge (mechanism=objective)" in known


@pytest.mark.parametrize("key", ["KMeans (mechanism=cells)", "describe (of=..., rows_per_person=2)", "DPME (defaults)"])
def test_a_case_holds(key: str) -> None:
    case = next(one for one in catalogue() if one.key == key.replace("of=..., ", ""))
    findings = attacks(case, Effort(runs=40, steps=1, every_setting=False))
    assert {"replay", "worst rows", "order", "ledger"} <= {finding.attack for finding in findings}
    assert not [finding for finding in findings if finding.violated]


WEIGHED = [place for place, case in enumerate(catalogue()) if "max_weight" in case.setting]


@pytest.mark.parametrize("place", WEIGHED, ids=[catalogue()[place].name for place in WEIGHED])
def test_every_engine_hands_out_rows_with_weights_alike(place: int) -> None:
    case = catalogue()[place]
    finding = attack_order(case, case.pairs()[0])
    assert not finding.violated, finding.detail


def test_an_audit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file, done = tmp_path / "audit.jsonl", []
    first = pf.audit.mechanisms(names=["Majority"], resume=file)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:2]) + '\n{"case": "Maj')
    again = pf.audit.mechanisms(
        names=["Majority"], resume=file, progress=lambda done_, cases, last: done.append((done_, cases, last))
    )
    assert [json.loads(line)["case"] for line in lines[1:]] == [
        "Majority (defaults)",
        "Majority (rows_per_person=2)",
    ]
    assert done == [(2, 2, "Majority (rows_per_person=2)")]
    assert [one.attack for one in again.findings] == [one.attack for one in first.findings]
    with pytest.raises(pf.PrivacyError, match="another file"):
        pf.audit.mechanisms(names=["Majority"], resume=file, seed=1)


def test_a_drawing_has_a_place_for_every_case(tmp_path: Path) -> None:
    result = pf.audit.mechanisms(names=["Majority"])
    figure = result.plot(tmp_path / "audit.svg")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "Majority (rows_per_person=2)",
        "Majority (defaults)",
    ]
    assert (tmp_path / "audit.svg").stat().st_size > 1000


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="KMeans"):
        pf.audit.mechanisms(names=["nothing"])


def test_a_full_audit_runs_every_name_often() -> None:
    runs: dict[str, int] = {}
    for case in catalogue(full=True):
        runs[case.name] = runs.get(case.name, 0) + 2 * FULL.runs_of(case)
    assert min(runs.values()) >= 20_000
    assert FULL.runs_of(next(case for case in catalogue(full=True) if case.told == "defaults")) == 5000
