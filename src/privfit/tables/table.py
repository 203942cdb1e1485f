"""What every engine offers: batches of plain columns. One small file per engine does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Category, Column

Values = NDArray[np.float64] | NDArray[np.int32]
Batch = list[Values]

UNKNOWN = -1
ABSENT = -2
NOT_CHARGED = " Nothing was charged."


class DataError(ValueError):
    """The table does not fit the schema.

    For the data owner: it names columns, never the value of a cell. Nothing was charged.

    Parameters
    ----------
    message : str
        What was given, what is needed, and what to do.
    when_predicting : str or None, default=None
        The message where the schema is part of a fitted model and cannot be changed.
    for_toml : str or None, default=None
        The message where the schema is a TOML file, as on the command line.

    See Also
    --------
    SchemaError : A public fact is missing or contradicts another one.
    """

    def __init__(self, message: str, *, when_predicting: str | None = None, for_toml: str | None = None) -> None:
        super().__init__(message)
        self.for_toml = for_toml or message
        self.when_predicting = when_predicting or message.replace(NOT_CHARGED, "")


class MissingValues(DataError):
    """A column has missing values that the schema has no public value for."""

    def __init__(
        self, message: str, *, column: str = "", when_predicting: str | None = None, for_toml: str | None = None
    ) -> None:
        super().__init__(message, when_predicting=when_predicting, for_toml=for_toml)
        self.column = column


class Table(Protocol):
    """A table that can hand out its columns, batch by batch.

    A numeric column comes as float64 with NaN where a value is missing; a category comes as int32 positions in its
    levels, with UNKNOWN for a level that is not listed and ABSENT where a value is missing.
    """

    label: str
    """What the ledger calls this table: the kind of object or the name of a file, nothing of its content."""

    names: tuple[str, ...] | None
    """The columns' names, or None when columns are known by position only."""

    n_rows: int | None
    """The number of rows, or None when only reading it will tell."""

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of about `rows` rows of the columns at these positions."""
        ...


def wrong_type(name: str, found: str, wanted: str) -> DataError:
    """The error for a column that holds another kind of value than the schema says."""
    fact = f"Column {name!r} holds {found}, and the schema says it holds {wanted}."
    return DataError(
        f"{fact} Convert the column, or correct the schema. Nothing was charged.",
        when_predicting=f"{fact} The schema is part of the model: convert the column.",
    )


def wanted(column: Column) -> str:
    """In words, what the schema says a column holds."""
    if isinstance(column, Category):
        return "levels that are texts" if column.is_text else "levels that are numbers"
    return "numbers"


def only_absent(absent: NDArray[np.bool_], found: str, column: Category) -> NDArray[np.int32]:
    """Codes of a column that holds values of the wrong kind: none of them may be there."""
    if not absent.all():
        raise wrong_type(column.name, found, wanted(column))
    return np.full(len(absent), ABSENT, dtype=np.int32)


def codes_of_numbers(values: NDArray[np.float64], column: Category) -> NDArray[np.int32]:
    """Positions of numeric values among a category's numeric levels."""
    numbers = np.array([float(level) if not isinstance(level, str) else np.nan for level in column.levels])
    order = np.argsort(numbers)
    order = order[~np.isnan(numbers[order])]  # numeric levels come with at least one number; the rest is "other"
    place = np.minimum(np.searchsorted(numbers[order], values), len(order) - 1)
    codes = np.where(numbers[order][place] == values, order[place], UNKNOWN)
    return np.where(np.isnan(values), ABSENT, codes).astype(np.int32)
