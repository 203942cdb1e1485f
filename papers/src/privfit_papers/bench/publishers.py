"""Regressions on published tables beside privfit's own: test errors, mean and spread over splits.

Noise is seeded and errors are measured on rows themselves, so nothing here is a private release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic

from privfit.baselines import DPME, FilterPriority, LaplacePublisher, Majority, NoPrivacy, Truncated
from privfit.datasets.census import HIGH_INCOME, INCOME, census_schema, generated_census, with_high_income
from privfit.models import LinearRegression, LogisticRegression
from privfit.privacy import PrivacyError, seeded_generator
from privfit.publish.publisher import AnyPublisher
from privfit.schema import Category, Numeric, Schema, SchemaError
from privfit_papers.bench.accuracy import TRAIN_SHARE, design_matrix
from privfit_papers.bench.cps import WAGES, cps_wages

Floats = NDArray[np.float64]
Fit = Callable[[pl.DataFrame, pl.DataFrame, Schema, float, int], NDArray[Any]]
"""What a method predicts for the second table, fitted on the first, for a schema, an epsilon and a seed."""

EPSILONS = (0.1, 0.8, 3.2)
FIRST_SEED = 1_000_000
PEOPLE = 50_000
HIGH_WAGE, HIGH_WAGE_FROM = "high_wage", 30_000
"""The public threshold, in dollars a year, above which a wage counts as high."""
DIMENSIONS: Mapping[int, tuple[str, ...]] = {
    5: ("age", "gender", "education", "family"),
    8: ("nativity", "dwelling", "cars"),
    11: ("marital", "children"),
    14: ("disability", "hours", "residence"),
}
"""Attributes that each step adds, as in the functional-mechanism paper, which counts marital status as two and the
target as one.
"""


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A table and what is predicted: a number, or one of two classes."""

    name: str
    frame: pl.DataFrame
    schema: Schema

    @property
    def classifies(self) -> bool:
        """Whether the target is a class."""
        return isinstance(self.schema.target, Category)


def census_tasks(dimensions: Sequence[int], people: int = PEOPLE) -> list[Task]:
    """The generated census with so many attributes: incomes, and whether they are high."""
    frame, tasks = generated_census(people, seed=0), []
    for target, table in ((INCOME, frame), (HIGH_INCOME, with_high_income(frame))):
        whole = census_schema(target)  # type: ignore[arg-type]
        for d in dimensions:
            wanted = {name for step, names in DIMENSIONS.items() if step <= d for name in names}
            schema = Schema([column for column in whole.features if column.name in wanted], whole.target)
            tasks.append(Task(f"census, d = {d}, {target}", table, schema))
    return tasks


def cps_tasks(folder: Path) -> list[Task]:
    """Wages of US tax units, with and without states, and whether they are high."""
    frame, schema = cps_wages(folder)
    few = Schema([column for column in schema.features if column.name != "fips"], schema.target)
    high = pl.when(pl.col(WAGES) > HIGH_WAGE_FROM).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(HIGH_WAGE)
    classes = Schema(schema.features, Category(HIGH_WAGE, ["no", "yes"]))
    return [
        Task("CPS, 5 features, wages", frame, schema),
        Task("CPS without states, 4 features, wages", frame, few),
        Task("CPS, 5 features, high wages", frame.with_columns(high).drop(WAGES), classes),
    ]


# -- methods ---------------------------------------------------------------------------------------


def trained(published: pl.DataFrame, weights: Floats, test: pl.DataFrame, schema: Schema) -> NDArray[Any]:
    """What scikit-learn's regression, trained on published rows, predicts.

    Without a row of positive weight: the middle of the bounds, or the first class.
    """
    return trained_on(published, weights, schema)(test)


def trained_on(published: pl.DataFrame, weights: Floats, schema: Schema) -> Callable[[pl.DataFrame], NDArray[Any]]:
    """The same regression, trained; call it with rows to predict for."""
    target = schema.target
    assert target is not None
    kept = weights > 0
    values = published.get_column(target.name).to_numpy()[kept] if kept.any() else np.empty(0)
    if isinstance(target, Category):
        classes = np.unique(values.astype(str)) if len(values) else np.array([str(target.levels[0])])
        if len(classes) == 1:
            return lambda test: np.full(test.height, classes[0])
        model: Any = PlainLogistic(max_iter=300)
    elif not len(values):
        middle = target.low / 2 + target.high / 2
        return lambda test: np.full(test.height, middle)
    else:
        model = PlainLinear()
    model.fit(_scaled(design_matrix(published, schema)[:, 1:], schema)[kept], values, sample_weight=weights[kept])
    return lambda test: np.asarray(model.predict(_scaled(design_matrix(test, schema)[:, 1:], schema)))


def _scaled(design: Floats, schema: Schema) -> Floats:
    """Numbers in [-1, 1]: logistic regression on dollars and years would take long."""
    place = 0
    for column in schema.features:
        if isinstance(column, Numeric):
            design[:, place] = 2 * (design[:, place] - column.low) / (column.high - column.low) - 1
            place += 1
        else:
            place += len(column.levels)
    return design


def _published(make: Callable[..., AnyPublisher], **parameters: Any) -> Fit:
    def fit(train: pl.DataFrame, test: pl.DataFrame, schema: Schema, epsilon: float, seed: int) -> NDArray[Any]:
        table = make(epsilon, schema=schema, random_state=seed, **parameters).fit(train)
        return trained(table.to_frame(), table.weights_, test, schema)

    return fit


def _own(make: Callable[..., Any]) -> Fit:
    def fit(train: pl.DataFrame, test: pl.DataFrame, schema: Schema, epsilon: float, seed: int) -> NDArray[Any]:
        return np.asarray(make(epsilon, schema=schema, random_state=seed).fit(train).predict(test))

    return fit


def _noiseless(make: Callable[..., Any]) -> Fit:
    def fit(train: pl.DataFrame, test: pl.DataFrame, schema: Schema, epsilon: float, seed: int) -> NDArray[Any]:
        return np.asarray(make(schema=schema).fit(train).predict(test))

    return fit


def _noisy_values(train: pl.DataFrame, test: pl.DataFrame, schema: Schema, epsilon: float, seed: int) -> NDArray[Any]:
    """Least squares on noisy values: levels are numbers there, of two levels the second."""
    assert schema.target is not None
    table = LaplacePublisher(epsilon, schema=schema, random_state=seed).fit(train)
    names = [name for name in table.columns_ if name != schema.target.name]
    shown = pl.DataFrame(
        {
            f"{column.name}_{level}": (test[column.name] == level).cast(pl.Float64)
            for column in schema.features
            if isinstance(column, Category)
            for level in column.levels
        }
        | {column.name: test[column.name].cast(pl.Float64) for column in schema.features if isinstance(column, Numeric)}
    )
    rows = np.column_stack([table.columns_[name] for name in names])
    return np.asarray(
        PlainLinear().fit(rows, table.columns_[schema.target.name]).predict(shown.select(names).to_numpy())
    )


NO_PRIVACY = "no privacy"
LINEAR: Mapping[str, Fit] = {
    "privfit": _own(LinearRegression),
    "DPME": _published(DPME),
    "Filter-Priority": _published(FilterPriority),
    "Laplace publishing": _noisy_values,
}
LOGISTIC: Mapping[str, Fit] = {
    "privfit": _own(LogisticRegression),
    "DPME": _published(DPME),
    "Filter-Priority": _published(FilterPriority),
    "GUPT": _own(partial(LogisticRegression, mechanism="sample-and-aggregate")),
    "Majority": _own(Majority),
}
WITHOUT_NOISE: Mapping[bool, Mapping[str, Fit]] = {
    False: {NO_PRIVACY: _noiseless(lambda schema: NoPrivacy("linear", schema=schema))},
    True: {
        NO_PRIVACY: _noiseless(lambda schema: NoPrivacy("logistic", schema=schema)),
        "Truncated": _noiseless(lambda schema: Truncated(schema=schema)),
    },
}


# -- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Test errors, mean and standard deviation over splits: the share of wrong classes; for numbers the root mean
    square, as a share of that of predicting the mean.

    A method that refuses has its sentence in `refused`, and no errors. Without an epsilon there was no noise.
    """

    table: str
    method: str
    epsilon: float | None
    runs: int
    mean: float | None
    deviation: float | None
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def measured(task: Task, epsilons: Sequence[float] = EPSILONS, runs: int = 5) -> list[Errors]:
    """Every method on `runs` random 80/20 splits. Run i has the same split and seed for all."""
    noisy = LOGISTIC if task.classifies else LINEAR
    found = [_spread(task, name, fit, epsilon, runs) for name, fit in noisy.items() for epsilon in epsilons]
    return [*found, *(_spread(task, name, fit, None, runs) for name, fit in WITHOUT_NOISE[task.classifies].items())]


def _spread(task: Task, method: str, fit: Fit, epsilon: float | None, runs: int) -> Errors:
    target = task.schema.target
    assert target is not None
    errors = []
    for run in range(runs):
        order = seeded_generator(run).permutation(task.frame.height)
        cut = int(TRAIN_SHARE * task.frame.height)
        train, test = task.frame[order[:cut]], task.frame[order[cut:]]
        try:
            predicted = fit(train, test.drop(target.name), task.schema, epsilon or 1.0, FIRST_SEED + run)
        except (SchemaError, PrivacyError) as refusal:
            return Errors(task.name, method, epsilon, 0, None, None, str(refusal))
        errors.append(_error(predicted, train[target.name], test[target.name], task.schema))
    return Errors(task.name, method, epsilon, runs, float(np.mean(errors)), float(np.std(errors)))


def _error(predicted: NDArray[Any], seen: pl.Series, truth: pl.Series, schema: Schema) -> float:
    target = schema.target
    if isinstance(target, Category):
        return float(np.mean(predicted.astype(str) != truth.to_numpy().astype(str)))
    assert isinstance(target, Numeric)
    least, true = (np.clip(values.cast(pl.Float64).to_numpy(), target.low, target.high) for values in (seen, truth))
    return float(np.sqrt(np.mean((predicted - true) ** 2) / np.mean((least.mean() - true) ** 2)))
