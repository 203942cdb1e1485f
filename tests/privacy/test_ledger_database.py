"""Ledgers in PostgreSQL: what a file does not have. Lost answers, a killed server, roles, projects, passwords."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest

import privfit as pf
from privfit.privacy.ledger import postgresql as module
from privfit.privacy.ledger.postgresql import known_place, place_in_database
from tests.support.processes import finish, go, start
from tests.support.servers import SECRET, PostgreSQL, postgresql_server

psycopg = pytest.importorskip("psycopg", reason="psycopg, the driver of ledgers in PostgreSQL, is not installed")


def entries(kept) -> int:
    return kept.sql("SELECT count(*) FROM entry")[0][0]


# -- durable, and one after the other --------------------------------------------------------------


def test_a_commit_waits_for_the_disk_whatever_the_role_has_set(database):
    ledger = database.make(epsilon=1.0)
    database.sql("ALTER ROLE people SET synchronous_commit = off")
    try:
        with ledger._placed.opened(write=True) as (records, _):
            assert records.connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
            assert records.connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    finally:
        database.sql("ALTER ROLE people RESET synchronous_commit")
    database.sql("ALTER ROLE people SET synchronous_commit = remote_apply")
    try:
        with ledger._placed.opened(write=True) as (records, _):
            assert records.connection.execute("SHOW synchronous_commit").fetchone() == ("remote_apply",)
    finally:
        database.sql("ALTER ROLE people RESET synchronous_commit")


def test_a_server_that_does_not_write_to_its_disk_is_refused(database, monkeypatch):
    ledger = database.make(epsilon=1.0)
    monkeypatch.setattr(module, "_DURABLE", "SELECT 'off'")
    with pytest.raises(pf.LedgerError, match=r"fsync=off.*Nothing was charged"):
        ledger.charge(0.1)
    monkeypatch.undo()
    assert ledger.entries() == []


def test_two_charges_that_follow_the_same_head_are_never_both_committed_even_without_the_lock(database, monkeypatch):
    ledger, other = database.make(epsilon=1.0), pf.Ledger(database.address)
    monkeypatch.setattr(module.PostgreSQLPlace, "_alone", lambda self, connection: None)
    state_after = pf.Ledger._refuse_beyond

    def meanwhile(self, state, event):
        if self is ledger:
            other.charge(0.9)
        return state_after(self, state, event)

    monkeypatch.setattr(pf.Ledger, "_refuse_beyond", meanwhile)
    with pytest.raises(pf.LedgerError, match=r"somebody else at the same time.*Nothing was charged"):
        ledger.charge(0.9)
    monkeypatch.undo()
    assert ledger.spent == 0.9


def test_a_charge_that_waits_too_long_is_refused(database, monkeypatch):
    ledger = database.make(epsilon=1.0)
    monkeypatch.setattr(module, "_DURABLE", module._DURABLE.replace("'lock_timeout', '60s'", "'lock_timeout', '100ms'"))
    with ledger._placed.opened(write=True):
        with pytest.raises(pf.LedgerError, match=r"is locked.*Nothing was charged"):
            pf.Ledger(database.address).charge(0.1)
        assert pf.Ledger(database.address).spent == 0  # who reads does not wait
    assert ledger.charge(0.1).entry == 1


def test_a_client_that_hangs_is_cut_off_and_holds_nobody_up(database, monkeypatch):
    ledger, other = database.make(epsilon=1.0), pf.Ledger(database.address)
    hanging = module._DURABLE.replace("session_timeout', '60s'", "session_timeout', '100ms'")
    monkeypatch.setattr(module, "_DURABLE", hanging)
    state_after = pf.Ledger._refuse_beyond

    def hangs(self, state, event):
        if self is ledger:
            assert other.charge(0.5).entry == 1
        return state_after(self, state, event)

    monkeypatch.setattr(pf.Ledger, "_refuse_beyond", hangs)
    with pytest.raises(pf.LedgerError, match="Nothing was charged or released"):
        ledger.charge(0.5)
    assert entries(database) == 1


# -- lost connections ------------------------------------------------------------------------------


def losing_the_answer(monkeypatch, before_commit: bool) -> list[str]:
    """The connection breaks at the first COMMIT: before it reaches the server, or before its answer comes back."""
    commits: list[str] = []
    execute = psycopg.Connection.execute

    def broken(self, query, *values, **options):
        if query != "COMMIT" or commits:
            return execute(self, query, *values, **options)
        commits.append(query)
        if not before_commit:
            execute(self, query)
        self.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Connection, "execute", broken)
    return commits


def test_a_charge_whose_answer_was_lost_is_found_and_not_repeated(database, monkeypatch):
    ledger = database.make(epsilon=1.0)
    commits = losing_the_answer(monkeypatch, before_commit=False)
    receipt = ledger.charge(0.5)
    assert (commits, receipt.entry, entries(database)) == (["COMMIT"], 1, 1)
    ledger.verify(receipt)


def test_a_charge_that_was_lost_with_its_connection_is_an_error_and_not_repeated(database, monkeypatch):
    ledger = database.make(epsilon=1.0)
    losing_the_answer(monkeypatch, before_commit=True)
    with pytest.raises(pf.LedgerError, match=r"the charge was not made\. Nothing was charged or released"):
        ledger.charge(0.5)
    assert (ledger.last_receipt, entries(database)) == (None, 0)


def test_a_charge_in_the_place_of_a_lost_one_is_not_taken_for_it(database, monkeypatch):
    """Somebody else's entry has the number that the lost one would have had, and all that it says."""
    ledger, other = database.make(epsilon=1.0), pf.Ledger(database.address)
    losing_the_answer(monkeypatch, before_commit=True)
    settle = module.PostgreSQLPlace.settle
    monkeypatch.setattr(
        module.PostgreSQLPlace, "settle", lambda self, *written: (other.charge(0.5), settle(self, *written))[1]
    )
    with pytest.raises(pf.LedgerError, match="the charge was not made"):
        ledger.charge(0.5)
    assert entries(database) == 1


@pytest.mark.parametrize("written", [True, False])
def test_an_outcome_that_nobody_knows_releases_nothing(database, monkeypatch, written):
    ledger = database.make(epsilon=1.0)
    losing_the_answer(monkeypatch, before_commit=not written)
    monkeypatch.setattr(module, "_RECONNECT_SECONDS", 0.0)
    connect, connections = module.PostgreSQLPlace._connect, []

    def only_once(self):
        connections.append(self)
        if len(connections) > 1:
            raise pf.LedgerError("The server cannot be reached.")
        return connect(self)

    monkeypatch.setattr(module.PostgreSQLPlace, "_connect", only_once)
    with pytest.raises(pf.LedgerError, match=r"is not known.*Nothing was released\. Count it as charged"):
        ledger.charge(0.5)
    monkeypatch.undo()
    assert entries(database) == written


def test_a_connection_that_the_server_ends_before_the_commit_charges_nothing(database, monkeypatch):
    ledger = database.make(epsilon=1.0)
    state_after = pf.Ledger._refuse_beyond

    def ended(self, state, event):
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'privfit'")
        time.sleep(0.1)
        return state_after(self, state, event)

    monkeypatch.setattr(pf.Ledger, "_refuse_beyond", ended)
    with pytest.raises(pf.LedgerError, match="Nothing was charged or released"):
        ledger.charge(0.5)
    monkeypatch.undo()
    assert ledger.charge(0.5).entry == 1


@pytest.fixture(scope="module")
def own_server():
    """A server that a test may kill."""
    return PostgreSQL()


CHARGE_UNTIL_KILLED = """
while True:
    try:
        receipt = ledger.charge(0.001)
    except LedgerError as error:
        os.write(1, b"refused %s\\n" % str(error).encode())
        break
    os.write(1, b"%d %s\\n" % (receipt.entry, receipt.head.encode()))
"""


def test_a_server_that_is_killed_while_it_is_charged_has_every_charge_that_was_answered(own_server):
    address = f"{own_server.address}&ledger=killed"
    ledger = pf.Ledger(address, epsilon=100.0)
    processes = [start(CHARGE_UNTIL_KILLED, address) for _ in range(2)]
    go(*processes)
    first = processes[0].stdout.readline().split()
    time.sleep(0.3)
    own_server.kill()
    time.sleep(0.2)
    own_server.start()
    told = [first, *(line.split() for process in processes for line in finish(process))]
    refused = [b" ".join(line) for line in told if line[0] == b"refused"]
    answered = {int(line[0]): line[1].decode() for line in told if line[0] != b"refused"}
    assert len(refused) == 2
    assert all(b"released" in line for line in refused)
    written = {entry.id: entry.hash for entry in ledger.entries()}
    assert answered.items() <= written.items()
    assert len(written) <= len(answered) + 2  # a charge without its answer: at most one a client
    assert ledger.verify().entries == len(written)


def test_a_server_that_is_away_is_our_own_error_and_nothing_is_drawn(own_server, monkeypatch):
    ledger = pf.Ledger(f"{own_server.address}&ledger=away", epsilon=1.0)
    drawn: list[float] = []
    monkeypatch.setattr(
        "privfit.privacy.SecureNoise.laplace", lambda self, values, scale: drawn.append(scale) or values
    )
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    model = pf.LinearRegression(0.1, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=ledger)
    own_server.kill()
    try:
        for use in (lambda: model.fit(X, X[:, 0]), lambda: ledger.charge(0.1), lambda: ledger.spent):
            with pytest.raises(pf.LedgerError, match="cannot be reached"):
                use()
    finally:
        own_server.start()
    assert drawn == []
    assert ledger.entries() == []
    assert model.fit(X, X[:, 0]).report_.receipt["entry"] == 1


def test_a_server_that_was_restored_from_a_backup_is_noticed_by_what_was_seen_and_by_reports(own_server):
    address = f"{own_server.address}&ledger=restored"
    ledger = pf.Ledger(address, epsilon=1.0)
    ledger.charge(0.1)
    backup = own_server.back_up()
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    model = pf.LinearRegression(0.5, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=ledger).fit(X, X[:, 0])
    stored = pickle.dumps(ledger)
    own_server.restore(backup)
    for use in (ledger.charge, pickle.loads(stored).charge):
        with pytest.raises(pf.LedgerError, match="rolled back or rewritten"):
            use(0.5)
    again = pf.Ledger(address)
    with pytest.raises(pf.LedgerError, match="it is an older copy"):
        again.verify(model.report_.receipt)
    again.charge(0.5)  # as nobody who has seen more can know
    with pytest.raises(pf.LedgerError, match="went another way"):
        again.verify(model.report_.receipt)


def test_a_standby_can_be_read_and_refuses_every_charge(own_server):
    ledger = pf.Ledger(f"{own_server.address}&ledger=standby", epsilon=1.0)
    receipt = ledger.charge(0.1)
    own_server.become_standby()
    try:
        assert (ledger.spent, ledger.verify(receipt).entries) == (0.1, 1)
        with pytest.raises(pf.LedgerError, match=r"is read-only here.*Nothing was charged"):
            ledger.charge(0.1)
    finally:
        own_server.become_primary()
    assert ledger.charge(0.1).entry == 2


DIE_AT_COMMIT = """
import psycopg
execute = psycopg.Connection.execute

def dying(self, query, *values, **options):
    if query == "COMMIT" and MOMENT == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = execute(self, query, *values, **options)
    if query == "COMMIT" or (MOMENT == "written" and query.startswith("INSERT")):
        os.kill(os.getpid(), signal.SIGKILL)
    return result

psycopg.Connection.execute = dying
ledger.charge(0.5)
os.write(1, b"released\\n")
"""


@pytest.mark.parametrize(("moment", "written"), [("written", 0), ("before", 0), ("after", 1)])
def test_a_client_that_is_killed_leaves_a_charge_from_its_commit_on_and_not_before(database, moment, written):
    ledger = database.make(epsilon=1.0)
    process = start(f"MOMENT = {moment!r}\n" + DIE_AT_COMMIT, database.address)
    go(process)
    assert finish(process) == []
    assert process.returncode == -signal.SIGKILL
    assert ledger.charge(0.5).entry == written + 1


def test_threads_that_fork_share_no_connection(database):
    ledger = database.make(epsilon=100.0)
    stop, charged = threading.Event(), []

    def hammer():
        while not stop.is_set():
            charged.append(ledger.charge(0.001).entry)

    thread = threading.Thread(target=hammer)
    thread.start()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                ledger.charge(1.0)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    stop.set()
    thread.join()
    assert ledger.verify().entries == len(charged) + 3


# -- roles -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def roles():
    server = postgresql_server()
    with psycopg.connect(server.address) as connection:
        for role in ("alice", "bob", "carol", "locked"):
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"ALTER ROLE locked PASSWORD '{SECRET}'")
    return server


@pytest.fixture
def shared(roles, database):
    """A ledger that alice may spend from, bob may read, and carol may not see; and its address for a role."""
    ledger = database.make(epsilon=1.0)
    place_in_database(database.address).grant(spenders=["alice"], readers=["bob"])
    ledger.charge(0.1)
    return lambda role: f"{roles.as_role(role)}&ledger={database.name}"


def test_a_reader_reads_and_verifies_and_cannot_spend(shared, database):
    ledger = pf.Ledger(shared("bob"))
    assert (ledger.spent, len(ledger.entries()), ledger.verify().entries) == (0.1, 1, 1)
    with pytest.raises(
        pf.LedgerError, match=r"does not allow this to your role: permission denied.*Nothing was charged"
    ):
        ledger.charge(0.1)
    assert entries(database) == 1


def test_a_spender_spends_and_the_server_notes_who_it_was(shared, database):
    ledger = pf.Ledger(shared("alice"), owner="somebody else")
    assert ledger.charge(0.2).entry == 2
    assert pf.Ledger(shared("bob")).spent == pytest.approx(0.3)
    assert database.sql("SELECT charged_by FROM entry ORDER BY id") == [("people",), ("alice",)]


def test_who_was_granted_nothing_sees_nothing(shared):
    with pytest.raises(pf.LedgerError, match="does not allow this to your role"):
        pf.Ledger(shared("carol"))


FORBIDDEN = {
    "raise the budget": "UPDATE budget SET epsilon = 100",
    "another budget": "INSERT INTO budget SELECT * FROM budget",
    "no budget": "DELETE FROM budget",
    "change an entry": "UPDATE entry SET epsilon = 0.001",
    "change its sums": "UPDATE entry SET totals = ''",
    "delete an entry": "DELETE FROM entry",
    "delete all": "TRUNCATE entry",
    "drop the table": "DROP TABLE entry",
    "drop the schema": "DROP SCHEMA {schema} CASCADE",
    "another table": "CREATE TABLE mine (x int)",
    "charge as another": "INSERT INTO entry (id, charged_by) VALUES (2, 'bob')",
    "grant": "GRANT UPDATE ON entry TO carol",
    "a trigger": "CREATE TRIGGER t BEFORE INSERT ON entry EXECUTE FUNCTION suppress_redundant_updates_trigger()",
}


@pytest.mark.parametrize("role", ["alice", "bob"])
@pytest.mark.parametrize("what", FORBIDDEN)
def test_neither_a_spender_nor_a_reader_can_change_the_budget_or_an_entry(shared, database, roles, role, what):
    before = database.content()
    statement = FORBIDDEN[what].format(schema=database.schema)
    options = f"-c search_path={database.schema[1:-1]}"
    with psycopg.connect(roles.as_role(role), options=options, autocommit=True) as connection:
        if what == "grant":  # PostgreSQL warns of a grant that grants nothing
            connection.execute(statement)
            granted = "SELECT has_table_privilege('carol', 'entry', 'UPDATE')"
            assert connection.execute(granted).fetchone() == (False,)
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    assert database.content() == before


def test_only_who_may_make_schemas_sets_budgets(shared, roles):
    for name in ("ledger=carols", shared("alice").partition("&")[2] + "&project=hers"):
        with pytest.raises(pf.LedgerError, match="permission denied"):
            pf.Ledger(f"{roles.as_role('alice')}&{name}", epsilon=0.1)
    assert pf.Ledger(shared("bob")).spent == 0.1


def test_members_of_a_role_set_budgets_that_belong_to_the_role(roles, database):
    database.sql(
        "CREATE ROLE budgets",
        "GRANT CREATE ON DATABASE postgres TO budgets",
        "GRANT budgets TO carol",
    )
    try:
        made = pf.Ledger(f"{roles.as_role('carol')}&options=-crole%3Dbudgets&ledger={database.name}", epsilon=1.0)
        assert made.charge(0.1).entry == 1
        assert database.sql("SELECT charged_by FROM entry") == [("carol",)]
        owner = f"SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = '{database.schema[1:-1]}'"
        assert database.sql(owner) == [("budgets",)]
    finally:
        database.sql("REVOKE budgets FROM carol")


def test_rights_are_granted_to_roles_that_exist_all_or_none(shared, database):
    place = place_in_database(database.address)
    with pytest.raises(pf.LedgerError, match="There is no role 'nobody-of-this-name'"):
        place.grant(spenders=["carol", "nobody-of-this-name"])
    for name in ("public", 'x"; DROP TABLE entry; --'):
        with pytest.raises(pf.LedgerError, match="There is no role"):
            place.grant(readers=[name])
    with pytest.raises(pf.LedgerError):
        pf.Ledger(shared("carol"))


# -- projects --------------------------------------------------------------------------------------


def test_the_budget_of_a_project_is_taken_from_that_of_its_people(database):
    people = database.make(epsilon=2.0, delta=1e-5)
    project = pf.Ledger(f"{database.address}&project=readmission", epsilon=0.5, delta=1e-6)
    assert tuple(people.remaining) == (1.5, 9e-6)
    (entry,) = people.entries()
    assert (entry.mechanism, entry.note) == ("budget of a project", f"{database.name}/readmission")
    project.charge(0.4)
    assert (project.remaining, people.remaining) == (pytest.approx(0.1), 1.5)
    with pytest.raises(pf.BudgetExceeded):
        project.charge(0.2)
    again = pf.Ledger(f"{database.address}&project=readmission", epsilon=0.5)
    assert (again.spent, len(people.entries())) == (0.4, 1)
    assert repr(again) == f"Ledger('{database.name}/readmission', epsilon=0.5, delta=1e-06)"


def test_a_project_that_its_people_s_budget_cannot_pay_is_not_made(database):
    people = database.make(epsilon=1.0)
    for wrong in ({"epsilon": 1.5}, {"epsilon": 0.5, "delta": 1e-6}):
        with pytest.raises(pf.BudgetExceeded):
            pf.Ledger(f"{database.address}&project=large", **wrong)
    with pytest.raises(pf.PrivacyError):
        pf.Ledger(f"{database.address}&project=endless", epsilon=float("inf"))
    assert people.entries() == []
    with pytest.raises(pf.LedgerError, match="needs a budget"):
        pf.Ledger(f"{database.address}&project=large")


def test_a_project_without_people_is_not_made(database):
    with pytest.raises(pf.LedgerError, match="There is no ledger"):
        pf.Ledger(f"{database.address}&project=readmission", epsilon=0.5)
    assert not database.exists()


def test_a_project_that_many_make_at_once_is_paid_for_once(database):
    people = database.make(epsilon=1.0)
    made: list[pf.Ledger] = []
    threads = [
        threading.Thread(target=lambda: made.append(pf.Ledger(f"{database.address}&project=one", epsilon=0.25)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), people.remaining) == (4, 0.75)


# -- addresses and passwords -----------------------------------------------------------------------


def secrets_of(ledger: pf.Ledger) -> str:
    told = [repr(ledger), str(ledger.path), repr(vars(ledger)), repr(ledger._placed.place), repr(ledger.entries())]
    return " ".join(told) + repr(pickle.dumps(ledger)) + repr(pickle.dumps(copy.deepcopy(ledger), protocol=0))


def test_a_password_stands_nowhere(database):
    ledger = database.make(epsilon=1.0)
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    model = pf.LinearRegression(0.1, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=ledger).fit(X, X[:, 0])
    assert SECRET in database.address
    told = secrets_of(ledger) + repr(model.report_.to_dict()) + str(model.report_) + repr(pickle.dumps(model))
    assert SECRET not in told
    assert SECRET not in repr(database.content())


def test_a_pickle_finds_its_password_in_its_process_or_in_the_environment(roles, database, monkeypatch):
    database.make(epsilon=1.0)
    place_in_database(database.address).grant(spenders=["locked"])
    own = f"{roles.as_role('locked', SECRET)}&ledger={database.name}"
    ledger = pf.Ledger(own)
    stored = pickle.dumps(ledger)
    assert SECRET.encode() not in stored
    assert pickle.loads(stored).charge(0.1).entry == 1
    code = f"""
import pickle
try:
    os.write(1, b"%d\\n" % pickle.loads({stored!r}).charge(0.1).entry)
except LedgerError as error:
    os.write(1, str(error).encode())
"""
    process = start(code, database.address)  # it opens the ledger as somebody else, and has not seen the password
    go(process)
    (refused,) = finish(process)
    assert b"PGPASSWORD" in refused
    monkeypatch.setenv("PGPASSWORD", SECRET)
    process = start(code, database.address)
    go(process)
    assert finish(process) == [b"2"]


def test_a_wrong_password_is_forgotten_and_not_told(roles, database):
    database.make(epsilon=1.0)
    place_in_database(database.address).grant(readers=["locked"])
    with pytest.raises(pf.LedgerError, match="did not let your role in") as refusal:
        pf.Ledger(f"{roles.as_role('locked', 'wr0ng')}&ledger={database.name}")
    assert "wr0ng" not in str(refusal.value)
    assert "wr0ng" not in repr(module._secrets)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("postgresql://h/d", "postgresql://h/d?ledger=default"),
        ("postgres://u:hunter2@h:5433/d?ledger=people", "postgresql://u@h:5433/d?ledger=people"),
        (
            "postgresql://u@h/d?password=hunter2&sslmode=require&ledger=a-b&project=c_d",
            "postgresql://u@h/d?sslmode=require&ledger=a-b&project=c_d",
        ),
        ("postgresql:///d?host=a,b&port=1,2&user=u", "postgresql://u@/d?host=a,b&port=1,2&ledger=default"),
        ("postgresql://u%40x@h/d%2Fe", "postgresql://u%40x@h/d%2Fe?ledger=default"),
        ("postgresql:///?service=clinic&ledger=people", "postgresql:///?service=clinic&ledger=people"),
        ("postgresql://h/d?sslpassword=hunter2", "postgresql://h/d?ledger=default"),
    ],
)
def test_an_address_has_one_spelling_without_a_password(given, told):
    place = place_in_database(given)
    assert str(place) == told
    assert known_place(told) == place


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hunter@2@h/d",
        "postgresql://u:hunt/er2@h/d",
        "postgresql://u:hunter2@h/d?nothing=1",
        "postgresql://u:hunter2@h:x%/d",
        *(
            f"postgresql://u:hunter2@h/d?ledger={name}"
            for name in ("", "A", "a__b", "a b", 'a"b', "a;b", "-", "x" * 60)
        ),
        "postgresql://u:hunter2@h/d?ledger=a&project=b__c",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_and_not_repeated(address):
    with pytest.raises(pf.LedgerError) as refusal:
        pf.Ledger(address, epsilon=1.0)
    assert "hunt" not in str(refusal.value)


def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path):
    with pytest.raises(pf.LedgerError, match=r"cannot be reached.*Nothing was charged") as refusal:
        pf.Ledger(f"postgresql://u:{SECRET}@/d?host={tmp_path}", epsilon=1.0)
    assert SECRET not in str(refusal.value)


def test_a_database_that_is_not_there_is_told():
    with pytest.raises(pf.LedgerError, match="no such database"):
        pf.Ledger(postgresql_server().address.replace("/postgres?", "/nothing?"), epsilon=1.0)


def test_without_the_driver_a_pickle_is_loaded_and_a_use_says_what_to_install(database, monkeypatch):
    stored = pickle.dumps(database.make(epsilon=1.0))
    monkeypatch.setitem(sys.modules, "psycopg", None)
    again = pickle.loads(stored)
    assert again.epsilon == 1.0
    with pytest.raises(pf.LedgerError, match=r"privfit\[postgres\]"):
        again.charge(0.1)
    with pytest.raises(pf.LedgerError, match=r"privfit\[postgres\]"):
        pf.Ledger(database.address)
