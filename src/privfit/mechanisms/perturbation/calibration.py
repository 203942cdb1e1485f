"""How large the noise of a perturbed objective has to be: each kind for a price, and which kinds there are for a
schema.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.perturbation.objective_noise import SAFE, Kind, NoiseGroup, ObjectiveNoise
from privfit.mechanisms.perturbation.privacy_loss import objective_delta
from privfit.privacy import PrivacyError
from privfit.privacy.gaussian import least_scale
from privfit.statistics import Gradients, Norm

Floats = NDArray[np.float64]
Columns = tuple[int, ...]

KINDS = ("laplace", "linf", "l2", "mixed", "gaussian")
NORMS: dict[str, Norm] = {"laplace": "l1", "linf": "linf", "l2": "l2"}
FLAT_CORNERS = 0.5
WIDE = 200
MANY_PEOPLE, MOST_PEOPLE = 16, 2000
MOST_TOGETHER = 2000
ENOUGH = 1 + 1e-6


def make_objective_noise(
    kind: str,
    gradients: Gradients,
    epsilon: float,
    delta: float,
    log_determinant: float | None,
    beside: tuple[float, ...] = (),
) -> ObjectiveNoise:
    """The noise of this kind that costs epsilon (and delta) together with the log-determinant term: where that costs
    this much, or nothing if None.

    Normal noise may have pure steps `beside` it, of so many epsilons: then all of them together cost epsilon and delta.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 to 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    left = (epsilon - (log_determinant or 0.0)) * SAFE
    columns, classes = tuple(range(gradients.norms.columns)), gradients.classes
    if kind == "gaussian":
        if gradients.people > MOST_PEOPLE:
            raise PrivacyError(
                f"noise='gaussian' was given with rows_per_person={gradients.people}; it adds up the chances of all "
                "ways in which so many rows can act together, and gains nothing. Use 'auto'."
            )
        flat = (epsilon - sum(beside)) * FLAT_CORNERS / gradients.people if log_determinant is None else 0.0
        least = least_scale(lambda sd: objective_delta(gradients, left, 1 / sd, flat, beside), delta * SAFE, 1 / left)
        return _normal(gradients, least / SAFE, delta)
    if kind == "mixed":
        if not gradients.norms.blocks:
            raise PrivacyError("noise='mixed' was given for features without blocks of columns. Use 'l2' or 'auto'.")
        return ObjectiveNoise(kind, _mixed(gradients, left), classes)
    sensitivity = gradients.sensitivity(NORMS[kind])
    return ObjectiveNoise(kind, (NoiseGroup(columns, _pure(kind), sensitivity / left, sensitivity),), classes)


def _pure(kind: str) -> Kind:
    """The kind of a single draw over all columns."""
    return "laplace" if kind == "laplace" else "linf" if kind == "linf" else "l2"


def _mixed(gradients: Gradients, epsilon: float) -> tuple[NoiseGroup, ...]:
    """Blocks of about the same width have one draw in the block norm together; epsilon is shared among such groups so
    that the mean square of all values is least.

    A group of n values with noise of size a / (its share of epsilon) adds n a^2 / share^2: least for shares
    proportional to the cube root of n a^2. Then the sum of these roots counts, and groups are chosen so that it is
    least. A block alone has Laplace noise; a group of columns that stand alone has L-infinity noise.
    """
    norms, classes = gradients.norms, gradients.classes
    neighbours = gradients.sensitivity("linf") / gradients.of_one_row("linf")
    singles: list[Columns] = [(column,) for column in norms.singles]
    blocks: list[Columns] = [tuple(range(*ends)) for ends in norms.blocks]
    if classes == 1:  # then the gradient of a single column is as large as that of a block
        singles, blocks = [], singles + blocks
    together = [singles] * bool(singles) + _grouped(blocks, classes)
    groups = [_group(own, neighbours, gradients) for own in together]
    furthest = max(group.sensitivity for group in groups)
    sizes = [float(((group.sds(classes) / furthest) ** 2).sum()) ** (1 / 3) for group in groups]
    return tuple(
        replace(group, scale=group.sensitivity / (size / sum(sizes) * epsilon * SAFE))
        for group, size in zip(groups, sizes, strict=True)
    )


def _group(own: list[Columns], neighbours: float, gradients: Gradients) -> NoiseGroup:
    """These blocks with one draw of noise, as if epsilon were 1."""
    columns = tuple(column for block in own for column in block)
    alone = len(columns) == len(own)
    sensitivity = neighbours * gradients.of_slopes("linf" if alone else "l1")
    if alone or len(own) == 1:
        return NoiseGroup(columns, "linf" if alone else "laplace", sensitivity, sensitivity)
    sizes = tuple(len(block) * gradients.classes for block in own)
    return NoiseGroup(columns, "blocks", sensitivity, sensitivity, sizes)


def _grouped(blocks: list[Columns], classes: int) -> list[list[Columns]]:
    """Blocks in groups that have about the least noise: those of one width are together, with those of the next widths
    if that is less.

    A very wide block stays alone, and a very large group is divided into several: together they would have hardly less
    noise, and take long to draw.
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
        pieces = math.ceil(sum(map(len, group)) * classes / MOST_TOGETHER) if len(group[-1]) > 1 else 1
        groups += [group[piece::pieces] for piece in range(pieces)]
        end = starts[end]
    return groups[::-1]


def _costs(by_width: dict[int, list[Columns]], end: int) -> Floats:
    """The cube root of about the sum over columns of the squared noise in a group from each width to before `end`; see
    `block_norm_sds`, of which this is an estimate.
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


def _normal(gradients: Gradients, ratio: float, delta: float) -> ObjectiveNoise:
    """Normal noise, whose standard deviation is `ratio` times the largest gradient of a row when both are measured
    block by block.

    A row moves the sums of all blocks alike, by its slope, and within a block of n columns by a vector of squared
    length 1 - 1 / n at most. With standard deviation s_j in block j, and s on the sum, a row's gradient has the squared
    length of its slope times 1 / s^2 plus the sum of (1 - 1 / n_j) / s_j^2. The mean square over all directions is
    least for s_j^2 proportional to one over the root of n_j. The sum is one number that all rows tell of, where a
    column is told of by one in n rows: it counts as one of so many, and has more noise.
    """
    norms, classes = gradients.norms, gradients.classes
    sensitivity = gradients.sensitivity("l2")
    if not (norms.singles or norms.blocks):
        return ObjectiveNoise(
            "gaussian",
            (NoiseGroup(tuple(range(norms.columns)), "gaussian", ratio * gradients.of_one_row("l2"), sensitivity),),
            classes,
            delta,
        )
    widths = [stop - start for start, stop in norms.blocks]
    of_sum = len(widths) / sum(widths) if widths else 0.0
    total = len(norms.singles) + sum((width - 1) / math.sqrt(width) for width in widths) + math.sqrt(of_sum)
    size = ratio * gradients.of_slopes("l2") * math.sqrt(total)
    by_width: dict[int, list[int]] = {}
    for block in [(column,) for column in norms.singles] + [tuple(range(*ends)) for ends in norms.blocks]:
        by_width.setdefault(len(block), []).extend(block)
    groups = tuple(
        NoiseGroup(tuple(columns), "gaussian", size * width**-0.25, sensitivity) for width, columns in by_width.items()
    )
    return ObjectiveNoise("gaussian", groups, classes, delta, norms.blocks, size * of_sum**-0.25 if widths else 0.0)


def candidates(gradients: Gradients, delta: float) -> tuple[str, ...]:
    """The kinds of noise that make sense for these gradients."""
    kinds = ["laplace", "linf", "l2"]
    if gradients.norms.blocks:
        kinds.append("mixed")
    return (*kinds, "gaussian") if delta > 0 and gradients.people <= MANY_PEOPLE else tuple(kinds)


def free_ridge(noise: ObjectiveNoise, gradients: Gradients, epsilon: float) -> float:
    """The ridge from which on the log-determinant term costs nothing beside noise that was made for these gradients.

    For normal noise: where a row without slope has no more curvature than `make_objective_noise` has set aside.

    Guarantee: docs/proofs/perturbation.md, Theorems 2 and 3.
    """
    if noise.kind == "gaussian":
        loss = gradients.loss
        if loss.taper is None or gradients.coupling != "one" or not loss.one_sided:
            return math.inf
        return (
            loss.taper
            * gradients.most_slope
            * gradients.norms.l2**2
            / (epsilon * FLAT_CORNERS / gradients.people)
            * ENOUGH
        )
    return gradients.free_ridge(epsilon, adds_up=noise.kind == "laplace") * (ENOUGH + 2 * noise.coarseness / epsilon)


def refuse_gaussian_without_delta(kind: str, delta: float) -> None:
    """Normal noise needs a delta."""
    if kind == "gaussian" and delta <= 0:
        raise PrivacyError(
            "noise='gaussian' was given with delta=0; it needs a small chance to fail. Give one: delta=1e-6."
        )
