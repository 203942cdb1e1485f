"""Schemas, plans and rows at their corners, for tests of the random linear term of a perturbed objective."""

from __future__ import annotations

import math

import numpy as np

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.minima import Plan, Risk
from privfit.mechanisms.rules import coupling_for
from privfit.privacy import Budget, SeededNoise, Terms
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
    kind: type[pf.ObjectivePerturbation | pf.OutputPerturbation] = pf.ObjectivePerturbation,
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
    mechanism = kind(**settings_)  # type: ignore[arg-type]
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


def steepest_pull(plan: Plan) -> float:
    """The largest gradient of a row, measured by what is drawn: how many standard deviations it is long; by trying corners."""
    rng = np.random.default_rng(0)
    gradients = plan.gradients
    precision = np.linalg.pinv(drawn_covariance(plan), hermitian=True)
    longest = max(float(row @ precision @ row) for row in corner_rows(gradients.norms, rng, 60))
    return math.sqrt(longest) * max(float(np.linalg.norm(slopes)) for slopes in corner_slopes(gradients, rng))


def drawn_covariance(plan: Plan) -> np.ndarray:
    """The covariance of the noise on the columns, told by what becomes of a 1 in every single number that is drawn."""
    tilt, columns = plan.tilt, plan.gradients.norms.columns
    assert tilt is not None
    images = []
    for place in range(plan.event.n_values)[:: tilt.classes]:
        images.append(tilt.drawn(Unit(place), plan.event)[:, 0])
    order = [column for part in tilt.parts for column in part.columns]
    sds = np.empty(columns)
    for part, scale in zip(tilt.parts, plan.event.scales or (plan.event.scale,), strict=True):
        sds[[order.index(column) for column in part.columns]] = scale / plan.event.unit
    image = np.array(images).T * plan.event.unit
    return np.asarray(image @ np.diag(sds**2) @ image.T)


class Unit(SeededNoise):
    """A source whose only number that is not zero is a 1 at one place."""

    def __init__(self, place: int) -> None:
        super().__init__(0)
        self.left = place

    def normal(self, values: np.ndarray, scale: float) -> np.ndarray:
        found = np.zeros_like(values)
        if 0 <= self.left < values.size:
            found[self.left] = 1
        self.left -= values.size
        return values + found
