"""A small schema, tables of it, and what a perturbed fit plans for and releases from them."""

from __future__ import annotations

from typing import Any

import numpy as np

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms import ERMProblem, Perturbation, Release
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.problem import ERMPlan, coupling_for
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.tables import open_table

SCHEMA = pf.Schema(
    [pf.Numeric("age", 0, 100), pf.Category("member", [0, 1]), pf.Category("region", [0, 1, 2, 3])],
    target=pf.Category("y", [0, 1]),
)


def table_of(rows: int, seed: int) -> np.ndarray:
    """Rows of one kind or another: all alike, or spread."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return np.tile([100.0, 1.0, 3.0, 1.0], (rows, 1))
    return np.column_stack(
        [rng.uniform(-50, 200, rows), rng.integers(0, 2, rows), rng.integers(0, 4, rows), rng.integers(0, 2, rows)]
    )


def released(
    mechanism: Perturbation,
    table: np.ndarray,
    noise: Any,
    *,
    adjacency: str = "replace-one",
    expected: int | None = None,
    people: int = 1,
) -> Release:
    risk = ERMProblem(LOGISTIC)
    geometry = mechanism.geometry(SCHEMA, risk, "splines")
    terms = PrivacyParameters(Budget(0.8, 1e-5), adjacency, people, expected)  # type: ignore[arg-type]
    return mechanism.release(Rows(open_table(table), SCHEMA, geometry), terms, None, noise, risk)


def planned(
    mechanism: Perturbation,
    loss: ConvexLoss = LOGISTIC,
    *,
    schema: pf.Schema = SCHEMA,
    rows: int | None = 500,
    epsilon: float = 0.8,
    delta: float = 0.0,
    adjacency: str = "replace-one",
    people: int = 1,
    expected: int | None = None,
    classes: int = 1,
) -> ERMPlan:
    risk = ERMProblem(loss, True, classes, coupling_for(loss, classes))
    geometry = mechanism.geometry(schema, risk, "slope")
    return mechanism.plan(
        PublicFacts(geometry, PrivacyParameters(Budget(epsilon, delta), adjacency, people, expected), rows), risk
    )  # type: ignore[arg-type]
