"""The command line on neighbouring files: exit code, both streams, the model's file and the ledger are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import privfit as pf
from privfit.cli import app
from tests.conformance.control_flow import everything_said, masked, watched
from tests.conformance.flow_settings import CLASSES, CUBE, FEATURES, NUMBER
from tests.conformance.flow_tables import ADVERSARIAL, FORMS, Row, family
from tests.support.watched import Log

FIT = ("fit", "-o", "model.json", "-m")
COMMANDS: dict[str, tuple[pf.Schema, tuple[str, ...]]] = {
    "linear": (pf.Schema(FEATURES["gaps"], NUMBER), (*FIT, "linear")),
    "ridge": (pf.Schema(FEATURES["small"], NUMBER), (*FIT, "ridge", "--adjacency", "add-remove")),
    "logistic": (pf.Schema(FEATURES["gaps"], CLASSES), (*FIT, "logistic")),
    "svm": (pf.Schema(FEATURES["small"], CLASSES), (*FIT, "svm", "--mechanism", "output", "--loss", "hinge")),
    "kmeans": (pf.Schema(CUBE), (*FIT, "kmeans", "--clusters", "2", "--adjacency", "add-remove")),
    "intervals": (pf.Schema(FEATURES["gaps"], CLASSES), (*FIT, "logistic", "--intervals")),
    "rate ratios": (pf.Schema(FEATURES["small"], NUMBER), (*FIT, "poisson", "--intervals")),
    "describe": (pf.Schema(FEATURES["gaps"]), ("describe",)),
    "itemsets": (pf.Schema(FEATURES["levels"]), ("itemsets", "-k", "5", "--adjacency", "add-remove")),
    "quantile": (pf.Schema(FEATURES["gaps"]), ("quantile", "age", "-q", "0.3", "-q", "0.8")),
    "crosstab": (pf.Schema(FEATURES["gaps"]), ("crosstab", "age", "job", "--adjacency", "add-remove")),
    "select": (pf.Schema(FEATURES["gaps"], CLASSES), ("select", "-k", "1")),
    "search": (
        pf.Schema(FEATURES["small"], NUMBER),
        ("search", "-m", "ridge", "--grid", "alpha=1,10", "-o", "model.json"),
    ),
    "kaplan-meier": (
        pf.Schema(FEATURES["gaps"], CLASSES),
        ("kaplan-meier", "--time", "age", "--event", "y", "--by", "job"),
    ),
}
KINDS = (
    1,
    *(
        2 * place
        for place, (name, _) in enumerate(ADVERSARIAL)
        if name in ("tiny margin", "extreme rows", "missing cells")
    ),
)


def ran(
    schema: pf.Schema, command: tuple[str, ...], rows: list[Row], form: str, folder: Path, told: Log | None
) -> tuple[Any, Log]:
    """Everything that a command shows and writes."""
    folder.mkdir()
    table = FORMS[form](schema, rows, folder)
    schema.save(folder / "schema.toml")
    name, *options = (folder / word if word == "model.json" else word for word in command)
    arguments = [name, table, "-s", folder / "schema.toml", "-e", "1.0", *options]
    arguments += ["--ledger", folder / "people.db", "--ledger-epsilon", "10"]
    log, parts = Log(), {}
    with everything_said(parts), watched(log, told, len(rows), None, "add-remove" not in options):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="privfit")
    shown = [result.exit_code, repr(result.exception), result.stdout, result.stderr, parts]
    written = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("model*"))]
    seen = repr([shown, written, [(entry.dataset, entry.event) for entry in pf.Ledger(folder / "people.db").entries()]])
    return masked(seen.replace(str(folder), "FOLDER")), log


@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands_show_the_same_for_neighbours(name: str, tmp_path: Path) -> None:
    schema, command = COMMANDS[name]
    adjacency = "add-remove" if "add-remove" in command else "replace-one"
    first: tuple[Any, Log] | None = None
    for kind in KINDS:
        one = family(schema, kind, 20, adjacency, 3, neighbours=1)
        for turn, rows in enumerate([one.rows, *one.neighbours]):
            told = None if first is None else first[1]
            form = "csv" if len(name) % 2 else "parquet"
            found = ran(schema, command, rows, form, tmp_path / f"{kind} {turn}", told)
            first = found if first is None else first
            assert found[0] == first[0], one.name
    assert first is not None
    assert first[0].startswith("[[0, 'None'")
