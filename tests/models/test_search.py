"""GeneticSearch: attacked by replaying choices on a neighbouring table, charged once, and of use."""

from __future__ import annotations

import copy
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import privfit as pf
from privfit.models import private
from privfit.privacy import SeededNoise
from privfit.schema import SchemaError
from privfit.tables import DataError
from tests.support.noise import RecordingNoise, ReplayingNoise

pytestmark = pytest.mark.usefixtures("in_this_thread")

SCHEMA = pf.Schema.box(0, 10)
LOW, HIGH = [0.0], [10.0]


def distance(rows: np.ndarray, w: np.ndarray) -> np.ndarray:
    return -np.abs(rows - w.T)


def span(w: np.ndarray) -> float:
    return float(np.ptp(w))


MEDIAN = pf.RowFitness(distance, spread=span)
FITNESSES = {
    "spread": MEDIAN,
    "bounds": pf.RowFitness(distance, bounds=lambda w: (-np.maximum(w[:, 0], 10 - w[:, 0]), 0.0)),
    "domain": pf.RowFitness(distance, domain=range(11)),
    "a spread that lies": pf.RowFitness(lambda rows, w: 1e6 * distance(rows, w), spread=1.0),
    "no numbers": pf.RowFitness(
        lambda rows, w: np.where(
            (rows > 9) & (w.T > 5), np.nan, np.where((rows < 1) & (w.T < 3), np.inf, distance(rows, w))
        ),
        spread=1.0,
    ),
    "prior": pf.RowFitness(distance, spread=span, prior=lambda w: -(w[:, 0] ** 2)),
    "table": pf.TableFitness(lambda rows, w: distance(rows, w).sum(axis=0), sensitivity=10.0),
}
RNG = np.random.default_rng(0)
REST = RNG.integers(0, 11, 59).astype(float)
PAIRS = {
    "replace-one": [(np.append(REST, a), np.append(REST, b)) for a, b in ((0.0, 10.0), (-1e9, 5.0))],
    "add-remove": [(np.append(REST, 10.0), REST), (REST, np.append(REST, 0.0))],
}


class OwnCoins:
    """The public coins of a recording and of its replay are the same, however many choices were drawn in between."""

    def below(self, limits):
        if not hasattr(self, "_public_coins"):
            self._public_coins = SeededNoise(99)
        return self._public_coins.below(limits)


class Recording(OwnCoins, RecordingNoise):
    pass


class Replaying(OwnCoins, ReplayingNoise):
    pass


def fitted(monkeypatch, values, noise, fitness, **params):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=1e-2)
    options = {
        "low": LOW,
        "high": HIGH,
        "schema": SCHEMA,
        "rounds": 4,
        "candidates": 12,
        "ledger": ledger,
        "expected_rows": 60,
        **params,
    }
    model = pf.GeneticSearch(fitness, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(np.asarray(values)[:, None])
    return model, ledger, [str(warning.message) for warning in caught]


VARIANTS = [
    {"selection": "permute-and-flip"},
    {"selection": "enhanced"},
    {"selection": "exponential"},
    {"selection": "auto", "parents": 3},
    {"selection": "enhanced", "parents": 2, "delta": 1e-4},
    {"selection": "exponential", "delta": 1e-4},
    {"selection": "auto", "rounds": 40, "delta": 1e-4},
    {"selection": "auto", "rounds": "auto", "epsilon": 3.0, "rows_per_person": 3},
]
CASES = [
    (name, variant)
    for name, fitness in FITNESSES.items()
    for variant in VARIANTS
    if variant["selection"] != "exponential" or isinstance(fitness, pf.TableFitness) or fitness.spread is None
]


@pytest.mark.parametrize("adjacency", PAIRS)
@pytest.mark.parametrize(("name", "variant"), CASES, ids=str)
def test_choices_replayed_on_a_neighbouring_table_cost_no_more_than_was_paid(
    monkeypatch, name, variant, adjacency
) -> None:
    fitness, most = FITNESSES[name], 0.0
    for left_rows, right_rows in PAIRS[adjacency]:
        first = Recording(seed=3)
        left, ledger, left_warnings = fitted(monkeypatch, left_rows, first, fitness, adjacency=adjacency, **variant)
        second = Replaying(first.calls)
        right, right_ledger, right_warnings = fitted(
            monkeypatch, right_rows, second, fitness, adjacency=adjacency, **variant
        )

        shape = [(call.kind, call.values.shape, call.scale) for call in first.calls]
        assert shape, "nothing was chosen"
        assert shape == [(call.kind, call.values.shape, call.scale) for call in second.calls], (
            "calls to noise depend on data"
        )
        np.testing.assert_array_equal(left.best_, right.best_)
        assert left_warnings == right_warnings
        assert str(left.report_) == str(right.report_)
        (entry,), (entry_too,) = ledger.entries(), right_ledger.entries()
        assert entry.event == entry_too.event

        people = variant.get("rows_per_person", 1)
        losses = []
        for one, other in zip(first.calls, second.calls, strict=True):
            moves = [a - b for a, b in zip(one.values.tolist(), other.values.tolist(), strict=True)]
            losses.append(people * Fraction(max(moves) - min(moves)) / Fraction(one.scale))
        if entry.event.rho:
            assert {call.kind for call in first.calls} == {"exponential"}, "nothing else is known to cost an eighth"
            spent, paid = sum(loss**2 for loss in losses) / 8, entry.event.cost.rho
        else:
            spent, paid = sum(losses), entry.event.cost.epsilon
        assert spent <= paid, f"a loss of {float(spent)} at a price of {float(paid)}"
        most = max(most, float(spent / paid))
    assert most > 0.002, "the tables make no difference: nothing was tested"


def test_the_replay_catches_a_spread_that_is_not_kept(monkeypatch) -> None:
    """The attack works: where scores are not clipped, a lie about the spread shows."""
    from privfit.mechanisms.genetic import scores

    monkeypatch.setattr(scores.np, "minimum", lambda short, spread: short)
    fitness = pf.RowFitness(lambda rows, w: 5 * distance(rows, w), spread=1.0)
    first = Recording(seed=3)
    _, ledger, _ = fitted(monkeypatch, PAIRS["replace-one"][0][0], first, fitness)
    second = Replaying(first.calls)
    fitted(monkeypatch, PAIRS["replace-one"][0][1], second, fitness)
    moves = [(one.values - other.values, one.scale) for one, other in zip(first.calls, second.calls, strict=True)]
    assert sum((max(moved) - min(moved)) / scale for moved, scale in moves) > ledger.spent.epsilon


# -- what is paid ----------------------------------------------------------------------------------


@pytest.fixture
def ledger():
    return pf.Ledger(epsilon=5.0, delta=1e-3)


def search(fitness=MEDIAN, **params) -> pf.GeneticSearch:
    return pf.GeneticSearch(
        fitness, **{"low": LOW, "high": HIGH, "schema": SCHEMA, "rounds": 3, "candidates": 10, **params}
    )


TABLE = np.tile(np.arange(11.0), 20)[:, None]


def test_a_fit_is_charged_once_whatever_the_rounds(ledger) -> None:
    model = search(rounds=7, parents=2, ledger=ledger, epsilon=0.3).fit(TABLE)
    (entry,) = ledger.entries()
    assert (entry.epsilon, ledger.spent.epsilon, ledger.spent.delta) == (0.3, 0.3, 0.0)
    assert model.report_.private
    assert "13 private selections by permute-and-flip" in str(model.report_)


def test_a_delta_is_spent_where_it_buys_something_and_the_report_says_so(ledger) -> None:
    model = search(rounds=50, ledger=ledger, delta=1e-6).fit(TABLE)
    (entry,) = ledger.entries()
    assert entry.event.rho > 0
    assert entry.event.delta == 1e-6
    assert "the exponential mechanism" in str(model.report_)
    other = search(rounds=1, ledger=ledger, delta=1e-6).fit(TABLE)
    assert ledger.entries()[1].event.delta == 0.0
    assert "delta was not spent" in str(other.report_)


@pytest.mark.parametrize("selection", ["enhanced", "exponential"])
def test_a_delta_never_makes_choices_blunter(ledger, selection) -> None:
    """One choice at epsilon = 1 is sharper than what rho of (1, 1e-6) buys: the delta is then left alone."""
    search(FITNESSES["bounds"], rounds=1, ledger=ledger, delta=1e-6, selection=selection).fit(TABLE)
    (entry,) = ledger.entries()
    assert (entry.event.delta, entry.event.rho) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("params", "values", "error", "words"),
    [
        ({"low": [10.0], "high": [0.0]}, TABLE, pf.PrivacyError, "low is below high"),
        ({"low": [0.0], "high": [np.inf]}, TABLE, pf.PrivacyError, "every bound is a number"),
        ({"low": [-1.7e308], "high": [1.7e308]}, TABLE, pf.PrivacyError, "Give public bounds"),
        ({"low": "a"}, TABLE, pf.PrivacyError, "two numbers with n_parameters, or two arrays"),
        ({"low": [0.0, 0.0], "high": [1.0, 1.0, 1.0]}, TABLE, pf.PrivacyError, "two arrays"),
        ({"low": [[0.0]], "high": [[1.0]]}, TABLE, pf.PrivacyError, "Give public bounds"),
        ({"n_parameters": 0}, TABLE, pf.PrivacyError, "n_parameters=0 was given; it is an integer of at least 1"),
        ({"n_parameters": 2.0}, TABLE, pf.PrivacyError, "n_parameters=2.0 was given"),
        ({"n_parameters": 3, "low": [0.0, 0.0], "high": [1.0, 1.0]}, TABLE, pf.PrivacyError, "n_parameters"),
        ({"start": [[1.0, 2.0]]}, TABLE, pf.PrivacyError, "start has the shape"),
        ({"start": [[np.nan]]}, TABLE, pf.PrivacyError, "all of them numbers"),
        ({"start": np.empty((0, 1))}, TABLE, pf.PrivacyError, "start has the shape"),
        ({"start": "here"}, TABLE, pf.PrivacyError, "start"),
        (
            {"fitness": distance},
            TABLE,
            pf.PrivacyError,
            "fitness=function was given; it is a pf.RowFitness or a pf.TableFitness",
        ),
        ({"selection": "best"}, TABLE, pf.PrivacyError, "selection='best' was given"),
        ({"selection": "exponential"}, TABLE, pf.PrivacyError, "that rule needs bounds"),
        ({"rounds": 0}, TABLE, pf.PrivacyError, "rounds=0 was given"),
        ({"parents": 10}, TABLE, pf.PrivacyError, "parents=10 of candidates=10"),
        ({"candidates": 1}, TABLE, pf.PrivacyError, "candidates=1 was given"),
        ({"mutation": 2.0}, TABLE, pf.PrivacyError, "mutation=2.0 was given"),
        ({"decay": 0}, TABLE, pf.PrivacyError, "decay=0 was given"),
        ({"epsilon": 0.0}, TABLE, pf.PrivacyError, "epsilon"),
        ({"schema": None}, TABLE, SchemaError, "GeneticSearch was given no schema"),
        ({}, np.full((3, 1), np.nan), DataError, "contains NaN"),
        ({}, np.zeros((0, 1)), DataError, "no rows"),
        ({"fitness": pf.RowFitness(distance, domain=range(5))}, TABLE, DataError, "does not list in its domain"),
        ({"fitness": pf.RowFitness(distance)}, TABLE, ValueError, "State spread"),
        ({"epsilon": 1e-12}, TABLE, pf.PrivacyError, "64-bit"),
    ],
)
def test_what_means_nothing_is_refused_in_words_and_charges_nothing(ledger, params, values, error, words) -> None:
    with pytest.raises(error, match=words):
        search(**{"ledger": ledger, **params}).fit(values)
    assert ledger.entries() == []


def test_a_fitness_that_fails_is_not_charged_and_leaves_the_model_as_it_was(ledger) -> None:
    model = search(ledger=ledger).fit(TABLE)
    before = model.best_.copy()

    def broken(rows, w):
        raise ZeroDivisionError

    model.set_params(fitness=pf.RowFitness(broken, spread=1.0))
    with pytest.raises(pf.PrivacyError, match="made up from the schema, with ZeroDivisionError"):
        model.fit(TABLE)
    assert len(ledger.entries()) == 1
    np.testing.assert_array_equal(model.best_, before)


def test_a_seeded_search_is_not_private_and_pays_nothing(ledger) -> None:
    one, again = (search(random_state=5).fit(TABLE) for _ in range(2))
    np.testing.assert_array_equal(one.best_, again.best_)
    assert not one.report_.private
    with pytest.raises(pf.PrivacyError, match="not private"):
        search(random_state=5, ledger=ledger).fit(TABLE)


def test_a_table_fitness_is_believed_and_the_report_says_so(ledger) -> None:
    believed, kept = (search(FITNESSES[name], ledger=ledger).fit(TABLE) for name in ("table", "spread"))
    assert "is believed" in str(believed.report_)
    assert "is believed" not in str(kept.report_)


def test_a_score_that_writes_to_the_candidates_cannot_have_rows_released(ledger) -> None:
    """Written in place, the mean of the rows would be the answer."""

    def careless(rows, w):
        w -= 100 * rows.mean()
        return distance(rows, w)

    with pytest.raises(ValueError, match="read-only"):
        search(pf.RowFitness(careless, spread=10.0), ledger=ledger).fit(TABLE)
    assert ledger.entries() == []


# -- of use ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["auto", "enhanced", "permute-and-flip"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_it_finds_a_median(selection, adjacency) -> None:
    values = np.random.default_rng(1).beta(2, 6, 4000)[:, None] * 10
    model = search(
        selection=selection, adjacency=adjacency, rounds=12, candidates=100, epsilon=2.0, random_state=0
    ).fit(values)
    assert abs(model.best_[0] - np.median(values)) < 0.3


def test_it_finds_a_mean() -> None:
    values = np.random.default_rng(2).beta(2, 6, 4000)[:, None] * 10
    fitness = pf.RowFitness(
        lambda rows, w: -((rows - w.T) ** 2), bounds=lambda w: (-(np.maximum(w[:, 0], 10 - w[:, 0]) ** 2), 0.0)
    )
    model = search(fitness, rounds=10, candidates=100, epsilon=2.0, random_state=0).fit(values)
    assert abs(model.best_[0] - values.mean()) < 0.4


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"parents": 3}], ids=str)
def test_it_finds_a_line_with_several_parameters_a_target_and_a_delta(options) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (8000, 2))
    y = np.clip(0.5 * x[:, 0] - 0.7 * x[:, 1] + 0.2 + rng.normal(0, 0.1, 8000), -2, 2)

    def score(rows, w):
        return -np.abs(rows[:, -1:] - rows[:, :-1] @ w[:, :-1].T - w[:, -1])

    def spread(w):
        return min(float(np.abs(w[:, None] - w).sum(axis=2).max()), 5.0)

    schema = pf.Schema.box(-1, 1, target=(-2, 2))
    model = pf.GeneticSearch(
        pf.RowFitness(score, spread=spread),
        low=-1,
        high=1,
        n_parameters=3,
        schema=schema,
        rounds=40,
        epsilon=3.0,
        mutation=0.1,
        random_state=0,
        **options,
    ).fit(x, y)
    assert model.best_.shape == (3,)
    assert np.abs(model.best_ - [0.5, -0.7, 0.2]).max() < 0.25


def test_it_finds_the_commonest_of_categories() -> None:
    """Rows have categories as the places of their levels."""
    frame = pd.DataFrame({"town": ["c"] * 300 + ["a"] * 100 + ["b"] * 50})
    fitness = pf.RowFitness(lambda rows, w: rows == np.rint(w.T), bounds=(0, 1))
    model = pf.GeneticSearch(
        fitness,
        low=[-0.49],
        high=[2.49],
        schema=pf.Schema([pf.Category("town", ["a", "b", "c"])]),
        rounds=1,
        random_state=1,
    )
    assert np.rint(model.fit(frame).best_[0]) == 2


def test_a_start_is_where_it_begins() -> None:
    model = search(
        pf.RowFitness(lambda rows, w: np.zeros((len(rows), len(w))), spread=1.0),
        start=[[2.0], [3.0]],
        rounds=1,
        random_state=0,
    )
    assert model.fit(TABLE).best_[0] in (2.0, 3.0)


def test_the_answer_stays_within_its_bounds() -> None:
    fitness = pf.RowFitness(lambda rows, w: np.ones((len(rows), 1)) * w.T, spread=span)
    model = search(fitness, epsilon=100.0, mutation=0.5, rounds=8, random_state=0).fit(TABLE)
    assert model.best_[0] == 10.0


def test_a_stream_and_a_frame_give_the_answer_of_the_array() -> None:
    array, frame = (search(random_state=4).fit(table).best_ for table in (TABLE, pd.DataFrame(TABLE, columns=["x0"])))
    stream = search(random_state=4).fit(pa.table({"x0": TABLE[:, 0]}).to_reader(max_chunksize=7)).best_
    np.testing.assert_array_equal(array, frame)
    np.testing.assert_array_equal(array, stream)


def test_with_a_public_table_the_target_is_taken_or_refused_but_not_dropped() -> None:
    """A fitness that needs the last column must not be given the last feature instead."""
    widths = []
    fitness = pf.RowFitness(lambda rows, w: widths.append(rows.shape[1]) or np.zeros((len(rows), len(w))), spread=1.0)
    try:
        search(fitness, schema="public").fit(TABLE, TABLE[:, 0])
    except (ValueError, SchemaError):
        return
    assert set(widths) == {2}


def test_clones_and_parameters_are_those_of_scikit_learn() -> None:
    model = search(parents=2, start=[[1.0]], n_parameters=1)
    copied = clone(model)
    assert copied is not model
    assert not hasattr(copied, "best_")
    assert (
        copied.get_params().keys() == model.get_params().keys() >= {"fitness", "low", "high", "start", "random_state"}
    )
    assert copied.get_params()["parents"] == 2
    assert copied.get_params()["start"] == [[1.0]]
    assert copied.set_params(parents=3).parents == 3
    assert model.parents == 2
    assert "GeneticSearch(" in repr(model)
    seeded = search(random_state=0).fit(TABLE)
    np.testing.assert_array_equal(clone(seeded).fit(TABLE).best_, seeded.best_)
    np.testing.assert_array_equal(copy.deepcopy(seeded).best_, seeded.best_)
