"""How private rows differ from public ones: a regularised logistic regression of the one against the other, with noise.

Ji and Elkan: Differential privacy based on importance weighting, Machine Learning 2013, Algorithm 1. Here in sum form with a public number of rows, with the distance that two
rows really can have, and with a certificate for what the solver leaves undone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC
from privfit.mechanisms.minima import Plan, Risk, check_number, check_price, minimised, public_rows
from privfit.mechanisms.perturbation import ObjectivePerturbation, OutputPerturbation, Perturbation
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.tilts import Tilt
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.rows import KeptRows, PublicRows, Rows
from privfit.rows.kept import Respond, SampledRows
from privfit.schema import Geometry, Schema
from privfit.statistics import Gradients, Norm

Floats = NDArray[np.float64]

SAMPLE_VALUES = 1 << 20
MOST_PUBLIC = 1 << 26
"""More public rows than this would be added up in longer sums than the bound of rounding counts."""
MORE_ROUNDING = 1.01
"""Sums over public rows have at most 1% more additions on the way of a row than sums over as many private rows: docs/proofs/weights.md, Theorem 1."""
RISK = Risk(LOGISTIC, fit_intercept=False)


@dataclass(frozen=True)
class Contrast:
    """What private rows are told apart from."""

    public: PublicRows


@dataclass(frozen=True)
class Slopes:
    """The weights per encoded column, as released; the ridge on them in the sum over rows; and the number of rows that it was scaled by."""

    beta: Floats
    ridge: float
    rows: int
    tilt: Tilt | None
    """The noise on the objective's slope; None where noise is on the minimum."""
    total: int
    """By how many rows the objective is divided to have means in it, as the paper writes it."""

    @property
    def alpha(self) -> float:
        """The ridge beside means: as it was given, or larger where privacy needs it."""
        return self.ridge / self.total


@dataclass(frozen=True)
class OneSided(Gradients):
    """Gradients of rows without negative entries, all of whose slopes have one sign: what leaves and what enters point into the same corner.

    Guarantee: docs/proofs/weights.md, Lemma 1.
    """

    def sensitivity(self, norm: Norm) -> float:
        """How far neighbours' sums of gradients can lie apart: two vectors in one corner differ by at most the root of 2 times the longer one."""
        if norm == "l2" and self.replace:
            return math.sqrt(2.0) * self.people * self.of_one_row("l2")
        return super().sensitivity(norm)


@dataclass(frozen=True)
class NoisyMinimum(OutputPerturbation):
    """Output perturbation for rows of levels.

    Guarantee: that of OutputPerturbation with the sensitivity of docs/proofs/weights.md, Lemma 1.
    """

    def _gradients(self, geometry: Geometry, terms: Terms, objective: Risk) -> Gradients:
        plain = super()._gradients(geometry, terms, objective)
        return OneSided(plain.norms, plain.loss, plain.classes, plain.coupling, plain.people, plain.replace)


@dataclass(frozen=True)
class DensityRatio:
    """Logistic regression of private against public rows; noise on the minimum ("output", the paper's Algorithm 1) or in the objective ("objective").

    Parameters
    ----------
    alpha : the paper's lambda, the ridge beside mean losses.
    perturbation : "output" or "objective".
    balanced : whether the public rows count as much as the private ones, all together; otherwise every row counts the same (the paper's footnote 2).

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to a
    chance below 2^-64; docs/proofs/weights.md, Theorem 1. The number of rows is public, or a public guess stands for it.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    alpha: float = 0.1
    perturbation: Literal["output", "objective"] = "output"
    balanced: bool = True

    name = "density-ratio"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        number = isinstance(self.alpha, int | float) and not isinstance(self.alpha, bool)
        if not number or not 0 < self.alpha < math.inf:
            raise PrivacyError(
                f"alpha={self.alpha!r} was given; it is a positive number, the ridge beside mean losses, and is chosen without looking at the rows. The paper uses 0.1."
            )

    def geometry(self, schema: Schema, objective: Contrast | None = None) -> Geometry:
        """How rows are encoded: one column per level, numbers in bins, nothing negative."""
        return schema.geometry(numeric="bins", intercept=False, target=False, whole=True)

    def weight(self, public: int, rows: int) -> float:
        """How much a public row counts beside a private one."""
        return rows / public if self.balanced else 1.0

    def total(self, public: int, rows: int) -> int:
        """By how many rows the objective is divided to have means in it."""
        return rows if self.balanced else rows + public

    def plan(self, geometry: Geometry, terms: Terms, objective: Contrast, n_rows: int | None) -> Plan:
        """Ridge, noise and price, from public facts."""
        if n_rows is None:
            raise PrivacyError(
                "The density ratio was asked for under add-remove without expected_rows; it divides by the number of rows, which is private there. "
                'Give a public guess, expected_rows=20_000, or use method="tilting", which needs none. Nothing was charged.'
            )
        if objective.public.n_rows > MOST_PUBLIC:
            raise PrivacyError(
                f"{objective.public.n_rows} public rows were given; the precision is planned for at most {MOST_PUBLIC}. Give a part of them. Nothing was charged."
            )
        crowd = math.ceil(MORE_ROUNDING * (n_rows + self.others(objective.public.n_rows, n_rows)))  # rounding adds up over both
        wide = replace(terms, expected_rows=crowd)
        return self._inner(objective, n_rows).plan(geometry, wide, RISK, crowd)

    def others(self, public: int, rows: int) -> int:
        """As how many rows the public ones count."""
        return math.ceil(self.weight(public, rows) * public)

    def _inner(self, objective: Contrast, n_rows: int) -> Perturbation:
        ridge = float(self.alpha) * self.total(objective.public.n_rows, n_rows)
        return NoisyMinimum(ridge=ridge) if self.perturbation == "output" else ObjectivePerturbation(ridge=ridge, steepest=1)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Contrast) -> Release[Slopes]:
        """Read the rows, charge the ledger, draw, and minimise until the gradient is certified."""
        check_ledger(ledger, noise)
        usual = objective.public.n_rows if terms.adjacency == "replace-one" else None  # the price does not depend on it
        check_price(ledger, rows, terms, lambda known: self.plan(rows.geometry, terms, objective, known or usual).event)
        kept = KeptRows(rows)
        n_rows = public_rows(kept.n_rows, terms)
        plan = self.plan(rows.geometry, terms, objective, n_rows)  # public facts only
        assert n_rows is not None
        others = self.others(objective.public.n_rows, n_rows)
        check_number(math.ceil(MORE_ROUNDING * (kept.n_rows + others)), replace(terms, expected_rows=n_rows + others))
        if ledger is not None:
            ledger.charge(plan.event, dataset=rows.label)  # durable before any draw
        both = BesidePublic(kept, objective.public, self.weight(objective.public.n_rows, n_rows))
        beta = self._inner(objective, n_rows)._perturbed(plan, both, noise)
        return Release(
            Slopes(
                beta[:, 0],
                plan.ridge,
                n_rows,
                plan.tilt,
                self.total(objective.public.n_rows, n_rows),
            ),
            plan.event,
            noise.private,
        )

    def solve(self, release: Release[Slopes], geometry: Geometry, objective: Contrast) -> Slopes:
        """The weights are what was released."""
        return release.value

    def without_noise(self, rows: Rows, terms: Terms, objective: Contrast) -> Floats:
        """The minimum itself, for rows that may be read by whoever asks: the paper's beta_0 for a reference."""
        kept = KeptRows(rows)
        plan = self.plan(rows.geometry, replace(terms, adjacency="replace-one"), objective, kept.n_rows)
        both = BesidePublic(kept, objective.public, self.weight(objective.public.n_rows, kept.n_rows))
        return minimised(plan, both, np.zeros((kept.n_columns, 1)))[:, 0]


class BesidePublic(KeptRows):
    """Private rows, which are on the side of 1, and public ones, which are on the side of -1 and count `weight` each."""

    def __init__(self, kept: KeptRows, public: PublicRows, weight: float) -> None:
        self.__dict__.update(kept.__dict__)
        self._public, self._weight = public, weight

    def pulled(self, weights: Floats, respond: Respond) -> Floats:
        """The sum over rows of both kinds."""
        private = super().pulled(weights, lambda scores, _: respond(scores, np.ones_like(scores)))
        return private + self._weight * self._public.pulled(weights, lambda scores: respond(scores, -np.ones_like(scores)))

    def sample(self) -> SampledRows:
        """Rows of both kinds, spread evenly."""
        own = super().sample()
        step = max(1, self._public.n_rows * self.n_columns // SAMPLE_VALUES)
        return SampledBoth(own._design, np.ones(len(own._target)), own.weight, self._public.design[::step], step * self._weight)

    @property
    def rows_for_curvature(self) -> int:
        """None: the sample knows the curvature of both kinds."""
        return 0

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """What rounding can do to the sums of both kinds."""
        length, norm = float(np.linalg.norm(weights)), self._public.geometry.l2
        public = self.most_rounding(
            self._public.n_rows, norm, len(self._public.geometry.blocks), length, most_slope, most_curvature, offset
        )
        return super().rounding(weights, most_slope, most_curvature, offset) + self._weight * public


@dataclass(frozen=True)
class SampledBoth(SampledRows):
    """A part of the private rows, and public ones that stand for `public_weight` each."""

    public: Any
    public_weight: float

    def pulled(self, weights: Floats, respond: Respond) -> Floats:
        """As BesidePublic.pulled, estimated."""
        scores = self.public @ weights[:, 0]
        others = self.public.T @ respond(scores, -np.ones_like(scores))
        return np.asarray(super().pulled(weights, respond) + self.public_weight * others[:, None], dtype=np.float64)

    def curved(self, weights: Floats, bend: Respond) -> Floats:
        """The curvature of both kinds, estimated."""
        scores = self.public @ weights[:, 0]
        bends = bend(scores, -np.ones_like(scores))
        others = (self.public.T @ self.public.multiply(bends[:, None]).tocsr()).toarray()
        return np.asarray(super().curved(weights, bend) + self.public_weight * others[None], dtype=np.float64)
