"""Centres from what was released, and from public randomness. Nothing here sees a row."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import seeded_generator

Floats = NDArray[np.float64]

PUBLIC_SEED = 20_160_309
"""Directions and restarts are drawn from here: known to everybody, and the same in every fit."""


def weighted_centres(points: Floats, weights: Floats, k: int, restarts: int) -> Floats:
    """k-means of released weighted points; where there are hardly any, the heaviest of them and public ones."""
    heavy = weights > 0
    if np.count_nonzero(heavy) <= k:
        found = points[np.argsort(-weights, kind="stable")[:k]]
        return np.concatenate([found, seeded_generator(PUBLIC_SEED).uniform(-1, 1, (k - len(found), points.shape[1]))])
    from sklearn.cluster import KMeans  # here, because it takes long to load and few fits need it
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(k, n_init=restarts, random_state=PUBLIC_SEED).fit(points[heavy], sample_weight=weights[heavy])
    return np.asarray(model.cluster_centers_, dtype=np.float64)


def nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    """The place of the centre that is nearest to each point."""
    return np.asarray(np.argmin((centres**2).sum(axis=1) - 2 * points @ centres.T, axis=1), dtype=np.intp)


def spread_inside(points: Floats, weights: Floats, centres: Floats) -> tuple[Floats, Floats]:
    """The weight of every cluster of weighted points, and its variance in every column."""
    own, k = nearest(points, centres), len(centres)
    inside = np.asarray(np.bincount(own, weights, k) + 1e-9, dtype=np.float64)
    away = weights[:, None] * (points - centres[own]) ** 2
    return inside, np.stack([np.bincount(own, column, k) / inside for column in away.T], axis=1)


def projected(points: Floats, weights: Floats, dimensions: int) -> Floats:
    """Points moved onto the plane through their mean that is nearest to all of them: centres span no more, and what
    leaves it is noise.
    """
    mean = weights @ points / weights.sum()
    away = points - mean
    weighted = away * np.sqrt(weights)[:, None]
    basis = np.linalg.eigh(weighted.T @ weighted)[1][:, -dimensions:]
    return np.asarray(mean + away @ basis @ basis.T, dtype=np.float64)


@cache
def directions(count: int, columns: int) -> Floats:
    """Well spread directions, each the farthest of 20 times as many from those before. Public."""
    tried = seeded_generator(PUBLIC_SEED).standard_normal((20 * count, columns))
    tried /= np.linalg.norm(tried, axis=1, keepdims=True)
    taken, distance = [0], ((tried - tried[0]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        farthest = int(np.argmax(distance))
        taken.append(farthest)
        distance = np.minimum(distance, ((tried - tried[farthest]) ** 2).sum(axis=1))
    return np.asarray(tried[taken], dtype=np.float64)


@cache
def sphere_packing(k: int, columns: int) -> Floats:
    """Centres of k equal balls in the box, with a radius about as large as scattering finds: the start of improved
    DPLloyd. Public.
    """
    generator = seeded_generator(PUBLIC_SEED)
    best = generator.uniform(-1, 1, (k, columns))
    low, high = 0.0, 2.0
    for _ in range(20):
        radius = (low + high) / 2
        reach = 1 - min(radius, 1.0)
        found: list[Floats] = []
        for tried in generator.uniform(-reach, reach, (min(100 * k, 10_000), columns)):
            if not found or ((np.array(found) - tried) ** 2).sum(axis=1).min() >= 4 * radius**2:
                found.append(tried)
            if len(found) == k:
                break
        if len(found) == k:
            best, low = np.array(found), radius
        else:
            high = radius
    return best
