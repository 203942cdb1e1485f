"""A file that changes while `privfit fit` reads it: an error, no model, nothing charged."""

from __future__ import annotations

from pathlib import Path

import pytest

import privfit as pf
from tests.cli.conftest import Run
from tests.support.early_ends import CHANGES, changing, file

KINDS = {"linear": pf.Numeric("goal", 0, 1), "logistic": pf.Category("kind", ["a", "b"]), "kmeans": None}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_while_it_is_read_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, ending: str, change: str
) -> None:
    path = file(tmp_path, ending)
    pf.Schema([pf.Numeric("x", 0, 1), pf.Numeric("m", 1900, 2100)], KINDS[kind]).save(tmp_path / "s.toml")
    changing(monkeypatch, CHANGES[change])
    output, ledger = tmp_path / "m.json", tmp_path / "l.db"
    result = run(
        "fit", path, "-s", tmp_path / "s.toml", "-m", kind, "-e", 0.5, "-l", ledger, "--ledger-epsilon", 1, "-o", output
    )
    assert result.exit_code == 1
    assert "was cut, replaced or written to" in result.stderr or "cannot be read" in result.stderr
    assert "Traceback" not in result.output
    assert not output.exists()
    assert pf.Ledger(ledger).entries() == []
