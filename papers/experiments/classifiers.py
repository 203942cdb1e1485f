"""The constants behind pf.LogisticRegression's defaults, one at a time, on generated tables.

    python papers/experiments/classifiers.py               about six minutes of two cores: 72 tables
    python papers/experiments/classifiers.py --quick       a quarter of a minute: six small tables, to see that it runs
    python papers/experiments/classifiers.py --first 72 --only knots --only slope --only rule
        other tables, some settings: to check a rule that was chosen on the first 72
    python papers/experiments/classifiers.py --pairs --only interaction
        the same tables, but two pairs of columns interact

Every table has its own size (5,000 to 100,000 rows), number of columns, correlations, signal and balance of classes,
and 20,000 rows of its own to test on. Six kinds take turns: categories with skewed frequencies, numbers with smooth
effects, numbers with jumps, mostly two-level columns, a mixture, and a few numbers with straight effects. Half of all
tables have classes of unequal size.

Printed, in Markdown: the mean excess over a fit without noise (the same encoding, logistic loss, epsilon 1e4 and ridge
1) of the share of wrong classes, in percentage points, and of the log-loss, in hundredths; the difference from the
reference (the default, with 8 knots at any size and without interaction terms) on the same tables with its standard
error over tables; and the same differences by n epsilon / k, with n rows and k columns. Noise is seeded.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from generated import KINDS, Table, make_table
from scipy.special import log_expit

import privfit as pf
from privfit.mechanisms.perturbation import objective_noise, problem
from privfit.models import perturbed
from privfit.rows import linear_scores
from privfit.schema import Category, Column, geometry, schema
from privfit.schema.columns import AUTO_KNOTS
from privfit.tables import open_table

EPSILONS = (0.1, 0.4, 1.6)
FIRST_SEED = 1_000_000
BANDS = (0.0, 60.0, 200.0, 600.0, 2000.0, 6000.0, np.inf)
LEAST_PROBABILITY = 1e-15
DEFAULT = "8 knots"
RULE_IN_USE = "the rule in use"
RULES: dict[str, tuple[tuple[float, ...], tuple[str, ...]]] = {
    "slope below 200, 5 knots below 500": ((200, 500), ("numbers as slope", "5 knots", DEFAULT)),
    "5 knots below 200": ((200,), ("5 knots", DEFAULT)),
    "3 knots below 200": ((200,), ("3 knots", DEFAULT)),
    "slope below 200": ((200,), ("numbers as slope", DEFAULT)),
    "5 knots below 300, 12 from 2000": ((300, 2000), ("5 knots", DEFAULT, "12 knots")),
    "3 knots below 200, 5 below 600, 12 from 2000": ((200, 600, 2000), ("3 knots", "5 knots", DEFAULT, "12 knots")),
    "slope below 200, 5 knots below 400, 12 from 2000": (
        (200, 400, 2000),
        ("numbers as slope", "5 knots", DEFAULT, "12 knots"),
    ),
    "slope below 200, 6 knots below 600": ((200, 600), ("numbers as slope", "6 knots", DEFAULT)),
    "slope below 200, 6 knots below 600, 12 from 2000": (
        (200, 600, 2000),
        ("numbers as slope", "6 knots", DEFAULT, "12 knots"),
    ),
}
"""Public rules for how numbers enter, by n epsilon / k: where the rule changes, and the settings on either side."""


# -- settings --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One departure from the reference: the default, but with 8 knots at any size, and a sum over columns."""

    name: str
    model: dict[str, Any] = field(default_factory=dict)
    patches: tuple[tuple[Any, str, Any], ...] = ()
    knots: int = AUTO_KNOTS
    after: Callable[[Any], None] | None = None
    """Changes a fit by the reference."""


def in_pairs(column: Column, start: int, **given: Any) -> geometry.Block:
    """Two levels as two columns, like every other category."""
    return geometry.make_block(
        column, start, **(given | {"whole": isinstance(column, Category) and column.name != "y"})
    )


def smooth(model: Any) -> None:
    """Every knot's weight averaged with its neighbours': a quarter, a half, a quarter."""
    start = 0
    for block in model._geometry.blocks:
        own = model.coef_[0, start : start + len(block.labels)]
        if block.kind == "spline":
            padded = np.concatenate([own[:1], own, own[-1:]])
            own[:] = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4
        start += len(block.labels)


def stretched(factor: float) -> Callable[[Any], None]:
    def stretch(model: Any) -> None:
        model.coef_ *= factor

    return stretch


def ridge_factor(value: float) -> Setting:
    return Setting(f"RIDGE_FACTOR {value:g}", patches=((objective_noise, "RIDGE_FACTOR", value),))


def undone(value: float) -> Setting:
    """How much of the estimated shrinkage is corrected."""
    return Setting(f"{value:g} of shrinkage undone", patches=((problem, "UNDONE", value),))


def objective(name: str, **given: Any) -> Setting:
    return Setting(name, {"mechanism": pf.ObjectivePerturbation(**given)})


SETTINGS = (
    Setting(DEFAULT),
    Setting(RULE_IN_USE),
    *(ridge_factor(value) for value in (2.5, 4.0, 7.0, 10.0)),
    *(undone(value) for value in (0.0, 0.75, 1.0)),
    *(objective(f"steepest={value:g}", steepest=value) for value in (0.35, 0.7, 1.0)),
    *(Setting(f"{knots} knots", knots=knots) for knots in (2, 3, 5, 6, 12)),
    *(Setting(f"numbers as {numeric}", {"numeric": numeric}) for numeric in ("bins", "slope")),
    Setting("every block of columns alone", patches=((objective_noise, "WIDE", 1),)),
    *(objective(f"noise {kind}", noise=kind) for kind in ("laplace", "mixed", "l2", "linf")),
    *(Setting(f"{number} interaction{'s' * (number > 1)}", {"interactions": number}) for number in (1, 2, 3)),
    Setting("interactions by the rule in use", {"interactions": "auto"}),
    Setting("delta 1e-6, no interactions", {"delta": 1e-6}),
    Setting("delta 1e-6, interactions by the rule in use", {"delta": 1e-6, "interactions": "auto"}),
    Setting("mechanism functional", {"mechanism": "functional"}),
    Setting("mechanism output", {"mechanism": "output"}),
    Setting("mechanism genetic", {"mechanism": "genetic"}),
    Setting("two levels as two columns", patches=((schema, "make_block", in_pairs),)),
    Setting("knots averaged after the fit", after=smooth),
    *(Setting(f"coefficients times {factor:g} after the fit", after=stretched(factor)) for factor in (0.8, 1.25)),
)


@contextmanager
def applied(setting: Setting) -> Iterator[None]:
    """The library with this setting's constants, and as it was afterwards."""
    patches = setting.patches
    if setting.name != RULE_IN_USE:  # so many knots at any size
        patches = (
            *patches,
            (perturbed, "automatic_numbers", lambda terms, columns, n_rows: ("splines", setting.knots)),
        )
    usual = [(module, name, getattr(module, name)) for module, name, _ in patches]
    for module, name, value in patches:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in usual:
            setattr(module, name, value)


# -- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What one setting lost on one table: excess of the share of wrong classes, and of the log-loss."""

    table: int
    epsilon: float
    density: float
    """n epsilon / k."""
    setting: str
    error: float
    loss: float


class Test:
    """The rows to test on. They are encoded once per encoding, which is most of what a prediction costs."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.is_second = table.test["y"].to_numpy() == "yes"
        self.encoded: dict[tuple[str, ...], np.ndarray] = {}

    def scores(self, model: Any) -> tuple[float, float]:
        """The share of wrong classes and the log-loss."""
        names = model._geometry.feature_names
        if names not in self.encoded:
            self.encoded[names] = linear_scores(
                open_table(self.table.test),
                self.table.schema,
                model._geometry,
                np.eye(len(names)),
                np.zeros(len(names)),
            )
        if len(names) < model.coef_.shape[1]:
            odds = model._log_odds(model.decision_function(self.table.test.drop("y")))
        else:
            odds = model._log_odds(self.encoded[names] @ model.coef_[0] + model.intercept_[0])
        logs = np.maximum(log_expit(np.where(self.is_second, odds, -odds)), np.log(LEAST_PROBABILITY))
        return float(np.mean((odds > 0) != self.is_second)), float(-logs.mean())


def measure(seed: int, most_rows: int, pairs: bool, names: Sequence[str]) -> list[Result]:
    """The settings of these names on one table."""
    warnings.simplefilter("ignore")
    table = make_table(seed, most_rows, pairs)
    exact = pf.LogisticRegression(
        1e4,
        numeric="splines",
        mechanism=pf.ObjectivePerturbation(ridge=1.0, steepest=1.0),
        schema=table.schema,
        random_state=0,
    )
    test = Test(table)
    least = test.scores(exact.fit(table.train))
    found = []
    for epsilon in EPSILONS:
        density = table.train.height * epsilon / table.columns
        usual = None
        for setting in (one for one in SETTINGS if one.name in names):
            if setting.after is not None and usual is not None:
                model = pf.LogisticRegression(**usual.get_params())
                model.__dict__.update(
                    {name: value.copy() if name == "coef_" else value for name, value in usual.__dict__.items()}
                )
                setting.after(model)
            else:
                with applied(setting):
                    model = pf.LogisticRegression(
                        epsilon,
                        schema=table.schema,
                        random_state=FIRST_SEED + seed,
                        **({"interactions": 0} | setting.model),
                    )
                    try:
                        model.fit(table.train)
                    except pf.PrivacyError:  # more noise than this kind can hold, or fewer tables than asked for
                        continue
                    usual = model if usual is None else usual
            error, loss = test.scores(model)
            found.append(Result(seed, epsilon, density, setting.name, error - least[0], loss - least[1]))
    return found


# -- printing --------------------------------------------------------------------------------------


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean and standard error, in hundredths."""
    if not values:
        return ""
    hundredths = 100 * np.array(values)
    error = hundredths.std(ddof=1) / np.sqrt(len(hundredths)) if len(hundredths) > 1 else float("nan")
    return f"{hundredths.mean():+.{digits}f} ± {error:.{digits}f}"


class Results:
    def __init__(self, results: Sequence[Result]) -> None:
        self.all = {(result.setting, result.table, result.epsilon): result for result in results}

    def excess(self, setting: str, epsilon: float, what: str) -> list[float]:
        return [
            getattr(result, what)
            for (name, _, noise), result in self.all.items()
            if name == setting and noise == epsilon
        ]

    def differences(self, setting: str, what: str, keep: Callable[[Result], bool]) -> list[float]:
        """From the reference, averaged over what is kept of each table's fits, so that tables are independent."""
        by_table: dict[int, list[float]] = {}
        for (name, table, epsilon), result in self.all.items():
            if name == setting and keep(result):
                by_table.setdefault(table, []).append(
                    getattr(result, what) - getattr(self.all[DEFAULT, table, epsilon], what)
                )
        return [float(np.mean(values)) for values in by_table.values()]

    def by_rule(self, edges: tuple[float, ...], names: tuple[str, ...], what: str) -> list[float]:
        """Differences of a rule from the reference, one per table that has numbers."""
        by_table: dict[int, list[float]] = {}
        for (name, table, epsilon), usual in self.all.items():
            if name == DEFAULT and KINDS[table % len(KINDS)] != "categories":
                chosen = self.all[names[int(np.searchsorted(edges, usual.density, side="right"))], table, epsilon]
                by_table.setdefault(table, []).append(getattr(chosen, what) - getattr(usual, what))
        return [float(np.mean(values)) for values in by_table.values()]


def show(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for line in lines:
        print("| " + " | ".join(line) + " |", flush=True)


def print_results(results: Results, settings: Sequence[str]) -> None:
    for what, title in (("error", "Wrong classes, percentage points"), ("loss", "Log-loss, hundredths")):
        lines = [
            [DEFAULT, *(spread(results.excess(DEFAULT, epsilon, what)).lstrip("+") for epsilon in EPSILONS), ""],
            *(
                [
                    name,
                    *(
                        spread(results.differences(name, what, lambda one, e=epsilon: one.epsilon == e))
                        for epsilon in EPSILONS
                    ),
                    spread(results.differences(name, what, lambda one: True)),
                ]
                for name in settings
            ),
        ]
        heads = ("setting", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "all")
        show(f"{title}: the excess of 8 knots, and differences from it (below 0 is better)", heads, lines)
    for what, title in (("error", "Wrong classes, percentage points"), ("loss", "Log-loss, hundredths")):
        show_bands(results, settings, what, f"{title}: differences from 8 knots by n epsilon / k")


def show_bands(results: Results, settings: Sequence[str], what: str, title: str) -> None:
    bands = list(pairwise(BANDS))
    heads = ("setting", *(f"{low:g} to {high:g}" if np.isfinite(high) else f"from {low:g}" for low, high in bands))
    fits = [
        sum(low <= one.density < high for (name, _, _), one in results.all.items() if name == DEFAULT)
        for low, high in bands
    ]
    lines = [["fits", *map(str, fits)]]
    for name in settings:
        cells = [
            spread(results.differences(name, what, lambda one, a=low, b=high: a <= one.density < b))
            for low, high in bands
        ]
        lines.append([name, *cells])
    show(title, heads, lines)


def print_wins(results: Results, settings: Sequence[str]) -> None:
    """By kind of table, and how often the reference is beaten."""
    lines = []
    for name in settings:
        cells = [
            spread(results.differences(name, "error", lambda one, i=i: one.table % len(KINDS) == i))
            for i in range(len(KINDS))
        ]
        pairs = [
            (one, results.all[DEFAULT, table, epsilon])
            for (own, table, epsilon), one in results.all.items()
            if own == name
        ]
        better = [one.error < usual.error for one, usual in pairs]
        lines.append([name, *cells, f"{np.mean(better):.0%}"])
    show("Wrong classes: differences from 8 knots by kind of table", ("setting", *KINDS, "better in"), lines)


def print_rules(results: Results) -> None:
    known = {name for name, _, _ in results.all}
    lines = [
        [rule, spread(results.by_rule(edges, names, "error")), spread(results.by_rule(edges, names, "loss"))]
        for rule, (edges, names) in RULES.items()
        if known >= set(names)
    ]
    show(
        "Rules by n epsilon / k, tables with numbers: differences from 8 knots",
        ("rule", "wrong classes", "log-loss"),
        lines,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="six small tables")
    parser.add_argument("--tables", type=int, default=72, help="how many tables")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first table")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="settings whose names have this text, beside the reference; repeat for more",
    )
    parser.add_argument("--pairs", action="store_true", help="tables in which two pairs of columns interact")
    given = parser.parse_args()
    tables, most_rows = (6, 2_000) if given.quick else (given.tables, 100_000)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    settings = tuple(
        setting.name for setting in SETTINGS if not given.only or any(text in setting.name for text in given.only)
    )
    seeds = range(given.first, given.first + tables)
    with ProcessPoolExecutor(2) as pool:
        measured = pool.map(
            measure, seeds, [most_rows] * tables, [given.pairs] * tables, [(DEFAULT, *settings)] * tables
        )
        results = Results([result for found in measured for result in found])
    print(f"{tables} tables from seed {given.first} on, one fit of every setting and epsilon on each.")
    shown = [name for name in settings if name != DEFAULT]
    for name in shown:
        missing = len(EPSILONS) * tables - sum(own == name for own, _, _ in results.all)
        if missing:
            print(
                f"{name}: {missing} fits were refused, because this noise cannot be so large, or there are not so many "
                "tables."
            )
    print_results(results, shown)
    print_wins(results, shown)
    print_rules(results)


if __name__ == "__main__":
    main()
