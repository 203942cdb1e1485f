"""What a file holds that its schema does not provide for: for the data owner, who checks a schema before a fit.

Like the errors of a fit, the answers name columns and no values, and say something about the rows. They are not for
anybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from privfit.schema import Category, Column
from privfit.tables.errors import NOT_CHARGED, DataError
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Table

CHECKED_ROWS = 1 << 16
"""Rows that are looked at together, as in a fit."""


@dataclass
class Findings:
    """Columns with missing values that nothing stands for, columns with levels that are not listed, and errors of
    reading, in words.
    """

    absent: list[Column] = field(default_factory=list)
    unknown: list[Column] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def look(self, columns: Sequence[Column], batch: Batch) -> None:
        """Note what is new in a batch."""
        for column, values in zip(columns, batch, strict=True):
            category = isinstance(column, Category)
            if (
                column.fill is None
                and column not in self.absent
                and (values == ABSENT if category else np.isnan(values)).any()
            ):
                self.absent.append(column)
            if (
                isinstance(column, Category)
                and not column.other
                and column not in self.unknown
                and (values == UNKNOWN).any()
            ):
                self.unknown.append(column)


def find(table: Table, columns: Sequence[Column]) -> Findings:
    """All that a fit with these columns would refuse, at once: in one pass, or column by column where one of them
    cannot be read.
    """
    found = Findings()
    try:
        _pass(table, columns, found)
    except DataError as error:
        if len(columns) == 1 or table.passes_once:
            return Findings(errors=[str(error).replace(NOT_CHARGED, "")])
    else:
        return _in_order(found, columns)
    apart = [find(table, [column]) for column in columns]
    return Findings(
        [column for one in apart for column in one.absent],
        [column for one in apart for column in one.unknown],
        list(dict.fromkeys(told for one in apart for told in one.errors)),
    )


def _pass(table: Table, columns: Sequence[Column], found: Findings) -> None:
    for batch in table.batches(columns, table.positions(columns), CHECKED_ROWS):
        found.look(columns, batch)


def _in_order(found: Findings, columns: Sequence[Column]) -> Findings:
    """In the order of the schema, not in that of the rows."""
    return Findings(
        [column for column in columns if column in found.absent],
        [column for column in columns if column in found.unknown],
    )
