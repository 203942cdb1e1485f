"""Importance weights to the letter: numbers in [0, 1], the printed noise, the printed number of rows, names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.reweighting.base import ReweightingProblem
from privfit.mechanisms.reweighting.density_ratio import DensityRatio, OneSided
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import PublicRows, Rows
from privfit.schema import RowNorms
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.effort import quick_or_full
from tests.support.noise import RecordingNoise
from tests.support.replays import furthest_moved

SCHEMA = pf.Schema([pf.Category("job", ["a", "b", "c"]), pf.Numeric("age", 20, 70), pf.Numeric("pay", -1, 3)])
CORNERS = [
    {"job": job, "age": age, "pay": pay} for job, age, pay in itertools.product("abc", (20.0, 70.0, 45.0), (-1.0, 3.0))
]


def people(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "job": generator.choice(list("abc"), rows),
            "age": generator.uniform(20, 70, rows),
            "pay": generator.uniform(-1, 3, rows),
        }
    )


PRIVATE, PUBLIC = people(40, 1), people(25, 2)


def design_of(table: pd.DataFrame) -> np.ndarray:
    mechanism = DensityRatio(encoding="slope")
    return PublicRows.read([open_table(table)], SCHEMA, mechanism.geometry(SCHEMA)).design.toarray()


def problem_of(mechanism: DensityRatio, rows: int | None = None) -> ReweightingProblem:
    return ReweightingProblem(PublicRows.read([open_table(PUBLIC)], SCHEMA, mechanism.geometry(SCHEMA)), rows)


# -- numbers in [0, 1] -----------------------------------------------------------------------------


def test_numbers_are_scaled_to_zero_and_one_and_named() -> None:
    design = design_of(pd.DataFrame(CORNERS))
    np.testing.assert_allclose(design[:, 3], (pd.DataFrame(CORNERS)["age"] - 20) / 50)
    assert (design[:, 4].min(), design[:, 4].max()) == (0.0, 1.0)
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, method="paper", numeric="slope", random_state=0)
    assert model.fit(PRIVATE, PUBLIC).beta_names_ == ["job_a", "job_b", "job_c", "age", "pay"]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 2])
def test_gradients_with_numbers_never_move_more_than_claimed_and_reach_it(adjacency: str, people: int) -> None:
    """Lemma 1: the root of two for a block of levels, one for a number; a smaller bound would be caught."""
    replaced = adjacency == "replace-one"
    norms = RowNorms.of(DensityRatio(encoding="slope").geometry(SCHEMA))
    encoded = design_of(pd.DataFrame(CORNERS))
    sums = [encoded[list(rows)].sum(axis=0) for rows in itertools.combinations_with_replacement(range(18), people)]
    others = sums if replaced else [np.zeros(encoded.shape[1])]
    worst = max(
        float(np.linalg.norm(s * one - t * other))
        for one, other in itertools.product(sums, others)
        for s, t in itertools.product((0.0, 0.5, 1.0), repeat=2)
    )
    claimed = OneSided(norms, LOGISTIC, rows_per_person=people, replace=replaced).sensitivity["l2"]
    assert claimed == pytest.approx(people * math.sqrt(2 + 2 if replaced else 3))
    assert worst == pytest.approx(claimed)
    printed = OneSided(norms, LOGISTIC, rows_per_person=people, replace=replaced, printed=True).sensitivity["l2"]
    assert printed == pytest.approx(people * math.sqrt(5))
    assert printed > claimed


def test_it_is_the_papers_objective_with_numbers() -> None:
    private, public, alpha = design_of(PRIVATE), design_of(PUBLIC), 0.1

    def loss(beta: np.ndarray) -> float:
        mine, theirs = np.logaddexp(0, -private @ beta).mean(), np.logaddexp(0, public @ beta).mean()
        return mine + theirs + alpha / 2 * beta @ beta

    expected = minimize(loss, np.zeros(5), options={"gtol": 1e-10}).x
    for method in ("paper", "objective"):
        model = pf.ImportanceWeights(1e7, schema=SCHEMA, method=method, numeric="slope", alpha=alpha, random_state=0)
        np.testing.assert_allclose(model.fit(PRIVATE, PUBLIC).beta_, expected, atol=2e-4)


def pairs_of(count: int, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbouring tables, half of them with a row at corners of the schema."""
    generator = np.random.default_rng(7)
    for place in range(count):
        table = people(5 + place % 4, place)
        table.loc[0] = CORNERS[generator.integers(18)]
        if adjacency == "add-remove":
            yield table, table.iloc[1:].reset_index(drop=True)
            continue
        other = table.copy()
        other.loc[0] = CORNERS[generator.integers(18)] if place % 2 else people(1, 10_000 + place).loc[0]
        yield table, other


@pytest.mark.parametrize(
    "form",
    [
        {"method": "paper", "numeric": "slope"},
        {"method": "objective", "numeric": "slope"},
        {"method": "paper", "numeric": "slope", "calibration": "paper"},
        {"method": "paper", "calibration": "paper"},
    ],
    ids=lambda form: "-".join(form.values()),
)
@quick_or_full("many", quick=[80], full=[250])
def test_hundreds_of_pairs_of_neighbours_cannot_be_told_apart(monkeypatch, form: dict[str, str], many: int) -> None:
    for adjacency in ("replace-one", "add-remove"):
        model = pf.ImportanceWeights(0.5, schema=SCHEMA, adjacency=adjacency, expected_rows=9, alpha=0.02, **form)

        def fit(table: pd.DataFrame, model: pf.ImportanceWeights = model) -> tuple:
            model.set_params(ledger=pf.Ledger(epsilon=1.0)).fit(table, PUBLIC)
            return model.weights_.tolist(), model.beta_.tolist(), model.report_.to_dict() | {"receipt": None}

        tried, furthest = furthest_moved(fit, pairs_of(many, adjacency), monkeypatch)
        assert tried == many
        if form["method"] == "paper":  # noise in an objective covers no distance of two minima
            assert 0.03 < furthest <= 0.5 * (1 + 1e-9)


# -- the printed noise -----------------------------------------------------------------------------


def test_the_printed_noise_has_the_scale_of_algorithm_1() -> None:
    mechanism = DensityRatio(0.1, encoding="slope", calibration="paper")
    facts = PublicFacts(mechanism.geometry(SCHEMA), PrivacyParameters(Budget(0.5)), 1000)
    event = mechanism.plan(facts, problem_of(mechanism)).event
    assert event.kinds == ("k-norm-l2",)
    assert event.scale / event.unit == pytest.approx(math.sqrt(5) / (1000 * 0.1 * 0.5), rel=0.03)
    tight = DensityRatio(0.1, encoding="slope").plan(facts, problem_of(mechanism)).event
    assert tight.scale / tight.unit == pytest.approx(2 / (1000 * 0.1 * 0.5), rel=0.03)


def test_a_ledger_takes_the_printed_noise_where_the_number_of_rows_is_public() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = pf.ImportanceWeights(0.5, schema=SCHEMA, method="paper", calibration="paper", ledger=ledger)
    assert model.fit(PRIVATE, PUBLIC).report_.private
    assert ledger.spent.epsilon == 0.5


def test_only_a_plan_that_refuses_a_ledger_knows_the_private_number_of_rows() -> None:
    parameters = PrivacyParameters(Budget(0.5), "add-remove")
    for rows in ("public", "mistyped"):
        mechanism = DensityRatio(0.1, encoding="slope", calibration="paper", rows=rows)  # type: ignore[arg-type]
        problem = replace(problem_of(mechanism), printed_rows=1000)
        assert not mechanism.reasons_not_private(problem)
        with pytest.raises(pf.PrivacyError, match="without expected_rows"):
            mechanism.plan(PublicFacts(mechanism.geometry(SCHEMA), parameters, None), problem)


# -- the printed number of rows --------------------------------------------------------------------


def test_the_printed_number_of_rows_is_stamped_and_its_scale_tells_of_a_row() -> None:
    model = pf.ImportanceWeights(
        0.5, schema=SCHEMA, method="paper", numeric="slope", calibration="paper", adjacency="add-remove"
    )
    scales = []
    for table in (PRIVATE, PRIVATE.iloc[1:]):
        report = model.fit(table, PUBLIC).report_
        assert not report.private
        assert "the number of private rows" in str(report)
        scales.append(report.to_dict()["noise_scale"])
    assert scales[1] / scales[0] == pytest.approx(len(PRIVATE) / (len(PRIVATE) - 1), rel=0.01)


def test_the_mechanism_itself_refuses_a_ledger_for_the_printed_number_of_rows() -> None:
    ledger, mechanism = pf.Ledger(epsilon=1.0), DensityRatio(calibration="paper", rows="printed")
    rows = Rows(open_table(PRIVATE), SCHEMA, mechanism.geometry(SCHEMA))
    parameters = PrivacyParameters(Budget(0.5), "add-remove")
    with pytest.raises(pf.PrivacyError, match="the number of private rows"):
        mechanism.release(rows, parameters, ledger, RecordingNoise(), problem_of(mechanism, len(PRIVATE)))
    model = pf.ImportanceWeights(
        0.5, schema=SCHEMA, method="paper", calibration="paper", adjacency="add-remove", ledger=ledger
    )
    with pytest.raises(pf.PrivacyError, match="the number of private rows"):
        model.fit(PRIVATE, PUBLIC)
    assert ledger.spent.epsilon == 0
    assert model.set_params(expected_rows=50).fit(PRIVATE, PUBLIC).report_.private


def test_without_the_printed_calibration_the_number_of_rows_is_still_asked_for() -> None:
    with pytest.raises(pf.PrivacyError, match="expected_rows"):
        pf.ImportanceWeights(0.5, schema=SCHEMA, method="paper", adjacency="add-remove").fit(PRIVATE, PUBLIC)


# -- names and refusals ----------------------------------------------------------------------------


def test_a_column_called_weight_is_no_obstacle() -> None:
    heavy = PUBLIC.assign(weight=np.arange(len(PUBLIC)) + 0.5)
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, weight_name="importance", random_state=0).fit(PRIVATE, heavy)
    frame = model.to_frame()
    np.testing.assert_array_equal(frame["weight"], heavy["weight"])
    np.testing.assert_array_equal(frame["importance"], model.weights_)
    assert model.estimate("weight") == pytest.approx(np.average(heavy["weight"], weights=model.weights_))
    with pytest.raises(pf.DataError, match="weight_name='importance'"):
        pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, heavy)


@pytest.mark.parametrize(
    ("wrong", "beats"),
    [
        ({"numeric": "splines", "method": "paper"}, ("numeric='splines'", "[0, 1]", "Use 'bins'")),
        ({"calibration": "printed", "method": "paper"}, ("calibration='printed'", "'paper'", "Use 'tight'")),
        ({"numeric": "slope"}, ("numeric='slope'", "tilting", "method='paper'")),
        ({"calibration": "paper"}, ("calibration='paper'", "tilting", "method='paper'")),
        ({"calibration": "paper", "method": "objective"}, ("calibration='paper'", "objective", "method='paper'")),
        ({"weight_name": ""}, ("weight_name=''", "name of a column", "'weight'")),
    ],
)
def test_what_means_nothing_is_refused_in_three_beats(wrong: dict, beats: tuple[str, ...]) -> None:
    with pytest.raises(pf.PrivacyError) as refused:
        pf.ImportanceWeights(1.0, schema=SCHEMA, **wrong).fit(PRIVATE, PUBLIC)
    assert_told_in_order(str(refused.value), beats)
