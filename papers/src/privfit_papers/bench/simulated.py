"""The simulation of Chaudhuri and Monteleoni (NIPS 2008, section 6): points on a sphere, five folds, two hundred draws
of the noise each.

The epsilon of the paper's table is not stated. `closest_epsilon` finds the one whose errors are closest to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.features import ShortenedRows
from privfit.losses import LOGISTIC
from privfit.mechanisms import ERMProblem, ObjectivePerturbation, OutputPerturbation, Perturbation
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.models import LogisticRegression
from privfit.privacy import Budget, PrivacyParameters, SeededNoise, noised, seeded_generator
from privfit.schema import Schema
from privfit_papers.bench.printed_objective import perturbed_minima

Floats = NDArray[np.float64]
Kind = Literal["separable", "unseparable"]

KINDS: tuple[Kind, ...] = ("separable", "unseparable")
N_POINTS, N_COLUMNS, N_FOLDS, N_DRAWS, RIDGE = 17_500, 10, 5, 200, 0.01
NO_POINTS_WITHIN, FLIPPED_WITHIN, FLIPPED = 0.03, 0.1, 0.2
SIZES = tuple(range(1000, 14_001, 1000))
EPSILONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
NEAR = (0.014, 0.016, 0.018, 0.019, 0.02, 0.021, 0.022, 0.024, 0.028)

STANDARD, SENSITIVITY, PRINTED, REPAIRED, HALVED, DEFAULT, BOXED = (
    "standard LR",
    "sensitivity method",
    "new method, printed",
    "new method, repaired",
    "new method, slopes up to 1/2",
    "pf.LogisticRegression",
    "the same, given a box only",
)
PAPER: dict[Kind, dict[str, tuple[float, float]]] = {
    "separable": {SENSITIVITY: (0.2962, 0.0617), PRINTED: (0.1426, 0.1284), STANDARD: (0.0, 0.0016)},
    "unseparable": {SENSITIVITY: (0.3257, 0.0536), PRINTED: (0.1903, 0.1105), STANDARD: (0.0530, 0.1105)},
}
"""The paper's Figure 1: mean and standard deviation of the test error."""


# -- points ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """Points of length 1, their labels -1 and 1, and the direction that labelled them."""

    features: Floats
    labels: Floats
    direction: Floats

    def folds(self, n_folds: int = N_FOLDS, rows: int | None = None) -> Iterator[Fold]:
        """Every fold once to test on, the others to fit on; of those only the first `rows`, if given."""
        fold_of = np.arange(len(self.labels)) % n_folds
        for fold in range(n_folds):
            fit, test = np.flatnonzero(fold_of != fold)[:rows], fold_of == fold
            yield Fold(self.features[fit], self.labels[fit], self.features[test], self.labels[test], fold)


def points(kind: Kind, n_points: int = N_POINTS, n_columns: int = N_COLUMNS, seed: int = 0) -> Points:
    """Points uniform on the unit sphere, labelled by a hyperplane through its middle.

    "separable": none lies within 0.03 of the hyperplane. "unseparable": of those within 0.1, labels are flipped with
    probability 0.2.
    """
    generator = seeded_generator([seed, KINDS.index(kind)])
    direction = _on_sphere(generator, 1, n_columns)[0]
    features = np.empty((0, n_columns))
    while len(features) < n_points:
        drawn = _on_sphere(generator, n_points, n_columns)
        features = np.concatenate(
            [features, drawn[np.abs(drawn @ direction) > (NO_POINTS_WITHIN if kind == "separable" else 0.0)]]
        )
    distances = features[:n_points] @ direction
    flipped = (kind == "unseparable") & (np.abs(distances) <= FLIPPED_WITHIN) & (generator.random(n_points) < FLIPPED)
    return Points(features[:n_points], np.where(flipped, -1.0, 1.0) * np.sign(distances), direction)


def _on_sphere(generator: Any, rows: int, columns: int) -> Floats:
    drawn = generator.normal(size=(rows, columns))
    return np.asarray(drawn / np.sqrt((drawn**2).sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, rows to test on, and the fit without noise that every method starts from."""

    features: Floats
    labels: Floats
    test_features: Floats
    test_labels: Floats
    number: int = 0
    ridge: float = RIDGE

    @property
    def sum_ridge(self) -> float:
        """The ridge beside a sum over rows."""
        return self.ridge * len(self.labels)

    @cached_property
    def signed(self) -> Floats:
        """Rows times their labels."""
        return self.features * self.labels[:, None]

    @cached_property
    def exact(self) -> Floats:
        """The weights of regularised logistic regression, without noise."""
        return perturbed_minima(self.signed, LOGISTIC, self.sum_ridge, np.zeros((self.features.shape[1], 1)))[:, 0]

    def errors(self, weights: Floats) -> Floats:
        """The share of test rows on the wrong side, for every column of weights."""
        return np.asarray(np.mean(self.test_features @ weights * self.test_labels[:, None] <= 0, axis=0))


# -- methods ---------------------------------------------------------------------------------------


class Method(Protocol):
    """Something to compare. `private` is about its noise: draws here are seeded, and no result is."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    @property
    def private(self) -> bool:
        """Whether its noise keeps its epsilon."""
        ...

    def errors(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """One test error a draw."""
        ...


@dataclass(frozen=True)
class Standard:
    """Regularised logistic regression without noise."""

    name: str = STANDARD
    private: bool = False

    def errors(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """The one error that there is."""
        return fold.errors(fold.exact[:, None])


def ball_risk(n_columns: int) -> ERMProblem:
    """What the paper minimises: the logistic loss of rows in the unit ball, without an intercept."""
    return ERMProblem(LOGISTIC, fit_intercept=False, features=ShortenedRows(n_columns, 1.0, constant=False))


def plan_in_ball(mechanism: Perturbation, n_columns: int, epsilon: float, n_rows: int) -> ERMPlan:
    """Noise and ridge of one of privfit's mechanisms for rows in the unit ball."""
    risk = ball_risk(n_columns)
    geometry = mechanism.geometry(box(n_columns), risk, "slope")
    return mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(epsilon)), n_rows), risk)


def box(n_columns: int) -> Schema:
    """What a schema says of points on the sphere: every coordinate lies in [-1, 1].

    That they have length 1 an estimator knows by row_norm.
    """
    return Schema.box(-1.0, 1.0, n_features=n_columns, target=[-1, 1])


@dataclass(frozen=True)
class Sensitivity:
    """Algorithm 1: noise on the minimum, as privfit's output perturbation draws it."""

    name: str = SENSITIVITY
    private: bool = True

    def weights(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """One column a draw."""
        plan = plan_in_ball(OutputPerturbation(fold.sum_ridge, "l2"), fold.features.shape[1], epsilon, len(fold.labels))
        noise = SeededNoise(seeded_generator([seed, fold.number]))
        whole = np.rint(fold.exact * plan.event.unit).astype(np.int64)
        return np.column_stack([noised(noise, whole, plan.event.parts) for _ in range(draws)]) / plan.event.unit

    def errors(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """One test error a draw."""
        return fold.errors(self.weights(fold, epsilon, draws, seed))


@dataclass(frozen=True)
class Repaired:
    """Algorithm 2 with noise and ridge of privfit's rule.

    `steepest` is that of pf.ObjectivePerturbation; the paper's loss has 1.
    """

    steepest: float | Literal["auto"] = 1.0
    name: str = REPAIRED
    private: bool = True
    calibration: Literal["tight", "paper"] = "tight"

    def weights(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """One column a draw: what pf.ObjectivePerturbation releases, solved for all draws at once."""
        columns = fold.features.shape[1]
        mechanism = ObjectivePerturbation(fold.sum_ridge, "l2", self.steepest, calibration=self.calibration)
        plan = plan_in_ball(mechanism, columns, epsilon, len(fold.labels))
        noise = SeededNoise(seeded_generator([seed, fold.number]))
        zeros = np.zeros(columns, dtype=np.int64)
        noises = np.column_stack([noised(noise, zeros, plan.event.main) for _ in range(draws)]) / plan.event.unit
        found = perturbed_minima(fold.signed, plan.gradients.loss, plan.ridge, noises, fold.exact)
        certificate = plan.certificate
        if certificate is None:
            return found
        whole = np.rint(found * certificate.unit).astype(np.int64)
        return np.asarray(noise.laplace(whole, certificate.scale) / certificate.unit)

    def errors(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """One test error a draw."""
        return fold.errors(self.weights(fold, epsilon, draws, seed))


@dataclass(frozen=True)
class Printed(Repaired):
    """Algorithm 2 as printed."""

    name: str = PRINTED
    private: bool = False
    calibration: Literal["tight", "paper"] = "paper"


@dataclass(frozen=True)
class Default:
    """privfit's estimator with its own ridge, loss and noise.

    It is given what the paper's methods know: rows have length 1, and planes go through the origin; or a box only, and
    it fits an intercept.
    """

    row_norm: float | None = 1.0
    name: str = DEFAULT
    private: bool = True

    def errors(self, fold: Fold, epsilon: float, draws: int, seed: int) -> Floats:
        """One test error a draw."""
        schema, found = box(fold.features.shape[1]), []
        told: dict[str, Any] = {"numeric": "slope", "row_norm": self.row_norm, "fit_intercept": self.row_norm is None}
        for draw in range(draws):
            model = LogisticRegression(
                epsilon, schema=schema, random_state=seeded_generator([seed, fold.number, draw]), **told
            )
            predicted = model.fit(fold.features, fold.labels.astype(int)).predict(fold.test_features)
            found.append(np.mean(predicted != fold.test_labels))
        return np.array(found)


METHODS: tuple[Method, ...] = (Sensitivity(), Printed(), Standard())
"""Those of the paper."""
OURS: tuple[Method, ...] = (Repaired(), Repaired("auto", HALVED), Default(), Default(None, BOXED))


# -- results ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Test errors of one method.

    `deviation` is over all folds and draws, `of_folds` over the means of the folds. Without noise there is no epsilon.

    `private` says whether the method's noise keeps its epsilon; the draws themselves are seeded.
    """

    table: Kind
    method: str
    epsilon: float | None
    rows: int
    draws: int
    mean: float
    deviation: float
    of_folds: float
    private: bool

    def to_dict(self) -> dict[str, float | str | int | bool | None]:
        """As plain values."""
        return asdict(self)


def table_of_errors(
    kind: Kind,
    epsilon: float,
    methods: Sequence[Method] = METHODS,
    draws: int = N_DRAWS,
    rows: int | None = None,
    seed: int = 0,
    n_points: int = N_POINTS,
) -> list[Errors]:
    """One row a method: the paper's Figure 1."""
    return epsilon_curve(kind, (epsilon,), methods, draws, rows, seed, n_points)


def epsilon_curve(
    kind: Kind,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[Method] = METHODS,
    draws: int = N_DRAWS,
    rows: int | None = None,
    seed: int = 0,
    n_points: int = N_POINTS,
) -> list[Errors]:
    """One row for every epsilon and method: the paper's Figure 2c and 2d.

    The noise of a fold has the same directions for every epsilon.
    """
    folds = list(points(kind, n_points, seed=seed).folds(rows=rows))
    results = []
    for epsilon in epsilons:
        for method in methods:
            errors = np.array([method.errors(fold, epsilon, draws, seed + 1) for fold in folds])
            results.append(
                Errors(
                    kind,
                    method.name,
                    None if isinstance(method, Standard) else epsilon,
                    len(folds[0].labels),
                    errors.shape[1],
                    mean=float(errors.mean()),
                    deviation=float(errors.std()),
                    of_folds=float(errors.mean(axis=1).std()),
                    private=method.private,
                )
            )
    return results


def learning_curve(
    kind: Kind,
    epsilon: float,
    sizes: Sequence[int] = SIZES,
    methods: Sequence[Method] = METHODS,
    draws: int = N_DRAWS,
    seed: int = 0,
    n_points: int = N_POINTS,
) -> list[Errors]:
    """One row for every number of rows to fit on and method: the paper's Figure 2a and 2b."""
    return [row for size in sizes for row in table_of_errors(kind, epsilon, methods, draws, size, seed, n_points)]


def distances(curves: Sequence[Errors]) -> dict[float, float]:
    """How far the two private methods' mean errors lie from the paper's, in root mean square over both tables, for
    every epsilon.
    """
    apart: dict[float, list[float]] = {}
    for row in curves:
        if row.epsilon is not None and row.method in PAPER[row.table]:
            apart.setdefault(row.epsilon, []).append(row.mean - PAPER[row.table][row.method][0])
    return {epsilon: float(np.sqrt(np.mean(np.square(found)))) for epsilon, found in apart.items()}


def closest_epsilon(curves: Sequence[Errors]) -> float:
    """The epsilon, of those on the curves, with errors closest to the paper's."""
    found = distances(curves)
    return min(found, key=lambda epsilon: found[epsilon])


def holdout_errors(kind: Kind, ridges: Sequence[float], n_points: int = 10_000, seed: int = 100) -> dict[float, float]:
    """The test error of logistic regression without noise over five folds of other points, for every ridge: how the
    paper chose its own.
    """
    folds = list(points(kind, n_points, seed=seed).folds())
    errors = {}
    for ridge in ridges:
        tried = [Fold(fold.features, fold.labels, fold.test_features, fold.test_labels, ridge=ridge) for fold in folds]
        errors[ridge] = float(np.mean([fold.errors(fold.exact[:, None]) for fold in tried]))
    return errors
