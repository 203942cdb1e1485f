"""Public bounds of several numbers, as a user writes them: two arrays, or two numbers and how many there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.privacy import PrivacyError

Floats = NDArray[np.float64]

MOST_BOUND = 1e300
"""Differences of two bounds stay finite below it."""


def checked_bounds(
    low: ArrayLike, high: ArrayLike, size: int | None, counted_by: str, of: str
) -> tuple[Floats, Floats]:
    """The bounds as two arrays.

    `counted_by` names the parameter that says how many there are, `of` what each of them is.
    """
    if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or size < 1):
        raise PrivacyError(
            f"{counted_by}={size!r} was given; it is an integer of at least 1. Or give bounds as arrays."
        )
    if np.ndim(low) and np.ndim(high) and np.shape(low) != np.shape(high):
        raise PrivacyError(
            f"low={low!r} and high={high!r} were given, which do not have the same length: two numbers with "
            f"{counted_by}, or two arrays with one entry per {of}."
        )
    try:
        one, other = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        one, other = (
            np.array(np.broadcast_to(bound, (size,)) if size is not None else np.atleast_1d(bound))
            for bound in (one, other)
        )
    except (TypeError, ValueError):
        raise PrivacyError(
            f"low={low!r} and high={high!r} were given; they are two numbers with {counted_by}, or two arrays with one "
            f"entry per {of}."
        ) from None
    held = one.ndim == 1 and one.size > 0 and (np.abs(one) <= MOST_BOUND).all() and (np.abs(other) <= MOST_BOUND).all()
    if not held or not (one < other).all():
        raise PrivacyError(
            f"low={low!r} and high={high!r} were given; every bound is a number up to {MOST_BOUND:g} in size, and low "
            "is below high. Give public bounds."
        )
    return one, other
