"""The terms of a release: how much may be spent, and against which neighbours it protects."""

from __future__ import annotations

from dataclasses import dataclass

from privfit.privacy.adjacency import Adjacency, checked_adjacency
from privfit.privacy.budget import Budget
from privfit.privacy.errors import PrivacyError

MOST_ROWS = 1 << 62
"""Counts of rows above this are mistakes, and overflow floats and 64-bit integers."""


@dataclass(frozen=True)
class PrivacyParameters:
    """Everything public that a promise depends on besides the schema.

    `rows_per_person` is the most rows that one person can have: the promise is made to people. `expected_rows` is a
    public guess of the number of rows, for mechanisms that need one under add-remove, where the true number is private.
    """

    budget: Budget
    adjacency: Adjacency = "replace-one"
    rows_per_person: int = 1
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        _check_count("rows_per_person", self.rows_per_person)
        if self.expected_rows is not None:
            _check_count("expected_rows", self.expected_rows)


def _check_count(name: str, value: object) -> None:
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or int(value) < 1:  # type: ignore[call-overload]
        raise PrivacyError(
            f"{name}={value!r} was given; it is a whole number of at least 1, and public. Write, for example, {name}=1."
        )
    if int(value) > MOST_ROWS:  # type: ignore[call-overload]
        raise PrivacyError(
            f"{name} was given as more than 2^62, and no table has so many rows. Write, for example, {name}=1."
        )
