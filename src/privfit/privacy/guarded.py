"""Functions of the user's own (fitness, blocks, losses), called so that how a call ends reveals nothing about the rows
that it saw.

Whether a function raised, warned or returned something else than numbers depends on its rows, and no noise hides it. So
every such call goes through `attempted`: a failure of any kind, `SystemExit` and `KeyboardInterrupt` included, is a
value like any other, without type, text or traceback, and nobody is warned. A real Ctrl-C still ends the fit
(`in_own_thread`).

What a function prints, logs, writes to files or keeps from call to call, signals that it sends and the time that it
takes are outside of this: docs/sharp-edges.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.draws import quietly

Floats = NDArray[np.float64]
Places = NDArray[np.intp] | slice
Made = TypeVar("Made")

REAL_KINDS = "biuf"
"""Booleans, integers and floats.

Text, complex numbers and objects are no scores, although numpy would convert some of them.
"""
WAKING = 0.1
"""Seconds after which a waiting thread looks up.

On Windows a Ctrl-C is noticed only then; elsewhere it wakes the thread at once, and the value does not matter.
"""


# -- one call --------------------------------------------------------------------------------------


def attempted(call: Callable[[], Made]) -> Made | None:
    """What a call returns, or None if it failed in any way. Nothing else of the failure is left."""
    return in_own_thread(lambda _: _caught(call))


def tried(call: Callable[[], Made]) -> tuple[Made | None, BaseException | None]:
    """What a call returns, or what it raised: for made-up rows and other public facts alone, which an error may
    show."""

    def task(_: object) -> tuple[Made | None, BaseException | None]:
        try:
            return _quiet(call), None
        except BaseException as error:
            return None, error

    return in_own_thread(task)


def _caught(call: Callable[[], Made]) -> Made | None:
    try:
        return _quiet(call)
    except BaseException:  # in a thread that no signal can reach: the function's own
        return None


def _quiet(call: Callable[[], Made]) -> Made:
    """The call in a context of its own: what a function sets there, such as numpy's error state, ends with it."""
    with quietly():
        return Context().run(_ignoring_numpy, call)


def _ignoring_numpy(call: Callable[[], Made]) -> Made:
    with np.errstate(all="ignore"):
        return call()


def in_own_thread(task: Callable[[Callable[[], bool]], Made]) -> Made:
    """What a task makes in a thread of its own, for which the main thread waits; other threads run it themselves.

    Python raises what a signal means in the main thread only. So a `KeyboardInterrupt` in the thread of a function
    comes from that function, and one in the waiting thread is a real Ctrl-C, which ends the wait. `task` is handed a
    question: whether anybody waits still. A function that runs on after a Ctrl-C does so in the background, and keeps
    no process alive.
    """
    if threading.current_thread() is not threading.main_thread():
        return task(lambda: True)
    made: list[Made] = []
    raised: list[BaseException] = []
    done, left = threading.Event(), threading.Event()

    def run() -> None:
        try:
            made.append(task(lambda: not left.is_set()))
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="privfit: a function of the user's own", daemon=True).start()
        while not done.wait(WAKING):
            pass
    except BaseException:
        left.set()
        raise
    if raised:
        raise raised[0]
    return made[0]


# -- many rows -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """What a function made of some rows: one entry, or one line, per row.

    Entries of rows for which it failed mean nothing.
    """

    values: Floats | None
    """None if it failed for all of them."""
    failed: NDArray[np.bool_]

    def filled(self, default: float, shape: tuple[int, ...]) -> Floats:
        """The values, with a default for every row that failed."""
        if self.values is None:
            return np.full(shape, default)
        self.values[self.failed] = default
        return self.values


def each_row(call: Callable[[Places], Floats], count: int) -> Scored:
    """What a function makes of so many rows, where each is for itself: one that fails takes no other with it.

    `call(places)` hands the rows at these places to the function and returns an array of its own, with an entry or a
    line per place.

    All rows are tried at once. If that fails, halves are tried, until the rows that fail alone are found; then all rows
    are tried again, with a row that did not fail in the place of each that did. So the others are computed in a batch
    of the same shape, in the same places as without the failure, and are the same numbers to the last bit wherever the
    function computes every row in the same way. Rows scored one by one instead would be rounded otherwise (matrix
    products are), all of them because of one.
    """
    return in_own_thread(lambda waited_for: _each_row(call, count, waited_for))


def _each_row(call: Callable[[Places], Floats], count: int, waited_for: Callable[[], bool]) -> Scored:
    failed = np.zeros(count, dtype=np.bool_)
    values = _caught(lambda: call(slice(None)))
    if values is not None or not count:
        return Scored(values, failed)
    failed[_failing(call, count, waited_for)] = True
    if not failed.all():
        stand_in = int(np.argmin(failed))
        values = _caught(lambda: call(np.where(failed, stand_in, np.arange(count))))
    return Scored(values, failed if values is not None else np.ones(count, dtype=np.bool_))


def _failing(call: Callable[[Places], Floats], count: int, waited_for: Callable[[], bool]) -> list[int]:
    """The places of rows that fail alone, out of a batch that fails."""
    found: list[int] = []
    waiting = [np.arange(count)]
    while waiting and waited_for():
        part = waiting.pop()
        if len(part) == 1:
            found.append(int(part[0]))
            continue
        for half in np.array_split(part, 2):
            if _caught(lambda half=half: call(half)) is None:  # type: ignore[misc]
                waiting.append(half)
    return found


def guarded_values(
    function: Callable[[Floats, Floats], object],
    scores: Floats,
    target: Floats,
    *,
    low: float,
    high: float,
    default: float = 0.0,
) -> Floats:
    """What a function of the user's own, such as the slope of a loss, makes of the predictors and targets of rows: an
    array of its own, of the shape of `scores`, with entries from `low` to `high`.

    A row for which the function raises, and an entry that is no finite real number, count with the default. One number
    for all rows will do (a number, not an array of one). The arrays handed out are read only. A function that writes to
    them is called again with copies: copying always would cost as much as the loss itself.
    """

    def call(places: Places) -> Floats:
        whole = isinstance(places, slice)
        part, side = (read_only(values) if whole else values[places] for values in (scores, target))
        found = _real(function(part, side))
        if found.shape not in ((), part.shape):  # one entry would pass for two rows of which one was dropped
            raise ValueError
        return np.broadcast_to(found, part.shape)

    found = each_row(call, len(scores))
    if found.values is None:
        return np.full(scores.shape, default)
    good = np.isfinite(found.values)
    good[found.failed] = False
    return np.clip(found.values if good.all() else np.where(good, found.values, default), low, high)


# -- what goes in and out --------------------------------------------------------------------------


def real_numbers(found: object) -> Floats:
    """What a function returned as an array of floats of our own, NaN and infinities among them; an error for anything
    but real numbers.
    """
    return np.array(_real(found))


def _real(found: object) -> Floats:
    """The same, perhaps an array that the function keeps."""
    given = np.asarray(found)
    if given.dtype.kind not in REAL_KINDS:
        raise ValueError(
            f"A function returned an array of type {given.dtype}; real numbers were expected. Return floats."
        )
    return given.astype(np.float64, copy=False)


def read_only(values: Floats) -> Floats:
    """The same numbers, to be read only."""
    view = values.view()
    view.flags.writeable = False
    return view
