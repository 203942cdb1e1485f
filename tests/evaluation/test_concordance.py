"""Concordance: near that of all pairs, within its interval, and from counts that a row changes by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.evaluation.cells import NoisyCells
from privfit.evaluation.concordance import PairGrid, Pairs
from privfit.summaries import release
from tests.support.noise import RecordingNoise

SCHEMA = pf.Schema([pf.Numeric("x", -3, 3)])
STATUS = pf.Category("status", ["alive", "dead"])


def rows(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).clip(-3, 3)
    lives, watched = rng.exponential(2 * np.exp(-0.75 * x)), rng.uniform(0, 6, n)
    status = np.where(lives <= watched, "dead", "alive")
    return pl.DataFrame({"x": x, "years": np.minimum(lives, watched), "status": status})


def of_all_pairs(table: pl.DataFrame, scores: np.ndarray) -> float:
    """Harrell's, of people who are followed for five years."""
    times, events = table["years"].to_numpy(), (table["status"] == "dead").to_numpy() & (table["years"] < 5).to_numpy()
    times, right, all_pairs = np.minimum(times, 5.0), 0.0, 0
    for place in np.flatnonzero(events):
        later = times > times[place]
        right += (scores[place] > scores[later]).sum() + 0.5 * (scores[place] == scores[later]).sum()
        all_pairs += int(later.sum())
    return right / all_pairs


@pytest.fixture(scope="module")
def model() -> pf.CoxRegression:
    model = pf.CoxRegression(5.0, schema=SCHEMA, time=pf.Numeric("years", 0, 5), event=STATUS, random_state=0)
    return model.fit(rows(20_000, 0))


@dataclass(frozen=True)
class Ranked:
    """People, what a model predicts of them, and the concordance of all their pairs."""

    table: pl.DataFrame
    scores: np.ndarray
    concordance: float


@pytest.fixture(scope="module")
def ranked(model: pf.CoxRegression) -> Ranked:
    table = rows(20_000, 1)
    scores = model.predict(table)
    return Ranked(table, scores, of_all_pairs(table, scores))


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_it_is_near_that_of_all_pairs(epsilon: float, adjacency: Any, model: pf.CoxRegression, ranked: Ranked) -> None:
    found = pf.evaluate(model, ranked.table, epsilon=epsilon, adjacency=adjacency, random_state=0)
    truth = ranked.concordance
    assert float(found.concordance) == pytest.approx(truth, abs=0.003 + 0.006 / epsilon)
    low, high = found.concordance.interval
    assert low < truth < high
    assert "concordance" in str(found)


def test_without_noise_few_bins_are_near_all_pairs(model: pf.CoxRegression, ranked: Ranked) -> None:
    times, happened = ranked.table["years"].to_numpy(), (ranked.table["status"] == "dead").to_numpy()
    found = []
    for signal in (5.0, 500.0, 5_000.0, 1e6):
        grid = PairGrid.of(model, signal, 1.0, 1)
        counts = np.bincount(grid.cells_of(times, happened, times >= 5, ranked.scores), minlength=grid.cells)
        own = Pairs(NoisyCells(counts.astype(float), 1e-3, len(times)), *grid.sizes).concordance
        found.append(abs(own.value - ranked.concordance))
    assert max(found) <= 0.003
    assert found == sorted(found, reverse=True)  # more bins, nearer


def test_the_gradient_is_that_of_the_sums() -> None:
    rng = np.random.default_rng(0)
    counts, value = rng.uniform(50, 90, 7 * 4), 0.6

    def left(own: np.ndarray) -> float:
        ordered, pairs = (found := Pairs(NoisyCells(own, 1.0, None), 3, 4))._sums(found._later)
        return ordered - value * pairs

    gradient = Pairs(NoisyCells(counts, 1.0, None), 3, 4)._gradient(value)
    for place in range(len(counts)):
        moved = counts + (np.arange(len(counts)) == place)
        assert left(moved) - left(counts) == pytest.approx(gradient[place], rel=1e-6)


def noised(
    model: pf.CoxRegression, people: list[tuple[float, float, str]], adjacency: Any, several: int
) -> tuple[np.ndarray, float]:
    source = RecordingNoise(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "noise_source", lambda random_state: source)
        table = pl.DataFrame(people, schema=["x", "years", "status"], orient="row")
        asked = {"epsilon": 0.5, "adjacency": adjacency, "rows_per_person": several, "expected_rows": 3}
        pf.evaluate(model, table, ledger=pf.Ledger(epsilon=1.0), **asked)
    (call,) = source.calls
    return np.asarray(call.values), float(call.scale)


@pytest.mark.parametrize(("adjacency", "several"), [("replace-one", 1), ("replace-one", 2), ("add-remove", 1)])
def test_no_neighbours_change_counts_by_more_than_noise_is_for(
    model: pf.CoxRegression, adjacency: Any, several: int
) -> None:
    kinds, worst = list(product((-2.0, 2.0), (0.1, 4.0, 9.0), ("alive", "dead")))[::2], 0
    rest, (_, scale) = kinds[-1], noised(model, kinds[:2], adjacency, several)
    base = noised(model, [rest], adjacency, several)[0] if adjacency == "add-remove" else None
    people = list(combinations_with_replacement(kinds, several))[:8]
    each = [noised(model, [rest, *own], adjacency, several)[0] for own in people]
    others = each if base is None else [base]
    worst = max(int(np.abs(one - other).sum()) for one in each for other in others)
    assert worst == round(scale * 0.5)  # a smaller scale would be caught


def test_what_it_lacks_is_refused_and_nothing_charged(model: pf.CoxRegression) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    for table, more in ((rows(50, 3).drop("status"), {}), (rows(50, 3), {"metrics": "auc"})):
        with pytest.raises(ValueError, match=r"status|concordance"):
            pf.evaluate(model, table, epsilon=0.5, ledger=ledger, **more)
    assert ledger.remaining == 1.0


def test_few_rows_leave_it_open(model: pf.CoxRegression) -> None:
    found = pf.evaluate(model, rows(20, 4), epsilon=0.1, random_state=0)
    assert np.isnan(float(found.concordance))
