"""Bounds that are bought: what one row can change, found by enumeration, and the exact law of the selection."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import privfit as pf
import privfit.statistics.ranges as grids
from privfit.mechanisms import SelectedBounds
from privfit.mechanisms.summaries import bounds as module
from privfit.mechanisms.summaries.bounds import UNIT, BoundsProblem
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.statistics.ranges import NONE, Ranges, candidate_ranges, range_scores
from privfit.tables import open_table
from tests.privacy.laws import LAWS, flip_law, most_told
from tests.support.noise import RecordingNoise

EPSILON = 0.6
POINTS = np.array([1.0, 2.0, 3.0])


def chain(low: float, high: float, ends: str = "far") -> Ranges:
    """A grid of few points, so that everything can be listed."""
    return candidate_ranges(pf.Numeric("x", low, high), "linear", ends)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "LINEAR_POINTS", 4)


ATTACKED = [((0, 4), "far"), ((-4, 0), "far"), ((-4, 4), "far"), ((-2, 4), "far"), ((0, 4), "both")]
CANDIDATES = [*ATTACKED, ((-4, 4), "both"), ((-4, 0), "both")]
IDS = [f"{low}..{high} {ends}" for (low, high), ends in CANDIDATES]


def tables(candidates: Ranges, most: int) -> Iterator[tuple[float, ...]]:
    """All tables of values that differ in what they are counted as."""
    cells = [candidates.column.low, *candidates.points.tolist(), candidates.column.high]
    for length in range(1, most + 1):
        yield from product(cells, repeat=length)


def neighbours(table: tuple[float, ...], candidates: Ranges, adjacency: str, people: int) -> Iterator[tuple]:
    """Tables in which the first rows, one person's, are others, or are not there."""
    cells = [candidates.column.low, *candidates.points.tolist(), candidates.column.high]
    rest = table[people:]
    if adjacency == "replace-one":
        yield from ((*new, *rest) for new in product(cells, repeat=people))
    elif rest:
        yield rest


def call(candidates: Ranges, table: tuple[float, ...], adjacency: str, people: int, share: float = 0.6) -> Any:
    """The scores and the scale with which something is selected."""
    noise = RecordingNoise()
    problem = BoundsProblem((candidates,))
    schema = pf.Schema([candidates.column])
    mechanism = SelectedBounds(share)
    rows = Rows(open_table(np.array(table)[:, None]), schema, mechanism.geometry(schema, problem), threads=1)
    parameters = PrivacyParameters(Budget(EPSILON), adjacency, people, 3 if adjacency == "add-remove" else None)
    mechanism.release(rows, parameters, None, noise, problem)
    (made,) = noise.calls
    return made


def largest(candidates: Ranges, adjacency: str, people: int, most: int) -> tuple[float, float]:
    """The most that a person changes of a difference of scores, over the scale; and the exact loss."""
    found: dict[tuple, Any] = {}

    def asked(table: tuple[float, ...]) -> Any:
        key = tuple(sorted(table))
        if key not in found:
            found[key] = call(candidates, key, adjacency, people)
        return found[key]

    moved, loss = 0.0, 0.0
    for table in tables(candidates, most):
        if len(table) < people:
            continue
        one = asked(table)
        for other in map(asked, neighbours(table, candidates, adjacency, people)):
            assert one.scale == other.scale
            change = one.values - other.values
            moved = max(moved, (max(change) - min(change)) / one.scale)
            loss = max(loss, most_told(LAWS[one.kind](one.values, one.scale), LAWS[one.kind](other.values, one.scale)))
    return moved, loss


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("bounds", "ends"), ATTACKED, ids=IDS[: len(ATTACKED)])
def test_a_person_changes_no_more_than_paid_for_and_about_as_much(bounds, ends, adjacency, monkeypatch) -> None:
    """With everything allowed to be cut off at once, the hinge is at work in some tables and not in others."""
    monkeypatch.setattr(module, "tolerated", lambda share, n_rows, noise: 1.0)
    candidates = chain(*bounds, ends)
    for people in (1, 2):
        moved, loss = largest(candidates, adjacency, people, 3 if len(candidates.points) < 4 else 2)
        assert moved <= EPSILON * (1 + 1e-12)
        assert loss <= EPSILON * (1 + 1e-9)
        if people == 1:
            assert moved == pytest.approx(EPSILON)
            assert loss > 0.5 * EPSILON


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_half_the_noise_is_seen(adjacency, monkeypatch) -> None:
    monkeypatch.setattr(module, "tolerated", lambda share, n_rows, noise: 1.0)
    monkeypatch.setattr(module, "octave_price", lambda *facts: 0.0)
    monkeypatch.setattr(Ranges, "sensitivity", lambda self, adjacency: 0.5)
    monkeypatch.setattr(module, "UNIT", 2 * UNIT)
    assert largest(chain(0, 4), adjacency, 1, 3)[1] > EPSILON


def test_pairs_of_ends_need_twice_the_noise_of_nested_ranges_under_replace_one(monkeypatch) -> None:
    monkeypatch.setattr(module, "tolerated", lambda share, n_rows, noise: 1.0)
    monkeypatch.setattr(Ranges, "sensitivity", lambda self, adjacency: 1)
    assert largest(chain(0, 4, "both"), "replace-one", 1, 2)[0] == pytest.approx(2 * EPSILON)


def test_the_usual_score_would_lose_twice_as_much() -> None:
    """Minus the distance to the number of rows that may be outside is not one-signed: one row more outside, and a
    narrow range that was one above it loses where all wider ones, which were one below, gain.
    """
    one, other = ([-abs(held + more - 6) for held in [6] + [5] * 60] for more in (0, 1))
    assert most_told(flip_law(one, 10.0), flip_law(other, 10.0)) > 1.99 / 10.0


@pytest.mark.parametrize(("bounds", "ends"), CANDIDATES, ids=IDS)
def test_ranges_are_nested_if_they_say_so(bounds, ends) -> None:
    candidates = chain(*bounds, ends)
    cut = []
    for low, high in zip(candidates.lower, candidates.upper, strict=True):
        levels = range(len(candidates.points) + 1)
        cut.append({level for level in levels if (low != NONE and level <= low) or (high != NONE and level > high)})
    nested = all(one <= other or other <= one for one in cut for other in cut)
    assert nested == candidates.nested


@pytest.mark.parametrize(("bounds", "ends"), CANDIDATES, ids=IDS)
def test_rows_outside_are_those_that_clipping_changes(bounds, ends) -> None:
    """But for values at a lower end, which count as outside: they are clipped to what they are."""
    candidates = chain(*bounds, ends)
    values = np.random.default_rng(3).uniform(bounds[0] - 1, bounds[1] + 1, 500)
    levels = np.searchsorted(candidates.block(0).edges, values, side="right")
    counts = np.bincount(levels, minlength=len(candidates.points) + 1)
    values = np.clip(values, *bounds)
    for place, outside in enumerate(candidates.outside(counts)):
        low, high = candidates.ends(place)
        assert outside == np.sum(values != np.clip(values, low, high))


def test_scores_are_integers_of_any_size() -> None:
    scores = range_scores(chain(0, 4), np.array([10**15, 5, 3, 1]), 2.5, 0.75, UNIT)
    assert all(isinstance(score, int) for score in scores)
    assert scores[-1] == max(-round(0.75 * UNIT * 2), scores[-1])


def test_a_value_at_a_point_is_within_the_range_that_ends_there() -> None:
    candidates = chain(0, 4)
    assert np.searchsorted(candidates.block(0).edges, POINTS, side="right").tolist() == [0, 1, 2]


@pytest.mark.parametrize("column", [pf.Numeric("x", 1.0, 1.0 + 2**-50), pf.Numeric("x", 1e300, 1.7e308)])
@pytest.mark.parametrize("ends", ["far", "both"])
@pytest.mark.parametrize("grid", ["log", "linear"])
def test_the_narrowest_and_the_widest_columns_have_candidates(column, ends, grid) -> None:
    candidates = candidate_ranges(column, grid, ends)
    for place in range(len(candidates.lower)):
        low, high = candidates.ends(place)
        assert column.low <= low < high <= column.high
    assert np.isfinite(candidates.octaves).all()
    assert (column.low, column.high) in [candidates.ends(place) for place in range(len(candidates.lower))]
