"""A table divided into rows to fit on and rows to evaluate on, by its ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from privfit.privacy import Identity, Ledger, LedgerError, PrivacyError
from privfit.rows import PartRows, divided
from privfit.schema import Category, Column, Schema, SchemaError
from privfit.tables import Table, TableLike, open_table, settled_box


@dataclass(frozen=True)
class Holdout:
    """A table divided into two parts, which are given as X or as the table to anything that releases something.

    `holdout` makes it.

    Parameters
    ----------
    fit : Table
        The rows to fit on.
    evaluate : Table
        The other rows.
    split : str
        The number of the split, as entries of the ledger name it.

    See Also
    --------
    holdout : Divide a table.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> box = pf.Schema.box(0, 1, 2)
    >>> parts = pf.holdout(np.zeros((100, 2)), ledger=pf.Ledger(epsilon=1.0), schema=box)
    >>> sorted(vars(parts))
    ['evaluate', 'fit', 'split']
    """

    fit: Table
    evaluate: Table
    split: str

    def __repr__(self) -> str:
        return f"Holdout({self.fit.label!r}, split {self.split[:8]})"


def holdout(
    table: TableLike,
    *,
    ledger: Ledger,
    schema: Schema | str | Path,
    share: float | str = 0.2,
    name: str = "holdout",
) -> Holdout:
    """Divide a table into rows to fit on and rows to evaluate on, so that both together cost what the dearer one costs.

    Which part a row is in is decided by a secret key, which the ledger makes and keeps: the same table and ledger
    always give the same parts. Releases on a part are charged to that ledger, which adds up each part by itself, and
    counts the larger of the two sums. With `Schema(person=...)` persons are divided, otherwise rows.

    Parameters
    ----------
    table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The table, with its target as a column. Rows that are equal in all columns of the schema are distinguished
        by their number.
    ledger : Ledger
        The ledger that pays for releases on the parts.
    schema : Schema, str or Path
        The schema, or the path of a TOML file that has one. It lists every column that any release on a part reads.
    share : float or str, default=0.2
        The share of rows, or of persons, to evaluate on: about as many, because each is drawn by itself.
    name : str, default='holdout'
        Name of the split. Another name is a new split with a new key, whose releases add to those of all others.

    Returns
    -------
    Holdout
        The parts `fit` and `evaluate`.

    Raises
    ------
    LedgerError
        If the ledger has a split of this name that was made of other columns or persons, or with another share.
    DataError
        If the table does not fit the schema.

    See Also
    --------
    PrivateSearch : Chooses among settings on parts of its own.
    Ledger : The budget.

    Notes
    -----
    Guarantee: all releases charged to the ledger are together (epsilon, delta)-DP, its whole budget, in the adjacency
    that they share, for persons with at most `rows_per_person` rows; docs/proofs/holdout.md, Theorem 2. Without person
    ids, releases for more than one row per person are charged as ones on the whole table, and the table must not
    change: give another name when it did.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    A table that is read in batches is read once to be divided; 24 bytes a row are kept meanwhile, and one afterwards.

    Examples
    --------
    >>> import numpy as np, polars as pl, privfit as pf
    >>> x = np.random.default_rng(0).uniform(-1, 1, 4000)
    >>> frame = pl.DataFrame({"x": x, "y": 0.5 * x})
    >>> schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
    >>> ledger = pf.Ledger(epsilon=1.0)
    >>> parts = pf.holdout(frame, ledger=ledger, schema=schema)
    >>> model = pf.LinearRegression(epsilon=0.5, schema=schema, ledger=ledger).fit(parts.fit)
    >>> mean = pf.mean(parts.evaluate, schema.target, epsilon=0.25, ledger=ledger)
    >>> ledger.spent
    0.5
    """
    if not isinstance(ledger, Ledger):
        raise PrivacyError(
            f"pf.holdout was given ledger={type(ledger).__name__}; parts are kept and paid for by a ledger. Write "
            "ledger=pf.Ledger('people.db', epsilon=1.0)."
        )
    settled = Schema.load(schema) if isinstance(schema, str | Path) else schema
    if not isinstance(settled, Schema):
        raise SchemaError(
            f"pf.holdout was given schema={type(schema).__name__}; a schema lists every column that releases on a part "
            "read. Give a pf.Schema or the path of a TOML file."
        )
    opened = open_table(table)
    if opened.part is not None:
        raise LedgerError("A part of a table was given to pf.holdout; whole tables are divided. Give the whole table.")
    if settled.any_width:
        opened, settled = settled_box(opened, settled)
    described = [_described(column) for column in _columns(settled)]
    identity: Identity = "content" if settled.person is None else "person"
    split = ledger.split(name, identity, [settled.person, described], checked_share(share))
    divisible = Schema(_columns(settled), person=settled.person)
    held = divided(opened, divisible, split)
    return Holdout(
        PartRows(opened, divisible, split, "fit", ~held), PartRows(opened, divisible, split, "evaluate", held), split.id
    )


def _columns(schema: Schema) -> list[Column]:
    """All columns that a schema names but the person's, in an order of their own, each as it is read."""
    columns = {column.name: column for column in (*schema.columns, *(one.column for one in schema.where))}
    return list(columns.values())


def _described(column: Column) -> list[object]:
    """What decides how the cells of a column are read."""
    levels = column.levels if isinstance(column, Category) else ()
    return [column.name, type(column).__name__, sorted(levels, key=lambda level: (isinstance(level, str), level))]


def checked_share(share: float | str) -> str:
    """The share as a text that is read back exactly."""
    try:
        exact = Fraction(repr(float(share)) if isinstance(share, float | int) else str(share))
    except (ValueError, ZeroDivisionError, OverflowError):
        exact = Fraction(0)
    if isinstance(share, bool) or not 0 < exact < 1:
        raise PrivacyError(
            f"share={share!r} was given; it is the share of rows to evaluate on, above 0 and below 1. Use 0.2 if in "
            "doubt."
        )
    return str(exact)
