"""How much of the machine a fit may use: threads, and memory. Both are public, and change no bit of a fit."""

from __future__ import annotations

import os
import re
from numbers import Integral, Real

from privfit.privacy import PrivacyError

USUAL_MEMORY = 1_000_000_000
"""Bytes of memory of a fit where nothing is said: more is faster for iterative fits of tens of millions of rows, whose
rows are otherwise read from a temporary file in every pass."""
WORKING_MEMORY = 600_000_000
"""Bytes of that for libraries and for the batches in work, whatever the number of rows: `privfit bench engines`."""
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def memory_bytes(max_memory: object) -> int | None:
    """A limit of memory in bytes: of a number of bytes, or of a text such as "500MB"; None for the usual one."""
    if max_memory is None:
        return None
    found = None
    if isinstance(max_memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", max_memory)
        unit = UNITS.get(match[2].upper()) if match else None
        found = float(match[1]) * unit if match and unit else None
    elif isinstance(max_memory, Real) and not isinstance(max_memory, bool):
        found = float(max_memory)
    if found is None or not 1 <= found < 1 << 62:
        raise PrivacyError(
            f"max_memory={max_memory!r} was given; it is a number of bytes, a text such as '500MB' or '8GB', or None. "
            "Use None if in doubt."
        )
    return int(found)


def kept_bytes(max_memory: int | None) -> int:
    """Bytes of encoded rows that are kept in memory: what is left of the limit beside libraries and batches."""
    return max(0, (USUAL_MEMORY if max_memory is None else max_memory) - WORKING_MEMORY)


def thread_count(n_jobs: object) -> int:
    """How many threads `n_jobs` stands for: None and -1 for all cores of the process, -2 for all but one."""
    cores = available_cores()
    if n_jobs is None:
        return cores
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise PrivacyError(
            f"n_jobs={n_jobs!r} was given; it is a number of threads, -1 for all cores, or None. Use None if in doubt."
        )
    jobs = int(n_jobs)
    return jobs if jobs > 0 else max(1, cores + 1 + jobs)


def available_cores() -> int:
    """The cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 1 << 32


HALF_OF_MEMORY = _half_of_memory()
"""Bytes of the machine's memory that rows may take which a function must see all at once: the rest is for the caller's
table.
"""
