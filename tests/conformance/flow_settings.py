"""Settings under which control flow is watched: every estimator and mechanism, with small ridges, few rows and large
epsilons among them.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import is_classifier

import privfit as pf
from privfit import baselines
from privfit.mechanisms.base import Mechanism
from privfit.models import ESTIMATORS
from tests.conformance.cases import AMOUNTS, objective_variants, schema_for, variants
from tests.conformance.control_flow import Setting
from tests.conformance.flow_tables import WEIGHT
from tests.support.functions import CASES, Asked

ADJACENCIES = ("replace-one", "add-remove")
CLASSES = pf.Category("y", ["a", "b"])
NUMBER = pf.Numeric("y", -5, 5)
ONE = [pf.Numeric("x", -1, 1)]
SMALL = [pf.Numeric("x", -1, 1), pf.Numeric("z", -1, 1)]
WIDE = [pf.Numeric(f"x{place}", -1, 1) for place in range(30)]
CUBE = [pf.Numeric("u", 0, 1), pf.Numeric("v", -3, 9), pf.Numeric("w", 100, 101)]
LEVELS = [pf.Category("p", ["a", "b", "c"]), pf.Category("q", ["no", "yes"]), pf.Category("r", [1, 2, 3])]
GAPS = [
    pf.Numeric("age", 0, 100, fill=40.0),
    pf.Numeric("pay", 0, 1e6, bins=5, fill="missing"),
    pf.Category("job", ["cook", "smith"], other=True, fill="other"),
    pf.Category("code", [1, 2, 3], fill=2),
]
HUGE = [pf.Numeric("far", -1e150, 1e150), pf.Numeric("near", -1e-150, 1e-150)]
FEATURES = {"small": SMALL, "levels": LEVELS, "gaps": GAPS, "wide": WIDE, "huge": HUGE, "one": ONE}


def _maker(estimator: Callable[..., Any], **parameters: Any) -> Callable[..., Any]:
    return lambda **given: estimator(**{**parameters, **given})


def _told(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value if not callable(value) else 'own'}" for name, value in parameters.items())


def _setting(
    estimator: Any,
    features: str,
    columns: list[Any],
    target: Any,
    adjacency: str,
    parameters: dict[str, Any],
    **more: Any,
) -> Setting:
    name = f"{estimator.__name__}({_told(parameters)}) {features} {adjacency}"
    return Setting(name, _maker(estimator, **parameters), pf.Schema(columns, target), adjacency, **more)


def _target(estimator: Any, parameters: dict[str, Any]) -> Any:
    """Classes or a number, whichever a model with these parameters has."""
    return CLASSES if is_classifier(estimator(**parameters)) else NUMBER


# -- the estimators --------------------------------------------------------------------------------


def of_variants() -> Iterator[Setting]:
    """The settings of the other conformance tests, on their schema."""
    for estimator in ESTIMATORS:
        for place, variant in enumerate(variants(estimator)):
            schema, adjacency = schema_for(estimator), ADJACENCIES[place % 2]
            name = f"{estimator.__name__}({_told(variant)}) mixed {adjacency}"
            if isinstance(variant.get("loss"), pf.PolynomialLoss) and variant["loss"].degree > 2:
                schema = pf.Schema(SMALL, schema.target)  # of many columns a degree of four takes long
            yield Setting(name, _maker(estimator, **{"epsilon": 0.7, **variant}), schema, adjacency)


EPSILONS = (0.01, 1.0, 1000.0)
RIDGES = (1e-8, 1e-3, "auto")


def of_ridges() -> Iterator[Setting]:
    """Perturbed objectives and minima, with every ridge, epsilon, delta, adjacency and number of rows a person, in turn
    on every schema.
    """
    turn = 0
    for estimator in (pf.LogisticRegression, pf.LinearSVC, pf.ERM):
        for kind in (pf.OutputPerturbation, pf.ObjectivePerturbation):
            for ridge in RIDGES:
                for epsilon in EPSILONS:
                    features = list(FEATURES)[turn % len(FEATURES)]
                    adjacency, people = ADJACENCIES[turn % 2], 1 + (turn // 2) % 2
                    parameters = {
                        "epsilon": epsilon,
                        "mechanism": kind(ridge=ridge),
                        "delta": (0.0, 1e-6)[(turn // 3) % 2],
                        "rows_per_person": people,
                        "numeric": ("slope", "auto", "bins", "splines")[turn % 4],
                        "fit_intercept": turn % 3 > 0,
                    }
                    turn += 1
                    yield _setting(
                        estimator, features, FEATURES[features], CLASSES, adjacency, parameters, may_refuse=True
                    )


def of_perturbations() -> Iterator[Setting]:
    """What perturbed models can do besides."""
    three = pf.Category("y", ["a", "b", "c"])
    output = pf.OutputPerturbation
    many: list[tuple[Any, str, Any, dict[str, Any]]] = [
        (
            pf.ERM,
            "one",
            CLASSES,
            {
                "loss": pf.losses.hinge(),
                "penalty": 1e-8,
                "mechanism": "output",
                "numeric": "slope",
                "fit_intercept": False,
            },
        ),
        (
            pf.ERM,
            "wide",
            CLASSES,
            {"loss": pf.losses.hinge(), "penalty": 1e-3, "mechanism": "output", "numeric": "slope"},
        ),
        (pf.ERM, "small", NUMBER, {"loss": pf.losses.robust(1.0)}),
        (pf.ERM, "small", NUMBER, {"loss": pf.losses.robust(0.01), "mechanism": output(ridge=1e-8)}),
        (pf.ERM, "small", three, {"loss": pf.losses.smooth_hinge(0.01), "mechanism": output(ridge=1e-3)}),
        (pf.LinearSVC, "small", CLASSES, {"loss": "hinge", "mechanism": output(ridge=1e-3)}),
        (pf.LinearSVC, "wide", CLASSES, {"loss": "hinge", "mechanism": output(ridge=1e-3), "epsilon": 1000.0}),
        (pf.LinearSVC, "small", CLASSES, {"row_norm": 1.0}),
        (pf.LinearSVC, "small", three, {}),
        (pf.LinearSVC, "small", CLASSES, {"kernel": "rbf", "n_components": 10, "mechanism": output(ridge=1e-8)}),
        (pf.LinearSVC, "levels", CLASSES, {"mechanism": "genetic"}),
        (pf.LinearSVC, "small", CLASSES, {"mechanism": "sample-and-aggregate"}),
        (pf.LogisticRegression, "small", CLASSES, {"row_norm": 0.5, "mechanism": output(ridge=1e-8)}),
        (pf.LogisticRegression, "small", CLASSES, {"kernel": "rbf", "n_components": 10, "epsilon": 1000.0}),
        (pf.LogisticRegression, "gaps", CLASSES, {"interactions": 1}),
        (pf.LogisticRegression, "levels", CLASSES, {"interactions": 2, "epsilon": 1000.0}),
        (pf.LogisticRegression, "levels", CLASSES, {"interactions": 1, "delta": 1e-6}),
        (pf.LogisticRegression, "small", three, {}),
        (pf.LogisticRegression, "gaps", three, {"mechanism": output(ridge=1e-8), "epsilon": 1000.0}),
        (pf.LogisticRegression, "small", CLASSES, {"mechanism": pf.TunedPerturbation()}),
        (
            pf.LogisticRegression,
            "small",
            CLASSES,
            {"mechanism": pf.TunedPerturbation(candidates=(output(ridge=1e-8), output(ridge=1.0)))},
        ),
        (
            pf.LogisticRegression,
            "small",
            three,
            {"mechanism": pf.TunedPerturbation(candidates=(pf.ObjectivePerturbation(ridge=1e-8),)), "epsilon": 1000.0},
        ),
        (pf.LogisticRegression, "gaps", CLASSES, {"mechanism": "genetic"}),
        (
            pf.LogisticRegression,
            "small",
            CLASSES,
            {"mechanism": pf.PrivGene(moves="coordinates", rounds=3), "epsilon": 1000.0},
        ),
        (pf.LogisticRegression, "levels", CLASSES, {"mechanism": pf.SampleAndAggregate(ranges="percentiles")}),
        (pf.LogisticRegression, "huge", CLASSES, {}),
        (pf.LogisticRegression, "huge", CLASSES, {"mechanism": output(ridge=1e-8)}),
    ]
    for place, (estimator, features, target, parameters) in enumerate(many):
        yield _setting(
            estimator, features, FEATURES[features], target, ADJACENCIES[place % 2], parameters, may_refuse=True
        )


def of_hard_minima() -> Iterator[Setting]:
    """Perturbed minima and objectives that a solver finds hard for some tables and not for others: hardly any ridge,
    corners that are hardly rounded, many columns, no intercept.
    """
    output, objective = pf.OutputPerturbation, pf.ObjectivePerturbation
    plain = {"numeric": "slope", "fit_intercept": False}
    many: list[tuple[Any, str, dict[str, Any]]] = [
        (pf.ERM, "one", {"loss": pf.losses.hinge(), "penalty": 1e-8, "mechanism": "output", **plain}),
        (pf.LogisticRegression, "one", {"mechanism": output(ridge=1e-12), "epsilon": 1000.0, **plain}),
        (pf.LogisticRegression, "one", {"mechanism": objective(ridge=1e-12), "epsilon": 1000.0, **plain}),
        (pf.LogisticRegression, "wide", {"mechanism": objective(ridge=1e-8), "epsilon": 1000.0, "numeric": "slope"}),
        (pf.LinearSVC, "wide", {"mechanism": objective(ridge=1e-8), "epsilon": 1000.0, "numeric": "slope"}),
        (pf.LinearSVC, "one", {"loss": "hinge", "mechanism": output(ridge=1e-8), "epsilon": 1000.0, **plain}),
        (
            baselines.PrivateERM,
            "one",
            {"method": "output", "loss": "huber", "fit_intercept": False, "regularisation": 1e-12},
        ),
        (baselines.PrivateSVM, "small", {"C": 1e8, "C_multiplies": "sum", "epsilon": 1000.0}),
    ]
    for estimator, features, parameters in many:
        yield _setting(
            estimator, features, FEATURES[features], CLASSES, "replace-one", parameters, thorough=True, may_refuse=True
        )


def of_weighed_classes() -> Iterator[Setting]:
    """Classes with public weights, and such that shall weigh alike."""
    plain, tuned = {"numeric": "slope", "fit_intercept": False}, pf.TunedPerturbation()
    many: list[tuple[Any, str, dict[str, Any]]] = [
        (pf.LogisticRegression, "one", {"class_weight": "balanced", "epsilon": 1000.0, **plain}),
        (pf.LogisticRegression, "small", {"class_weight": "balanced", "mechanism": tuned}),
        (pf.LinearSVC, "small", {"class_weight": {"a": 1e-6}, "mechanism": pf.OutputPerturbation(ridge=1e-8)}),
    ]
    for estimator, features, parameters in many:
        yield _setting(estimator, features, FEATURES[features], CLASSES, "replace-one", parameters, thorough=True)


def of_moments() -> Iterator[Setting]:
    """Moments on other schemas, with tiny and huge epsilons, and what is done to them."""
    rerun = pf.FunctionalMechanism(repair="rerun")
    many: list[tuple[Any, str, dict[str, Any]]] = [
        (pf.LinearRegression, "one", {"mechanism": rerun, "epsilon": 1000.0}),
        (pf.LinearRegression, "gaps", {"epsilon": 1000.0}),
        (pf.LinearRegression, "huge", {"epsilon": 1000.0}),
        (pf.LinearRegression, "levels", {"epsilon": 0.01, "delta": 1e-6, "rows_per_person": 2}),
        (pf.LinearRegression, "small", {"mechanism": pf.FunctionalMechanism(repair=None), "epsilon": 1000.0}),
        (pf.LinearRegression, "gaps", {"mechanism": "adassp", "epsilon": 1000.0, "delta": 1e-6}),
        (pf.LinearRegression, "huge", {"mechanism": "boosted-adassp", "epsilon": 1000.0}),
        (pf.Ridge, "small", {"alpha": "select", "epsilon": 1000.0}),
        (pf.Ridge, "gaps", {"alpha": 1e-8, "epsilon": 0.01}),
        (pf.Lasso, "levels", {"alpha": 1e-8, "epsilon": 1000.0}),
        (pf.Lasso, "gaps", {"alpha": "select", "delta": 1e-6}),
        (pf.ElasticNet, "wide", {"alpha": "select", "epsilon": 1000.0}),
        (pf.FunctionalRegressor, "one", {"loss": pf.losses.poisson(4), "epsilon": 1000.0}),
        (pf.FunctionalClassifier, "one", {"loss": pf.losses.logistic(4), "epsilon": 1000.0}),
        (pf.LogisticRegression, "gaps", {"mechanism": "functional", "epsilon": 1000.0}),
        (pf.LogisticRegression, "huge", {"mechanism": "functional", "epsilon": 0.01}),
    ]
    for place, (estimator, features, parameters) in enumerate(many):
        target = _target(estimator, parameters)
        after = _intervals if place == 0 else None  # slow, and the same for all of them
        yield _setting(estimator, features, FEATURES[features], target, ADJACENCIES[place % 2], parameters, after=after)


def _intervals(model: Any) -> Any:
    return model.coef_interval_, model.intercept_interval_, model.predict_interval([[0.5]])


# -- models without coefficients, publishers, baselines --------------------------------------------


def of_clusters() -> Iterator[Setting]:
    """k-means by each of its mechanisms."""
    names: list[Any] = [
        "auto",
        "hybrid",
        "cells",
        "grid",
        "lloyd",
        "genetic",
        "sample-and-aggregate",
        pf.PrivGene(rounds=2),
    ]
    for place, name in enumerate(names):
        for epsilon in EPSILONS if place < 3 else (1.0, 1000.0):
            parameters = {
                "n_clusters": 1 + place % 3,
                "mechanism": name,
                "epsilon": epsilon,
                "rows_per_person": 1 + place % 2,
            }
            columns, told = ((CUBE, "cube"), (HUGE, "huge"), (WIDE, "wide"))[
                place % 3 if epsilon != 1.0 and name != "genetic" else 0
            ]
            yield _setting(pf.KMeans, told, columns, None, ADJACENCIES[(place + (epsilon > 1)) % 2], parameters)


def of_components() -> Iterator[Setting]:
    """Principal components of numbers, categories and missing values."""
    for place, (told, epsilon) in enumerate(itertools.product(("one", "gaps", "huge", "wide"), (0.01, 1.0, 1000.0))):
        parameters = {
            "n_components": (None, 1, 0.5)[place % 3],
            "scale": ("none", "bounds")[place % 2],
            "delta": (0.0, 1e-6)[place // 2 % 2],
            "rows_per_person": 1 + place % 2,
            "epsilon": epsilon,
        }
        yield _setting(pf.PCA, told, FEATURES[told], None, ADJACENCIES[place // 3 % 2], parameters)


def of_naive_bayes() -> Iterator[Setting]:
    """Naive Bayes with numbers as they are and in bins, of two classes and more."""
    three = pf.Category("y", ["a", "b", "c"])
    for place, (told, epsilon) in enumerate(itertools.product(("one", "gaps", "huge", "levels"), (0.01, 1.0, 1000.0))):
        parameters = {
            "numeric": ("slope", "bins")[place % 2 if told != "huge" else 0],
            "priors": [0.25, 0.75] if place % 3 and place // 3 % 2 else None,
            "delta": (0.0, 1e-6)[place // 2 % 2],
            "rows_per_person": 1 + place % 2,
            "epsilon": epsilon,
        }
        target = CLASSES if place % 3 else three
        yield _setting(pf.GaussianNB, told, FEATURES[told], target, ADJACENCIES[place // 3 % 2], parameters)


def _score(rows: Any, candidates: Any) -> Any:
    return -np.abs(rows[:, :1] - candidates[:, 0])


def _first_mean(rows: Any) -> float:
    return float(np.mean(rows[:, 0]))


def of_functions() -> Iterator[Setting]:
    """Searches and means of blocks, by functions that do not fail."""
    fitness = pf.RowFitness(_score, spread=lambda w: float(np.ptp(w)), bounds=(-9.0, 9.0))
    for place, (selection, delta) in enumerate(
        (("auto", 0.0), ("enhanced", 1e-6), ("exponential", 0.0), ("permute-and-flip", 0.0))
    ):
        parameters = {
            "fitness": fitness, "low": [0.0], "high": [9.0], "selection": selection, "delta": delta,
            "rounds": 2, "candidates": 12, "epsilon": EPSILONS[place % 3],
        }  # fmt: skip
        yield _setting(pf.GeneticSearch, "cube", CUBE, None, ADJACENCIES[place % 2], parameters)
    table = pf.TableFitness(lambda rows, w: -np.abs(rows[:, 0].mean() - w[:, 0]), sensitivity=1.0)
    parameters = {"fitness": table, "low": [0.0], "high": [9.0], "rounds": 2, "candidates": 12}
    yield _setting(pf.GeneticSearch, "gaps", GAPS, None, "replace-one", parameters)
    for place, ranges in enumerate(("given", "percentiles", "given")):
        mechanism = pf.SampleAndAggregate(ranges=ranges, resampling=1 + place % 2)  # type: ignore[arg-type]
        parameters = {
            "function": _first_mean,
            "low": 0,
            "high": 1,
            "n_outputs": 1,
            "mechanism": mechanism,
            "epsilon": EPSILONS[place % 3],
        }
        yield _setting(pf.Aggregate, "cube", CUBE, None, "replace-one", parameters)


def of_weights() -> Iterator[Setting]:
    """Importance weights of a public table, and of made-up rows."""
    rng = np.random.default_rng(1)
    public = pl.DataFrame(
        {"age": rng.uniform(0, 100, 60), "job": rng.choice(["cook", "smith"], 60), "code": rng.choice([1, 2, 3], 60)}
    )
    columns = [GAPS[0], *GAPS[2:]]
    many: list[dict[str, Any]] = [
        {"method": "tilting"},
        {"method": "tilting", "pairs": "all", "epsilon": 1000.0, "delta": 1e-6},
        {"method": "paper", "expected_rows": 40},
        {"method": "paper", "alpha": 1e-8, "expected_rows": 40, "epsilon": 1000.0},
        {"method": "objective", "expected_rows": 40},
        {"method": "objective", "alpha": 1e-8, "balanced": False, "expected_rows": 40, "epsilon": 0.01},
        {"method": "paper", "alpha": 1e-3, "balanced": False, "expected_rows": 40, "rows_per_person": 2},
    ]
    for place, parameters in enumerate(many):
        for adjacency in ADJACENCIES:
            yield _setting(
                pf.ImportanceWeights,
                "two tables" if place % 3 else "made-up rows",
                columns,
                None,
                adjacency,
                {**parameters, "synthetic_rows": 50},
                may_refuse="alpha" in parameters,
                after=lambda model: (model.to_frame().to_dicts(), model.estimate("age")),
                fit=(lambda model, table: model.fit(table, public))
                if place % 3
                else (lambda model, table: model.fit(table)),
            )


def of_publishers() -> Iterator[Setting]:
    """Noisy histograms and noisy rows."""
    grid = [pf.Numeric("x", 0, 1), pf.Category("p", ["a", "b", "c"])]
    for place, epsilon in enumerate((*EPSILONS, 1.0)):
        adjacency = ADJACENCIES[place % 2]
        after = lambda model: _tables(model)  # noqa: E731
        yield _setting(
            baselines.DPME,
            "grid",
            grid,
            None,
            adjacency,
            {"cells": 4, "epsilon": epsilon, "signed": place % 2 == 1},
            after=after,
        )
        # Which cells are empty decides which draws count: the law of the output, and not the output, is the same.
        filtered = {
            "cells": 4,
            "epsilon": epsilon,
            "threshold": 3 if place else "auto",
            "sample_size": 4 if place else "auto",
        }
        yield _setting(baselines.FilterPriority, "grid", grid, None, adjacency, filtered, exact=False)
        values = {"epsilon": epsilon, "trim": place % 2 == 1, "calibration": ("tight", "paper")[place // 2]}
        yield _setting(baselines.LaplacePublisher, "cube", CUBE, None, "replace-one", values, after=after)
    yield _setting(baselines.DPME, "gaps", GAPS, CLASSES, "replace-one", {"cells": "auto"}, after=_tables)


def _tables(model: Any) -> Any:
    return model.to_frame().to_dicts(), model.draw(5, random_state=1).to_dicts()


def of_baselines() -> Iterator[Setting]:
    """Methods as others print them."""
    private_erm, private_svm = baselines.PrivateERM, baselines.PrivateSVM
    many: list[tuple[Any, str, dict[str, Any]]] = [
        (private_erm, "small", {}),
        (private_erm, "small", {"method": "output"}),
        (private_erm, "one", {"method": "output", "fit_intercept": False}),
        (private_erm, "gaps", {"method": "output", "regularisation": 1e-3, "loss": "huber"}),
        (private_erm, "wide", {"method": "objective", "epsilon": 1000.0, "loss": "huber"}),
        (private_erm, "levels", {"regularisation": "tune"}),
        (private_erm, "small", {"regularisation": "tune", "method": "output", "candidates": (1e-8, 1e-2)}),
        (private_svm, "small", {}),
        (private_svm, "wide", {"C": 1.0, "C_multiplies": "sum"}),
        (private_svm, "small", {"C": 1e6, "C_multiplies": "sum", "calibration": "tight"}),
        (private_svm, "gaps", {"C": 1000.0, "epsilon": 1000.0, "calibration": "tight"}),
        (private_svm, "small", {"kernel": "rbf", "n_components": 6}),
        (baselines.Majority, "levels", {}),
        (baselines.Majority, "levels", {"epsilon": 1000.0, "rows_per_person": 2}),
    ]
    for estimator, features, parameters in many:
        for adjacency in ADJACENCIES:
            guess = {} if estimator is baselines.Majority or adjacency == "replace-one" else {"expected_rows": 40}
            yield _setting(
                estimator, features, FEATURES[features], CLASSES, adjacency, {**parameters, **guess}, may_refuse=True
            )


def of_printed() -> Iterator[Setting]:
    """Forms of the papers, to the letter."""
    weights: list[dict[str, Any]] = [
        {"method": "paper", "numeric": "slope", "expected_rows": 40},
        {"method": "objective", "numeric": "slope", "expected_rows": 40},
        {"method": "paper", "calibration": "paper", "expected_rows": 40, "weight_name": "importance"},
    ]
    for parameters in weights:
        for adjacency in ADJACENCIES:
            given = {**parameters, "synthetic_rows": 50}
            yield _setting(pf.ImportanceWeights, "made-up rows", [GAPS[0], *GAPS[2:]], None, adjacency, given)
    blocks = (
        ("replace-one", pf.SampleAndAggregate(4, noise="laplace", cut=False, dealing="equal")),
        ("add-remove", pf.SampleAndAggregate(4, noise="laplace", cut=False)),
        ("replace-one", pf.SampleAndAggregate(4, ranges="inputs", translate=_bounds_of_the_first)),
        ("add-remove", pf.SampleAndAggregate(4, ranges="inputs", translate=_bounds_of_the_first)),
    )
    for adjacency, mechanism in blocks:
        own = {"function": _first_mean, "low": 0, "high": 1, "n_outputs": 1, "mechanism": mechanism}
        yield _setting(pf.Aggregate, "cube", CUBE, None, adjacency, own)
    for estimator in (pf.LinearRegression, pf.Ridge, pf.Lasso, pf.ElasticNet):
        for repair in (None, "trim"):
            box = pf.FunctionalMechanism(calibration="paper-box", repair=repair)  # type: ignore[arg-type]
            more = {} if estimator is pf.LinearRegression else {"penalty_units": "scaled", "alpha": 0.1}
            yield _setting(estimator, "small", SMALL, NUMBER, "replace-one", {"mechanism": box, **more})


def of_summaries() -> Iterator[Setting]:
    """Functions, one of each kind of question, as if they were models."""
    for place, case in enumerate(CASES):
        name = f"{case.name} as a model {ADJACENCIES[place % 2]}"
        yield Setting(name, partial(Asked, case), pf.Schema(case.columns), ADJACENCIES[place % 2])


def _bounds_of_the_first(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    return float(low[0]), float(high[0])


def of_regressions() -> Iterator[Setting]:
    """Numbers by a perturbed objective: the settings of the other conformance tests, and tiny and huge epsilons on
    every schema. They stand last, so that the places of others stay what they were.
    """
    for estimator in ESTIMATORS:
        if estimator in (pf.QuantileRegressor, pf.Lasso, pf.ElasticNet) or estimator in AMOUNTS:
            continue  # they came later: `of_quantiles`, `of_amounts`, `of_absolute_penalties`
        for place, variant in enumerate(objective_variants(estimator)):
            if "bands" in variant:
                continue  # they came later: `of_bands`
            name = f"{estimator.__name__}({_told(variant)}) mixed {ADJACENCIES[place % 2]}"
            own = _maker(estimator, **{"epsilon": 0.7, **variant})
            yield Setting(name, own, schema_for(estimator), ADJACENCIES[place % 2])
    for turn, (features, epsilon) in enumerate(itertools.product(("small", "gaps", "huge", "wide"), (0.01, 1000.0))):
        parameters = {"mechanism": "objective", "epsilon": epsilon, "fit_intercept": turn % 3 > 0}
        yield _setting(
            pf.LinearRegression,
            features,
            FEATURES[features],
            NUMBER,
            ADJACENCIES[turn % 2],
            parameters,
            thorough=turn < 2,
            may_refuse=True,
        )


def of_rows_left_out() -> Iterator[Setting]:
    """Schemas that leave rows out, and missing values with coefficients of their own."""
    where = {"x": (-0.5, None)}
    columns = [*ONE, pf.Numeric("age", 0, 100, fill="missing"), pf.Category("job", ["cook", "smith"], fill="missing")]
    classes, number = replace(CLASSES, fill="drop"), replace(NUMBER, fill="drop")
    many: list[tuple[Any, Any, dict[str, Any]]] = [
        (pf.LinearRegression, number, {"mechanism": "functional"}),
        (pf.LinearRegression, number, {"mechanism": "objective"}),
        (pf.LinearRegression, number, {"mechanism": "boosted-adassp", "delta": 1e-6, "rows_per_person": 2}),
        (pf.Lasso, number, {"alpha": "select", "epsilon": 100.0}),
        (pf.LogisticRegression, classes, {"epsilon": 1000.0}),
        (pf.LogisticRegression, classes, {"mechanism": "output", "numeric": "slope"}),
        (pf.LinearSVC, classes, {"fit_intercept": False}),
        (baselines.Majority, classes, {"epsilon": 1000.0}),
    ]
    for place, (estimator, target, parameters) in enumerate(many):
        for adjacency in ADJACENCIES if place < 2 else ADJACENCIES[:1]:
            name = f"{estimator.__name__}({_told(parameters)}) rows left out {adjacency}"
            schema = pf.Schema(columns, target, where=where)
            yield Setting(name, _maker(estimator, **{"epsilon": 0.7, **parameters}), schema, adjacency)


def of_quantiles() -> Iterator[Setting]:
    """Quantiles by a perturbed objective, with tiny and huge epsilons; after all others, whose places stay."""
    for place, variant in enumerate(objective_variants(pf.QuantileRegressor)):
        name = f"QuantileRegressor({_told(variant)}) mixed {ADJACENCIES[place % 2]}"
        own = _maker(pf.QuantileRegressor, **{"epsilon": 0.7, **variant})
        yield Setting(name, own, schema_for(pf.QuantileRegressor), ADJACENCIES[place % 2])
    for turn, epsilon in enumerate((0.01, 1000.0)):
        parameters = {"epsilon": epsilon, "quantile": 0.95}
        yield _setting(
            pf.QuantileRegressor, "gaps", GAPS, NUMBER, ADJACENCIES[turn], parameters, thorough=True, may_refuse=True
        )


def of_selected_columns() -> Iterator[Setting]:
    """Columns selected for classes and for a number; after all others, whose places stay."""
    many = ((LEVELS, "levels", CLASSES), (GAPS, "gaps", NUMBER), (WIDE, "wide", CLASSES), (HUGE, "huge", NUMBER))
    for place, (columns, told, target) in enumerate(many):
        parameters = {"k": 1 + place % 2, "epsilon": (*EPSILONS, 1.0)[place], "rows_per_person": 1 + place // 2}
        yield _setting(pf.SelectPrivate, told, columns, target, ADJACENCIES[place % 2], parameters)


def of_bands() -> Iterator[Setting]:
    """Curves with bands that are bought, with tiny and huge epsilons; after all others."""
    for turn, epsilon in enumerate((0.01, 0.7, 1000.0)):
        parameters = {"epsilon": epsilon, "bands": True, "numeric": "splines", "fit_intercept": turn > 0}
        parameters |= {"interactions": 0}
        yield _setting(
            pf.AdditiveRegressor,
            "gaps",
            GAPS,
            NUMBER,
            ADJACENCIES[turn % 2],
            parameters,
            thorough=turn < 2,
            may_refuse=True,
        )


def _searching(schema: Any, adjacency: str, ledger: Any = None, random_state: Any = None) -> pf.PrivateSearch:
    model = pf.LogisticRegression(schema=schema, adjacency=adjacency, numeric="slope")
    candidates = [{"mechanism": "functional"}, {"mechanism": "output"}]
    return pf.PrivateSearch(model, candidates, epsilon=2.0, ledger=ledger, random_state=random_state)


def of_searches() -> Iterator[Setting]:
    """A choice among two settings, of which every draw is compared; after all others, whose places stay."""
    for adjacency in ADJACENCIES:
        yield Setting(f"PrivateSearch(two) small {adjacency}", _searching, pf.Schema(SMALL, CLASSES), adjacency)


def of_amounts() -> Iterator[Setting]:
    """Log means and proportions by a perturbed objective, with tiny and huge epsilons; after all others."""
    for estimator in AMOUNTS:
        for place, variant in enumerate(objective_variants(estimator)):
            name = f"{estimator.__name__}({_told(variant)}) mixed {ADJACENCIES[place % 2]}"
            own = _maker(estimator, **{"epsilon": 0.7, **variant})
            yield Setting(name, own, schema_for(estimator), ADJACENCIES[place % 2])
    for turn, epsilon in enumerate((0.01, 1000.0)):
        for estimator in (pf.PoissonRegressor, pf.FractionalRegressor):
            parameters = {"epsilon": epsilon, "fit_intercept": turn == 0 or estimator is pf.FractionalRegressor}
            yield _setting(
                estimator, "gaps", GAPS, NUMBER, ADJACENCIES[turn], parameters, thorough=True, may_refuse=True
            )


def of_absolute_penalties() -> Iterator[Setting]:
    """L1 penalties in a perturbed objective, tiny and huge; after all others."""
    for estimator in (pf.Lasso, pf.ElasticNet):
        for place, variant in enumerate(objective_variants(estimator)):
            name = f"{estimator.__name__}({_told(variant)}) mixed {ADJACENCIES[place % 2]}"
            own = _maker(estimator, **{"epsilon": 0.7, **variant})
            yield Setting(name, own, schema_for(estimator), ADJACENCIES[place % 2])
    for turn, epsilon in enumerate((0.01, 1000.0)):
        for alpha in (1e-8, 1e8):
            parameters = {"mechanism": "objective", "epsilon": epsilon, "alpha": alpha, "expected_rows": 40}
            yield _setting(
                pf.Lasso, "gaps", GAPS, NUMBER, ADJACENCIES[turn], parameters, thorough=alpha < 1, may_refuse=True
            )


def of_intervals() -> Iterator[Setting]:
    """Classes with what intervals need, with tiny and huge epsilons; after all others."""
    many: list[tuple[Any, str, dict[str, Any]]] = [
        (pf.LogisticRegression, "small", {"epsilon": 0.01}),
        (pf.LogisticRegression, "gaps", {"epsilon": 1000.0, "numeric": "splines"}),
        (pf.LogisticRegression, "levels", {"epsilon": 1.0, "rows_per_person": 2, "delta": 1e-6}),
        (pf.LogisticRegression, "huge", {"epsilon": 1.0, "class_weight": {"a": 0.5}}),
        (pf.LinearSVC, "wide", {"epsilon": 0.7}),
        (pf.LinearSVC, "one", {"epsilon": 1000.0, "fit_intercept": False}),
    ]
    for place, (estimator, features, own) in enumerate(many):
        parameters = {"intervals": True, **own}
        adjacency = ADJACENCIES[place % 2]
        yield _setting(
            estimator, features, FEATURES[features], CLASSES, adjacency, parameters, may_refuse=True, after=_sure_of
        )


def of_regression_intervals() -> Iterator[Setting]:
    """Regressions with what intervals need, with tiny and huge epsilons; after all others."""
    many: list[tuple[Any, str, dict[str, Any]]] = [
        (pf.PoissonRegressor, "small", {"epsilon": 0.01}),
        (pf.PoissonRegressor, "gaps", {"epsilon": 1000.0, "numeric": "splines", "expected_rows": 40}),
        (pf.GammaRegressor, "levels", {"epsilon": 1.0, "rows_per_person": 2, "delta": 1e-6}),
        (pf.GammaRegressor, "one", {"epsilon": 1000.0, "fit_intercept": False, "expected_rows": 40}),
        (pf.FractionalRegressor, "huge", {"epsilon": 1.0}),
        (pf.FractionalRegressor, "wide", {"epsilon": 1000.0}),
        (pf.QuantileRegressor, "gaps", {"epsilon": 1000.0, "quantile": 0.9}),
        (pf.QuantileRegressor, "small", {"epsilon": 0.7, "expected_rows": 40}),
        (pf.LinearRegression, "gaps", {"epsilon": 1000.0, "mechanism": "objective"}),
        (pf.LinearRegression, "levels", {"epsilon": 0.01, "mechanism": "objective", "expected_rows": 40}),
        (pf.Ridge, "small", {"epsilon": 1000.0, "mechanism": "objective", "alpha": 3.0, "delta": 1e-6}),
    ]
    for place, (estimator, features, own) in enumerate(many):
        parameters = {"intervals": True, **own}
        adjacency = ADJACENCIES[place % 2]
        yield _setting(
            estimator, features, FEATURES[features], NUMBER, adjacency, parameters, may_refuse=True, after=_sure_of
        )


def _sure_of(model: Any) -> Any:
    return model.coef_interval_, model.intercept_interval_, str(model.summary())


def of_number_terms() -> Iterator[Setting]:
    """Interaction terms of a regression, with tiny and huge epsilons, a delta, bands and a monotone curve."""
    many: tuple[dict[str, Any], ...] = (
        {"epsilon": 0.7, "interactions": 2},
        {"epsilon": 0.01, "interactions": 1, "rows_per_person": 2},
        {"epsilon": 1000.0, "interactions": 3, "delta": 1e-6},
        {"epsilon": 3.0, "interactions": 1, "bands": True, "monotone": {GAPS[0].name: 1}},
    )
    for turn, own in enumerate(many):
        parameters = {"numeric": "splines", "expected_rows": 40, **own}
        adjacency = ADJACENCIES[turn % 2]
        yield _setting(
            pf.AdditiveRegressor, "gaps", GAPS, NUMBER, adjacency, parameters, thorough=turn < 2, may_refuse=True
        )


def of_weighed_losses() -> Iterator[Setting]:
    """Classes with public weights that are a part of a polynomial loss."""
    many: tuple[tuple[str, dict[str, Any]], ...] = (
        ("one", {"class_weight": {"a": 1e-6}, "epsilon": 1000.0}),
        ("small", {"class_weight": {"a": 5.0}, "loss": pf.losses.logistic(4)}),
        ("gaps", {"class_weight": {"a": 5.0}, "rows_per_person": 2, "epsilon": 0.01}),
    )
    for turn, (features, parameters) in enumerate(many):
        yield _setting(
            pf.FunctionalClassifier,
            features,
            FEATURES[features],
            CLASSES,
            ADJACENCIES[turn % 2],
            parameters,
            thorough=True,
        )


def _fit_weighed(model: Any, table: Any) -> Any:
    """With weights from a column of the table; of arrays and lists, whose columns have no names, with an array."""
    if not isinstance(table, np.ndarray | list):
        return model.fit(table, sample_weight=WEIGHT.name)
    rows = np.array(table, dtype=object) if isinstance(table, list) else table
    return model.fit(np.delete(rows, 0, axis=1), sample_weight=rows[:, 0].astype(float))


def of_weighed_rows() -> Iterator[Setting]:
    """Rows that come with weights, which differ between neighbours: 0 and some far above their bound among them."""
    event = pf.Category("event", [0, 1])
    many: list[tuple[Any, str, Any, dict[str, Any]]] = [
        (pf.LinearRegression, "small", NUMBER, {"epsilon": 0.7}),
        (pf.LinearRegression, "gaps", NUMBER, {"epsilon": 1000.0, "mechanism": "objective", "intervals": True}),
        (pf.LogisticRegression, "gaps", CLASSES, {"epsilon": 1000.0}),
        (pf.LogisticRegression, "small", CLASSES, {"epsilon": 0.01, "mechanism": "output", "rows_per_person": 2}),
        (pf.AdditiveClassifier, "gaps", CLASSES, {"epsilon": 1000.0, "monotone": {GAPS[0].name: 1}}),
        (pf.AdditiveClassifier, "levels", CLASSES, {"epsilon": 0.01, "delta": 1e-6}),
        (pf.PoissonRegressor, "small", NUMBER, {"epsilon": 1000.0}),
        (pf.PoissonRegressor, "gaps", NUMBER, {"epsilon": 0.01, "intervals": True}),
        (pf.CoxRegression, "small", NUMBER, {"epsilon": 0.7, "time": NUMBER.name, "event": event}),
        (pf.CoxRegression, "gaps", NUMBER, {"epsilon": 1000.0, "time": NUMBER.name, "event": event, "intervals": True}),
        (pf.FunctionalRegressor, "small", NUMBER, {"loss": pf.losses.poisson(4), "epsilon": 1000.0}),
        (pf.FunctionalRegressor, "gaps", NUMBER, {"epsilon": 0.01, "rows_per_person": 2}),
        (pf.GaussianNB, "gaps", CLASSES, {"epsilon": 0.7, "numeric": "slope"}),
        (pf.GaussianNB, "small", CLASSES, {"epsilon": 1000.0, "numeric": "bins", "rows_per_person": 3}),
        (pf.GaussianNB, "levels", CLASSES, {"epsilon": 0.01, "delta": 1e-6}),
        (pf.PCA, "gaps", None, {"epsilon": 0.7}),
        (pf.PCA, "small", None, {"epsilon": 1000.0, "n_components": 0.5, "rows_per_person": 3}),
        (pf.PCA, "levels", None, {"epsilon": 0.01, "delta": 1e-6}),
    ]
    for place, (estimator, features, target, parameters) in enumerate(many):
        columns = [*FEATURES[features], *([event] if estimator is pf.CoxRegression else [])]
        own = pf.Schema(columns, target)
        setting = _setting(
            estimator,
            f"weighed {features}",
            [WEIGHT, *columns],
            target,
            ADJACENCIES[place // 2 % 2],
            {"max_weight": 1.5, **parameters},
            thorough=place % 2 == 0,
            may_refuse=True,
            fit=_fit_weighed,
            after=_sure_of if parameters.get("intervals") else None,
        )
        yield replace(setting, make=_with_own(setting.make, own))


def _with_own(make: Callable[..., Any], own: pf.Schema) -> Callable[..., Any]:
    """A model of this schema, whatever other columns its tables have."""
    return lambda schema, **given: make(schema=own, **given)


SURVIVAL = [pf.Category("event", [0, 1])]
"""Beside features: what a time is that of."""


def of_hazards() -> Iterator[Setting]:
    """Log hazard ratios, with tiny and huge epsilons, a delta, several rows a person, few and many bins of time."""
    many: tuple[tuple[str, dict[str, Any]], ...] = (
        ("small", {"epsilon": 0.7}),
        ("gaps", {"epsilon": 0.01, "rows_per_person": 2}),
        ("levels", {"epsilon": 1000.0, "time": pf.Numeric("y", 0, 5, bins=2)}),
        ("gaps", {"epsilon": 3.0, "numeric": "splines", "delta": 1e-6}),
        ("wide", {"epsilon": 1.0, "time": pf.Numeric("y", -5, 5, bins=100), "expected_rows": 40}),
        ("huge", {"epsilon": 1.0, "time": pf.Numeric("y", -1e9, 1e-9)}),
        ("small", {"epsilon": 0.01, "intervals": True}),
        ("levels", {"epsilon": 3.0, "intervals": True, "rows_per_person": 2}),
        ("gaps", {"epsilon": 1000.0, "intervals": True}),
    )
    for turn, (features, own) in enumerate(many):
        yield _setting(
            pf.CoxRegression,
            features,
            [*FEATURES[features], *SURVIVAL],
            NUMBER,
            ADJACENCIES[turn % 2],
            {"time": "y", **own},
            thorough=turn < 2,
            may_refuse=True,
            after=_survival_of,
        )


def _survival_of(model: Any) -> Any:
    sure = (model.coef_interval_, str(model.summary())) if model.intervals else ()
    return model.hazard_ratios_, model.times_, model.baseline_survival_, model.baseline_band_, sure


def families() -> dict[Callable[[], Iterable[Setting]], int]:
    """Families of settings, each with the place of its first: frozen results have the place as their name and seed.

    A new family starts at the next free hundred, so that no other place moves. A family that is full (a test says so)
    goes on in a new one.
    """
    return {
        of_variants: 0,
        of_ridges: 132,
        of_perturbations: 186,
        of_hard_minima: 213,
        of_moments: 221,
        of_clusters: 237,
        of_functions: 256,
        of_weights: 264,
        of_publishers: 278,
        of_baselines: 291,
        of_printed: 319,
        of_regressions: 337,
        of_summaries: 359,
        of_rows_left_out: 359,
        of_quantiles: 369,
        of_selected_columns: 375,
        of_components: 379,
        of_weighed_classes: 391,
        of_bands: 394,
        of_naive_bayes: 397,
        of_amounts: 409,
        of_searches: 500,
        of_intervals: 600,
        of_absolute_penalties: 700,
        of_number_terms: 900,
        of_regression_intervals: 1000,
        of_hazards: 1100,
        of_weighed_losses: 1200,
        of_weighed_rows: 1300,
    }


def all_settings() -> list[Setting]:
    """Every setting."""
    return [setting for family in families() for setting in family()]


def known_mechanisms() -> set[str]:
    """The names of all mechanisms there are: whatever is a Mechanism, can be made, and says that it is private."""
    found, left = set(), [Mechanism]
    while left:
        one = left.pop()
        left.extend(one.__subclasses__())
        if one.__module__.startswith("privfit.") and not inspect.isabstract(one):
            found.add(one.__name__)
    return found - NOT_PRIVATE - INSIDE - RELEASES_NAMES


NOT_PRIVATE = {"AsItIs", "Noiseless"}
"""Of NoPrivacy and Truncated, which refuse every ledger."""
RELEASES_NAMES = {"OpenLevels"}
"""Which levels pass is what it releases, and a replay of noise does not hold them: tests/mechanisms/test_open_levels.py
computes its law for neighbours, and that what it draws is the same for all of them."""
INSIDE = {
    *("NoisyMinimum", "RegressionWeights", "QuantileWeights", "AmountWeights", "ProportionWeights", "HazardWeights"),
    "_WeightsBeside",
}
"""Steps of DensityRatio, of ObjectiveRegression and its kinds, of ObjectiveHazards, and of PairedPerturbation, which
have settings."""
