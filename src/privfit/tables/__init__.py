"""Tables of every kind, as batches of plain columns. Engines stay behind this wall."""

from privfit.tables.arranged import DecodedTable, WithTarget, settled_box
from privfit.tables.array_file import CACHE, ArrayFile, Arrays
from privfit.tables.arrays import as_given, refuse_masked
from privfit.tables.derived import ChosenPartitions, ComputedTable, in_equal_parts
from privfit.tables.drafts import NUMBER_OF_A_DATE, draft_schema, public_schema
from privfit.tables.errors import NOT_CHARGED, DataError, MissingValues
from privfit.tables.identifiers import PersonColumn
from privfit.tables.kept_columns import KeptColumn, kept_positions
from privfit.tables.opening import is_frame, is_named, open_table
from privfit.tables.pandas_frames import is_pandas
from privfit.tables.partitioned import PartitionedTable, Persisted
from privfit.tables.public_frames import (
    Frame,
    column_numbers,
    columns_to_frame,
    in_memory,
    joined,
    refuse_nested,
    several_tables,
    taken,
    with_column,
    write_frame,
)
from privfit.tables.selecting import with_columns
from privfit.tables.table import ABSENT, UNKNOWN, Batch, FileTable, Table, TableLike, Values, numbered_pieces, quietly
from privfit.tables.weights import WithWeights

__all__ = [
    "ABSENT",
    "CACHE",
    "NOT_CHARGED",
    "NUMBER_OF_A_DATE",
    "UNKNOWN",
    "ArrayFile",
    "Arrays",
    "Batch",
    "ChosenPartitions",
    "ComputedTable",
    "DataError",
    "DecodedTable",
    "FileTable",
    "Frame",
    "KeptColumn",
    "MissingValues",
    "PartitionedTable",
    "Persisted",
    "PersonColumn",
    "Table",
    "TableLike",
    "Values",
    "WithTarget",
    "WithWeights",
    "as_given",
    "column_numbers",
    "columns_to_frame",
    "draft_schema",
    "in_equal_parts",
    "in_memory",
    "is_frame",
    "is_named",
    "is_pandas",
    "joined",
    "kept_positions",
    "numbered_pieces",
    "open_table",
    "public_schema",
    "quietly",
    "refuse_masked",
    "refuse_nested",
    "settled_box",
    "several_tables",
    "taken",
    "with_column",
    "with_columns",
    "write_frame",
]
