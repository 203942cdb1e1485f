"""The random linear term of a perturbed objective: which columns have which noise, how large that must be for a price,
and what is drawn.

`ObjectiveNoise` is what is drawn; `pure_noise` says how large it has to be. Gaussian noise has a file of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.perturbation.defaults import FLAT_ROWS, LEAST_RIDGE, RIDGE_FACTOR, USUAL_ROWS
from privfit.mechanisms.perturbation.problem import Gradients
from privfit.privacy import PrivacyError
from privfit.privacy.parts import Additive, KNorm, Laplace, RoundedGaussian
from privfit.privacy.samplers.norms import UNIT_SD, block_norm_sds, check_fits
from privfit.schema import Norm

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[int, ...]
Kind = Literal["laplace", "linf", "l2", "blocks", "gaussian"]

PURE_KINDS = ("mixed", "laplace", "linf", "l2")
NORMS: dict[str, tuple[Kind, Norm]] = {"laplace": ("laplace", "l1"), "linf": ("linf", "linf"), "l2": ("l2", "l2")}
"""The noise of a single draw over all columns, and the norm of gradients that it protects."""
FINE = 38
"""Noise has a scale of at least 2^38 lattice steps, where 64 bits have room for it: finer costs nothing, coarser adds
to the price."""
MOST_FINE = 52
"""The largest scale times number of values, as a power of two of lattice steps: what floats hold exactly."""
MOST_UNIT = 1000
"""The finest lattice, as a power of two: what a float can be divided by."""
MOST_LAPLACE = 53
"""The largest scale times number of values of Laplace noise, as a power of two: farther out 64 bits would cut it."""
SAFE = 1 - 1e-12
"""Shares are multiplied by this, so that rounding in floats never makes noise smaller than proved."""
ENOUGH = 1 + 1e-6
"""Ridges are multiplied by this, for the same reason."""
SAFELY = 1 + 1e-9
"""Bounds are multiplied by this, for rounding in their own computation."""
NOISE_BITS = 80
"""Objective noise is longer than planned with a probability of at most 2^-80: part of the stated 2^-64."""
NORMAL_TAIL = 10.6
"""exp(-10.6^2 / 2) < 2^-81."""
WIDE, LARGEST_GROUP = 200, 2000
"""A block with more values has a draw of its own, a group with more is divided: together they would have hardly less
noise, and take long to draw. classifiers.py --only alone measured no groups at all."""


@dataclass(frozen=True)
class Price:
    """Epsilon and delta of objective noise, and the epsilons of pure steps beside it where it is Gaussian."""

    epsilon: float
    delta: float = 0.0
    beside: tuple[float, ...] = ()


@dataclass(frozen=True)
class NoiseGroup:
    """Some of the columns, and the noise on their weights, which is one draw.

    `sensitivity` is how far one person changes the sum of their gradients, in the norm of the noise. `blocks` are the
    sizes of the blocks of a block norm, one after the other; empty for other noise.
    """

    columns: Columns
    kind: Kind
    scale: float
    sensitivity: float
    blocks: tuple[int, ...] = ()

    def sds(self, classes: int) -> Floats:
        """The standard deviation of the noise on a weight of each column, beside others of its block."""
        if not self.blocks:
            return np.full(len(self.columns), self.scale * UNIT_SD[self.kind](len(self.columns) * classes))
        return self.scale * np.repeat(block_norm_sds(self.blocks)[0], [size // classes for size in self.blocks])

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


@dataclass(frozen=True)
class ObjectiveNoise:
    """The noise of a perturbed objective.

    `equal_sums` are blocks of columns whose noise has one sum for all of them, of standard deviation `sum_sd`, in place
    of a sum of each: the gradients of a row have the same sum over every such block.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 and 3.
    """

    kind: str
    groups: tuple[NoiseGroup, ...]
    classes: int
    delta: float = 0.0
    equal_sums: tuple[tuple[int, int], ...] = ()
    sum_sd: float = 0.0

    values: int = field(init=False, repr=False, compare=False)
    """How many values are drawn."""
    sds: Floats = field(init=False, repr=False, compare=False)
    """The standard deviation of the noise on a weight of each column, beside others of its block: what all of them
    share is left out.
    """
    sd: float = field(init=False, repr=False, compare=False)
    """The size of the noise on one value: the root of its mean square."""
    unit: int = field(init=False, repr=False, compare=False)
    """How many steps of the lattice, on which noise is drawn, make 1."""
    lattice_cost: float = field(init=False, repr=False, compare=False)
    """What the lattice adds to the price: all steps of Lemma 4 over their scales."""
    lattice_error: float = field(init=False, repr=False, compare=False)
    """How far, in L2, noise on the lattice lies at most from the real-valued noise that it stands for.

    Guarantee: docs/proofs/perturbation.md, Lemma 4.
    """
    bound: float = field(init=False, repr=False, compare=False)
    """A length that the noise exceeds, in L2, with a probability of at most 2^-80."""

    def __post_init__(self) -> None:
        keep, groups, classes = object.__setattr__, self.groups, self.classes
        keep(self, "values", sum(len(group.columns) for group in groups) * classes)
        keep(self, "sds", self._in_order(np.concatenate([group.sds(classes) for group in groups])))
        keep(self, "sd", float(self.sds.max() * math.sqrt(np.mean((self.sds / self.sds.max()) ** 2))))
        keep(self, "unit", self._unit())
        keep(self, "lattice_cost", sum(group.steps(classes) / (group.scale * self.unit) for group in groups))
        square = float(sum(len(group.columns) * (2 + max(group.blocks, default=0)) for group in groups))
        if self.equal_sums:  # half a step of each value counts in the sum
            widths = [stop - start for start, stop in self.equal_sums]
            square += (self._sum_factor * sum(widths) / 2) ** 2 * sum(1 / width for width in widths)
        keep(self, "lattice_error", math.sqrt(classes * square) / self.unit)
        keep(self, "bound", self._bound())

    def ridge_without_cost(self, gradients: Gradients, epsilon: float) -> float:
        """The ridge from which on the log-determinant term costs nothing beside this noise, made for these gradients.

        For Gaussian noise: where a row without slope has no more curvature than its calibration has set aside.

        Guarantee: docs/proofs/perturbation.md, Theorems 2 and 3.
        """
        if self.kind != "gaussian":
            adds_up = self.kind == "laplace" or gradients.coupling == "one"
            more = ENOUGH + 2 * self.lattice_cost / epsilon
            return gradients.self_bound / epsilon * more if adds_up else math.inf
        loss, set_aside = gradients.loss, epsilon * FLAT_ROWS / gradients.rows_per_person
        if loss.taper is None or gradients.coupling != "one" or not loss.one_sided:
            return math.inf
        return loss.taper * gradients.slope_norm["linf"] * gradients.norms.l2**2 / set_aside * ENOUGH

    # -- the lattice, and how long noise on it is -----------------------------------------------------

    def _unit(self) -> int:
        """A power of two, so that the noise is far coarser than its lattice and fits 64 bits."""
        scales = [min(max(group.scale, 1e-300), 1e300) for group in self.groups]
        sizes = [len(group.columns) * self.classes + 2 for group in self.groups]
        fine = FINE - math.ceil(math.log2(min(scales)))
        held = MOST_FINE - math.ceil(math.log2(max(scale * size for scale, size in zip(scales, sizes, strict=True))))
        return 1 << max(0, min(fine, held, MOST_UNIT))

    def _bound(self) -> float:
        """Guarantee: docs/proofs/perturbation.md, Lemma 9."""
        if self.delta:
            sd = math.sqrt(self.largest_variance())
            return sd * (math.sqrt(self.values) + NORMAL_TAIL) + self.lattice_error
        nats = (NOISE_BITS + math.log2(len(self.groups))) * math.log(2.0)
        squares = 0.0
        for group in self.groups:
            size, steps = len(group.columns) * self.classes, group.steps(self.classes)
            lattice = steps / (group.scale * self.unit)
            tail = nats + 2 * lattice
            norm = size + math.sqrt(2 * size * tail) + tail + lattice  # in the group's own norm, in scales
            blocks = {"linf": size, "blocks": len(group.blocks)}.get(group.kind, 1)
            squares += blocks * (norm * group.scale * (1 + steps / (group.sensitivity * self.unit))) ** 2
        return math.sqrt(squares) * SAFELY + self.lattice_error

    # -- the draw ----------------------------------------------------------------------------------

    def parts(self) -> tuple[Additive, ...]:
        """What is drawn, on a lattice that is far finer than the noise. Shares of epsilon are not stated: the groups
        are calibrated together, with the log-determinant term.
        """
        found = []
        for group in self.groups:
            size, sensitivity = len(group.columns) * self.classes, group.sensitivity * self.unit
            scale = group.scale * self.unit * (1 + group.steps(self.classes) / sensitivity)
            found.append(additive(group.kind, size, scale, math.ceil(sensitivity), self.unit, group.blocks))
        return tuple(found)

    def by_column(self, integers: Integers) -> Floats:
        """The linear term from its draws on the lattice: (columns, classes)."""
        found = self._in_order((integers / self.unit).reshape(-1, self.classes))
        blocks = [found[start:stop] for start, stop in self.equal_sums]
        together = self._sum_factor * sum(block.sum(axis=0) for block in blocks) if blocks else 0.0
        for block in blocks:
            block += together / len(block) - block.mean(axis=0)
        return found

    @property
    def _sum_factor(self) -> float:
        """What the sum of all values of blocks with equal sums is multiplied by, to become the one sum."""
        sds = self.sds
        return self.sum_sd / math.sqrt(sum(float(sds[start:stop] @ sds[start:stop]) for start, stop in self.equal_sums))

    def _in_order(self, by_group: Floats) -> Floats:
        """What stands group by group, in the order of columns."""
        order = np.concatenate([np.array(group.columns, dtype=np.intp) for group in self.groups])
        found = np.empty_like(by_group)
        found[order] = by_group
        return found

    # -- second moments ----------------------------------------------------------------------------

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
                sum_sd = group.scale * block_norm_sds(group.blocks)[1]
                found.append(([block.tolist() for block in blocks if len(block) > 1], sum_sd))
        return found


def additive(
    kind: Kind, size: int, scale: float, sensitivity: float, unit: int, blocks: tuple[int, ...] = ()
) -> Additive:
    """Noise of this kind on so many values. Noise that does not fit 64 bits is refused: in an objective, unlike on a
    release, cutting it off is no post-processing.
    """
    if kind != "laplace":
        check_fits("l2" if kind == "gaussian" else kind, size, scale)
    elif not (size + 1) * scale <= 2.0**MOST_LAPLACE:
        raise PrivacyError(
            f"Laplace noise on {size} values with scale {scale:.3g} was asked for, and it does not fit 64-bit "
            "integers. Use a larger epsilon, or a loss and a target in larger units."
        )
    if kind == "laplace":
        return Laplace(size=size, scale=scale, sensitivity=sensitivity, unit=unit)
    if kind == "gaussian":
        return RoundedGaussian(size=size, scale=scale, sensitivity=sensitivity, unit=unit)
    return KNorm(norm=kind, blocks=blocks, size=size, scale=scale, sensitivity=sensitivity, unit=unit)


def automatic_ridge(gradients: Gradients, sd: float, n_rows: int | None) -> float:
    """The ridge of objective perturbation for noise of this standard deviation: more where noise is larger, or weights
    more, and rows fewer.

    With rows of k blocks it is 5 s sqrt(k d / (n epsilon)), where s is the scale of Laplace noise, d the number of
    weights and n that of rows.
    """
    scale = sd / math.sqrt(2.0)
    noise = scale / gradients.sensitivity["l1"]  # about one over epsilon
    ratio = gradients.values * noise / (n_rows or USUAL_ROWS)
    least = LEAST_RIDGE * 4 * gradients.smoothness * gradients.norms.l2**2
    return max(RIDGE_FACTOR * scale * gradients.norms.l2 * math.sqrt(ratio), least)


# -- how large pure noise has to be ----------------------------------------------------------------


def pure_noise(kind: str, gradients: Gradients, epsilon: float) -> ObjectiveNoise:
    """The noise of a pure kind that costs epsilon, the log-determinant term apart.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 and 2.
    """
    if kind == "mixed":
        if not gradients.norms.blocks:
            raise PrivacyError("noise='mixed' was given for features without blocks of columns. Use 'l2' or 'auto'.")
        return ObjectiveNoise(kind, _block_norm_noise(gradients, epsilon), gradients.classes)
    drawn, norm = NORMS[kind]
    sensitivity, columns = gradients.sensitivity[norm], tuple(range(gradients.norms.columns))
    return ObjectiveNoise(kind, (NoiseGroup(columns, drawn, sensitivity / epsilon, sensitivity),), gradients.classes)


def _block_norm_noise(gradients: Gradients, epsilon: float) -> tuple[NoiseGroup, ...]:
    """Blocks of about the same width have one draw in the block norm together; epsilon is shared among such groups so
    that the mean square of all values is least.

    A group of n values with noise of size a / (its share of epsilon) adds n a^2 / share^2: least for shares
    proportional to the cube root of n a^2. Then the sum of these roots counts, and groups are chosen so that it is
    least. A block alone has Laplace noise; a group of columns that stand alone has L-infinity noise.
    """
    norms, classes = gradients.norms, gradients.classes
    neighbours = gradients.sensitivity["linf"] / gradients.gradient_norm["linf"]
    singles: list[Columns] = [(column,) for column in norms.singles]
    blocks: list[Columns] = [tuple(range(*ends)) for ends in norms.blocks]
    if classes == 1:  # then the gradient of a single column is as large as that of a block
        singles, blocks = [], singles + blocks
    together = [singles] * bool(singles) + _grouped(blocks, classes)
    groups = [_group(own, neighbours, gradients) for own in together]
    largest = max(group.sensitivity for group in groups)
    sizes = [float(((group.sds(classes) / largest) ** 2).sum()) ** (1 / 3) for group in groups]
    return tuple(
        replace(group, scale=group.sensitivity / (size / sum(sizes) * epsilon * SAFE))
        for group, size in zip(groups, sizes, strict=True)
    )


def _group(own: list[Columns], neighbours: float, gradients: Gradients) -> NoiseGroup:
    """These blocks with one draw of noise, as if epsilon were 1."""
    columns = tuple(column for block in own for column in block)
    alone = len(columns) == len(own)
    sensitivity = neighbours * gradients.slope_norm["linf" if alone else "l1"]
    if alone or len(own) == 1:
        return NoiseGroup(columns, "linf" if alone else "laplace", sensitivity, sensitivity)
    sizes = tuple(len(block) * gradients.classes for block in own)
    return NoiseGroup(columns, "blocks", sensitivity, sensitivity, sizes)


def _grouped(blocks: list[Columns], classes: int) -> list[list[Columns]]:
    """Blocks in groups that have about the least noise: those of one width are together, with those of the next widths
    if that is less. By dynamic programming over widths.
    """
    alone = [[block] for block in blocks if len(block) * classes > WIDE]
    by_width: dict[int, list[Columns]] = {}
    for block in sorted((block for block in blocks if len(block) * classes <= WIDE), key=len):
        by_width.setdefault(len(block) * classes, []).append(block)
    least, starts = [0.0], [0]
    for end in range(1, len(by_width) + 1):  # what the first widths cost, and where their last group begins
        costs = np.array(least) + _costs(by_width, end)
        starts.append(int(costs.argmin()))
        least.append(float(costs.min()))
    own, groups, end = list(by_width.values()), alone, len(by_width)
    while end:
        group = [block for kind in own[starts[end] : end] for block in kind]
        pieces = math.ceil(sum(map(len, group)) * classes / LARGEST_GROUP) if len(group[-1]) > 1 else 1
        groups += [group[piece::pieces] for piece in range(pieces)]
        end = starts[end]
    return groups[::-1]


def _costs(by_width: dict[int, list[Columns]], end: int) -> Floats:
    """The cube root of about the sum over columns of the squared noise in a group from each width to before `end`: an
    estimate of the standard deviations of the block norm.
    """
    widths, many = np.array(list(by_width)[:end]), np.array([len(own) for own in by_width.values()][:end])
    size, count = (np.cumsum((many * each)[::-1])[::-1] for each in (np.maximum(widths - 1, 1), 1))
    each = np.where(widths == 1, 1 / 3, 2 * widths / ((widths + 1) * (widths + 2)))
    squares = (size + 2) * (size + 3) * np.cumsum((many * each)[::-1])[::-1]
    if widths[-1] == 1:  # L-infinity noise
        squares[-1] = size[-1] * (size[-1] + 1) * (size[-1] + 2) / 3
    elif count[-1] == 1:  # Laplace noise
        squares[-1] = 2 * widths[-1]
    return np.asarray(np.cbrt(squares))
