"""From what a user hands to `fit` or `predict` to a table and a settled schema."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.tables import DataError, Table, WithTarget, is_file, is_named, is_pandas, open_table, public_schema

PUBLIC = "public"
NO_TARGET = "requires y to be passed, but the target y is None"


@dataclass(frozen=True)
class Input:
    """A table ready to be read, the schema that describes it, and whether predicting insists on the same names in the same order."""

    table: Table
    schema: Schema
    strict_names: bool


def fit_input(estimator: BaseEstimator, X: Any, y: Any, schema: Any) -> Input:
    """The table and schema of a fit; sets n_features_in_ and, for named columns, feature_names_in_."""
    if isinstance(schema, str) and schema == PUBLIC:
        return _public_input(estimator, X, y)
    settled = _given_schema(estimator, schema)
    named = is_named(X)
    if settled.any_width:
        settled = settled.with_features(_box_names(estimator, X, y, settled))
    table = open_table(X if named else _plain_array(X))
    schema_names = {column.name for column in settled.features}
    if settled.target is not None and settled.target.name in schema_names:
        raise SchemaError(f"The schema lists {settled.target.name!r} as a feature and as the target. It is one or the other: list it once.")
    _check_width(estimator, table, settled, y)
    _check_target(estimator, settled, y, table)
    strict = isinstance(schema, Schema) and schema.any_width
    if strict:
        if not is_file(X):
            validate_data(estimator, _without_target(X, y, settled), skip_check_array=True, reset=True)
    else:
        estimator.n_features_in_ = len(settled.features)
        _remember_names(estimator, [column.name for column in settled.features] if named else None)
    if y is not None:
        table = WithTarget(table, _target_values(y))
    return Input(table, settled, strict)


def predict_table(estimator: Any, X: Any) -> Table:
    """The table to predict for."""
    if is_named(X) and (is_file(X) or not estimator._strict_names):
        return open_table(X)
    if not estimator._strict_names:
        table = open_table(_plain_array(X))
        _check_width(estimator, table, estimator.schema_, y="apart")
        return table
    if estimator._public_array:
        return open_table(validate_data(estimator, X, reset=False, dtype=np.float64))
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return open_table(X if is_named(X) else _plain_array(X))


# -- a schema given by the user -------------------------------------------------------------------------------------


def _given_schema(estimator: BaseEstimator, schema: Any) -> Schema:
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    name = type(estimator).__name__
    if schema is None:
        raise SchemaError(
            f"{name} was given no schema, and bounds, levels and classes cannot be taken from private data. "
            f"Give one: {name}(schema=pf.Schema([pf.Numeric('age', 0, 120), ...], target=...)). For arrays: pf.Schema.box(-1, 1, target=...). "
            "Only for a table that is itself public: schema='public'."
        )
    raise SchemaError(
        f"{name} was given schema={type(schema).__name__}; a schema is a pf.Schema, the path of a TOML file, or 'public'. Give one of them."
    )


def _box_names(estimator: BaseEstimator, X: Any, y: Any, schema: Schema) -> list[str]:
    """Names for the open columns of a box: the table's own, or x0, x1, ..."""
    if is_named(X):
        names = open_table(X).names if is_file(X) or is_pandas(X) or not hasattr(X, "read_next_batch") else tuple(X.schema.names)
        return [name for name in names or () if y is not None or schema.target is None or name != schema.target.name]
    width = _plain_array(X).shape[1]
    return [f"x{i}" for i in range(width - (y is None and schema.target is not None))]


def _without_target(X: Any, y: Any, schema: Schema) -> Any:
    if y is not None or schema.target is None:
        return X
    if is_pandas(X):
        return X.drop(columns=[schema.target.name])
    return X.drop(schema.target.name) if hasattr(X, "drop") else np.asarray(X)[:, :-1]


def _plain_array(X: Any) -> NDArray[Any]:
    """X as a two-dimensional array of whatever it holds; refuses what scikit-learn refuses."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        return X
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object) if _holds_objects(X) else X
    checked: NDArray[Any] = check_array(array, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
    return checked


def _holds_objects(X: Any) -> bool:
    """Whether a plain list mixes texts and numbers, which numpy would silently turn into texts."""
    return isinstance(X, list | tuple) and any(isinstance(cell, str) for row in X if isinstance(row, list | tuple) for cell in row)


def _check_width(estimator: BaseEstimator, table: Table, schema: Schema, y: Any) -> None:
    if table.names is not None:
        return
    width = table._array.shape[1]  # type: ignore[attr-defined]
    needed = len(schema.features) + (y is None and schema.target is not None)
    if width != needed:
        raise DataError(
            f"X has {width} features, but {type(estimator).__name__} is expecting {needed} features as input, as its schema lists them. "
            "Give the columns in the order of the schema, or a frame with names. Nothing was charged."
        )


def _check_target(estimator: BaseEstimator, schema: Schema, y: Any, table: Table) -> None:
    name = type(estimator).__name__
    wanted: type[Column] = Category if is_classifier(estimator) else Numeric
    example = "target=pf.Category('ill', ['no', 'yes'])" if wanted is Category else "target=pf.Numeric('income', 0, 200_000)"
    if schema.target is None:
        missing = "classes" if wanted is Category else "bounds"
        raise SchemaError(
            f"{name} was given a schema without a target, and the target's {missing} cannot be taken from private data. "
            f"Give them: pf.Schema(features, {example})."
        )
    if not isinstance(schema.target, wanted):
        raise SchemaError(
            f"{name} was given the {type(schema.target).__name__} target {schema.target.name!r}; it needs a {wanted.__name__}. Write {example}."
        )
    if y is not None and table.names is not None and schema.target.name in table.names:
        raise DataError(
            f"The target {schema.target.name!r} was given twice: as y and as a column of the table. Give it once: drop the column, or leave out y. "
            "Nothing was charged."
        )
    if y is None and table.names is not None and schema.target.name not in table.names:
        raise DataError(
            f"{name} {NO_TARGET}, and the table has no column {schema.target.name!r}. Pass y, or add the column. Nothing was charged."
        )


def _target_values(y: Any) -> NDArray[Any]:
    to_numpy = getattr(y, "to_numpy", None)
    values = np.asarray(to_numpy() if callable(to_numpy) else y)
    flat: NDArray[Any] = column_or_1d(values, warn=True)
    return flat


def _remember_names(estimator: Any, names: list[str] | None) -> None:
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


# -- a table that the user declares public --------------------------------------------------------------------------


def _public_input(estimator: Any, X: Any, y: Any) -> Input:
    """Read bounds, levels and classes off the table itself."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} {NO_TARGET}. With schema='public' pass the target as y.")
    if is_named(X) and not _all_numbers(X):
        schema = public_schema(X)
        validate_data(estimator, X, skip_check_array=True, reset=True)
        target = _public_target(estimator, _target_values(y))
        return Input(WithTarget(open_table(X), _target_values(y)), schema.with_target(target), strict_names=True)
    X, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=not is_classifier(estimator))
    names = list(getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])]))
    bounds = zip(names, X.min(axis=0), X.max(axis=0), strict=True)
    features = [Numeric(name, *_apart(float(low), float(high))) for name, low, high in bounds]
    return Input(WithTarget(open_table(X), y), Schema(features, _public_target(estimator, y)), strict_names=True)


def _all_numbers(X: Any) -> bool:
    dtypes = getattr(X, "dtypes", None)
    return is_pandas(X) and all(getattr(dtype, "kind", "O") in "biuf" for dtype in dtypes)  # type: ignore[union-attr]


def _public_target(estimator: Any, y: NDArray[Any]) -> Column:
    if not is_classifier(estimator):
        return Numeric("target", *_apart(float(np.min(y)), float(np.max(y))))
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is multiclass, with {len(classes)} classes. Fit one class against the rest."
        )
    if len(classes) < 2:
        raise ValueError("The target has one class only; a classifier needs two classes. Give rows of both.")
    return Category("target", classes.tolist())


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low, high) if low < high else (low - 1.0, high + 1.0)
