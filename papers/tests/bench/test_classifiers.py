"""Classifiers side by side: scores as scikit-learn counts them, the same splits for all, and an order that means
something.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from privfit.datasets.census import census_schema, generated_census, with_high_income
from privfit_papers.bench.classifiers import (
    DEFAULT,
    MAJORITY,
    METHODS,
    NO_NOISE,
    PEER,
    PEER_CS,
    TUNED_PEER,
    Score,
    Spread,
    class_spreads,
    peer_scores,
    split_at_random,
)
from privfit_papers.bench.speed import encoded_rows

SCHEMA = census_schema("high_income")


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return with_high_income(generated_census(12_000, seed=3))


@pytest.fixture(scope="module")
def spreads(people) -> dict[tuple[str, float | None], Spread]:
    return {
        (one.method, one.epsilon): one for one in class_spreads("people", people, SCHEMA, epsilons=(0.1, 1.6), runs=3)
    }


# -- scores ----------------------------------------------------------------------------------------


def test_scores_are_those_of_sklearn() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 3, 400)
    is_second = rng.uniform(size=400) < 0.3
    chances = 1 / (1 + np.exp(-odds))
    score = Score.of(odds, is_second)
    assert score.error == pytest.approx(np.mean((chances > 0.5) != is_second))
    assert score.auc == pytest.approx(roc_auc_score(is_second, odds))
    assert score.log_loss == pytest.approx(log_loss(is_second, chances))


def test_who_is_sure_and_wrong_pays_a_finite_price() -> None:
    score = Score.of(np.array([np.inf, -np.inf, np.inf, -np.inf]), np.array([True, False, True, True]))
    assert score.error == 0.25
    assert score.log_loss == pytest.approx(-np.log(1e-15) / 4)
    assert score.auc == pytest.approx(5 / 6)


def test_means_and_deviations_are_over_runs() -> None:
    spread = Spread.of("t", "m", 0.4, [Score(0.1, 0.9, 0.3), Score(0.2, 0.8, 0.7)])
    assert (spread.error, spread.auc, spread.log_loss) == pytest.approx((0.15, 0.85, 0.5))
    assert (spread.error_deviation, spread.auc_deviation, spread.log_loss_deviation) == pytest.approx((0.05, 0.05, 0.2))
    assert spread.runs == 2
    assert spread.to_dict()["epsilon"] == 0.4


# -- splits ----------------------------------------------------------------------------------------


def test_a_split_has_every_row_once_and_repeats(people) -> None:
    frame = people.with_row_index("row")
    split, again, other = (split_at_random(frame, SCHEMA, seed) for seed in (4, 4, 5))
    assert (split.train.height, split.test.height) == (9_600, 2_400)
    assert sorted([*split.train["row"], *split.test["row"]]) == list(range(12_000))
    assert split.test.equals(again.test)
    assert not split.test.equals(other.test)


def test_the_majority_class_is_the_shares_of_the_rows_to_fit_on(people) -> None:
    split = split_at_random(people, SCHEMA, 0)
    share, truth = split.is_second(split.train).mean(), split.is_second(split.test)
    score = split.majority()
    assert score.error == pytest.approx(min(truth.mean(), 1 - truth.mean()))
    assert score.auc == 0.5
    assert score.log_loss == pytest.approx(log_loss(truth, np.full(len(truth), share)))


# -- methods ---------------------------------------------------------------------------------------


def test_every_method_is_there_for_every_epsilon_and_what_has_no_noise_once(spreads) -> None:
    expected = {(name, epsilon) for name in METHODS for epsilon in (0.1, 1.6)} | {(NO_NOISE, None), (MAJORITY, None)}
    assert set(spreads) == expected
    assert all(one.runs == 3 for one in spreads.values())


def test_more_epsilon_helps_and_nothing_beats_no_noise_by_much(spreads) -> None:
    for name in METHODS:
        assert spreads[name, 1.6].log_loss < spreads[name, 0.1].log_loss, name
        assert spreads[name, 1.6].auc > spreads[name, 0.1].auc, name
        assert spreads[NO_NOISE, None].log_loss < spreads[name, 1.6].log_loss, name
    assert spreads[DEFAULT, 1.6].error < spreads[NO_NOISE, None].error + 0.02


def test_the_default_is_ahead_of_the_other_mechanisms_and_of_whole_slopes(spreads) -> None:
    for name in ("functional", "output", "logistic loss"):
        for epsilon in (0.1, 1.6):
            assert spreads[DEFAULT, epsilon].auc > spreads[name, epsilon].auc, (name, epsilon)


def test_no_noise_is_sklearns_fit_on_the_same_encoding(people, spreads) -> None:
    """A ridge of 1 is C=1. That a fit rounds places between knots is all that is left."""
    scores = []
    for run in range(3):
        split = split_at_random(people, SCHEMA, run)
        geometry = SCHEMA.geometry(numeric="splines", intercept=False)
        train, test = (encoded_rows(part, SCHEMA, geometry) for part in (split.train, split.test))
        plain = LogisticRegression(C=1.0, fit_intercept=False, max_iter=2000).fit(train, split.is_second(split.train))
        scores.append(Score.of(plain.decision_function(test), split.is_second(split.test)))
    assert spreads[NO_NOISE, None].log_loss == pytest.approx(np.mean([score.log_loss for score in scores]), abs=5e-4)
    assert spreads[NO_NOISE, None].error == pytest.approx(np.mean([score.error for score in scores]), abs=2e-3)


def test_the_same_command_gives_the_same_numbers(people, spreads) -> None:
    again = class_spreads("people", people, SCHEMA, {DEFAULT: METHODS[DEFAULT]}, (0.1,), runs=3)
    assert again[0] == spreads[DEFAULT, 0.1]


# -- the peer --------------------------------------------------------------------------------------


class StandIn:
    """Logistic regression without noise in the place of the peer's."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def fit(self, X: Path, y: Path, **parameters: Any) -> dict[str, Any]:
        rows = np.load(X)
        assert np.linalg.norm(rows, axis=1).max() <= parameters["data_norm"] * (1 + 1e-9)
        self.asked.append(parameters)
        model = LogisticRegression(C=parameters["C"], fit_intercept=False, max_iter=2000).fit(rows, np.load(y))
        return {"coef": model.coef_[0].tolist(), "intercept": 0.0}


def test_the_peer_gets_our_encoding_its_largest_norm_and_the_best_of_several_ridges(people, spreads) -> None:
    peer = StandIn()
    split = split_at_random(people, SCHEMA, 0)
    scores = peer_scores(peer, split, (0.1, 1.6), seed=9)
    assert set(scores) == {(name, epsilon) for name in (PEER, TUNED_PEER) for epsilon in (0.1, 1.6)}
    assert [one["C"] for one in peer.asked] == [*PEER_CS, *PEER_CS]
    assert all(one["random_state"] == 9 and not one["fit_intercept"] for one in peer.asked)
    assert scores[PEER, 0.1].log_loss == pytest.approx(spreads[NO_NOISE, None].log_loss, abs=0.02)


def test_the_tuned_peer_has_the_fewest_test_errors_of_its_ridges(people) -> None:
    """Also where its default is not the best: a stand-in that is wrong unless C is 0.001."""

    class OneGood(StandIn):
        def fit(self, X: Path, y: Path, **parameters: Any) -> dict[str, Any]:
            told = super().fit(X, y, **parameters)
            return told if parameters["C"] == 0.001 else {**told, "coef": [-weight for weight in told["coef"]]}

    scores = peer_scores(OneGood(), split_at_random(people, SCHEMA, 0), (1.6,), seed=9)
    assert scores[PEER, 1.6].error > 0.5 > scores[TUNED_PEER, 1.6].error
