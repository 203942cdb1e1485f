"""A model that was read from a file, tried on made-up rows: what does not fit together shows now, and not later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.models.model_files import ModelFileError
from privfit.schema import Category, Column, Schema
from privfit.tables import Batch, DecodedTable, Values

if TYPE_CHECKING:
    from privfit.models.private import AnyModel

_ANSWERS = ("decision_function", "predict_proba", "predict", "transform")
_ATTRIBUTES = ("coef_interval_", "feature_importances_", "shapes_")


def try_out(model: AnyModel) -> None:
    """Ask a model for all that it can say of three rows of its schema, which nobody has.

    Raises
    ------
    Exception
        Of any kind, where parts of the file do not fit together.
    """
    schema = model.schema_
    rows = DecodedTable(schema.features, made_up_rows(schema), "made-up rows")
    with np.errstate(all="ignore"):
        for name in _ANSWERS:
            if callable(ask := getattr(model, name, None)):
                _check_length(ask(rows), 3)
        for name in _ATTRIBUTES:
            getattr(model, name, None)
        if getattr(model, "_bootstrap", None) is not None:
            model.confidence_intervals(0.5)
            _check_length(model.predict_interval(rows), 3)
        model._html_repr()
    if hasattr(model, "get_feature_names_out"):
        _check_coefficients(model, len(model.get_feature_names_out()))
    model.report_.to_markdown()
    str(model.report_)


def made_up_rows(schema: Schema) -> Batch:
    """Three rows: the lowest values or first levels, the middle ones, the highest or last."""
    return [_values(column) for column in schema.features]


def _values(column: Column) -> Values:
    if isinstance(column, Category):
        last = len(column.levels) - 1
        return np.array([0, last // 2, last], dtype=np.int32)
    return np.array([column.low, column.low / 2 + column.high / 2, column.high])


def _check_coefficients(model: AnyModel, names: int) -> None:
    """As many coefficients as names, all of them numbers, and as many rows of them as intercepts."""
    coef = np.atleast_2d(getattr(model, "coef_", np.zeros((0, names))))
    intercept = np.ravel(getattr(model, "intercept_", ()))
    if coef.shape != (len(intercept), names) or np.isnan(coef).any() or np.isnan(intercept).any():
        raise ModelFileError("The coefficients of a model file do not go with its schema. Fit again.")


def _check_length(answer: Any, rows: int) -> None:
    if len(answer) != rows:
        raise ModelFileError("A model file answers for another number of rows than it was given. Fit again.")
