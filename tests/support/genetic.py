"""Schemas for genetic fits, and all their rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from privfit.losses import LOGISTIC, hinge, smooth_hinge
from privfit.mechanisms import ERMProblem, PrivGene
from privfit.mechanisms.base import AnyMechanism, PublicFacts
from privfit.privacy import Draws, Event, PrivacyParameters
from privfit.rows import CachedDesign, Rows
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.tables import open_table

LOSSES = {"logistic": LOGISTIC, "huber": smooth_hinge(0.5), "hinge": hinge()}
TARGET = Category("y", ["a", "b"])
SCHEMAS = {
    "levels": Schema([Category("c", ["p", "q"]), Category("d", ["p", "q", "r"])], TARGET),
    "knots": Schema([Numeric("x", 0, 1), Category("c", ["p", "q"])], TARGET),
    "bins": Schema([Numeric("x", 0, 1, bins=3), Category("c", ["p", "q"])], TARGET),
}
ADJACENCIES = ("replace-one", "add-remove")
SMALL = Schema([Category("c", ["p", "q"]), Category("d", ["p", "q"])], TARGET)


def risk_of(loss: str, knots: int = 3) -> ERMProblem:
    return ERMProblem(LOSSES[loss], knots=knots)


def geometry_of(schema: Schema, mechanism: PrivGene, loss: str = "logistic", knots: int = 3) -> Geometry:
    numbers = mechanism.numbers("auto", "splines")
    return mechanism.geometry(schema, risk_of(loss, knots), numbers)


def all_rows(schema: Schema) -> list[tuple]:
    """Every row that the encoding can tell apart, at least at both ends and between knots."""
    values = [
        list(column.levels) if isinstance(column, Category) else np.linspace(column.low, column.high, 9).tolist()
        for column in schema.features
    ]
    return list(itertools.product(*values, ["a", "b"]))


def rows_of(rows: list[tuple], schema: Schema, geometry: Geometry) -> Rows:
    names = [*(column.name for column in schema.features), "y"]
    return Rows(open_table(pl.DataFrame(rows, schema=names, orient="row")), schema, geometry)


@cache
def kept_of(rows: tuple[tuple, ...], schema: Schema, geometry: Geometry) -> CachedDesign:
    """The rows of a table, read once for all that is asked of them: nothing changes them."""
    return CachedDesign(rows_of(list(rows), schema, geometry))


def released_often(
    mechanism: AnyMechanism, rows: Rows, terms: PrivacyParameters, problem: Any
) -> Callable[[Any], tuple[Any, Event]]:
    """What is released with one sampler or another: planned and read once, as `Mechanism.release` does each time."""
    plan = mechanism.plan(PublicFacts.before_reading(rows, terms), problem)
    data: list[Any] = []

    def release(sampler: Any) -> tuple[Any, Event]:
        draws = Draws(plan.event, sampler)
        if not data:
            data.append(mechanism.read(rows, plan, problem, draws))
        with draws.charged():
            return mechanism.draw(data[0], plan, draws), plan.event

    return release


def domain(schema: Schema) -> list[tuple]:
    values = ([0.0, 0.3, 1.0] if isinstance(column, Numeric) else column.levels for column in schema.features)
    return list(itertools.product(*values, ["a", "b"]))
