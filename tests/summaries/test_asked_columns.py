"""Single figures with a schema: which rows are used, columns by name, and what one person can change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.audit.recording import RecordingNoise, ReplayingNoise, noise_from
from tests.conformance.test_summaries import NORMS

COLUMNS = [pf.Numeric("age", 0, 100), pf.Category("ill", ["no", "yes"])]
SCHEMA = pf.Schema(COLUMNS, person="id", where={"area": ["here"]})
Ask = Callable[..., Any]
ASKED: dict[str, Ask] = {
    "count": lambda table, **more: pf.count(table, "ill", "yes", **more),
    "mean": lambda table, **more: pf.mean(table, "age", **more),
    "quantile": lambda table, **more: pf.quantile(table, "age", [0.2, 0.5], **more),
    "histogram": lambda table, **more: pf.histogram(table, "age", **more),
    "crosstab": lambda table, **more: pf.crosstab(table, ["age", "ill"], **more),
}
MOST = 2


def rows_of(person: str, many: int, rng: np.random.Generator) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": rng.choice([0.0, 30.0, 100.0], many),
            "ill": rng.choice(["no", "yes"], many),
            "area": rng.choice(["here", "there"], many),
            "id": [person] * many,
        }
    )


def drawn(ask: Ask, table: pl.DataFrame, noise: RecordingNoise, adjacency: str, schema: pf.Schema) -> RecordingNoise:
    with noise_from(noise):
        ask(table, schema=schema, epsilon=1.0, adjacency=adjacency, rows_per_person=MOST, expected_rows=10)
    return noise


def furthest(ask: Ask, adjacency: str, schema: pf.Schema) -> float:
    """The worst loss over random tables that differ in a person with up to 30 rows."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(25):
        others = pl.concat([rows_of(name, int(rng.integers(1, 5)), rng) for name in "abc"])
        left = pl.concat([others, rows_of("x", 30, rng)])
        right = others
        if adjacency == "replace-one":
            right = pl.concat([others, rows_of("y", 30 if schema.person is None else int(rng.integers(1, 30)), rng)])
        first = drawn(ask, left, RecordingNoise(0), adjacency, schema)
        second = drawn(ask, right, ReplayingNoise(first.calls), adjacency, schema)
        calls = list(zip(first.calls, second.calls, strict=True))
        assert [(one.kind, one.scale) for one, _ in calls] == [(two.kind, two.scale) for _, two in calls]
        moved = ((one.values.astype(object) - two.values.astype(object)).ravel() for one, two in calls)
        worst = max(worst, sum(NORMS[one.kind](move) / one.scale for move, (one, _) in zip(moved, calls, strict=True)))
    return worst


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ASKED)
def test_no_person_moves_figures_further_than_paid_for_however_many_rows_they_have(name: str, adjacency: str) -> None:
    assert 0.25 < furthest(ASKED[name], adjacency, SCHEMA) <= 1.0 + 1e-12


@pytest.mark.parametrize("name", ["count", "histogram", "crosstab"])
def test_without_the_person_column_a_person_of_thirty_rows_is_seen(name: str) -> None:
    assert furthest(ASKED[name], "replace-one", pf.Schema(COLUMNS, where=SCHEMA.where)) > 1.0


def test_rows_that_do_not_meet_the_filter_are_not_counted() -> None:
    table = pl.DataFrame({"age": [50.0] * 300, "ill": ["yes"] * 300, "area": ["here"] * 100 + ["there"] * 200})
    schema = pf.Schema(COLUMNS, where={"area": ["here"]})
    found = pf.count(table, "ill", "yes", schema=schema, epsilon=100.0)
    assert found == pytest.approx(100, abs=2)
    assert any("filter" in note for note in found.report.notes)


def test_a_column_by_name_is_that_of_the_schema_or_its_file(tmp_path: Path) -> None:
    pf.Schema([pf.Numeric("age", 0, 100, bins=[40, 60])], COLUMNS[1]).save(tmp_path / "people.toml")
    table = pl.DataFrame({"age": [50.0] * 300, "ill": ["yes"] * 300})
    found = pf.histogram(table, "age", schema=tmp_path / "people.toml", epsilon=100.0)
    assert found.labels == (((0.0, 40.0), (40.0, 60.0), (60.0, 100.0)),)
    assert found[1] == pytest.approx(300, abs=2)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (pf.Schema(COLUMNS[1:]), "without the column 'age'"),
        (5, "it is a pf.Schema"),
        (pf.Schema.box(0, 1), "open width"),
        (None, "type str"),
    ],
)
def test_a_schema_that_does_not_list_the_column_is_refused_and_nothing_charged(schema: Any, told: str) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.SchemaError, match=told):
        pf.mean(pl.DataFrame({"age": [1.0]}), "age", schema=schema, epsilon=1.0, ledger=ledger)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize("asked", [["ages"], ["years", "ages"]])
def test_an_array_without_names_is_refused_where_the_filter_would_read_another_column(asked: list[str]) -> None:
    both = [pf.Numeric("ages", 0, 10, bins=2), pf.Numeric("years", 0, 10, bins=2)]
    schema, ledger = pf.Schema(both, where={"years": (6, None)}), pf.Ledger(epsilon=200.0)
    table = np.array([[1.0, 9.0]] * 300)
    with pytest.raises(pf.DataError, match="have no names"):
        pf.crosstab(table[:, : len(asked)], asked, schema=schema, epsilon=100.0, ledger=ledger)
    assert ledger.spent.epsilon == 0.0
    found = pf.crosstab(table, ["ages", "years"], schema=schema, epsilon=100.0, ledger=ledger)
    assert found[0, 1] == pytest.approx(300, abs=2)
