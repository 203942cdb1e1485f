"""Functions that release something, in the form of something to fit: one line for each kind of question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Self

from privfit.audit.cases import EXPECTED, Case, Fits, Maker, Setting
from privfit.audit.rows import RowMaker
from privfit.evaluation import evaluate
from privfit.models import PCA, KMeans, LinearRegression, LogisticRegression, QuantileRegressor
from privfit.models.private import AnyModel
from privfit.privacy import Adjacency, Ledger
from privfit.schema import Category, Column, Numeric, Schema
from privfit.summaries import (
    bounds,
    count,
    crosstab,
    describe,
    frequent_itemsets,
    histogram,
    kaplan_meier,
    levels,
    mean,
    quantile,
)

Asked = tuple[Callable[..., Any], str, tuple[Column, ...], tuple[Any, ...], Setting]
"""A function, what is asked in words, the columns of its tables, what it is given, and settings."""

INCOME, DEBT = Numeric("income", 0, 1000), Numeric("debt", -1e6, 1e3)
FLAGS = tuple(Category(name, [0, 1]) for name in "abc")
TIME, DIED = Numeric("years", 0, 5, bins=4), Category("died", [0, 1])
SEX, JOB = Category("sex", ["f", "m"]), Category("job", ["cook", "smith"], other=True)
TABLE: tuple[Asked, ...] = (
    (count, "levels", (JOB,), (JOB, ["cook"]), {}),
    (count, "range", (INCOME,), (INCOME, (30, 60)), {}),
    (mean, "", (INCOME,), (INCOME,), {}),
    (mean, "both signs", (DEBT,), (DEBT,), {"rows_per_person": 2}),
    (quantile, "", (INCOME,), (INCOME,), {}),
    (quantile, "two", (DEBT,), (DEBT, [0.2, 0.9]), {"rows_per_person": 2}),
    (histogram, "", (SEX,), (SEX,), {}),
    (crosstab, "", (SEX, JOB), ([SEX, JOB],), {}),
    (crosstab, "", (SEX, JOB), ([SEX, JOB],), {"rows_per_person": 2}),
    (describe, "", (INCOME, SEX), (Schema([INCOME, SEX]),), {}),
    (describe, "", (INCOME, SEX), (Schema([INCOME, SEX]),), {"rows_per_person": 2}),
    (levels, "", (JOB,), (JOB,), {}),
    (frequent_itemsets, "", (SEX, JOB), ([SEX, JOB],), {"k": 3}),
    (frequent_itemsets, "", (SEX, JOB), ([SEX, JOB],), {"k": 3, "rows_per_person": 2}),
    (frequent_itemsets, "flags", FLAGS, (FLAGS,), {"k": 5, "delta": 1e-6}),
    (bounds, "", (INCOME, DEBT), ({"income": INCOME, "debt": DEBT},), {}),
    (bounds, "", (INCOME, DEBT), ({"income": INCOME, "debt": DEBT},), {"delta": 1e-6}),
    (kaplan_meier, "", (TIME, DIED), (TIME, "died"), {}),
    (kaplan_meier, "", (TIME, DIED), (TIME, DIED), {"rows_per_person": 2}),
)
PUBLIC_ROWS = 200
"""Rows that a model is fitted to before it is evaluated: it is public, and any model will do."""


class Question:
    """A function that releases something, as something to fit."""

    def __init__(self, ask: Callable[..., Any], adjacency: Adjacency, ledger: Ledger, epsilon: float) -> None:
        self.ask, self.ledger = ask, ledger
        self._given: dict[str, Any] = {"adjacency": adjacency, "epsilon": epsilon, "ledger": ledger}
        if adjacency == "add-remove":
            self._given["expected_rows"] = EXPECTED

    def fit(self, X: object, /) -> Self:
        """Ask the table."""
        self.answer_ = self.ask(X, **self._given)
        self.printed_, self.report_ = str(self.answer_), self.answer_.report
        return self


def questions(seed: int) -> Iterator[Case]:
    """Every function, with what is asked of it."""
    for function, what, columns, given, setting in TABLE:
        shown = {**({"of": what} if what else {}), **setting}
        yield _case(function, _question(function, given, setting), Schema(columns), shown, seed)
    for what, (schema, _) in EVALUATED.items():
        for setting in ({}, {"rows_per_person": 2}) if what == "numbers" else ({},):
            yield _case(evaluate, _evaluation(what, setting), schema, {"of": what, **setting}, seed)


def _case(function: Callable[..., Any], make: Maker, schema: Schema, shown: Setting, seed: int) -> Case:
    own = int(shown.get("rows_per_person", 1))
    return Case(function.__name__, make, schema, shown, seed=seed, rows_of_a_person=own)


def _question(function: Callable[..., Any], given: Sequence[Any], setting: Setting) -> Maker:
    def ask(table: object, **terms: Any) -> Any:
        return function(table, *given, **setting, **terms)

    def make(adjacency: Adjacency, ledger: Ledger, epsilon: float) -> Fits:
        return Question(ask, adjacency, ledger, epsilon)

    return make


# -- models that are evaluated -----------------------------------------------------------------------

EVALUATED: dict[str, tuple[Schema, Callable[..., AnyModel]]] = {
    "classes": (Schema((INCOME, SEX), Category("ill", ["no", "yes"])), LogisticRegression),
    "numbers": (Schema((Numeric("age", 0, 100), SEX), INCOME), LinearRegression),
    "quantiles": (Schema((Numeric("age", 0, 100), SEX), INCOME), QuantileRegressor),
    "clusters": (Schema((INCOME, Numeric("age", 0, 100))), partial(KMeans, 3)),
    "components": (Schema((INCOME, Numeric("age", 0, 100))), partial(PCA, 1)),
}


@cache
def _public(what: str) -> AnyModel:
    """A model that is evaluated, fitted to random rows of its schema."""
    schema, estimator = EVALUATED[what]
    rows = RowMaker(schema, 1)
    return estimator(schema=schema, random_state=0).fit(
        rows.frame(tuple(rows.random_row() for _ in range(PUBLIC_ROWS)))
    )


def _evaluation(what: str, setting: Setting) -> Maker:
    def ask(table: object, **terms: Any) -> Any:
        return evaluate(_public(what), table, **setting, **terms)

    def make(adjacency: Adjacency, ledger: Ledger, epsilon: float) -> Fits:
        _public(what)  # with noise of its own
        return Question(ask, adjacency, ledger, epsilon)

    return make
