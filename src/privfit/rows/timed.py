"""A function on blocks of rows, each in a process of its own that has a fixed time and is then ended.

Whether a block was in time is decided by that block alone, and every block takes as long as another: one that is done
early is waited for. So neither another block's answer nor the time of the whole depends on how long a row keeps a
function busy, as far as processes of one machine leave each other alone: docs/sharp-edges.md.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
LENGTH = struct.Struct("<Q")
ENDING = 1.0
"""Seconds that are waited for the pipe of a process that was ended; something that it started may hold it open."""
CHILD = """
import os, pickle, struct, sys
answer, given = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
silence = os.open(os.devnull, os.O_RDWR)
os.dup2(silence, 1)
os.dup2(silence, 2)
def message():
    return given.read(struct.unpack("<Q", given.read(8))[0])
sys.path[:] = pickle.loads(message())
function = pickle.loads(message())
import numpy
answer.write(b"r")
answer.flush()
found = numpy.asarray(function(pickle.loads(message())))
if found.dtype.kind in "biuf":
    answer.write(struct.pack("<Q", found.size) + found.astype(numpy.float64).tobytes())
    answer.flush()
"""
"""Read a function, say so, read rows, write what the function makes of them. What it prints goes nowhere."""


class OneBlock:
    """A process that has loaded a function and waits for the rows of one block."""

    def __init__(self, function: bytes) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,  # a Ctrl-C is for the fit, which then ends this too
        )
        assert self._process.stdout is not None
        self._send(pickle.dumps(sys.path), function)
        self._process.stdout.read(1)  # it has loaded the function, or has ended

    def _send(self, *messages: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended: there will be no answer
            for message in messages:
                self._process.stdin.write(LENGTH.pack(len(message)) + message)
            self._process.stdin.flush()

    def answer(self, rows: Floats, size: int, seconds: float) -> Floats | None:
        """So many numbers, if they were there in time; returns after exactly so many seconds, and the end of the
        process.
        """
        deadline = time.monotonic() + seconds
        found: list[tuple[float, bytes]] = []

        def receive() -> None:
            assert self._process.stdout is not None
            told = self._process.stdout.read(LENGTH.size)
            text = self._process.stdout.read(8 * size) if told == LENGTH.pack(size) else b""
            found.append((time.monotonic(), text))

        reader = threading.Thread(target=receive, daemon=True)
        reader.start()
        self._send(pickle.dumps(rows))
        time.sleep(max(0.0, deadline - time.monotonic()))
        in_time = [text for when, text in found if when <= deadline and len(text) == 8 * size]
        self.end()
        reader.join(ENDING)
        return np.frombuffer(in_time[0]).copy() if in_time else None

    def end(self) -> None:
        """End the process, whatever it does. A second call does nothing: its number may be another's by then."""
        if self._process.returncode is not None:
            return
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):  # what was not sent yet has nobody to read it
            self._process.stdin.close()


def loadable(function: Callable[[Floats], Any]) -> bytes:
    """A function as a process of its own can load it, also one that was written at a prompt."""
    return pickle.dumps(joblib.wrap_non_picklable_objects(function, keep_wrapper=False))


def in_time(
    function: Callable[[Floats], Any], rows_of: Callable[[int], Floats], blocks: int, size: int, seconds: float
) -> list[Floats]:
    """What a function makes of every block within so many seconds; NaN in all places for a block that is late, has no
    rows or no such answer.
    """
    loaded = loadable(function)
    return [answered_in_time(loaded, rows_of(block), size, seconds) for block in range(blocks)]


def answered_in_time(function: bytes, rows: Floats, size: int, seconds: float) -> Floats:
    """The answer of one block."""
    nothing, process = np.full(size, np.nan), OneBlock(function)
    try:
        found = process.answer(rows, size, seconds)
    finally:
        process.end()
    return nothing if found is None or not len(rows) or np.isnan(found).any() else found
