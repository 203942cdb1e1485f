"""pf.describe: what it tells, what it refuses, and that its page runs."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf

PAGE = Path(__file__).parents[2] / "docs" / "description.md"
RNG = np.random.default_rng(0)
TABLE = pl.DataFrame(
    {
        "age": RNG.integers(18, 90, 5000),
        "income": RNG.lognormal(10.3, 0.8, 5000),
        "sex": RNG.choice(["f", "m"], 5000),
        "id": RNG.integers(0, 2500, 5000),
    }
)
SCHEMA = pf.Schema(
    [pf.Numeric("age", 0, 120), pf.Numeric("income", 0, 1e6, bins=5)], target=pf.Category("sex", ["f", "m"])
)


def test_every_column_is_described_in_one_release() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    described = pf.describe(TABLE, SCHEMA, epsilon=1.0, ledger=ledger)
    assert ledger.n_entries == 1
    assert ledger.spent.epsilon == 1.0
    assert list(described) == ["age", "income", "sex"]
    assert list(described["income"]) == ["mean", "median", "90%"]
    assert described["income"]["median"] == pytest.approx(TABLE["income"].median(), rel=0.1)
    assert described["age"]["mean"] == pytest.approx(TABLE["age"].mean(), rel=0.1)
    assert described["sex"]["f"] == pytest.approx(TABLE.filter(pl.col("sex") == "f").height, abs=100)
    assert all(one.interval[0] <= one <= one.interval[1] for figures in described.values() for one in figures.values())
    event = ledger.entries()[0].event
    assert sum(Fraction(str(part.epsilon)) for part in event.parts) == pytest.approx(1.0)


def test_it_prints_a_table_and_goes_into_json(tmp_path: Path) -> None:
    described = pf.describe(TABLE, SCHEMA, epsilon=1.0, quantiles=[0.25])
    lines = str(described).splitlines()
    assert lines[0].split() == ["column", "figure", "value", "90%", "interval"]
    assert [line.split()[0] for line in lines[1:]] == ["age", "25%", "income", "25%", "sex", "m"]
    assert json.loads(json.dumps(described.to_dict()))["columns"]["sex"][0]["figure"] == "f"
    SCHEMA.save(tmp_path / "schema.toml")
    assert list(pf.describe(TABLE, tmp_path / "schema.toml", epsilon=1.0)) == ["age", "income", "sex"]
    assert list(pf.describe(TABLE, SCHEMA, epsilon=1.0, quantiles=())["age"]) == ["mean"]


def test_it_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pf.describe(TABLE, SCHEMA, epsilon=1.0).plot(tmp_path / "people.png")
    assert (tmp_path / "people.png").stat().st_size > 1000


def test_missing_values_are_filled_counted_or_refused() -> None:
    table = TABLE.with_columns(pl.when(pl.col("age") > 40).then(pl.col("age")).alias("age"))
    with pytest.raises(pf.DataError, match="fill"):
        pf.describe(table, SCHEMA, epsilon=1.0)
    filled = pf.Schema([pf.Numeric("age", 0, 120, fill=40)])
    assert 38 < pf.describe(table, filled, epsilon=1.0)["age"]["median"] < 70
    counted = pf.Schema([pf.Numeric("age", 0, 120, bins=[50], fill="missing")])
    found = pf.describe(table, counted, epsilon=5.0)["age"]
    assert list(found) == ["0 to 50", "50 to 120", "missing"]
    assert found["missing"] == pytest.approx(table["age"].null_count(), abs=20)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_persons_and_filters_leave_rows_out(adjacency: str) -> None:
    schema = pf.Schema(SCHEMA.features, person="id", where={"age": (60, None)})
    ledger = pf.Ledger(epsilon=5.0)
    given = {"rows_per_person": 2, "adjacency": adjacency, "expected_rows": 2500, "ledger": ledger}
    described = pf.describe(TABLE, schema, epsilon=5.0, **given)
    assert described["age"]["median"] == pytest.approx(74.5, abs=4)
    assert "id" not in str(described)
    (entry,) = ledger.entries()
    assert (entry.event.adjacency, entry.event.rows_per_person) == (adjacency, 2)


@pytest.mark.parametrize(
    ("schema", "match"), [(5, "int"), (pf.Schema.box(0, 1), "open width"), (pf.Schema([pf.Numeric("x", 0, 1)]), "x")]
)
def test_what_is_no_schema_of_the_table_is_refused(schema: object, match: str) -> None:
    with pytest.raises((pf.SchemaError, pf.DataError), match=match):
        pf.describe(TABLE, schema, epsilon=1.0)  # type: ignore[arg-type]


def test_the_examples_of_the_page_run() -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M))
    names: dict = {"print": lambda *values: None}
    exec(compile(code, PAGE.name, "exec"), names)
    assert names["ledger"].spent.epsilon == pytest.approx(1.4)
    assert 25_000 < names["median"] < 36_000
    assert names["both"].shape == (3, 2)
