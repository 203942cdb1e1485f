"""Tables of every kind, as batches of plain columns. Engines stay behind this wall."""

from privfit.tables.arrays import as_given, refuse_masked
from privfit.tables.frames import columns_to_frame
from privfit.tables.names import column_positions, refuse_values_as_names, settled_box
from privfit.tables.opening import WithTarget, is_file, is_frame, is_named, is_pandas, open_table
from privfit.tables.public import NUMBER_OF_A_DATE, draft_schema, public_schema
from privfit.tables.quiet import quietly
from privfit.tables.table import ABSENT, NOT_CHARGED, UNKNOWN, Batch, DataError, MissingValues, Table
from privfit.tables.weighted import (
    column_numbers,
    in_memory,
    joined,
    refuse_nested,
    several_tables,
    taken,
    with_column,
    write_frame,
)

__all__ = [
    "ABSENT",
    "NOT_CHARGED",
    "NUMBER_OF_A_DATE",
    "UNKNOWN",
    "Batch",
    "DataError",
    "MissingValues",
    "Table",
    "WithTarget",
    "as_given",
    "column_numbers",
    "column_positions",
    "columns_to_frame",
    "draft_schema",
    "in_memory",
    "is_file",
    "is_frame",
    "is_named",
    "is_pandas",
    "joined",
    "open_table",
    "public_schema",
    "quietly",
    "refuse_masked",
    "refuse_nested",
    "refuse_values_as_names",
    "settled_box",
    "several_tables",
    "taken",
    "with_column",
    "write_frame",
]
