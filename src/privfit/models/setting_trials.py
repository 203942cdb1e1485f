"""Settings of an estimator as candidates of a private choice: fitted on some rows, scored on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from privfit.mechanisms.choice import Trials
from privfit.models.inputs import Input, fit_input
from privfit.models.private import AnyModel, paid_already
from privfit.privacy import PrivacyParameters
from privfit.rows import divided_once
from privfit.rows.rows import BATCH_ROWS
from privfit.schema import Category, Numeric
from privfit.tables import Table

UNIT = 1 << 16
"""Steps of a score per row."""


class SettingTrials(Trials):
    """Settings of one estimator, fitted on a part of a table and scored on the other."""

    parameters: PrivacyParameters

    def __init__(self, model: AnyModel, settings: Sequence[Mapping[str, Any]], given: Input, scoring: str) -> None:
        self._model, self._settings, self._given, self._scoring = model, settings, given, scoring
        self.number = len(settings)
        self.unit = 1 if scoring == "accuracy" else UNIT
        self.share, self.seeded = "1/5", False
        self._parts: tuple[Table, Table] | None = None

    def reasons_not_private(self) -> tuple[str, ...]:
        """Those of every setting, which no ledger asks a fit inside the search for."""
        found: list[str] = []
        for setting in self._settings:
            model = self._with(setting)
            mechanism = model._chosen_mechanism()
            given = self._input_of(model, mechanism.many_classes)
            mechanism, given = model._settled(mechanism, given, self.parameters)
            problem, _ = model._encoded(mechanism, given, self.parameters)
            found += (*model._reasons_not_private(), *mechanism.reasons_not_private(problem))
        return tuple(dict.fromkeys(found))

    def _input_of(self, model: AnyModel, many_classes: bool) -> Input:
        """The table as a setting of the estimator takes it; counted, if need be, as the search counts it."""
        own, given = fit_input(model, self._given.table, None, many_classes), self._given
        return replace(own, before_keeping=given.before_keeping, stands_for=given.stands_for)

    def _with(self, setting: Mapping[str, Any], **more: Any) -> AnyModel:
        """The estimator with a setting."""
        model: AnyModel = clone(self._model).set_params(**setting)
        model.set_params(**{"schema": self._given.schema, "ledger": None, "random_state": None, **more})
        return model

    def divide(self, key: bytes) -> int:
        """Divide the rows, and read every cell, so that what it may refuse, it refuses now; how many rows there are."""
        for setting in self._settings:
            self._with(setting)._check_parameters(self._given.schema)
        self._parts = divided_once(self._given.table, self._given.schema, key, self.share)
        return sum(part.n_rows or 0 for part in self._parts)

    def run(self, place: int, epsilon: float, seed: int) -> tuple[Any, int]:
        """A fitted model and its score; no model and the least score where it fails."""
        try:
            with paid_already():
                model = self._fitted(place, epsilon, seed if self.seeded else None)
            return model, self._score(model)
        except Exception:
            return None, 0

    def _fitted(self, place: int, epsilon: float, seed: int | None) -> AnyModel:
        assert self._parts is not None
        return self._with(self._settings[place], epsilon=epsilon, random_state=seed).fit(self._parts[0])

    def _score(self, model: Any) -> int:
        """The sum over rows of an integer from 0 to `unit`."""
        assert self._parts is not None
        target, held = self._given.schema.target, self._parts[1]
        predicted = model.predict(held)
        batches = held.batches([target], held.positions([target]), BATCH_ROWS)  # type: ignore[list-item]
        truth = np.concatenate([batch[0] for batch in batches])
        if isinstance(target, Category):
            levels = np.array([*target.levels, None], dtype=object)
            return int(np.sum(np.asarray(predicted, dtype=object) == levels[np.maximum(truth, -1)]))
        assert isinstance(target, Numeric)
        own = np.clip(truth, target.low, target.high)
        away = np.abs(own - np.clip(predicted, target.low, target.high)) / (target.high - target.low)
        lost = np.minimum(away**2 if self._scoring == "squared" else away, 1.0)
        return int(np.nan_to_num(np.floor(UNIT * (1.0 - lost)), nan=0.0).astype(np.int64).sum())
