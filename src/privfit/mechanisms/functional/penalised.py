"""The penalised minimum of a released quadratic: post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.functional.defaults import STIFFEST, automatic_penalty
from privfit.schema import Geometry
from privfit.solvers import (
    NoiseLevel,
    Penalty,
    ReducedQuadratic,
    Repair,
    Solution,
    minimise_penalised,
    shown_columns,
    stationary_point,
)

Floats = NDArray[np.float64]


def penalised_minimum(
    penalty: Penalty,
    solution: Solution,
    reduced: ReducedQuadratic,
    geometry: Geometry,
    noise: NoiseLevel,
    n_rows: float,
    repair: Repair,
) -> tuple[Floats, tuple[Floats, Floats], float]:
    """The penalised minimum in the units that a person sees, as encoded weights; the penalty used; and the
    certified gap.
    """
    target = geometry.target
    half = target.unit if target is not None and target.kind == "slope" else 1.0
    columns = shown_columns(geometry)
    shown = columns @ reduced.basis
    sizes = np.sqrt(np.sum(columns**2, axis=1))
    directions = shown @ solution.directions
    kept, factors = solution.kept, solution.factors
    known = float(np.max(np.divide(kept, factors, out=np.zeros_like(kept), where=factors > 0), initial=0.0))
    curvature = np.minimum(1 / np.maximum(factors, 1e-300), STIFFEST * known)
    matrix = (directions * curvature) @ directions.T
    start = half * np.asarray(np.linalg.lstsq(shown.T, solution.weights, rcond=None)[0], dtype=np.float64)
    strengths = penalty.strengths(max(n_rows, 1.0), automatic_penalty(sizes, half, noise))
    used = penalty.in_units(strengths, sizes, half)
    if repair is None and not solution.bounded:
        raw = np.divide(solution.kept, solution.factors, out=np.zeros_like(solution.kept), where=solution.factors != 0)
        found = stationary_point((directions * raw) @ directions.T, half * (shown @ reduced.vector), *used)
    else:
        found = minimise_penalised(matrix, start, *used)
    return columns.T @ found.coefficients / half, strengths, found.gap
