"""A private choice among settings: rows are partition, one charge covers all, and the better setting wins where it
clearly is better.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.tuning import partition
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise

SCHEMA = pf.Schema([pf.Numeric("a", -1, 1), pf.Category("c", [0, 1, 2])], target=pf.Category("y", [0, 1]))
GOOD, DEAF = pf.ObjectivePerturbation(ridge=1.0), pf.ObjectivePerturbation(ridge=1e9)


class DealingNoise(RecordingNoise):
    """Remembers every call, and deals."""

    def below(self, limits: np.ndarray) -> np.ndarray:
        return self._source.below(limits)


def table_of(rows: int = 1500, seed: int = 0) -> np.ndarray:
    """The class follows the number and the level; slightly more than half are of class 0, so that saying nothing is
    worse.
    """
    rng = np.random.default_rng(seed)
    number, level = rng.uniform(-1, 1, rows), rng.integers(0, 3, rows)
    return np.column_stack([number, level, number + 0.5 * (level - 1) + 0.1 * rng.normal(size=rows) > 0.0])


def tuned(*candidates: Any) -> pf.TunedPerturbation:
    return pf.TunedPerturbation(candidates=candidates)


def fitted(
    mechanism: pf.TunedPerturbation, epsilon: float = 1.0, table: np.ndarray | None = None, **given_: Any
) -> Any:
    given_ = {"random_state": 0} | given_
    return pf.LogisticRegression(epsilon, schema=SCHEMA, mechanism=mechanism, **given_).fit(
        table_of() if table is None else table
    )


# -- the choice ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_clearly_better_setting_is_chosen_wherever_it_stands(place: int) -> None:
    candidates = [DEAF, pf.OutputPerturbation(ridge=1e9)]
    candidates.insert(place, GOOD)
    for seed in range(3):
        model = fitted(tuned(*candidates), epsilon=50.0, random_state=seed)
        assert repr(GOOD) in model.report_.notes[1]
        assert model.report_.repairs["ridge"] == 1.0
        assert model.score(table_of(seed=1)[:, :2], table_of(seed=1)[:, 2]) > 0.9


def test_the_report_names_the_chosen_setting_and_that_it_saw_a_part_of_the_rows() -> None:
    report = fitted(tuned(GOOD, DEAF), epsilon=50.0).report_
    assert report.mechanism == "objective perturbation, tuned over 2 settings"
    assert "over its part of the rows" in report.notes[0]
    assert (
        report.notes[1]
        == f"chosen privately, by mistakes on other rows: {GOOD!r}; the noise stated is the largest of all candidates"
    )
    assert repr(GOOD) in str(report)


def test_at_a_tiny_epsilon_the_choice_is_close_to_a_coin() -> None:
    chosen = [
        fitted(tuned(GOOD, DEAF), epsilon=1e-4, table=table_of(60), random_state=seed).report_.repairs["ridge"]
        for seed in range(60)
    ]
    deaf = chosen.count(1e9)
    assert 10 <= deaf <= 50


def test_several_classes_and_support_vectors_are_tuned_too() -> None:
    rng = np.random.default_rng(0)
    number = rng.uniform(-1, 1, 3000)
    for classes, wanted in [(3, "one-vs-rest"), (5, "softmax")]:
        y = np.floor((number + 1) / 2 * classes * 0.999).astype(int)
        schema = pf.Schema([pf.Numeric("a", -1, 1)], target=pf.Category("y", list(range(classes))))
        for estimator in (pf.LogisticRegression, pf.LinearSVC):
            model = estimator(100.0, schema=schema, mechanism=tuned(DEAF, GOOD), random_state=0).fit(number[:, None], y)
            assert model.report_.repairs["ridge"] == 1.0, wanted
            assert model.score(number[:, None], y) > 0.8


# -- one charge ------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [1, 3])
def test_one_charge_of_epsilon_covers_every_fit_and_the_choice(people: int, tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=2.0)
    report = fitted(
        tuned(GOOD, DEAF, pf.OutputPerturbation()), 0.7, ledger=ledger, random_state=None, rows_per_person=people
    ).report_
    assert ledger.spent.epsilon == pytest.approx(0.7, abs=0)
    assert len(ledger.entries()) == 1
    assert report.epsilon == 0.7
    assert report.rows_per_person == people
    assert report.private


def test_a_budget_that_does_not_last_is_met_before_anything_is_drawn(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=0.5)
    with pytest.raises(pf.BudgetExceeded):
        fitted(tuned(GOOD, DEAF), 0.7, ledger=ledger, random_state=None)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_what_is_charged_and_drawn_knows_nothing_of_the_rows(adjacency: str) -> None:
    """But their number, where it is public."""
    mechanism, risk = tuned(GOOD, DEAF, pf.OutputPerturbation()), ERMProblem(LOGISTIC)
    geometry = mechanism.geometry(SCHEMA, risk, "slope")
    found = []
    for seed, rows in [(0, 80), (1, 80), (2, 80 if adjacency == "replace-one" else 300)]:
        noise = DealingNoise(0)
        rows_of = Rows(open_table(table_of(rows, seed)), SCHEMA, geometry)
        release = mechanism.release(rows_of, PrivacyParameters(Budget(1.0), adjacency), None, noise, risk)  # type: ignore[arg-type]
        found.append((release.event, [(call.kind, call.scale) for call in noise.calls]))
    assert found[0] == found[1] == found[2]
    assert [kind for kind, _ in found[0][1]].count("permute-and-flip") == 1


@pytest.mark.parametrize("people", [1, 2, 5])
def test_a_person_with_several_rows_is_promised_a_share_per_row(people: int) -> None:
    """Every fit is made for one row at epsilon over the number of rows, and the choice has the scale 2 m / epsilon."""
    mechanism, risk = tuned(GOOD, DEAF), ERMProblem(LOGISTIC)
    geometry = mechanism.geometry(SCHEMA, risk, "slope")
    facts = PublicFacts(geometry, PrivacyParameters(Budget(1.0), rows_per_person=people), 100)
    plan = mechanism.plan(facts, risk)
    plans, event = plan.candidates, plan.event
    alone = GOOD.plan(PublicFacts(geometry, PrivacyParameters(Budget(1.0 / people)), 100), risk)
    assert plans[0].sd == pytest.approx(alone.sd, rel=1e-9)
    assert all(plan.event.epsilon <= 1.0 / people for plan in plans)
    assert (event.epsilon, event.rows_per_person) == (1.0, people)
    noise = DealingNoise(0)
    mechanism.release(
        Rows(open_table(table_of(100)), SCHEMA, geometry),
        PrivacyParameters(Budget(1.0), rows_per_person=people),
        None,
        noise,
        risk,
    )
    assert next(call.scale for call in noise.calls if call.kind == "permute-and-flip") == pytest.approx(2 * people)


def test_a_delta_is_not_spent() -> None:
    report = fitted(tuned(GOOD, DEAF), delta=1e-6).report_
    assert report.delta == 0
    assert any("delta was not spent" in note for note in report.notes)


# -- the dealing -----------------------------------------------------------------------------------


def test_rows_are_dealt_to_every_part_alike_and_each_by_coins_of_its_own() -> None:
    places = partition(60_000, 4, SeededNoise(0))
    assert chisquare(np.bincount(places, minlength=4)).pvalue > 1e-4
    pairs = places[:-1].astype(int) * 4 + places[1:]
    assert chisquare(np.bincount(pairs, minlength=16)).pvalue > 1e-4
    np.testing.assert_array_equal(
        partition(500, 4, SeededNoise(3))[:499], partition(499, 4, SeededNoise(3))
    )  # a row more leaves the others where they were


def test_the_choice_counts_mistakes_on_rows_that_no_fit_has_seen() -> None:
    """Recomputed from what was drawn: the weights of each candidate, and their mistakes on the last part."""
    mechanism, risk = (
        tuned(pf.ObjectivePerturbation(ridge=1.0, noise="mixed"), pf.ObjectivePerturbation(ridge=1e3, noise="mixed")),
        ERMProblem(LOGISTIC),
    )
    geometry, table = mechanism.geometry(SCHEMA, risk, "slope"), table_of(400)
    noise = DealingNoise(5)
    release = mechanism.release(
        Rows(open_table(table), SCHEMA, geometry), PrivacyParameters(Budget(5.0)), None, noise, risk
    )
    place = partition(400, 3, DealingNoise(5))
    held = table[place == 2]
    design = np.column_stack([held[:, 0], np.eye(3)[held[:, 1].astype(int)]])
    weights = [
        call.output for call in noise.calls if call.kind == "laplace" and call.values.size == 4
    ]  # tilts come in parts of 1 and 3
    scores = next(call.values for call in noise.calls if call.kind == "permute-and-flip")
    assert [-int(score) for score in scores] == [int(((design @ w > 0) != (held[:, 2] > 0)).sum()) for w in weights]
    assert len(weights) == 2
    assert release.value.weights.shape == (4, 1)


@pytest.mark.parametrize("part", [0, 1])
def test_a_fit_sees_the_rows_of_its_own_part_only(part: int) -> None:
    """Rows of the other parts are changed, and its weights are what they were."""
    mechanism, risk = (
        tuned(pf.ObjectivePerturbation(ridge=1.0, noise="mixed"), pf.ObjectivePerturbation(ridge=1e3, noise="mixed")),
        ERMProblem(LOGISTIC),
    )
    geometry = mechanism.geometry(SCHEMA, risk, "slope")
    place = partition(400, 3, DealingNoise(5))
    before, changed = table_of(400), table_of(400)
    changed[place != part] = [1.0, 2.0, 0.0]
    found = []
    for table in (before, changed):
        noise = DealingNoise(5)
        mechanism.release(Rows(open_table(table), SCHEMA, geometry), PrivacyParameters(Budget(5.0)), None, noise, risk)
        found.append([call.values for call in noise.calls if call.kind == "laplace" and call.values.size == 4])
    np.testing.assert_array_equal(found[0][part], found[1][part])
    assert (found[0][1 - part] != found[1][1 - part]).any()


def test_parts_without_rows_do_no_harm() -> None:
    for rows in (1, 2, 5):
        model = fitted(tuned(GOOD, DEAF, pf.OutputPerturbation()), table=table_of(rows))
        assert np.isfinite(model.coef_).all()


# -- refusals --------------------------------------------------------------------------------------


def test_a_number_as_target_is_refused_uncharged(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=2.0)
    schema = pf.Schema(SCHEMA.features, target=pf.Numeric("y", -1, 1))
    with pytest.raises(pf.PrivacyError) as refused:
        pf.ERM(pf.losses.robust(1.0), schema=schema, mechanism=tuned(GOOD), ledger=ledger).fit(table_of())
    assert_told_in_order(
        str(refused.value),
        ["A number was given as target", "only classes have", "Choose one setting", "Nothing was charged"],
    )
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "wrong", [pf.TunedPerturbation(), pf.FunctionalMechanism(), "objective", None], ids=lambda w: type(w).__name__
)
def test_nested_and_other_candidates_are_refused(wrong: Any) -> None:
    with pytest.raises(pf.PrivacyError) as refused:
        fitted(tuned(GOOD, wrong))
    assert_told_in_order(str(refused.value), ["The candidate", "was given", "candidates are", "List some"])


@pytest.mark.parametrize("count", [0, 101])
def test_no_candidates_and_far_too_many_are_refused(count: int) -> None:
    with pytest.raises(pf.PrivacyError) as refused:
        fitted(tuned(*[GOOD] * count))
    assert_told_in_order(str(refused.value), [f"{count} candidates were given", "from 1 to 100", "Give few"])


def test_a_wrong_candidate_is_refused_as_it_would_be_alone() -> None:
    with pytest.raises(pf.PrivacyError, match=re.escape("ridge=-1 was given")):
        fitted(tuned(GOOD, pf.ObjectivePerturbation(ridge=-1)))
    with pytest.raises(pf.PrivacyError, match="states no most_curvature"):
        pf.LinearSVC(1.0, schema=SCHEMA, loss="hinge", mechanism=tuned(GOOD), random_state=0).fit(table_of())


def test_settings_that_a_choice_does_not_have_are_refused_and_not_ignored() -> None:
    for mechanism in (
        pf.TunedPerturbation((GOOD, DEAF)),
        pf.TunedPerturbation(ridge=3.0),
        pf.TunedPerturbation(noise="linf"),
    ):
        with pytest.raises((pf.PrivacyError, TypeError)):
            fitted(mechanism)


def test_a_penalty_beside_a_choice_of_ridges_is_refused_and_not_ignored() -> None:
    with pytest.raises(pf.PrivacyError):
        pf.ERM(None, 5.0, schema=SCHEMA, mechanism=tuned(GOOD, DEAF), random_state=0).fit(table_of())


@pytest.mark.parametrize("candidates", [3, None, "auto"])
def test_candidates_that_are_no_list_are_refused_in_a_sentence(candidates: Any) -> None:
    with pytest.raises(pf.PrivacyError, match="candidates were given"):
        pf.TunedPerturbation(candidates=candidates).check()


def test_gaussian_candidates_are_refused_because_a_choice_has_no_delta() -> None:
    with pytest.raises(pf.PrivacyError, match="Gaussian noise needs a delta"):
        pf.TunedPerturbation(candidates=(pf.ObjectivePerturbation(noise="gaussian"),)).check()
