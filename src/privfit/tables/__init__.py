"""Tables of every kind, as batches of plain columns. Engines stay behind this wall."""

from privfit.tables.opening import WithTarget, column_positions, is_file, is_named, is_pandas, open_table
from privfit.tables.public import draft_schema, public_schema
from privfit.tables.table import ABSENT, UNKNOWN, Batch, DataError, Table

__all__ = [
    "ABSENT",
    "UNKNOWN",
    "Batch",
    "DataError",
    "Table",
    "WithTarget",
    "column_positions",
    "draft_schema",
    "is_file",
    "is_named",
    "is_pandas",
    "open_table",
    "public_schema",
]
