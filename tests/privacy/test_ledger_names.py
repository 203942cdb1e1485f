"""A ledger has one name: a charge under another would be undone by the journal of a process that was killed under the
first.
"""

from __future__ import annotations

import os
import pickle
import shutil

import pytest

import privfit as pf
from privfit.privacy import Event
from privfit.privacy.ledger import file as ledger_file
from tests.support.journals import leave_hot_journal

USES = {
    "charge": lambda ledger: ledger.charge(0.1),
    "check": lambda ledger: ledger.check(Event("test", 0.1)),
    "spent": lambda ledger: ledger.spent,
    "entries": lambda ledger: ledger.entries(),
    "verify": lambda ledger: ledger.verify(),
    "pickle": lambda ledger: pickle.loads(pickle.dumps(ledger)).charge(0.1),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def marks(path):
    """Skips a test where the file system keeps no attributes of files."""
    try:
        path.touch()
        os.setxattr(path, "user.test", b"1")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")
    finally:
        path.unlink()


def test_a_hot_journal_is_undone_under_the_name_it_was_left_under(path):
    """What makes second names dangerous; and that the journals of these tests are real ones."""
    ledger = pf.Ledger(path, epsilon=1.0)
    leave_hot_journal(path)
    hidden = path.rename(path.with_name("hidden.db"))
    pf.Ledger(hidden).charge(0.5)
    os.removexattr(hidden, ledger_file._MARK) if hasattr(os, "removexattr") else None
    hidden.rename(path)
    assert pf.Ledger(path).entries() == []
    assert ledger.spent == 0
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_a_budget_is_not_spent_twice_through_a_second_name(path):
    """A budget of 1.0 took 0.9 twice: once under the second name, unseen by the journal, and again after that journal
    undid it.
    """
    pf.Ledger(path, epsilon=1.0)
    leave_hot_journal(path)
    second = path.with_name("second.db")
    os.link(path, second)
    for name in (second, path):
        with pytest.raises(pf.LedgerError, match=r"2 names.*Keep one name"):
            pf.Ledger(name).charge(0.9)
    second.unlink()
    ledger = pf.Ledger(path)
    ledger.charge(0.9)
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(0.9)


@pytest.mark.parametrize("use", USES)
def test_a_name_that_is_made_while_a_ledger_lives_is_refused_at_every_use_until_it_is_gone(path, use):
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.1)
    second = path.with_name("second.db")
    os.link(path, second)
    before = path.read_bytes()
    with pytest.raises(pf.LedgerError, match="2 names"):
        USES[use](ledger)
    assert path.read_bytes() == before
    second.unlink()
    USES[use](ledger)


def test_a_name_that_is_made_after_the_file_was_opened_is_seen_under_the_lock(path, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1.0)
    connect = ledger_file._connect

    def linked_meanwhile(place):
        connection = connect(place)
        os.link(place, path.with_name("second.db"))
        return connection

    monkeypatch.setattr(ledger_file, "_connect", linked_meanwhile)
    with pytest.raises(pf.LedgerError, match="2 names"):
        ledger.charge(0.1)
    monkeypatch.undo()
    path.with_name("second.db").unlink()
    assert ledger.entries() == []


def test_a_name_that_is_made_after_the_charge_was_written_is_refused_at_the_next_one(path, monkeypatch):
    """Otherwise a charge would be made, and refused in a sentence that says that nothing was charged."""
    ledger = pf.Ledger(path, epsilon=1.0)
    check = ledger_file.FileRecords._check_written

    def linked_meanwhile(*written):
        os.link(path, path.with_name("second.db"))
        check(*written)

    monkeypatch.setattr(ledger_file.FileRecords, "_check_written", linked_meanwhile)
    assert ledger.charge(0.1).entry == 1
    monkeypatch.undo()
    with pytest.raises(pf.LedgerError, match="2 names"):
        ledger.charge(0.1)
    path.with_name("second.db").unlink()
    assert ledger.n_entries == 1


def test_a_name_left_by_a_process_that_was_killed_while_it_made_the_ledger_is_taken_away(path, monkeypatch):
    monkeypatch.setattr(ledger_file.os, "unlink", lambda name: None)  # killed right after the link was made
    monkeypatch.setattr(ledger_file, "_drop_names_of_making", lambda *facts: None)
    with pytest.raises(pf.LedgerError, match="2 names"):
        pf.Ledger(path, epsilon=1.0)
    monkeypatch.undo()
    assert len(list(path.parent.iterdir())) == 2
    pf.Ledger(path).charge(0.1)
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_another_file_that_looks_like_one_left_by_making_stays(path):
    pf.Ledger(path, epsilon=1.0)
    other = path.with_name(".ledger.db-notes")
    other.write_text("mine")
    os.link(path, path.with_name("second.db"))
    with pytest.raises(pf.LedgerError, match="2 names"):
        pf.Ledger(path)
    assert other.read_text() == "mine"


def test_a_symbolic_link_that_is_turned_elsewhere_does_not_move_an_open_ledger(path):
    first, other = pf.Ledger(path, epsilon=1.0), pf.Ledger(path.with_name("other.db"), epsilon=1.0)
    link = path.with_name("link.db")
    link.symlink_to(path)
    through = pf.Ledger(link)
    link.unlink()
    link.symlink_to(other.path)
    through.charge(0.5)
    assert (first.spent, other.spent) == (0.5, 0.0)


def test_a_journal_left_under_a_symbolic_link_is_found_by_the_file_s_own_name(path):
    pf.Ledger(path, epsilon=1.0)
    link = path.parent / "folder" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    assert pf.Ledger(link).path == path.resolve()


def test_a_charge_that_a_journal_undid_is_found_by_the_live_ledger(path):
    """As a bind mount would do it, where no second link can be seen."""
    ledger = pf.Ledger(path, epsilon=1.0)
    leave_hot_journal(path)
    journal = path.with_name("ledger.db-journal").rename(path.with_name("kept"))
    ledger.charge(0.9)
    journal.rename(path.with_name("ledger.db-journal"))
    for use in USES.values():
        with pytest.raises(pf.LedgerError, match="rolled back"):
            use(ledger)


def test_a_charge_that_a_journal_undid_is_found_by_everybody_where_files_have_attributes(path, marks):
    pf.Ledger(path, epsilon=1.0)
    leave_hot_journal(path)
    elsewhere = path.rename(path.with_name("elsewhere.db"))  # seen by a name that does not lead to the journal
    pf.Ledger(elsewhere).charge(0.9)
    elsewhere.rename(path)
    with pytest.raises(pf.LedgerError, match="rolled back"):
        pf.Ledger(path).charge(0.9)


def test_an_older_backup_copied_over_a_ledger_is_found_where_files_have_attributes(path, marks):
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.1)
    backup = shutil.copyfile(path, path.with_name("backup.db"))
    ledger.charge(0.8)
    shutil.copyfile(backup, path)
    with pytest.raises(pf.LedgerError, match="Restore the newest copy"):
        pf.Ledger(path).charge(0.8)
    assert pf.Ledger(backup).spent == 0.1  # a copy by itself can be read


@pytest.mark.parametrize("mark", [b"", b"x", b"a b c", b"\xff\xfe", b"1 2 3 4"], ids=repr)
def test_a_mark_of_others_is_no_concern(path, marks, mark):
    ledger = pf.Ledger(path, epsilon=1.0)
    os.setxattr(path, ledger_file._MARK, mark)
    ledger.charge(0.5)
    assert pf.Ledger(path).spent == 0.5
