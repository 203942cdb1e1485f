"""Weights of Ji and Elkan's experiment: one draw of private rows beside public ones, weighed by every method from sums
and minima that are found once.

"As printed" has the noise of the paper's Algorithm 1: length sqrt(d) / (epsilon N lambda) for d columns of 0 and 1,
which is private for neighbours that differ in one row's values. privfit's method="paper" needs less, because a row has
one level of every column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.reweighting.base import ReweightingProblem, tilted_weights
from privfit.mechanisms.reweighting.density_ratio import DensityRatio
from privfit.mechanisms.reweighting.exponential_tilting import ExponentialTilting
from privfit.privacy import Budget, PrivacyParameters, SeededNoise, noised, seeded_generator
from privfit.publish.public_tables import synthetic_table
from privfit.rows import Kernel, PublicRows, Rows
from privfit.schema import Schema
from privfit.tables import open_table
from privfit_papers.bench.baskets import INCOME, LARGE
from privfit_papers.bench.sources import Source
from privfit_papers.bench.weights import Split, adult_split

Floats = NDArray[np.float64]

SKEWED, SAME, UNIFORM = "skewed", "same", "uniform"
"""The paper's public rows (other people), the private rows themselves, and rows drawn uniformly from the schema."""
SYNTHETIC_ROWS = 20_000
SQUARED, HINGE, MEAN = "squared hinge", "hinge", "hinge beside a mean"
STRENGTH = 0.1
"""The paper's Lambda: LIBLINEAR's C, or, in the third reading, the ridge beside a mean loss."""


@dataclass(frozen=True)
class Public:
    """Public rows, in the encodings that methods need."""

    frame: pl.DataFrame
    schema: Schema

    @cached_property
    def levels(self) -> ReweightingProblem:
        """One column per level, for regressions."""
        return self._read(DensityRatio().geometry(self.schema))

    @cached_property
    def signs(self) -> ReweightingProblem:
        """Two levels as one sign, for tilting."""
        return self._read(ExponentialTilting().geometry(self.schema))

    def _read(self, geometry: Any) -> ReweightingProblem:
        return ReweightingProblem(PublicRows.read([open_table(self.frame)], self.schema, geometry))

    @cached_property
    def is_large(self) -> NDArray[np.bool_]:
        """Whose income is large."""
        return np.asarray(self.frame[INCOME].to_numpy() == LARGE)

    @cached_property
    def features(self) -> Any:
        """All columns but income, as 0 and 1, for SVMs."""
        columns = Schema([column for column in self.schema.features if column.name != INCOME])
        return PublicRows.read(
            [open_table(self.frame)], columns, columns.geometry(numeric="bins", intercept=False, whole=True)
        ).design

    def estimate(self, weights: Floats) -> float:
        """The share of large incomes that weighted rows have."""
        return float(weights @ self.is_large / weights.sum())

    def svm(self, weights: Floats, rows: int, reading: str) -> Floats:
        """The coefficients of LIBLINEAR's SVM for income, without a constant, which levels carry; weights are scaled to
        so many rows.
        """
        cost = 1 / (STRENGTH * rows) if reading == MEAN else STRENGTH
        loss = "squared_hinge" if reading == SQUARED else "hinge"
        model = LinearSVC(C=cost, loss=loss, fit_intercept=False, random_state=0, max_iter=20_000, tol=1e-3)
        model.fit(self.features, self.is_large, sample_weight=weights * rows / weights.sum())
        return np.asarray(model.coef_[0], dtype=np.float64)


@dataclass(frozen=True)
class People:
    """The paper's split of Adult, and all public tables that it is tried with."""

    split: Split
    origin: str
    notice: str

    @cached_property
    def publics(self) -> Mapping[str, Public]:
        """By name."""
        schema = self.split.schema
        drawn = synthetic_table(schema.columns, SYNTHETIC_ROWS)
        return {SKEWED: Public(self.split.public, schema), SAME: self.private, UNIFORM: Public(drawn, schema)}

    @cached_property
    def private(self) -> Public:
        """The private rows, as if they could be seen."""
        return Public(self.split.private, self.split.schema)

    @cached_property
    def own_svms(self) -> Mapping[str, Floats]:
        """What private rows give, in every reading of the paper's SVM."""
        rows = self.split.private.height
        return {reading: self.private.svm(np.ones(rows), rows, reading) for reading in (SQUARED, HINGE, MEAN)}

    def distance(self, public: Public, weights: Floats, reading: str) -> float:
        """How far the SVM of weighted rows is from that of the private ones."""
        return float(np.linalg.norm(public.svm(weights, self.split.private.height, reading) - self.own_svms[reading]))


def people(source: Source) -> People:
    """Adult, split by a sex that is then left out."""
    loaded = source.adult_baskets()
    return People(adult_split(loaded), loaded.origin, loaded.notice)


class RememberedRows(Rows):
    """Rows whose sums are kept, so that they can be noised again without another pass."""

    def sum(self, kernel: Kernel) -> NDArray[np.int64]:
        """The sum, from memory if it was asked for before."""
        kept: dict[Kernel, NDArray[np.int64]] = self.__dict__.setdefault("_kept", {})
        if kernel not in kept:
            kept[kernel] = super().sum(kernel)
        return kept[kernel]


class Draw:
    """Private rows drawn again with replacement, beside public ones. Every method gives one weight per public row."""

    def __init__(self, frame: pl.DataFrame, public: Public) -> None:
        self.frame, self.public = frame, public
        self.rows = frame.height
        self._minima: dict[float, Floats] = {}

    @cached_property
    def _levels(self) -> Rows:
        return Rows(open_table(self.frame), self.public.schema, self.public.levels.public.geometry)

    @cached_property
    def _signs(self) -> Rows:
        return RememberedRows(open_table(self.frame), self.public.schema, self.public.signs.public.geometry)

    @property
    def is_large(self) -> NDArray[np.bool_]:
        """Whose income is large, among the rows that were drawn."""
        return np.asarray(self.frame[INCOME].to_numpy() == LARGE)

    @property
    def share(self) -> float:
        """The share of large incomes among them."""
        return float(self.is_large.mean())

    def minimum(self, ridge: float) -> Floats:
        """The regression of private against public rows, without noise; found once."""
        if ridge not in self._minima:
            self._minima[ridge] = DensityRatio(ridge).without_noise(
                self._levels, PrivacyParameters(Budget(1.0)), self.public.levels
            )
        return self._minima[ridge]

    def _weights(self, beta: Floats) -> Floats:
        return tilted_weights(self.public.levels.public.design @ beta)

    def without_noise(self, ridge: float) -> Floats:
        """Algorithm 1 without its second step. NOT private."""
        return self._weights(self.minimum(ridge))

    def printed(self, ridge: float, epsilon: float, seed: int) -> Floats:
        """What pf.ImportanceWeights(method="paper", calibration="paper") releases: Algorithm 1 as printed."""
        return self._noisy(DensityRatio(ridge, calibration="paper"), epsilon, seed)

    def repaired(self, ridge: float, epsilon: float, seed: int) -> Floats:
        """What pf.ImportanceWeights(method="paper") releases."""
        return self._noisy(DensityRatio(ridge), epsilon, seed)

    def _noisy(self, mechanism: DensityRatio, epsilon: float, seed: int) -> Floats:
        """Weights of the minimum, which is found once, with this mechanism's noise."""
        terms, exact = PrivacyParameters(Budget(epsilon)), self.minimum(mechanism.alpha)
        event = mechanism.plan(PublicFacts(self._levels.geometry, terms, self.rows), self.public.levels).event
        whole = np.rint(exact * event.unit).astype(np.int64)
        return self._weights(noised(SeededNoise(seeded_generator(seed)), whole, event.parts) / event.unit)

    def objective(self, ridge: float, epsilon: float, seed: int) -> Floats:
        """What pf.ImportanceWeights(method="objective") releases."""
        mechanism, noise = DensityRatio(ridge, "objective"), SeededNoise(seeded_generator(seed))
        return self._weights(
            mechanism.release(
                self._levels, PrivacyParameters(Budget(epsilon)), None, noise, self.public.levels
            ).value.beta
        )

    def tilting(self, epsilon: float, seed: int) -> Floats:
        """What pf.ImportanceWeights() releases."""
        mechanism, noise = ExponentialTilting(), SeededNoise(seeded_generator(seed))
        release = mechanism.release(self._signs, PrivacyParameters(Budget(epsilon)), None, noise, self.public.signs)
        tilt = mechanism.solve(release, self._signs.geometry, self.public.signs)
        return tilted_weights(tilt.design @ tilt.beta)


def printed_scale(columns: int, rows: int, ridge: float, epsilon: float) -> float:
    """The scale of Algorithm 1's noise: its density falls with |b| over this."""
    return math.sqrt(columns) / (rows * ridge * epsilon)


def expected_svm_noise(columns: int, rows: int, ridge: float, epsilon: float) -> float:
    """The root mean square length of the noise on an SVM's coefficients (Chaudhuri et al. 2011, first algorithm), for
    rows of 0 and 1: section 6.
    """
    return 2 * columns * math.sqrt(columns + 1) / (rows * ridge * epsilon)
