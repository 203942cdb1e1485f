"""Tables that may break control flow: neighbours, half of them made to hurt, in every form that a fit reads."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import privfit as pf
from privfit.schema import Category, Numeric

Row = tuple[Any, ...]
Generator = np.random.Generator


@dataclass(frozen=True)
class Family:
    """A table and some of its neighbours, all inside the stated domain: at least one row, no refused cell.

    Each neighbour makes a pair with the table.
    """

    name: str
    adversarial: bool
    rows: list[Row]
    neighbours: list[list[Row]]


# -- cells -----------------------------------------------------------------------------------------


def cell(column: Any, share: float) -> Any:
    """The value of a column at a share of its range: 0 is its lower bound or first level, 1 its upper bound or last."""
    if isinstance(column, Category):
        levels = column.levels
        return levels[min(int(share * len(levels)), len(levels) - 1)]
    if column.high / 2 - column.low / 2 == np.inf:
        return float(column.high * (2 * share - 1))
    return float(column.low + share * (column.high - column.low)) if share < 1 else float(column.high)


def uniform(columns: tuple[Any, ...], rng: Generator) -> Row:
    return tuple(cell(column, float(rng.uniform())) for column in columns)


def at(columns: tuple[Any, ...], share: float, last: float | None = None) -> Row:
    """A row with all cells at one share; with `last`, the last one, the target if there is one, at another."""
    shares = [share] * len(columns)
    if last is not None:
        shares[-1] = last
    return tuple(cell(column, own) for column, own in zip(columns, shares, strict=True))


WEIGHT = Numeric("weight", 0, 2)
"""Where a schema of rows has it, it says how much they count. Weights below 0 are refused cells."""


def outside(columns: tuple[Any, ...], sign: float) -> Row:
    """Numbers far out of their bounds, in turn finite, infinite and as large as floats go; levels in turn first, last
    and, where the schema takes it, unknown.
    """
    far = (sign * 1e300, sign * np.inf, -sign * np.finfo(float).max)
    found = []
    for place, column in enumerate(columns):
        if isinstance(column, Numeric):
            found.append(abs(far[place % 3]) if column is WEIGHT else float(far[place % 3]))
        elif column.other and place < len(columns) - 1:
            found.append("never heard of" if column.is_text else 987654)
        else:
            found.append(cell(column, 0.0 if sign > 0 else 1.0))
    return tuple(found)


def missing(columns: tuple[Any, ...], row: Row) -> Row:
    """The row with every cell missing that may be."""
    return tuple(None if column.fill is not None else value for column, value in zip(columns, row, strict=True))


def nudged(columns: tuple[Any, ...], row: Row) -> Row:
    """The row with every number one float further."""
    return tuple(
        float(np.nextafter(value, np.inf)) if isinstance(column, Numeric) and value is not None else value
        for column, value in zip(columns, row, strict=True)
    )


# -- pairs -----------------------------------------------------------------------------------------


def _margins(columns: tuple[Any, ...], n: int, rng: Generator, size: float, other: float) -> tuple[list[Row], Row]:
    """All features in the middle, one class; the first row off the middle by very little, or by somewhat more."""
    middle = at(columns, 0.5, 0.999)
    off, further = ((*(_off(column, share) for column in columns[:-1]), middle[-1]) for share in (size, other))
    return [off, *[middle] * (n - 1)], further


def _off(column: Any, share: float) -> Any:
    return cell(column, 0.5 + share / 2) if isinstance(column, Numeric) else cell(column, 0.0 if share < 0 else 0.999)


def _tiny_margin(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    return _margins(columns, n, rng, 1e-4, 0.01)


def _tinier_margin(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    """All rows just off the middle, on the side of their class; one goes to the bound."""
    size = float(rng.choice([2.0**-16, 2.0**-15, 1e-3]))
    signs = rng.choice([-1.0, 1.0], n)
    rows = [
        (*(_off(column, size * sign) for column in columns[:-1]), cell(columns[-1], 0.001 if sign < 0 else 0.999))
        for sign in signs
    ]
    return rows, at(columns, 1.0)


def _separated(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    shares = rng.uniform(0, 0.45, n) + np.where(rng.uniform(size=n) < 0.5, 0.0, 0.55)
    rows = [at(columns, float(share), 0.0 if share < 0.5 else 1.0) for share in shares]
    return rows, (*rows[0][:-1], at(columns, 0.5, 0.0 if shares[0] > 0.5 else 1.0)[-1])


def _coins(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    """Corners and classes by coins: no plane parts them, and every weight is held."""
    rows = [
        tuple(cell(c, float(s)) for c, s in zip(columns, rng.choice([0.0, 1.0], len(columns)), strict=True))
        for _ in range(n)
    ]
    return rows, at(columns, 0.5)


def _collinear(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    rows = [at(columns, float(share)) for share in rng.uniform(size=n)]
    return rows, uniform(columns, rng)


def _equal(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    row = uniform(columns, rng)
    return [row] * n, nudged(columns, row)


def _zeros(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    row = tuple(0.0 if isinstance(column, Numeric) else cell(column, 0.0) for column in columns)
    tiny = tuple(
        (5e-324 if place % 2 else -0.0) if isinstance(column, Numeric) else cell(column, 0.0)
        for place, column in enumerate(columns)
    )
    return [row] * n, tiny


def _lone_level(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    return [at(columns, 0.0)] * n, at(columns, 1.0)


def _one_class(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    rows = [(*uniform(columns, rng)[:-1], cell(columns[-1], 0.0)) for _ in range(n)]
    return rows, (*rows[0][:-1], cell(columns[-1], 1.0))


def _extreme(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    return [uniform(columns, rng) for _ in range(n)], outside(columns, 1.0)


def _all_extreme(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    return [outside(columns, float(sign)) for sign in rng.choice([-1.0, 1.0], n)], at(columns, 0.5)


def _twins(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    one, two = uniform(columns, rng), uniform(columns, rng)
    return [one if place % 2 else two for place in range(n)], one


def _edges(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    """Values on knots, edges of bins and middles of cells, and one of them a float beside."""
    rows = [at(columns, float(rng.integers(0, 8 * 7 + 1)) / 56) for _ in range(n)]
    return rows, nudged(columns, rows[0])


def _missing(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    rows = [missing(columns, uniform(columns, rng)) for _ in range(n)]
    return rows, uniform(columns, rng)


def _whole(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    """Integers only, which files and lists read as integers; and one number that is not."""
    rows = [
        tuple(
            int(np.clip(round(value), -(2**53), 2**53)) if isinstance(value, float) and np.isfinite(value) else value
            for value in uniform(columns, rng)
        )
        for _ in range(n)
    ]
    return rows, uniform(columns, rng)


def _sorted(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    rows = [at(columns, place / max(n - 1, 1)) for place in range(n)]
    return rows, rows[-1]


FIRST_ROW_MATTERS = ("tiny margin", "separated", "one class")
Maker = Callable[[tuple[Any, ...], int, Generator], tuple[list[Row], Row]]
ADVERSARIAL: tuple[tuple[str, Maker], ...] = (
    ("tiny margin", _tiny_margin),
    ("tinier margins", _tinier_margin),
    ("coins", _coins),
    ("collinear", _collinear),
    ("all equal", _equal),
    ("zeros", _zeros),
    ("one level", _lone_level),
    ("one class", _one_class),
    ("one extreme row", _extreme),
    ("extreme rows", _all_extreme),
    ("separated", _separated),
    ("two rows over and over", _twins),
    ("at edges", _edges),
    ("missing cells", _missing),
    ("integers", _whole),
    ("in order", _sorted),
)


def _ordinary(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    return [uniform(columns, rng) for _ in range(n)], uniform(columns, rng)


def _ordinary_and_corner(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    shares = rng.choice([0.0, 1.0], len(columns))
    return [uniform(columns, rng) for _ in range(n)], tuple(
        cell(c, float(s)) for c, s in zip(columns, shares, strict=True)
    )


def _learnable(columns: tuple[Any, ...], n: int, rng: Generator) -> tuple[list[Row], Row]:
    """Rows whose target goes with their first column."""
    rows = [uniform(columns, rng) for _ in range(n)]
    first = columns[0]
    if isinstance(first, Numeric):
        rows = [
            (*row[:-1], cell(columns[-1], float(np.clip((row[0] - first.low) / (first.high - first.low), 0, 1))))
            for row in rows
        ]
    return rows, uniform(columns, rng)


ORDINARY: tuple[tuple[str, Maker], ...] = (
    ("ordinary", _ordinary),
    ("a corner", _ordinary_and_corner),
    ("learnable", _learnable),
)


def family(schema: pf.Schema, kind: int, n: int, adjacency: str, seed: int, neighbours: int = 2) -> Family:
    """The table of this kind, even ones adversarial, and so many of its neighbours: one row replaced; or, under
    add-remove, one more or one less.
    """
    adversarial = kind % 2 == 0
    makers = ADVERSARIAL if adversarial else ORDINARY
    name, make = makers[(kind // 2) % len(makers)]
    rng = np.random.default_rng([seed, kind, n])
    rows, other = make(schema.columns, n, rng)
    place = 0 if name in FIRST_ROW_MATTERS else int(rng.integers(n))
    further = [outside(schema.columns, -1.0), uniform(schema.columns, rng), at(schema.columns, 1.0, 0.0)]
    changes = [other, *(further[(kind // 2 + turn) % len(further)] for turn in range(neighbours - 1))]
    return Family(
        name, adversarial, rows, [_changed(rows, place, change, adjacency, turn) for turn, change in enumerate(changes)]
    )


def _changed(rows: list[Row], place: int, change: Row, adjacency: str, turn: int) -> list[Row]:
    if adjacency == "replace-one":
        return [*rows[:place], change, *rows[place + 1 :]]
    if turn % 2 and len(rows) > 1:
        return [*rows[:place], *rows[place + 1 :]]
    return [*rows[: place + 1], change, *rows[place + 1 :]]


# -- forms -----------------------------------------------------------------------------------------

Form = Callable[[pf.Schema, list[Row], Path], Any]


def _names(schema: pf.Schema) -> list[str]:
    return [column.name for column in schema.columns]


def _array(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    return np.array([list(row) for row in rows], dtype=object)


def _numbers(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    """An array of floats where that is possible."""
    texts = any(isinstance(column, Category) and column.is_text for column in schema.columns)
    return _array(schema, rows, folder) if texts else np.array([list(row) for row in rows], dtype=float)


def _list(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    return [list(row) for row in rows]


def _typed(schema: pf.Schema) -> dict[str, Any]:
    """Types of columns as the schema says, as a database has them: they do not depend on rows."""
    return {
        column.name: pl.String if isinstance(column, Category) and column.is_text else pl.Float64
        for column in schema.columns
    }


def _polars(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    numbers = [name for name, kind in _typed(schema).items() if kind == pl.Float64]
    table = pl.DataFrame(rows, schema=_names(schema), orient="row", strict=False, infer_schema_length=None)
    return table.with_columns(pl.col(name).cast(pl.Float64) for name in numbers) if numbers else table


def _pandas(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    import pandas as pd

    return pd.DataFrame([list(row) for row in rows], columns=_names(schema))


def _arrow(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    return _polars(schema, rows, folder).to_arrow()


def _stream(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    table = _polars(schema, rows, folder).to_arrow()
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))


def _parquet(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    path = folder / "people.parquet"
    _polars(schema, rows, folder).write_parquet(path, row_group_size=16)
    return path


def _csv(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    path = folder / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_names(schema))
        writer.writerows([["" if value is None else value for value in row] for row in rows])
    return path


def _lazy(schema: pf.Schema, rows: list[Row], folder: Path) -> Any:
    return _polars(schema, rows, folder).lazy().filter(pl.len() > 0).select(pl.all())


FORMS: dict[str, Form] = {
    "polars": _polars,
    "array": _array,
    "csv": _csv,
    "parquet": _parquet,
    "lazy": _lazy,
    "pandas": _pandas,
    "list": _list,
    "arrow": _arrow,
    "numbers": _numbers,
    "stream": _stream,
}


def public_table(schema: pf.Schema) -> pl.DataFrame:
    """Rows that anybody may see, to predict for."""
    rng = np.random.default_rng(5)
    rows = [at(schema.columns, share) for share in (0.0, 0.3, 0.5, 1.0)] + [
        uniform(schema.columns, rng) for _ in range(3)
    ]
    return pl.DataFrame(rows, schema=_names(schema), orient="row", strict=False).select(
        [column.name for column in schema.features]
    )
