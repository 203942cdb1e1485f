"""The mechanism that CONTRIBUTING.md shows works, and its sensitivity is as large as it must be and no larger."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.tables import open_table
from tests.support.noise import Call, RecordingNoise

SCHEMA = pf.Schema([pf.Numeric("x", 0, 10)])
CORNERS = (-3.0, 0.0, 4.0, 10.0)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(text.split("```python\n")[1].split("```")[0], "CONTRIBUTING.md", "exec"), names)
    return names


def drawn(mechanism: Any, values: tuple[float, ...], adjacency: str) -> Call:
    noise = RecordingNoise()
    rows = Rows(open_table(np.array(values)[:, None]), SCHEMA, mechanism.geometry(SCHEMA))
    parameters = PrivacyParameters(Budget(0.5), adjacency)
    mechanism.release(rows, parameters, None, noise, None)
    (call,) = noise.calls
    return call


def largest_loss(mechanism: Any, adjacency: str) -> float:
    """The most epsilon that a row of a small table can cost."""
    losses = []
    for values in product(CORNERS, repeat=2):
        others = [(x, *values[1:]) for x in CORNERS] if adjacency == "replace-one" else [values[1:]]
        for other in others:
            one, two = (drawn(mechanism, table, adjacency) for table in (values, other))
            losses.append(float(np.abs(one.values - two.values).sum() / one.scale))
    return max(losses)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_row_costs_what_the_example_says(shown: dict[str, Any], adjacency: str) -> None:
    assert largest_loss(shown["PrivateSum"](), adjacency) == pytest.approx(0.5)


def test_a_sensitivity_that_is_too_small_is_seen(shown: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(shown, "STEP", shown["STEP"] // 2)  # the kernel has kept the true one
    assert largest_loss(shown["PrivateSum"](), "replace-one") == pytest.approx(1.0)
