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

COMMANDS = {
    "linear": (pf.Schema(FEATURES["gaps"], NUMBER), []),
    "ridge": (pf.Schema(FEATURES["small"], NUMBER), ["--adjacency", "add-remove"]),
    "logistic": (pf.Schema(FEATURES["gaps"], CLASSES), []),
    "svm": (pf.Schema(FEATURES["small"], CLASSES), ["--mechanism", "output", "--loss", "hinge"]),
    "kmeans": (pf.Schema(CUBE), ["--clusters", "2", "--adjacency", "add-remove"]),
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
    model: str, schema: pf.Schema, options: list[str], rows: list[Row], form: str, folder: Path, told: Log | None
) -> tuple[Any, Log]:
    """Everything that `privfit fit` shows and writes."""
    folder.mkdir()
    table = FORMS[form](schema, rows, folder)
    schema.save(folder / "schema.toml")
    arguments = ["fit", table, "-s", folder / "schema.toml", "-m", model, "-o", folder / "model.json", "-e", "1.0"]
    arguments += ["--ledger", folder / "people.db", "--ledger-epsilon", "10", *options]
    log, parts = Log(), {}
    with everything_said(parts), watched(log, told, len(rows), None, "add-remove" not in options):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="privfit")
    shown = [result.exit_code, repr(result.exception), result.stdout, result.stderr, parts]
    written = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("model*"))]
    seen = repr([shown, written, [(entry.dataset, entry.event) for entry in pf.Ledger(folder / "people.db").entries()]])
    return masked(seen.replace(str(folder), "FOLDER")), log


@pytest.mark.parametrize("model", list(COMMANDS))
def test_commands_show_the_same_for_neighbours(model: str, tmp_path: Path) -> None:
    schema, options = COMMANDS[model]
    adjacency = "add-remove" if "add-remove" in options else "replace-one"
    first: tuple[Any, Log] | None = None
    for kind in KINDS:
        one = family(schema, kind, 20, adjacency, 3, neighbours=1)
        for turn, rows in enumerate([one.rows, *one.neighbours]):
            told = None if first is None else first[1]
            found = ran(
                model, schema, options, rows, "csv" if len(model) % 2 else "parquet", tmp_path / f"{kind} {turn}", told
            )
            first = found if first is None else first
            assert found[0] == first[0], one.name
    assert first is not None
    assert first[0].startswith("[[0, 'None'")
