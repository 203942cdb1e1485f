"""What a ledger's chain shows: edits, removals, another order, another budget, older copies and other ledgers."""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

import privfit as pf
from privfit.privacy import Budget, Event, Receipt
from privfit.privacy.ledger import chain as ledger_state
from privfit.privacy.ledger.entries import COLUMNS
from privfit.privacy.parts import Laplace, RandomBits, Repeat
from tests.support.kept_ledgers import KeptInFile
from tests.support.ledgers import charge_all

FIXTURE = Path(__file__).parents[1] / "fixtures" / "ledger-version-1.sqlite"
LONG = ledger_state.NEWEST + 40


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def gaussian(epsilon=0.01) -> Event:
    return Event.gaussian("gaussian", Budget(epsilon, 1e-9), sensitivity=3, adjacency="replace-one")


def filled(kept, entries=LONG) -> pf.Ledger:
    ledger = pf.Ledger(kept.address, epsilon=1000.0, delta=1e-3)
    charge_all(ledger, (gaussian(0.01 + place / 1000) for place in range(entries)))
    return ledger


EDITS = {
    "rho": ["UPDATE entry SET event = replace(event, '\"rho\": ', '\"rho\": 0.0') WHERE id = {id}"],
    "epsilon and its event": [
        "UPDATE entry SET event = replace(event, '\"epsilon\": ' || epsilon, '\"epsilon\": 0.001'), epsilon = 0.001 "
        "WHERE id = {id}"
    ],
    "time": ["UPDATE entry SET time = '2001-01-01' WHERE id = {id}"],
    "dataset": ["UPDATE entry SET dataset = 'another' WHERE id = {id}"],
    "note": ["UPDATE entry SET note = 'another' WHERE id = {id}"],
    "stated": ["UPDATE entry SET stated = '0' WHERE id = {id}"],
    "nonce": ["UPDATE entry SET nonce = lower(hex(randomblob(16))) WHERE id = {id}"],
    "hash": ["UPDATE entry SET hash = lower(hex(randomblob(32))) WHERE id = {id}"],
    "removed": ["DELETE FROM entry WHERE id = {id}"],
    "removed and closed up": [
        "DELETE FROM entry WHERE id = {id}",
        "UPDATE entry SET id = id - 1 WHERE id > {id}",
        "UPDATE sqlite_sequence SET seq = seq - 1",
        "UPDATE state SET entries = entries - 1",
    ],
    "reordered": [
        "UPDATE entry SET id = -1 WHERE id = {id}",
        "UPDATE entry SET id = {id} WHERE id = {id} + 1",
        "UPDATE entry SET id = {id} + 1 WHERE id = -1",
    ],
    "budget": ["UPDATE budget SET epsilon = 2000.0"],
    "delta of the budget": ["UPDATE budget SET delta = 0.01"],
    "identity": ["UPDATE budget SET identity = 'another'"],
    "date of the budget": ["UPDATE budget SET created = '2001-01-01'"],
    "carried": ["UPDATE budget SET carried = 5"],
    "number of entries": ["UPDATE state SET entries = entries - 1"],
    "head": ["UPDATE state SET head = 'x'"],
    "totals": ["UPDATE state SET totals = replace(totals, '\"mixed\": false', '\"mixed\": true')"],
    "one more": [f"INSERT INTO entry SELECT NULL, {', '.join(COLUMNS[1:])}, hash FROM entry WHERE id = {{id}}"],
}
NEWEST_ENTRY = "WHERE id = (SELECT max(id) FROM entry)"
EDITS_IN_DATABASE = (
    EDITS
    | {  # random values, and sums that stand in the newest entry
        "nonce": ["UPDATE entry SET nonce = md5(random()::text) WHERE id = {id}"],
        "hash": ["UPDATE entry SET hash = md5(random()::text) || md5(random()::text) WHERE id = {id}"],
        "removed and closed up": EDITS["removed and closed up"][:2],
        "reordered": [statement.replace("-1", "999999") for statement in EDITS["reordered"]],
        "number of entries": [f"UPDATE entry SET id = id + 1 {NEWEST_ENTRY}"],
        "head": [f"UPDATE entry SET hash = 'x' {NEWEST_ENTRY}"],
        "totals": [EDITS["totals"][0].replace("state", "entry") + f" {NEWEST_ENTRY}"],
        "one more": [
            f"INSERT INTO entry ({', '.join(COLUMNS)}, hash, totals, seal) SELECT (SELECT max(id) FROM entry) + 1, "
            f"{', '.join(COLUMNS[1:])}, hash, totals, seal FROM entry WHERE id = {{id}}"
        ],
    }
)


def edit(kept, kind, place):
    edits = EDITS if isinstance(kept, KeptInFile) else EDITS_IN_DATABASE
    kept.sql(*(statement.format(id=place) for statement in edits[kind]))


@pytest.mark.parametrize("kind", EDITS)
def test_every_edit_is_found_by_verify(kept, kind):
    filled(kept)
    for place in (5, 1, LONG - 2) if isinstance(kept, KeptInFile) else (5,):  # what finds it is the same code
        copy = kept.copy()
        assert place != 5 or pf.Ledger(copy.address).verify().entries == LONG
        edit(copy, kind, place)
        with pytest.raises(pf.LedgerError):
            pf.Ledger(copy.address).verify()


@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_among_the_newest_entries_is_found_by_every_use(kept, kind):
    filled(kept, 20)
    copy = kept.copy()
    edit(copy, kind, 7)
    for use in (lambda ledger: ledger.spent, lambda ledger: ledger.charge(0.1), lambda ledger: ledger.entries()):
        with pytest.raises(pf.LedgerError):
            use(pf.Ledger(copy.address))


def test_sums_that_were_changed_and_sealed_again_are_found_by_verify(kept):
    ledger = filled(kept)
    with ledger._placed.opened() as (_, state):
        less = ledger_state.replace(state, history=ledger_state.replace(state.history, rho=state.history.rho / 2))
    *_, totals, seal = less.to_row()
    table = "state" if isinstance(kept, KeptInFile) else "entry"
    kept.sql(f"UPDATE {table} SET totals = '{totals}', seal = '{seal}'")
    with pytest.raises(pf.LedgerError, match="sums are not those of its entries"):
        ledger.verify()


def test_a_stated_epsilon_below_what_the_price_implies_is_found_though_the_chain_was_written_anew(kept, monkeypatch):
    ledger = pf.Ledger(kept.address, epsilon=10.0, delta=1e-3)
    monkeypatch.setattr(ledger_state, "stated_epsilon", lambda cost: cost.epsilon / 2)
    ledger.charge(gaussian())
    monkeypatch.undo()
    with pytest.raises(pf.LedgerError, match="entry 1 contradicts itself"):
        ledger.verify()


def test_verify_names_the_first_entry_that_does_not_fit(kept):
    filled(kept)
    kept.sql("UPDATE entry SET note = 'x' WHERE id = 9", "UPDATE entry SET note = 'x' WHERE id = 17")
    with pytest.raises(pf.LedgerError, match="entry 9 was changed"):
        pf.Ledger(kept.address).verify()


def test_a_ledger_can_be_charged_while_it_is_verified(kept, monkeypatch):
    ledger = filled(kept)
    monkeypatch.setattr("privfit.privacy.ledger.check.PAGE", 10)
    read = ledger_state.read_rows

    def charging(*args):
        pf.Ledger(kept.address).charge(0.001)
        return read(*args)

    monkeypatch.setattr(
        "privfit.privacy.ledger.check.read_rows",
        lambda *args: (args[0].connection.execute("ROLLBACK"), charging(*args))[1],
    )
    assert ledger.verify().entries == LONG
    monkeypatch.undo()
    assert ledger.verify().entries > LONG


# -- rolled back -----------------------------------------------------------------------------------


def keep_no_marks(monkeypatch):
    monkeypatch.setattr("os.setxattr", lambda *facts: None)


@pytest.mark.parametrize(
    "again", [lambda ledger: ledger, lambda ledger: pickle.loads(pickle.dumps(ledger))], ids=["live", "pickled"]
)
@pytest.mark.parametrize("grown", [False, True])
def test_a_file_rolled_back_under_a_ledger_is_found(kept, monkeypatch, again, grown):
    keep_no_marks(monkeypatch)
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    ledger.charge(0.1)
    old = kept.content()
    ledger.charge(0.5)
    reference = again(ledger)
    kept.restore(old)
    if grown:  # another history, as long as the one that was seen, or longer
        for _ in range(2):
            pf.Ledger(kept.address).charge(0.1)
    for use in (lambda: reference.charge(0.1), lambda: reference.spent, lambda: reference.verify()):
        with pytest.raises(pf.LedgerError, match="rolled back or rewritten"):
            use()


def test_a_reading_ledger_remembers_what_others_charged(kept, monkeypatch):
    keep_no_marks(monkeypatch)
    reader, other = pf.Ledger(kept.address, epsilon=1.0), pf.Ledger(kept.address)
    old = kept.content()
    other.charge(0.5)
    assert reader.remaining == 0.5
    kept.restore(old)
    with pytest.raises(pf.LedgerError, match="rolled back"):
        reader.charge(0.9)


def frozen_clock(monkeypatch):
    """All charges in the same second."""

    class Frozen(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2030, 1, 1, tzinfo=tz)

    monkeypatch.setattr("privfit.privacy.ledger.ledger.datetime", Frozen)


def test_a_file_rolled_back_and_charged_again_alike_in_the_same_second_is_found(kept, monkeypatch):
    keep_no_marks(monkeypatch)
    frozen_clock(monkeypatch)
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    old = kept.content()
    ledger.charge(0.5)
    kept.restore(old)
    pf.Ledger(kept.address).charge(0.5)
    with pytest.raises(pf.LedgerError, match="rolled back or rewritten"):
        ledger.charge(0.5)


# -- receipts --------------------------------------------------------------------------------------


def test_a_receipt_fits_the_ledger_that_wrote_it_for_ever(kept):
    ledger = pf.Ledger(kept.address, epsilon=10.0)
    receipts = [ledger.charge(0.1) for _ in range(5)]
    assert [receipt.entry for receipt in receipts] == [1, 2, 3, 4, 5]
    assert [entry.hash for entry in ledger.entries()] == [receipt.head for receipt in receipts]
    for receipt in receipts:
        ledger.verify(receipt)
        ledger.verify(json.loads(json.dumps(receipt.to_dict())))


def test_a_receipt_tells_an_older_copy_another_ledger_and_another_history(kept):
    ledger = pf.Ledger(kept.address, epsilon=10.0)
    ledger.charge(0.1)
    copy = kept.copy()
    receipt = ledger.charge(0.2)
    with pytest.raises(pf.LedgerError, match="it is an older copy"):
        pf.Ledger(copy.address).verify(receipt)
    pf.Ledger(copy.address).charge(0.2, note="another way")
    with pytest.raises(pf.LedgerError, match="went another way"):
        pf.Ledger(copy.address).verify(receipt)
    with pytest.raises(pf.LedgerError, match="another ledger"):
        pf.Ledger(epsilon=1.0).verify(receipt)


def test_a_copy_that_is_charged_alike_in_the_same_second_gives_another_receipt(kept, monkeypatch):
    frozen_clock(monkeypatch)
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    copy = pf.Ledger(kept.copy().address)
    receipt, other = ledger.charge(0.9), copy.charge(0.9)
    assert (receipt.ledger, receipt.entry) == (other.ledger, other.entry)
    assert receipt.head != other.head
    for book, wrong in ((ledger, other), (copy, receipt)):
        with pytest.raises(pf.LedgerError, match="went another way"):
            book.verify(wrong)


def test_equal_entries_have_nonces_of_their_own_also_those_that_an_upgrade_carries_over(path, monkeypatch):
    frozen_clock(monkeypatch)
    shutil.copyfile(FIXTURE, path)
    ledger = pf.Ledger(path)
    for _ in range(5):
        ledger.charge(0.001)
    connection = sqlite3.connect(path)
    nonces = [nonce for (nonce,) in connection.execute("SELECT nonce FROM entry")]
    connection.close()
    assert len(set(nonces)) == len(nonces) == ledger.n_entries > 20
    assert all(re.fullmatch("[0-9a-f]{32}", nonce) for nonce in nonces)


@pytest.mark.parametrize(
    "plain",
    [
        *({}, None, [], {"ledger": "a", "entry": 1}),
        *({"ledger": "a", "entry": entry, "head": "b"} for entry in ("1", True, 0, -1, 2**63, 10**5_000)),
    ],
    ids=range(10),
)
def test_a_receipt_that_is_none_is_refused(plain):
    with pytest.raises(pf.LedgerError, match="no charge has written"):
        Receipt.from_dict(plain)
    with pytest.raises(pf.LedgerError, match="no charge has written"):
        pf.Ledger(epsilon=1.0).check_receipt(Receipt(**plain) if isinstance(plain, dict) and len(plain) == 3 else plain)


def test_receipts_of_threads_are_their_own(kept):
    ledger = pf.Ledger(kept.address, epsilon=10.0)

    def charge(place):
        view = ledger.describing(model=f"model {place}", target="")
        view.charge(0.01)
        return view.last_receipt

    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(charge, range(40)))
    by_entry = {entry.id: entry for entry in ledger.entries()}
    for place, receipt in enumerate(receipts):
        assert by_entry[receipt.entry].model == f"model {place}"
        assert by_entry[receipt.entry].hash == receipt.head
    assert ledger.last_receipt is None


# -- what entries say ------------------------------------------------------------------------------


def test_entries_say_who_and_what_for(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0, owner="clinic statistics")
    study = ledger.with_note("readmission study")
    ledger.charge(0.1, dataset="visits")
    study.charge(0.1)
    study.charge(0.1, note="its appendix")
    pickle.loads(pickle.dumps(study)).charge(0.1)
    assert [entry.note for entry in ledger.entries()] == ["", "readmission study", "its appendix", "readmission study"]
    assert {entry.owner for entry in ledger.entries()} == {"clinic statistics"}
    assert {entry.version for entry in ledger.entries()} == {pf.__version__}
    assert study.remaining == ledger.remaining == 0.6
    assert pf.Ledger(kept.address).verify().entries == 4


def test_the_newest_entries_can_be_read_alone_and_one_by_one(kept):
    ledger = filled(kept, 2_500)
    everything = ledger.entries()
    assert [entry.id for entry in everything] == list(range(1, 2_501))
    assert ledger.entries(last=3) == everything[-3:]
    assert ledger.entries(last=0) == []
    assert ledger.entries(last=9_999) == everything
    assert next(ledger.iter_entries()) == everything[0]
    for wrong in (-1, 1.5, "3", True):
        with pytest.raises(pf.LedgerError, match="last="):
            ledger.entries(last=wrong)


WRONG_TEXTS = {"a NUL": "a\0b", "too long": "x" * 2_001, "no Unicode": "\ud800", "no text": 7}


@pytest.mark.parametrize("kind", WRONG_TEXTS)
@pytest.mark.parametrize("name", ["mechanism", "dataset", "note"])
def test_a_text_that_no_entry_can_hold_is_refused_and_nothing_is_charged(kept, name, kind):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    with pytest.raises(pf.LedgerError, match="Nothing was charged"):
        ledger.charge(0.1, **{name: WRONG_TEXTS[kind]})
    with pytest.raises(pf.LedgerError):
        pf.Ledger(kept.address, owner=WRONG_TEXTS[kind])
    with pytest.raises(pf.LedgerError):
        ledger.with_note(WRONG_TEXTS[kind])
    assert ledger.entries() == []


@pytest.mark.parametrize("use", ["check", "charge"])
@pytest.mark.parametrize(
    "part",
    [
        RandomBits(purpose="\ud800"),
        Repeat(parts=(RandomBits(purpose="\ud800"),), times=2),
        Repeat(parts=(RandomBits(),), times=2, purpose="\ud800"),
    ],
)
def test_a_purpose_that_cannot_be_printed_is_refused_before_the_charge(kept, use, part):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    with pytest.raises(pf.LedgerError, match=r"a purpose that is no valid Unicode.*Nothing was charged"):
        getattr(ledger, use)(Event("m", 0.01, parts=(Laplace(size=1), part)))
    assert ledger.entries() == []
    many = Event("m", 0.01, parts=[Laplace(size=place + 1, purpose="p" * 1000) for place in range(900)])
    ledger.charge(many)
    assert ledger.entries()[0].event == many


def test_a_mark_or_a_pickle_with_a_number_that_no_entry_has_is_a_ledger_that_was_rolled_back(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0)
    ledger._placed.seen.entry, ledger._placed.seen.head = 10**30, "x"
    with pytest.raises(pf.LedgerError, match="rolled back"):
        ledger.charge(0.1)


@pytest.mark.parametrize(
    "name", ["a\0b.db", "x" * 300, "x" * 10_000, "~nobody-of-this-name/l.db", "\ud800.db", os.sep.join(["d"] * 3_000)]
)
def test_a_path_that_no_file_can_have_is_refused_with_our_own_error(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pf.LedgerError):
        pf.Ledger(name, epsilon=1.0)
    assert list(tmp_path.iterdir()) == []


# -- damaged bytes ---------------------------------------------------------------------------------


def test_bytes_overwritten_anywhere_raise_our_own_error_or_change_nothing_that_is_told(path):
    """A scribble at a random place, read by a ledger that has seen the file before and by one that has not."""
    ledger = filled(KeptInFile(path.parent), 30)
    spent, entries = tuple(ledger.spent), ledger.entries()
    whole, rng, refused = path.read_bytes(), random.Random(5), 0
    for _ in range(150):
        content = bytearray(whole)
        place, length = rng.randrange(len(whole)), rng.choice([1, 2, 8, 64, 600])
        content[place : place + length] = rng.randbytes(len(content[place : place + length]))
        path.write_bytes(content)
        try:
            again = pf.Ledger(path)
            told = tuple(again.spent), again.entries(), again.verify().entries
        except pf.LedgerError:
            refused += 1
        else:
            assert told == (spent, entries, 30)
    assert refused > 50
