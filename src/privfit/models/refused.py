"""What a refused fit leaves behind: the model as it was, and advice that is sound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privfit.models.inputs import missing_target
from privfit.tables import MissingValues

if TYPE_CHECKING:
    from privfit.models.private import AnyModel


@contextmanager
def unchanged_on_error(model: AnyModel) -> Iterator[None]:
    """A fit that is refused leaves the model as it was. Missing targets are refused with advice that is sound for a
    target: a made-up value would change what is estimated.
    """
    before = dict(model.__dict__)
    try:
        yield
        return
    except BaseException as error:
        target = model.schema_.target if isinstance(error, MissingValues) and hasattr(model, "schema_") else None
        model.__dict__.clear()
        model.__dict__.update(before)
        if target is None or not isinstance(error, MissingValues) or error.column != target.name:
            raise
    raise missing_target(target)
