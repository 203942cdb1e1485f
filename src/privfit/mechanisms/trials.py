"""A trial of a user's function on rows that nobody has: made up from the schema, before anything is charged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import PrivacyError, seeded_generator
from privfit.rows.dealt import BlockFunction, quietly, run_apart
from privfit.schema import Geometry, Numeric

Floats = NDArray[np.float64]

MOST_TRIED = 10_000
TRIALS, TRIAL_SEED = 5, 20_120_520


def try_out(function: BlockFunction, size: int, geometry: Geometry, n_rows: int, processes: bool = False) -> None:
    """Refuse a function that works on none of a few tables made up from the schema: it would fail in every block, and nobody could be told after the charge."""
    found = np.empty(0)
    failure: Exception | None = None
    for trial in range(TRIALS):
        try:
            with quietly(), np.errstate(all="ignore"):
                rows = made_up_rows(geometry, min(n_rows, MOST_TRIED), trial)
                said = run_apart(function, rows) if processes else function(rows)
                found = np.array(said, dtype=np.float64).ravel()
            failure = None
        except Exception as error:
            failure = error
            continue
        if found.shape == (size,) and not np.isnan(found).any():
            return
    wanted = f"{size} number{'s' * (size != 1)}"
    if failure is not None:
        raise PrivacyError(
            f"The function failed on rows made up from the schema, with {type(failure).__name__}: {failure}. It takes an array with a row a line and the target last, numbers within their bounds, categories as "
            f"places of their levels, and returns {wanted}. Correct it, and try it on rows of your own making. Nothing was charged."
        ) from failure
    what = "NaN" if found.shape == (size,) else f"{found.size} number{'s' * (found.size != 1)}"
    raise PrivacyError(
        f"The function returned {what} for rows made up from the schema; low and high say that it returns {wanted}. Correct one of them. Nothing was charged."
    )


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
