"""Schemas, plans and rows at their corners, for tests of the random linear term of a perturbed objective."""

from __future__ import annotations

import numpy as np

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.minima import Plan, Risk
from privfit.mechanisms.rules import coupling_for
from privfit.privacy import Budget, Terms
from privfit.statistics import Gradients, RowNorms

LOGCOSH = ConvexLoss(
    slope=lambda z, y: np.tanh(z - y),
    curvature=lambda z, y: 1 - np.tanh(z - y) ** 2,
    most_slope=1.0,
    most_curvature=1.0,
    name="log-cosh loss",
)
CLASSES = pf.Category("y", ["a", "b"])
MIXED = pf.Schema(
    [pf.Numeric("n", 0, 9), pf.Category("s", [0, 1]), pf.Category("c", list(range(5))), pf.Category("d", list(range(12)))], target=CLASSES
)


def schema_of(numbers: int, signs: int, widths: list[int]) -> pf.Schema:
    columns = [pf.Numeric(f"n{i}", -1, 1) for i in range(numbers)] + [pf.Category(f"s{i}", [0, 1]) for i in range(signs)]
    return pf.Schema([*columns, *(pf.Category(f"c{i}", list(range(width))) for i, width in enumerate(widths))], target=CLASSES)


def gradients_of(schema: pf.Schema, loss: ConvexLoss = LOGISTIC, classes: int = 1, people: int = 1, replaced: bool = True) -> Gradients:
    geometry = pf.ObjectivePerturbation().geometry(schema, "slope", Risk(loss))
    return Gradients(RowNorms.of(geometry), loss, classes, coupling_for(loss, classes), people, replaced)


def planned(
    schema: pf.Schema,
    loss: ConvexLoss = LOGISTIC,
    *,
    classes: int = 1,
    people: int = 1,
    adjacency: str = "replace-one",
    epsilon: float = 1.0,
    delta: float = 0.0,
    fit_intercept: bool = True,
    rows: int = 1000,
    **settings_: object,
) -> Plan:
    mechanism = pf.ObjectivePerturbation(**settings_)  # type: ignore[arg-type]
    risk = Risk(loss, fit_intercept, classes, coupling_for(loss, classes))
    geometry = mechanism.geometry(schema, "slope", risk)
    terms = Terms(Budget(epsilon, delta), adjacency, people)  # type: ignore[arg-type]
    return mechanism.plan(geometry, terms, risk, rows if adjacency == "replace-one" else None)


def corner_rows(norms: RowNorms, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Rows as long as rows can be: signs in single columns, one level per block."""
    rows = []
    for _ in range(count):
        row = np.zeros(norms.columns)
        row[list(norms.singles)] = rng.choice([-1.0, 1.0], len(norms.singles))
        for start, stop in norms.blocks:
            row[rng.integers(start, stop)] = 1.0
        rows.append(row)
    return rows


def corner_slopes(gradients: Gradients, rng: np.random.Generator) -> list[np.ndarray]:
    """The corners of what slopes a row can have."""
    most, classes = gradients.most_slope, gradients.classes
    if gradients.coupling == "one":
        return [np.array([most])]
    if gradients.coupling == "one-vs-rest":
        return [most * rng.choice([-1.0, 1.0], classes) for _ in range(4)]
    return [np.eye(classes)[1] - np.eye(classes)[0], np.eye(classes)[0] - np.eye(classes)[-1]]
