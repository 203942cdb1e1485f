"""Arrays in a temporary file: the same arrays, no name on the disk, and nothing left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privfit.tables import ArrayFile, DataError


def test_arrays_come_back_to_the_bit_and_lie_in_memory_as_they_did() -> None:
    generator = np.random.default_rng(0)
    groups = [
        [
            generator.random((7, 3)),
            generator.integers(0, 9, 7, dtype=np.int32),
            np.asfortranarray(generator.random((5, 4))),
        ],
        [generator.random((2, 9))[:, ::2], np.empty((0, 4)), np.array([np.nan, -0.0, np.inf])],
    ]
    file = ArrayFile()
    for group in groups:
        file.append(group)
    file.close_for_writing()
    assert len(file) == 2
    assert file.nbytes == sum(array.nbytes for group in groups for array in group)
    for _ in range(2):
        for number, group in enumerate(groups):
            for found, wanted in zip(file.group(number), group, strict=True):
                np.testing.assert_array_equal(found, wanted)
                assert found.dtype == wanted.dtype
                assert np.signbit(found).tolist() == np.signbit(wanted).tolist()
    assert file.group(0)[2].flags.f_contiguous
    assert not file.group(0)[2].flags.c_contiguous
    assert file.part(0, 1, 2, 3).tolist() == groups[0][1][2:5].tolist()


def test_the_file_has_no_name_and_its_owner_alone_may_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path))
    file = ArrayFile()
    file.append([np.arange(9.0)])
    file.close_for_writing()
    state = os.fstat(file._file.fileno())
    assert state.st_dev == os.stat(tmp_path).st_dev
    assert state.st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []


_KILLED = """
import os, signal, sys
import numpy as np
from privfit.tables import ArrayFile
file = ArrayFile()
file.append([np.arange(1e6)])
file.close_for_writing()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_of_a_process_that_is_killed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED], env={**os.environ, "PRIVFIT_CACHE": str(tmp_path)})
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_became_shorter_is_an_error_that_says_so() -> None:
    file = ArrayFile()
    file.append([np.arange(9.0)])
    file.close_for_writing()
    os.ftruncate(file._file.fileno(), 8)
    with pytest.raises(DataError, match=r"temporary file.*A charge stands"):
        file.group(0)
