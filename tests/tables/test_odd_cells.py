"""Cells that are no plain numbers or texts, in every engine: the right values or an error of ours, and nothing of a
cell in it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import privfit as pf
from privfit.tables import DataError, open_table
from tests.support.chains import assert_ours, told_by

D = decimal.Decimal
COLUMNS = {
    "numbers": pf.Numeric("a", 0, 1, fill=0.25),
    "texts": pf.Category("a", ["u", "v"], other=True, fill="u"),
    "numeric levels": pf.Category("a", [0, 1], other=True, fill=0),
}
FIRST: dict[str, Any] = {"numbers": 0.5, "texts": "u", "numeric levels": 1}


class Failing:
    """Every question that is put to it quotes a secret."""

    def __float__(self, *asked: object, **more: object) -> float:
        raise RuntimeError("SECRET77")

    __str__ = __repr__ = __hash__ = __len__ = __index__ = __array__ = __bool__ = __float__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("SECRET77")


class Leaving(Failing):
    def __float__(self, *asked: object, **more: object) -> float:
        raise SystemExit("SECRET77")


class FalseFloat(float):
    def __float__(self) -> float:
        raise RuntimeError("SECRET77")


class Disguised:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("SECRET77")


OBJECTS: dict[str, Any] = {
    "failing": Failing(),
    "leaving": Leaving(),
    "float subclass": FalseFloat(0.5),
    "disguised": Disguised(),
    "list": ["SECRET77"],
    "tuple": ("SECRET77",),
    "dict": {"SECRET77": 1},
    "bytes": b"SECRET77",
    "text": "SECRET77",
    "decimal": D("0.5"),
    "decimal NaN": D("NaN"),
    "signalling NaN": D("sNaN"),
    "fraction": fractions.Fraction(1, 2),
    "complex": 0.5j,
    "datetime": dt.datetime(2077, 1, 1),
    "date": dt.date(2077, 1, 1),
    "timedelta": dt.timedelta(77),
    "NaT": pd.NaT,
    "NA": pd.NA,
    "huge": 10**400,
    "array": np.array([0.5, 77.0]),
    "function": len,
}


def column(kind: str, cell: Any) -> np.ndarray:
    cells = np.empty(3, dtype=object)
    cells[0], cells[1], cells[2] = FIRST[kind], cell, FIRST[kind]
    return cells


def two_columns(cells: np.ndarray) -> np.ndarray:
    table = np.empty((3, 2), dtype=object)
    table[:, 0], table[:, 1] = cells, 0.5
    return table


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": two_columns,
    "lists": lambda cells: [[cell, 0.5] for cell in cells],
    "pandas": lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": 0.5}),
    "polars": lambda cells: pl.DataFrame({"a": pl.Series(list(cells), dtype=pl.Object), "b": [0.5] * 3}),
    "polars, lazy": lambda cells: pl.DataFrame({"a": pl.Series(list(cells), dtype=pl.Object), "b": [0.5] * 3}).lazy(),
}


def outcome(table: Any, column: pf.Numeric | pf.Category) -> list[float] | str:
    """The column's values, or what its refusal says."""
    try:
        opened = open_table(table)
        return [float(value) for batch in opened.batches([column], opened.positions([column]), 2) for value in batch[0]]
    except DataError as error:
        assert_ours(error, "77")
        return str(error)


RIGHT: dict[tuple[str, str], float] = {
    **{(name, "numbers"): 0.5 for name in ("decimal", "fraction")},
    **{(name, "numeric levels"): -1 for name in ("decimal", "fraction", "huge")},
    ("text", "texts"): -1,
    **{(name, "numbers"): np.nan for name in ("decimal NaN", "NaT", "NA")},
    **{(name, kind): -2 for name in ("decimal NaN", "NaT", "NA") for kind in ("texts", "numeric levels")},
}
"""What the middle cell comes to where it is not refused: a value, -1 for a level that is not listed, NaN or -2 for a
missing one.
"""


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", OBJECTS)
def test_an_odd_object_is_read_right_or_refused_without_quoting_it(
    name: str, holder: str, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found = outcome(HOLDERS[holder](column(kind, OBJECTS[name])), COLUMNS[kind])
    if isinstance(found, list):
        np.testing.assert_array_equal(found[1], RIGHT[name, kind])
    elif not holder.startswith("polars"):  # whose objects are refused whatever they are
        assert (name, kind) not in RIGHT
    shown = capfd.readouterr()
    assert "SECRET77" not in shown.out + shown.err


class Tagged(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.float64(), "privfit.tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Tagged:
        return cls()


ARROW: dict[str, Any] = {
    "decimal128": pa.array([D("0.5"), None, D("1")], pa.decimal128(10, 2)),
    "decimal256": pa.array([D("0.5"), None, D("1")], pa.decimal256(50, 2)),
    "decimal256, large": pa.array([D("0.5"), D(77) * 10**58, D("1")], pa.decimal256(76, 2)),
    "large binary": pa.array([b"SECRET77", None, b"x"], pa.large_binary()),
    "binary view": pa.array([b"SECRET77"] * 3, pa.binary_view()),
    "text view": pa.array(["u", "SECRET77", None], pa.string_view()),
    "struct": pa.array([{"SECRET77": 1}, None, {"SECRET77": 2}]),
    "list": pa.array([["SECRET77"]] * 3),
    "map": pa.array([[("SECRET77", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    "dictionary": pa.array(["u", None, "SECRET77"]).dictionary_encode(),
    "dictionary with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["u", None])),
    "dictionary of numbers": pa.array([0.5, None, 1.0]).dictionary_encode(),
    "dictionary of structs": pa.DictionaryArray.from_arrays(pa.array([0, 0, 0]), pa.array([{"SECRET77": 1}])),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([0.5, 1.0])),
    "extension": pa.ExtensionArray.from_storage(Tagged(), pa.array([0.5, None, 1.0])),
    "half floats": pa.array(np.array([0.5, 1, 0.25], dtype=np.float16)),
    "large integers": pa.array([1, 2**64 - 1, 0], pa.uint64()),
    "dates": pa.array([dt.date(2077, 1, 1)] * 3),
    "times": pa.array([dt.datetime(2077, 1, 1)] * 3),
    "durations": pa.array([dt.timedelta(77)] * 3),
    "intervals": pa.array([(1, 2, 77)] * 3, pa.month_day_nano_interval()),
    "nothing": pa.nulls(3),
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([0.5, 1, 1]), pa.array(["SECRET77"] * 3)]
    ),
}
NAN = np.nan
VALUES: dict[tuple[str, str], list[float]] = {
    **{(name, "numbers"): [0.5, NAN, 1] for name in ("decimal128", "decimal256", "dictionary of numbers", "extension")},
    **{
        (name, "numeric levels"): [-1, -2, 1]
        for name in ("decimal128", "decimal256", "dictionary of numbers", "extension")
    },
    ("decimal256, large", "numbers"): [0.5, 77e58, 1],
    ("decimal256, large", "numeric levels"): [-1, -1, 1],
    ("text view", "texts"): [0, -1, -2],
    ("dictionary", "texts"): [0, -2, -1],
    ("dictionary with a null", "texts"): [0, -2, -2],
    ("run-end encoded", "numbers"): [0.5, 0.5, 1],
    ("run-end encoded", "numeric levels"): [-1, -1, 1],
    ("half floats", "numbers"): [0.5, 1, 0.25],
    ("half floats", "numeric levels"): [-1, 1, -1],
    ("large integers", "numbers"): [1, 2.0**64, 0],
    ("large integers", "numeric levels"): [1, -1, 0],
    ("nothing", "numbers"): [NAN] * 3,
    **{("nothing", kind): [-2] * 3 for kind in ("texts", "numeric levels")},
}
"""What every engine must read that reads the column at all."""


def relation(table: pa.Table) -> Any:
    return pytest.importorskip("duckdb").connect().from_arrow(table)


def parquet(table: pa.Table, folder: Path) -> Path:
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


ENGINES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "arrow": lambda table, _: table,
    "arrow stream": lambda table, _: table.to_reader(),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars, lazy": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "parquet": parquet,
    "pandas": lambda table, _: table.to_pandas(),
    "pandas, pyarrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "duckdb": lambda table, _: relation(table),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ARROW)
def test_an_odd_arrow_type_is_read_right_or_refused_without_quoting_it(
    tmp_path: Path, name: str, engine: str, kind: str
) -> None:
    try:
        table = ENGINES[engine](pa.table({"a": ARROW[name], "b": [0.5] * 3}), tmp_path)
    except BaseException as error:  # polars panics, which is no Exception
        pytest.skip(f"{engine} has no such column ({type(error).__name__})")
    found = outcome(table, COLUMNS[kind])
    if isinstance(found, list):
        np.testing.assert_array_equal(found, VALUES[name, kind])


@pytest.mark.parametrize("name", [name for name, kind in VALUES if kind == "numbers" and "256" not in name])
def test_what_polars_knows_is_read_by_polars(name: str) -> None:
    """Otherwise a refusal of everything would pass."""
    if name in ("run-end encoded", "extension"):
        pytest.skip("polars 2.1 reads no such numbers")
    assert isinstance(outcome(pa.table({"a": ARROW[name]}), COLUMNS["numbers"]), list)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("engine", ["arrow", "arrow stream", "duckdb"])
def test_a_column_of_intervals_is_named(tmp_path: Path, engine: str, kind: str) -> None:
    table = ENGINES[engine](pa.table({"b": [0.5] * 3, "a": ARROW["intervals"]}), tmp_path)
    found = outcome(table, COLUMNS[kind])
    assert "Column 'a' holds lengths of time (INTERVAL)" in found
    assert "epoch(a)" in found


def test_a_structured_array_does_not_tell_its_fields() -> None:
    array = np.zeros((2, 1), dtype=[("SECRET77", float)])
    assert "void" in outcome(array, COLUMNS["numbers"])


TARGETS: dict[str, Callable[[], Any]] = {
    "objects": lambda: column("numbers", Failing())[:2],
    "a list": lambda: [Failing(), 1.0],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "text": lambda: "SECRET77",
    "dict": lambda: {"SECRET77": 1},
    "an object": Failing,
}


@pytest.mark.parametrize("name", TARGETS)
def test_an_odd_target_is_not_quoted(name: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        pf.LinearRegression(schema=pf.Schema.box(0, 1, target=(0, 1))).fit(np.zeros((2, 2)), TARGETS[name]())
    assert "SECRET77" not in told_by(caught.value)
