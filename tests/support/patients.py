"""A generated table whose classes follow a logistic model, its public schema, and its rows as a perturbed objective
sees them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.special import expit

import privfit as pf

FEATURES = [
    pf.Numeric("age", 0, 100),
    pf.Numeric("weight", -2, 2),
    pf.Category("region", ["n", "e", "s"]),
    pf.Category("member", [0, 1]),
]
SCHEMA = pf.Schema(FEATURES, target=pf.Category("ill", ["no", "yes"]))


def people(rows: int, seed: int = 0) -> tuple[pl.DataFrame, np.ndarray]:
    """A table whose classes follow a logistic model, and the chance of the second class in every row."""
    rng = np.random.default_rng(seed)
    age, weight = rng.uniform(0, 100, rows), rng.normal(0, 1, rows).clip(-2, 2)
    region, member = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    chance = expit(0.06 * (age - 50) - 1.2 * weight + np.array([0.8, -0.5, 0.0])[region] + 0.7 * member - 0.4)
    ill = np.where(rng.random(rows) < chance, "yes", "no")
    return pl.DataFrame(
        {"age": age, "weight": weight, "region": np.array(["n", "e", "s"])[region], "member": member, "ill": ill}
    ), chance


def dense(table: pl.DataFrame) -> np.ndarray:
    """The rows as a perturbed objective sees them, written once more: numbers in [-1, 1], a sign for two levels, a
    column per level for more.
    """
    levels = np.array(["n", "e", "s"])
    numbers = np.rint(np.column_stack([table["age"] / 50 - 1, table["weight"] / 2]) * 2**16) / 2**16
    return np.column_stack(
        [numbers, table["region"].to_numpy()[:, None] == levels, 2 * table["member"].to_numpy() - 1]
    ).astype(float)
