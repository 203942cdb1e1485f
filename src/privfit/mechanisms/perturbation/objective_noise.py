"""The random linear term of a perturbed objective: which columns have which noise, and what it is drawn from.

calibration.py says how large it has to be, and which kind is least for a schema.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Draws, PrivacyError
from privfit.privacy.parts import Additive, KNorm, Laplace, RoundedGaussian
from privfit.privacy.samplers.norms import block_norm_sds, block_norm_sum_sd, check_fits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kind = Literal["laplace", "linf", "l2", "blocks", "gaussian"]

FINE = 38
"""Noise has a scale of at least 2^38 lattice steps, where 64 bits have room for it: finer costs nothing, coarser adds
to the price."""
MOST_FINE = 52
"""The largest scale times number of values, as a power of two of lattice steps: what floats hold exactly."""
MOST_UNIT = 1000
"""The finest lattice, as a power of two: what a float can be divided by."""
MOST_LAPLACE = 53
SAFE = 1 - 1e-12
"""Shares are multiplied by this, so that rounding in floats never makes noise smaller than proved."""


@dataclass(frozen=True)
class NoiseGroup:
    """Some of the columns, and the noise on their weights, which is one draw.

    `sensitivity` is how far one person changes the sum of their gradients, in the norm of the noise. `blocks` are the
    sizes of the blocks of a block norm, one after the other; empty for other noise.
    """

    columns: tuple[int, ...]
    kind: Kind
    scale: float
    sensitivity: float
    blocks: tuple[int, ...] = ()

    def sds(self, classes: int) -> Floats:
        """The standard deviation of the noise on a weight of each column, beside others of its block."""
        if not self.blocks:
            one = self._typed(len(self.columns) * classes)
            return np.full(len(self.columns), self.scale * one.unit_sd)
        return self.scale * np.repeat(block_norm_sds(self.blocks), [size // classes for size in self.blocks])

    def steps(self, classes: int) -> int:
        """By how many steps of the lattice rounding can lengthen a change, in the norm of the noise; none for noise
        that is drawn as a real number and rounded.

        Guarantee: docs/proofs/perturbation.md, Lemma 4.
        """
        return {
            "laplace": len(self.columns) * classes,
            "linf": 1,
            "blocks": 2 * max(self.blocks, default=0) - 1,
        }.get(self.kind, 0)

    def part(self, classes: int, unit: int) -> Additive:
        """The recipe of the draw on a lattice of so many steps to 1."""
        size, scale = len(self.columns) * classes, self.scale * unit * (1 + self._lengthening(classes, unit))
        check_held(self.kind, size, scale)
        return self._typed(size, scale=scale, sensitivity=math.ceil(self.sensitivity * unit), unit=unit)

    def _lengthening(self, classes: int, unit: int) -> float:
        return self.steps(classes) / (self.sensitivity * unit)

    def _typed(self, size: int, **facts: Any) -> Additive:
        return additive(self.kind, size, blocks=self.blocks, **facts)


@dataclass(frozen=True)
class ObjectiveNoise:
    """The noise of a perturbed objective.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 and 3.
    """

    kind: str
    groups: tuple[NoiseGroup, ...]
    classes: int
    delta: float = 0.0
    equal_sums: tuple[tuple[int, int], ...] = ()
    """Blocks of columns whose noise has one sum for all of them in place of a sum of each: the gradients of a row have
    the same sum over every such block.
    """
    sum_sd: float = 0.0
    """The standard deviation of that sum."""

    @property
    def sds(self) -> Floats:
        """The standard deviation of the noise on a weight of each column, beside others of its block: what all of them
        share is left out.
        """
        return self._in_order(np.concatenate([group.sds(self.classes) for group in self.groups]))

    @property
    def sd(self) -> float:
        """The size of the noise on one value: the root of its mean square."""
        sds = self.sds
        return float(sds.max() * math.sqrt(np.mean((sds / sds.max()) ** 2)))

    def covariance(self) -> Floats:
        """The covariance of the noise on the weights of all columns, for one predictor."""
        assert self.classes == 1
        found = np.diag(self.sds**2)
        for blocks, sum_sd in self._with_one_sum():
            shares = np.zeros(len(found))  # of the one sum
            for columns in blocks:
                found[np.ix_(columns, columns)] -= self.sds[columns[0]] ** 2 / len(columns)
                shares[columns] = 1 / len(columns)
            found += np.outer(shares, shares) * sum_sd**2
        return found

    def largest_variance(self) -> float:
        """The largest eigenvalue of the covariance: contrasts within blocks, single columns and the one sum do not
        depend on each other.
        """
        sums = [sum_sd**2 * sum(1 / len(columns) for columns in blocks) for blocks, sum_sd in self._with_one_sum()]
        return max([float((self.sds**2).max()), *sums])

    def _with_one_sum(self) -> list[tuple[list[list[int]], float]]:
        """Blocks of columns whose noise has the same sum, and the standard deviation of that: `equal_sums`, and those
        of each group with a block norm.
        """
        found = [([list(range(*ends)) for ends in self.equal_sums], self.sum_sd)] if self.equal_sums else []
        for group in self.groups:
            if group.blocks:
                blocks = np.split(np.array(group.columns), np.cumsum(group.blocks)[:-1])
                sum_sd = group.scale * block_norm_sum_sd(group.blocks)
                found.append(([block.tolist() for block in blocks if len(block) > 1], sum_sd))
        return found

    @property
    def values(self) -> int:
        """How many values are drawn."""
        return sum(len(group.columns) for group in self.groups) * self.classes

    @property
    def unit(self) -> int:
        """How many lattice steps make 1: a power of two, so that the noise is far coarser than its lattice and fits 64
        bits.
        """
        scales = [min(max(group.scale, 1e-300), 1e300) for group in self.groups]
        fits = [
            scale * (len(group.columns) * self.classes + 2) for scale, group in zip(scales, self.groups, strict=True)
        ]
        return 1 << max(
            0, min(FINE - math.ceil(math.log2(min(scales))), MOST_FINE - math.ceil(math.log2(max(fits))), MOST_UNIT)
        )

    @property
    def coarseness(self) -> float:
        """What the lattice adds to the price: all steps of Lemma 4 over their scales."""
        return sum(group.steps(self.classes) / (group.scale * self.unit) for group in self.groups)

    @property
    def lattice_error(self) -> float:
        """How far, in L2, noise on the lattice lies at most from the real-valued noise that it stands for.

        Guarantee: docs/proofs/perturbation.md, Lemma 4.
        """
        square = float(sum(len(group.columns) * (2 + max(group.blocks, default=0)) for group in self.groups))
        if self.equal_sums:  # half a step of each value counts in the sum
            widths = [stop - start for start, stop in self.equal_sums]
            square += (self._stretch_of_sums * sum(widths) / 2) ** 2 * sum(1 / width for width in widths)
        return math.sqrt(self.classes * square) / self.unit

    def parts(self) -> tuple[Additive, ...]:
        """What is drawn, on a lattice that is far finer than the noise. Shares of epsilon are not stated: the groups
        are calibrated together, with the log-determinant term.
        """
        unit = self.unit
        return tuple(group.part(self.classes, unit) for group in self.groups)

    def drawn(self, draws: Draws) -> Floats:
        """The random linear term: (columns, classes)."""
        return self.by_column(draws.add(np.zeros(self.values, dtype=np.int64)))

    def by_column(self, integers: Integers) -> Floats:
        """The linear term from its draws on the lattice: (columns, classes)."""
        found = self._in_order((integers / self.unit).reshape(-1, self.classes))
        blocks = [found[start:stop] for start, stop in self.equal_sums]
        together = self._stretch_of_sums * sum(block.sum(axis=0) for block in blocks) if blocks else 0.0
        for block in blocks:
            block += together / len(block) - block.mean(axis=0)
        return found

    @property
    def _stretch_of_sums(self) -> float:
        """What the sum of all values of blocks with equal sums is multiplied by, to become the one sum."""
        sds = self.sds
        return self.sum_sd / math.sqrt(sum(float(sds[start:stop] @ sds[start:stop]) for start, stop in self.equal_sums))

    def _in_order(self, by_group: Floats) -> Floats:
        """What stands group by group, in the order of columns."""
        order = np.concatenate([np.array(group.columns, dtype=np.intp) for group in self.groups])
        found = np.empty_like(by_group)
        found[order] = by_group
        return found


def additive(kind: Kind, size: int, blocks: tuple[int, ...] = (), **facts: Any) -> Additive:
    """Noise of this kind on so many values."""
    if kind == "laplace":
        return Laplace(size=size, **facts)
    return (
        RoundedGaussian(size=size, **facts)
        if kind == "gaussian"
        else KNorm(norm=kind, blocks=blocks, size=size, **facts)
    )


def check_held(kind: Kind, size: int, scale: float) -> None:
    """Refuse noise that does not fit 64 bits: in an objective, unlike on a release, cutting it off is no
    post-processing.
    """
    if kind != "laplace":
        check_fits("l2" if kind == "gaussian" else kind, size, scale)
    elif not (size + 1) * scale <= 2.0**MOST_LAPLACE:
        raise PrivacyError(
            f"Laplace noise on {size} values with scale {scale:.3g} was asked for, and it does not fit 64-bit whole "
            "numbers. "
            "Use a larger epsilon, or a loss and a target in larger units."
        )
