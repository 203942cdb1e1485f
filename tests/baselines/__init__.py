"""Published baselines: tiny tables whose neighbours can all be tried, and noise that is zero or recorded."""

from __future__ import annotations

import itertools

import numpy as np

import privfit as pf
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.tables import open_table
from tests.support.noise import RecordingNoise

SCHEMA = pf.Schema([pf.Numeric("x", -1, 1), pf.Category("level", [0, 1, 2])], target=pf.Category("y", [0, 1]))
CORNERS = list(itertools.product((-1.0, 0.0, 1.0), (0, 2), (0, 1)))


class SilentNoise(SeededNoise):
    """Adds nothing: what comes out is the minimum itself, on its lattice."""

    def __init__(self) -> None:
        super().__init__(0)

    def l2(self, values: np.ndarray, scale: float) -> np.ndarray:
        return values

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return values


class DealingNoise(RecordingNoise):
    """Writes down what it is asked, and deals rows to parts, or to these parts."""

    def __init__(self, seed: int = 0, place: np.ndarray | None = None) -> None:
        super().__init__(seed)
        self._place = place

    def below(self, limits: np.ndarray) -> np.ndarray:
        return self._source.below(limits) if self._place is None else self._place[: len(limits)].astype(np.int64)


def terms(
    epsilon: float = 1.0, adjacency: str = "replace-one", people: int = 1, expected_rows: int | None = None
) -> PrivacyParameters:
    return PrivacyParameters(Budget(epsilon), adjacency, people, expected_rows)


def release_of(mechanism, risk, table, given: PrivacyParameters, noise=None, ledger=None, schema: pf.Schema = SCHEMA):
    """What a mechanism releases of the rows of a small table, features and target side by side."""
    geometry = mechanism.geometry(schema, risk, "slope")
    rows = Rows(open_table(np.array(table, dtype=np.float64)), schema, geometry, threads=1)
    return mechanism.release(rows, given, ledger, noise or SilentNoise(), risk)


def apart(mechanism, risk, given: PrivacyParameters, size: int = 2) -> tuple[np.ndarray, object]:
    """The differences of the minima of all neighbours among tables of corner rows, one a row, and the event that pays
    for them.
    """
    minima = {}
    sizes = (size,) if given.adjacency == "replace-one" else (size - 1, size)
    for length in sizes:
        for rows in itertools.combinations_with_replacement(range(len(CORNERS)), length):
            release = release_of(mechanism, risk, [CORNERS[row] for row in rows], given)
            minima[rows] = release.value.weights[:, 0]
    shared = itertools.combinations_with_replacement(range(len(CORNERS)), size - 1)
    found = []
    for common in shared:
        around = [minima[tuple(sorted((*common, row)))] for row in range(len(CORNERS))]
        if given.adjacency == "add-remove":
            found += [one - minima[common] for one in around]
        else:
            found += [one - other for one, other in itertools.combinations(around, 2)]
    return np.array(found), release.event


def small_table(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x, level = rng.uniform(-1, 1, n), rng.integers(0, 3, n)
    return np.column_stack([x, level, x + 0.3 * (level - 1) + 0.2 * rng.normal(size=n) > 0]).astype(np.float64)
