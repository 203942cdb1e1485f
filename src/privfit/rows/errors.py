"""Errors of tables that are read: for the data owner."""

from __future__ import annotations

from privfit.tables import DataError


def no_rows() -> DataError:
    """The error for an empty table."""
    return DataError(
        "The table has no rows (0 sample(s)), and a minimum of 1 is required. Give a table with rows. Nothing was "
        "charged."
    )


def other_rows() -> DataError:
    """The error for a table that grew or shrank between two readings, or that has another number than it said."""
    return DataError(
        "The table has another number of rows than it said, or than when it was read first. "
        "Give a table that nobody writes to. Nothing was charged."
    )


def read_again(told: str) -> DataError:
    """The error for a table that is not what it was, after the charge."""
    return DataError(f"{told} The table was being read again, and is not what it was at first. The charge stands.")


def too_many_rows(most: int) -> DataError:
    """The error for a table whose sums would not be exact."""
    return DataError(
        f"The table has more than {most} rows, and 64-bit sums would overflow. Split the table. Nothing was charged."
    )


def other_division(person: str | None) -> DataError:
    """The error for rows of persons in a part that was divided by content: a person would be in both."""
    return DataError(
        f"Persons were asked for (person={person!r}) in a part of a table that was not divided by them. Give "
        "pf.holdout a schema with the same person column, and another name. Nothing was charged."
    )
