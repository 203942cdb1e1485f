"""What every engine offers: batches of plain columns. One small file per engine does the rest.

Engines' own errors may quote cells. `quietly` drops them whole and keeps nothing but the name of their type. What an
engine prints is out of reach: when a thread of polars panics, Rust writes its message to the process's standard error
before Python hears of it, and polars has no switch for that. Redirecting file descriptor 2 meanwhile would swallow what
other threads of the caller write. The message comes before any charge and may quote a cell, so docs/guide.md asks the
data owner not to pass that stream on.

Columns of polars become numbers and positions of levels here, those of Arrow in arrow_columns.py.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric, OpenCategory
from privfit.tables.errors import DataError, changed_file, unreadable, wrong_type
from privfit.tables.identifiers import PersonColumn, hashed_series
from privfit.tables.kept_columns import KeptColumn, kept_series
from privfit.tables.names import reads_like_a_cell
from privfit.tables.open_levels import open_series
from privfit.tables.spool import Spool

if TYPE_CHECKING:
    from privfit.tables.partitioned import PartitionedTable

TableLike = object
"""What a user may give as a table: an array, a frame, a query, a stream, a relation, the path of a file. `open_table`
looks at it; nothing else does.
"""
Values = NDArray[np.float64] | NDArray[np.int32]
Batch = list[Values]
Mark = tuple[int, int, int, int]
Result = TypeVar("Result")

KEPT_ROWS = 1 << 16
"""Rows of a batch in the temporary file of a table that passes by once."""
UNKNOWN = -1
"""The code of a level that the schema does not list."""
ABSENT = -2
"""The code of a missing value."""
FEW_TEXTS = 250
"""Texts that are looked up one by one faster than polars is asked for them: 12 take 4 us and not 47. No command varies
it."""


class Table(ABC):
    """A table that hands out its columns, batch by batch.

    A numeric column comes as float64 with NaN where a value is missing; a category comes as int32 positions in its
    levels, with UNKNOWN for a level that is not listed and ABSENT where a value is missing. An engine sets the
    attributes and fills in `read`.
    """

    label: str
    """What the ledger calls this table: the kind of object or the name of a file, nothing of its content."""
    names: tuple[str, ...] | None = None
    """The columns' names, or None when columns are known by position only."""
    labels: tuple[object, ...] | None = None
    """The names as the user's frame has them, where they may be no texts."""
    n_rows: int | None = None
    """The number of rows, or None when only reading it will show."""
    width: int = 0
    """The number of columns, where they have no names."""
    in_memory: bool = False
    """Whether all rows are in memory, so that a target may stand apart from them."""
    passes_once: bool = False
    """Whether it can be read a single time: a stream, of which nothing was kept."""
    runs_again: bool = False
    """Whether what passes by once would be there again for another fit, if this one is refused: a query."""
    _spool: Spool | None = None
    same_order: bool = False
    """Whether every pass hands out rows in one order: files, and what is in memory; a query or a database may not."""
    leaves_out: bool = False
    """Whether it hands out some of its rows only, so that their number is private."""
    slots: int | None = None
    """How many rows one that leaves rows out could hand out at most, where that is public."""
    is_csv: bool = False
    """Whether names are the first line of a text, which may be a row."""
    cluster: PartitionedTable | None = None
    """The table whose partitions functions are sent to, where rows do not come here to be read."""

    part: Any = None
    """Which part of which split of a table this hands out (`rows/holdout.py`); None for a whole table."""
    needs_person: str | None = None
    """The person column by which it was divided, without which its rows must not be read one by one."""

    @abstractmethod
    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The engine's own batches: a generator, which may fail in any way."""

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of about `rows` rows of the columns at these positions.

        Every error on the way is made ours, also those of cells that are objects with methods of their own.
        """
        kept = self._spool if self._spool is not None and self._spool.holds(columns) else None
        parts = self.read(columns, positions, rows) if kept is None else kept.read(columns, rows)
        try:
            while (part := quietly(self.label, lambda: next(parts, None))) is not None:
                yield part
        finally:
            parts.close()  # type: ignore[attr-defined]  # a generator; a reader's thread and handles end with it

    def keep(self, columns: Sequence[Column]) -> None:
        """Copy these columns of a table that passes by once to a temporary file, from which they are read from now on.

        The number of rows is known then. All errors that the rows hold are met here.
        """
        batches = self.batches(columns, self.positions(columns), KEPT_ROWS)
        self._spool = quietly(self.label, lambda: Spool(columns, batches))
        self.n_rows, self.passes_once = self._spool.rows, False

    def positions(self, columns: Sequence[Column]) -> list[int]:
        """Where the schema's columns stand: by name in any order, or by position when there are no names."""
        if self.names is None:
            return list(range(len(columns)))
        places = {name: place for place, name in enumerate(self.names)}
        missing = [column.name for column in columns if column.name not in places]
        if missing:
            raise self._missing_columns(missing)
        times = Counter(self.names) if len(places) < len(self.names) else {}
        twice = [column.name for column in columns if times.get(column.name, 1) > 1]
        if twice:
            raise DataError(
                f"The table has more than one column called {', '.join(map(repr, twice))}. Rename or drop one of them. "
                "Nothing was charged."
            )
        return [places[column.name] for column in columns]

    def _missing_columns(self, missing: list[str]) -> DataError:
        """The error for columns that the schema lists and the table lacks.

        It says how many columns the table has, not how they are called.
        """
        names = self.names or ()
        alike = [name for name in missing if name.strip().casefold() in {own.strip().casefold() for own in names}]
        told = f"{', '.join(map(repr, alike))} is there in other letters or with spaces around it. " if alike else ""
        cure = "Rename the table's column or the schema's."
        if self.names_are_values():
            told, cure = (
                "Its first row seems to stand where the names should be. ",
                "Give its columns names: a CSV file begins with a line of them.",
            )
        fact = (
            f"The table has no column {', '.join(map(repr, missing))}, which the schema lists. It has {len(names)} "
            f"column{'s' * (len(names) != 1)}. {told}"
        )
        return DataError(
            f"{fact}{cure} Nothing was charged.",
            when_predicting=f"{fact}The schema is part of the model: add or rename the table's column.",
        )

    def names_are_values(self, listed: Collection[str] = ()) -> bool:
        """Whether names look like cells of a row: one of them is a number, a date, a truth value or nothing, and the
        schema lists none of them.

        Columns that are counted from 0 have no names but numbers, in a pandas frame and in what was made of one; a CSV
        file shows no difference between that and a row.
        """
        labels: Sequence[object] = self.labels or self.names or ()
        if any(label in listed for label in labels if isinstance(label, str)):
            return False
        if not self.is_csv and [str(label) for label in labels] == [str(place) for place in range(len(labels))]:
            return False
        return any(reads_like_a_cell(str(label)) for label in labels if not isinstance(label, Integral))

    def refuse_values_as_names(self, listed: Collection[str] = ()) -> None:
        """Refuse a table whose first row was taken for the names of its columns: that row would be missing from the
        fit.
        """
        if self.names_are_values(listed):
            raise DataError(
                f"The names of the columns of {self.label!r} are numbers, dates or nothing, as if a row stood where "
                "names should be. A CSV file begins with a line of names. Write one, or read the file yourself: "
                "polars.read_csv(path, has_header=False), pandas.read_csv(path, header=None). "
                "Columns that are called so must be renamed. Nothing was charged."
            )


class FileTable(Table):
    """A file of one table, read in batches and never held in memory whole.

    Every pass must find the file that was opened, and all its rows. A kind of file fills in `opened` and `scanned`.
    """

    kind: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    same_order = True
    promised: int | None = None
    """How many rows every pass must find, where that is known already."""

    def __init__(self, path: Path, label: str | None = None) -> None:
        self.path, self.label = path, path.name if label is None else label
        self._mark = mark_of(path)  # before anything is read of it
        self.opened()

    @abstractmethod
    def opened(self) -> None:
        """Read the names of the columns, and what else the file says of itself."""

    @abstractmethod
    def scanned(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The batches of one pass."""

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The batches of one pass, which finds the file as it was and all its rows."""
        self.check_unchanged()
        count = 0
        for batch in self.scanned(columns, positions, rows):
            count += len(batch[0])
            yield batch
        self.check_unchanged()
        if self.promised not in (None, count):
            raise self.miscounted()
        self.promised = count

    def check_unchanged(self) -> None:
        """Refuse a file that is not what it was when it was opened."""
        if mark_of(self.path) != self._mark:
            raise changed_file(self.label)

    def miscounted(self) -> DataError:
        """The refusal of a pass that found another number of rows than is promised."""
        return changed_file(self.label)

    @abstractmethod
    def kinds(self) -> pl.Schema:
        """The types of the columns."""

    @abstractmethod
    def whole(self) -> pl.DataFrame:
        """All of the file: for public tables."""


def mark_of(path: Path) -> Mark:
    """What distinguishes a file from any other, and from itself after it was written to."""
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def quietly(label: str, read: Callable[[], Result]) -> Result:
    """What an engine reads. Its error is dropped whole, chain and all, before ours is raised.

    A function and not a context manager: an error that is raised while a `with` block is left carries the other one.
    Panics of Rust code (`pyo3_runtime.PanicException`) and exits that a generator or a cell asks for are no
    `Exception`s, and are errors of reading all the same. Ctrl-C ends the fit, and carries nothing but that.
    """
    try:
        return read()
    except DataError:
        raise
    except BaseException as error:
        interrupted, kind = isinstance(error, KeyboardInterrupt), type(error).__name__
    if interrupted:
        raise KeyboardInterrupt
    raise unreadable(label, kind)


def only_absent(absent: NDArray[np.bool_], found: str, column: Category) -> NDArray[np.int32]:
    """Codes of a column that holds values of the wrong kind: none of them may be there."""
    if not absent.all():
        raise wrong_type(column, found)
    return np.full(len(absent), ABSENT, dtype=np.int32)


def codes_of_numbers(values: NDArray[np.float64], column: Category) -> NDArray[np.int32]:
    """Positions of numeric values among a category's numeric levels."""
    numbers = np.array([float(level) if not isinstance(level, str) else np.nan for level in column.levels])
    order = np.argsort(numbers)
    order = order[~np.isnan(numbers[order])]  # numeric levels come with at least one number; the rest is "other"
    place = np.minimum(np.searchsorted(numbers[order], values), len(order) - 1)
    codes = np.where(numbers[order][place] == values, order[place], UNKNOWN)
    return np.where(np.isnan(values), ABSENT, codes).astype(np.int32)


def numbered_pieces(batches: Iterator[Batch], size: int, first: int = 0) -> Iterator[tuple[int, Batch]]:
    """Pieces of at most so many rows, each with the number of its first row."""
    for batch in batches:
        for start in range(0, len(batch[0]), size):
            yield first + start, [column[start : start + size] for column in batch]
        first += len(batch[0])


# -- columns of polars ---------------------------------------------------------------------------------


def series_values(series: pl.Series, column: Column) -> Values:
    """One polars column as numbers or as positions of levels."""
    if isinstance(column, KeptColumn):
        return kept_series(series, column.name)
    if isinstance(column, PersonColumn):
        return hashed_series(series, column)
    if isinstance(column, OpenCategory):
        return open_series(series, column)
    dtype = series.dtype
    if series.null_count() == len(series):  # nothing is there, and nothing is of every kind
        return (
            np.full(len(series), np.nan)
            if isinstance(column, Numeric)
            else np.full(len(series), ABSENT, dtype=np.int32)
        )
    text = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    number = dtype.is_numeric() or dtype == pl.Boolean
    if number:
        numbers = series.cast(pl.Float64).to_numpy()
        if isinstance(column, Numeric):
            return numbers
        return (
            only_absent(np.isnan(numbers), "numbers", column) if column.is_text else codes_of_numbers(numbers, column)
        )
    if text and isinstance(column, Category) and column.is_text:
        return text_codes(series.cast(pl.String), column)
    raise wrong_type(column, "texts" if text else f"values of type {type(dtype).__name__}")


def text_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    """Positions of texts among a category's levels."""
    if len(strings) + len(column.levels) <= FEW_TEXTS:
        known = {None: ABSENT} | {str(level): place for place, level in enumerate(column.levels)}
        return np.array([known.get(text, UNKNOWN) for text in strings.to_list()], dtype=np.int32)
    places = strings.cast(pl.Enum(map(str, column.levels)), strict=False).to_physical().cast(pl.Int32)
    if not places.null_count():
        return places.to_numpy()
    codes = places.fill_null(UNKNOWN).to_numpy()
    return np.where(strings.is_null().to_numpy(), np.int32(ABSENT), codes)
