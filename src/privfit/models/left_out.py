"""Rows that a fit leaves out."""

from __future__ import annotations

from dataclasses import replace

from privfit.models.inputs import Input
from privfit.privacy import PrivacyParameters, Sampler
from privfit.rows import rows_to_plan_for, used_rows
from privfit.schema import DROP, Schema


def using_rows(given: Input, parameters: PrivacyParameters, sampler: Sampler, max_memory: int | None) -> Input:
    """The input with a table that hands out the rows that are used alone, chosen in so many bytes of memory.

    Rows of persons are chosen now: what the choice refuses, it refuses before anything is charged.
    """
    key = b"" if given.schema.person is None else sampler.key()
    counted = parameters.adjacency == "replace-one"
    besides = () if given.weights is None else (given.weights.column,)
    most = int(parameters.rows_per_person)
    table = used_rows(given.table, given.schema, most, key, counted, besides, max_memory)
    return replace(given, table=table, schema=given.schema.of_used_rows(), declared=given.schema)


def public_rows(given: Input, parameters: PrivacyParameters) -> int | None:
    """The number of rows by which a fit may be planned: that of the table where it is public, or the expected one.

    A table that passes by once is kept for it, with its weights, after the ledger was asked: the same rows are planned
    for alike from every source.
    """
    if given.stands_for is not None:
        return given.stands_for
    if parameters.adjacency == "replace-one" and given.table.passes_once and given.before_keeping is not None:
        given.before_keeping()
    besides = [] if given.weights is None else [given.weights.column]
    return rows_to_plan_for(given.table, [*given.schema.columns, *besides], parameters)


def stating_rows_left_out(schema: Schema, declared: Schema) -> Schema:
    """A schema of the rows that are used, with what the declared one says of rows that are left out."""
    target = schema.target
    if target is not None and declared.drops_target:
        target = replace(target, fill=DROP)  # type: ignore[arg-type]  # the literal of a Numeric
    return Schema(schema.features, target, declared.person, declared.where)
