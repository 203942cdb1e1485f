"""kill -9 at random moments, with hot journals and second names: nothing that was released is lost, and nothing passes
the budget.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kills import Kills, fit

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")


def all_spent(kills: Kills) -> bool:
    """After the kills, which count for themselves what was lost: exactly the budget was spent, by one name."""
    print(kills.run())
    return kills.ledger.verify().entries == kills.capacity and not kills.ledger.remaining and not kills.accepted_names


def test_forty_kills(tmp_path):
    assert all_spent(Kills(str(tmp_path / "ledger.db"), 40, 40))


def test_twenty_kills_of_clients_of_a_database(database):
    assert all_spent(Kills(database.address, 20, 30, longest=0.15))


@pytest.mark.slow
def test_hundreds_of_kills_of_clients_of_a_database_and_of_fits(database, kept):
    assert all_spent(Kills(database.address, 600, 900, longest=0.3))
    assert all_spent(Kills(kept.address, 300, 300, fit, longest=0.3))


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on a disk: in memory, where tests usually write, a commit is too short for kills to hit it."""
    disk = Path("/var/tmp")
    with tempfile.TemporaryDirectory(dir=disk if disk.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_thousands_of_kills(on_disk):
    """A thousand kills at a time, until more than 20 have hit a commit: how many do so is a matter of the disk."""
    hot = 0
    for turn in range(10):
        run = Kills(str(on_disk / f"ledger-{turn}.db"), 1_000, 1_500).run()
        print(run)
        hot += run.hot
        if hot > 20:
            break
    assert hot > 20
