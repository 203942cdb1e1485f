"""Small tables with pairs of columns, what is summed over their cells, and larger ones with a pair that was planted."""

from __future__ import annotations

import numpy as np
import polars as pl

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms.perturbation.interaction_terms import (
    STEP_BITS,
    IntegerGradients,
    integer_weights,
    menu_of,
    score_bits,
)
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.rows import CachedDesign, InteractionCells, Interactions, Rows
from privfit.tables import open_table

SCHEMA = pf.Schema(
    [
        pf.Numeric("age", 0, 70),
        pf.Category("region", ["n", "s", "w"]),
        pf.Category("sex", ["f", "m"]),
        pf.Numeric("gain", 0, 90_000),
    ],
    pf.Category("y", ["no", "yes"]),
)
VALUES = [(3.0, "n", "f", 0.0), (35.0, "s", "m", 12.0), (69.0, "w", "f", 80_000.0), (36.0, "s", "f", 0.0)]


def table_of(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["age", "region", "sex", "gain", "y"], orient="row")


def kept_of(rows: list[tuple], batch_rows: int = 1 << 16) -> CachedDesign:
    geometry = pf.ObjectivePerturbation().geometry(SCHEMA, ERMProblem(LOGISTIC), "splines")
    return CachedDesign(Rows(open_table(table_of(rows)), SCHEMA, geometry, batch_rows=batch_rows), fine=True)


def cells_of(rows: list[tuple], weights: np.ndarray) -> InteractionCells:
    return kept_of(rows).cells(integer_weights(weights, score_bits(len(weights))))


def interactions_of() -> Interactions:
    return Interactions(pf.ObjectivePerturbation().geometry(SCHEMA, ERMProblem(LOGISTIC), "splines"))


def weights_of(seed: int, size: float) -> np.ndarray:
    columns = interactions_of().geometry.n_columns
    return np.random.default_rng(seed).normal(0, size, (columns, 1))


SHIFT = score_bits(interactions_of().geometry.n_columns) - STEP_BITS


def measured(
    rows: list[tuple], weights: np.ndarray, slopes: IntegerGradients
) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
    """The scores of all pairs and of numbers by themselves, and their sums of slopes and of curvatures."""
    cells, menu = cells_of(rows, weights), menu_of(interactions_of())
    both = cells.sums_and_counts(menu, slopes.slopes, SHIFT)
    sums = cells.sums(menu, slopes.slopes, SHIFT)
    assert all(
        np.array_equal(own[0], alone) and own[1].sum() == len(rows) for own, alone in zip(both, sums, strict=True)
    )
    return [slopes.score(*own) for own in both], sums, cells.sums(menu, slopes.curvatures, SHIFT)


CROSSED = pf.Schema(
    [pf.Category(name, ["a", "b", "c"]) for name in ("u", "v", "w")] + [pf.Numeric("x", 0, 1), pf.Numeric("z", -1, 1)],
    pf.Category("y", [0, 1]),
)


def planted(n: int, seed: int = 0) -> pl.DataFrame:
    """Classes that depend on u with w, and on x: no sum over columns tells the first."""
    rng = np.random.default_rng(seed)
    levels = {name: rng.integers(3, size=n) for name in ("u", "v", "w")}
    x, z = rng.uniform(0, 1, n), rng.uniform(-1, 1, n)
    odds = 3.0 * np.where((levels["u"] + levels["w"]) % 3 == 0, 1.0, -0.5) + 2 * (x - 0.5)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-odds))).astype(int)
    frame = {name: np.array(["a", "b", "c"])[own] for name, own in levels.items()}
    return pl.DataFrame({**frame, "x": x, "z": z, "y": y})
