"""What a schema makes of what it is given: checked names, columns with other bounds, the target of a box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from privfit.schema.columns import Category, Column, Level, Numeric
from privfit.schema.errors import SchemaError, shown

BOX_TARGET = "target"


def check_names(features: Sequence[Column], columns: Sequence[Column], person: str | None) -> None:
    """Refuse columns that are listed twice, and features that drop rows."""
    names = Counter(column.name for column in columns)
    twice = sorted(name for name, times in names.items() if times > 1)
    if twice:
        raise SchemaError(
            f"The schema lists {twice} more than once. Each column is listed once, the target apart from the features."
        )
    if person in names:
        raise SchemaError(
            f"The schema lists {person!r} as a column and as the person. An identifier is nothing to learn "
            "from. Leave it out of the columns."
        )
    dropped = [column.name for column in features if column.drops]
    if dropped:
        raise SchemaError(
            f"The feature {dropped[0]!r} has fill='drop', which is for the target. To leave out rows without a "
            "feature, use where={...: (low, high)}; to keep them, fill='missing' or a public value."
        )


def checked_person(person: object) -> str | None:
    """The name of the person column, if it is one."""
    if person is None or (isinstance(person, str) and person):
        return person
    raise SchemaError(
        f"A schema was given person={shown(person)}; it is the name of the column that says whose row it is. Write, "
        "for example, person='patient_id'."
    )


def rebounded(column: Column, bounds: Mapping[str, tuple[float, float]]) -> Column:
    """The column with its new bounds, and the bins that are between them."""
    if column.name not in bounds or not isinstance(column, Numeric):
        return column
    low, high = bounds[column.name]
    bins = column.bins
    if isinstance(bins, tuple):
        bins = tuple(edge for edge in bins if low < edge < high) or None
    return replace(column, low=low, high=high, bins=bins)


def box_target(target: Column | tuple[float, float] | Sequence[Level] | None) -> Column | None:
    """A column, a pair (low, high) or a list of classes as a column."""
    if target is None or isinstance(target, Numeric | Category):
        return target
    if isinstance(target, tuple) and len(target) == 2 and not any(isinstance(bound, str | bool) for bound in target):
        return Numeric(BOX_TARGET, *target)  # type: ignore[arg-type]  # it refuses what is not a number
    if isinstance(target, str) or not (isinstance(target, Sequence) or hasattr(target, "tolist")):
        raise SchemaError(
            f"Schema.box was given target={shown(target)}; it is a pair (low, high), a list of classes, a Numeric or a "
            "Category. "
            "Write, for example, target=(0, 100) or target=['no', 'yes']."
        )
    return Category(BOX_TARGET, target)
