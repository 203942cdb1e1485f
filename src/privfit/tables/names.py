"""Names of columns.

What the schema lists is public; any other name may be a value out of a row, and is used but never shown.

A CSV file without a header has its first person's cells where names should be, and so has a frame that was read from
it. Names that the schema does not list therefore stay here: no error, attribute, model or report repeats them.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[-+]?([$€£]?[.,]?\d[\d.,']*(e[-+]?\d+)?[$€£%]?|inf(inity)?|nan)", re.IGNORECASE)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(t[\d:.]+(z|[-+][\d:]+)?)?|\d{1,2}:\d{2}(:[\d.]+)?", re.IGNORECASE)
_NO_NAMES = ("", "na", "n/a", "nan", "nat", "none", "null", "<na>", "true", "false")


def reads_like_a_cell(name: str) -> bool:
    """Whether a name reads like a cell, or like a row of them (a file with another separator has one column)."""
    plain = name.strip().strip("\"'").casefold()
    tokens = re.split(r"[\s;|\t]+", plain)
    return plain in _NO_NAMES or all(_NUMBER.fullmatch(token) or _DATE.fullmatch(token) for token in tokens)
