"""Weights of rows: how a fit takes them, and the public bound that it needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.losses.checks import is_positive
from privfit.models.inputs import PUBLIC, Input
from privfit.privacy import PrivacyError
from privfit.rows import RowWeights
from privfit.schema import Category, Numeric, Schema
from privfit.statistics import WEIGHT_LEVELS
from privfit.tables import DataError, TableLike, WithWeights, as_given, quietly, refuse_masked

if TYPE_CHECKING:
    from privfit.models.private import AnyModel


BALANCED = "balanced"
"""The `class_weight` that buys counts of classes."""


@dataclass(frozen=True)
class WeightedTable:
    """What a fit is given where rows have weights: the table, and the weights or the name of their column."""

    table: TableLike
    weights: ArrayLike | str


def check_weights(model: AnyModel, mechanism: object) -> None:
    """Refuse weights without a public bound, and with a mechanism that has no place for them: before reading."""
    name, public = type(model).__name__, isinstance(model.schema, str) and model.schema == PUBLIC
    if getattr(model, "max_weight", None) is None and not public:
        raise PrivacyError(
            f"sample_weight was given to {name} without max_weight; noise is for the largest weight that a row can "
            f"have, which cannot be taken from private data. Write {name}(max_weight=..., ...). Nothing was charged."
        )
    if model.max_weight is not None:
        checked_bound(model.max_weight)
    if not takes_weights(mechanism):
        raise PrivacyError(
            f"sample_weight was given to {name} with a mechanism that takes no weights. Released moments and perturbed "
            "objectives do. Use mechanism='auto', with the tight calibration and without alpha='select'. Nothing was "
            "charged."
        )
    if getattr(model, "intervals", False) is True and not getattr(mechanism, "weighs_intervals", False):
        raise PrivacyError(
            f"sample_weight was given to {name} with intervals=True; intervals from released moments are for rows "
            "that count alike. Leave out one of the two, or use a perturbed objective. Nothing was charged."
        )


def with_weights(model: AnyModel, given: Input, weights: ArrayLike | str) -> Input:
    """The input with a column of weights and their bound."""
    public = isinstance(model.schema, str) and model.schema == PUBLIC
    if isinstance(weights, str):
        if public or given.table.names is None:
            raise DataError(
                f"sample_weight={weights!r} is the name of a column, and the columns of this table have no names, or "
                "are all features (schema='public'). Give weights as an array. Nothing was charged."
            )
        most = float(checked_bound(model.max_weight))
        column = Numeric(weights, 0.0, most)
        given.table.positions([column])
        return replace(given, weights=RowWeights(column, most, WEIGHT_LEVELS))
    refuse_masked(weights)
    values = quietly("weights", lambda: as_given(weights))
    name = "sample_weight"
    while name in (given.table.names or ()) or any(column.name == name for column in given.schema.columns):
        name += "_"
    table = WithWeights(given.table, values, name)
    most = float(checked_bound(model.max_weight)) if model.max_weight is not None else _largest(values)
    return replace(given, table=table, weights=RowWeights(Numeric(name, 0.0, most), most, WEIGHT_LEVELS))


def takes_weights(mechanism: object) -> bool:
    """Whether rows can have weights with a mechanism: not with constants as a paper prints them."""
    return bool(getattr(mechanism, "takes_weights", False)) and getattr(mechanism, "calibration", "tight") == "tight"


def class_weights_of(model: AnyModel, given: Any, mechanism: object, schema: Schema) -> tuple[float, ...]:
    """The public weights of classes in the order of the schema; none where counts are bought."""
    name, target = type(model).__name__, schema.target
    if not takes_weights(mechanism) or not isinstance(target, Category):
        raise PrivacyError(
            f"class_weight={given!r} was given to {name} with a target that has no classes, or a mechanism that takes "
            "no weights. Use mechanism='auto', or leave class_weight out. Nothing was charged."
        )
    if isinstance(given, str) and given == BALANCED:
        return ()
    if not isinstance(given, dict) or not given:
        raise PrivacyError(
            f"class_weight={given!r} was given to {name}; it is 'balanced', or a dict of public numbers by class. "
            "Use 'balanced' if in doubt. Nothing was charged."
        )
    unknown = [level for level in given if level not in target.levels]
    if unknown:
        raise PrivacyError(
            f"class_weight has a weight for {unknown[0]!r}, which is no class of the schema: {target.levels!r}. Use "
            "classes as the schema has them. Nothing was charged."
        )
    if not all(is_positive(weight) and 1e-100 < weight < 1e100 for weight in given.values()):
        raise PrivacyError(
            f"class_weight={given!r} was given to {name}; weights of classes are positive numbers. Write, for "
            "example, class_weight={'no': 1.0, 'yes': 5.0}. Nothing was charged."
        )
    return tuple(float(given.get(level, 1.0)) for level in target.levels)


def checked_bound(bound: object) -> float:
    """The bound of weights, if it is one."""
    number = isinstance(bound, int | float | np.integer | np.floating) and not isinstance(bound, bool)
    if not number or not 1e-100 < float(bound) < 1e100:  # type: ignore[arg-type]
        raise PrivacyError(
            f"max_weight={bound!r} was given; it is a positive number, the most that a row can count. Write, for "
            "example, max_weight=10.0. Nothing was charged."
        )
    return float(bound)  # type: ignore[arg-type]


def _largest(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> float:
    """The largest weight of a table that is public."""
    numbers = np.asarray(values, dtype=np.float64)
    found = float(np.max(numbers[np.isfinite(numbers)], initial=0.0))
    if found <= 0:
        raise DataError("Sample weights are all zero, and no row would count. Give rows weights above 0.")
    return found
