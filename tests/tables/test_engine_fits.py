"""Every estimator on every engine: the same integer sums, and the same model to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import privfit as pf
from privfit.models import ESTIMATORS
from privfit.rows import Rows
from tests.support.sources import CSV_SOURCES, SOURCES, Source

ROWS = 90
FEATURES = [
    pf.Numeric("age", 17, 90, fill=40),
    pf.Category("city", ["Oslo", "São Paulo", "x, y; z"], fill="Oslo"),
    pf.Numeric("wage", -1.5, 60.25, bins=4, fill="missing"),
    pf.Category("code", [10, 20, 30], other=True, fill=30),
]
INCOME, ILL = pf.Numeric("income", 0.1, 1000), pf.Category("ill", ["no", "yes"])
NUMBERS = [pf.Numeric("age", 17, 90, fill=40), pf.Numeric("income", 0.1, 1000)]


def table() -> pa.Table:
    """People with gaps, values out of bounds and levels that are not listed."""
    rng = np.random.default_rng(7)
    age = np.round(rng.uniform(10, 95, ROWS), 3)
    cities = [["Oslo", "São Paulo", "x, y; z", None][place] for place in rng.integers(0, 4, ROWS)]
    wage = [None if place % 11 == 0 else float(value) for place, value in enumerate(rng.uniform(-3, 70, ROWS))]
    codes = [[10, 20, 30, 77, None][place] for place in rng.integers(0, 5, ROWS)]
    return pa.table(
        {
            "age": pa.array([None if place % 13 == 0 else float(value) for place, value in enumerate(age)]),
            "city": cities,
            "wage": wage,
            "code": pa.array(codes, pa.int64()),
            "income": rng.uniform(0, 1200, ROWS),
            "ill": np.where(rng.random(ROWS) < 0.5, "no", "yes").tolist(),
        }
    )


def relation(made: pa.Table, _: Path) -> Any:
    return pytest.importorskip("duckdb").connect().from_arrow(made)


ENGINES: dict[str, Source] = {
    "pandas": lambda made, _: made.to_pandas(),
    "arrow": lambda made, _: made,
    "polars, lazy": lambda made, _: pl.from_arrow(made).lazy(),  # type: ignore[union-attr]
    "arrow reader": lambda made, _: made.to_reader(max_chunksize=7),
    "duckdb relation": relation,
    **SOURCES,
    **CSV_SOURCES,
}
OWN: dict[str, dict[str, Any]] = {
    "FunctionalRegressor": {"loss": pf.losses.poisson()},
    "ERM": {"loss": pf.losses.LOGISTIC},
}


def fits() -> Iterator[tuple[str, Callable[[Any], list[np.ndarray]]]]:
    """A name and a seeded fit for every estimator: what it released, as arrays."""
    for estimator in ESTIMATORS:
        classes = estimator.__name__ in (
            "LogisticRegression",
            "LinearSVC",
            "FunctionalClassifier",
            "ERM",
            "AdditiveClassifier",
        )
        schema = pf.Schema(FEATURES, ILL if classes else INCOME)
        own = OWN.get(estimator.__name__, {})

        def fit(source: Any, estimator: Any = estimator, schema: Any = schema, own: Any = own) -> list[np.ndarray]:
            model = estimator(epsilon=3.0, schema=schema, random_state=5, **own).fit(source)
            return [np.ravel(model.coef_), np.ravel(model.intercept_)]

        yield estimator.__name__, fit
    schema = pf.Schema(FEATURES, ILL)
    for mechanism in ("output", "functional", "genetic"):

        def by(source: Any, mechanism: str = mechanism) -> list[np.ndarray]:
            model = pf.LogisticRegression(3.0, schema=schema, random_state=5, mechanism=mechanism).fit(source)
            return [np.ravel(model.coef_), np.ravel(model.intercept_)]

        yield mechanism, by
    numbers = pf.Schema(NUMBERS)
    yield (
        "KMeans",
        lambda source: [pf.KMeans(3, epsilon=3.0, schema=numbers, random_state=5).fit(source).cluster_centers_],
    )
    hazards = pf.CoxRegression(3.0, schema=pf.Schema(FEATURES[:2]), time=INCOME, event=ILL, random_state=5)
    yield "CoxRegression", lambda source: [hazards.fit(source).coef_, hazards.baseline_hazard_]
    yield "PCA", lambda source: [pf.PCA(2, epsilon=3.0, schema=numbers, random_state=5).fit(source).components_]
    yield (
        "GaussianNB",
        lambda source: [pf.GaussianNB(3.0, schema=schema, random_state=5).fit(source).predict_proba(table())],
    )
    for estimator, target in ((pf.LogisticRegression, ILL), (pf.LinearRegression, INCOME)):

        def evaluated(source: Any, estimator: Any = estimator, target: Any = target) -> list[np.ndarray]:
            model = estimator(3.0, schema=pf.Schema(FEATURES, target), random_state=5).fit(pl.from_arrow(table()))
            found = pf.evaluate(model, source, epsilon=1.0, random_state=5, expected_rows=ROWS)
            return [np.array(list(found.figures.values()))]

        yield f"evaluate {estimator.__name__}", evaluated
    yield (
        "ImportanceWeights",
        lambda source: [
            pf.ImportanceWeights(3.0, schema=pf.Schema(FEATURES), random_state=5).fit(source, table()).weights_
        ],
    )


FITS = dict(fits())
ASK_FOR_ROWS = ("LogisticRegression", "LinearSVC", "ERM", "AdditiveRegressor", "AdditiveClassifier", "output")
"""Fits that choose their form by the number of rows, which a stream cannot tell before it is read."""


@pytest.fixture(scope="module")
def expected() -> dict[str, list[np.ndarray]]:
    """What every fit gives on a polars frame."""
    return {name: fit(pl.from_arrow(table())) for name, fit in FITS.items()}


FAR = ("s3 ", "hive", "dask", "spark")
"""Engines that take a hundred times as long as a fit."""


TURNS = 3
"""In `make test` an engine has one in so many of the fits that are not among the few."""


def on_every_engine(names: tuple[str, ...], few: tuple[str, ...]) -> pytest.MarkDecorator:
    """Engines with the fits to make on them: a few, one for every way to read rows, and on those that do not take long
    others in turn; in `make audit` all.
    """
    others, quick = [name for name in names if name not in few], list[tuple[str, tuple[str, ...]]]()
    for place, engine in enumerate(ENGINES):
        more = () if engine.startswith(FAR) else others[place % TURNS :: TURNS]
        quick.append((engine, (*few, *more)))
    audit = [pytest.param(engine, names, marks=pytest.mark.slow) for engine in ENGINES]
    return pytest.mark.parametrize(("engine", "names"), [*quick, *audit])


def sources(engine: str, folder: Path) -> Iterator[Any]:
    """The table for one fit after the other: what is read by its name is made once."""
    made = ENGINES[engine](table(), folder)
    while True:
        yield made
        if not isinstance(made, str | Path):
            made = ENGINES[engine](table(), folder)


@on_every_engine(tuple(FITS), few=("LinearRegression", "KMeans", "ImportanceWeights", "evaluate LogisticRegression"))
def test_every_estimator_gives_the_same_bits_on_every_engine(
    engine: str, names: tuple[str, ...], expected: dict[str, list[np.ndarray]], tmp_path: Path
) -> None:
    asked = [name for name in names if not (engine == "arrow reader" and name in ASK_FOR_ROWS)]
    for name, source in zip(asked, sources(engine, tmp_path), strict=False):
        for one, other in zip(FITS[name](source), expected[name], strict=True):
            assert one.tobytes() == other.tobytes(), name


@pytest.mark.parametrize(
    "engines",
    [
        ("pandas", "arrow", "polars, lazy"),
        ("arrow file", "feather file", "folder, arrow"),
        ("duckdb table", "duckdb query", "postgresql table"),
    ],
)
def test_every_estimator_meets_memory_files_and_databases_in_make_test(engines: tuple[str, ...]) -> None:
    quick, audit = list[str](), list[str]()
    for given in test_every_estimator_gives_the_same_bits_on_every_engine.pytestmark[0].args[1]:
        marked = hasattr(given, "marks")
        engine, names = given.values if marked else given
        if engine in engines:
            (audit if marked else quick).extend(names)
    assert set(quick) == set(audit) == set(FITS)


@on_every_engine(
    ("LinearRegression", "Ridge", "FunctionalClassifier", "FunctionalRegressor", "functional"),
    few=("FunctionalRegressor",),
)
def test_every_sum_has_the_same_bits_on_every_engine(
    engine: str, names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All integer sums that estimators ask for, as they leave the rows."""
    seen: list[bytes] = []
    whole = Rows.sum

    def watched(self: Rows, kernel: Any) -> np.ndarray:
        sums = whole(self, kernel)
        assert sums.dtype == np.int64
        seen.append(sums.tobytes())
        return sums

    monkeypatch.setattr(Rows, "sum", watched)
    for name in names:
        FITS[name](pl.from_arrow(table()))
        one, seen = list(seen), []
        FITS[name](ENGINES[engine](table(), tmp_path))
        assert one, name
        assert seen == one, name
        seen.clear()
