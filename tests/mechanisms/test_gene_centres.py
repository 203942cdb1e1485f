"""How far a row can tell sets of centres apart, by brute force, and genetic k-means end to end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import GeneticCentres
from privfit.mechanisms.genetic.centres import CentreScorer, farthest_point, told_apart
from privfit.models import private
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Points, Rows, on_lattice, point_geometry
from privfit.rows.layout import STEP
from privfit.tables import open_table
from tests.support.noise import RecordingNoise, ReplayingNoise

SCHEMA = pf.Schema.box(-1, 1, n_features=2)


def sets_of(rng: np.random.Generator, count: int, k: int, near: bool) -> np.ndarray:
    """Sets of centres anywhere, or, as offspring are, one coordinate away from a parent."""
    sets = rng.uniform(-1, 1, (count, k, 2))
    if near:
        sets[:] = sets[0]
        for one in sets[1:]:
            one[rng.integers(k), rng.integers(2)] += rng.choice([-0.2, 0.2])
    return on_lattice(np.clip(sets, -1, 1).reshape(-1, 2)).reshape(count, k, 2)


def everywhere() -> np.ndarray:
    side = on_lattice(np.linspace(-1, 1, 41))
    return np.array(list(itertools.product(side, side)))


def scores_of(sets: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Minus the smallest squared distance, one line per point."""
    return -((points[:, None, None, :] - sets[None]) ** 2).sum(axis=3).min(axis=2)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_point_tells_two_sets_apart_by_more_than_the_bound(near: bool, k: int) -> None:
    rng, points, tightest = np.random.default_rng(k), everywhere(), 0.0
    for _ in range(30):
        sets = sets_of(rng, 5, k, near)
        q, bound = scores_of(sets, points), told_apart(sets)
        seen = (q[:, :, None] - q[:, None, :]).max(axis=0)
        assert (seen <= bound).all()
        assert (-q).max() <= farthest_point(sets)
        tightest = max(tightest, float((seen / np.maximum(bound, 1)).max()))
    assert tightest > 0.9, "the bound should be nearly reached"


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("by_range", [True, False])
@pytest.mark.parametrize("near", [False, True])
def test_differences_of_scores_change_by_no_more_than_the_sensitivity(
    adjacency: str, by_range: bool, near: bool
) -> None:
    rng, points = np.random.default_rng(7), everywhere()
    for _ in range(20):
        sets = sets_of(rng, 4, 3, near)
        q = scores_of(sets, points)
        scorer = CentreScorer.__new__(CentreScorer)
        scorer._clusters, scorer._printed = 3, False
        parameters = PrivacyParameters(Budget(1.0), adjacency)
        sensitivity = scorer.sensitivity(sets.reshape(4, -1) / STEP, parameters, by_range).most
        gaps = q[:, :, None] - q[:, None, :]
        moved = (gaps.max(axis=0) - gaps.min(axis=0)).max() if adjacency == "replace-one" else np.abs(gaps).max()
        assert moved <= sensitivity


def test_offspring_are_scored_from_their_parent_and_any_set_from_anew() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (500, 2))
    points = Points(Rows(open_table(rows), SCHEMA, point_geometry(SCHEMA)))
    points.read()
    scorer, parameters = CentreScorer(points, 3, False), PrivacyParameters(Budget(1.0))
    for near in (True, False):
        candidates = sets_of(rng, 12, 3, near).reshape(12, -1) / STEP
        found, _ = scorer(candidates, scorer.sensitivity(candidates, parameters, True))
        sets = on_lattice(candidates).reshape(12, 3, 2)
        assert list(found) == scores_of(sets, on_lattice(rows)).sum(axis=0).tolist()


@pytest.mark.parametrize("selection", ["auto", "enhanced", "exponential", "permute-and-flip"])
def test_choices_replayed_on_a_neighbouring_table(monkeypatch: pytest.MonkeyPatch, selection: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (60, 2))
    other = rows.copy()
    other[0] = -np.sign(other[0])
    mechanism = pf.PrivGene(moves="genes", selection=selection, candidates=20, rounds=3)
    first = RecordingNoise(seed=1)
    monkeypatch.setattr(private, "noise_source", lambda random_state: first)
    left = pf.KMeans(2, 1.0, schema=SCHEMA, mechanism=mechanism, ledger=pf.Ledger(epsilon=1.0)).fit(rows)
    second = ReplayingNoise(first.calls)
    monkeypatch.setattr(private, "noise_source", lambda random_state: second)
    right = pf.KMeans(2, 1.0, schema=SCHEMA, mechanism=mechanism, ledger=pf.Ledger(epsilon=1.0)).fit(other)
    np.testing.assert_array_equal(left.cluster_centers_, right.cluster_centers_)
    assert [(call.kind, call.scale, len(call.values)) for call in first.calls] == [
        (c.kind, c.scale, len(c.values)) for c in second.calls
    ]
    spent = 0.0
    for one, two in zip(first.calls, second.calls, strict=True):
        change = (one.values - two.values).astype(np.float64)
        spent += (change.max() - change.min()) / one.scale
    assert 0 < spent <= 1.0


def test_the_ledger_is_charged_once_and_refuses_the_printed_constant() -> None:
    rows, ledger = np.tile([[-0.5, -0.5], [0.5, 0.5]], (300, 1)), pf.Ledger(epsilon=1.0)
    model = pf.KMeans(2, 1.0, schema=SCHEMA, mechanism="genetic", ledger=ledger).fit(rows)
    assert ledger.spent.epsilon == 1
    assert model.report_.private
    with pytest.raises(pf.PrivacyError, match="half of what its dampening factor must be"):
        pf.KMeans(2, 1.0, schema=SCHEMA, mechanism=pf.PrivGene(calibration="paper"), ledger=pf.Ledger(epsilon=1.0)).fit(
            rows
        )
    printed = pf.KMeans(2, 1.0, schema=SCHEMA, mechanism=pf.PrivGene(calibration="paper")).fit(rows)
    assert not printed.report_.private


@pytest.mark.parametrize("options", [{"epsilon": 1e-12}, {"rows_per_person": 10**12}], ids=str)
def test_more_noise_than_64_bits_can_hold_is_refused_before_the_charge(options: dict) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="64-bit"):
        pf.KMeans(2, schema=SCHEMA, mechanism="genetic", ledger=ledger, **options).fit(np.zeros((50, 2)))
    assert ledger.entries() == []


def test_two_clear_clusters_are_found() -> None:
    rows = np.tile([[-0.6, -0.6], [0.6, 0.6]], (3000, 1))
    model = pf.KMeans(2, 5.0, schema=SCHEMA, mechanism="genetic", random_state=0).fit(rows)
    assert -model.score(rows) / len(rows) < 0.25  # 0.72 with both centres in the middle
    assert isinstance(GeneticCentres().gene, pf.PrivGene)
