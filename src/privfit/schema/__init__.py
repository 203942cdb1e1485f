"""Public knowledge about a table, and the geometry that it gives to every row."""

from privfit.schema.columns import AUTO_KNOTS, DROP, MISSING, OTHER, Category, Column, Level, Numeric
from privfit.schema.described import MOST_LEVELS, described
from privfit.schema.errors import SchemaError
from privfit.schema.filters import Condition
from privfit.schema.geometry import CONSTANT, ZERO, Block, Gaps, Geometry, Norm, RowNorms, level_labels, make_block
from privfit.schema.open_category import OpenCategory
from privfit.schema.schema import Schema

__all__ = [
    "AUTO_KNOTS",
    "CONSTANT",
    "DROP",
    "MISSING",
    "MOST_LEVELS",
    "OTHER",
    "ZERO",
    "Block",
    "Category",
    "Column",
    "Condition",
    "Gaps",
    "Geometry",
    "Level",
    "Norm",
    "Numeric",
    "OpenCategory",
    "RowNorms",
    "Schema",
    "SchemaError",
    "described",
    "level_labels",
    "make_block",
]
