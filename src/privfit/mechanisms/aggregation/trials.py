"""A trial of a user's function on rows that nobody has: made up from the schema, before anything is charged.

What it raises there may be shown as it is: no row of the table is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import PrivacyError, seeded_generator
from privfit.privacy.guarded import real_numbers, tried
from privfit.rows.partition import BlockFunction, run_apart
from privfit.rows.timed import answered_in_time, loadable
from privfit.schema import Geometry, Numeric

Floats = NDArray[np.float64]

MOST_TRIED = 10_000
"""The most made-up rows of a trial: it limits the time before the charge."""
TRIALS, TRIAL_SEED = 5, 20_120_520
"""Made-up tables that a function is tried on, from a public seed: a function that fails on all of them is refused."""
SCORED_ROWS = 1_000
"""So many made-up rows a fitness is tried on, and two at the ends of all bounds: enough to meet every level of a usual
category, few enough to take no time.
"""
ROWS_ARE = "a row a line and the target last, numbers within their bounds, categories as places of their levels"


def try_out(
    function: BlockFunction,
    size: int,
    geometry: Geometry,
    n_rows: int,
    processes: bool = False,
    time_limit: float | None = None,
) -> None:
    """Refuse a function that works on none of a few tables made up from the schema: it would fail in every block, and
    nothing could be reported after the charge.
    """
    if time_limit is not None and _is_in_time(function, size, geometry, n_rows, time_limit):
        return
    found = np.empty(0)
    failure: BaseException | None = None
    for trial in range(TRIALS):
        rows = made_up_rows(geometry, min(n_rows, MOST_TRIED), trial)
        said, failure = tried(partial(_answer, function, rows, processes))
        if said is not None:
            found = said
            if found.shape == (size,) and not np.isnan(found).any():
                if time_limit is None:
                    return
                raise PrivacyError(
                    f"time_limit={time_limit:g} was given, and the function took longer for {len(rows)} rows made up "
                    "from the schema, in a process of its own. Give blocks more time, or fewer rows each. Nothing was "
                    "charged."
                )
    wanted = f"{size} number{'s' * (size != 1)}"
    if failure is not None:
        raise PrivacyError(
            f"The function failed on rows made up from the schema, with {_told(failure)}. It takes an array with "
            f"{ROWS_ARE}, and returns {wanted}. "
            "Correct it, and try it on rows of your own making. Nothing was charged."
        ) from failure
    what = "NaN" if found.shape == (size,) else f"{found.size} number{'s' * (found.size != 1)}"
    raise PrivacyError(
        f"The function returned {what} for rows made up from the schema; low and high say that it returns {wanted}. "
        "Correct one of them. Nothing was charged."
    )


def _is_in_time(function: BlockFunction, size: int, geometry: Geometry, n_rows: int, seconds: float) -> bool:
    """Whether the function has an answer in time for any of the made-up tables, in a process of its own."""
    loaded = loadable(function)
    tables = (made_up_rows(geometry, min(n_rows, MOST_TRIED), trial) for trial in range(TRIALS))
    return any(not np.isnan(answered_in_time(loaded, rows, size, seconds)).any() for rows in tables)


def _answer(function: BlockFunction, rows: Floats, processes: bool) -> Floats:
    return real_numbers(run_apart(function, rows) if processes else function(rows)).ravel()


def try_fitness(rehearsed: Callable[[Floats, Floats], Floats], geometry: Geometry, low: Floats, high: Floats) -> Floats:
    """Refuse a fitness that fails on rows made up from the schema, for the middle and the ends of the parameters'
    bounds. Those candidates are returned.
    """
    rows = np.vstack([made_up_rows(geometry, SCORED_ROWS), ends_of_bounds(geometry)])
    candidates = np.stack([low / 2 + high / 2, low, high])
    scores, failure = tried(lambda: rehearsed(rows, candidates))
    if scores is None:
        raise PrivacyError(
            f"The fitness failed on rows made up from the schema, with {_told(failure)}. It takes an array with "
            f"{ROWS_ARE}, and an array with a candidate a line, and returns a number for each of them. "
            "Correct it, and try it on rows of your own making. Nothing was charged."
        ) from failure
    if not np.isfinite(scores).any():
        raise PrivacyError(
            "The fitness returned no finite number for any of the rows made up from the schema; scores are numbers, "
            "and larger ones are better. "
            "Correct it, and try it on rows of your own making. Nothing was charged."
        )
    return candidates


def _told(failure: BaseException | None) -> str:
    words, _ = tried(lambda: str(failure))
    return f"{type(failure).__name__}: {words}"


def made_up_rows(geometry: Geometry, n_rows: int, trial: int = 0) -> Floats:
    """Plain rows with every value in its bounds, all as likely, from a seed that everybody knows."""
    generator = seeded_generator(TRIAL_SEED + trial)
    columns = []
    for block in geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target):
        column = block.column
        if isinstance(column, Numeric) and block.kind == "slope":
            share = generator.uniform(size=n_rows)
            columns.append(np.clip(column.low * (1 - share) + column.high * share, column.low, column.high))
        else:
            columns.append(generator.integers(len(block.labels), size=n_rows).astype(np.float64))
    return np.column_stack(columns)


def ends_of_bounds(geometry: Geometry) -> Floats:
    """Two plain rows: one with every value at its lower bound or first level, one at its upper bound or last level.

    Clipped values lie there.
    """
    ends = []
    for block in geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target):
        column = block.column
        numeric = isinstance(column, Numeric) and block.kind == "slope"
        ends.append((column.low, column.high) if numeric else (0.0, len(block.labels) - 1.0))  # type: ignore[union-attr]
    return np.array(ends).T
