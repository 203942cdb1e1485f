"""Libraries that only some sources need: imported when one is opened, and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from privfit.tables.errors import DataError


def driver(module: str, source: str, extra: str) -> Any:
    """A module, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        missing = module.partition(".")[0]
    raise DataError(
        f"{source} is read by the library {missing!r}, which is not installed. Install it: pip install "
        f"'privfit[{extra}]'. Nothing was charged."
    )
