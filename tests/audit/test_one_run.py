"""One run: the bound holds for what is private, and refutes what is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import privfit as pf
from privfit.audit.one_run import epsilon_of_guesses
from privfit.privacy import SeededNoise


def counts(present: np.ndarray, scale: float, seed: int) -> np.ndarray:
    return SeededNoise(seed).laplace(present.astype(np.int64), scale)


def test_the_bound_is_rarely_too_large() -> None:
    """200 runs of randomised response, which is as bad as its epsilon allows; confidence .9."""
    rng, too_large = np.random.default_rng(0), 0
    right = np.e / (1 + np.e)
    for _ in range(200):
        found = pf.audit.one_run(lambda s: np.where(rng.random(200) < right, s, ~s), np.asarray, 200, 1.0, None, 0.9)
        too_large += found.violated
    assert 2 <= too_large <= binom.ppf(0.9999, 200, 0.1)


def test_it_comes_near_the_claim_in_one_run() -> None:
    rng = np.random.default_rng(1)
    right = np.e / (1 + np.e)
    found = pf.audit.one_run(lambda s: np.where(rng.random(20_000) < right, s, ~s), np.asarray, 20_000, 1.0)
    assert 0.9 < found.lower_bound < 1.0


@pytest.mark.parametrize(("scale", "violated"), [(1.0, False), (1 / 3, True)])
def test_a_third_of_the_scale_is_caught(scale: float, violated: bool) -> None:
    assert pf.audit.one_run(lambda s: counts(s, scale, 3), np.asarray, 2000, 1.0, 500).violated == violated


def test_a_histogram_with_canaries_in_cells_of_their_own() -> None:
    cells = pf.Numeric("cell", 0, 500, bins=list(range(1, 500)))
    places = np.arange(500) + 0.5

    def released(present: np.ndarray) -> object:
        table = np.concatenate([places[present], [0.5]])[:, None]
        return pf.histogram(table, cells, epsilon=1.0, adjacency="add-remove", ledger=pf.Ledger(epsilon=1.0))

    found = pf.audit.one_run(released, np.asarray, 500, 1.0)
    assert not found.violated
    assert found.correct > 300


def test_the_bound_inverts_the_binomial() -> None:
    for correct, guesses in itertools.product((40, 80, 99, 100), (100, 150)):
        bound = epsilon_of_guesses(correct, guesses, 0.01)
        tail = binom.sf(correct - 1, guesses, 1 / (1 + np.exp(-bound)))
        assert bound == 0.0 or tail == pytest.approx(0.01, rel=1e-6)


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="one number for each"):
        pf.audit.one_run(lambda s: s, lambda s: s[:3], 10, 1.0)
    with pytest.raises(pf.PrivacyError, match="guess"):
        pf.audit.one_run(lambda s: s, lambda s: s, 10, 1.0, guesses=11)
