"""How far one row can move a score, or tell two candidates apart: the paper's example, and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privfit.statistics import RowFitness, TableFitness, as_scores, enumerated

WHOLE = arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.integers(-50, 50))


def test_the_papers_first_example_has_its_128_and_its_56_and_the_range_is_40() -> None:
    """PrivGene, Example 1: rows 0 to 10, candidates 6, 7 and 8, q = -(t - w)^2."""
    rows, candidates = np.arange(11.0)[:, None], np.array([[6.0], [7.0], [8.0]])
    fitness = RowFitness(lambda rows, w: -((rows - w.T) ** 2), domain=rows)
    found = enumerated(fitness.scored(rows, candidates), "replace-one")
    assert (found.by_change, found.by_spread, found.by_range) == (128.0, 56.0, 40.0)
    gone = enumerated(fitness.scored(rows, candidates), "add-remove")
    assert (gone.by_change, gone.by_range) == (128.0, 28.0)


@given(WHOLE)
def test_replacing_a_row_changes_differences_by_the_range_exactly(scores) -> None:
    """Over all pairs of rows and pairs of candidates."""
    found = enumerated(scores, "replace-one")
    rows, columns = range(scores.shape[0]), range(scores.shape[1])
    moves = [
        (scores[a, i] - scores[a, j]) - (scores[b, i] - scores[b, j])
        for a, b in itertools.product(rows, repeat=2)
        for i, j in itertools.product(columns, repeat=2)
    ]
    assert found.by_range == max(moves)
    assert found.by_change == 2 * max(scores[a, i] - scores[b, i] for a in rows for b in rows for i in columns)
    assert found.by_spread == 2 * max(scores[a, i] - scores[a, j] for a in rows for i in columns for j in columns)
    assert found.by_range <= min(found.by_change, found.by_spread)


@given(WHOLE)
def test_adding_a_row_changes_differences_by_the_range_exactly(scores) -> None:
    found = enumerated(scores, "add-remove")
    assert found.by_range == max(row[i] - row[j] for row in scores for i in range(len(row)) for j in range(len(row)))
    assert found.by_change == 2 * np.abs(scores).max()
    assert found.by_range <= min(found.by_change, found.by_spread)


CANDIDATES = np.array([[0.0], [1.0], [5.0]])


def test_a_spread_is_a_number_or_a_function_of_the_candidates() -> None:
    score = lambda rows, w: np.zeros((len(rows), len(w)))  # noqa: E731
    assert RowFitness(score, spread=3).most_spread(CANDIDATES) == 3.0
    assert RowFitness(score, spread=lambda w: np.ptp(w)).most_spread(CANDIDATES) == 5.0
    assert RowFitness(score, spread=3).most_change(CANDIDATES, "replace-one") is None


@pytest.mark.parametrize(("adjacency", "change"), [("replace-one", 4.0), ("add-remove", 9.0)])
def test_bounds_say_how_far_a_score_moves_and_bound_the_spread(adjacency, change) -> None:
    fitness = RowFitness(None, bounds=lambda w: ([-9.0, -2.0, 0.0], [-6.0, 2.0, 1.0]))
    assert fitness.most_change(CANDIDATES, adjacency) == change
    assert fitness.most_spread(CANDIDATES) == 2.0 - -9.0
    assert RowFitness(None, spread=1.5, bounds=(-4, 4)).most_spread(CANDIDATES) == 1.5
    assert RowFitness(None, spread=99, bounds=(-4, 4)).most_spread(CANDIDATES) == 8.0


@pytest.mark.parametrize(
    "fitness",
    [
        RowFitness(None),
        RowFitness(None, spread=-1),
        RowFitness(None, spread=np.inf),
        RowFitness(None, spread=np.nan),
        RowFitness(None, bounds=(0, np.inf)),
        RowFitness(None, bounds=(1, -1)),
        RowFitness(None, spread=1.0, bounds=(1, -1)),
        RowFitness(None, bounds=(np.nan, 1)),
        RowFitness(None, spread=1.0, bounds=(np.nan, 1)),
    ],
    ids=repr,
)
def test_a_spread_that_is_no_number_is_refused(fitness) -> None:
    with pytest.raises(ValueError):
        fitness.most_spread(CANDIDATES)


@pytest.mark.parametrize("bounds", [(1, -1), (np.nan, 1), (0, np.nan)], ids=str)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_bounds_that_mean_nothing_are_refused_also_where_no_spread_is_asked_for(bounds, adjacency) -> None:
    with pytest.raises(ValueError):
        RowFitness(None, bounds=bounds).most_change(CANDIDATES, adjacency)


@pytest.mark.parametrize(
    "sensitivity", [-1.0, np.inf, np.nan, lambda w: -np.ptp(w)], ids=["negative", "infinite", "nan", "function"]
)
def test_a_sensitivity_that_is_no_number_is_refused(sensitivity) -> None:
    with pytest.raises(ValueError, match=r"sensitivity of .* State what one row can do"):
        TableFitness(None, sensitivity).most_change(CANDIDATES)


def test_a_sensitivity_is_a_number_or_a_function_of_the_candidates() -> None:
    assert TableFitness(None, 2).most_change(CANDIDATES) == 2.0
    assert TableFitness(None, lambda w: np.ptp(w)).most_change(CANDIDATES) == 5.0


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 2\); \(2, 3\) was expected"):
        RowFitness(lambda rows, w: np.zeros((2, 2))).scored(np.zeros((2, 1)), CANDIDATES)
    with pytest.raises(ValueError, match="was expected"):
        RowFitness(None, prior=lambda w: w).known(CANDIDATES)
    assert as_scores([1, 2], (2,)).dtype == np.float64


def test_what_is_known_beforehand_is_nothing_unless_it_is_said() -> None:
    assert RowFitness(None).known(CANDIDATES).tolist() == [0.0, 0.0, 0.0]
    assert RowFitness(None, prior=lambda w: -w[:, 0]).known(CANDIDATES).tolist() == [0.0, -1.0, -5.0]


@pytest.mark.parametrize("of", ["rows", "candidates"])
def test_a_score_cannot_write_to_what_it_is_given(of) -> None:
    """What is written to candidates would be released; what is written to rows would be scored in the next round."""

    def careless(rows, candidates):
        target = rows if of == "rows" else candidates
        target += 1
        return np.zeros((len(rows), len(candidates)))

    rows, candidates = np.zeros((2, 1)), CANDIDATES.copy()
    with pytest.raises(ValueError, match="read-only"):
        RowFitness(careless, spread=1).scored(rows, candidates)
    assert not rows.any()
    np.testing.assert_array_equal(candidates, CANDIDATES)
    assert rows.flags.writeable
    assert candidates.flags.writeable
