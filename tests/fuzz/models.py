"""Saved models: changed at any place, with and without a fitting checksum, and bytes that were flipped."""

from __future__ import annotations

import copy
import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import privfit as pf
from privfit.models.model_files import checksum
from privfit.models.trial import made_up_rows
from privfit.tables import DecodedTable
from tests.fuzz.rules import attempt_reading
from tests.fuzz.source import Source

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEYS = (
    "mechanism",
    "loss",
    "knots",
    "bands",
    "fourier",
    "pairs",
    "cells",
    "own_loss",
    "certainty",
    "format",
    "centres",
)


def run(content: bytes) -> None:
    """Change a saved model, load it, and use what was loaded."""
    source, path = Source(content), _folder() / "model.json"
    document = copy.deepcopy(source.pick(originals()))
    if source.flag(8):
        path.write_bytes(flipped(source, json.dumps(document).encode()))
    else:
        for _ in range(source.whole(1, 3)):
            change(source, document)
        if "checksum" in document and not source.flag(16):
            document["checksum"] = checksum(document)
        path.write_text(json.dumps(document), encoding="utf-8")
    model, refusal = attempt_reading(lambda: pf.load_model(path))
    assert refusal is None or isinstance(refusal, pf.ModelFileError)
    if model is not None:
        use(model, _folder() / "again.json")


def use(model: Any, path: Path) -> None:
    """Whatever was loaded predicts, reports, and can be saved and loaded again."""
    rows = DecodedTable(model.schema_.features, made_up_rows(model.schema_), "rows")
    answer = model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
    str(model.report_)
    repr(model)
    model._repr_html_()
    model.report_.to_html()
    model.save(path)
    again = pf.load_model(path)
    np.testing.assert_array_equal(again.predict(rows) if hasattr(again, "predict") else again.transform(rows), answer)


def change(source: Source, document: Any) -> None:
    """One change at one place: another value, none, a key more, or an entry less."""
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = source.pick(keys)
        if not isinstance(at[key], dict | list) or source.flag(4):
            break
        at = at[key]
    kind = source.whole(0, 4)
    if not keys or kind == 3:
        if isinstance(at, dict):
            at[source.pick(KEYS) if source.flag() else source.text()] = source.value()
        else:
            at.append(source.value())
    elif kind == 4:
        del at[key]
    elif isinstance(at[key], str) and kind == 2:
        at[key] = _changed_text(source, at[key])
    elif isinstance(at[key], int | float) and kind == 2:
        at[key] = source.number()
    else:
        at[key] = source.value()


def _changed_text(source: Source, text: str) -> str:
    place = source.whole(0, max(len(text) - 1, 0))
    return text[:place] + source.text() + text[place + source.whole(0, 6) :]


def flipped(source: Source, content: bytes) -> bytes:
    """A file with a few bytes changed, or cut off."""
    changed = bytearray(content)
    for _ in range(source.whole(1, 4)):
        changed[source.whole(0, len(changed) - 1)] = source.whole(0, 255)
    return bytes(changed[: source.whole(0, len(changed))] if source.flag(4) else changed)


@functools.cache
def _folder() -> Path:
    kept = tempfile.TemporaryDirectory(prefix="privfit-fuzz-", ignore_cleanup_errors=True)
    _kept.append(kept)
    return Path(kept.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def originals() -> list[dict[str, Any]]:
    """Small models of every kind that has a file of its own form, and three of format 1."""
    features = [pf.Numeric("a", 0, 1), pf.Category("b", ["x", "y", "z"])]
    classes = pf.Schema(features, target=pf.Category("c", ["no", "yes"]))
    numbers = pf.Schema(features, target=pf.Numeric("c", 0, 1))
    box = pf.Schema.box(-1, 1, target=(-1, 1))
    rng = np.random.default_rng(0)
    rows = np.empty((60, 3), dtype=object)
    rows[:, 0], rows[:, 1] = rng.uniform(size=60), rng.choice(["x", "y", "z"], 60)
    told, measured = rng.choice(["no", "yes"], 60), rng.uniform(size=60)
    plain = rng.uniform(-1, 1, (60, 2))
    models = [
        pf.LogisticRegression(5.0, schema=classes, random_state=0).fit(rows[:, :2], told),
        pf.LogisticRegression(5.0, schema=classes, kernel="rbf", n_components=6, random_state=0).fit(rows[:, :2], told),
        pf.LogisticRegression(5.0, schema=classes, intervals=True, random_state=0).fit(rows[:, :2], told),
        pf.AdditiveRegressor(5.0, schema=numbers, random_state=0).fit(rows[:, :2], measured),
        pf.GaussianNB(5.0, schema=classes, random_state=0).fit(rows[:, :2], told),
        pf.Lasso(5.0, schema=numbers, alpha=0.1, random_state=0).fit(rows[:, :2], measured),
        pf.KMeans(2, epsilon=5.0, schema=pf.Schema.box(-1, 1), random_state=0).fit(plain),
        pf.PCA(1, epsilon=5.0, schema=pf.Schema.box(-1, 1), random_state=0).fit(plain),
        pf.PoissonRegressor(5.0, schema=numbers, random_state=0).fit(rows[:, :2], measured),
        pf.FunctionalRegressor(5.0, schema=box, random_state=0).fit(plain, plain[:, 0]),
    ]
    documents = []
    for model in models:
        model.save(_folder() / "original.json")
        use(pf.load_model(_folder() / "original.json"), _folder() / "again.json")  # what is imported late is there now
        documents.append(json.loads((_folder() / "original.json").read_text(encoding="utf-8")))
    names = ("model-version-1", "model-version-2-6", "model-version-2-9")
    return documents + [json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8")) for name in names]
