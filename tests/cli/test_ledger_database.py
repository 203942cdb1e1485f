"""`privfit ledger` and `privfit fit --ledger` with a ledger in PostgreSQL."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import privfit as pf
from privfit.cli.doctor import ENGINES, examined
from tests.cli.conftest import Run
from tests.support.kept_ledgers import KeptInDatabase
from tests.support.servers import SECRET, postgresql_server

psycopg = pytest.importorskip("psycopg", reason="psycopg, the driver of ledgers in PostgreSQL, is not installed")


@pytest.fixture
def database() -> KeptInDatabase:
    return KeptInDatabase()


@pytest.fixture
def quiet(run: Run) -> Run:
    """Run a command, which must not tell the password."""

    def checked(*arguments: object) -> object:
        result = run(*arguments)
        assert SECRET not in result.output + result.stderr
        return result

    return checked


@pytest.fixture(scope="module")
def roles() -> Callable[[str], str]:
    server = postgresql_server()
    with psycopg.connect(server.address, autocommit=True) as connection:
        for role in ("spender", "reader"):
            connection.execute(f'DROP ROLE IF EXISTS "cli-{role}"')
            connection.execute(f'CREATE ROLE "cli-{role}" LOGIN')
    return lambda role: server.as_role(f"cli-{role}")


def test_a_ledger_of_a_team_from_its_making_to_its_audit(quiet: Run, folder: Path, database, roles) -> None:
    address = database.address
    made = quiet("ledger", "create", address, "--epsilon", 2, "--spender", "cli-spender", "--reader", "cli-reader")
    assert made.exit_code == 0
    assert f"The ledger {database.name} has spent epsilon 0 of 2" in made.stdout
    spender, reader = (f"{roles(role)}&ledger={database.name}" for role in ("spender", "reader"))
    fit = ("fit", "people.csv", "--schema", "linear.toml", "--model", "linear", "--epsilon", 0.5, "-o", "m.json", "-l")
    paid = quiet(*fit, spender, "--note", "approved by the board, 2026-7")
    assert paid.exit_code == 0, paid.output
    assert "0.5 of 2; 1.5 is left" in paid.stdout
    refused = quiet(*fit, reader)
    assert refused.exit_code == 1
    assert "does not allow this to your role" in refused.stderr

    shown = json.loads(quiet("ledger", reader, "--json").stdout)
    assert (shown["spent"]["epsilon"], shown["entries"][0]["note"]) == (0.5, "approved by the board, 2026-7")
    assert shown["path"] == reader
    (row,) = csv.DictReader(io.StringIO(quiet("ledger", "export", reader).stdout))
    assert row["note"] == "approved by the board, 2026-7"
    assert "paid for by entry 1" in quiet("ledger", "verify", reader, "--against", "m.json").stdout

    backup = database.content() | {"entry": []}
    database.restore(backup)
    stale = quiet("ledger", "verify", reader, "--against", "m.json")
    assert stale.exit_code == 1
    assert "it is an older copy" in stale.stderr


def test_the_budget_of_a_project_has_its_own_spenders(quiet: Run, database, roles) -> None:
    database.make(epsilon=2.0)
    project = f"{database.address}&project=readmission"
    assert quiet("ledger", "create", project, "--epsilon", 0.5, "--spender", "cli-spender").exit_code == 0
    own = f"{roles('spender')}&ledger={database.name}"
    assert pf.Ledger(f"{own}&project=readmission").charge(0.25).entry == 1
    with pytest.raises(pf.LedgerError, match="does not allow this"):
        pf.Ledger(own)
    assert quiet("ledger", "create", f"{database.address}&project=other", "--epsilon", 3).exit_code == 3


def test_rights_are_granted_later_too(quiet: Run, database, roles) -> None:
    database.make(epsilon=2.0)
    reader = f"{roles('reader')}&ledger={database.name}"
    assert quiet("ledger", reader).exit_code == 1
    assert quiet("ledger", "grant", database.address).exit_code == 1
    assert quiet("ledger", "grant", database.address, "--reader", "cli-reader").exit_code == 0
    assert quiet("ledger", reader).exit_code == 0
    assert quiet("ledger", "grant", reader, "--spender", "cli-reader").exit_code == 1


def test_refusals_make_nothing_and_tell_no_password(quiet: Run, database, tmp_path: Path) -> None:
    address = database.address
    for arguments in (
        ("create", address),
        ("create", address, "--epsilon", 0),
        ("create", address, "--epsilon", 1, "--spender", "nobody-of-this-name"),
        ("show", address),
        ("verify", address),
        ("export", address),
        ("create", tmp_path / "ledger.db", "--epsilon", 1, "--spender", "alice"),
        ("show", f"postgresql://people:{SECRET}@/nothing?host={tmp_path}"),
        ("show", f"postgresql://people:{SECRET}@x@/nothing"),
    ):
        result = quiet("ledger", *arguments)
        assert (result.exit_code, result.stderr[:7]) == (1, "Error: "), arguments
    assert not database.exists()
    assert list(tmp_path.iterdir()) == []
    database.make(epsilon=1.0)
    again = quiet("ledger", "create", address, "--epsilon", 9)
    assert (again.exit_code, "There already is a ledger" in again.stderr) == (1, True)


def test_a_file_is_made_by_the_same_command(quiet: Run, tmp_path: Path) -> None:
    assert quiet("ledger", "create", tmp_path / "budget.db", "--epsilon", 1, "--delta", 1e-6).exit_code == 0
    made = pf.Ledger(tmp_path / "budget.db")
    assert (made.epsilon, made.delta) == (1.0, 1e-6)


def test_doctor_says_whether_the_driver_is_there() -> None:
    (line,) = [examined(engine) for engine in ENGINES if engine.name == "ledgers in PostgreSQL"]
    assert (line.state, line.detail[:8]) == ("installed", "psycopg ")
