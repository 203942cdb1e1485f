"""A category whose levels nobody has listed: what stands in its cells is counted as it is."""

from __future__ import annotations

from dataclasses import dataclass

from privfit.schema.columns import OTHER, Category, checked_name


@dataclass(frozen=True)
class OpenCategory(Category):
    """A column that is read to find its levels, which are private until they are released.

    No level is known, so that nothing can be encoded by it: every value would be "other".
    """

    def __post_init__(self) -> None:
        checked_name(self.name)
        object.__setattr__(self, "levels", (OTHER,))
        object.__setattr__(self, "other", True)
        object.__setattr__(self, "is_text", True)
