"""From what a user hands to `fit` or `predict` to a table and a settled schema."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from privfit.models.narrowing import narrowed
from privfit.rows import RowWeights
from privfit.schema import Category, Column, Level, Numeric, Schema, SchemaError
from privfit.tables import (
    DataError,
    Table,
    TableLike,
    WithTarget,
    as_given,
    is_frame,
    is_named,
    is_pandas,
    open_table,
    public_schema,
    quietly,
    refuse_masked,
    settled_box,
)

if TYPE_CHECKING:
    from sklearn.feature_selection import RFE, SelectFromModel

    from privfit.models.private import AnyModel

Options = ParamSpec("Options")
Answer = TypeVar("Answer")

PUBLIC = "public"
CALLERS = 13
"""How many calls up a selector of columns is searched for. It is four above `fit_input`; others may wrap it."""
NO_TARGET = "requires y to be passed, but the target y is None"


@dataclass(frozen=True)
class Input:
    """A table ready to be read, and the schema that describes it.

    `strict_names` is whether predicting insists on the same names in the same order, `by_position` whether columns have
    no names but their position: those under a box of open width, which lists no names. `selector` is the selector of
    columns that calls the fit, if there is one.
    """

    table: Table
    schema: Schema
    strict_names: bool = False
    by_position: bool = False
    selector: RFE | SelectFromModel | None = None
    declared: Schema | None = None
    """The schema as it was given, where it leaves rows out; `schema` describes the rows that are used."""
    weights: RowWeights | None = None
    """The column that says how much each row counts, if there is one."""


def fit_input(model: AnyModel, X: TableLike, y: ArrayLike | None, many_classes: bool) -> Input:
    """The table and the schema of a fit; sets n_features_in_, feature_names_in_ for named columns, and classes_ for a
    classifier. `many_classes` says whether more than two can be fitted.
    """
    # slow to load, and not there unless a selector is
    selector = calling_selector(model) if "sklearn.feature_selection" in sys.modules else None
    if isinstance(model.schema, str) and model.schema == PUBLIC:
        given = replace(_public_input(model, X, y), selector=selector)
        return _with_sorted_classes(model, given, many_classes) if model._is_classifier else given
    settled = model.schema if isinstance(model.schema, Schema) else loaded_schema(model, model.schema)
    if model._target == "ignored":
        settled, y = settled.with_target(None), None
    if "sklearn.pipeline" in sys.modules:  # the same
        settled = narrowed(model, settled)
    placed = settled.any_width
    table = open_table(X)
    if placed:
        table, settled = settled_box(table, settled)
    if table.names is None:
        _check_width(model, table.width, settled, y is None)
    _check_target(model, settled, y is not None, table)
    if y is not None:
        name = None if settled.target is None else settled.target.name
        table = WithTarget(table, _target_values(y, settled.target), name)
    named = _has_text_names(X) if placed else table.names is not None
    model.n_features_in_ = len(settled.features)
    model.__dict__.pop("feature_names_in_", None)
    if named:
        model.feature_names_in_ = np.array([column.name for column in settled.features], dtype=object)
    given = Input(table, settled, by_position=placed, selector=selector)
    return _with_sorted_classes(model, given, many_classes) if model._is_classifier else given


def _with_sorted_classes(model: AnyModel, given: Input, many_classes: bool) -> Input:
    """The input with the classes of its target in order, as scikit-learn's scorers rely on; sets `classes_`."""
    target = given.schema.target
    assert isinstance(target, Category)
    if len(target.levels) < 2 or (len(target.levels) > 2 and not many_classes):
        raise SchemaError(
            f"{type(model).__name__} was given the target {target.name!r} with {len(target.levels)} classes; it fits "
            f"two with this mechanism. {model._instead()}"
        )
    levels = sorted(target.levels, key=lambda level: (isinstance(level, str), level))
    model.classes_ = levels_array(levels)
    if levels == list(target.levels):
        return given
    return replace(given, schema=given.schema.with_target(replace(target, levels=levels)))


def levels_array(levels: Sequence[Level]) -> NDArray[Any]:
    """Levels as an array that keeps numbers numbers, also beside the text "other"."""
    mixed = len({isinstance(level, str) for level in levels}) > 1
    return np.array(levels, dtype=object) if mixed else np.array(levels)


def calling_selector(model: AnyModel) -> RFE | SelectFromModel | None:
    """The selector of columns that calls this fit, for a model of this kind."""
    from sklearn.feature_selection import RFE, SelectFromModel

    frame = inspect.currentframe()
    for _ in range(CALLERS):
        if frame is None:
            return None
        caller = frame.f_locals.get("self")
        if isinstance(caller, RFE | SelectFromModel) and isinstance(caller.estimator, type(model)):
            return caller
        frame = frame.f_back
    return None


def without_bins(given: Input) -> Input:
    """The same table with features only, whose numbers enter as they are: bins are for other models."""
    columns = [
        replace(column, bins=None) if isinstance(column, Numeric) else column for column in given.schema.features
    ]
    return replace(given, schema=Schema(columns))


def predict_table(model: AnyModel, X: TableLike) -> Table:
    """The table to predict for."""
    if model._public_array:
        return open_table(validate_data(model, X, reset=False, dtype=np.float64))
    table = open_table(X)
    if model._by_position:
        table = _placed(model, table)
    if table.names is None:
        _check_width(model, table.width, model.schema_, needs_target=False)
    if model._strict_names and (is_frame(X) or not is_named(X)):
        validate_data(model, X, reset=False, skip_check_array=True)
        if not hasattr(model, "feature_names_in_"):  # fitted by position: scikit-learn warns, and goes by position
            return open_table(np.asarray(X))
    return table


def table_with_target(model: AnyModel, X: TableLike, y: ArrayLike | None, schema: Schema) -> Table:
    """The table to compare a fitted model's predictions with: its features, and the target where the model has one."""
    table = open_table(X)
    if model._by_position:
        table = _placed(model, table)
    if table.names is None:
        _check_width(model, table.width, schema, needs_target=y is None)
    _check_target(model, schema, y is not None, table)
    if y is None or schema.target is None:
        return table
    return WithTarget(table, _target_values(y, schema.target), schema.target.name)


def _placed(model: AnyModel, table: Table) -> Table:
    """A table whose columns are known by position, and are as many as the box had when it was fitted."""
    if table.names is None:
        return table
    placed, box = settled_box(table, Schema.box(target=model.schema_.target))
    if len(box.features) != len(model.schema_.features):
        raise _wrong_width(model, len(box.features), len(model.schema_.features))
    return placed


def predicting(method: Callable[Options, Answer]) -> Callable[Options, Answer]:
    """The method, with refusals of rows worded for a fitted model: its schema cannot be changed, and predicting charges
    nothing in any case. numpy warns of nothing meanwhile: a warning would reveal that a single row is infinite or huge.
    """

    @functools.wraps(method)
    def run(*args: Options.args, **options: Options.kwargs) -> Answer:
        try:
            with np.errstate(all="ignore"):
                return method(*args, **options)
        except DataError as error:
            message = error.when_predicting
        raise DataError(message)

    return run


def missing_target(target: Column) -> DataError:
    """The error for missing targets: three ways that are sound, and no value to make up."""
    made = f"{type(target).__name__}({target.name!r}, ..., fill='drop')"
    cause = (
        f"The target {target.name!r} contains NaN or missing values, and a value that is made up for a target changes "
        "what is estimated. There are three sound ways, and with each the fit is about people whose target is known. "
        "One: leave such rows out inside the promise,"
    )
    ways = (
        "Two: leave such rows out before fitting, with {remove}, if it is private who has no target. Three: the same "
        "with {replace}, if the number of rows that are left is public. Nothing was charged."
    )
    python = ways.format(remove="adjacency='add-remove'", replace="adjacency='replace-one'")
    command = ways.format(remove="--adjacency add-remove", replace="--adjacency replace-one")
    return DataError(f"{cause} {made}. {python}", for_toml=f'{cause} with fill = "drop" under [target]. {command}')


# -- a schema given by the user --------------------------------------------------------------------


def loaded_schema(model: AnyModel, schema: object) -> Schema:
    if isinstance(schema, str) and schema.lower() == PUBLIC:
        raise SchemaError(
            f"schema={schema!r} was given. If the table itself is public, write schema='public', in small letters."
        )
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    name = type(model).__name__
    if schema is None:
        raise SchemaError(
            f"{name} was given no schema, and bounds, levels and classes cannot be taken from private data. "
            f"Give one: {name}(schema=pf.Schema([pf.Numeric('age', 0, 120), ...], target=...)). For arrays: "
            "pf.Schema.box(-1, 1, target=...). "
            "Only for a table that is itself public: schema='public'."
        )
    raise SchemaError(
        f"{name} was given schema={type(schema).__name__}; a schema is a pf.Schema, the path of a TOML file, or "
        "'public'. Give one of them."
    )


def _no_target(model: AnyModel, why: str) -> DataError:
    return DataError(
        f"{type(model).__name__} {NO_TARGET}, and {why}. Pass y, or a table with the target's column. Nothing was "
        "charged."
    )


def _check_width(model: AnyModel, width: int, schema: Schema, needs_target: bool) -> None:
    needed = len(schema.features) + (needs_target and schema.target is not None)
    if needs_target and width == len(schema.features) < needed:
        raise _no_target(model, f"the {width} columns of the array are the {width} features")
    if width != needed:
        raise _wrong_width(model, width, needed)


def _wrong_width(model: AnyModel, width: int, needed: int) -> DataError:
    return DataError(
        f"X has {width} features, but {type(model).__name__} is expecting {needed} features as input, as its "
        "schema lists them. "
        "Give the columns in the order of the schema, or a frame with names. Nothing was charged."
    )


def _check_target(model: AnyModel, schema: Schema, given_apart: bool, table: Table) -> None:
    name = type(model).__name__
    if schema.target is None and model._target != "needed":
        if given_apart:
            raise SchemaError(
                f"{name} was given y and a schema without a target. Describe it in the schema, or leave out y. Nothing "
                "was charged."
            )
        return
    wanted: type[Column] = Category if model._is_classifier else Numeric
    example = (
        "target=pf.Category('ill', ['no', 'yes'])" if wanted is Category else "target=pf.Numeric('income', 0, 200_000)"
    )
    if schema.target is None:
        missing = "classes" if wanted is Category else "bounds"
        raise SchemaError(
            f"{name} was given a schema without a target, and the target's {missing} cannot be taken from private "
            "data. "
            f"Give them: pf.Schema(features, {example})."
        )
    if not isinstance(schema.target, wanted) and model._target == "needed":
        raise SchemaError(
            f"{name} was given the {type(schema.target).__name__} target {schema.target.name!r}; it needs a "
            f"{wanted.__name__}. Write {example}." + model._hint_about_target(schema.target)
        )
    if given_apart and table.names is not None and schema.target.name in table.names:
        raise DataError(
            f"The target {schema.target.name!r} was given twice: as y and as a column of the table. Give it once: drop "
            "the column, or leave out y. "
            "Nothing was charged."
        )
    if not given_apart and table.names is not None and schema.target.name not in table.names:
        raise _no_target(model, f"the table has no column {schema.target.name!r}")


def _target_values(y: ArrayLike, target: Column | None = None) -> NDArray[Any]:
    refuse_masked(y)
    values = quietly("target", lambda: as_given(y))
    if values.dtype.kind == "c":  # scikit-learn's own refusal would print them
        name = "target" if target is None else target.name
        raise DataError(
            f"Column {name!r} holds values of type {values.dtype}; a target is numbers or classes. Convert it. Nothing "
            "was charged."
        )
    flat: NDArray[Any] = column_or_1d(values, warn=True)
    return flat


def _has_text_names(X: TableLike) -> bool:
    """Whether the columns have names that are texts; scikit-learn takes no notice of others."""
    if not is_pandas(X):
        return is_named(X)
    texts = [isinstance(name, str) for name in getattr(X, "columns", ())]
    if any(texts) and not all(texts):
        raise DataError(
            "The frame has some column names that are texts and some that are not. Write X.columns = "
            "X.columns.astype(str)."
        )
    return all(texts)


# -- a table that the user declares public ---------------------------------------------------------


def _public_input(model: AnyModel, X: TableLike, y: ArrayLike | None) -> Input:
    """Read bounds, levels and classes off the table itself."""
    if model._target != "needed":
        if y is not None and model._target == "taken":
            raise SchemaError(
                f"{type(model).__name__} was given y with schema='public'. Give it as a column of the table, or "
                "give a schema."
            )
        return _public_features(model, X)
    if y is None:
        raise ValueError(f"{type(model).__name__} {NO_TARGET}. With schema='public' pass the target as y.")
    if is_named(X) and not _all_numbers(X):
        schema = public_schema(X)
        validate_data(model, X, skip_check_array=True, reset=True)
        target = _public_target(model, _target_values(y))
        return Input(WithTarget(open_table(X), _target_values(y)), schema.with_target(target), strict_names=True)
    rows, values = validate_data(model, X, y, dtype=np.float64, y_numeric=not model._is_classifier)
    schema = Schema(_public_numbers(model, rows), _public_target(model, values))
    return Input(WithTarget(open_table(rows), values), schema, strict_names=True)


def _public_features(model: AnyModel, X: TableLike) -> Input:
    """The same without a target."""
    if is_named(X) and not _all_numbers(X):
        schema = public_schema(X)
        validate_data(model, X, skip_check_array=True, reset=True)
        return Input(open_table(X), schema, strict_names=True)
    rows = validate_data(model, X, dtype=np.float64)
    return Input(open_table(rows), Schema(_public_numbers(model, rows)), strict_names=True)


def _public_numbers(model: AnyModel, rows: NDArray[np.float64]) -> list[Numeric]:
    names = getattr(model, "feature_names_in_", [f"x{i}" for i in range(rows.shape[1])])
    bounds = zip(names, rows.min(axis=0), rows.max(axis=0), strict=True)
    return [Numeric(name, *_apart(float(low), float(high))) for name, low, high in bounds]


def _all_numbers(X: TableLike) -> bool:
    dtypes = getattr(X, "dtypes", ())
    return is_pandas(X) and all(getattr(dtype, "kind", "O") in "biuf" for dtype in dtypes)


def _public_target(model: AnyModel, y: NDArray[Any]) -> Column:
    if not model._is_classifier:
        return Numeric("target", *_apart(float(np.min(y)), float(np.max(y))))
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2 and not get_tags(model).classifier_tags.multi_class:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is multiclass, with {len(classes)} "
            f"classes. {model._instead()}"
        )
    if len(classes) < 2:
        raise ValueError("The target has one class only; a classifier needs two classes. Give rows of both.")
    return Category("target", classes.tolist())


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low, high) if low < high else (low - 1.0, high + 1.0)
