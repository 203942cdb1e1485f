"""From a table with a time and an event to one with a signed time as its target: what a survival model reads."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.losses.stopped_hazard import TIME_STEPS
from privfit.mechanisms.perturbation.cox import HazardProblem
from privfit.mechanisms.summaries.survival import BINS
from privfit.models.inputs import PUBLIC, Input, loaded_schema
from privfit.rows import SignedTimes, signed_target
from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.tables import ComputedTable, DataError, TableLike, open_table


def schema_of(model: Any) -> Schema:
    """The schema that a model was given, loaded; it lists columns."""
    given = model.schema
    if isinstance(given, str) and given == PUBLIC:
        raise SchemaError(
            f"{type(model).__name__} was given schema='public', which it does not know. Write "
            "schema=pf.Schema.from_public(table), and take note that no guarantee covers what is read from it."
        )
    schema = given if isinstance(given, Schema) else loaded_schema(model, given)
    if schema.any_width:
        raise SchemaError(
            f"{type(model).__name__} was given a box of open width, and beside its columns are the time and the event. "
            "Say how many features there are: pf.Schema.box(-1, 1, n_features=3). Nothing was charged."
        )
    return schema


def columns_of(time: object, event: object, schema: Schema) -> tuple[Numeric, Category]:
    """The time and the event as columns: as they are given, or of their names in the schema."""
    listed = {column.name: column for column in schema.columns}
    measured = listed.get(time) if isinstance(time, str) else time
    if not isinstance(measured, Numeric):
        raise SchemaError(
            f"CoxRegression was given time={time!r}; it is a number with public bounds, or the name of one in the "
            "schema. Write time=pf.Numeric('years', 0, 5). Nothing was charged."
        )
    happened = listed.get(event, Category(event, [0, 1])) if isinstance(event, str) else event
    if isinstance(happened, Numeric) and (happened.low, happened.high) == (0.0, 1.0):
        happened = Category(happened.name, [0, 1])
    if not isinstance(happened, Category) or len(happened.levels) != 2:
        raise SchemaError(
            f"CoxRegression was given event={event!r}; it is a category of two levels, the second of which means that "
            "the event happened, or the name of one in the schema, or of a column of 0 and 1. Write "
            "event=pf.Category('status', ['alive', 'dead']). Nothing was charged."
        )
    if measured.name == happened.name:
        raise SchemaError(f"CoxRegression was given the column {measured.name!r} as time and as event. Name two.")
    return measured, happened


def survival_input(model: Any, X: TableLike, y: ArrayLike | None, many_classes: bool) -> Input:
    """The table with a schema of all that is read of it: features, time and event. Sets n_features_in_, and
    feature_names_in_ for named columns.
    """
    schema = schema_of(model)
    time, event = columns_of(model.time, model.event, schema)
    if y is not None:
        raise DataError(
            "CoxRegression was given y; time and event are columns of the table, the last two of an array unless the "
            "schema lists them. Leave out y. Nothing was charged."
        )
    if schema.target is not None and schema.target.name not in (time.name, event.name):
        raise SchemaError(
            f"CoxRegression was given a schema whose target is {schema.target.name!r}; what it predicts is the time "
            f"{time.name!r} with the event {event.name!r}. Make it a feature, or leave it out. Nothing was charged."
        )
    own: dict[str, Column] = {time.name: time, event.name: event}
    listed = [own.pop(column.name, column) for column in schema.columns]
    columns = [*listed, *own.values()]
    features = [column for column in columns if column.name not in (time.name, event.name)]
    if not features:
        raise SchemaError("CoxRegression was given a schema without features. List at least one beside time and event.")
    table = open_table(X)
    if table.names is None and table.width != len(columns):
        raise DataError(
            f"X has {table.width} columns, and the schema with time and event has {len(columns)}: "
            f"{', '.join(column.name for column in columns)}. Give an array these columns in this order, or a frame "
            "with names. Nothing was charged."
        )
    model.n_features_in_ = len(features)
    model.__dict__.pop("feature_names_in_", None)
    if table.names is not None:
        model.feature_names_in_ = np.array([column.name for column in features], dtype=object)
    return Input(table, Schema(columns, None, schema.person, schema.where))


def signed_input(given: Input, time: Numeric, event: Category) -> Input:
    """The same with features, and a signed time as the target, which are computed of every row; weights of rows, if
    there are any, stay as they are.
    """
    columns, weighed = given.schema.columns, () if given.weights is None else (given.weights.column,)
    names = [column.name for column in columns]
    kept = [place for place, name in enumerate(names) if name not in (time.name, event.name)]
    last = tuple(range(len(names), len(names) + len(weighed)))
    compute = SignedTimes(tuple(kept), time, event, names.index(time.name), names.index(event.name), last)
    features, target = [columns[place] for place in kept], signed_target(time)
    made = [column.name for column in (*features, target, *weighed)]
    table = ComputedTable(given.table, [*columns, *weighed], made, compute)
    return replace(given, table=table, schema=Schema(features, target))


def hazard_problem(time: Numeric) -> HazardProblem:
    """Bins of time, by the last step of each."""
    edges = np.array([*time.edges(BINS), time.high])
    steps = np.ceil((edges - time.low) / (time.high - time.low) * TIME_STEPS)
    ends = [*np.clip(steps[:-1], 1, TIME_STEPS).astype(int).tolist(), TIME_STEPS]
    if any(after <= before for before, after in pairwise(ends)):
        raise SchemaError(
            f"The time {time.name!r} was given bins of which one is narrower than one part in {TIME_STEPS:,} of its "
            "range. Give it fewer or wider bins, or nearer bounds. Nothing was charged."
        )
    return HazardProblem(tuple(ends), (time.low, *edges.tolist()))
