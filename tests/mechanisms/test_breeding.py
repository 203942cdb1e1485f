"""Candidates beget candidates: every coordinate can move, parents stay, bounds hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit.mechanisms import Breeding
from privfit.mechanisms.genetic.breeding import scattered
from privfit.privacy import PrivacyError, SeededNoise

LOW, HIGH = np.array([-1.0, 0.0, 10.0]), np.array([1.0, 4.0, 30.0])
PARENTS = np.array([[0.0, 1.0, 20.0], [0.5, 2.0, 15.0], [-0.5, 3.0, 25.0]])


def bred(chosen: np.ndarray, breeding: int = 0, seed: int = 0, **settings) -> np.ndarray:
    return Breeding(**settings).offspring(chosen, LOW, HIGH, breeding, SeededNoise(seed))


def test_the_child_of_one_parent_moves_one_coordinate_up_or_down_by_a_step_and_each_of_them_as_often() -> None:
    children = bred(PARENTS[:1], candidates=3001, mutation=0.05)[1:]
    moved = (children - PARENTS[0]) / (HIGH - LOW)
    assert np.all((moved != 0).sum(axis=1) == 1)
    np.testing.assert_allclose(np.abs(moved[moved != 0]), 0.05)
    for coordinate in range(3):
        for sign in (-1, 1):
            assert 400 < (np.sign(moved[:, coordinate]) == sign).sum() < 600


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("candidates", [4, 5, 200])
def test_parents_stay_and_there_are_as_many_candidates_as_asked_for(number, candidates) -> None:
    found = bred(PARENTS[:number], candidates=candidates, parents=number)
    assert found.shape == (candidates, 3)
    np.testing.assert_array_equal(found[:number], PARENTS[:number])


def test_two_parents_swap_their_ends() -> None:
    """But for one coordinate that moved, every child is the beginning of one parent and the end of another, and all
    cuts and pairs occur.
    """
    children = bred(PARENTS, candidates=2003, parents=3, mutation=1e-6)[3:]
    origin = np.argmin(np.abs(children[:, None] - PARENTS), axis=1)
    assert {tuple(row) for row in origin.tolist()} == {
        (a, b, c) for a in range(3) for b in range(3) for c in range(3) if (a == b) != (b == c) and len({a, b, c}) == 2
    }
    assert np.abs(children - np.take_along_axis(PARENTS, origin, axis=0)).max() < 3e-5


def test_several_parents_of_one_coordinate_are_crossed_without_trouble() -> None:
    found = Breeding(10, 2).offspring(np.array([[0.2], [0.8]]), np.zeros(1), np.ones(1), 0, SeededNoise(0))
    assert found.shape == (10, 1)
    assert len(np.unique(found)) > 3


@given(st.integers(0, 100), st.integers(1, 3), st.sampled_from([0.05, 1.0]))
def test_no_child_leaves_the_bounds(seed, number, mutation) -> None:
    corners = np.array([LOW, HIGH, (LOW + HIGH) / 2])[:number]
    found = bred(corners, seed=seed, candidates=40, parents=number, mutation=mutation)
    assert (found >= LOW).all()
    assert (found <= HIGH).all()


def test_a_step_decays_from_breeding_to_breeding() -> None:
    breeding = Breeding(mutation=0.2, decay=0.5)
    assert [breeding.step(number) for number in range(3)] == [0.2, 0.1, 0.05]
    moved = np.abs(bred(PARENTS[:1], breeding=2, mutation=0.2, decay=0.5)[1:] - PARENTS[0]) / (HIGH - LOW)
    np.testing.assert_allclose(moved.max(axis=1), 0.05)


def test_parents_are_not_written_to() -> None:
    parents = PARENTS.copy()
    bred(parents, parents=3)
    np.testing.assert_array_equal(parents, PARENTS)


def test_scattered_candidates_are_anywhere_in_the_bounds() -> None:
    found = (scattered(4000, LOW, HIGH, SeededNoise(3)) - LOW) / (HIGH - LOW)
    assert found.shape == (4000, 3)
    counts = [np.histogram(found[:, place], bins=10, range=(0, 1))[0] for place in range(3)]
    assert np.min(counts) > 300
    assert np.max(counts) < 500
    assert abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.1


class Farthest:
    """Draws the largest number there is."""

    def below(self, limits):
        return limits - 1


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.3), (-1.7, 0.1), (1e-9, 3.3)])
def test_not_even_the_farthest_candidate_leaves_the_bounds(low, high) -> None:
    """low + (high - low) is not always high."""
    found = scattered(1, np.array([low]), np.array([high]), Farthest())
    assert found.max() <= high


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": 1}, "candidates=1 was given; it is an integer of at least 2"),
        ({"candidates": 2.5}, "candidates=2.5 was given"),
        ({"candidates": True}, "candidates=True was given"),
        ({"parents": 0}, "parents=0 was given; it is an integer of at least 1"),
        ({"candidates": 3, "parents": 3}, "parents=3 of candidates=3 were given; fewer are selected than there are"),
        ({"mutation": 0.0}, "mutation=0.0 was given; it is above 0 and at most 1"),
        ({"mutation": float("nan")}, "mutation=nan was given"),
        ({"decay": 1.5}, "decay=1.5 was given; it is above 0 and at most 1"),
        ({"decay": "half"}, "decay='half' was given"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words) -> None:
    with pytest.raises(PrivacyError, match=words):
        Breeding(**settings).check()


def test_settings_that_mean_something_are_not() -> None:
    assert Breeding(2, 1, 1, 1.0).check() is None
    assert Breeding(np.int64(5), 4, np.float64(0.5), 0.1).check() is None
