"""`privfit plan`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

import privfit as pf
from privfit.cli import app


def test_a_plan_on_the_command_line(tmp_path) -> None:
    schema = pf.Schema([pf.Numeric("age", 0, 100)], target=pf.Category("ill", ["no", "yes"]))
    schema.save(tmp_path / "people.toml")
    asked = ["plan", str(tmp_path / "people.toml"), "--rows", "1000", "-e", "1", "--mechanism", "auto"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0
    assert "without noise" in found.output
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert told["forecasts"][0]["epsilon"] == 1


def test_a_model_that_is_not_known_is_refused(tmp_path) -> None:
    pf.Schema([pf.Numeric("age", 0, 100)]).save(tmp_path / "people.toml")
    wrong = ["plan", str(tmp_path / "people.toml"), "--rows", "1000", "--time", "age"]
    assert "only cox" in CliRunner().invoke(app, wrong).stderr
    found = CliRunner().invoke(app, ["plan", str(tmp_path / "people.toml"), "--rows", "1000", "--model", "forest"])
    assert found.exit_code != 0
    asked = ["plan", str(tmp_path / "people.toml"), "--rows", "1000", "--components", "1", "-e", "1"]
    assert "only pca" in CliRunner().invoke(app, asked).stderr
    assert CliRunner().invoke(app, [*asked, "--model", "pca"]).exit_code == 0
