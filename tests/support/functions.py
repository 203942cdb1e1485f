"""Functions that release something, as cases for the conformance suite: each with a schema of the rows that it is given
and a way to ask it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import privfit as pf
from privfit import mechanisms

Ask = Callable[..., Any]

INCOME = pf.Numeric("income", 0, 1000, fill=10.0)
DEBT = pf.Numeric("debt", -1e6, 1e3)
AGE = pf.Numeric("age", 17, 90)
LOSS = pf.Numeric("loss", -1e4, -2)


@dataclass(frozen=True)
class Case:
    """One way to call a function: `ask` takes the table and what all functions take."""

    name: str
    function: Callable[..., Any]
    mechanism: str
    columns: tuple[Any, ...]
    ask: Ask
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, table: Any, adjacency: str, ledger: Any, **more: Any) -> Any:
        rows = {"expected_rows": 40} if adjacency == "add-remove" else {}
        return self.ask(table, adjacency=adjacency, ledger=ledger, **{"epsilon": 0.7, **rows, **self.options, **more})


def _bounds(*columns: Any, **options: Any) -> Ask:
    return lambda table, **more: pf.bounds(table, {column.name: column for column in columns}, **options, **more)


SEX = pf.Category("sex", ["f", "m"], fill="f")
JOB = pf.Category("job", ["cook", "smith", "clerk"], other=True)
BINNED = pf.Numeric("pay", 0, 1e5, bins=[10, 100, 5000], fill="missing")
GAIN = pf.Numeric("gain", -5000, 1e6)


def _asked(function: Any, *given: Any) -> Ask:
    return lambda table, **more: function(table, *given, **more)


def _described(*columns: Any, **options: Any) -> Ask:
    return lambda table, **more: pf.describe(table, pf.Schema(columns), **options, **more)


GAPS = pf.Numeric("size", -3, 3, fill=0.5)
SPEED = pf.Numeric("speed", 0, 1e6)
ILL, KIND = pf.Category("ill", ["no", "yes"]), pf.Category("kind", ["a", "b", "c"])
BASKET = tuple(pf.Category(name, [0, 1]) for name in ("bread", "milk", "salt"))
COST = pf.Numeric("cost", 0, 100)


YEARS = pf.Numeric("years", 0, 5, bins=[1, 2, 4], fill=0.5)
DIED = pf.Category("died", ["no", "yes"])


@cache
def fitted(estimator: Any, target: Any, **options: Any) -> Any:
    """A model of rows that are made up, as it is evaluated on others."""
    generator = np.random.default_rng(0)
    size, job = generator.normal(size=300), generator.choice(JOB.levels[:-1], 300)
    rows = pl.DataFrame({"size": size, "speed": generator.lognormal(5, 2, 300), "job": job})
    if target is not None:
        share = np.clip((size + (job == "cook") + 3 + generator.normal(size=300)) / 7, 0.0, 0.999)
        levels = getattr(target, "levels", None)
        values = np.array(levels)[(share * len(levels)).astype(int)] if levels else share * target.high
        rows = rows.with_columns(pl.Series(target.name, values))
    features = [GAPS, SPEED, JOB] if target is not None else [GAPS, SPEED]
    schema = pf.Schema(features, target)
    return estimator(epsilon=3.0, schema=schema, random_state=0, **options).fit(rows)


def _evaluated(estimator: Any, target: Any, **options: Any) -> Ask:
    model = fitted(estimator, target, **options)  # now, and not while somebody watches
    return lambda table, **more: pf.evaluate(model, table, **more)


STAY, LEFT = pf.Numeric("stay", 0, 30, fill=3.0), pf.Category("left", ["no", "yes"])


def _hazards() -> Ask:
    """A model of log hazards of rows that are made up, as it is evaluated on others."""
    generator = np.random.default_rng(0)
    speed, stay = generator.lognormal(5, 2, 300), generator.exponential(9.0, 300)
    rows = pl.DataFrame({"speed": speed, "stay": stay, "left": generator.choice(["no", "yes"], 300)})
    schema = pf.Schema([SPEED])
    model = pf.CoxRegression(3.0, schema=schema, time=STAY, event=LEFT, random_state=0).fit(rows)
    return lambda table, **more: pf.evaluate(model, table, **more)


CASES = (
    Case("count levels", pf.count, "Summary", (JOB,), _asked(pf.count, JOB, ["cook", "other"])),
    Case("count range", pf.count, "Summary", (AGE,), _asked(pf.count, AGE, (30, 60))),
    Case("mean", pf.mean, "Summary", (INCOME,), _asked(pf.mean, INCOME)),
    Case("mean of both signs", pf.mean, "Summary", (GAIN,), _asked(pf.mean, GAIN)),
    Case("mean below zero", pf.mean, "Summary", (LOSS,), _asked(pf.mean, LOSS)),
    Case("median", pf.quantile, "Summary", (INCOME,), _asked(pf.quantile, INCOME)),
    Case("bare median", pf.quantile, "Summary", (INCOME,), _asked(pf.quantile, INCOME), {"intervals": False}),
    Case("quantiles", pf.quantile, "Summary", (GAIN,), _asked(pf.quantile, GAIN, [0.2, 0.9])),
    Case("histogram", pf.histogram, "Summary", (BINNED,), _asked(pf.histogram, BINNED)),
    Case("describe", pf.describe, "Summary", (INCOME, GAIN, SEX), _described(INCOME, GAIN, SEX)),
    Case("describe bins", pf.describe, "Summary", (BINNED, JOB), _described(BINNED, JOB, quantiles=(0.25, 0.75))),
    Case("levels", pf.levels, "Summary", (JOB,), _asked(pf.levels, JOB)),
    Case("itemsets", pf.frequent_itemsets, "ItemsetSearch", BASKET, _asked(pf.frequent_itemsets, BASKET), {"k": 6}),
    Case(
        "itemsets delta",
        pf.frequent_itemsets,
        "ItemsetSearch",
        (SEX, BINNED),
        _asked(pf.frequent_itemsets, [SEX, BINNED]),
        {"k": 9, "delta": 0.05},
    ),
    Case("crosstab", pf.crosstab, "CrossCounts", (SEX, BINNED), _asked(pf.crosstab, [SEX, BINNED])),
    Case("survival", pf.kaplan_meier, "SurvivalCounts", (AGE, DIED), _asked(pf.kaplan_meier, AGE, DIED)),
    Case(
        "survival by group",
        pf.kaplan_meier,
        "SurvivalCounts",
        (YEARS, DIED, JOB),
        lambda table, **more: pf.kaplan_meier(table, YEARS, DIED, by=JOB, **more),
    ),
    Case(
        "evaluate two classes",
        pf.evaluate,
        "Summary",
        (GAPS, SPEED, JOB, ILL),
        _evaluated(pf.LogisticRegression, ILL, numeric="splines"),
    ),
    Case("evaluate scores", pf.evaluate, "Summary", (GAPS, SPEED, JOB, ILL), _evaluated(pf.LinearSVC, ILL)),
    Case(
        "evaluate accuracy",
        pf.evaluate,
        "Summary",
        (GAPS, SPEED, JOB, ILL),
        _evaluated(pf.LogisticRegression, ILL, kernel="rbf", n_components=6),
        {"metrics": "accuracy"},
    ),
    Case("evaluate classes", pf.evaluate, "Summary", (GAPS, SPEED, JOB, KIND), _evaluated(pf.LogisticRegression, KIND)),
    Case(
        "evaluate numbers",
        pf.evaluate,
        "ResidualSums",
        (GAPS, SPEED, JOB, COST),
        _evaluated(pf.LinearRegression, COST, mechanism="functional"),
    ),
    Case("evaluate clusters", pf.evaluate, "Summary", (GAPS, SPEED), _evaluated(pf.KMeans, None, n_clusters=2)),
    Case("bounds", pf.bounds, "SelectedBounds", (INCOME, DEBT), _bounds(INCOME, DEBT)),
    Case("bounds both ends", pf.bounds, "SelectedBounds", (DEBT, AGE), _bounds(DEBT, AGE, ends="both", grid="linear")),
    Case("bounds delta", pf.bounds, "SelectedBounds", (INCOME, DEBT, AGE), _bounds(INCOME, DEBT, AGE), {"delta": 1e-3}),
    Case(
        "evaluate quantiles",
        pf.evaluate,
        "ResidualSums",
        (GAPS, SPEED, JOB, COST),
        _evaluated(pf.QuantileRegressor, COST, quantile=0.8),
    ),
    Case(
        "evaluate components",
        pf.evaluate,
        "Summary",
        (GAPS, SPEED),
        _evaluated(pf.PCA, None, n_components=1, scale="bounds"),
    ),
    Case("evaluate hazards", pf.evaluate, "Summary", (SPEED, STAY, LEFT), _hazards()),
)


class Asked:
    """A function as the observer of control flow knows models: made, then fitted on a table."""

    def __init__(self, case: Case, schema: pf.Schema, adjacency: str, ledger: Any) -> None:
        self.case, self.adjacency, self.ledger = case.name, adjacency, ledger
        self._case = case

    def __repr__(self) -> str:
        return f"Asked({self.case})"

    def fit(self, table: Any) -> Asked:
        answer = self._case(table, self.adjacency, self.ledger)
        self.answer_, self.printed_, self.report_ = answer, str(answer), answer.report
        return self

    def _chosen_mechanism(self) -> Any:
        return getattr(mechanisms, self._case.mechanism)()
