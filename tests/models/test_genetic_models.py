"""Classifiers by PrivGene, end to end: what neighbours can tell, who pays and when, what is refused, what is saved, and
that it learns.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.mechanisms import PrivGene
from privfit.models import private
from privfit.privacy import PrivacyError, SecureNoise
from privfit.privacy.errors import BudgetExceeded
from privfit.rows import CachedDesign
from privfit.schema import SchemaError
from tests.support.choices import Recorded, Replayed, moved_range

FEATURES = [
    pf.Numeric("age", 0, 100),
    pf.Numeric("offset", 100, 101, bins=2),
    pf.Category("region", ["north", "east", "south", "west"]),
    pf.Category("member", ["no", "yes"]),
]
NAMES = [*(column.name for column in FEATURES), "y"]
SCHEMA = pf.Schema(FEATURES, pf.Category("y", ["a", "b"]))
EPSILON = 0.7
VARIANTS = {
    "genetic": {"mechanism": "genetic"},
    "permute-and-flip": {"mechanism": PrivGene(selection="permute-and-flip", candidates=12)},
    "exponential": {"mechanism": PrivGene(selection="exponential")},
    "listed": {"mechanism": PrivGene(candidates=12)},
    "coordinates": {"mechanism": PrivGene(moves="coordinates", candidates=12)},
    "coordinates, exponential": {"mechanism": PrivGene(moves="coordinates", candidates=12, selection="exponential")},
    "genes": {"mechanism": PrivGene(moves="genes", candidates=12, rounds=4)},
    "genes of three": {"mechanism": PrivGene(moves="genes", candidates=12, rounds=3, parents=3)},
    "genes in bins": {"mechanism": PrivGene(moves="genes", candidates=12, rounds=4), "numeric": "bins"},
    "bins": {"mechanism": "genetic", "numeric": "bins"},
    "several rows": {"mechanism": "genetic", "rows_per_person": 3},
    "delta": {"mechanism": PrivGene(rounds=30), "delta": 1e-3},
    "enhanced with a delta": {
        "mechanism": PrivGene(selection="enhanced", rounds=30),
        "delta": 1e-3,
        "rows_per_person": 2,
    },
    "genes with a delta": {"mechanism": PrivGene("enhanced", moves="genes", candidates=12, rounds=30), "delta": 1e-3},
    "expected rows": {"mechanism": "genetic", "expected_rows": 5000},
}
MODELS = {
    "logistic": (pf.LogisticRegression, {}),
    "huber": (pf.LinearSVC, {}),
    "hinge": (pf.LinearSVC, {"loss": "hinge"}),
}


def some_rows(n: int, seed: int = 7) -> list[tuple]:
    rng = np.random.default_rng(seed)
    return [
        (
            float(rng.uniform(0, 100)),
            float(rng.uniform(100, 101)),
            str(rng.choice(["north", "east", "south"])),
            "no",
            str(rng.choice(["a", "b"])),
        )
        for _ in range(n)
    ]


CORNER, OPPOSITE = (0.0, 100.0, "north", "no", "a"), (100.0, 101.0, "west", "yes", "b")
SAME_ROW_OTHER_CLASS = (*CORNER[:4], "b")
BETWEEN = (47.3, 100.5, "south", "yes", "b")
BASE = some_rows(14)
PAIRS = {
    "corners swapped": ([*BASE, CORNER], [*BASE, OPPOSITE], "replace-one"),
    "the class swapped": ([*BASE, CORNER], [*BASE, SAME_ROW_OTHER_CLASS], "replace-one"),
    "a lone one": ([CORNER] * 9, [*[CORNER] * 8, BETWEEN], "replace-one"),
    "beyond the bounds": ([*BASE, (1e300, -1e300, "west", "yes", "b")], [*BASE, CORNER], "replace-one"),
    "one added": (BASE, [*BASE, OPPOSITE], "add-remove"),
    "a second row": ([CORNER], [CORNER, BETWEEN], "add-remove"),
}


def frame(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=NAMES, orient="row")


# -- record and replay -----------------------------------------------------------------------------


def fitted(monkeypatch, kind: str, rows, noise, adjacency: str, variant: dict):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    estimator, more = MODELS[kind]
    ledger = pf.Ledger(epsilon=10.0, delta=0.5)
    model = estimator(EPSILON, schema=SCHEMA, adjacency=adjacency, ledger=ledger, **(more | variant)).fit(frame(rows))
    return model, ledger


def state(model) -> dict:
    return {name: repr(value) for name, value in model.__dict__.items() if name != "ledger"} | {
        "report": str(model.report_)
    }


REPLAYS = [("logistic", name) for name in VARIANTS] + [
    ("hinge", name) for name in ("genetic", "permute-and-flip", "coordinates", "genes", "delta")
]
REPLAYS += [("huber", name) for name in ("genetic", "permute-and-flip", "coordinates", "genes")]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("kind", "name"), REPLAYS)
def test_neighbours_move_scores_no_further_than_paid_for_and_nothing_else_leaves(monkeypatch, kind, name, pair) -> None:
    left_rows, right_rows, adjacency = PAIRS[pair]
    variant = VARIANTS[name]
    first = Recorded(3)
    left, left_ledger = fitted(monkeypatch, kind, left_rows, first, adjacency, variant)
    second = Replayed(first.calls, 3)
    right, right_ledger = fitted(monkeypatch, kind, right_rows, second, adjacency, variant)

    asked = [(call.kind, call.values.shape, call.scale) for call in first.calls]
    assert asked
    assert asked == [(call.kind, call.values.shape, call.scale) for call in second.calls]
    assert first.coins_asked == second.coins_asked
    people = variant.get("rows_per_person", 1)
    spent = [people * moved for moved in moved_range(first, second)]
    (event,) = [entry.event for entry in left_ledger.entries()]
    assert bool(event.rho) == ("delta" in variant)
    if event.rho:
        assert sum(moved**2 for moved in spent) / 8 <= event.rho * (1 + 1e-9)
    else:
        assert sum(spent) <= EPSILON * (1 + 1e-9)
    assert any(spent)
    assert [entry.event for entry in right_ledger.entries()] == [event]
    assert state(left) == state(right)
    np.testing.assert_array_equal(left.coef_, right.coef_)


def test_the_replay_catches_a_reach_that_is_too_short(monkeypatch) -> None:
    from privfit.mechanisms.genetic.moves import MoveSchedule

    right = MoveSchedule.sensitivity
    monkeypatch.setattr(MoveSchedule, "sensitivity", lambda self, place, told: max(1, right(self, place, told) // 3))
    left_rows, right_rows = [CORNER] * 3, [CORNER, CORNER, OPPOSITE]
    first = Recorded(3)
    fitted(monkeypatch, "hinge", left_rows, first, "replace-one", VARIANTS["genetic"])
    second = Replayed(first.calls, 3)
    fitted(monkeypatch, "hinge", right_rows, second, "replace-one", VARIANTS["genetic"])
    assert sum(moved_range(first, second)) > EPSILON


def test_the_replay_catches_weights_that_depend_on_rows(monkeypatch) -> None:
    keep = pf.LogisticRegression._keep
    leaks = iter([1, 2])

    def leaking(self, result):
        keep(self, result)
        self.secret_ = next(leaks)

    monkeypatch.setattr(pf.LogisticRegression, "_keep", leaking)
    first = Recorded(0)
    left, _ = fitted(monkeypatch, "logistic", BASE, first, "replace-one", VARIANTS["genetic"])
    right, _ = fitted(monkeypatch, "logistic", BASE, Replayed(first.calls, 0), "replace-one", VARIANTS["genetic"])
    assert state(left) != state(right)


# -- who pays --------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    return pf.Ledger(tmp_path / "ledger.db", epsilon=10.0, delta=1e-3)


@pytest.fixture
def order(monkeypatch):
    """Reading, charging and drawing, in the order in which they happen."""
    seen: list[str] = []
    for owner, name, word in (
        (CachedDesign, "read", "read"),
        (pf.Ledger, "charge", "charge"),
        (SecureNoise, "pattern", "draw"),
        (SecureNoise, "select_each", "draw"),
        (SecureNoise, "below", "draw"),
        (SecureNoise, "geometric", "draw"),
    ):
        original = getattr(owner, name)

        def spy(self, *args, _original=original, _word=word, **options):
            seen.append(_word)
            return _original(self, *args, **options)

        monkeypatch.setattr(owner, name, spy)
    return seen


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["genetic", "permute-and-flip", "coordinates", "genes", "genes of three"])
def test_a_fit_reads_then_charges_once_then_draws(ledger, order, kind, name) -> None:
    estimator, more = MODELS[kind]
    model = estimator(0.3, schema=SCHEMA, ledger=ledger, **(more | VARIANTS[name])).fit(frame(BASE))
    assert order[:2] == ["read", "charge"]
    assert order.count("charge") == 1
    assert set(order[2:]) == {"draw"}
    (entry,) = ledger.entries()
    assert (entry.epsilon, entry.delta) == (0.3, 0.0)
    assert entry.event.to_dict() == model.report_.event
    assert ledger.spent == 0.3
    assert model.report_.private


def test_an_error_in_the_middle_of_a_search_stays_charged(ledger, monkeypatch) -> None:
    def failing(self, chains, scale):
        raise KeyboardInterrupt

    monkeypatch.setattr(SecureNoise, "pattern", failing)
    model = pf.LogisticRegression(0.3, schema=SCHEMA, ledger=ledger, mechanism="genetic")
    with pytest.raises(KeyboardInterrupt):
        model.fit(frame(BASE))
    assert ledger.spent == 0.3
    assert not hasattr(model, "coef_")


def test_a_ledger_that_has_not_enough_is_asked_before_rows_are_read(tmp_path, order) -> None:
    small = pf.Ledger(tmp_path / "small.db", epsilon=0.2)
    for name in ("genetic", "genes"):
        with pytest.raises(BudgetExceeded):
            pf.LogisticRegression(0.3, schema=SCHEMA, ledger=small, **VARIANTS[name]).fit(frame(BASE))
    assert order == []


def test_a_delta_is_spent_as_rho(ledger) -> None:
    model = pf.LogisticRegression(
        0.5, delta=1e-6, schema=SCHEMA, ledger=ledger, mechanism=PrivGene(selection="enhanced", rounds=30)
    ).fit(frame(BASE))
    (entry,) = ledger.entries()
    assert entry.event.rho > 0
    assert entry.event.delta == 1e-6
    assert entry.event.kinds == ("exponential",)
    assert model.report_.event["rho"] == entry.event.rho
    assert ledger.spent.delta == pytest.approx(1e-6)


def test_permute_and_flip_spends_no_delta(ledger) -> None:
    pf.LogisticRegression(
        0.5, delta=1e-6, schema=SCHEMA, ledger=ledger, mechanism=PrivGene(selection="permute-and-flip")
    ).fit(frame(BASE))
    (entry,) = ledger.entries()
    assert (entry.event.rho, entry.event.delta) == (0.0, 0.0)


@pytest.mark.parametrize("loss", ["hinge", "huber"])
@pytest.mark.parametrize("parents", [1, 2])
def test_no_ledger_takes_the_printed_constants_for_hinges(ledger, order, loss, parents) -> None:
    printed = PrivGene(calibration="paper", rounds=2, parents=parents)
    with pytest.raises(
        PrivacyError,
        match=r"A ledger was given to a fit that is not private .*calibration='paper' of PrivGene for a hinge loss",
    ):
        pf.LinearSVC(0.3, loss=loss, schema=SCHEMA, ledger=ledger, mechanism=printed).fit(frame(BASE))
    assert ledger.spent == 0
    assert order == []
    model = pf.LinearSVC(0.3, loss=loss, schema=SCHEMA, mechanism=printed).fit(frame(BASE))
    assert not model.report_.private
    assert "calibration='paper'" in str(model.report_)


def test_a_ledger_takes_them_for_the_logistic_loss(ledger) -> None:
    printed = PrivGene(calibration="paper", rounds=2)
    model = pf.LogisticRegression(0.3, schema=SCHEMA, ledger=ledger, mechanism=printed).fit(frame(BASE))
    assert ledger.spent == 0.3
    assert model.report_.private


# -- what is refused -------------------------------------------------------------------------------

REFUSED = [
    ({"numeric": "slope"}, {}, "asked for slopes, a kernel, or a model without an intercept"),
    ({"kernel": "rbf"}, {}, "asked for slopes, a kernel, or a model without an intercept"),
    ({"fit_intercept": False}, {}, "asked for slopes, a kernel, or a model without an intercept"),
    ({"numeric": "splines"}, {"moves": "genes"}, "asked for splines, a kernel, or a model without an intercept"),
    ({"kernel": "rbf"}, {"moves": "genes"}, "asked for splines, a kernel, or a model without an intercept"),
    ({"fit_intercept": False}, {"moves": "genes"}, "asked for splines, a kernel, or a model without an intercept"),
    ({"numeric": "splines"}, {"moves": "coordinates"}, "splines"),
    ({}, {"selection": "best"}, "selection='best' was given; it is one of"),
    ({}, {"selection": "best", "moves": "genes"}, "selection='best' was given; it is one of"),
    ({}, {"rounds": 0}, "rounds=0 was given; it is 'auto' or an integer from 1"),
    ({}, {"first_step": 100}, "first_step=100 was given"),
    ({}, {"candidates": 1}, "candidates=1 was given"),
    ({}, {"candidates": "many", "moves": "genes"}, "candidates='many' was given"),
    ({}, {"moves": "columns", "parents": 3}, "parents=3 was given"),
    ({}, {"elitism": False}, "elitism=False was given with moves='columns'"),
    ({}, {"mutate": abs}, "mutate=builtin_function_or_method was given with moves='columns'"),
    ({}, {"box": 3.0, "moves": "coordinates"}, "box=3.0 was given with moves='coordinates'"),
    ({}, {"start": "scattered"}, "start='scattered' was given with moves='columns'"),
    ({}, {"start": "anywhere", "moves": "genes"}, "start='anywhere' was given; it is 'auto' or 'scattered'"),
    ({}, {"crossover": 3, "moves": "genes"}, "crossover=int was given; it is None or a function of candidates"),
    ({}, {"elitism": 1, "moves": "genes"}, "elitism=1 was given; it is True or False"),
    ({}, {"C": 0.0}, "C=0.0 was given; it is 'auto' or a number from 0.001"),
    ({}, {"C": True}, "C=True was given"),
    ({}, {"steepest": 1.5}, "steepest=1.5 was given; it is 'auto' or a number from 0.05 to 1"),
    ({}, {"box": 0.0, "moves": "genes"}, "box=0.0 was given; it is 'auto' or a number from 0.05"),
    ({"epsilon": 1e-13}, {}, "asks for more noise than 64-bit integers can hold"),
    ({"epsilon": 1e-13}, {"moves": "genes", "rounds": 3}, "asks for more noise than 64-bit integers can hold"),
    ({"epsilon": 1e-13}, {"selection": "permute-and-flip"}, "asks for more noise than 64-bit integers can hold"),
]


@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
@pytest.mark.parametrize(("params", "options", "words"), REFUSED)
def test_what_is_refused_is_refused_in_a_clear_sentence_and_costs_nothing(
    ledger, estimator, params, options, words
) -> None:
    settings = {"epsilon": 0.3, "schema": SCHEMA, "ledger": ledger, "mechanism": PrivGene(**options)} | params
    model = estimator(**settings)
    with pytest.raises((PrivacyError, SchemaError), match=words):
        model.fit(frame(BASE))
    assert ledger.entries() == []
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("estimator", [pf.LinearRegression, pf.ERM])
def test_models_of_numbers_do_not_know_it(estimator) -> None:
    schema = pf.Schema(FEATURES, pf.Numeric("y", 0, 1))
    numbers = frame([(*row[:-1], "a") for row in BASE]).with_columns(y=pl.lit(0.5))
    with pytest.raises((PrivacyError, TypeError), match=r"mechanism|loss"):
        estimator(0.3, schema=schema, mechanism=PrivGene()).fit(numbers)


@pytest.mark.parametrize("bad", [("elsewhere", 2), (float("nan"), 0)])
def test_a_table_with_a_value_that_the_schema_does_not_know_costs_nothing(ledger, bad) -> None:
    value, place = bad
    row = list(CORNER)
    row[place] = value
    for name in ("genetic", "coordinates", "genes"):
        with pytest.raises(pf.tables.DataError, match="Nothing was charged"):
            pf.LogisticRegression(0.3, schema=SCHEMA, ledger=ledger, **VARIANTS[name]).fit(frame([*BASE, tuple(row)]))
    assert ledger.entries() == []


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["genetic", "bins", "coordinates", "genes", "genes in bins"])
def test_a_saved_model_predicts_the_same(tmp_path, kind, name) -> None:
    estimator, more = MODELS[kind]
    model = estimator(5.0, schema=SCHEMA, random_state=1, **(more | VARIANTS[name])).fit(frame(some_rows(300)))
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    others = frame([*some_rows(200, seed=1), CORNER, OPPOSITE, BETWEEN]).drop("y")
    np.testing.assert_array_equal(loaded.predict(others), model.predict(others))
    np.testing.assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    if kind == "logistic":
        np.testing.assert_array_equal(loaded.predict_proba(others), model.predict_proba(others))
        assert np.allclose(model.predict_proba(others).sum(axis=1), 1)


@pytest.mark.parametrize("name", ["genetic", "bins", "coordinates"])
def test_coefficients_and_intercept_are_the_released_weights_and_nothing_else(monkeypatch, name) -> None:
    """The decision function is the sum of released weights, whatever is shown as the intercept."""
    released = []
    solve = PrivGene.solve
    monkeypatch.setattr(
        PrivGene, "solve", lambda self, release, *rest: released.append(release.value) or solve(self, release, *rest)
    )
    model = pf.LogisticRegression(5.0, schema=SCHEMA, random_state=1, **VARIANTS[name]).fit(frame(some_rows(100)))
    weights = released[0].weights[:, 0]
    region = next(block for block in model._geometry.blocks if block.column.name == "region")
    rows = frame([(20.0, 100.2, place, "yes", "a") for place in ("north", "east", "south", "west")]).drop("y")
    found = model.decision_function(rows)
    np.testing.assert_allclose(np.diff(found), np.diff(weights[region.start : region.stop]), atol=1e-9)
    np.testing.assert_allclose(weights * 512, np.rint(weights * 512), atol=1e-9)
    assert model.coef_.shape == (1, len(model.get_feature_names_out()))
    shown = model.coef_[0, region.start : region.stop]
    np.testing.assert_allclose(np.diff(shown), np.diff(weights[region.start : region.stop]), atol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_seed_makes_the_same_model_again_and_another_seed_another(name) -> None:
    rows = frame(some_rows(80))
    one, same, other = (
        pf.LogisticRegression(0.5, schema=SCHEMA, random_state=seed, **VARIANTS[name]).fit(rows) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert not np.array_equal(one.coef_, other.coef_)
    assert not one.report_.private


# -- that it learns --------------------------------------------------------------------------------


def learnable(n: int, seed: int = 0) -> tuple[pl.DataFrame, np.ndarray]:
    """Classes by age in the middle, region and membership; a line would miss the first."""
    rng = np.random.default_rng(seed)
    age, region, member = (
        rng.uniform(0, 100, n),
        rng.choice(["north", "east", "south", "west"], n),
        rng.choice(["no", "yes"], n),
    )
    scores = 3.0 - np.abs(age - 50) / 9 + 1.5 * (region == "west") - 1.5 * (region == "east") + 1.2 * (member == "yes")
    y = np.where(scores + rng.logistic(0, 0.3, n) > 0, "b", "a")
    return pl.DataFrame({"age": age, "offset": rng.uniform(100, 101, n), "region": region, "member": member}), y


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("name", "least"), [("genetic", 0.9), ("bins", 0.86), ("permute-and-flip", 0.85)])
def test_with_a_large_epsilon_it_beats_the_majority_clearly(kind, name, least) -> None:
    X, y = learnable(3000)
    new_X, new_y = learnable(2000, 1)
    estimator, more = MODELS[kind]
    model = estimator(50.0, schema=SCHEMA, random_state=0, **(more | VARIANTS[name])).fit(X, y)
    majority = max(np.mean(new_y == "a"), np.mean(new_y == "b"))
    assert model.score(new_X, new_y) > max(least, majority + 0.2)


def line(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 6))
    return X, (X @ [2.0, -1.5, 1.0, 0.0, 0.5, -1.0] + rng.logistic(0, 0.2, n) > 0.3).astype(int)


@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
@pytest.mark.parametrize("options", [{"moves": "genes", "rounds": 25, "candidates": 100}, {"rounds": 12}])
def test_the_enhanced_rule_is_better_than_the_exponential_one_as_the_paper_says(estimator, options) -> None:
    """Medians of seeded fits at epsilon 1."""
    X, y = line(4000, 0)
    new_X, new_y = line(2000, 1)
    schema = pf.Schema.box(-1, 1, target=[0, 1])

    def median(selection: str) -> float:
        mechanism = PrivGene(selection=selection, **options)
        return float(
            np.median(
                [
                    estimator(1.0, schema=schema, mechanism=mechanism, random_state=seed).fit(X, y).score(new_X, new_y)
                    for seed in range(5)
                ]
            )
        )

    assert median("enhanced") > median("exponential") + 0.03


def test_more_epsilon_is_better() -> None:
    X, y = learnable(2000)
    scores = [
        np.median(
            [
                pf.LogisticRegression(e, schema=SCHEMA, mechanism="genetic", random_state=s).fit(X, y).score(X, y)
                for s in range(5)
            ]
        )
        for e in (0.02, 0.5, 10.0)
    ]
    assert scores[0] < scores[1] < scores[2]


def test_chances_are_those_of_the_classes() -> None:
    """Of rows with a probability near p, a share near p is of the second class: the tempered loss is turned back."""
    X, y = learnable(20_000)
    model = pf.LogisticRegression(20.0, schema=SCHEMA, mechanism="genetic", random_state=0).fit(X, y)
    chance = model.predict_proba(X)[:, 1]
    for low, high in ((0.0, 0.1), (0.1, 0.35), (0.35, 0.65), (0.65, 0.9), (0.9, 1.0)):
        inside = (chance >= low) & (chance <= high)
        if inside.sum() > 300:
            assert abs(np.mean(y[inside] == "b") - np.mean(chance[inside])) < 0.12, (low, high)


def test_the_report_says_what_was_done() -> None:
    model = pf.LogisticRegression(1.0, schema=SCHEMA, mechanism="genetic").fit(frame(BASE))
    assert "genetic search, 3 rounds" in model.report_.mechanism
    assert math.isclose(model.report_.epsilon, 1.0)
    assert any("searches for weights" in note for note in model.report_.notes)
    assert model.report_.released_values == 3
