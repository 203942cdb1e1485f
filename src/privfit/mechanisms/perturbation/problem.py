"""What is minimised, and what a fit of it is: shared by all mechanisms that fit weights to a convex loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.features import FeatureMap, RowNorms
from privfit.losses import ConvexLoss
from privfit.rows import is_alone
from privfit.schema import AUTO_KNOTS, Geometry, Schema
from privfit.statistics import Coupling

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ERMProblem:
    """What is minimised: the sum of a loss over rows, with a ridge on every weight.

    `knots` is how many numbers have as splines. `classes` is 1 for one linear predictor, or the number of classes with
    a predictor each, which `coupling` joins. `features` maps encoded rows to others first.
    """

    loss: ConvexLoss
    fit_intercept: bool = True
    classes: int = 1
    coupling: Coupling = "one"
    features: FeatureMap | None = None
    knots: int = AUTO_KNOTS

    def norms(self, geometry: Geometry) -> RowNorms:
        """The largest norms of a row."""
        return RowNorms.of(geometry) if self.features is None else self.features.norms


@dataclass(frozen=True)
class PairTable:
    """A pair of columns, by their places among the schema's features, and what each of its cells adds to a row's score,
    the cell of the second turning fastest. A column twice is a number by itself, in fine cells.
    """

    columns: tuple[int, int]
    scores: Floats


@dataclass(frozen=True)
class ERMFit:
    """Weights per encoded column and class, as released or less shrunk; the ridge; and the loss that they minimise."""

    weights: Floats
    ridge: float
    loss: ConvexLoss
    coupling: Coupling = "one"
    features: FeatureMap | None = None
    setting: str = ""
    """Which setting was chosen, where there was a choice."""
    n_rows: int | None = None
    """How many rows there were, as far as that is public."""
    stretches: tuple[float, ...] = ()
    """By what the weights of each column of the table were stretched about their middle afterwards."""
    pairs: tuple[PairTable, ...] = ()
    """Tables of pairs of columns that count beside the weights."""

    def described(self, schema: Schema) -> list[str]:
        """What was minimised, what was chosen and what was done to the weights, in sentences for a report."""
        over = "over its part of the rows" if self.setting else "over all rows"
        notes = [f"minimises the {self.loss.name} {over}, plus {self.ridge:.4g} / 2 times the squared weights"]
        if self.setting:
            notes.append(
                f"chosen privately, by mistakes on other rows: {self.setting}; the noise told is the largest of all "
                "candidates"
            )
        if self.stretches:
            notes.append(
                f"weights were stretched {min(self.stretches):.3g} to {max(self.stretches):.3g} times, column by "
                "column, to undo half of what ridge and noise did to them; this costs nothing"
            )
        if self.pairs:
            columns = [column.name for column in schema.features]
            chosen = [
                f"{columns[one]} in fine steps" if is_alone((one, other)) else f"{columns[one]} x {columns[other]}"
                for one, other in (table.columns for table in self.pairs)
            ]
            notes.append(
                f"adds tables of scores, chosen privately where the rest of the fit misses most: {', '.join(chosen)}"
            )
        return notes
