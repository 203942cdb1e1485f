"""Intervals from a noisy Hessian: what is identified, and that those which are shown cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from privfit.mechanisms.perturbation.sandwich import Axes, Sandwich

TRUTH = np.array([3.0, 1.0])
TURN = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)


def shown(size: float, ridge: float, sd: float, releases: int, uncounted: bool = False) -> tuple[float, float]:
    """The share of releases of a loss with a Hessian of this size along one direction, and noise of 1 on its entries,
    in which both directions are identified; and how often an interval of 90% covers in these.

    `uncounted` takes the noisy Hessian for the true one.
    """
    rng, hessian, eye = np.random.default_rng(0), TURN @ np.diag([size, 40.0]) @ TURN.T, np.eye(2)
    truth, held = TURN @ TRUTH, []
    for _ in range(releases):
        released = np.linalg.solve(hessian + ridge * eye, hessian @ truth - rng.normal(0, sd, 2))
        entries = rng.normal(size=3)
        sandwich = Sandwich(eye, hessian + np.array([[entries[0], entries[1]], [entries[1], entries[2]]]), 1.0)
        if len(sandwich.axes()[0].sizes) < 2:
            continue
        noise, back = sd**2 * eye, sandwich.inverse()[0]
        whole = back @ noise @ back if uncounted else sum(sandwich.covariances(0 * eye, noise, ridge * released))
        off = sandwich.debiased(released, ridge * released)[0] - truth[0]
        held.append(abs(off) <= norm.ppf(0.95) * np.sqrt(whole[0, 0]))
    return len(held) / releases, float(np.mean(held))


@pytest.mark.parametrize("ridge", [0.3, 10.0])
@pytest.mark.parametrize("sd", [0.3, 3.0])
def test_intervals_that_are_shown_cover_where_few_are(ridge: float, sd: float) -> None:
    share, covered = shown(1.7, ridge, sd, 1200)
    assert 0.3 < share < 0.45
    assert covered > 0.84  # 450 intervals have an error of 1.5 points
    assert shown(1.7, ridge, sd, 1200, uncounted=True)[1] < 0.72


@pytest.mark.parametrize("ridge", [0.3, 10.0])
def test_intervals_cover_and_are_hardly_wider_where_all_are_shown(ridge: float) -> None:
    share, covered = shown(40.0, ridge, 3.0, 400)
    assert share == 1
    assert covered > 0.85
    hessian, noise = np.diag([40.0, 40.0]), 9 * np.eye(2)
    whole = sum(Sandwich(np.eye(2), hessian, 1.0).covariances(0 * noise, noise, np.zeros(2)))
    assert 1 < np.sqrt(whole[0, 0]) / (3 / 40) < 1.01


def test_sizes_are_those_that_noise_explains_in_this_share_of_releases() -> None:
    sds, least = np.array([1.0, 2.0, 0.5]), 3.0
    axes = Axes(np.eye(3), np.array([4.0, 9.0, 60.0]), sds, least)
    for share in (0.05, 0.5):
        sizes = axes.plausible(share)
        assert np.all((sds <= sizes) & (sizes <= axes.sizes))
        passed = norm.sf(axes.sizes, sizes, sds) / norm.sf(least, sizes, sds)
        assert np.all((np.abs(passed - share) < 1e-6) | (sizes <= sds * (1 + 1e-9)))
    assert axes.plausible(0.5)[2] == pytest.approx(60.0)  # far from the limit nothing is taken off
    near = Axes(np.eye(1), np.array([3.001]), np.ones(1), least)
    assert near.plausible(0.5)[0] == pytest.approx(1.0)  # and next to it no less is left than the noise


def test_covariances_solve_their_own_equation() -> None:
    rng = np.random.default_rng(3)
    hessian = np.diag([9.0, 20.0, 50.0])
    sandwich, meat, noise, penalised = (
        Sandwich(np.eye(3), hessian, 1.0),
        np.eye(3),
        np.diag([4.0, 2.0, 1.0]),
        9 * rng.normal(size=3),
    )
    known, _ = sandwich.axes()
    step, whole = penalised / known.sizes, sum(sandwich.covariances(meat, noise, penalised))
    missed = (1 - known.plausible(0.05) / known.sizes) * step
    usual, back = np.diag(1 / known.plausible(0.5)), np.diag(1 / known.sizes)
    moved = whole + np.outer(step, step)
    again = (
        usual @ (meat + noise) @ usual + np.outer(missed, missed) + back @ (np.trace(moved) * np.eye(3) + moved) @ back
    )
    order = np.argsort(np.diag(hessian))
    assert np.allclose(whole, again[np.ix_(order, order)])
