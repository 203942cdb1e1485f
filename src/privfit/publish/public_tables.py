"""The public tables whose rows are weighted, put together; or rows made up from the schema where there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.models.inputs import Input
from privfit.privacy import PrivacyError, seeded_generator
from privfit.rows import PublicRows
from privfit.schema import Category, Column, Geometry, Schema
from privfit.tables import (
    DataError,
    Frame,
    TableLike,
    column_numbers,
    columns_to_frame,
    in_memory,
    joined,
    open_table,
    several_tables,
)

Floats = NDArray[np.float64]
Query = str | Callable[[Any], ArrayLike] | ArrayLike
Names = list[tuple[str, ...] | None]

SYNTHETIC_SEED = 2013
"""Anybody may know it: synthetic rows follow from the schema alone."""


@dataclass(frozen=True)
class PublicTables:
    """Public tables as they were given, their rows in one frame, and the columns that all tables have."""

    tables: list[TableLike]
    frame: Frame
    columns: tuple[Column, ...]
    left_out: list[str]
    """Columns of the schema that some table lacks."""
    synthetic: bool
    """Whether rows were made up from the schema."""

    @classmethod
    def gathered(cls, public: TableLike, given: Input, synthetic_rows: int, weight_name: str) -> PublicTables:
        """The public tables beside the private one; what does not go together is refused before a charge."""
        columns = given.schema.columns
        tables = (
            [synthetic_table(columns, synthetic_rows)]
            if public is None
            else [in_memory(table) for table in several_tables(public)]
        )
        names = [open_table(table).names for table in tables] + [given.table.names]
        used = tuple(column for column in columns if all(own is None or column.name in own for own in names))
        _check_columns(tables, names, used, given)
        try:
            frame = joined(tables, [column.name for column in used])
        except Exception as error:  # of public rows, which may be shown
            raise DataError(
                f"The public tables could not be put together: {error}. Give them the same columns of the same types. "
                "Nothing was charged."
            ) from None
        if weight_name in list(frame.columns):
            raise DataError(
                f"The public table has a column {weight_name!r}, which is the name of the weights. Give them another: "
                "weight_name='importance'. Nothing was charged."
            )
        left_out = [column.name for column in columns if column not in used]
        return cls(tables, frame, used, left_out, public is None)

    def rows(self, schema: Schema, geometry: Geometry) -> PublicRows:
        """All rows, encoded."""
        try:
            return PublicRows.read([open_table(table) for table in self.tables], schema, geometry)
        except DataError as error:
            raise DataError(f"In the public table: {error}") from None

    def described(self) -> str:
        """What rows these are."""
        if self.synthetic:
            return "rows made up from the schema"
        return f"public rows of {len(self.tables)} table{'s' * (len(self.tables) > 1)}"

    def values(self, b: Query, n_rows: int) -> Floats:
        """What b makes of all public rows: one finite number for each of so many."""
        if not callable(b) and not isinstance(b, str):
            values = np.asarray(b, dtype=np.float64)
        else:
            values = np.concatenate([self.numbers(b, table) for table in self.tables])
        if values.shape != (n_rows,) or not np.isfinite(values).all():
            raise DataError(
                f"b gave values of shape {values.shape}; it gives one finite number for each of the "
                f"{n_rows} public rows. Correct the function."
            )
        return values

    def numbers(self, b: Query, table: TableLike) -> Floats:
        """What b makes of a table: one number a row."""
        if isinstance(b, str):
            return column_numbers(joined([table], [column.name for column in self.columns]), b)
        if callable(b):
            return np.asarray(b(table), dtype=np.float64).ravel()
        raise DataError(
            "b is a list of numbers, which says nothing about another table. Give a function or the name of a column."
        )


def _check_columns(tables: list[TableLike], names: Names, used: tuple[Column, ...], given: Input) -> None:
    """Refuse tables that share no column, or whose columns cannot be distinguished."""
    columns = given.schema.columns
    if not used:
        raise DataError(
            "The private and the public table share none of the schema's columns "
            f"{[column.name for column in columns]}. "
            + (
                "A box knows the private columns by position: give a schema that lists names. "
                if given.by_position
                else ""
            )
            + "Rename columns so that both have some of them. Nothing was charged."
        )
    if len(used) < len(columns) and any(own is None for own in names):
        raise DataError(
            "A table without column names was given beside one that lacks columns of the schema, so that it is "
            "unclear which is which. "
            "Give both as frames with names. Nothing was charged."
        )
    for table, own in zip(tables, names, strict=False):
        if own is None and np.asarray(table).shape[1] != len(columns):
            raise DataError(
                f"The public array has {np.asarray(table).shape[1]} columns, and the schema lists {len(columns)}. "
                "Give them in the order of the schema. Nothing was charged."
            )


def check_settings(tau: object, synthetic_rows: object, weight_name: object) -> None:
    """Refuse settings of weights that mean nothing, before anything is read."""
    if not isinstance(tau, int | float) or isinstance(tau, bool) or not 0 <= tau <= 1:
        raise PrivacyError(
            f"tau={tau!r} was given; it is from 0, where all weights are equal, to 1. Use 1 if in doubt."
        )
    whole = hasattr(synthetic_rows, "__index__") and not isinstance(synthetic_rows, bool)
    if not whole or int(synthetic_rows) < 1:  # type: ignore[call-overload]
        raise PrivacyError(f"synthetic_rows={synthetic_rows!r} was given; it is an integer of at least 1. Use 20_000.")
    if not isinstance(weight_name, str) or not weight_name:
        raise PrivacyError(
            f"weight_name={weight_name!r} was given; it is the name of a column. Use 'weight' if in doubt."
        )


def refuse_same(private: TableLike, public: TableLike) -> None:
    """Refuse the private table itself in place of a public one: its rows would be published."""
    for table in public if isinstance(public, list | tuple) else [public]:
        paths = [Path(one).resolve() for one in (private, table) if isinstance(one, str | Path)]
        if table is private or (len(paths) == 2 and paths[0] == paths[1]):
            raise PrivacyError(
                "The private table was also given as the public one, whose rows are published with weights. Give a "
                "table that is public, or none. Nothing was charged."
            )


def synthetic_table(columns: tuple[Column, ...], n_rows: int) -> Frame:
    """Rows drawn uniformly from the schema, with a fixed seed that anybody may know: every level, and every bin of a
    number, is as likely as another.
    """
    generator = seeded_generator(SYNTHETIC_SEED)
    drawn: dict[str, NDArray[Any]] = {}
    for column in columns:
        if isinstance(column, Category):
            levels = np.array(
                [level for level in column.levels if column.is_text or not isinstance(level, str)], dtype=object
            )
            drawn[column.name] = levels[generator.integers(len(levels), size=n_rows)]
            continue
        edges = np.array([column.low, *column.edges("auto"), column.high])
        place = generator.integers(len(edges) - 1, size=n_rows)
        drawn[column.name] = edges[place] + (edges[place + 1] - edges[place]) * generator.random(n_rows)
    return columns_to_frame(drawn)
