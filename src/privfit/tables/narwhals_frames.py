"""Frames of narwhals: the frame of another library inside them is what is read."""

from __future__ import annotations

from typing import Any


def is_narwhals(table: Any) -> bool:
    """Whether this is a frame of narwhals, eager or lazy, found out without importing it."""
    kind = type(table)
    return kind.__module__.partition(".")[0] == "narwhals" and kind.__name__ in ("DataFrame", "LazyFrame")


def native_table(table: Any) -> Any:
    """The table itself, or what a frame of narwhals holds."""
    return table.to_native() if is_narwhals(table) else table
