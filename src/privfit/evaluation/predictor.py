"""A released model as it is sent to rows: what it says about each of them, and nothing else of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privfit.models.private import AnyModel
from privfit.rows import level_codes, within_bounds
from privfit.schema import Block, Numeric, Schema, make_block
from privfit.tables import Batch, DecodedTable, in_equal_parts

Floats = NDArray[np.float64]
NOT_SENT = ("ledger", "_result")
"""Attributes of a fitted model that predictions do not need."""


@dataclass(frozen=True)
class Predictor:
    """A released model and the schema of the rows that it is compared with."""

    model: Any
    schema: Schema

    @classmethod
    def of(cls, model: AnyModel) -> Predictor:
        """A copy of a model that knows no ledger and finds columns by their names."""
        own = copy.copy(model)
        for name in NOT_SENT:
            if name in own.__dict__:
                setattr(own, name, None)
        own._strict_names = own._by_position = own._public_array = False
        return cls(own, rows_schema(model).of_used_rows())

    def predicted(self, batch: Batch, work: Callable[[Any, DecodedTable], Any]) -> Any:
        """What `work` makes of the model and the features of a batch: a row's answer depends on that row alone."""
        features = batch[: len(self.schema.features)]
        with np.errstate(all="ignore"):  # a warning would reveal that a single row is infinite or huge
            return in_equal_parts(self.schema.features, features, lambda table: [work(self.model, table)])[0]

    @property
    def target(self) -> Block:
        """The target's classes as levels."""
        assert self.schema.target is not None
        return make_block(self.schema.target, 0, whole=True)

    def numbers(self, batch: Batch) -> Floats:
        """The target of every row, clipped to its bounds; missing ones as the schema says."""
        assert isinstance(self.schema.target, Numeric)
        return within_bounds(self.schema.target, batch[-1])

    def classes(self, batch: Batch) -> NDArray[np.intp]:
        """The class of every row, as its place among the model's classes."""
        return level_codes(self.target, batch[-1])


def rows_schema(model: AnyModel) -> Schema:
    """The schema of rows that a model is compared with: that of a fit, unless the model says otherwise."""
    found: Schema = getattr(model, "evaluated_schema", model.schema_)
    return found


def probability(model: Any, table: DecodedTable) -> Floats:
    """The probability of the second of two classes."""
    return np.asarray(model.predict_proba(table)[:, 1])


def squashed(scale: float, model: Any, table: DecodedTable) -> Floats:
    """Scores of a classifier without probabilities, between 0 and 1: above 1/2 where it predicts the second class."""
    return np.asarray(expit(model.decision_function(table) * (2.0 / scale)))


def second_class(model: Any, table: DecodedTable) -> Floats:
    """1 where the second of two classes is predicted, 0 elsewhere."""
    return np.asarray(model.predict(table) == model.classes_[1], dtype=np.float64)


def score_scale(model: Any) -> float:
    """How far apart scores are if columns are spread evenly over their public bounds; 1 where that is not known."""
    try:
        importances = np.asarray(model.feature_importances_, dtype=np.float64)
    except AttributeError:
        return 1.0
    scale = float(np.sqrt((importances**2).sum()))
    return scale if np.isfinite(scale) and scale > 0 else 1.0
