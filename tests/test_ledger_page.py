"""The examples of docs/ledger.md run, in their order, on a server of our own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privfit.cli import app
from tests.support.servers import postgresql_server

PAGE = Path(__file__).parents[1] / "docs" / "ledger.md"


def test_the_examples_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg, the driver of ledgers in PostgreSQL, is not installed")
    server = postgresql_server()
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE clinic")
        for role in ("alice", "bob", "auditor"):
            known = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
            if known is None:
                connection.execute(f"CREATE ROLE {role} LOGIN")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGHOST", server.folder)
    monkeypatch.setenv("PGUSER", "people")
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    known_names: dict[str, object] = {}
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, PAGE.name, "exec"), known_names)
            continue
        for line in block.splitlines():
            name, *arguments = shlex.split(line)
            result = CliRunner().invoke(app, arguments)
            assert (name, result.exit_code) == ("privfit", 0), result.output
    assert "readmission study" in Path("spent.csv").read_text(encoding="utf-8")
