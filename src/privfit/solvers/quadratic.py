"""The minimum of a noisy quadratic, after a repair that makes it have one. Sees moments, never rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Repair = Literal["floor", "trim", "ridge", "rerun"] | None
REPAIRS: tuple[Repair, ...] = ("floor", "trim", "ridge", "rerun", None)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """A minimiser, and what was done to the quadratic to have one. Everything here follows from noisy moments."""

    weights: Floats
    ridge: float
    eigenvalues_changed: int
    bounded: bool


def is_bounded(matrix: Floats) -> bool:
    """Whether  w'Mw - 2v'w  has a single minimum: M is positive definite."""
    return bool(np.linalg.eigvalsh(matrix).min(initial=np.inf) > 0)


def minimise(matrix: Floats, vector: Floats, noise_sd: float, repair: Repair) -> Solution:
    """The w that minimises  w'Mw - 2v'w  for a noisy symmetric M, repaired as asked.

    floor   every eigenvalue is raised to at least zero, then lifted by noise_sd * sqrt(d), half the size of the noise
    ridge   4 noise_sd are added to the diagonal (functional-mechanism paper, section 6.1)
    trim    the same, and directions whose eigenvalue is still not positive are left out (section 6.2)
    rerun, None   nothing; the mechanism has made sure of a minimum, or the user did not want it made sure
    """
    d = len(vector)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    ridge = {"floor": noise_sd * np.sqrt(d), "ridge": 4 * noise_sd, "trim": 4 * noise_sd}.get(str(repair), 0.0)
    changed = 0
    if repair == "floor":
        changed = int(np.count_nonzero(values < 0))
        values = np.maximum(values, 0.0)
    values = values + ridge
    keep = np.ones(d, dtype=bool)
    if repair == "trim":
        keep = values > 0
        changed = int(d - np.count_nonzero(keep))
    bounded = bool((values[keep] > 0).all())
    inverse = np.divide(1.0, values, out=np.zeros(d), where=keep & (values != 0))
    return Solution(vectors @ (inverse * (vectors.T @ vector)), float(ridge), changed, bounded)


assert set(REPAIRS) == {*get_args(get_args(Repair)[0]), None}
