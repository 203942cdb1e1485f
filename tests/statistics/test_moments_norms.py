"""Brute force against docs/proofs/moments.md, Theorems 4 and 5: no pair of rows moves the distinct moments further than
claimed, in L2 and L-infinity.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.losses import SQUARED
from privfit.mechanisms import FunctionalMechanism, QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.statistics import Moments, linf_sensitivities, squared_l2_sensitivity
from privfit.statistics.sensitivity import _corner_distance, _likely_kept_levels
from privfit.tables import open_table
from tests.statistics.test_moments_sensitivity import SHAPES, climb, contribution, schema_of

WEIGHTS = [Fraction(1, 64), Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(8)]


class Corpus:
    """The distinct products of every row on a grid: levels 0 or 1, signs, slopes and targets at -1, 0 and 1 (and
    halves, if few).
    """

    def __init__(self, geometry: Geometry, k: int, s: int, q: int) -> None:
        few = 2 ** (k + s) * 5 ** (q + 1) < 800
        grid = (-1.0, -0.5, 0.0, 0.5, 1.0) if few else (-1.0, 0.0, 1.0)
        choices = [*[(0, 1)] * k, *[(-1.0, 1.0)] * s, *[grid] * (q + 1)]
        places = np.array([np.argwhere(geometry.products == number)[0] for number in range(geometry.n_products)])
        points = np.array(list(itertools.product(*choices)))
        levels = (points[:, :k, None] == np.arange(3)).reshape(len(points), -1).astype(float)
        encoded = np.hstack([np.ones((len(points), int(geometry.intercept))), levels, points[:, k:]])
        self.points, self.geometry, self.k = points, geometry, k
        self.products = encoded[:, places[:, 0]] * encoded[:, places[:, 1]]
        self.about_target = places.max(axis=1) == geometry.n_columns
        self.counted = geometry.intercept or s > 0

    def weighted(self, weight: Fraction) -> np.ndarray:
        """One line per row of the grid."""
        return self.products * np.where(self.about_target, float(weight), 1.0)


CORPORA = {shape: Corpus(schema_of(*shape[:3]).geometry(intercept=shape[3]), *shape[:3]) for shape in SHAPES}


def squared_distances(rows: np.ndarray) -> np.ndarray:
    sizes = (rows**2).sum(axis=1)
    return sizes[:, None] + sizes[None] - 2 * rows @ rows.T


def test_the_grid_has_the_products_that_the_other_search_has() -> None:
    for (k, s, q, c), corpus in CORPORA.items():
        place = (7 * len(corpus.points)) // 11
        point = corpus.points[place]
        wanted = contribution(corpus.geometry, 2.5, tuple(point[:k].astype(int)), point[k:-1], point[-1])
        np.testing.assert_allclose(corpus.weighted(Fraction(5, 2))[place], wanted, err_msg=str((k, s, q, c)))


# -- L2 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "s", "q", "c"), SHAPES)
def test_no_replacement_moves_moments_further_than_claimed_in_l2(k: int, s: int, q: int, c: bool) -> None:
    corpus = CORPORA[k, s, q, c]
    for weight in WEIGHTS:
        claimed = float(squared_l2_sensitivity(corpus.geometry, weight, "replace-one"))
        rows = corpus.weighted(weight)
        found = squared_distances(rows).max()
        assert found <= claimed * (1 + 1e-12), weight
        if q == 0:
            assert found == pytest.approx(claimed, rel=1e-12), "without slopes corners are all there is"
        assert found >= claimed - q - 1e-9, "the claim wastes at most what squares of slopes are given apart"
        assert math.sqrt(found / claimed) >= (0.89 if weight >= 1 else 0.78), "or it wastes noise"


@pytest.mark.parametrize(("k", "s", "q", "c"), [shape for shape in SHAPES if shape[2] and sum(shape[:3]) < 5])
def test_no_replacement_between_the_points_of_the_grid_does_better(k: int, s: int, q: int, c: bool) -> None:
    """Coordinate ascent from the best pairs of the grid: squares of slopes are not convex."""
    corpus = CORPORA[k, s, q, c]
    weight = WEIGHTS[(k + s + q + c) % len(WEIGHTS)]
    claimed = float(squared_l2_sensitivity(corpus.geometry, weight, "replace-one"))
    rows = corpus.weighted(weight)
    distances = squared_distances(rows)
    best = distances.max()
    numbers = corpus.points[:, k:]
    fixed = np.array(([True] * s + [False] * (q + 1)) * 2)
    for place in np.argsort(distances, axis=None)[-2:]:
        i, j = np.unravel_index(place, distances.shape)

        def change(point: np.ndarray, i: int = i, j: int = j) -> float:
            left, right = np.split(point, 2)
            one, other = (
                contribution(
                    corpus.geometry, float(weight), tuple(corpus.points[row, :k].astype(int)), half[:-1], half[-1]
                )
                for row, half in ((i, left), (j, right))
            )
            return float(((one - other) ** 2).sum())

        start = np.concatenate([numbers[i], numbers[j]])
        assert change(start) == pytest.approx(distances[i, j], abs=1e-9)
        best = max(best, climb(change, fixed, start))
    assert best <= claimed * (1 + 1e-12)


@pytest.mark.parametrize(("k", "s", "q", "c"), SHAPES)
def test_adding_a_row_moves_moments_exactly_as_far_as_claimed_in_l2(k: int, s: int, q: int, c: bool) -> None:
    corpus = CORPORA[k, s, q, c]
    for weight in WEIGHTS:
        found = (corpus.weighted(weight) ** 2).sum(axis=1).max() + corpus.counted
        assert found == pytest.approx(float(squared_l2_sensitivity(corpus.geometry, weight, "add-remove")), rel=1e-12)


def test_the_levels_that_are_tried_are_the_best_ones() -> None:
    for c, k, m, weight in itertools.product((0, 1), range(9), range(7), [Fraction(0), *WEIGHTS]):
        for f, kept in itertools.product(range(m + 1), (1, -1)):
            h, square = m - 2 * f, weight**2
            tried = max(
                _corner_distance(c, k, m, e, h, square, kept) for e in _likely_kept_levels(k, -h - kept * square)
            )
            assert tried == max(_corner_distance(c, k, m, e, h, square, kept) for e in range(k + 1))


def test_it_can_be_worse_to_keep_levels_than_to_change_them_all() -> None:
    """Why the formula tries kept levels at all: with a fine target, products of a kept level and a flipped target move
    further.
    """
    for k, weight in ((1, Fraction(5, 2)), (3, Fraction(8))):
        corpus = CORPORA[k, 0, 0, True]
        distances = squared_distances(corpus.weighted(weight))
        different = (corpus.points[:, None, :k] != corpus.points[None, :, :k]).all(axis=2)
        assert distances[different].max() < 0.9 * distances.max()
        assert distances.max() == pytest.approx(
            float(squared_l2_sensitivity(corpus.geometry, weight, "replace-one")), rel=1e-12
        )


def test_many_numbers_follow_the_formula() -> None:
    """Beyond what can be enumerated: random corner rows of a wide table, and the pair that the formula has in mind."""
    geometry = schema_of(2, 3, 9).geometry(intercept=True)
    rng = np.random.default_rng(0)
    weight = Fraction(3, 2)
    claimed = float(squared_l2_sensitivity(geometry, weight, "replace-one"))
    best = 0.0
    for flipped, kept, target in itertools.product(range(13), range(3), (1.0, -1.0)):
        numbers = rng.choice([-1.0, 1.0], 12)
        other = numbers * np.where(rng.permutation(12) < flipped, -1.0, 1.0)
        left = contribution(geometry, float(weight), (0, 0), numbers, 1.0)
        right = contribution(
            geometry, float(weight), (0, 0) if kept == 2 else (0, 1) if kept else (1, 1), other, target
        )
        best = max(best, float(((left - right) ** 2).sum()))
    assert best == pytest.approx(claimed - 9), (
        "the squares of nine slopes are given one each, and are one at all corners"
    )


# -- L-infinity ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "s", "q", "c"), SHAPES)
def test_no_single_value_moves_further_than_claimed(k: int, s: int, q: int, c: bool) -> None:
    corpus = CORPORA[k, s, q, c]
    for weight in WEIGHTS:
        rows = corpus.weighted(weight)
        reach, size = np.ptp(rows, axis=0), np.abs(rows).max(axis=0)
        features, target = linf_sensitivities(corpus.geometry, weight, "replace-one")
        assert reach[corpus.about_target].max() == target
        assert reach[~corpus.about_target].max(initial=0.0) <= features
        if (~corpus.about_target).any():
            assert reach[~corpus.about_target].max() == features, "or it wastes noise"
        features, target = linf_sensitivities(corpus.geometry, weight, "add-remove")
        assert size[corpus.about_target].max() == target
        assert max(size[~corpus.about_target].max(initial=0.0), float(corpus.counted)) <= features


# -- the paper's encoding --------------------------------------------------------------------------


def paper_geometry(indicators: int, shares: int, intercept: bool) -> Geometry:
    features = [Category(f"c{i}", ["a", "b", "c"]) for i in range(indicators)] + [
        Numeric(f"q{i}", 0, 1) for i in range(shares)
    ]
    return Schema(features, target=Numeric("y", -1, 1)).geometry(intercept=intercept, paper=True)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("indicators", "shares"), [(0, 1), (1, 0), (0, 3), (2, 1), (1, 3), (3, 0)])
def test_the_paper_encoding_moves_no_further_than_claimed(indicators: int, shares: int, intercept: bool) -> None:
    geometry = paper_geometry(indicators, shares, intercept)
    blocks = [
        *[((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))] * indicators,
        *[((0.0,), (0.5,), (1.0,))] * shares,
        ((-1.0,), (0.0,), (1.0,)),
    ]
    encoded = np.array([[*[1.0] * intercept, *itertools.chain(*row)] for row in itertools.product(*blocks)])
    places = np.array([np.argwhere(geometry.products == number)[0] for number in range(geometry.n_products)])
    about_target = places.max(axis=1) == geometry.n_columns
    for weight in WEIGHTS:
        rows = encoded[:, places[:, 0]] * encoded[:, places[:, 1]] * np.where(about_target, float(weight), 1.0)
        found = squared_distances(rows).max()
        claimed = float(squared_l2_sensitivity(geometry, weight, "replace-one"))
        assert 0.15 * claimed <= found <= claimed
        added = (rows**2).sum(axis=1).max() + intercept
        assert added <= float(squared_l2_sensitivity(geometry, weight, "add-remove")) * (1 + 1e-12)
        for adjacency, moved in (("replace-one", np.ptp(rows, axis=0)), ("add-remove", np.abs(rows).max(axis=0))):
            features, target = linf_sensitivities(geometry, weight, adjacency)
            assert moved[~about_target].max() <= features
            assert moved[about_target].max() == target


# -- the integers that are released -----------------------------------------------------------

MIXED = Schema(
    [Numeric("a", -1, 1), Numeric("b", -2, 0.5), Numeric("d", 0, 3), Category("e", [0, 1, 2]), Category("f", [0, 1])],
    target=Numeric("y", -1, 2),
)


def moved_in(norm: str, move: np.ndarray, parts: tuple[int, ...]) -> float | int:
    """How far, in exact arithmetic; in L2 the square of it."""
    exact = [int(value) for value in move]
    if norm == "l1":
        return sum(map(abs, exact))
    if norm == "l2":
        return sum(value**2 for value in exact)
    ends = [0, *itertools.accumulate(parts)]
    return sum(max(map(abs, exact[start:stop])) for start, stop in itertools.pairwise(ends))


def released(moments: Moments, schema: Schema, rows: list, adjacency: str) -> np.ndarray:
    array = np.array(rows, dtype=float)
    return moments.distinct(
        Rows(open_table(array), schema, moments.geometry, threads=1).sum(moments), len(rows), adjacency
    )


@given(
    st.lists(
        st.tuples(
            *[st.floats(-4, 4)] * 3, st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.0, 1.0]), st.floats(-4, 4)
        ),
        min_size=2,
        max_size=2,
    ),
    st.sampled_from(["replace-one", "add-remove"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 1000, 1 << 14, (1 << 16) - 1, 1 << 16, 165_000, 1 << 19]),
    st.sampled_from([0, 1, 77, 23_170, 1 << 16, 185_363]),
)
@settings(max_examples=150, deadline=None)
def test_summed_integers_never_move_more_than_claimed_in_any_norm(
    pair, adjacency, intercept, paper, units, square_units
) -> None:
    """The same property of the integers that are released: clipping, rounding and the target's square included."""
    moments = Moments(MIXED.geometry(intercept=intercept, paper=paper), target_units=units, square_units=square_units)
    other = [(0.3, -0.2, 1.0, 1.0, 0.0, 0.7)]
    left = released(moments, MIXED, [*other, pair[0]], adjacency)
    right = released(moments, MIXED, [*other, pair[1]] if adjacency == "replace-one" else other, adjacency)
    parts = moments.parts(adjacency)
    assert len(left) == len(right) == sum(parts) == moments.n_values(adjacency)
    for norm in ("l1", "l2", "linf"):
        claimed = moments.sensitivity(adjacency, norm)
        assert moved_in(norm, left - right, parts) <= (claimed**2 if norm == "l2" else claimed), norm


CORNERS = [
    (a, b, d, e, f, y)
    for (a, b, d) in [(1.0, 0.5, 3.0), (1.0, 0.5, 0.0), (-1.0, -2.0, 0.0), (0.0, -0.75, 1.5)]
    for e, f in [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    for y in (-1.0, 0.5, 2.0)
]
SHARES = {"l1": 0.8, "l2": 0.8, "linf": 0.85}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("units", "square_units"), [(1 << 16, 0), (1 << 16, 23_170), (1000, 8000), (300_000, 1 << 16), (1, 1)]
)
def test_corner_rows_use_most_of_what_is_claimed(
    intercept: bool, adjacency: str, units: int, square_units: int
) -> None:
    moments = Moments(MIXED.geometry(intercept=intercept), target_units=units, square_units=square_units)
    rows = [released(moments, MIXED, [row], adjacency) for row in CORNERS]
    assert all((row[-1] in (0, square_units**2)) or not square_units for row in rows)
    pairs = (
        itertools.combinations(rows, 2) if adjacency == "replace-one" else [(row, np.zeros_like(row)) for row in rows]
    )
    moves = [left - right for left, right in pairs]
    parts = moments.parts(adjacency)
    for norm in ("l1", "l2", "linf"):
        found = max(moved_in(norm, move, parts) for move in moves)
        claimed = moments.sensitivity(adjacency, norm)
        found = math.sqrt(found) if norm == "l2" else found
        assert SHARES[norm] * claimed <= found <= claimed, norm


def test_the_square_of_the_target_is_the_last_value_and_moves_by_itself() -> None:
    plain, bought = (Moments(MIXED.geometry(), target_units=1 << 16, square_units=units) for units in (0, 23_170))
    zero, one = ((0.0, 0.0, 0.0, 0.0, 0.0, y) for y in (0.5, 2.0))
    for adjacency in ("replace-one", "add-remove"):
        without, with_it = (released(moments, MIXED, [zero, one], adjacency) for moments in (plain, bought))
        assert with_it[:-1].tolist() == without.tolist()
        assert with_it[-1] == 23_170**2
        _, n_rows, square = bought.unpack(with_it.astype(float), adjacency)
        assert square == 1.0
        assert n_rows == (None if adjacency == "replace-one" else 2.0)
        for norm, spent in (("l1", 23_170**2), ("linf", 0)):
            assert bought.sensitivity(adjacency, norm) - plain.sensitivity(adjacency, norm) == spent


@pytest.mark.parametrize("kind", ["laplace", "linf", "l2", "gaussian"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("spread", [False, True])
def test_all_rows_of_a_person_together_lose_no_more_than_the_event_says(
    kind: str, adjacency: str, intercept: bool, spread: bool
) -> None:
    """From the schema to the scale: three rows of one person at opposite corners, against the price of the plan."""
    people = 3
    objective = QuadraticProblem(SQUARED, fit_intercept=intercept, spread=spread)
    mechanism = FunctionalMechanism(noise=kind)
    terms = PrivacyParameters(Budget(0.7, 1e-6), adjacency, rows_per_person=people)
    plan = mechanism.plan(PublicFacts(mechanism.geometry(MIXED, objective), terms, 10), objective)
    moments, event = plan.moments, plan.event
    rest = [(0.3, -0.2, 1.0, 1.0, 0.0, 0.7)]
    if adjacency == "replace-one":
        tables = [released(moments, MIXED, [*rest, *[row] * people], adjacency) for row in CORNERS]
        moves = [left - right for left, right in itertools.combinations(tables, 2)]
    else:
        without = released(moments, MIXED, rest, adjacency)
        moves = [released(moments, MIXED, [*rest, *[row] * people], adjacency) - without for row in CORNERS]
    assert len(moves[0]) == event.n_values
    if kind == "gaussian":
        loss = max(Fraction(moved_in("l2", move, ())) for move in moves) / (2 * Fraction(event.scale) ** 2)
        assert Fraction(6, 10) * event.cost.rho <= loss <= event.cost.rho
    elif kind == "l2":
        squared = max(Fraction(moved_in("l2", move, ())) for move in moves) / Fraction(event.scale) ** 2
        assert Fraction(6, 10) * event.cost.epsilon**2 <= squared <= event.cost.epsilon**2
    else:
        norm = {"laplace": "l1", "linf": "linf"}[kind]
        blocks = event.parts[0].blocks if kind == "linf" else ()
        loss = max(Fraction(moved_in(norm, move, blocks)) for move in moves) / Fraction(event.scale)
        assert Fraction(75, 100) * event.cost.epsilon <= loss <= event.cost.epsilon


def test_no_row_adds_more_to_a_sum_than_exact_arithmetic_was_planned_for() -> None:
    objective, mechanism = QuadraticProblem(SQUARED, spread=True), FunctionalMechanism(noise="linf")
    for s, q, c in [shape[1:] for shape in SHAPES if shape[0] == 0]:
        schema = schema_of(0, s, q)
        facts = PublicFacts(schema.geometry(intercept=c), PrivacyParameters(Budget(1.0)), 10)
        moments = mechanism.plan(facts, objective).moments
        row = released(moments, schema, [[*[0.0] * s, *[1.0] * q, 1.0]], "add-remove")
        assert np.abs(row).max() <= moments.largest
