"""Schemas, plans and rows at their corners, for tests of the random linear term of a perturbed objective."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, Gradients, coupling_for
from privfit.privacy import Budget, PrivacyParameters, Sampler, SeededNoise, noised
from privfit.privacy.parts import RELEASE, Additive
from privfit.schema import RowNorms

LOGCOSH = ConvexLoss(
    slope=lambda z, y: np.tanh(z - y),
    curvature=lambda z, y: 1 - np.tanh(z - y) ** 2,
    most_slope=1.0,
    most_curvature=1.0,
    name="log-cosh loss",
)
CLASSES = pf.Category("y", ["a", "b"])
MIXED = pf.Schema(
    [
        pf.Numeric("n", 0, 9),
        pf.Category("s", [0, 1]),
        pf.Category("c", list(range(5))),
        pf.Category("d", list(range(12))),
    ],
    target=CLASSES,
)


def schema_of(numbers: int, signs: int, widths: list[int]) -> pf.Schema:
    columns = [pf.Numeric(f"n{i}", -1, 1) for i in range(numbers)] + [
        pf.Category(f"s{i}", [0, 1]) for i in range(signs)
    ]
    return pf.Schema(
        [*columns, *(pf.Category(f"c{i}", list(range(width))) for i, width in enumerate(widths))], target=CLASSES
    )


def gradients_of(
    schema: pf.Schema, loss: ConvexLoss = LOGISTIC, classes: int = 1, people: int = 1, replaced: bool = True
) -> Gradients:
    geometry = pf.ObjectivePerturbation().geometry(schema, ERMProblem(loss), "slope")
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
) -> ERMPlan:
    mechanism = kind(**settings_)  # type: ignore[arg-type]
    risk = ERMProblem(loss, fit_intercept, classes, coupling_for(loss, classes))
    geometry = mechanism.geometry(schema, risk, "slope")
    terms = PrivacyParameters(Budget(epsilon, delta), adjacency, people)  # type: ignore[arg-type]
    return mechanism.plan(PublicFacts(geometry, terms, rows if adjacency == "replace-one" else None), risk)


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
    most, classes = gradients.slope_norm["linf"], gradients.classes
    if gradients.coupling == "one":
        return [np.array([most])]
    if gradients.coupling == "one-vs-rest":
        return [most * rng.choice([-1.0, 1.0], classes) for _ in range(4)]
    return [np.eye(classes)[1] - np.eye(classes)[0], np.eye(classes)[0] - np.eye(classes)[-1]]


def steepest_pull(plan: ERMPlan) -> float:
    """The largest gradient of a row, measured by what is drawn: how many standard deviations it is long; by trying
    corners.
    """
    rng = np.random.default_rng(0)
    gradients = plan.gradients
    precision = np.linalg.pinv(drawn_covariance(plan), hermitian=True)
    longest = max(float(row @ precision @ row) for row in corner_rows(gradients.norms, rng, 60))
    return math.sqrt(longest) * max(float(np.linalg.norm(slopes)) for slopes in corner_slopes(gradients, rng))


def drawn_covariance(plan: ERMPlan) -> np.ndarray:
    """The covariance of the noise on the columns, told by what becomes of a 1 in every single number that is drawn."""
    tilt, columns = plan.noise, plan.gradients.norms.columns
    assert tilt is not None
    images = []
    for place in range(tilt.values)[:: tilt.classes]:
        images.append(drawn(tilt, Unit(place))[:, 0])
    order = [column for part in tilt.groups for column in part.columns]
    sds = np.empty(columns)
    for group, part in zip(tilt.groups, tilt.parts(), strict=True):
        sds[[order.index(column) for column in group.columns]] = part.scale / part.unit
    image = np.array(images).T * plan.event.unit
    return np.asarray(image @ np.diag(sds**2) @ image.T)


def drawn(noise: ObjectiveNoise, sampler: Sampler) -> np.ndarray:
    """The linear term of a perturbed objective, drawn from a sampler."""
    return noise.by_column(noised(sampler, np.zeros(noise.values, dtype=np.int64), noise.parts()))


def less_noise(plan: ERMPlan, factor: float) -> ERMPlan:
    """The plan with objective noise that is so many times smaller, in its groups and in its event."""
    assert plan.noise is not None
    groups = tuple(replace(group, scale=group.scale / factor) for group in plan.noise.groups)
    noise = replace(plan.noise, groups=groups)
    parts = [
        replace(part, scale=part.scale / factor) if isinstance(part, Additive) and part.purpose == RELEASE else part
        for part in plan.event.parts
    ]
    return replace(plan, noise=noise, event=replace(plan.event, parts=tuple(parts)))


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
