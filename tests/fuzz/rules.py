"""What every target demands: errors of our own, no cell in a message, no code run, bounded time and memory."""

from __future__ import annotations

import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from privfit.cli.errors import OURS

MARKED_TEXT, MARKED_NUMBER = "Zq7cell", 864209753.125
MARKS = (MARKED_TEXT, "864209753")
"""What cells hold, and no message may."""
SECONDS, MEGABYTES = 20.0, 1_500
"""Time of the processor for one input, and growth of the process. Bounded means this here."""
RUNS_CODE = frozenset(
    {"exec", "compile", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pickle.find_class"}
    | {
        "marshal.loads",
        "ctypes.dlopen",
        "socket.connect",
        "urllib.Request",
        "webbrowser.open",
        "sqlite3.load_extension",
    }
)
OWN = frozenset({"privfit", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "opendp", "polars", "pyarrow"})
_found: list[str] | None = None


def attempt(act: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What came of it: a result, or an error of our own. Others pass through, and are finds.

    Messages, with all that their tracebacks would print, and warnings hold no cell.
    """
    result, refusal = None, None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = act()
        except OURS as error:
            refusal = error
    if refusal is not None:
        check_hidden("".join(traceback.format_exception(refusal)))
    for warning in told:
        check_hidden(str(warning.message))
    return result, refusal


def attempt_reading(act: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The same of a file, which is only read: no code is compiled, loaded or run meanwhile."""

    def watched() -> Any:
        with no_code():
            return act()

    return attempt(watched)


def check_hidden(text: str) -> None:
    """No cell in a text that others see."""
    assert not any(mark in text for mark in MARKS), f"a cell in a message: {text}"


@contextmanager
def bounded() -> Iterator[None]:
    """Fail where one input takes long, or much memory."""
    start, before = time.process_time(), _peak()
    yield
    taken, grown = time.process_time() - start, _peak() - before
    assert taken < SECONDS, f"{taken:.1f} seconds for one input"
    assert grown < MEGABYTES, f"{grown:.0f} MB for one input"


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _found is None:
        return
    if event == "import":
        own = str(arguments[0]).partition(".")[0]
        if own not in OWN and own not in sys.stdlib_module_names:
            _found.append(f"import {own}")
    elif event in RUNS_CODE and not _imports():
        _found.append(f"{event} {arguments!r:.200}")


def _imports() -> bool:
    """Whether a module that is installed is being loaded, late."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_watch)


@contextmanager
def no_code() -> Iterator[None]:
    """Fail where code is compiled, loaded or run by what is done meanwhile, but for modules of known packages."""
    global _found
    _found = []
    try:
        yield
        found = list(_found)
    finally:
        _found = None
    assert not found, f"code was run: {found}"
