"""Everything that is attacked, because it exists: estimators with every mechanism that they take by name, publishers,
baselines, and the functions that release something.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from sklearn.base import is_classifier

from privfit.audit.cases import EXPECTED, Case, Fits, Maker, Setting
from privfit.audit.questions import questions
from privfit.audit.rows import RowMaker
from privfit.baselines import DPME, FilterPriority, LaplacePublisher, Majority, PrivateERM, PrivateSVM
from privfit.mechanisms import ObjectivePerturbation, ObjectiveRegression
from privfit.models import (
    ESTIMATORS,
    PCA,
    Aggregate,
    CoxRegression,
    GaussianNB,
    GeneticSearch,
    KMeans,
    LogisticRegression,
    PrivateSearch,
    SelectPrivate,
)
from privfit.models.named import CLASSIFIERS, LEAST_SQUARES
from privfit.models.private import AnyModel, WeightedFit
from privfit.privacy import Adjacency, Ledger, PrivacyError
from privfit.publish import ImportanceWeights
from privfit.schema import Category, Column, Numeric, Schema
from privfit.statistics import RowFitness

PLAIN: tuple[Setting, ...] = ({}, {"delta": 1e-6}, {"rows_per_person": 2})
PERSON = "person"
NAMES = tuple(dict.fromkeys((*LEAST_SQUARES.named, *CLASSIFIERS.named, "hybrid", "grid", "cells", "lloyd")))
"""Every name that `mechanism=` of any estimator takes."""
EPSILONS = (0.1, 1.0, 4.0)
"""The prices of a full audit."""
FEATURES: tuple[Column, ...] = (
    Numeric("age", 0, 100),
    Numeric("offset", 100, 101),
    Category("region", ["north", "east", "south"]),
    Category("member", ["no", "yes"]),
)
NUMBERS: tuple[Column, ...] = (Numeric("u", 0, 1), Numeric("v", -3, 9))
ONE: tuple[Column, ...] = (Numeric("x", -1, 1),)
CLASSES, NUMBER = Category("y", ["a", "b"]), Numeric("y", -5, 5)
STAY, LEFT = Numeric("stay", 0, 30), Category("left", ["no", "yes"])
"""Of survival: a time, and whether something happened then."""
WEIGHT, MOST = Numeric("weight", 0, 2), {"max_weight": 2.0}
ROUNDS, CANDIDATES = 2, 12
"""Of a genetic search: few, so that it is quick."""
SYNTHETIC_ROWS = 50
"""Public rows of importance weights: few, so that they are quick."""


def catalogue(schema: Schema | None = None, seed: int = 0, full: bool = False) -> list[Case]:
    """Every case, on built-in tables or on those of a schema, which some of them cannot take."""
    plain = list(_quick(schema, seed))
    cases = plain if not full else [own for one in plain for own in _priced(one)]
    return [own for name in dict.fromkeys(case.name for case in cases) for own in _shared([*_named_so(cases, name)])]


def _named_so(cases: list[Case], name: str) -> Iterator[Case]:
    """The cases of a name; first the first one at epsilon 1."""
    own = [case for case in cases if case.name == name]
    yield from sorted(own, key=lambda case: case.epsilon != 1 or case.setting != own[0].setting)


def _shared(cases: list[Case]) -> Iterator[Case]:
    """Half of the runs of a name are its first case's, where they show most; the others share the rest."""
    for place, case in enumerate(cases):
        others = 0.5 / max(len(cases) - 1, 1)
        yield replace(case, share=others if place else 1.0 if len(cases) == 1 else 0.5)


def _rows(setting: Setting) -> int:
    """How many rows of a person count."""
    return int(setting.get("rows_per_person", 1))


def _priced(case: Case) -> Iterator[Case]:
    """A case at every epsilon."""
    for epsilon in EPSILONS:
        yield replace(case, epsilon=epsilon)


def _quick(schema: Schema | None, seed: int) -> Iterator[Case]:
    for estimator in (*ESTIMATORS, GaussianNB):
        yield from of_estimator(estimator, schema, seed)
    features = FEATURES if schema is None else tuple(schema.features)
    yield from _others(Schema(features), Schema(NUMBERS) if schema is None else None, schema, seed)
    if schema is None:
        yield from _searches(seed)
        yield from questions(seed)


def of_estimator(estimator: type[AnyModel], schema: Schema | None = None, seed: int = 0) -> Iterator[Case]:
    """An estimator with every mechanism that it takes by name, with a delta, several rows per person, and persons."""
    if not _takes(estimator, schema):
        return
    target = CLASSES if is_classifier(estimator()) else NUMBER
    own = Schema(FEATURES, target) if schema is None else Schema(schema.features, schema.target)
    usual, settings = estimator()._chosen_mechanism(), [*PLAIN]
    for name in NAMES:
        if (chosen := _named(estimator, name)) is not None and chosen != usual:
            settings += [{"mechanism": name}]
            settings += [{"mechanism": name, "delta": 1e-6}] if name in ("output", "objective", "adassp") else []
    if "intervals" in estimator().get_params() and isinstance(usual, ObjectivePerturbation):
        settings += [{"intervals": True}, {"intervals": True, "delta": 1e-6, "rows_per_person": 2}]
    for setting in settings:
        blocks = setting.get("mechanism") == "sample-and-aggregate"
        made = Case(estimator.__name__, _maker(estimator, own, setting), own, setting, seed=seed, by_position=blocks)
        yield replace(made, rows_of_a_person=_rows(setting))
    if schema is None:
        yield from _of_one_column(estimator, target, seed)
        with_persons = Schema(FEATURES, target, person=PERSON)
        setting = {"rows_per_person": 2, "person": PERSON}
        make = _maker(estimator, with_persons, {"rows_per_person": 2})
        yield Case(estimator.__name__, make, with_persons, setting, seed=seed, rows_of_a_person=5)
        yield from _of_some_rows(estimator, target, seed)


def _of_some_rows(estimator: type[AnyModel], target: Column, seed: int) -> Iterator[Case]:
    """With a filter that a person's row may fail, and with weights of rows, some of them beyond their bound."""
    filtered = Schema(FEATURES, target, where={"age": (None, 60)})
    yield Case(estimator.__name__, _maker(estimator, filtered, {}), filtered, {"where": "age"}, seed=seed)
    if issubclass(estimator, WeightedFit):
        rows, make = Schema((*FEATURES, WEIGHT), target), _maker(estimator, Schema(FEATURES, target), MOST)
        yield Case(estimator.__name__, _weighted(make), rows, MOST, seed=seed)


class Weighted:
    """A fit that takes weights from a column of its table."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: object, /) -> Self:
        """Fit it, and show what it shows."""
        self.model.fit(X, sample_weight=WEIGHT.name)
        vars(self).update({name: value for name, value in vars(self.model).items() if name != "ledger"})
        return self


def _weighted(make: Maker) -> Maker:
    return lambda adjacency, ledger, epsilon: Weighted(make(adjacency, ledger, epsilon))


def _of_one_column(estimator: type[AnyModel], target: Column, seed: int) -> Iterator[Case]:
    """Perturbed objectives of one column without an intercept, with pure and Gaussian noise: their law is exact."""
    mechanism = _named(estimator, "objective")
    if not {"numeric", "fit_intercept"} <= estimator().get_params().keys() or mechanism is None:
        return
    schema, plain = Schema(ONE, target), {"numeric": "slope", "fit_intercept": False}
    for noise, delta in (("l2", 0.0), ("gaussian", 1e-6)):
        kind = ObjectivePerturbation if isinstance(mechanism, ObjectivePerturbation) else ObjectiveRegression
        own = {**plain, "mechanism": kind(noise=noise), "delta": delta}  # type: ignore[arg-type]
        shown = {"columns": 1, "noise": noise} | ({"delta": delta} if delta else {})
        yield Case(estimator.__name__, _maker(estimator, schema, own), schema, shown, seed=seed)


def _takes(estimator: type[AnyModel], schema: Schema | None) -> bool:
    """Whether an estimator takes the target of a schema."""
    if schema is None:
        return True
    if (target := schema.target) is None or isinstance(target, Category) != is_classifier(estimator()):
        return False
    many = isinstance(target, Category) and len(target.levels) > 2
    return not many or bool(estimator()._chosen_mechanism().many_classes)


def _named(estimator: Callable[..., AnyModel], name: str) -> object:
    """The mechanism of this name, if the estimator takes it."""
    try:
        return estimator(mechanism=name)._chosen_mechanism()
    except (PrivacyError, TypeError):
        return None


def _maker(estimator: Callable[..., AnyModel], schema: Schema, setting: Setting, counts: bool = False) -> Maker:
    def make(adjacency: Adjacency, ledger: Ledger, epsilon: float) -> Fits:
        more = {"expected_rows": EXPECTED} if counts and adjacency == "add-remove" else {}
        return estimator(epsilon=epsilon, schema=schema, adjacency=adjacency, ledger=ledger, **{**setting, **more})

    return make


# -- estimators that are not linear, publishers and baselines ----------------------------------------


def first_column(rows: Any, candidates: Any) -> Any:
    """How near the first column of rows is to candidates."""
    return -np.abs(rows[:, :1] - candidates[:, 0])


def most_of_first(rows: Any) -> float:
    """The largest value of the first column: one row moves it all the way."""
    return float(np.max(rows[:, 0]))


def span(candidates: Any) -> float:
    """How far candidates are apart."""
    return float(np.ptp(candidates))


def _others(plain: Schema, numbers: Schema | None, given: Schema | None, seed: int) -> Iterator[Case]:
    """What has no target, or one that it treats as any column; and baselines of classifiers."""

    def case(estimator: Callable[..., Any], schema: Schema, setting: Setting, **more: Any) -> Case:
        counts, fixed, made = more.pop("counts", False), more.pop("fixed", {}), more.pop("made", setting)
        make = _maker(estimator, schema, {**made, **fixed}, counts)
        more["rows_of_a_person"] = _rows(setting)
        return Case(getattr(estimator, "__name__", ""), make, schema, setting, seed=seed, **more)

    if numbers is not None:
        for setting in (*PLAIN, *({"mechanism": name} for name in NAMES if _is_clusterer(name))):
            blocks = setting.get("mechanism") == "sample-and-aggregate"
            yield case(KMeans, numbers, setting, fixed={"n_clusters": 3}, counts=True, by_position=blocks)
        first = cast("Numeric", numbers.features[0])
        ends: dict[str, Any] = {"low": [first.low], "high": [first.high]}
        fitness = RowFitness(first_column, spread=span, bounds=(-1.0, 0.0))
        search = {**ends, "fitness": fitness, "rounds": ROUNDS, "candidates": CANDIDATES}
        for setting in (*PLAIN, *({"selection": name} for name in ("enhanced", "exponential", "permute-and-flip"))):
            yield case(GeneticSearch, numbers, setting, fixed=search, counts=True)
        for setting in (PLAIN[0], PLAIN[2]):
            own = {**ends, "function": most_of_first, "n_outputs": 1}
            yield case(Aggregate, numbers, setting, fixed=own, counts=True, by_position=True)
            yield case(LaplacePublisher, numbers, setting, adjacencies=("replace-one",), by_position=True)
    for setting in (*PLAIN, {"method": "paper"}, {"method": "objective"}):
        if not (given is not None and setting.get("method")):
            yield case(ImportanceWeights, plain, setting, fixed={"synthetic_rows": SYNTHETIC_ROWS}, counts=True)
    for setting in (PLAIN[0], PLAIN[2]):
        yield case(DPME, plain, setting, fixed={"cells": 3}, counts=True)
        filtered = {"cells": 3, "threshold": 3, "sample_size": 4}
        yield case(FilterPriority, plain, setting, fixed=filtered, counts=True, thresholded=True)
    for setting in (*PLAIN, {"scale": "bounds"}):
        yield case(PCA, plain, setting, counts=True)
    if given is None:
        yield Case(PCA.__name__, _weighted(_maker(PCA, plain, MOST)), Schema((*FEATURES, WEIGHT)), MOST, seed=seed)
    for setting in (*PLAIN, {"intervals": True}) if given is None else ():
        times = {"time": STAY.name, "event": LEFT.name}
        yield case(CoxRegression, Schema((*FEATURES, STAY, LEFT)), setting, fixed=times, counts=True)
        if setting == PLAIN[0]:
            make = _maker(CoxRegression, Schema((*FEATURES, STAY, LEFT)), {**MOST, **times}, True)
            weighed = Schema((*FEATURES, STAY, LEFT, WEIGHT))
            yield Case(CoxRegression.__name__, _weighted(make), weighed, MOST, seed=seed)
    target = CLASSES if given is None else given.target
    targets: tuple[Column, ...] = (CLASSES, NUMBER) if given is None else () if target is None else (target,)
    for aim, setting in itertools.product(targets, (PLAIN[0], PLAIN[2])):
        shown = {"of": "classes" if isinstance(aim, Category) else "numbers", **setting}
        yield case(SelectPrivate, Schema(plain.features, aim), shown, made=setting, fixed={"k": 2})
    if isinstance(target, Category) and len(target.levels) == 2:
        classes = Schema(plain.features, target)
        yield case(Majority, classes, {})
        yield case(Majority, classes, PLAIN[2])
        for setting in ({}, {"method": "output"}, {"regularisation": "tune"}):
            if _is_private(PrivateERM, classes, setting):
                yield case(PrivateERM, classes, setting, counts=True, by_position="regularisation" in setting)
        for setting in ({"calibration": "tight"}, {"calibration": "tight", "rows_per_person": 2}):
            yield case(PrivateSVM, classes, setting, fixed={"C": 1.0, "C_multiplies": "sum"}, counts=True)


def _is_clusterer(name: str) -> bool:
    return name != "auto" and _named(KMeans, name) is not None


def _is_private(estimator: Callable[..., Any], schema: Schema, setting: Setting) -> bool:
    """Whether a ledger accepts it: some printed forms are not private, and say so."""
    rows = RowMaker(schema, 0)
    try:
        estimator(schema=schema, ledger=Ledger(epsilon=1.0), **setting).fit(rows.frame((rows.corner(0),) * 12))
    except PrivacyError:
        return False
    return True


# -- a choice among fits -----------------------------------------------------------------------------


def _searches(seed: int) -> Iterator[Case]:
    """Private searches among two settings, which share epsilon, and among four, until a random stop."""
    schema = Schema(FEATURES, CLASSES)
    few: dict[str, list[Any]] = {"fit_intercept": [True, False]}
    for grid in (few, {**few, "numeric": ["slope", "bins"]}):
        number = math.prod(len(values) for values in grid.values())
        yield Case(
            "PrivateSearch",
            _search(schema, grid),
            schema,
            {} if number == 2 else {"settings": number},
            seed=seed,
            by_position=True,
            fits_inside=True,
            thresholded=number > 2,
        )


def _search(schema: Schema, grid: Setting) -> Maker:
    def make(adjacency: Adjacency, ledger: Ledger, epsilon: float) -> Fits:
        model = LogisticRegression(
            schema=schema, adjacency=adjacency, mechanism="functional", numeric="slope", expected_rows=EXPECTED
        )
        return PrivateSearch(model, grid, epsilon=epsilon, ledger=ledger)

    return make
