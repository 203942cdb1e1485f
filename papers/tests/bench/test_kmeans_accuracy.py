"""How close private k-means comes to scikit-learn's, on generated points and on real tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans as Plain

import privfit as pf
from privfit_papers.bench import data
from privfit_papers.bench.clusters import generated_mixture, house, lifesci, mean_distance


@pytest.mark.parametrize("mechanism", ["auto", "hybrid", "cells"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_large_epsilon_comes_close_to_scikit_learn(mechanism, adjacency) -> None:
    mixture = generated_mixture(5000)
    points = mixture.scaled
    best = mean_distance(points, Plain(6, n_init=10, random_state=0).fit(points).cluster_centers_)
    model = pf.KMeans(
        6, 1000.0, schema=mixture.schema, mechanism=mechanism, adjacency=adjacency, expected_rows=5000, random_state=0
    )
    assert -model.fit(mixture.rows).score(mixture.rows) / 5000 < 1.03 * best


def test_more_epsilon_helps() -> None:
    mixture = generated_mixture(5000)

    def distance(epsilon: float) -> float:
        fits = [pf.KMeans(6, epsilon, schema=mixture.schema, random_state=seed).fit(mixture.rows) for seed in range(5)]
        return -float(np.median([fit.score(mixture.rows) for fit in fits]))

    assert distance(0.02) > distance(0.2) > distance(2.0)


PEERS = {
    (lifesci, 3): (0.865, 0.757, 0.727),
    (lifesci, 5): (0.861, 0.693, 0.675),
    (house, 10): (0.068, 0.047, 0.044),
    (house, 15): (0.065, 0.041, 0.038),
}
"""Mean squared distances of diffprivlib 0.6.6 at epsilon 0.1, 0.5 and 1."""


@pytest.mark.parametrize(("load", "k"), PEERS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_real_tables_are_clustered_better_than_by_the_closest_peer(load, k) -> None:
    try:
        found = load(data.data_folder())
    except data.NoData as missing:
        pytest.skip(str(missing))
    for epsilon, peer in zip((0.1, 0.5, 1.0), PEERS[load, k], strict=True):
        fits = [pf.KMeans(k, epsilon, schema=found.schema, random_state=seed).fit(found.rows) for seed in range(3)]
        assert np.mean([-fit.score(found.rows) / len(found.rows) for fit in fits]) < 0.98 * peer
