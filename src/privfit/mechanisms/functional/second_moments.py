"""Second moments of a table's columns, for whatever can be computed from means and covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.functional.defaults import KIND_MARGIN
from privfit.mechanisms.functional.functional import check_columns
from privfit.mechanisms.functional.problem import (
    ExactMoments,
    MomentsPlan,
    moments_event,
    noise_level,
)
from privfit.privacy import Draws, PrivacyError
from privfit.rows import Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import WEIGHTED_STEP, Moments, MomentValues, WeightedMoments

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Covariances:
    """Means and covariances of the columns that `Geometry.feature_names` names, in chosen units."""

    means: Floats
    matrix: Floats
    n_rows: float
    noise: float
    """The standard deviation of the noise in an entry of the encoded columns' covariance matrix."""


@dataclass(frozen=True)
class SecondMoments(Mechanism[float | None, MomentsPlan, ExactMoments, MomentValues]):
    """Release sums and products of all columns once, with the noise that is least for the schema.

    Products that are equal, constant or zero in every row are released once or not at all: two levels of a category
    never meet, and the square of an indicator is its sum. A target is not needed and not read. The problem is the bound
    of the rows' weights, or None where rows count alike.

    See Also
    --------
    FunctionalMechanism : Moments with a target, and the regression that they make.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/moments.md, Theorems 1, 2, 4, 5 and 7, and docs/proofs/pca.md; with weights
    docs/proofs/sample-weights.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import privfit as pf
    >>> from privfit.mechanisms import SecondMoments
    >>> schema = pf.Schema([pf.Numeric("age", 0, 100), pf.Category("sector", ["public", "private"])])
    >>> SecondMoments().geometry(schema, None).feature_names
    ('age', 'sector_public', 'sector_private')
    """

    name = "second moments"
    takes_weights = True

    def geometry(self, schema: Schema, problem: float | None = None, numeric: Numbers = "slope") -> Geometry:
        """Numbers as they are, categories as indicators, and a constant for the sums."""
        geometry = schema.geometry(numeric="slope", target=False, gaps="slope")
        check_columns(geometry)
        return geometry

    def plan(self, facts: PublicFacts, problem: float | None = None) -> MomentsPlan:
        """The first of Laplace, L-infinity and, with a delta, Gaussian noise, or one that is clearly smaller."""
        kinds = ("laplace", "linf", *(["gaussian"] if facts.parameters.budget.delta > 0 else []))
        best: MomentsPlan | None = None
        for kind in kinds:
            try:
                plan = self._plan_with(kind, facts, problem)
            except PrivacyError:  # more noise than this kind can hold
                if kind == kinds[-1] and best is None:
                    raise
                continue
            if best is None or _noise(plan) < KIND_MARGIN * _noise(best):
                best = plan
        assert best is not None
        return best

    def _plan_with(self, kind: str, facts: PublicFacts, most: float | None) -> MomentsPlan:
        moments = _moments(facts.geometry, most)
        return MomentsPlan(moments_event(self.name, moments, facts.parameters, kind), facts, moments)

    def read(self, rows: Rows, plan: MomentsPlan, problem: float | None, draws: Draws) -> ExactMoments:
        """The moments, summed exactly."""
        return ExactMoments.of(plan, rows.sum(plan.moments), rows.n_rows)

    def draw(self, data: ExactMoments, plan: MomentsPlan, draws: Draws) -> MomentValues:
        """One draw of noise on all moments."""
        return data.with_noise(plan, draws)

    def solve(self, release: Release[MomentValues], geometry: Geometry, problem: float | None) -> Covariances:
        """Means and covariances of the encoded columns as they are named: post-processing.

        Means stay where the schema allows them; where the number of rows is private, there is at least one, of the
        largest weight.
        """
        value, moments = release.value, _moments(geometry, problem)
        n_rows = max(value.n_rows, moments.scale)
        means = np.clip(value.products[0, 1:] / n_rows, -1.0, 1.0)
        matrix = value.products[1:, 1:] / n_rows - np.outer(means, means)
        noise = noise_level(moments, release.event).matrix / n_rows
        return Covariances(*_named(means, matrix, geometry), n_rows, noise)

    def describe(self, fit: Covariances, schema: Schema, geometry: Geometry) -> Description:
        """How large the noise is beside the covariances that bounds allow."""
        size = geometry.n_columns - 1
        entry = f"the noise in a covariance of two columns, scaled by their bounds to [-1, 1], has sd {fit.noise:.2g}"
        return Description(
            notes=(f"{entry}; in a variance of any direction at most about {_norm(fit.noise, size):.2g}",)
        )


def _moments(geometry: Geometry, most: float | None) -> Moments:
    """What is summed, with weights up to a bound if rows have some."""
    if most is None:
        return Moments(geometry)
    return WeightedMoments(geometry, WEIGHTED_STEP, WEIGHTED_STEP, max_weight=most)


def _noise(plan: MomentsPlan) -> float:
    return noise_level(plan.moments, plan.event).matrix


def _norm(noise: float, size: int) -> float:
    """The usual largest eigenvalue of a symmetric matrix of such noise."""
    return 2 * noise * math.sqrt(size)


def _named(means: Floats, matrix: Floats, geometry: Geometry) -> tuple[Floats, Floats]:
    """Means and covariances of one column per name, of those of encoded columns: a sign becomes two indicators."""
    turn = np.zeros((len(geometry.feature_names), len(means)))
    shift = np.zeros(len(turn))
    row = 0
    for block in geometry.blocks:
        own = np.arange(block.start, block.stop) - 1
        if block.kind == "sign":
            turn[row : row + 2, own[0]] = -0.5, 0.5
            shift[row : row + 2] = 0.5
        else:
            turn[np.arange(row, row + block.width), own] = 1.0
        row += len(block.labels)
    return turn @ means + shift, turn @ matrix @ turn.T
