"""What a charge costs does not depend on how many there were before."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import privfit as pf
from privfit.privacy import Event
from privfit.privacy.ledger import chain as ledger_state
from privfit.privacy.ledger import file as ledger_file
from tests.support.ledgers import charge_all


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def different_prices(count):
    """No two alike, of all kinds: pure, with a delta, and Gaussian."""
    for place in range(count):
        epsilon = 0.01 + place * 1.23456789e-7
        if place % 100 == 0:  # few: each takes a search for its best Renyi order
            yield Event("gaussian", epsilon, 1e-12, 1e-7 * (1 + place))
        else:
            yield Event("pure", epsilon, 1e-15 * place if place % 3 == 1 else 0.0)


@pytest.fixture
def steps(monkeypatch):
    """Counts the instructions that SQLite's virtual machine executes: work that does not depend on how busy the machine
    is.
    """
    count = [0]
    connect = ledger_file._connect

    def counting(path):
        connection = connect(path)
        connection.set_progress_handler(lambda: count.__setitem__(0, count[0] + 1), 1)
        return connection

    monkeypatch.setattr(ledger_file, "_connect", counting)
    return count


def test_a_charge_reads_and_writes_the_same_at_the_5_000th_entry_as_at_the_100th(path, steps, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1e6, delta=1e-3)
    uses = {
        "charge": lambda: ledger.charge(0.01),
        "check": lambda: ledger.check(Event("test", 0.01)),
        "spent": lambda: ledger.spent,
        "n_entries": lambda: ledger.n_entries,
        "last": lambda: ledger.entries(last=5),
    }
    measured = {}
    for more in (100, 4_900):
        charge_all(ledger, different_prices(more))
        for name, use in uses.items():
            steps[0] = 0
            use()
            measured.setdefault(name, []).append(steps[0])
    for name, (early, late) in measured.items():
        assert 0 < late <= early + 20, (name, early, late)
    assert ledger.verify().entries == 5_002


def test_a_charge_looks_at_no_event_of_an_earlier_entry(path, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1e6, delta=1e-3)
    charge_all(ledger, different_prices(200))
    monkeypatch.setattr(ledger_state, "read_event", lambda row: pytest.fail("an entry was parsed"))
    ledger.check(Event("test", 0.01))
    ledger.charge(0.01)


MEASURE = r"""
import json, re, sys, time, types
package = types.ModuleType("privfit")
package.__path__ = [sys.argv[2]]
sys.modules["privfit"] = package
from privfit.privacy import Event, Ledger
# ru_maxrss would be the parent's
most = lambda: int(re.search(r"VmHWM:\s+([0-9]+)", open("/proc/self/status").read())[1]) / 1024
before = most()
ledger = Ledger(sys.argv[1])
wall, cpu = [], []
for _ in range(30):
    start, used = time.perf_counter(), time.process_time()
    ledger.charge(Event("test", 0.1))
    wall.append(time.perf_counter() - start)
    cpu.append(time.process_time() - used)
print(json.dumps({"wall": sorted(wall)[15], "cpu": sorted(cpu)[15], "megabytes": most() - before}))
"""


def measured(path) -> dict[str, float]:
    """Charges in a process of their own: seconds for one, by the clock and of computing, and memory for all."""
    command = [sys.executable, "-c", MEASURE, str(path), str(Path(pf.__file__).parent)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_a_charge_to_a_ledger_of_a_million_entries_takes_below_20_ms_and_50_mb(path):
    """Most of the time by the clock is the disk's, at any length; so it is compared with that of a new ledger."""
    ledger = pf.Ledger(path, epsilon=1e9, delta=0.5)
    charge_all(ledger, different_prices(1_000_000))
    late, early = measured(path), measured(pf.Ledger(path.with_name("new.db"), epsilon=1e9).path)
    print(f"a million entries: {late}; a new ledger: {early}")
    assert late["cpu"] < 0.020
    assert late["megabytes"] < 50
    assert late["wall"] < 3 * early["wall"] + 0.020
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM entry").fetchone()[0] == 1_000_030
    connection.close()
    assert ledger.verify().entries == 1_000_030
