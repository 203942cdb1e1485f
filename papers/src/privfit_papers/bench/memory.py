"""The memory that a process of a bench took."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path


def peak_gigabytes() -> float:
    """The peak of memory of this process so far.

    Linux's own figure where there is one: the other begins with that of the process that started this one.
    """
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024**2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
