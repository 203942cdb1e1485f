"""The four regressions of Dandekar, Basu and Bressan on one split: their functional mechanism and DPME, each as printed
and with an intercept, and privfit's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from privfit.models import ElasticNet, Lasso, LinearRegression, Ridge
from privfit.schema import Category, Schema
from privfit_papers.bench.grid import Cell, Experiment
from privfit_papers.bench.histogram import Counted, HistogramFits
from privfit_papers.bench.kept_sums import FunctionalOnce
from privfit_papers.bench.penalty import ALPHAS
from privfit_papers.bench.printed import PrintedFunctional, Scaled
from privfit_papers.bench.regularised import MEAN
from privfit_papers.bench.results import Value
from privfit_papers.bench.sources import Source
from privfit_papers.bench.split import Split, random_split, root_mean_square

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The paper does not print its own. Those below 0.1 are there because its instability does not show above."""
RUNS, QUICK_RUNS = 50, 20
PEOPLE = 316_276
FEW = ("age", "education", "married", "black")
"""Figure 1 has four predictors: age, gender, race and education.

The 1980 census is of men; whether they are married takes the place of gender.
"""
EMPLOYED = "employed"
INTERCEPTS = {"as printed": False, "with an intercept": True}
SHORT = {"linear": "LR", "ridge": "RG", "lasso": "LS", "elastic net": "EN"}
OURS: dict[str, Any] = {"linear": LinearRegression, "ridge": Ridge, "lasso": Lasso, "elastic net": ElasticNet}
FUNCTIONAL, DPME, NON_PRIVATE, PRIVFIT = "functional", "DPME", "non-private", "privfit"
TUNED_WITHOUT_NOISE, UNBOUNDED = "tuned without noise", "without a minimum"


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class People:
    """A table, and what it is called in panels."""

    frame: pl.DataFrame
    schema: Schema
    name: str
    origin: str
    notice: str


def men(source: Source) -> People:
    """The 1980 census: six predictors, logarithms of weekly wages."""
    loaded = source.census_1980()
    return People(loaded.frame, loaded.schema, "1980 census", loaded.origin, loaded.notice)


def people(source: Source, rows: int = PEOPLE) -> People:
    """The generated census with predictors like the paper's eight: employment from working hours, nativity in place of
    race, dwelling in place of house type.
    """
    loaded = source.generated_census(rows)
    employed = pl.when(pl.col("hours") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(EMPLOYED)
    known = {column.name: column for column in loaded.schema.features} | {EMPLOYED: Category(EMPLOYED, ["no", "yes"])}
    names = ("age", "gender", "nativity", "is_married", "family", "education", EMPLOYED, "dwelling")
    schema = Schema([known[name] for name in names], loaded.schema.target)
    return People(loaded.frame.with_columns(employed), schema, "generated census", loaded.origin, loaded.notice)


# -- Figure 1 --------------------------------------------------------------------------------------


def with_intercept(method: str, intercept: bool) -> str:
    """The name of a line."""
    return f"{method}, with intercept" if intercept else method


def measure_few(cell: Cell, table: People) -> Iterator[Value]:
    """Four predictors: one panel for each of the four models."""
    schema = Schema([column for column in table.schema.features if column.name in FEW], table.schema.target)
    split = random_split(table.frame, schema, cell.seed("split"))
    for intercept in INTERCEPTS.values():
        printed, histogram = PrintedFunctional(intercept), HistogramFits(intercept)
        scaled, counted = Scaled(split, intercept), Counted(split)
        exact = printed.drawn(scaled, None, 0)
        for epsilon in EPSILONS:
            found = printed.drawn(scaled, epsilon, cell.seed(FUNCTIONAL, intercept, epsilon))
            found |= histogram.drawn(counted, epsilon, cell.seed(DPME, intercept, epsilon))
            for model in ALPHAS:
                yield Value(model, with_intercept(FUNCTIONAL, intercept), epsilon, found[f"printed {model}"].error)
                yield Value(model, with_intercept(DPME, intercept), epsilon, found[f"DPME {model}"].error)
                yield Value(model, with_intercept(NON_PRIVATE, intercept), epsilon, exact[f"printed {model}"].error)
    for model, epsilon, error in _ours(cell, split):
        yield Value(model, PRIVFIT, epsilon, error)
        yield Value(model, MEAN, epsilon, split.mean_error)


# -- Figures 2 and 3 -------------------------------------------------------------------------------


def panel_name(table: str, reading: str) -> str:
    """The name of a panel."""
    return f"{table}, {reading}"


def measure_all(cell: Cell, table: People) -> Iterator[Value]:
    """All predictors, no histogram: one panel for each reading, a line for each of the four models."""
    split = random_split(table.frame, table.schema, cell.seed("split"))
    for reading, intercept in INTERCEPTS.items():
        panel, scaled = panel_name(table.name, reading), Scaled(split, intercept)
        exact = PrintedFunctional(intercept).drawn(scaled, None, 0)
        for epsilon in EPSILONS:
            seed = cell.seed(FUNCTIONAL, intercept, epsilon)
            noisy, fixed = (
                PrintedFunctional(intercept, tuned).drawn(scaled, epsilon, seed) for tuned in ("noisy", "exact")
            )
            for model, short in SHORT.items():
                name, line = f"printed {model}", f"{FUNCTIONAL} {short}"
                yield Value(panel, line, epsilon, noisy[name].error)
                yield Value(panel, line, epsilon, fixed[name].error, TUNED_WITHOUT_NOISE)
                yield Value(panel, line, epsilon, float(not noisy[name].bounded), UNBOUNDED)
                yield Value(panel, short, epsilon, exact[name].error)
    for model, epsilon, error in _ours(cell, split):
        for reading in INTERCEPTS:
            yield Value(panel_name(table.name, reading), f"{PRIVFIT} {SHORT[model]}", epsilon, error)
            if model == "linear":
                yield Value(panel_name(table.name, reading), MEAN, epsilon, split.mean_error)


def _ours(cell: Cell, split: Split) -> Iterator[tuple[str, float, float]]:
    """privfit's four estimators with their defaults, from sums that are kept: model, epsilon and test error."""
    once = FunctionalOnce()
    for model, estimator in OURS.items():
        for epsilon in EPSILONS:
            fit = estimator(epsilon, schema=split.schema, mechanism=once, random_state=cell.seed(PRIVFIT, epsilon)).fit(
                split.train.frame
            )
            yield model, epsilon, root_mean_square(np.asarray(fit.predict(split.test.frame)) - split.test.target)


# -- experiments -----------------------------------------------------------------------------------


def experiments() -> tuple[Experiment, Experiment]:
    """Four predictors, and all; a cell is one random split."""

    def cells_few(quick: bool) -> list[Cell]:
        return [Cell("few predictors", "men", "split", run, quick, 1.3) for run in range(QUICK_RUNS if quick else RUNS)]

    def cells_all(quick: bool) -> list[Cell]:
        runs = range(QUICK_RUNS if quick else RUNS)
        return [Cell("all predictors", table, "split", run, quick, 1.3) for table in ("men", "people") for run in runs]

    return Experiment("few predictors", cells_few, measure_few), Experiment("all predictors", cells_all, measure_all)
