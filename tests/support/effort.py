"""How much a test does: little in `make test`, all of it in `make audit`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick_or_full(names: str | tuple[str, ...], *, quick: Iterable[Any], full: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise a test with `quick` values, and with `full` ones under the marker `slow`.

    The quick form must fail for broken code as the full one does: see that it does before numbers are made smaller.
    """
    return pytest.mark.parametrize(names, [*quick, *(_slow(values, names) for values in full)])


def _slow(values: Any, names: str | tuple[str, ...]) -> Any:
    several = isinstance(names, tuple)
    return pytest.param(*(values if several else (values,)), marks=pytest.mark.slow)
