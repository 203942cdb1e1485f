"""What is reweighted, and what every fit of it provides: all post-processing of a release and of public rows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from privfit.privacy import PrivacyParameters
from privfit.rows import PublicRows
from privfit.schema import Geometry, Schema
from privfit.tables import Table

Floats = NDArray[np.float64]
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ReweightingProblem:
    """The public rows that are weighted to stand for private ones."""

    public: PublicRows
    printed_rows: int | None = None
    """The number of private rows as it is, for the paper's own noise under add-remove, which is NOT private."""


@dataclass(frozen=True)
class ReweightingFit(ABC):
    """Log-weights: the weight of a public row is proportional to exp(x'beta), x being its row of `design`."""

    problem: ReweightingProblem
    beta: Floats
    design: Any
    """One row per public row, one column per entry of beta: a sparse matrix."""

    @property
    def geometry(self) -> Geometry:
        """How rows are encoded."""
        return self.problem.public.geometry

    @property
    def pairs(self) -> Pairs:
        """The pairs of columns whose products are in the design too."""
        return ()

    @property
    def means(self) -> Floats | None:
        """The noisy means of the design's columns, where these are what was released."""
        return None

    def names(self) -> list[str]:
        """The name of every entry of beta."""
        return column_names(self.geometry, self.pairs)

    @abstractmethod
    def repairs(self) -> dict[str, float]:
        """What was done to make the release usable, for the report."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Lines for the report."""

    @abstractmethod
    def covariance(self) -> Floats:
        """The covariance of beta, over private samples and noise; weighted public rows stand for the private ones."""

    @abstractmethod
    def variance_bound(self, gradient: Floats) -> float:
        """A bound of the variance of an estimate that has this gradient with respect to beta."""

    @abstractmethod
    def without_noise(self, reference: Table, schema: Schema, parameters: PrivacyParameters) -> Floats:
        """The beta of a reference in place of the private table. NOT private for its rows."""


def tilted_weights(scores: Floats) -> Floats:
    """Weights proportional to the exponentials of scores, one on average."""
    return np.asarray(np.exp(log_softmax(scores) + math.log(len(scores))), dtype=np.float64)


def column_names(geometry: Geometry, pairs: Pairs = ()) -> list[str]:
    """The names of encoded columns: a number or a level each; of a sign the second level, whose opposite is the
    first.
    """
    own = [[block.labels[1]] if block.kind == "sign" else list(block.labels) for block in geometry.blocks]
    return [name for names in own for name in names] + [
        f"{a} x {b}" for left, right in pairs for a in own[left] for b in own[right]
    ]
