"""Predictions batch by batch, in the order of the rows: for tables that do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from privfit.models.inputs import predict_table, predicting
from privfit.rows import report_progress
from privfit.tables import DataError, DecodedTable, KeptColumn, TableLike, kept_positions, open_table

BATCH_ROWS = 1 << 16
"""Rows that are predicted together, as in a fit."""
PREDICTION, LOWER, UPPER = "prediction", "lower", "upper"
Columns = dict[str, Any]
"""Columns of a batch by name: arrays, and series for those that are carried along."""


def prediction_batches(
    model: Any, X: TableLike, keep: Sequence[str] = (), rows: int = BATCH_ROWS, intervals: bool = False
) -> Iterator[Columns]:
    """What a model says about every row of a table, a batch at a time, after the columns that are kept of it.

    A classifier with probabilities adds one column for every class, and `intervals` the ends of the 90% interval of
    the mean of such rows.
    """
    parts = _batches(model, X, keep, rows, intervals)
    while (part := _next(parts)) is not None:
        yield part


@predicting
def _next(parts: Iterator[Columns]) -> Columns | None:
    return next(parts, None)


def _batches(model: Any, X: TableLike, keep: Sequence[str], rows: int, intervals: bool) -> Iterator[Columns]:
    opened = open_table(X)
    table = predict_table(model, opened)
    columns = model.schema_.features
    carried = kept_positions(opened, keep)
    asked = [*columns, *cast(Any, [KeptColumn(name) for name in keep])]
    count = 0
    for batch in table.batches(asked, [*table.positions(columns), *carried], rows):
        decoded = DecodedTable(columns, batch[: len(columns)], table.label)
        kept = dict(zip(keep, batch[len(columns) :], strict=True))
        made = predicted_columns(model, decoded, intervals)
        twice = [name for name in made if name in kept]
        if twice:
            raise DataError(
                f"A column to keep is called {twice[0]!r}, as one of the predictions is. Rename it in the table."
            )
        yield kept | made
        count += len(batch[0])
        report_progress(count)


def predicted_columns(model: Any, table: TableLike, intervals: bool = False) -> Columns:
    """The model's predictions; for a classifier the probability of every class, for components the scores, and
    intervals if they are asked for.
    """
    if hasattr(model, "predict"):
        columns = {PREDICTION: model.predict(table)}
    else:
        columns = dict(zip(model.get_feature_names_out(), model.transform(table).T, strict=True))
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(table)
        columns |= {f"probability_{label}": probabilities[:, place] for place, label in enumerate(model.classes_)}
    if intervals:
        ends = _intervals(model, table)
        columns |= {LOWER: ends[:, 0], UPPER: ends[:, 1]}
    return columns


def _intervals(model: Any, table: TableLike) -> Any:
    try:
        return model.predict_interval(table)
    except AttributeError:
        pass
    raise DataError(
        f"Intervals were asked of a {type(model).__name__} that has none. A linear model has them that was fitted with "
        "intervals=True (--intervals), or a linear regression by the functional mechanism, if it was saved with at "
        "most 50 coefficients. Leave them out."
    )
