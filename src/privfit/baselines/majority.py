"""One class for everybody: what any classifier should be seen beside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.release import Release, check_ledger
from privfit.models.classes import with_sorted_classes
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.private import PrivateModel
from privfit.privacy import Event, Ledger, Noise, Terms
from privfit.rows import Cells, Rows, linear_scores
from privfit.schema import Category, Geometry, Schema, make_block

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassCounts:
    """Noisy counts of classes. Of two classes one number is enough: the count of the second, or, where the number of rows is private, by how much it exceeds the first.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/histograms.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "Majority"

    def geometry(self, schema: Schema) -> Geometry:
        """The target alone."""
        assert isinstance(schema.target, Category)
        return Geometry((), False, make_block(schema.target, 0, whole=True))

    def event(self, classes: int, terms: Terms) -> Event:
        """The price and the noise, from public facts alone."""
        return Event.laplace(
            self.name,
            terms.budget,
            sensitivity=2 if classes > 2 and terms.adjacency == "replace-one" else 1,
            adjacency=terms.adjacency,
            rows_per_person=int(terms.rows_per_person),
            n_values=1 if classes == 2 else classes,
        )

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: None) -> Release[Floats]:
        """Count rows by class, charge the ledger, then add noise. A noisy count for every class; of two classes, by how much each is ahead of the other."""
        check_ledger(ledger, noise)
        cells = Cells(rows)
        classes = cells.grid.n_cells
        event = self.event(classes, terms)
        if ledger is not None:
            ledger.check(event)
        held = cells.read()
        counts = np.array([held.get(place, 0) for place in range(classes)], dtype=np.int64)
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        if classes > 2:
            return Release(noise.laplace(counts, event.scale).astype(np.float64), event, noise.private)
        second = counts[1:] if terms.adjacency == "replace-one" else counts[1:] - counts[:1]
        noisy = float(noise.laplace(second, event.scale)[0])
        ahead = 2 * noisy - cells.n_rows if terms.adjacency == "replace-one" else noisy
        return Release(np.array([-ahead, ahead]), event, noise.private)

    def solve(self, release: Release[Floats], geometry: Geometry, objective: None) -> int:
        """The place of the largest class; of the first of several that are equally large."""
        return int(np.argmax(release.value))


class Majority(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """Predict the same class for every row: the one that most rows of a private table have, by noisy counts. What any classifier should beat.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier. All noise needs epsilon alone; a `delta` is not spent.
    schema : the public facts, with a Category as target; other columns are not looked at.
    adjacency : "replace-one" (the number of rows is public) or "add-remove" (it is not).
    rows_per_person, ledger, random_state : as in LogisticRegression. expected_rows is not needed.

    Attributes
    ----------
    classes_ : the public classes, sorted.
    majority_ : the class that is predicted.
    report_, schema_, n_features_in_, feature_names_in_ : as in LogisticRegression.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/histograms.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> y = np.repeat(["no", "yes"], [3000, 1000])
    >>> model = pf.baselines.Majority(epsilon=1.0, schema=pf.Schema.box(0, 1, target=["no", "yes"])).fit(np.zeros((4000, 1)), y)
    >>> str(model.majority_)
    'no'
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> ClassCounts:
        return ClassCounts()

    def _prepared(self, given: Input, mechanism: Any) -> Input:
        prepared, self.classes_ = with_sorted_classes(given)
        return prepared

    def _encoded(self, mechanism: ClassCounts, given: Input, terms: Terms) -> tuple[None, Geometry]:
        return None, mechanism.geometry(given.schema)

    def _keep(self, fit: int, mechanism: Any) -> None:
        self.majority_ = self.classes_[fit]

    @predicting
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the majority for every row."""
        check_is_fitted(self)
        columns = self.schema_.geometry(intercept=False, target=False)
        rows = len(linear_scores(predict_table(self, X), self.schema_, columns, np.zeros(len(columns.feature_names)), 0.0))
        return np.full(rows, self.majority_, dtype=self.classes_.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = False
        return tags
