"""Seeded fits are the same, to the bit, however rows are cut into batches and in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privfit as pf
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
