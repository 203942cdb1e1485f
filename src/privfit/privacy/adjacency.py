"""Which two tables count as neighbours: the tables that a guarantee makes hard to tell apart."""

from __future__ import annotations

from typing import Literal, get_args

from privfit.privacy.errors import PrivacyError

Adjacency = Literal["replace-one", "add-remove"]
"""replace-one: one row takes other values; the number of rows is public. add-remove: one row is there or not."""


def checked_adjacency(adjacency: object) -> Adjacency:
    """The adjacency, if it is one."""
    if adjacency not in get_args(Adjacency):
        raise PrivacyError(
            f"adjacency={adjacency!r} was given; it is 'replace-one' (one person's row changes, the number of rows is "
            "public) "
            "or 'add-remove' (one person's row is there or not). Choose one of the two."
        )
    return adjacency  # type: ignore[return-value]
