"""`make faults` makes every fault that it names; its large numbers are its own."""

from __future__ import annotations

import os

import pytest

from tests.faults import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are made with POSIX signals, limits and forks")


def test_every_fault_of_a_file_is_survived(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--kills", "10", "--charges", "30", "--no-server"])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:18].strip() for line in lines] == [
        *("kills of charges", "kills of fits", "races", "full disks"),
        *("read-only files", "lying locks", "clock jumps", "flipped bits"),
    ]
    assert "30 charges of 30" in lines[2]
