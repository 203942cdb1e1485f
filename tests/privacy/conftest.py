"""Every test that takes `kept` runs on a ledger in a file and on one in PostgreSQL."""

from __future__ import annotations

import pytest

from tests.support.kept_ledgers import Kept, KeptInDatabase, KeptInFile


@pytest.fixture(params=["file", "postgresql"])
def kept(request, tmp_path) -> Kept:
    """A place where a ledger can be made."""
    return KeptInFile(tmp_path) if request.param == "file" else KeptInDatabase()


@pytest.fixture
def new(kept):
    """Makes ledgers, each in a place of its own."""
    return lambda **budget: kept.other().make(**budget)


@pytest.fixture
def database() -> KeptInDatabase:
    """A place on the PostgreSQL server."""
    return KeptInDatabase()
