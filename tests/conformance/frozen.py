"""Seeded results of every estimator and setting on generated tables, kept in a fixture: numbers that a change of how
the library is built must not change.

`python -m tests.conformance.frozen new` adds results of new settings to the fixture. Without "new" it writes all of
them anew; a change that moves numbers says why in its commit.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.control_flow import Setting
from tests.conformance.flow_settings import families
from tests.conformance.flow_tables import FORMS, family, public_table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "frozen.json"
LENGTH = 150
SHOWN = 6
"""How many numbers of every result are kept as they are; of all of them the sum of sizes and a hash are kept."""
REPORTED = ("epsilon", "delta", "sensitivity", "noise_scale", "released_values", "noise_deviation")
ASKED = ("predict_proba", "decision_function", "predict")


def frozen(setting: Setting, place: int, order: Sequence[int] = range(LENGTH)) -> dict[str, Any]:
    """What a seeded fit of one setting learns, predicts, reports and would charge, from rows in this order."""
    table = family(setting.schema, 5, LENGTH, setting.adjacency, place, 1)
    rows = [table.rows[number] for number in order]
    model = setting.make(schema=setting.schema, adjacency=setting.adjacency, random_state=place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            setting.fit(model, FORMS["polars"](setting.schema, rows, Path()))
        except Exception as error:  # public facts may be a reason to refuse
            return {"refused": type(error).__name__}
        found = {name: _digest(value) for name, value in _learned(model)}
        public = public_table(setting.schema)
        asked = [name for name in ASKED if hasattr(model, name)][:1]
        found |= {name: _digest(getattr(model, name)(public)) for name in asked}
        if hasattr(model, "to_frame"):
            found["to_frame"] = _digest(_cells(model.to_frame()))
    report = model.report_.to_dict()
    found["report"] = [report[name] for name in REPORTED] + [report["event"].get("rho")]
    found["ridge"] = report["repairs"].get("ridge")
    return found


def _learned(model: Any) -> list[tuple[str, Any]]:
    names = sorted(name for name in vars(model) if name.endswith("_") and not name.startswith("_"))
    return [(name, vars(model)[name]) for name in names if _is_numeric(vars(model)[name])]


def _cells(frame: Any) -> list[float]:
    """The numbers of a frame, without what is missing."""
    return [float(x) for x in np.ravel(frame.to_numpy()) if isinstance(x, int | float | np.number) and x == x]


def _is_numeric(value: Any) -> bool:
    return isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind in "biuf"


def _digest(value: Any) -> list[Any]:
    """The shape, the first numbers, the sum of sizes, and a hash of all bits."""
    numbers = np.asarray(value)
    if numbers.dtype.kind in "OU":  # classes
        numbers = np.array([int(hashlib.sha256(str(item).encode()).hexdigest()[:8], 16) for item in numbers.ravel()])
    flat = numbers.ravel().astype(float)
    bits = hashlib.sha256(np.ascontiguousarray(flat).tobytes()).hexdigest()[:16]
    size = float(np.sum(np.abs(flat))) if flat.size else 0.0
    return [list(numbers.shape), [repr(float(x)) for x in flat[:SHOWN]], repr(size), bits]


def named_settings() -> dict[str, Setting]:
    """All settings by their place and the estimator's name: how mechanisms print may change. Functions take no seed."""
    return {
        f"{place} {one.name.partition('(')[0]}": one
        for settings, first in families().items()
        for place, one in enumerate((one for one in settings() if not is_function(one)), first)
    }


def is_function(setting: Setting) -> bool:
    return isinstance(getattr(setting.make, "func", None), type)


def main(words: Sequence[str] = ()) -> None:
    """Write the fixture: with "new", results of new settings beside those that are kept."""
    kept = json.loads(FIXTURE.read_text(encoding="utf-8")) if "new" in words else {}
    settings = named_settings()
    found = {name: kept.get(name) or frozen(setting, int(name.split()[0])) for name, setting in settings.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    FIXTURE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
