"""Functions that release something, run because they exist: record and replay on neighbouring tables."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit import evaluation, summaries
from privfit.summaries import release
from tests.conformance.control_flow import facts
from tests.conformance.flow_tables import family
from tests.support.functions import CASES, Case
from tests.support.noise import Call, RecordingNoise, ReplayingNoise

FUNCTIONS = (*summaries.FUNCTIONS, *evaluation.FUNCTIONS)
NORMS = {
    "laplace": lambda moved: sum(abs(int(move)) for move in moved),
    "linf": lambda moved: max(abs(int(move)) for move in moved),
    "permute-and-flip": lambda moved: max(moved) - min(moved),
    "exponential": lambda moved: max(moved) - min(moved),
    "gaussian": lambda moved: math.sqrt(sum(int(move) ** 2 for move in moved)),
}
RHO = {"exponential": 1 / 8, "gaussian": 1 / 2}
"""What a distance over its scale costs in zCDP, by the square of it."""
PAIRS = 8
ROWS = 12


def frame(case: Case, rows: list[Any]) -> pl.DataFrame:
    names = [column.name for column in case.columns]
    return pl.DataFrame(dict(zip(names, zip(*rows, strict=True), strict=True)), strict=False)


def answered(
    monkeypatch: pytest.MonkeyPatch, case: Case, rows: list[Any], noise: RecordingNoise, adjacency: str, people: int
) -> tuple[Any, pf.Ledger, list[str]]:
    monkeypatch.setattr(release, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = case(frame(case, rows), adjacency, ledger, rows_per_person=people)
    seen = facts(answer), str(answer), str(answer.report)
    return seen, ledger, [str(warning.message) for warning in caught]


def spent(one: Call, other: Call) -> float:
    moved = (one.values.astype(object) - other.values.astype(object)).ravel()
    return float(NORMS[one.kind](moved) / one.scale)


def price(losses: list[float], calls: list[Call], ledger: pf.Ledger) -> tuple[float, float]:
    """What the draws cost together, and what was paid: in zCDP where that is the claim."""
    (entry,) = ledger.entries()
    if not entry.event.rho:
        return sum(losses), entry.event.epsilon
    each = zip(losses, calls, strict=True)
    return sum(RHO[call.kind] * loss**2 for loss, call in each), entry.event.rho


def pairs(case: Case, adjacency: str) -> list[tuple[list[Any], list[Any]]]:
    schema = pf.Schema(case.columns)
    found = [family(schema, kind, ROWS, adjacency, kind, 1) for kind in range(PAIRS)]
    return [(one.rows, other) for one in found for other in one.neighbours]


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_noised_values_move_no_further_than_paid_for_and_nothing_else_leaves(
    monkeypatch, case: Case, adjacency: str, people: int
) -> None:
    for left, right in pairs(case, adjacency)[:: people * 2 - 1]:
        first = RecordingNoise(3)
        seen, ledger, said = answered(monkeypatch, case, left, first, adjacency, people)
        second = ReplayingNoise(first.calls)
        other, other_ledger, other_said = answered(monkeypatch, case, right, second, adjacency, people)
        shapes = [[(call.kind, call.values.shape, call.scale) for call in run.calls] for run in (first, second)]
        assert shapes[0] == shapes[1]
        assert shapes[0]
        losses = [people * spent(one, two) for one, two in zip(first.calls, second.calls, strict=True)]
        loss, claimed = price(losses, first.calls, ledger)
        assert loss <= claimed * (1 + 1e-12)
        assert [entry.event for entry in ledger.entries()] == [entry.event for entry in other_ledger.entries()]
        assert said == other_said
        assert seen == other


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_half_the_noise_is_seen(monkeypatch, case: Case) -> None:
    """The attack works: some pair of neighbours uses more than half of what is paid for."""
    worst = 0.0
    for adjacency in ("replace-one", "add-remove"):
        for left, right in pairs(case, adjacency):
            first = RecordingNoise(3)
            _, ledger, _ = answered(monkeypatch, case, left, first, adjacency, 1)
            second = ReplayingNoise(first.calls)
            answered(monkeypatch, case, right, second, adjacency, 1)
            losses = [spent(one, two) for one, two in zip(first.calls, second.calls, strict=True)]
            loss, claimed = price(losses, first.calls, ledger)
            worst = max(worst, math.sqrt(loss / claimed) if ledger.entries()[0].event.rho else loss / claimed)
    assert worst > 0.5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_ledger_pays_exactly_what_is_asked_and_the_report_says_so(case: Case) -> None:
    rows = frame(case, family(pf.Schema(case.columns), 1, 40, "replace-one", 0, 0).rows)
    ledger = pf.Ledger(epsilon=10.0, delta=0.1)
    answer = case(rows, "replace-one", ledger)
    assert ledger.spent.epsilon == pytest.approx(0.7)
    (entry,) = ledger.entries()
    assert (entry.model, entry.event.to_dict()) == (case.function.__name__, answer.report.event)
    assert (answer.report.private, answer.report.epsilon) == (True, 0.7)
    assert ledger.verify(answer.report.receipt).entries == 1
    with pytest.raises(pf.BudgetExceeded):
        case(rows, "replace-one", ledger, epsilon=100.0)
    assert ledger.n_entries == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_seed_repeats_is_stamped_not_private_and_is_refused_by_a_ledger(case: Case) -> None:
    rows = frame(case, family(pf.Schema(case.columns), 1, 40, "replace-one", 0, 0).rows)
    first, again = (case(rows, "replace-one", None, random_state=5) for _ in range(2))
    assert facts(first) == facts(again)
    assert not first.report.private
    ledger = pf.Ledger(epsilon=10.0, delta=0.1)
    with pytest.raises(pf.PrivacyError, match="ledger"):
        case(rows, "replace-one", ledger, random_state=5)
    assert ledger.n_entries == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_form_of_a_table_gives_the_same_answer(case: Case, tmp_path) -> None:
    """If the number of rows is expected to be the same: that of a stream is not known when its grid is chosen."""
    rows = frame(case, family(pf.Schema(case.columns), 1, 40, "replace-one", 0, 0).rows)
    rows.write_parquet(tmp_path / "rows.parquet")
    rows.write_csv(tmp_path / "rows.csv")
    forms = [rows, rows.to_arrow(), rows.lazy(), tmp_path / "rows.parquet", tmp_path / "rows.csv", rows.to_pandas()]
    forms.append(rows.to_arrow().to_reader())
    answers = [case(form, "replace-one", None, random_state=5, expected_rows=40) for form in forms]
    assert all(facts(answer) == facts(answers[0]) for answer in answers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_refused_cell_charges_nothing_and_is_not_quoted(case: Case) -> None:
    column = case.columns[-1]
    bad = pl.lit("secret") if isinstance(column, pf.Numeric) else pl.lit(0.12345)
    rows = frame(case, family(pf.Schema(case.columns), 1, 40, "replace-one", 0, 0).rows)
    ledger = pf.Ledger(epsilon=10.0, delta=0.1)
    with pytest.raises(pf.DataError) as refused:
        case(rows.with_columns(bad.alias(column.name)), "replace-one", ledger)
    assert "secret" not in str(refused.value)
    assert "0.12345" not in str(refused.value)
    assert ledger.n_entries == 0


def test_every_function_that_releases_something_has_a_case() -> None:
    exported = {thing for thing in vars(pf).values() if inspect.isfunction(thing)}
    releasing = {thing for thing in exported if "epsilon" in inspect.signature(thing).parameters}
    assert releasing - {pf.plan} == set(FUNCTIONS)  # a plan opens no private table
    assert {case.function for case in CASES} == set(FUNCTIONS)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_functions_share_their_terms(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert parameters["epsilon"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["epsilon"].default is inspect.Parameter.empty
    assert parameters["ledger"].default is None
    assert {"adjacency", "rows_per_person", "expected_rows", "random_state"} <= set(parameters)
    assert "Guarantee:" in (function.__doc__ or "")
    assert np.all([name in (function.__doc__ or "") for name in parameters])
