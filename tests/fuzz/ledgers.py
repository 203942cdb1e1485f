"""Files of ledgers: bytes that were flipped, cut or added, and rows, columns and tables that somebody edited."""

from __future__ import annotations

import functools
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import privfit as pf
from tests.fuzz.rules import attempt, attempt_reading
from tests.fuzz.source import Source

EPSILON, PRICE, ENTRIES = 1.0, 0.125, 5
STATEMENTS = (
    "DROP TABLE {table}",
    "DELETE FROM {table}",
    "DELETE FROM {table} WHERE rowid = 2",
    "INSERT INTO {table} SELECT * FROM {table} LIMIT 1",
    "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "ALTER TABLE {table} ADD COLUMN more",
    "ALTER TABLE {table} RENAME TO {table}_once",
    "CREATE VIEW {table}_seen AS SELECT * FROM {table}",
    "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE id = new.id; END",
    "CREATE TRIGGER t AFTER INSERT ON entry BEGIN UPDATE state SET totals = '{{}}'; END",
    "CREATE TRIGGER t AFTER UPDATE ON state BEGIN UPDATE budget SET epsilon = 100; END",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = wal",
    "PRAGMA auto_vacuum = full",
    "VACUUM",
)


def run(content: bytes) -> None:
    """Change a ledger, and spend and check what is left of it."""
    source, path = Source(content), _folder() / "ledger.db"
    for left in _folder().glob("ledger.db*"):
        left.unlink()
    whole = bytearray(original())
    kind = source.whole(0, 3)
    if kind == 0:
        path.write_bytes(_damaged(source, whole))
    else:
        path.write_bytes(whole)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for _ in range(source.whole(1, 3)):
                _edit(source, connection)
    ledger, _ = attempt_reading(lambda: pf.Ledger(path))
    if ledger is not None:
        _use(ledger)


def _use(ledger: pf.Ledger) -> None:
    """What such a ledger says and does: an error of ours, or a charge that is written and counted."""
    for ask in (lambda: ledger.spent, lambda: ledger.remaining, ledger.entries, ledger._repr_html_):
        attempt_reading(ask)
    found, _ = attempt_reading(ledger.verify)
    before, _ = attempt(lambda: ledger.spent)
    receipt, _ = attempt(lambda: ledger.charge(PRICE))
    if receipt is None:
        return
    after, refusal = attempt(lambda: ledger.spent)
    assert refusal is None, f"charged, and then unreadable: {refusal}"
    assert _epsilon(after) >= _epsilon(before) + PRICE * 0.999, (before, after)
    if found is not None:  # it was whole before, so it is whole now, and within its budget
        again, refusal = attempt(lambda: ledger.verify(receipt))
        assert refusal is None, f"charged, and no longer whole: {refusal}"
        assert again.entries == found.entries + 1
        assert _epsilon(after) <= ledger.epsilon


def _epsilon(spent: Any) -> float:
    return float(getattr(spent, "epsilon", spent))


def _damaged(source: Source, whole: bytearray) -> bytes:
    for _ in range(source.whole(1, 4)):
        whole[source.whole(0, len(whole) - 1)] = source.whole(0, 255)
    if source.flag(4):
        del whole[source.whole(0, len(whole)) :]
    if source.flag(6):
        whole += source.take(64) * 70
    return bytes(whole)


def _edit(source: Source, connection: sqlite3.Connection) -> None:
    """One change by hand, as SQL."""
    with suppress(sqlite3.Error, OverflowError):  # the editor's own errors
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = source.pick(tables)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = source.pick(columns)
        if source.flag(3):
            connection.execute(source.pick(STATEMENTS).format(table=table, column=column))
            return
        value: Any = source.take(source.whole(0, 9)) if source.flag(5) else _plain(source)
        place = source.whole(0, ENTRIES)
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ? OR ? = 0', (value, place, place))


def _plain(source: Source) -> Any:
    if source.flag(3):
        return source.pick(("{}", "[]", "null", '{"parts": [{}]}', "[" * 2000, '{"epsilon": "1/0"}', "1/3", "9" * 5000))
    value = source.number() if source.flag() else source.text().encode(errors="ignore").decode()
    return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)


@functools.cache
def _folder() -> Path:
    kept = tempfile.TemporaryDirectory(prefix="privfit-fuzz-", ignore_cleanup_errors=True)
    _kept.append(kept)
    return Path(kept.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def original() -> bytes:
    """A ledger with a few entries, one of them of a fit."""
    path = _folder() / "original.db"
    ledger = pf.Ledger(path, epsilon=EPSILON, delta=1e-6)
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    pf.LinearRegression(PRICE, schema=schema, ledger=ledger).fit([[0.1], [0.2], [0.9]], [0.1, 0.3, 0.8])
    for place in range(1, ENTRIES):
        ledger.charge(PRICE, note=f"release {place}")
    _use(pf.Ledger(path))  # what is imported late is there now
    return path.read_bytes()
