"""Engines' errors may quote cells. Ours never do, and keep nothing of theirs but the name of its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from privfit.tables.table import DataError

Result = TypeVar("Result")


def quietly(label: str, read: Callable[[], Result]) -> Result:
    """What an engine reads. Its error is dropped whole, chain and all, before ours is raised."""
    try:
        return read()
    except DataError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise DataError(
        f"The table {label!r} cannot be read as the schema says ({kind}). "
        "Check that it is whole and that its columns hold the kinds of values the schema lists. Nothing was charged."
    )
