"""The methods of the functional-mechanism paper on one fold: test errors, and the seconds that the process spends on a
fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.baselines import DPME, FilterPriority, NoPrivacy, Truncated
from privfit.baselines.truncated import Noiseless
from privfit.models import LinearRegression, LogisticRegression
from privfit.privacy import PrivacyError
from privfit.publish.publisher import AnyPublisher
from privfit.schema import Numeric, SchemaError
from privfit_papers.bench.kept_sums import FunctionalOnce, KeptSums
from privfit_papers.bench.papers.functional_mechanism.tables import Kind, Task
from privfit_papers.bench.publishers import trained_on

FOLDS = 5
FM, FP, NO_PRIVACY, TRUNCATED = "FM", "FP", "NoPrivacy", "Truncated"
PUBLISHERS: dict[str, type[AnyPublisher]] = {"DPME": DPME, FP: FilterPriority}
NOISELESS_FM = "FM without noise"
CONSTANT = "constant prediction"
OURS, OURS_FUNCTIONAL = "privfit", "privfit, functional"
ESTIMATORS: dict[Kind, Any] = {"linear": LinearRegression, "logistic": LogisticRegression}

Predict = Callable[[pl.DataFrame], NDArray[Any]]
Seeds = Callable[..., int]
"""A seed for a purpose."""


@dataclass(frozen=True)
class Point:
    """A place on the x-axis: how many attributes, which share of the rows, which epsilon."""

    x: float
    d: int
    rate: float
    epsilon: float


@dataclass(frozen=True)
class Measured:
    """One fit of one method: its test error, and the seconds it took, where it is a fit."""

    method: str
    x: float
    error: float
    seconds: float | None


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, rows to test on without their target, and the truth about them."""

    kind: Kind
    task: Task
    train: pl.DataFrame
    test: pl.DataFrame
    truth: NDArray[Any]

    @classmethod
    def of(cls, kind: Kind, task: Task, order: NDArray[np.intp], rate: float, fold: int) -> Fold:
        """One of five folds of the first rows in a random order: the share `rate` of them."""
        places = order[: round(rate * len(order))]
        tested = np.arange(len(places)) % FOLDS == fold
        target = task.schema.target
        assert target is not None
        test = task.frame[places[tested]]
        truth = test[target.name].to_numpy()
        if isinstance(target, Numeric):
            truth = np.clip(truth.astype(np.float64), target.low, target.high)
        return cls(kind, task, task.frame[places[~tested]], test.drop(target.name), truth)

    def error(self, predicted: NDArray[Any]) -> float:
        """The mean squared error of a target scaled to [-1, 1] by its bounds; or the share of wrong classes."""
        target = self.task.schema.target
        if isinstance(target, Numeric):
            return float(np.mean(((predicted - self.truth) * 2 / (target.high - target.low)) ** 2))
        return float(np.mean(predicted.astype(str) != self.truth.astype(str)))


def measured(fold: Fold, points: Sequence[Point], seed: Seeds, draws: int) -> Iterator[Measured]:
    """Every method at every point, all of which share the fold.

    Fits from sums that are kept are drawn `draws` times.
    """
    yield from _references(fold, points)
    functional = {FM: FunctionalOnce(calibration="paper", repair="trim"), OURS_FUNCTIONAL: FunctionalOnce()}
    for method, mechanism in functional.items():
        name = OURS if method == OURS_FUNCTIONAL and fold.kind == "linear" else method
        for point in points:
            for draw in range(draws):
                yield _functional(name, fold, point, mechanism, seed(name, fold.kind, point.x, draw))
    if fold.kind == "logistic":
        for point in points:
            yield _direct(
                OURS,
                fold,
                point.x,
                LogisticRegression(point.epsilon, schema=fold.task.schema, random_state=seed(OURS, point.x)),
            )
    for method, publisher in PUBLISHERS.items():
        for point in points:
            with suppress(SchemaError, PrivacyError):  # too many cells: the line has a gap
                yield _published(method, fold, point, publisher, seed(method, fold.kind, point.x))


def _references(fold: Fold, points: Iterable[Point]) -> Iterator[Measured]:
    """What has no noise, the same at every point."""
    schema = fold.task.schema
    assert schema.target is not None
    models: dict[str, Any] = {NO_PRIVACY: NoPrivacy(fold.kind, schema=schema)}
    if fold.kind == "logistic":
        models[TRUNCATED] = Truncated(schema=schema)
    exact = Noiseless(calibration="paper", repair=None, noise="laplace")
    models[NOISELESS_FM] = ESTIMATORS[fold.kind](
        1.0, schema=schema, mechanism=exact, fit_intercept=False, random_state=0
    )
    found = [_direct(method, fold, 0.0, model) for method, model in models.items()]
    seen = fold.train[schema.target.name]
    usual: Any = seen.mean() if isinstance(schema.target, Numeric) else seen.mode()[0]
    found.append(Measured(CONSTANT, 0.0, fold.error(np.full(len(fold.truth), usual)), None))
    for point in points:
        for one in found:
            yield Measured(one.method, point.x, one.error, None if one.method == NOISELESS_FM else one.seconds)


def _direct(method: str, fold: Fold, x: float, model: Any) -> Measured:
    started = time.process_time()
    model.fit(fold.train)
    seconds = time.process_time() - started
    return Measured(method, x, fold.error(np.asarray(model.predict(fold.test))), seconds)


def _functional(method: str, fold: Fold, point: Point, mechanism: FunctionalOnce, seed: int) -> Measured:
    """A fit from kept sums, with the seconds that it would have spent on them."""
    model = ESTIMATORS[fold.kind](point.epsilon, schema=fold.task.schema, mechanism=mechanism, random_state=seed)
    once = _direct(method, fold, point.x, model)
    assert once.seconds is not None
    kept: KeptSums = mechanism.kept
    return Measured(method, point.x, once.error, once.seconds + kept.saved)


def _published(method: str, fold: Fold, point: Point, publisher: type[AnyPublisher], seed: int) -> Measured:
    """A noisy table, and scikit-learn's regression on it; both count for the time."""
    started = time.process_time()
    table = publisher(point.epsilon, schema=fold.task.schema, random_state=seed).fit(fold.train)
    predict: Predict = trained_on(table.to_frame(), table.weights_, fold.task.schema)
    seconds = time.process_time() - started
    return Measured(method, point.x, fold.error(predict(fold.test)), seconds)
