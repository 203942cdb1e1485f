"""Exponential tilting: how far one row moves the sums, that they are exact, and that weights have the means that were
asked for.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.reweighting.base import ReweightingProblem
from privfit.mechanisms.reweighting.exponential_tilting import (
    ExponentialTilting,
    SumsAndProducts,
    l1_sensitivity,
    l2_sensitivity,
)
from privfit.mechanisms.reweighting.level_shares import LevelShares, TiltingFit, solve_tilt, weighted_variances
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import PublicRows, Rows
from privfit.schema import Geometry
from privfit.tables import open_table
from tests.support.audit import epsilon_at_least
from tests.support.noise import RecordingNoise, ReplayingNoise

SHAPES = [(2,), (3,), (2, 2), (2, 2, 2), (3, 3), (2, 3), (2, 2, 3), (3, 2, 4), (2, 2, 2, 2)]
ADJACENCIES = ("replace-one", "add-remove")


def schema_of(shape: tuple[int, ...]) -> pf.Schema:
    return pf.Schema([pf.Category(f"c{i}", list(range(levels))) for i, levels in enumerate(shape)])


def every_row(shape: tuple[int, ...]) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, shape))), dtype=np.float64)


def planned(mechanism: ExponentialTilting, geometry: Geometry, parameters: PrivacyParameters, n_rows: int | None):
    return mechanism.plan(PublicFacts(geometry, parameters, n_rows))


def some_pairs(blocks: int) -> list[tuple[tuple[int, int], ...]]:
    every = tuple(itertools.combinations(range(blocks), 2))
    return list({(), every, every[:1], every[1:]})


def contributions(shape: tuple[int, ...], pairs: tuple, weight: int, counted: bool) -> np.ndarray:
    """What every possible row adds to the values that are noised, computed apart from the code."""
    columns = []
    for row in every_row(shape).astype(int):
        blocks = [np.array([2 * c - 1]) if n == 2 else np.eye(n, dtype=int)[c] for c, n in zip(row, shape, strict=True)]
        pieces = [np.array([1] * counted, dtype=int), *blocks]
        products = [np.outer(blocks[a], blocks[b]).ravel() for a, b in pairs]
        columns.append(np.concatenate([weight * np.concatenate(pieces), *products]))
    return np.array(columns)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("weight", [1, 3])
def test_one_row_never_moves_the_sums_more_than_claimed(shape: tuple[int, ...], adjacency: str, weight: int) -> None:
    geometry = ExponentialTilting().geometry(schema_of(shape))
    for pairs in some_pairs(len(shape)):
        counted = adjacency == "add-remove" and max(shape) == 2
        added = contributions(shape, pairs, weight, counted)
        changes = added if adjacency == "add-remove" else (added[:, None] - added[None]).reshape(-1, added.shape[1])
        l1 = np.abs(changes).sum(axis=1).max()
        l2 = np.sqrt((changes**2).sum(axis=1)).max()
        claimed = l1_sensitivity(geometry, pairs, weight, counted, adjacency)  # type: ignore[arg-type]
        assert l1 <= claimed
        if not pairs or len(pairs) == math.comb(len(shape), 2):
            assert l1 == claimed  # no smaller one would do
        assert l2 <= l2_sensitivity(geometry, pairs, weight, counted, adjacency) + 1e-12  # type: ignore[arg-type]
        if not pairs:
            assert l2_sensitivity(geometry, pairs, weight, counted, adjacency) - 1 < l2  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2, 3), (2, 2), (3, 4, 2)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("pairs", ["all", "none"])
def test_what_is_noised_are_the_sums_of_what_rows_add(shape: tuple[int, ...], adjacency: str, pairs: str) -> None:
    generator = np.random.default_rng(0)
    places = generator.integers(len(every_row(shape)), size=200)
    schema, mechanism = schema_of(shape), ExponentialTilting(pairs)
    geometry = mechanism.geometry(schema)
    noise, parameters = RecordingNoise(), PrivacyParameters(Budget(1.0), adjacency)  # type: ignore[arg-type]
    mechanism.release(Rows(open_table(every_row(shape)[places]), schema, geometry), parameters, None, noise, None)  # type: ignore[arg-type]
    plan = planned(mechanism, geometry, parameters, 200 if adjacency == "replace-one" else None)
    (call,) = noise.calls
    np.testing.assert_array_equal(
        call.values, contributions(shape, plan.pairs, plan.weight, plan.with_count)[places].sum(axis=0)
    )
    assert call.kind == "laplace"
    assert call.scale >= l1_sensitivity(geometry, plan.pairs, plan.weight, plan.with_count, adjacency)  # type: ignore[arg-type]
    assert plan.with_count == (adjacency == "add-remove" and max(shape) == 2)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("people", [1, 3])
def test_replayed_noise_on_a_neighbour_gives_the_same_release(adjacency: str, delta: float, people: int) -> None:
    schema, mechanism = schema_of((2, 3, 4)), ExponentialTilting("all")
    rows = every_row((2, 3, 4))
    table = rows[np.random.default_rng(1).integers(len(rows), size=50)]
    other = table[people:] if adjacency == "add-remove" else np.vstack([table[people:], np.tile(rows[-1], (people, 1))])
    geometry, parameters = mechanism.geometry(schema), PrivacyParameters(Budget(0.5, delta), adjacency, people)  # type: ignore[arg-type]
    recorded = RecordingNoise()
    first = mechanism.release(Rows(open_table(table), schema, geometry), parameters, None, recorded, None)  # type: ignore[arg-type]
    replayed = ReplayingNoise(recorded.calls)
    second = mechanism.release(Rows(open_table(other), schema, geometry), parameters, None, replayed, None)  # type: ignore[arg-type]
    (one,), (two,) = recorded.calls, replayed.calls
    assert (one.kind, one.scale, one.values.shape) == (two.kind, two.scale, two.values.shape)
    change = (one.values - two.values).astype(float)
    norm = np.abs(change).sum() if one.kind == "laplace" else np.sqrt((change**2).sum())
    assert 0 < norm <= first.event.sensitivity
    assert first.event == second.event
    np.testing.assert_array_equal(first.value.means, second.value.means)
    assert first.value.rows == second.value.rows


def test_a_delta_buys_less_noise_where_there_are_many_columns() -> None:
    geometry = ExponentialTilting("none").geometry(schema_of((3,) * 20))
    pure, normal = (
        planned(ExponentialTilting("none"), geometry, PrivacyParameters(Budget(0.1, delta)), 1000).event
        for delta in (0.0, 1e-6)
    )
    assert (pure.kinds, normal.kinds) == (("laplace",), ("discrete-gaussian",))
    assert normal.noise_sd < pure.noise_sd
    few = ExponentialTilting("none").geometry(schema_of((3,)))
    assert planned(ExponentialTilting("none"), few, PrivacyParameters(Budget(0.1, 1e-6)), 1000).event.delta == 0


def test_pairs_are_released_when_public_facts_allow_it() -> None:
    mechanism = ExponentialTilting()
    geometry = mechanism.geometry(schema_of((3, 3, 4)))
    assert planned(mechanism, geometry, PrivacyParameters(Budget(1.0)), 100).pairs == ()
    assert len(planned(mechanism, geometry, PrivacyParameters(Budget(1.0)), 100_000).pairs) == 3
    assert planned(mechanism, geometry, PrivacyParameters(Budget(1.0), "add-remove"), None).pairs == ()
    named = ExponentialTilting((("c2", "c0"), ("c0", "c2")))
    assert planned(named, geometry, PrivacyParameters(Budget(0.01)), 10).pairs == ((0, 2),)
    wide = mechanism.geometry(schema_of((3000, 3000)))
    assert planned(mechanism, wide, PrivacyParameters(Budget(1.0)), 10**12).pairs == ()
    with pytest.raises(pf.PrivacyError, match="6000 levels"):
        planned(ExponentialTilting("all"), wide, PrivacyParameters(Budget(1.0)), 10**12)
    with pytest.raises(pf.PrivacyError, match="two different columns"):
        planned(ExponentialTilting((("c0", "c9"),)), geometry, PrivacyParameters(Budget(1.0)), 10)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_levels_add_up_to_the_rows(adjacency: str) -> None:
    schema, mechanism = schema_of((3, 4, 2)), ExponentialTilting("none")
    table = every_row((3, 4, 2))[np.random.default_rng(2).integers(24, size=2000)]
    rows = Rows(open_table(table), schema, mechanism.geometry(schema))
    shares = mechanism.release(rows, PrivacyParameters(Budget(0.5), adjacency), None, RecordingNoise(3), None).value  # type: ignore[arg-type]
    assert shares.means[:3].sum() == pytest.approx(1)
    assert shares.means[3:7].sum() == pytest.approx(1)
    assert shares.rows == 2000 if adjacency == "replace-one" else 0 < abs(shares.rows - 2000) < 200


def test_the_number_of_rows_is_noised_with_signs_alone() -> None:
    schema, mechanism = schema_of((2, 2)), ExponentialTilting("none")
    rows = Rows(open_table(every_row((2, 2))[np.arange(400) % 4]), schema, mechanism.geometry(schema))
    noise = RecordingNoise()
    shares = mechanism.release(rows, PrivacyParameters(Budget(1.0), "add-remove"), None, noise, None).value  # type: ignore[arg-type]
    assert noise.calls[0].values[0] == 400
    assert shares.rows == noise.calls[0].output[0]


def public_rows(shape: tuple[int, ...], size: int = 300) -> PublicRows:
    codes = every_row(shape)[np.random.default_rng(4).integers(math.prod(shape), size=size)]
    return PublicRows(codes.astype(np.int64), ExponentialTilting().geometry(schema_of(shape)))


def test_weights_have_the_means_that_were_asked_for() -> None:
    public = public_rows((3, 2, 4))
    wanted = np.array([0.6, 0.3, 0.1, 0.5, 0.1, 0.2, 0.3, 0.4])
    beta = solve_tilt(public.design, wanted, np.zeros(8), np.ones(8, dtype=bool))
    weights = np.exp(public.design @ beta)
    np.testing.assert_allclose(public.design.T @ weights / weights.sum(), wanted, atol=1e-6)


def test_the_ridge_is_where_the_gradient_vanishes_and_pulls_to_even_weights() -> None:
    public = public_rows((3, 2, 4))
    wanted = np.array([0.6, 0.3, 0.1, 0.5, 0.1, 0.2, 0.3, 0.4])
    ridge = np.linspace(0.01, 0.3, 8)
    beta = solve_tilt(public.design, wanted, ridge, np.ones(8, dtype=bool))
    weights = np.exp(public.design @ beta)
    np.testing.assert_allclose(public.design.T @ weights / weights.sum() + ridge * beta, wanted, atol=1e-6)
    assert np.abs(solve_tilt(public.design, wanted, np.full(8, 1e6), np.ones(8, dtype=bool))).max() < 1e-5


def test_a_level_that_no_public_row_has_is_left_alone() -> None:
    codes = np.array([[0], [1]] * 20)
    public = PublicRows(codes, ExponentialTilting().geometry(schema_of((3,))))
    shares = LevelShares(np.array([0.2, 0.3, 0.5]), np.full(3, 0.01), 1000.0, ())
    tilt = TiltingFit.of(shares, ReweightingProblem(public), 0.3)
    assert tilt.beta[2] == 0
    assert np.isfinite(tilt.beta).all()


def test_drowned_levels_stay_where_the_public_table_has_them() -> None:
    public = public_rows((3, 2, 4))
    noisy = LevelShares(np.array([5.0, -4.0, 0.0, 0.5, 3.0, -2.0, 0.0, 0.0]), np.full(8, 50.0), 100.0, ())
    assert np.abs(TiltingFit.of(noisy, ReweightingProblem(public), 0.3).beta).max() < 0.01


def test_pairs_tell_what_single_shares_do_not() -> None:
    """Two coins that always agree among private rows, and are independent among public ones."""
    schema = schema_of((2, 2))
    private = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5000, axis=0)
    public = PublicRows(np.tile(every_row((2, 2)), (100, 1)).astype(np.int64), ExponentialTilting().geometry(schema))
    agree = public.codes[:, 0] == public.codes[:, 1]
    shares = {}
    for pairs in ("auto", "none"):
        mechanism = ExponentialTilting(pairs)
        rows = Rows(open_table(private), schema, mechanism.geometry(schema))
        release = mechanism.release(
            rows, PrivacyParameters(Budget(1.0)), None, RecordingNoise(), ReweightingProblem(public)
        )
        tilt = mechanism.solve(release, rows.geometry, ReweightingProblem(public))
        weights = np.exp(tilt.design @ tilt.beta)
        shares[pairs] = weights[agree].sum() / weights.sum()
    assert shares["auto"] > 0.95
    assert shares["none"] == pytest.approx(0.5, abs=0.02)


def test_products_of_public_rows() -> None:
    public = public_rows((2, 3, 4), 40)
    dense = public.design.toarray()
    expected = np.hstack(
        [
            np.einsum("ni,nj->nij", dense[:, :1], dense[:, 1:4]).reshape(40, -1),
            np.einsum("ni,nj->nij", dense[:, 1:4], dense[:, 4:]).reshape(40, -1),
        ]
    )
    np.testing.assert_array_equal(public.products(((0, 1), (1, 2))).toarray(), expected)
    shares = np.full(40, 1 / 40)
    np.testing.assert_allclose(weighted_variances(public.design, shares), dense.var(axis=0), atol=1e-12)


def test_sums_are_the_sums() -> None:
    encoded = np.array([[1.0, 0.0, 1.0], [-1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(SumsAndProducts(together=False)(encoded), [[2.0], [1.0]])
    np.testing.assert_array_equal(SumsAndProducts(together=True)(encoded), [[2.0, 0.0, 2.0], [0.0, 3.0, 1.0]])


@pytest.mark.parametrize(
    "wrong", [{"pairs": "some"}, {"pairs": (("a",),)}, {"spread": 0}, {"spread": math.nan}, {"spread": True}]
)
def test_parameters_that_mean_nothing_are_refused(wrong: dict) -> None:
    with pytest.raises(pf.PrivacyError, match=next(iter(wrong))):
        ExponentialTilting(**wrong).check()


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_neighbours_are_told_apart_as_well_as_epsilon_allows_and_no_better(adjacency: str) -> None:
    """The best test there is, the ratio of likelihoods, on rows that reach the sensitivity; with half of the noise it
    is caught.
    """
    schema, mechanism, epsilon = schema_of((3, 4, 2)), ExponentialTilting("none"), 1.0
    rows = np.vstack([np.zeros((20, 3)), [[2.0, 3.0, 1.0]]])
    other = rows[:-1] if adjacency == "add-remove" else np.zeros((21, 3))
    sums, scale = [], 0.0
    for table in (rows, other):
        noise = RecordingNoise()
        parameters = PrivacyParameters(Budget(epsilon), adjacency)  # type: ignore[arg-type]
        mechanism.release(Rows(open_table(table), schema, mechanism.geometry(schema)), parameters, None, noise, None)  # type: ignore[arg-type]
        sums.append(noise.calls[0].values)
        scale = noise.calls[0].scale

    def told_apart(scale: float) -> float:
        source = SeededNoise(5)
        drawn = [source.laplace(np.tile(own, (60_000, 1)), scale) for own in sums]
        scores = [np.abs(one - sums[1]).sum(axis=1) - np.abs(one - sums[0]).sum(axis=1) for one in drawn]
        return epsilon_at_least(*scores)

    assert 0.6 * epsilon < told_apart(scale) <= epsilon
    assert told_apart(scale / 2) > epsilon
