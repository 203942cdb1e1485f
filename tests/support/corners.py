"""Small schemas whose rows can all be tried: every corner, and the sums of tables made of them."""

from __future__ import annotations

import itertools

import numpy as np

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.rows import Rows
from privfit.tables import open_table

MIXED = [pf.Numeric("x", -1, 1), pf.Category("s", [0, 1]), pf.Category("l", [0, 1, 2])]
NUMBER = [pf.Numeric("x", -1, 1)]


def geometry_of(features: list, fit_intercept: bool):
    schema = pf.Schema(features, target=pf.Numeric("y", -1, 1))
    return schema, pf.AdaSSP().geometry(schema, QuadraticProblem(SQUARED, fit_intercept))


def corners(features: list) -> list[tuple[float, ...]]:
    """Rows at the corners and in the middle, target last."""
    places = [
        (-1.0, 0.0, 1.0) if isinstance(column, pf.Numeric) else tuple(map(float, column.levels)) for column in features
    ]
    return list(itertools.product(*places, (-1.0, 0.3, 1.0)))


def rows_of(table: np.ndarray, schema: pf.Schema, geometry) -> Rows:
    return Rows(open_table(table), schema, geometry, threads=1)
