"""Clusters: no query moves further than claimed and the claim is reached, shares add up, and everything but the values
follows from public facts.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import NAMED_CLUSTERERS, Clusters, clusterer
from privfit.mechanisms.clustering.cell_means import CellClusterer, LloydClusterer
from privfit.mechanisms.clustering.centres import directions, nearest, sphere_packing, weighted_centres
from privfit.mechanisms.clustering.grid import MOST_GRID_CELLS, GridClusterer, HybridClusterer
from privfit.mechanisms.clustering.schedule import ClusteringFacts, Query, QuerySchedule
from privfit.privacy import Budget, PrivacyParameters, exact
from privfit.rows import Points, Rows, on_lattice, point_geometry
from privfit.rows.layout import STEP
from privfit.tables import open_table

ADJACENCIES = ("replace-one", "add-remove")
WORKERS = [GridClusterer(), HybridClusterer(), CellClusterer(), LloydClusterer()]


def facts(
    columns: int = 2,
    clusters: int = 3,
    rows: int = 1000,
    epsilon: float = 1.0,
    adjacency: str = "replace-one",
    people: int = 1,
) -> ClusteringFacts:
    return ClusteringFacts(columns, clusters, rows, PrivacyParameters(Budget(epsilon), adjacency, people, None))


# -- sensitivity by brute force --------------------------------------------------------------------

UNIT = 1 << 20


def points(table: np.ndarray) -> Points:
    schema = pf.Schema.box(-1, 1, table.shape[1])
    found = Points(Rows(open_table(table), schema, point_geometry(schema)))
    found.read()
    return found


def awkward_rows(columns: int) -> np.ndarray:
    """All corners, middles of edges, the origin, rows out of bounds, and scattered ones."""
    rng = np.random.default_rng(columns)
    grid = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=columns)))
    return np.concatenate(
        [grid, [np.full(columns, 1e300), np.full(columns, -np.inf)], rng.uniform(-1, 1, (12, columns))]
    )


def norm(query: Query, moved: np.ndarray) -> int:
    """How far a query moved, in the norm of its noise."""
    parts = np.split(moved.ravel(), np.cumsum(query.blocks)[:-1])
    return int(sum(np.abs(part).sum() if query.noise == "laplace" else np.abs(part).max() for part in parts))


def block_cases(columns: int):
    rng = np.random.default_rng(columns)
    for widths in (np.full((3, columns), 0.02), rng.uniform(0.02, 1, (3, columns)), np.ones((3, columns))):
        centres = on_lattice(rng.uniform(-1, 1, (3, columns)))
        yield lambda p, centres=centres, widths=widths: p.blocks(centres, widths, UNIT)


def queries(columns: int) -> dict[str, tuple[Query, list]]:
    """Each kind of query with functions of rows that it releases."""
    one, k = Fraction(1), 3
    starts = [on_lattice(np.random.default_rng(seed).uniform(-1, 1, (k, columns))) for seed in range(3)]
    return {
        "blocks": (Query("blocks", "linf", (columns + 1,) * k, one), list(block_cases(columns))),
        "grid": (Query("grid", "laplace", (4**columns,), one), [lambda p: UNIT * p.counts(4)]),
        "moments": (Query("moments", "linf", (2 * columns,), one), [lambda p: UNIT // STEP * p.moments(False)[:-1]]),
        "moments and number": (
            Query("moments", "linf", (2 * columns + 1,), one),
            [lambda p: UNIT // STEP * p.moments(False)],
        ),
        "pooled moments": (Query("moments", "linf", (columns + 2,), one), [lambda p: UNIT // STEP * p.moments(True)]),
        "numbers": (Query("numbers", "laplace", (k,), one), [lambda p, s=s: p.sums(s, UNIT)[:, 0] for s in starts]),
        "sums": (
            Query("sums", "laplace", (k * columns,), one, norm=columns),
            [lambda p, s=s: p.sums(s, UNIT)[:, 1:] for s in starts],
        ),
    }


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("kind", list(queries(1)))
def test_no_query_moves_further_than_claimed_and_the_claim_is_reached(columns: int, kind: str) -> None:
    query, functions = queries(columns)[kind]
    reached = dict.fromkeys(itertools.product(ADJACENCIES, (1, 2)), 0)
    for function in functions:
        added = [
            function(points(row[None])) for row in awkward_rows(columns)
        ]  # sums are sums of these: tests/rows/test_points.py
        alone = max(norm(query, one) for one in added)
        swapped = max(norm(query, one - other) for one, other in itertools.combinations(added, 2))
        far = max(itertools.combinations(added, 2), key=lambda pair: norm(query, pair[0] - pair[1]))
        several = {
            ("add-remove", 1): alone,
            ("replace-one", 1): swapped,
            ("add-remove", 2): max(
                norm(query, one + other) for one, other in itertools.combinations_with_replacement(added, 2)
            ),
            ("replace-one", 2): max(
                norm(query, far[0] + one - far[1] - other) for one, other in itertools.product(added, repeat=2)
            ),
        }
        reached = {key: max(reached[key], several[key]) for key in reached}
    for (adjacency, people), most in reached.items():
        claimed = query.norm * facts(adjacency=adjacency, people=people).sensitivity * UNIT
        assert most <= claimed
        assert most >= 0.99 * claimed, (adjacency, people)


def test_neighbouring_tables_move_as_single_rows_do() -> None:
    """The same on whole tables that differ in a row, for random neighbours."""
    rng = np.random.default_rng(0)
    for kind, (query, functions) in queries(2).items():
        for _ in range(20):
            table = rng.uniform(-1.2, 1.2, (30, 2))
            other = table.copy()
            other[rng.integers(30)] = rng.choice([-1.0, 1.0], 2)
            for function in functions:
                assert norm(query, function(points(table)) - function(points(other))) <= 2 * query.norm * UNIT, kind
                assert norm(query, function(points(table)) - function(points(table[1:]))) <= query.norm * UNIT, kind


def test_the_search_catches_widths_that_do_not_cut() -> None:
    """The attack works: residuals that are not cut at their width move too far."""
    centres, width = on_lattice(np.array([[0.0, 0.0]])), 0.25
    query = Query("blocks", "linf", (3,), Fraction(1))
    row = points(np.array([[1.0, -1.0]])).sums(centres, UNIT)
    uncut = np.concatenate([row[:, :1], row[:, 1:] / width], axis=1)
    assert norm(query, uncut) > UNIT


# -- shares and events -----------------------------------------------------------------------------

MANY = [
    facts(columns, clusters, rows, epsilon, adjacency, people)
    for columns, clusters, rows, epsilon in itertools.product(
        (1, 3, 10), (1, 5, 40), (1, 300, 10**6), (0.01, 1.0, 50.0)
    )
    for adjacency, people in (("replace-one", 1), ("add-remove", 3))
]


@pytest.mark.parametrize("mechanism", WORKERS, ids=lambda one: one.name)
def test_shares_add_up_and_scales_pay_for_them(mechanism) -> None:
    for known in MANY:
        plan = mechanism.schedule(known)
        assert sum(query.share for query in plan.queries) == 1
        event = plan.event
        assert event.epsilon == known.epsilon
        assert event.delta == 0
        spent = sum(
            Fraction(query.norm * known.sensitivity * plan.unit) / Fraction(plan.scale(query)) for query in plan.queries
        )
        assert spent <= exact(known.epsilon)
        assert spent >= exact(known.epsilon) * Fraction(999_999, 1_000_000)
        assert sum(part.size for part in event.parts) == event.n_values
        assert [part.purpose for part in event.parts] == [query.name for query in plan.queries]
        assert [part.scale for part in event.parts] == [plan.scale(query) for query in plan.queries]
        assert math.fsum(part.epsilon for part in event.parts) == pytest.approx(known.epsilon, rel=1e-12)
        assert event == type(event).from_json(event.to_json())


def test_a_plan_that_costs_more_than_the_whole_is_refused() -> None:
    query = Query("grid", "laplace", (4,), Fraction(2, 3))
    with pytest.raises(pf.PrivacyError, match="at most 1"):
        QuerySchedule("too much", (query, query), facts())


def test_rows_per_person_and_adjacency_scale_the_noise() -> None:
    one = HybridClusterer().schedule(facts(adjacency="add-remove"))
    for adjacency, people, times in (("replace-one", 1, 2), ("add-remove", 2, 2), ("replace-one", 3, 6)):
        more = HybridClusterer().schedule(facts(adjacency=adjacency, people=people))
        assert more.scale(more.queries[1]) == pytest.approx(times * one.scale(one.queries[1]))


# -- rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "rows", "wanted"),
    [
        (1, 10, HybridClusterer),
        (4, 10**6, HybridClusterer),
        (5, 1000, HybridClusterer),
        (8, 1000, HybridClusterer),
        (5, 10**5, CellClusterer),
        (9, 1000, CellClusterer),
    ],
)
def test_auto_goes_by_public_facts(columns: int, rows: int, wanted: type) -> None:
    assert type(clusterer("auto").chosen(facts(columns=columns, rows=rows))) is wanted


def test_grids_have_cells_for_all_clusters_and_not_too_many() -> None:
    for known in MANY:
        cells = GridClusterer().cells(known) ** known.columns
        assert 2 * known.clusters <= cells <= MOST_GRID_CELLS


def test_more_columns_than_a_grid_can_have_are_refused() -> None:
    schema = pf.Schema.box(0, 1, 17)
    with pytest.raises(pf.SchemaError, match=r"17 columns.*Use mechanism='cells'"):
        GridClusterer().geometry(schema, Clusters(3))
    assert CellClusterer().geometry(schema, Clusters(3)).n_blocks == 17


def test_names_are_known_and_others_refused() -> None:
    assert set(NAMED_CLUSTERERS) == {"auto", "hybrid", "grid", "cells", "lloyd", "genetic", "sample-and-aggregate"}
    assert clusterer(HybridClusterer()) == HybridClusterer()
    for bad in ("objective", None, 3, pf.FunctionalMechanism()):
        with pytest.raises(pf.PrivacyError, match="k-means has 'auto'"):
            clusterer(bad)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3", None, 10**6])
def test_numbers_of_clusters_that_mean_nothing_are_refused(k) -> None:
    with pytest.raises(pf.PrivacyError, match="n_clusters"):
        HybridClusterer().geometry(pf.Schema.box(0, 1, 2), Clusters(k))


# -- public randomness and post-processing ---------------------------------------------------------


def test_public_randomness_is_the_same_in_every_fit() -> None:
    first, packed = directions(20, 3).copy(), sphere_packing(5, 2).copy()
    directions.cache_clear()
    sphere_packing.cache_clear()
    np.testing.assert_array_equal(directions(20, 3), first)
    np.testing.assert_array_equal(sphere_packing(5, 2), packed)


def test_directions_are_unit_vectors_far_apart() -> None:
    found = directions(12, 3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    apart = np.linalg.norm(found[:, None] - found[None], axis=2) + 10 * np.eye(12)
    assert apart.min() > 0.7


@pytest.mark.parametrize(("k", "columns"), [(1, 1), (4, 2), (15, 3), (5, 10)])
def test_packed_spheres_stay_apart_and_in_the_box(k: int, columns: int) -> None:
    found = sphere_packing(k, columns)
    assert found.shape == (k, columns)
    assert np.abs(found).max() <= 1
    if k > 1:
        apart = np.linalg.norm(found[:, None] - found[None], axis=2) + 10 * np.eye(k)
        assert apart.min() > 0.3


def test_few_weighted_points_are_filled_up_with_public_ones() -> None:
    places = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    found = weighted_centres(places, np.array([1.0, 0.0, 3.0]), 5, 2)
    np.testing.assert_array_equal(found[:3], places[[2, 0, 1]])
    np.testing.assert_array_equal(weighted_centres(places, np.array([1.0, 0.0, 3.0]), 5, 2), found)


def test_weighted_centres_follow_the_weights() -> None:
    places = np.array([[-0.9], [-0.7], [0.5], [0.9]])
    found = np.sort(weighted_centres(places, np.array([3.0, 1.0, 1.0, 1.0]), 2, 3), axis=0)
    np.testing.assert_allclose(found, [[-0.85], [0.7]])
    assert nearest(places, found).tolist() == [0, 0, 1, 1]
