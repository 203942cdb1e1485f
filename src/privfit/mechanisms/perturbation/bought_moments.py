"""Matrices of products of columns that are bought beside a perturbed objective, and the covariance that they make.

A fit that perturbs an objective releases weights alone. How far they are from those of the whole population follows
from three more things: the Hessian of the loss (the bread), the second moments of the gradients of rows (the meat), and
the covariance of the noise, which is public. `BoughtMatrices` buys the first two, each by a `MomentPart`; the
sandwich beside it puts all together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.functional.functional import check_columns
from privfit.privacy import Draws, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Additive, KNorm, Laplace
from privfit.privacy.samplers.norms import check_fits
from privfit.rows import MOMENT_UNIT, CachedDesign, response_moments
from privfit.rows.fixed_point import RowResponse
from privfit.schema import Geometry, RowNorms

Floats = NDArray[np.float64]

FOR_BREAD, FOR_MEAT = Fraction(20, 100), Fraction(5, 100)
"""Shares of epsilon for the Hessian and for the second moments of gradients. More of the first identifies more
coefficients and undoes more shrinkage; both leave less for the weights. Beside 14% and 6%, on three columns with a
correlation of .9, 50,000 rows and epsilon 1, 95% and not 88% of coefficients were identified."""


@dataclass(frozen=True)
class MomentPart:
    """Noise on the sums over rows of h x x', where h is from 0 to 1 and x an encoded row: one value per two columns
    that some row has both of.

    `level` multiplies h afterwards: what 1 means.

    Guarantee: docs/proofs/bought-moments.md, Theorem 1.
    """

    geometry: Geometry
    part: Additive
    level: float = 1.0

    @classmethod
    def planned(cls, facts: PublicFacts, epsilon: Fraction, purpose: str, level: float = 1.0) -> MomentPart:
        """The noise that is least for this schema and this epsilon: independent, or L-infinity in one draw."""
        geometry, parameters = facts.geometry, facts.parameters
        check_columns(geometry)
        size = len(distinct_places(geometry)[0])
        times = (2 if parameters.adjacency == "replace-one" else 1) * int(parameters.rows_per_person) * MOMENT_UNIT
        entries = geometry.n_blocks + geometry.intercept
        sensitivity = times * (entries * (entries + 1) // 2)
        part: Additive = Laplace(
            size=size,
            scale=laplace_scale(sensitivity, epsilon),
            sensitivity=sensitivity,
            unit=MOMENT_UNIT,
            purpose=purpose,
            epsilon=float(epsilon),
        )
        together = KNorm(
            norm="linf",
            size=size,
            scale=laplace_scale(times, epsilon),
            sensitivity=times,
            unit=MOMENT_UNIT,
            purpose=purpose,
            epsilon=float(epsilon),
        )
        if together.sd < part.sd:
            check_fits("linf", size, together.scale)
            part = together
        return cls(geometry, part, level)

    def drawn(
        self, design: CachedDesign, weights: Floats, respond: RowResponse, draws: Draws, power: int = 1
    ) -> Floats:
        """The matrix with noise, for released weights and a response of rows that is from 0 to 1; rows with weights
        count by this power of them.
        """
        rows, columns = distinct_places(self.geometry)
        noisy = draws.add(response_moments(design, weights, respond, power)[rows, columns])
        found = np.zeros((self.geometry.n_columns, self.geometry.n_columns))
        found[rows, columns] = found[columns, rows] = noisy * (self.level / self.part.unit)
        return found

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on an entry."""
        return self.level * self.part.sd


@dataclass(frozen=True)
class BoughtMatrices:
    """The Hessian and the second moments of gradients, bought in this order at released weights.

    Guarantee: docs/proofs/bought-moments.md, Theorem 2.
    """

    bread: MomentPart
    meat: MomentPart

    @classmethod
    def planned(cls, facts: PublicFacts, most_curvature: float, most_square: float = 1.0) -> BoughtMatrices:
        """Their noise, for rows that count so much at most, by shares of the epsilon of the whole release."""
        epsilon = exact(facts.parameters.budget.epsilon)
        bread = MomentPart.planned(facts, epsilon * FOR_BREAD, "Hessian, for intervals", most_curvature)
        meat = MomentPart.planned(facts, epsilon * FOR_MEAT, "gradients, for intervals", most_square)
        return cls(bread, meat)

    @property
    def parts(self) -> tuple[Additive, Additive]:
        """What is drawn."""
        return self.bread.part, self.meat.part

    def drawn(
        self, design: CachedDesign, weights: Floats, curvature: RowResponse, square: RowResponse, draws: Draws
    ) -> tuple[Floats, Floats]:
        """Both with noise; rows with weights count by the squares of these in the second."""
        bread = self.bread.drawn(design, weights, curvature, draws)
        return bread, self.meat.drawn(design, weights, square, draws, power=2)


def distinct_places(geometry: Geometry) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where products of two columns stand, each once, that are not zero in every row: levels of a category never meet,
    and of splines only neighbours do.
    """
    there = np.triu(np.ones((geometry.n_columns, geometry.n_columns), dtype=bool))
    for block in geometry.blocks:
        own, width = slice(block.start, block.stop), block.width
        if width > 1:
            there[own, own] = np.eye(width, dtype=bool)
        if block.kind.startswith("spline"):
            there[own, own] |= np.eye(width, k=1, dtype=bool)
        if block.kind.endswith("-or-missing"):
            there[block.start : block.stop - 1, block.stop - 1] = False
    rows, columns = np.nonzero(there)
    return rows, columns


def free_directions(geometry: Geometry) -> Floats:
    """An orthonormal basis of the weights that a fit with this geometry can have, one column each: blocks of columns
    have equal sums.
    """
    norms = RowNorms.of(geometry)
    found = [np.eye(geometry.n_columns)[:, list(norms.singles)]]
    together = np.zeros((geometry.n_columns, 1))
    for start, stop in norms.blocks:
        own = np.zeros((geometry.n_columns, stop - start - 1))
        own[start:stop] = helmert(stop - start).T
        found.append(own)
        together[start:stop] = 1 / (stop - start)
    if norms.blocks:
        found.append(together / np.linalg.norm(together))
    return np.hstack(found)


def shown_coefficients(geometry: Geometry, centred: bool) -> Floats:
    """The matrix that makes coefficients in the units of the table, and last the intercept, of weights per encoded
    column; `centred` moves what the columns of a block have in common to the intercept.
    """
    first, lines = int(geometry.intercept), []
    blocks = RowNorms.of(geometry).blocks if centred and not first else ()
    for unit in np.eye(geometry.n_columns):
        intercept = float(unit[0]) if first else 0.0
        for start, stop in blocks:
            mean = float(unit[start:stop].mean())
            unit[start:stop] -= mean
            intercept += mean
        lines.append(np.append(*geometry.table_units(unit[first:], intercept)))
    return np.array(lines).T
