"""Tables: every Arrow type, nested, of nulls, of extension types, without rows, in every form that a fit reads."""

from __future__ import annotations

import datetime
import decimal
import functools
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import privfit as pf
from tests.fuzz.rules import MARKED_NUMBER, MARKED_TEXT, attempt
from tests.fuzz.source import Source

PRICE = 0.5
DAY = datetime.datetime(2021, 5, 6, 7, 8, 9)


class Tagged(pa.ExtensionType):
    """A type of somebody else's."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Tagged:
        return cls()


TYPES: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.float64(), (0.25, 1.0, MARKED_NUMBER, float("nan"), float("inf"))),
    (pa.string(), ("x", "y", MARKED_TEXT, "", "1.5")),
    (pa.int64(), (0, 1, 864209753, 2**62, -1)),
    (pa.bool_(), (True, False)),
    (pa.int8(), (0, 1, 100)),
    (pa.uint8(), (0, 1, 200)),
    (pa.int16(), (0, 1, 30_000)),
    (pa.uint16(), (0, 1)),
    (pa.int32(), (0, 1, 864209753)),
    (pa.uint32(), (0, 864209753)),
    (pa.uint64(), (0, 2**64 - 1)),
    (pa.float16(), (0.5, 1.0)),
    (pa.float32(), (0.25, 864209753.0)),
    (pa.null(), (None,)),
    (pa.large_string(), ("x", MARKED_TEXT)),
    (pa.string_view(), ("x", MARKED_TEXT)),
    (pa.binary(), (b"x", MARKED_TEXT.encode())),
    (pa.large_binary(), (b"x", b"\xff")),
    (pa.binary_view(), (b"x", b"\xff")),
    (pa.binary(4), (b"abcd", b"\xff\0\0\0")),
    (pa.date32(), (DAY.date(), datetime.date(9999, 12, 31))),
    (pa.date64(), (DAY.date(),)),
    (pa.timestamp("s"), (DAY,)),
    (pa.timestamp("ns"), (DAY,)),
    (pa.timestamp("us", tz="UTC"), (DAY,)),
    (pa.timestamp("ms", tz="nowhere/at_all"), (0,)),
    (pa.time32("s"), (DAY.time(),)),
    (pa.time64("ns"), (DAY.time(),)),
    (pa.duration("us"), (datetime.timedelta(days=3),)),
    (pa.month_day_nano_interval(), (pa.MonthDayNano([1, 2, 3]),)),
    (pa.decimal128(38, 3), (decimal.Decimal("864209753.125"), decimal.Decimal("0.5"))),
    (pa.decimal32(9, 0), (decimal.Decimal("864209753"), decimal.Decimal(0))),
    (pa.decimal64(18, 3), (decimal.Decimal("864209753.125"), decimal.Decimal("0.5"))),
    (pa.decimal256(70, 2), (decimal.Decimal("864209753.12"), decimal.Decimal(10) ** 60)),
    (pa.list_(pa.float64()), ([0.1, MARKED_NUMBER], [], None)),
    (pa.list_(pa.string(), 2), ([MARKED_TEXT, "x"],)),
    (pa.large_list(pa.int8()), ([1], [])),
    (pa.list_view(pa.string()), ([MARKED_TEXT],)),
    (pa.large_list_view(pa.string()), ([MARKED_TEXT],)),
    (pa.struct([("a", pa.string()), ("b", pa.list_(pa.int8()))]), ({"a": MARKED_TEXT, "b": [1]}, None)),
    (pa.map_(pa.string(), pa.float64()), ([(MARKED_TEXT, MARKED_NUMBER)], [])),
    (pa.dictionary(pa.int8(), pa.string()), ("x", "y", MARKED_TEXT)),
    (pa.dictionary(pa.int32(), pa.float64()), (0.5, MARKED_NUMBER)),
    (pa.dictionary(pa.int64(), pa.binary()), (b"x", MARKED_TEXT.encode())),
    (pa.run_end_encoded(pa.int32(), pa.string()), ("x", MARKED_TEXT)),
    (pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.string())]), ()),
    (pa.sparse_union([pa.field("a", pa.int64()), pa.field("b", pa.string())]), ()),
    (pa.uuid(), (uuid.UUID(int=864209753).bytes,)),
    (pa.json_(), ('{"a": 1}', f'{{"{MARKED_TEXT}": 1}}')),
    (pa.opaque(pa.int32(), "t", "v"), (1,)),
    (Tagged(), (1, 864209753)),
)
NAMES = ("a", "b", "c", "y", "A", " a", "", "x0", "1.5", "2020-01-01", 'o"d;d', "é", "a" * 200, "\0")


def run(content: bytes) -> None:
    """Fit a model on a table; what is refused is not charged, and what is charged is released."""
    source = Source(content)
    table, ledger = arrow_table(source), pf.Ledger(_folder() / f"{next(_counter)}.db", epsilon=PRICE)
    made = _quietly_made(source.pick(FORMS), table, source)
    if made is not None:
        schema, model = schema_for(source, table), source.pick(MODELS)
        fitted, _ = attempt(lambda: model(schema=schema, ledger=ledger).fit(made))
        assert (ledger.spent == PRICE) == (fitted is not None), ledger.spent
        assert ledger.spent in (0, PRICE)
        if fitted is not None:
            use = getattr(fitted, "predict", None) or fitted.transform
            attempt(lambda: use(_quietly_made(source.pick(FORMS), table, source)))
    Path(ledger.path).unlink()


def _quietly_made(form: Callable[..., Any], table: pa.Table, source: Source) -> Any:
    """The table in another form; None where that library cannot make it."""
    try:
        return form(table, _folder(), source)
    except BaseException as error:  # a panic of polars is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        return None


def arrow_table(source: Source) -> pa.Table:
    """Four columns that fit, of which one or all may be of any type, with nulls and marks among their cells."""
    rows = source.pick((12, 12, 40, 1, 0, 2))
    columns, names, odd = [], [], source.pick(("none", "one", "all"))
    width = 4 if odd != "all" else source.whole(1, 5)
    place_of_odd = source.whole(0, width - 1)
    for place in range(width):
        any_kind = odd == "all" or (odd == "one" and place == place_of_odd)
        kind, values = source.pick(TYPES) if any_kind else TYPES[place % 2]
        plain = values if any_kind and source.flag() else values[:2]
        nulls = source.pick((0, 0, 0, 2, 1)) if any_kind else 0
        cells = [None if nulls and source.flag(nulls) else _one(source, plain) for _ in range(min(rows, 12))]
        columns.append(_array((cells * (rows // max(len(cells), 1) + 1))[:rows], kind))
        names.append(NAMES[place] if not any_kind or source.whole(0, 5) else source.pick(NAMES))
    return pa.Table.from_arrays(columns, names=names)


def _one(source: Source, values: tuple[Any, ...]) -> Any:
    return source.pick(values) if values else None


def _array(cells: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_union(kind):
        if kind.mode == "sparse":
            codes = pa.array([place % 2 for place in range(len(cells))], pa.int8())
            return pa.UnionArray.from_sparse(codes, [pa.array([1] * len(cells)), pa.array([MARKED_TEXT] * len(cells))])
        codes = pa.array([place % 2 for place in range(len(cells))], pa.int8())
        offsets = pa.array([place // 2 for place in range(len(cells))], pa.int32())
        half = (len(cells) + 1) // 2
        return pa.UnionArray.from_dense(codes, offsets, [pa.array([1] * half), pa.array([MARKED_TEXT] * half)])
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(pa.array(cells, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return pa.RunEndEncodedArray.from_arrays(
            pa.array(range(1, len(cells) + 1), pa.int32()), pa.array(cells, pa.string())
        )
    if pa.types.is_float16(kind):
        return pa.array(cells, pa.float32()).cast(kind)
    return pa.array(cells, kind)


def schema_for(source: Source, table: pa.Table) -> pf.Schema:
    """A schema of the table's names, which may say otherwise than the table."""
    columns: list[Any] = []
    odd = source.flag()
    for place, name in enumerate(dict.fromkeys(table.column_names)):
        text = not pa.types.is_floating(table.column(place).type)
        text, other = (source.flag(), source.flag()) if odd else (text, False)
        fill = source.pick((None, None, "missing", "x" if text else 0.5)) if odd else None
        if text:
            columns.append(pf.Category(name or "none", ["x", "y"], other=other, fill=fill))
        else:
            columns.append(pf.Numeric(name or "none", 0, 1, fill=fill, bins=source.pick((None, "auto"))))
    target = source.pick((pf.Category("y", ["x", "y"]), pf.Category("y", ["x", "y"]), pf.Numeric("y", 0, 1), None))
    person = source.pick((None, None, None, "c")) if odd else None
    where = {"b": ["x"]} if odd and source.flag(8) else None
    features = [column for column in columns if column.name not in (getattr(target, "name", None), person)]
    return pf.Schema(features or [pf.Numeric("a", 0, 1)], target, person, where)


def _file(write: Callable[[pa.Table, Path], Any], ending: str) -> Callable[..., Any]:
    def made(table: pa.Table, folder: Path, source: Source) -> Path:
        path = folder / f"rows{ending}"
        write(table, path)
        if source.flag(8):
            content = bytearray(path.read_bytes())
            content[source.whole(0, len(content) - 1)] ^= 1 << source.whole(0, 7)
            path.write_bytes(content)
        return path

    return made


def _feather(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


FORMS: tuple[Callable[..., Any], ...] = (
    lambda table, folder, source: table,
    lambda table, folder, source: table.to_reader(max_chunksize=5),
    lambda table, folder, source: pl.from_arrow(table),
    lambda table, folder, source: pl.from_arrow(table).lazy(),
    lambda table, folder, source: table.to_pandas(),
    lambda table, folder, source: table.to_pandas(types_mapper=_arrow_dtype),
    lambda table, folder, source: table.to_pandas().to_numpy(),
    _file(pa.csv.write_csv, ".csv"),
    _file(pq.write_table, ".parquet"),
    _file(_feather, ".arrow"),
)


def _arrow_dtype(kind: pa.DataType) -> Any:
    import pandas as pd

    return pd.ArrowDtype(kind)


MODELS: tuple[Callable[..., Any], ...] = (
    lambda **settings: pf.LogisticRegression(PRICE, **settings),
    lambda **settings: pf.LinearRegression(PRICE, mechanism="functional", **settings),
    lambda **settings: pf.GaussianNB(PRICE, **settings),
    lambda **settings: pf.KMeans(2, epsilon=PRICE, **settings),
    lambda **settings: pf.PCA(1, epsilon=PRICE, **settings),
    lambda **settings: pf.LogisticRegression(PRICE, adjacency="add-remove", expected_rows=20, **settings),
)


@functools.cache
def _folder() -> Path:
    kept = tempfile.TemporaryDirectory(prefix="privfit-fuzz-", ignore_cleanup_errors=True)
    _kept.append(kept)
    return Path(kept.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
_counter = iter(range(10**12))
