"""Neighbouring tables that hurt, and how to fit every estimator on them.

New estimators join by being in `privfit.models.ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

import privfit as pf

FEATURES = [
    pf.Numeric("age", 0, 100),
    pf.Numeric("offset", 100, 101),
    pf.Numeric("from_zero", 0, 1),
    pf.Category("region", ["north", "east", "south", "west"]),
    pf.Category("member", ["no", "yes"]),
]


@dataclass(frozen=True)
class Neighbours:
    name: str
    left: list[tuple]
    right: list[tuple]
    adjacency: str


def schema_for(estimator: type) -> pf.Schema:
    target = pf.Category("y", ["a", "b"]) if is_classifier(estimator()) else pf.Numeric("y", -5, 5)
    return pf.Schema(FEATURES, target)


def _label(estimator: type, value: float):
    return ("b" if value > 0 else "a") if is_classifier(estimator()) else value


def _rows(estimator: type, n: int, seed: int = 7) -> list[tuple]:
    rng = np.random.default_rng(seed)
    return [
        (
            float(rng.uniform(0, 100)),
            float(rng.uniform(100, 101)),
            float(rng.uniform(0, 1)),
            ["north", "east", "south"][rng.integers(3)],
            ["no", "yes"][rng.integers(2)],
            _label(estimator, float(rng.normal())),
        )
        for _ in range(n)
    ]


def neighbours(estimator: type) -> list[Neighbours]:
    """Worst pairs: opposite corners, the only member of a class or level, bounds at zero, offset bounds, rows of zeros,
    extreme labels.
    """
    base = _rows(estimator, 12)
    low, high = _label(estimator, -5.0), _label(estimator, 5.0)
    corner = (0.0, 100.0, 0.0, "north", "no", low)
    opposite = (100.0, 101.0, 1.0, "west", "yes", high)
    mixed = (0.0, 101.0, 1.0, "west", "no", high)
    outside = (1e300, -1e300, float("inf"), "south", "yes", high)
    middle = (50.0, 100.5, 0.5, "east", "no", low)
    swaps = [
        ("corners", corner, opposite),
        ("mixed", corner, mixed),
        ("clipped", outside, corner),
        ("middle", middle, opposite),
        ("label", corner, (*corner[:5], high)),
    ]
    pairs = [Neighbours(f"{name} swapped", [*base, a], [*base, b], "replace-one") for name, a, b in swaps]
    pairs += [Neighbours(f"{name} added", base, [*base, b], "add-remove") for name, _, b in swaps]
    pairs.append(Neighbours("the only two rows", [corner, corner], [corner, opposite], "replace-one"))
    same = [corner] * 10
    pairs.append(Neighbours("a lone member of class and level", [*same, corner], [*same, opposite], "replace-one"))
    pairs.append(Neighbours("the last row leaves a lone one", [corner], [corner, opposite], "add-remove"))
    return pairs


def frame(rows: list[tuple]):
    import polars as pl

    return pl.DataFrame(rows, schema=[*[column.name for column in FEATURES], "y"], orient="row")


AMOUNTS = (pf.PoissonRegressor, pf.GammaRegressor, pf.FractionalRegressor)
"""Numbers whose mean is a function of the predictor."""


def releases_weights(estimator: type, variant: dict) -> bool:
    """Whether a setting perturbs an objective or its minimum: what is noised is then no sum over rows, and has an
    attack of its own (test_perturbed).
    """
    if estimator in (pf.LinearSVC, pf.ERM, pf.AdditiveRegressor, pf.AdditiveClassifier, pf.QuantileRegressor, *AMOUNTS):
        return True
    if variant.get("mechanism") == "objective":
        return True
    if isinstance(variant.get("mechanism"), pf.ObjectiveRegression):
        return True
    return estimator is pf.LogisticRegression and not isinstance(
        variant.get("mechanism", "auto"), pf.FunctionalMechanism
    )


def variants(estimator: type) -> list[dict]:
    """Settings of an estimator that change what is released."""
    if estimator in (pf.AdditiveRegressor, pf.AdditiveClassifier, pf.QuantileRegressor, *AMOUNTS):
        return []  # they are in `objective_variants`
    if estimator in (pf.LinearSVC, pf.ERM):
        return perturbed_variants(estimator)
    return moment_variants(estimator) + (perturbed_variants(estimator) if estimator is pf.LogisticRegression else [])


def objective_variants(estimator: type) -> list[dict]:
    """Settings of an estimator of numbers that perturbs an objective; kept apart, so that the places of other settings
    stay what they were.
    """
    if estimator is pf.AdditiveClassifier:
        return [{}, {"monotone": {FEATURES[0].name: 1}, "numeric": "splines"}]
    if estimator is pf.AdditiveRegressor:
        older = [{}, {"numeric": "splines", "monotone": {FEATURES[0].name: -1}}, {"delta": 1e-6, "rows_per_person": 2}]
        return [*older, {"bands": True, "numeric": "splines"}]
    if estimator is pf.QuantileRegressor:
        return [{}, {"quantile": 0.9, "rows_per_person": 2}, {"fit_intercept": False}, {"delta": 1e-6, "quantile": 0.2}]
    if estimator is pf.PoissonRegressor:
        return [{}, {"rows_per_person": 2}, {"fit_intercept": False}, {"delta": 1e-6, "numeric": "splines"}]
    if estimator in AMOUNTS:
        return [{}, {"rows_per_person": 2, "fit_intercept": False}]
    if estimator is pf.Ridge:
        return [{"mechanism": "objective", "alpha": 2.0}, {"mechanism": "objective", "rows_per_person": 2}]
    if estimator is pf.Lasso:
        return [{"mechanism": "objective"}, {"mechanism": "objective", "alpha": 0.01, "expected_rows": 40}]
    if estimator is pf.ElasticNet:
        return [{"mechanism": "objective", "l1_ratio": 0.7, "rows_per_person": 2, "fit_intercept": False}]
    if estimator is not pf.LinearRegression:
        return []
    return [
        {"mechanism": "objective"},
        {"mechanism": "objective", "fit_intercept": False},
        {"mechanism": "objective", "numeric": "splines"},
        {"mechanism": "objective", "numeric": "bins", "rows_per_person": 3},
        {"mechanism": "objective", "delta": 1e-6, "expected_rows": 1000},
        {"mechanism": pf.ObjectiveRegression(noise="gaussian"), "delta": 1e-6, "rows_per_person": 2},
        {"mechanism": pf.ObjectiveRegression(noise="laplace")},
    ]


def all_variants(estimator: type) -> list[dict]:
    """All settings of an estimator."""
    return variants(estimator) + objective_variants(estimator)


def perturbed_variants(estimator: type) -> list[dict]:
    """Settings of an estimator that releases weights."""
    found = [
        {},
        {"fit_intercept": False},
        {"numeric": "bins"},
        {"numeric": "slope"},
        {"rows_per_person": 3},
        {"expected_rows": 1000},
        {"delta": 1e-6},
        {"delta": 1e-6, "mechanism": pf.ObjectivePerturbation(noise="gaussian"), "rows_per_person": 2},
        {"mechanism": "output"},
        {"mechanism": "output", "delta": 1e-6},
        {"mechanism": pf.OutputPerturbation(ridge=50.0, noise="laplace")},
        {"mechanism": pf.ObjectivePerturbation(ridge=0.001)},
        *({"mechanism": pf.ObjectivePerturbation(noise=noise)} for noise in ("laplace", "linf", "l2", "mixed")),
    ]
    if estimator is pf.LogisticRegression:
        found += [
            {"mechanism": pf.ObjectivePerturbation(steepest=1.0)},
            {"mechanism": pf.ObjectivePerturbation(steepest=0.3, ridge=20.0)},
        ]
    if estimator is pf.ERM:
        return [*found, {"penalty": 7.0}, {"loss": pf.losses.smooth_hinge(0.2)}]
    if estimator is pf.LinearSVC:
        found += [{"loss": "hinge", "mechanism": "output"}, {"width": 0.1}]
    return [*found, {"kernel": "rbf", "n_components": 6}]


def moment_variants(estimator: type) -> list[dict]:
    """Settings of an estimator that releases moments."""
    plain = [{}, {"fit_intercept": False}, {"numeric": "bins"}, {"rows_per_person": 3}]
    mechanisms = [pf.FunctionalMechanism(repair=repair) for repair in ("trim", "ridge", None)]
    mechanisms += [pf.FunctionalMechanism(noise=noise) for noise in ("linf", "l2")]
    mechanisms += [
        pf.FunctionalMechanism(calibration="paper"),
        pf.FunctionalMechanism(loss=pf.QuadraticLoss(curvature=0.5, slope=1.0, offset=0.3)),
    ]
    plain.append({"delta": 1e-6, "mechanism": pf.FunctionalMechanism(noise="gaussian")})
    if estimator is pf.LogisticRegression:
        plain = [{"mechanism": pf.FunctionalMechanism(), **variant} for variant in plain]
    if "loss" in estimator().get_params():  # whose loss is its own parameter, not the mechanism's
        return plain + [{"mechanism": mechanism} for mechanism in mechanisms[:-1]] + _losses(estimator)
    if (
        "alpha" in estimator().get_params()
    ):  # what is released is LinearRegression's, but for a penalty that is selected
        return [
            {},
            {"alpha": 2.0},
            {"alpha": "select"},
            {"alpha": "select", "alphas": [0.0, 5.0], "rows_per_person": 2},
        ]
    if estimator is pf.LinearRegression:
        plain += [{"mechanism": name, "delta": delta} for name in ("adassp", "boosted-adassp") for delta in (1e-6, 0.0)]
        plain += [
            {"mechanism": "boosted-adassp", "delta": 1e-6, "rows_per_person": 3},
            {"mechanism": "adassp", "delta": 1e-6, "fit_intercept": False},
            {"mechanism": pf.AdaSSP(rounds=2, residual_bound=0.25), "delta": 1e-6, "fit_intercept": False},
            {"mechanism": pf.AdaSSP(rounds=2), "fit_intercept": False, "numeric": "bins"},
        ]
    return (
        plain
        + [{"mechanism": mechanism} for mechanism in mechanisms]
        + [{"mechanism": mechanisms[-1], "fit_intercept": False}]
    )


def _losses(estimator: type) -> list[dict]:
    """Losses that moments cannot fit, of every degree, with the settings that change what is released of them."""
    if is_classifier(estimator()):
        parts = [pf.Part(lambda g: np.logaddexp(0, g), at=0.3), pf.Part(lambda g: -g, slope=lambda y: (1 + y) / 2)]
        return [
            {"loss": pf.losses.logistic(4), "fit_intercept": False},
            {"loss": pf.losses.logistic(4, interval=2, method="taylor"), "rows_per_person": 2},
            {"loss": pf.PolynomialLoss.from_parts(parts, degree=3, link="logistic")},
        ]
    return [
        {"loss": pf.losses.huber(1.0)},
        {"loss": pf.losses.huber(1.0), "fit_intercept": False, "numeric": "bins"},
        {"loss": pf.losses.poisson(3)},
        {"loss": pf.losses.poisson(4), "fit_intercept": False},
        {
            "loss": pf.PolynomialLoss.fit(
                lambda z, y: np.logaddexp(0, z - y) * (3 + np.sin(y)), degree=4, interval=(-1, 2)
            )
        },
    ]


ALWAYS = ("corners swapped", "corners added")
IN_TURN = 1


def is_quick(pair: int, names: list[str], place: int) -> bool:
    """Whether a pair is tried in `make test` for the variant in this place: all pairs for the first one; for others
    those that move most, and of the rest some in turn. `make audit` tries all.
    """
    others = [number for number, name in enumerate(names) if name not in ALWAYS]
    turns = {others[(IN_TURN * place + turn) % len(others)] for turn in range(IN_TURN)}
    return place == 0 or names[pair] in ALWAYS or pair in turns


def attacks(estimators: list[type], variants_of: Callable[[type], list[dict]]) -> list[Any]:
    """Estimator, pair and variant, for every one of them; those of one variant together: they share tables."""
    found = []
    for estimator in estimators:
        pairs = neighbours(estimator)
        names = [pair.name for pair in pairs]
        for place, variant in enumerate(variants_of(estimator)):
            told = ",".join(f"{name}={value}" for name, value in variant.items())
            for number, pair in enumerate(pairs):
                marks = () if is_quick(number, names, place) else (pytest.mark.slow,)
                name = f"{estimator.__name__}-{pair.name}-{pair.adjacency}-{told}"[:140]
                found.append(pytest.param(estimator, pair, variant, id=name, marks=marks))
    return found
