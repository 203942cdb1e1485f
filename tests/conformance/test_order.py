"""Seeded fits are the same, to the bit, however rows are cut into batches and in whatever order they come."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import privfit as pf
from privfit.audit.attacks import shown_bits
from privfit.audit.cases import Case, spacious_ledger
from privfit.audit.catalogue import catalogue
from privfit.audit.recording import RecordingNoise, noise_from
from privfit.rows import Rows
from privfit.tables import Batch
from tests.conformance.frozen import LENGTH, frozen, named_settings

SETTINGS = named_settings()
QUICK = 4
"""One setting in so many is tried in `make test`, and all of them in `make audit`."""
BY_POSITION = (
    *("alpha=select", "TunedPerturbation", "regularisation=tune", "ggregat", "LaplacePublisher", "PrivateSearch"),
)
"""Fits that draw random bits for every row, or hand out rows one by one: the order of rows is part of their seed."""


def marked() -> list[Any]:
    return [
        pytest.param(place, name, marks=[pytest.mark.slow] * (place % QUICK != 1))
        for place, name in enumerate(SETTINGS)
    ]


def cut_at_random(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Let tables come in batches of other lengths, of a single row too."""
    whole, rng = Rows.batches, np.random.default_rng(seed)

    def batches(self: Rows) -> Iterator[Batch]:
        for batch in whole(self):
            rows = len(batch[0])
            ends = [*sorted({1, *rng.integers(1, rows + 1, 5).tolist()}), rows] if rows else []
            for start, end in zip([0, *ends], ends, strict=False):
                if end > start:
                    yield [column[start:end] for column in batch]

    monkeypatch.setattr(Rows, "batches", batches)


@pytest.mark.parametrize(("place", "name"), marked())
def test_no_cut_and_no_order_changes_a_bit(place: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = SETTINGS[name]
    expected = frozen(setting, place)
    cut_at_random(monkeypatch, place)
    by_position = any(word in setting.name for word in BY_POSITION)
    order = range(LENGTH) if by_position else np.random.default_rng(place).permutation(LENGTH).tolist()
    assert frozen(setting, place, order) == expected


def test_a_fit_by_position_is_seen_to_change() -> None:
    place, setting = next((place, one) for place, one in enumerate(SETTINGS.values()) if "TunedPert" in one.name)
    assert frozen(setting, place, range(LENGTH)[::-1]) != frozen(setting, place)


# -- the same rows from sources that know their number and from those that do not ------------------

PLANNED = [case for case in catalogue() if not {"rows_per_person", "delta"} & case.setting.keys()]
"""What plans by the number of rows without these settings does so with them."""


def forms(table: pl.DataFrame, path: Path) -> Iterator[tuple[str, Any]]:
    """One table from sources that do not know how many rows they have before they are read; some pass by once."""
    yield "a stream", table.to_arrow().to_reader(max_chunksize=1 + len(table) // 7)
    yield "a query", table.lazy()
    table.write_csv(path / "table.csv")
    yield "a CSV file", path / "table.csv"


def seeded_bits(case: Case, table: object) -> bytes:
    with noise_from(RecordingNoise(7)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shown_bits(case.make("replace-one", spacious_ledger(), case.epsilon).fit(table))


@pytest.mark.parametrize("length", [12, 3000])
@pytest.mark.parametrize("case", PLANNED, ids=lambda case: case.key)
def test_every_source_of_the_same_rows_gives_the_same_bits(case: Case, length: int, tmp_path: Path) -> None:
    """What is planned by the number of rows, which a stream or a query knows after it was read, is planned alike."""
    rows = case.rows
    table = rows.frame(tuple(rows.random_row() for _ in range(length)))
    expected = seeded_bits(case, table)
    sources = [*forms(table, tmp_path)][: None if length > 12 else 1]
    assert [told for told, source in sources if seeded_bits(case, source) != expected] == []


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("left_out", [{"where": {"x": (None, 0.5)}}, {"person": "p"}], ids=["filter", "persons"])
def test_where_rows_are_left_out_too(adjacency: str, left_out: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    x, v = rng.uniform(-1, 1, (2, 900))
    frame = pl.DataFrame({"x": x, "v": v, "y": (x + v > 0).astype(int), "p": np.arange(900) // 2})
    schema = pf.Schema([pf.Numeric("x", -1, 1), pf.Numeric("v", -1, 1)], pf.Category("y", [0, 1]), **left_out)
    for estimator in (pf.LogisticRegression, pf.GaussianNB, pf.LinearSVC):
        model = estimator(schema=schema, adjacency=adjacency, random_state=1)
        found = [vars(clone(model).fit(table)) for table in (frame, frame.to_arrow().to_reader(max_chunksize=99))]
        for name in ("coef_", "intercept_", "theta_", "class_prior_"):
            np.testing.assert_array_equal(found[0].get(name, 0), found[1].get(name, 0))


@pytest.mark.parametrize("what", ["classes", "numbers"])
def test_a_model_is_evaluated_alike_on_every_source(what: str, tmp_path: Path) -> None:
    """Its grid of scores goes by the number of rows; where rows are left out, by that of all rows."""
    rng = np.random.default_rng(3)
    x, v = rng.uniform(-1, 1, (2, 900))
    y = (x + v > 0).astype(int) if what == "classes" else x + v
    target = pf.Category("y", [0, 1]) if what == "classes" else pf.Numeric("y", -2, 2)
    frame = pl.DataFrame({"x": x, "v": v, "y": y})
    for where in ({}, {"where": {"v": (None, 0.5)}}):
        schema = pf.Schema([pf.Numeric("x", -1, 1), pf.Numeric("v", -1, 1)], target, **where)
        estimator = pf.LogisticRegression if what == "classes" else pf.LinearRegression
        model = estimator(schema=schema, random_state=1).fit(frame)
        expected = str(pf.evaluate(model, frame, epsilon=1.0, random_state=2))
        for told, table in forms(frame, tmp_path):
            assert str(pf.evaluate(model, table, epsilon=1.0, random_state=2)) == expected, told


# -- a refusal leaves a stream as it was -----------------------------------------------------------


def asked_of(ledger: pf.Ledger, table: object) -> Iterator[Callable[[], object]]:
    """Fits and functions that plan by the number of rows, at a price beyond the ledger's."""
    x, y = pf.Numeric("x", -1, 1), pf.Category("y", [0, 1])
    model = pf.LogisticRegression(schema=pf.Schema([x], y), random_state=0)
    model.fit(pl.DataFrame({"x": [0.5, -0.5], "y": [0, 1]}))
    for estimator in (pf.LogisticRegression, pf.LinearSVC, pf.GaussianNB, pf.AdditiveClassifier):
        yield partial(estimator(2.0, schema=pf.Schema([x], y), ledger=ledger).fit, table)
    yield partial(pf.LinearRegression(2.0, schema=pf.Schema([x], pf.Numeric("y", 0, 1)), ledger=ledger).fit, table)
    yield partial(pf.baselines.DPME(2.0, schema=pf.Schema([x, y]), ledger=ledger).fit, table)
    yield partial(pf.quantile, table, x, 0.5, epsilon=2.0, ledger=ledger)
    yield partial(pf.describe, table, pf.Schema([x, y]), epsilon=2.0, ledger=ledger)
    yield partial(pf.evaluate, model, table, epsilon=2.0, ledger=ledger)


def test_a_stream_is_not_used_up_by_what_no_ledger_pays_for() -> None:
    ledger, stream = pf.Ledger(epsilon=1.0), pa.table({"x": [0.1, 0.9] * 20, "y": [0, 1] * 20}).to_reader()
    for ask in asked_of(ledger, stream):
        with pytest.raises(pf.BudgetExceeded):
            ask()
    assert ledger.n_entries == 0
    assert stream.read_all().num_rows == 40


# -- tables of which a solver sees a part first ----------------------------------------------------

N = 12_000
SCHEMA = pf.Schema(
    [pf.Numeric("age", 0, 90), pf.Category("city", [f"c{i}" for i in range(30)]), pf.Numeric("wage", 0, 1e5)],
)


def people(order: np.ndarray, cut: int) -> pa.Table:
    rng = np.random.default_rng(5)
    age, wage = rng.uniform(0, 90, N), rng.lognormal(9, 1, N)
    city, z = rng.integers(0, 30, N), rng.normal(size=N)
    whole = {
        "age": age,
        "city": [f"c{i}" for i in city],
        "wage": wage,
        "two": np.where(age / 90 + 0.3 * z > 0.5, "b", "a"),
        "three": np.array(["p", "q", "r"])[np.clip((age / 30 + z).astype(int), 0, 2)],
        "pay": 1e3 * age + 1e4 * z + 1e3 * city,
    }
    columns = {name: np.asarray(values)[order] for name, values in whole.items()}
    return pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=cut))


TWO, THREE, PAY = (
    SCHEMA.with_target(target)
    for target in (pf.Category("two", ["a", "b"]), pf.Category("three", ["p", "q", "r"]), pf.Numeric("pay", 0, 2e5))
)
LARGE: dict[str, Any] = {
    "logistic": pf.LogisticRegression(schema=TWO),
    "logistic, slopes": pf.LogisticRegression(schema=TWO, numeric="slope"),
    "logistic, output": pf.LogisticRegression(schema=TWO, mechanism="output"),
    "softmax": pf.LogisticRegression(schema=THREE),
    "hinge": pf.LinearSVC(schema=TWO),
    "one against rest": pf.LinearSVC(schema=THREE, mechanism="output"),
    "kernel": pf.LinearSVC(schema=TWO, kernel="rbf", n_components=20),
    "regression": pf.LinearRegression(schema=PAY, mechanism="objective"),
    "genetic": pf.LogisticRegression(schema=TWO, mechanism="genetic"),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_tables_have_no_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privfit.rows.cached_design.SAMPLE_VALUES", 1 << 14)
    found = set()
    for seed, cut, jobs in ((0, N, 1), (1, 5000, 2), (2, 333, 3)):
        order = np.random.default_rng(seed).permutation(N) if seed else np.arange(N)
        model = LARGE[name].__class__(**{**LARGE[name].get_params(deep=False), "random_state": 7, "n_jobs": jobs})
        model.fit(people(order, cut))
        found.add(np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)]).tobytes())
    assert len(found) == 1
