"""The schema of an estimator that a Pipeline fits after columns were selected privately."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from privfit.schema import Schema

if TYPE_CHECKING:
    from privfit.models.private import AnyModel

CALLERS = 16
"""How many calls up a pipeline is searched for. It is five above a fit; others may wrap it."""


def narrowed(model: AnyModel, schema: Schema) -> Schema:
    """The schema without the columns that steps before this one in a Pipeline left out; otherwise as it is."""
    if schema.any_width:
        return schema
    dropped = {name for step in steps_before(model) for name in getattr(step, "_dropped_names", ())}
    kept = [column for column in schema.features if column.name not in dropped]
    if not kept or len(kept) == len(schema.features):
        return schema
    return Schema(kept, schema.target, schema.person, schema.where)


def steps_before(model: AnyModel) -> list[Any]:
    """The steps of the Pipelines that call this fit, as far as they come before it."""
    from sklearn.pipeline import Pipeline  # loaded already

    found: list[Any] = []
    frame = inspect.currentframe()
    inner: object = model
    for _ in range(CALLERS):
        if frame is None:
            break
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline) and caller is not inner:
            steps = [step for _, step in caller.steps]
            places = [place for place, step in enumerate(steps) if step is inner]
            # a wrapper, or a copy that a cache makes, is no step itself: wrappers are last
            last = places[0] if places else len(steps) - 1
            if places or not hasattr(model, "_dropped_names"):
                found.extend(steps[:last])
            inner = caller
        frame = frame.f_back
    return found
