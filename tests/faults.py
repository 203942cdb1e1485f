"""`make faults`: kills, races, full disks, read-only files, lying locks, clock jumps and flipped bits.

Every line is a count of faults that were made and were survived: nothing over budget, nothing released uncharged,
always an error of our own. The first that is not ends the run. `python -m tests.faults --help` has the numbers.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest

import privfit as pf
from privfit.privacy.ledger import file as file_module
from privfit.privacy.ledger import file_systems
from privfit.privacy.ledger import ledger as ledger_module
from tests.support.kept_ledgers import KeptInDatabase
from tests.support.kills import PRICE, Child, Kills, fit
from tests.support.processes import in_child
from tests.support.servers import PostgreSQL

RACERS = 8
FLIPS = 40  # bits of every page that are flipped, one at a time
PAGE = 4096


def _charge_all(address: str, writer: int) -> None:
    """Charge until nothing is left, and tell how often it was done, and how often others held the ledger too long."""
    ledger, done, waited = pf.Ledger(address), 0, 0
    while True:
        try:
            ledger.charge(PRICE)
            done += 1
        except pf.BudgetExceeded:
            break
        except pf.LedgerError as error:
            if "is locked" not in str(error):
                raise
            waited += 1
    os.write(writer, f"{done} {waited}".encode())


def race(address: str, charges: int) -> str:
    """Processes that charge until nothing is left."""
    ledger = pf.Ledger(address, epsilon=PRICE * charges)
    readers, children = [], []
    for _ in range(RACERS):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _charge_all(address, writer)
            except BaseException as error:
                os.write(writer, f"failed: {error}".encode())
            finally:
                os._exit(0)
        os.close(writer)
        readers.append(reader)
        children.append(child)
    told = []
    for reader, child in zip(readers, children, strict=True):
        with os.fdopen(reader) as pipe:
            told.append(pipe.read())
        os.waitpid(child, 0)
    assert not any("failed" in words for words in told), told
    released, waited = (sum(int(words.split()[place]) for words in told) for place in (0, 1))
    assert released == ledger.verify().entries == charges, told
    assert ledger.remaining == 0
    return f"{RACERS} processes, {released:,} charges of {charges:,}, then all refused; {waited:,} waits were too long"


def _until_full(ledger: pf.Ledger, size: int) -> list[object]:
    """How many charges are made where no file may be larger than this, and the error that ends them."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(size, 0), max(size, 0)))
    for done in range(500):
        try:
            ledger.charge(1.0, mechanism="x" * 300)
        except pf.LedgerError as error:
            return [done, str(error)]
    return [500, ""]


def full_disk(folder: Path, turns: int) -> str:
    """A disk that is full after so many bytes, at every 997th byte."""
    charged = refused = 0
    for turn in range(turns):
        path = folder / f"full-{turn}.db"
        ledger = pf.Ledger(path, epsilon=1e6)
        ledger.charge(1.0)
        size = path.stat().st_size + 997 * turn

        done, error = in_child(partial(_until_full, ledger, size))
        assert "has room" in error, error
        assert ledger.verify().entries == 1 + done
        charged, refused = charged + done, refused + 1
    return f"{refused:,} disks filled up, {charged:,} charges before, none after and none lost"


def read_only(folder: Path, turns: int) -> str:
    """Files and folders that may not be written."""

    def as_nobody() -> list[str]:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        told = []
        for path in paths:
            try:
                pf.Ledger(path).charge(0.1)
                told.append("charged")
            except pf.LedgerError:
                told.append("refused")
        return told

    folder.chmod(0o755)
    paths = [folder / f"kept-{turn}.db" for turn in range(turns)]
    ledgers = [pf.Ledger(path, epsilon=1.0) for path in paths]
    for path in paths:
        path.chmod(0o444)
    assert in_child(as_nobody) == ["refused"] * turns
    assert all(ledger.entries() == [] for ledger in ledgers)
    return f"{turns:,} read-only files, no charge"


def lying_locks(folder: Path, turns: int) -> str:
    """File systems that grant every lock, and network file systems mounted with locks that stay on one machine."""
    mounts = [(kind, option) for kind, options in file_systems.ONE_MACHINE.items() for option in options]
    mounts += [(kind, "rw") for kind in sorted(file_systems.NEVER_SHARED)]
    paths = [folder / f"lying-{turn}.db" for turn in range(turns)]
    ledgers = [pf.Ledger(path, epsilon=1.0) for path in paths]
    told = {"one lock twice": 0, "locks to one machine": 0}
    for turn, path in enumerate(paths):
        kind, option = mounts[turn % len(mounts)]
        told[in_child(partial(_charge_with_lying_locks, path, folder / "mounts", kind, option, turn % 2 == 0))] += 1
    assert all(ledger.entries() == [] for ledger in ledgers)
    words = ", ".join(f"{count:,} with {what}" for what, count in told.items())
    return f"{turns:,} file systems that lie about locks, no charge: {words}"


def _charge_with_lying_locks(path: Path, mounts: Path, kind: str, option: str, grants_all: bool) -> str:
    """In a process of its own: which of the two refusals comes."""
    file_systems.sound.clear()
    if grants_all:
        file_module._request = lambda descriptor, kind: None
    else:
        mounts.write_text(f"1 0 8:1 / / rw - ext4 x rw\n2 1 0:40 / {path.parent} rw - {kind} server:/ {option}\n")
        file_systems.MOUNTS = mounts
    with pytest.raises(pf.LedgerError) as refusal:
        pf.Ledger(path).charge(0.1)
    return next(words for words in ("one lock twice", "locks to one machine") if words in str(refusal.value))


def clock_jumps(folder: Path, charges: int) -> str:
    """A clock that shows any time between 1970 and 9999."""
    rng = random.Random(31)

    class Jumping(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(rng.uniform(0, 2.5e11), UTC).astimezone(tz)

    ledger = pf.Ledger(folder / "clock.db", epsilon=PRICE * charges)
    with mock.patch.object(ledger_module, "datetime", Jumping):
        for _ in range(charges):
            ledger.charge(PRICE)
        with pytest.raises(pf.BudgetExceeded):
            ledger.charge(PRICE)
    entries = ledger.entries()
    assert [entry.id for entry in entries] == list(range(1, charges + 1))
    back = sum(late.time < early.time for early, late in pairwise(entries))
    assert ledger.verify().entries == charges
    return f"{charges:,} charges by a clock that went back {back:,} times, in order and within budget"


def flipped_bits(folder: Path, flips: int) -> str:
    """Bits of every page, one at a time: an error, or the whole truth."""
    path, rng, refused, tried = folder / "bits.db", random.Random(37), 0, 0
    ledger = pf.Ledger(path, epsilon=1e6)
    for _ in range(150):
        ledger.charge(0.1, mechanism="a mechanism with a name of some length")
    whole, truth = path.read_bytes(), (tuple(ledger.spent), 150)
    for page in range(0, len(whole), PAGE):
        for _ in range(flips):
            content, place = bytearray(whole), page + rng.randrange(PAGE)
            content[place] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
            tried += 1
            try:
                again = pf.Ledger(path)
                assert (tuple(again.spent), again.verify().entries) == truth
            except pf.LedgerError:
                refused += 1
    pages = len(whole) // PAGE
    return f"{tried:,} bits flipped in {pages} pages: {refused:,} refused, {tried - refused:,} changed nothing"


def killed_servers(turns: int) -> str:
    """A server that is killed while processes charge a ledger on it, and started again."""
    server, released = PostgreSQL(), 0
    address = f"{server.address}&ledger=faults"
    ledger = pf.Ledger(address, epsilon=1e6)
    for turn in range(turns):
        children = [Child(address) for _ in range(3)]
        time.sleep(random.Random(turn).uniform(0.1, 0.6))
        server.kill()
        server.start()
        released += sum(child.killed() for child in children)
        written = ledger.verify().entries
        assert released <= written <= released + 2 * len(children), (released, written)
        released = written
    server.kill()
    return f"{turns:,} kills of the server, {released:,} charges, none lost"


def all_faults(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The faults by name, and how each is made."""
    kills, charges, small = options.kills, options.charges, max(options.kills // 100, 2)
    fits = max(kills // 5, 2)
    yield "kills of charges", lambda: Kills(str(folder / "kills.db"), kills - fits, kills).run()
    yield "kills of fits", lambda: Kills(str(folder / "fits.db"), fits, fits, fit, longest=0.2).run()
    yield "races", lambda: race(str(folder / "race.db"), charges)
    yield "full disks", lambda: full_disk(folder, small)
    yield "read-only files", lambda: read_only(folder, small)
    yield "lying locks", lambda: lying_locks(folder, small)
    yield "clock jumps", lambda: clock_jumps(folder, 10 * small)
    yield "flipped bits", lambda: flipped_bits(folder, FLIPS if kills >= 1_000 else 2)
    if options.server:
        yield "kills, PostgreSQL", lambda: Kills(KeptInDatabase().address, fits, fits, longest=0.3).run()
        yield "races, PostgreSQL", lambda: race(KeptInDatabase().address, max(charges // 100, RACERS))
        yield "killed servers", lambda: killed_servers(max(small // 5, 1))


def main(arguments: list[str] | None = None) -> None:
    """Make all faults and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000, help="processes that are killed")
    parser.add_argument("--charges", type=int, default=1_000_000, help="charges that processes race for")
    parser.add_argument("--folder", type=Path, help="where ledgers are made; on a disk, kills hit more commits")
    parser.add_argument("--no-server", dest="server", action="store_false", help="leave PostgreSQL out")
    parser.add_argument("--only", help="names that contain this text")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="privfit-faults-", dir=options.folder) as folder:
        for name, make in all_faults(options, Path(folder)):
            if options.only and options.only not in name:
                continue
            start = time.monotonic()
            try:
                told = make()
            except pytest.skip.Exception as reason:
                told = f"left out: {reason}"
            print(f"{name:18} {told} ({time.monotonic() - start:,.0f} s)", flush=True)


if __name__ == "__main__":
    main()
