"""A table of every kind of column, its encoded rows by hand, and its cached design."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from privfit.losses import LOGISTIC
from privfit.rows import CachedDesign, Rows
from privfit.rows.layout import STEP, STEPS_PER_KNOT
from privfit.schema import MISSING, OTHER, Block, Category, Geometry, Numeric, Schema
from privfit.tables import open_table

CITIES = [f"town {k}" for k in range(60)]
FEATURES = [
    Numeric("age", 17, 90, fill=40),
    Category("city", CITIES, other=True, fill="town 3"),
    Category("flag", [False, True], fill=True),
    Numeric("hours", 0, 99),
    Numeric("wage", -1.5, 60.25, bins=4, fill="missing"),
    Numeric("half", 0, 10, bins=2),
    Category("code", list(range(90)), other=True),
    Numeric("depth", 0, 9, bins=[1, 4]),
    Category("grade", ["a", "b"]),
]
TARGETS = {
    "number": Numeric("y", -3, 5),
    "two classes": Category("y", ["low", "high"]),
    "four classes": Category("y", ["n", "e", "s", "w"], fill="s"),
    "none": None,
}


def mixed(n: int, target: str = "number", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "depth": rng.choice([-1.0, 0.5, 1.0, 3.9, 4.0, 12.0], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 30, n)),
            "city": rng.choice([*CITIES, "elsewhere", None], n),
            "flag": rng.choice([True, False, None], n),
            "hours": rng.normal(40, 40, n),
            "wage": np.where(rng.random(n) < 0.2, np.nan, rng.normal(20, 30, n)),
            "half": rng.choice([-4.0, 2.0, 5.0, 11.0], n),
            "code": rng.integers(0, 95, n),
            "grade": rng.choice(["a", "b"], n),
        }
    )
    levels = {"two classes": ["low", "high"], "four classes": ["n", "e", "s", "w", None]}
    if target != "none":
        frame["y"] = rng.normal(1, 4, n) if target == "number" else rng.choice(levels[target], n)
    return frame


def schema_for(target: str = "number") -> Schema:
    return Schema(FEATURES, TARGETS[target])


def by_hand(frame: pd.DataFrame, schema: Schema, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """The design and the target, cell by cell from the words of the schema."""
    rows = [[1.0] if geometry.intercept else [] for _ in range(len(frame))]
    for column, block in zip(schema.features, geometry.blocks, strict=True):
        for row, value in zip(rows, frame[column.name].tolist(), strict=True):
            row += cells(column, block, value)
    return np.array(rows), targets_by_hand(frame, schema.target)


def cells(column: Numeric | Category, block: Block, value: Any) -> list[float]:
    absent, edges = value is None or value != value, block.edges
    if isinstance(column, Numeric) and block.kind == "spline":
        return splines(column, block.width, column.fill if absent else value)
    if isinstance(column, Numeric) and not edges:
        return [number(column, column.fill if absent else value)]
    if isinstance(column, Category):
        level = column.fill if absent else value if value in column.levels else OTHER
        place, count = column.levels.index(level), len(column.levels)
    else:
        count = len(edges) + 1 + (column.fill == MISSING)
        place = count - 1 if absent else sum(value >= edge for edge in edges)
    return [2.0 * place - 1.0] if count == 2 else [float(k == place) for k in range(count)]


def splines(column: Numeric, knots: int, value: Any) -> list[float]:
    """Shares of the two nearest knots, in steps of a 32nd."""
    place = (min(max(value, column.low), column.high) - column.low) / (column.high - column.low) * (knots - 1)
    return [max(0.0, 1 - abs(round(place * STEPS_PER_KNOT) / STEPS_PER_KNOT - knot)) for knot in range(knots)]


def number(column: Numeric, value: Any) -> float:
    middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
    return round(min(max((value - middle) * (STEP / half), -STEP), STEP)) / STEP


def targets_by_hand(frame: pd.DataFrame, target: Numeric | Category | None) -> np.ndarray:
    if target is None:
        return np.zeros(len(frame))
    values = frame[target.name].tolist()
    if isinstance(target, Numeric):
        return np.array([number(target, value) for value in values])
    places = np.array(
        [target.levels.index(target.fill if value is None or value != value else value) for value in values],
        dtype=float,
    )
    return places if len(target.levels) > 2 else 2 * places - 1


def kept_from(table: Any, schema: Schema, geometry: Geometry, **options: Any) -> CachedDesign:
    most_bytes, features = options.pop("most_bytes", None), options.pop("features", None)
    return CachedDesign(Rows(open_table(table), schema, geometry, **options), features, most_bytes)


def whole_weights(columns: int, classes: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, (columns, classes)).astype(float)


def whole(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """A response that is an integer, of the predictor and of the target."""
    known = (
        np.rint(4 * target) if scores.ndim == 1 else np.rint(4 * target)[:, None] * np.arange(1, scores.shape[1] + 1)
    )
    return np.floor(scores) % 7 - known


def dense_sums(
    design: np.ndarray, target: np.ndarray, weights: np.ndarray, respond: Callable[..., np.ndarray]
) -> np.ndarray:
    scores = design @ weights
    pull = respond(scores[:, 0], target)[:, None] if weights.shape[1] == 1 else respond(scores, target)
    return design.T @ pull


def parquet(frame: pd.DataFrame, path: Path) -> Path:
    pl.from_pandas(frame).write_parquet(path / "t.parquet", row_group_size=100)
    return path / "t.parquet"


def csv(frame: pd.DataFrame, path: Path) -> Path:
    pl.from_pandas(frame).write_csv(path / "t.csv")
    return path / "t.csv"


def logistic_sums(kept: CachedDesign, classes: int = 1) -> np.ndarray:
    """Sums that are rounded, so that the order of additions shows."""
    weights = np.random.default_rng(3).normal(size=(kept.n_columns, classes)) / 7
    return kept.gradient(weights, lambda z, t: LOGISTIC.slope(z, t if z.ndim == 1 else t[:, None]), 1.0)
