"""`privfit bench regularised`: regularised regressions beside the published ones, mean and spread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit.datasets.census import census_schema, generated_census
from privfit.models import ESTIMATORS
from privfit.schema import Schema
from privfit_papers.bench import data
from privfit_papers.bench.cps import cps_wages
from privfit_papers.bench.histogram import HistogramFits
from privfit_papers.bench.printed import PrintedFunctional
from privfit_papers.bench.regularised import Make, Spread, error_spreads
from privfit_papers.bench.split import Comparison

FEW = {"age", "gender", "nativity", "education", "married", "black", "age_head", "MARS", "XTOT", "nu18"}
"""Four predictors in each table; a histogram of more would be too large.

The paper has age, gender, race and education.
"""
EPSILONS = (0.1, 0.4, 1.6)
OURS = ("LinearRegression", "Ridge", "Lasso", "ElasticNet")


def regularised(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Random 80/20 splits, one fit of every method on each. The paper has 50.")
    ] = 20,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more. Default: 0.1, 0.4, 1.6.")
    ] = None,
    every_predictor: Annotated[
        bool,
        typer.Option(
            "--all", help="All predictors and no histograms, as in Figures 2 and 3; default: four, as in Figure 1."
        ),
    ] = False,
    intercept: Annotated[
        bool, typer.Option(help="Give the published methods an intercept, which they are printed without.")
    ] = True,
    tuned_without_noise: Annotated[
        bool,
        typer.Option(
            "--tuned-without-noise", help="Choose the printed penalty by the test error of the fit without noise."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Test errors beside regularised regressions as published, by epsilon.

    Compares privfit with the functional mechanism of Dandekar, Basu and Bressan
    (2018) as printed, and with fits on a noisy histogram (DPME). Those two are
    NOT private: their penalty is chosen by the test error. Errors are root mean
    squares in the units of the target, over random splits. "Worse than mean" is
    the share of runs that predicting the mean beats. JSON also has quantiles,
    outliers and how often a noisy objective had no minimum. Noise is seeded, so
    that the same command gives the same numbers.
    """
    others: list[Comparison] = [PrintedFunctional(intercept, "exact" if tuned_without_noise else "noisy")]
    if not every_predictor:
        others.append(HistogramFits(intercept))
    results: list[dict[str, Any]] = []
    for name, (frame, schema) in _tables(folder):
        used = schema if every_predictor else few_predictors(schema)
        hint(f"Measuring on the {name} ...")
        with stderr().status(f"{runs} runs"):
            spreads = error_spreads(name, frame, used, _ours(), others, epsilon or EPSILONS, runs)
        results += [spread.to_dict() for spread in spreads]
        for noise in () if as_json else dict.fromkeys(spread.epsilon for spread in spreads):
            title = f"Test errors on the {name}, {'without noise' if noise is None else f'epsilon {noise:g}'}"
            stdout().print(spread_table(title, [spread for spread in spreads if spread.epsilon == noise]))
    if as_json:
        print_json({"regularised": results})


def few_predictors(schema: Schema) -> Schema:
    """The schema with the predictors that a histogram can hold."""
    return Schema([column for column in schema.features if column.name in FEW], target=schema.target)


def spread_table(title: str, spreads: list[Spread]) -> Table:
    """Mean and spread of every method, for the terminal."""
    table = Table(title=title)
    table.add_column("method", no_wrap=True)
    for name in ("mean", "deviation", "median", "worst", "worse than mean"):
        table.add_column(name, justify="right", overflow="fold")
    for spread in spreads:
        errors = (spread.mean, spread.deviation, spread.median, spread.worst)
        table.add_row(spread.method, *map(_short, errors), f"{spread.worse_than_mean:.0%}")
    return table


def _short(error: float) -> str:
    return f"{error:,.0f}" if error >= 1000 else f"{error:.4g}"


def _ours() -> dict[str, Make]:
    """The linear regressions that privfit has, with and without a penalty."""

    def maker(estimator: Any) -> Make:
        return lambda epsilon, schema, seed: estimator(epsilon, schema=schema, random_state=seed)

    return {f"privfit {one.__name__}": maker(one) for one in ESTIMATORS if one.__name__ in OURS}


def _tables(folder: Path | None) -> Iterator[tuple[str, tuple[pl.DataFrame, Schema]]]:
    yield "generated census, 50,000 people", (generated_census(50_000, seed=0), census_schema())
    try:
        found = data.data_folder(folder)
        yield "1980 US census, 329,509 men", data.census_1980(found)
        yield "CPS tax units, wages of 278,660 heads", cps_wages(found)
    except data.NoData as missing:
        hint(f"Some tables are not measured. {missing}")
