"""Settings for all tests: timing never decides one, and CI draws the same examples every time.

What is set in the environment is also for the workers of pytest-xdist and for processes that tests start.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: tests share cores among themselves, not their products
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each worker and each process of a test compiles all modules anew

import pytest
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER and hasattr(os, "sched_setaffinity"):  # a core for each worker, whose fits then have one thread
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(WORKER.removeprefix("gw")) % len(cores)]})

MEMORY = Path("/dev/shm")
"""Temporary files lie in memory where there is room: a suite makes thousands of ledgers, and each waits for the disk
several times. What tests do to them, kills included, loses nothing that was written there.
"""
ROOM = 2 << 30

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # which pytest has asked for already
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: tests send this signal
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection() -> None:
    """Nothing that is collected is garbage: looking for some among twenty thousand tests takes seconds."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Garbage of a test is looked for among what tests make, and not among all that was collected and imported."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def few_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of regressions from few refits, for tests that save models and look at something else: the hundreds
    of refits that a saved regression needs take up to a hundred times as long as its fit.
    """
    from functools import partial

    from privfit.models import least_squares_intervals

    monkeypatch.setattr(least_squares_intervals, "bootstrap", partial(least_squares_intervals.bootstrap, draws=5))


@pytest.fixture(scope="module")
def in_this_thread() -> Iterator[None]:
    """Functions of the user's own are called in this thread, as in every thread but the main one: a thread for each
    of a hundred thousand calls takes longer than what is tested. How functions end is tested elsewhere, with threads.
    """
    from privfit.privacy import guarded
    from privfit.rows import partition

    with pytest.MonkeyPatch.context() as patched:
        for module in (guarded, partition):
            patched.setattr(module, "in_own_thread", lambda task: task(lambda: True))
        yield


@pytest.fixture(scope="module")
def collecting_costs_little() -> None:
    """What tests before have left is no garbage either: functions of the user's own collect call after call."""
    gc.collect()
    gc.freeze()
