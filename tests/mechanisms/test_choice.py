"""The best of a random number of runs: its exact law, its price, and what is drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.mechanisms.choice import BestOf, Trials
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters, SeededNoise, exact
from privfit.privacy.parts import RandomBits, Repeat
from privfit.rows import Rows
from privfit.tables import open_table
from tests.support.noise import RecordingNoise

SCHEMA = pf.Schema([pf.Numeric("x", 0, 1)], pf.Category("y", ["a", "b"]))


def best_law(law: np.ndarray, stop: float) -> np.ndarray:
    """Outputs in the order of their scores, no two alike: by the closed form of the proof."""
    at_least = np.cumsum(law[::-1])[::-1]
    more = np.append(at_least[1:], 0.0)
    return np.asarray(stop * law / ((stop + (1 - stop) * at_least) * (stop + (1 - stop) * more)))


def summed_law(law: np.ndarray, stop: float, most: int = 3000) -> np.ndarray:
    """The same, by adding up over the number of draws."""
    up_to = np.cumsum(law)
    found = np.zeros(len(law))
    for k in range(1, most):
        found += stop * (1 - stop) ** (k - 1) * (up_to**k - (up_to - law) ** k)
    return found


def neighbours(rng: np.random.Generator, outputs: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """A random pair of laws with a ratio of at most e^epsilon, extreme ones among them."""
    one = rng.dirichlet(np.full(outputs, 0.3)) + 1e-12
    one /= one.sum()
    signs = rng.choice([-1.0, 1.0], outputs) if rng.random() < 0.7 else rng.uniform(-1, 1, outputs)
    other = one * np.exp(signs * epsilon / 2)
    return one, other / other.sum()


def worst(times: float) -> float:
    """The largest loss found, over `times` that of one run."""
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(4000):
        one, other = neighbours(rng, rng.integers(2, 6), 0.8)
        single = np.abs(np.log(one / other)).max()
        if single < 0.1:
            continue
        stop = 10 ** rng.uniform(-5, -0.1)
        loss = np.abs(np.log(best_law(one, stop) / best_law(other, stop))).max()
        most = max(most, loss / (times * single))
    return most


def test_the_closed_form_is_the_sum() -> None:
    law = np.array([0.2, 0.5, 0.25, 0.05])
    assert best_law(law, 0.05) == pytest.approx(summed_law(law, 0.05), rel=1e-9)
    assert best_law(law, 0.05).sum() == pytest.approx(1.0)


def test_the_best_costs_three_runs_and_no_less() -> None:
    assert worst(3.0) <= 1 + 1e-9
    assert worst(2.0) > 1


class Fixed(Trials):
    """Candidates with known scores."""

    unit = 1

    def __init__(self, scores: list[int]) -> None:
        self.scores, self.number = scores, len(scores)
        self.runs: list[tuple[int, float]] = []

    def divide(self, key: bytes) -> int:
        assert len(key) == 32
        return 2

    def run(self, place: int, epsilon: float, seed: int) -> tuple[Any, int]:
        self.runs.append((place, epsilon))
        return f"fit {place}", self.scores[place]


def released(trials: Trials, noise: Any, epsilon: float = 1.2, adjacency: str = "replace-one", rows: int = 1) -> Any:
    frame = pl.DataFrame({"x": [0.0, 1.0], "y": ["a", "b"]})
    mechanism = BestOf()
    table = Rows(open_table(frame), SCHEMA, mechanism.geometry(SCHEMA, trials))
    parameters = PrivacyParameters(Budget(epsilon), adjacency, rows)  # type: ignore[arg-type]
    return mechanism.release(table, parameters, None, noise, trials)


def test_many_are_repeated_at_a_third_until_a_random_stop() -> None:
    lengths, found = [], []
    for seed in range(200):
        trials, noise = Fixed([0, 10, 100, 500, 20]), RecordingNoise(seed)
        release = released(trials, noise)
        lengths.append(len(trials.runs))
        found.append(release.value[0])
        assert {epsilon for _, epsilon in trials.runs} == {0.4}
        assert [call.scale for call in noise.calls] == [2.5] * len(trials.runs)
        assert release.value[1] == f"fit {release.value[0]}"
    assert {part.kind for part in release.event.parts} == {"random-bits", "repeat"}
    assert release.event.epsilon == 1.2
    assert 12 < np.mean(lengths) < 20  # 4 (K - 1) = 16
    assert np.mean(np.array(found) == 3) > 0.6


@pytest.mark.parametrize(("adjacency", "scale"), [("replace-one", 2 / 1.2), ("add-remove", 1 / 1.2)])
def test_few_share_epsilon_and_one_is_chosen(adjacency: str, scale: float) -> None:
    trials, noise = Fixed([0, 100]), RecordingNoise(0)
    release = released(trials, noise, adjacency=adjacency)
    assert trials.runs == [(0, 0.6), (1, 0.6)]
    assert release.value == (1, "fit 1")
    (call,) = noise.calls
    assert call.kind == "permute-and-flip"
    assert call.scale == pytest.approx(scale)


@pytest.mark.parametrize("candidates", [2, 3, 5])
def test_the_epsilons_of_fits_never_add_up_to_more_than_the_price(candidates: int) -> None:
    for hundredth in range(1, 200):
        trials, epsilon = Fixed([0] * candidates), hundredth / 100
        released(trials, RecordingNoise(0), epsilon=epsilon)
        (each,) = {own for _, own in trials.runs}
        assert exact(each) * min(candidates, 3) <= exact(epsilon)


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(PrivacyError, match="several rows per person"):
        released(Fixed([0, 1]), RecordingNoise(0), rows=2)


def test_a_repetition_that_stops_is_over() -> None:
    parts = (Repeat(parts=(RandomBits(),), one_in=1, epsilon=1.0),)
    draws = Draws(Event("test", 1.0, parts=parts), SeededNoise(0))
    with draws.charged():
        draws.random_integers()
        assert draws.stops()
    with pytest.raises(PrivacyError):
        draws.stops()
    assert math.isfinite(worst(3.0))
