"""Errors of tables: for the data owner, before any charge. They name columns and never quote a cell."""

from __future__ import annotations

from privfit.schema import Category, Column

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


def unreadable(label: str, kind: str) -> DataError:
    """The error for a table that an engine could not read to its end; `kind` is the type of the engine's own error."""
    return DataError(
        f"The table {label!r} cannot be read as the schema says ({kind}). "
        "Check that it is whole and that its columns hold the kinds of values the schema lists. Nothing was charged."
    )


def wrong_type(column: Column, found: str) -> DataError:
    """The error for a column that holds another kind of value than the schema says."""
    wanted = "numbers"
    if isinstance(column, Category):
        wanted = "levels that are texts" if column.is_text else "levels that are numbers"
    fact = f"Column {column.name!r} holds {found}, and the schema says it holds {wanted}."
    return DataError(
        f"{fact} Convert the column, or correct the schema. Nothing was charged.",
        when_predicting=f"{fact} The schema is part of the model: convert the column.",
    )


def length_of_time(name: str) -> DataError:
    """The error for a column of lengths of time in months, days and seconds, which have no length in one unit."""
    fact = f"Column {name!r} holds lengths of time (INTERVAL), which are read neither as numbers nor as levels."
    advice = f"Convert the column, in DuckDB to seconds by epoch({name}), or leave it out."
    return DataError(f"{fact} {advice} Nothing was charged.", when_predicting=f"{fact} {advice}")


def changed_source(label: str) -> DataError:
    """The error for a source that is not what it was when it was opened, or hands out other rows than it said."""
    return DataError(
        f"The {label} changed after it was opened, or handed out another number of rows than it said it has. "
        "Give a source that nobody writes to. Nothing was charged."
    )


def changed_file(label: str) -> DataError:
    """The error for a file that is not what it was when it was opened."""
    return DataError(
        f"The file {label!r} was cut, replaced or written to after it was opened, so that its rows are not those of "
        "one table. Give a copy that nobody writes to. Nothing was charged."
    )
