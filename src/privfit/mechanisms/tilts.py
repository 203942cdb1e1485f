"""The random linear term of a perturbed objective: which shapes of noise there are, how large each has to be, and which is least for a schema."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfit.privacy import Event, Noise, PrivacyError, Terms, noised
from privfit.privacy.event import value_sd
from privfit.privacy.normal import least_scale, log_gaussian_deltas
from privfit.privacy.octahedra import octahedron_sd
from privfit.privacy.shapes import check_ball, check_cube
from privfit.statistics import Gradients, Norm

Floats = NDArray[np.float64]
Columns = tuple[int, ...]

TILTS = ("laplace", "linf", "l2", "mixed", "gaussian")
NORMS: dict[str, Norm] = {"laplace": "l1", "linf": "linf", "l2": "l2"}
FINE = 38
MOST_FINE = 52
MOST_UNIT = 1000
MOST_LAPLACE = 53
FLAT_CORNERS = 0.5
WIDE = 500
SAFE = 1 - 1e-12
ENOUGH = 1 + 1e-6


@dataclass(frozen=True)
class Part:
    """Some of the columns, and the noise on their weights. `reach` is how far one person moves their gradients, in the norm of the noise.

    `widths` are the numbers of values of its octahedra, one after the other; empty for other noise.
    """

    columns: tuple[int, ...]
    noise: str
    scale: float
    reach: float
    widths: tuple[int, ...] = ()

    def sds(self, classes: int) -> Floats:
        """The standard deviation of the noise on a weight of each column."""
        if not self.widths:
            return np.full(len(self.columns), self.scale * value_sd(self.noise, len(self.columns) * classes))
        size = sum(self.widths)
        return self.scale * np.repeat([octahedron_sd(width, size) for width in self.widths], [width // classes for width in self.widths])

    def steps(self, classes: int) -> int:
        """By how many steps of the lattice rounding can lengthen a move, in the norm of the noise; none for noise that is drawn as a real number and rounded.

        Guarantee: docs/proofs/perturbation.md, Lemma 4.
        """
        return {"laplace": len(self.columns) * classes, "linf": 1, "octahedra": max(self.widths, default=0)}.get(self.noise, 0)


@dataclass(frozen=True)
class Tilt:
    """The noise of a perturbed objective.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 and 3.
    """

    kind: str
    parts: tuple[Part, ...]
    classes: int
    delta: float = 0.0

    @property
    def sds(self) -> Floats:
        """The standard deviation of the noise on a weight of each column."""
        return self._in_order(np.concatenate([part.sds(self.classes) for part in self.parts]))

    @property
    def sd(self) -> float:
        """The size of the noise on one value: the root of its mean square."""
        sds = self.sds
        return float(sds.max() * math.sqrt(np.mean((sds / sds.max()) ** 2)))

    @property
    def unit(self) -> int:
        """How many lattice steps make 1: a power of two, so that the noise is far coarser than its lattice and fits 64 bits."""
        scales = [min(max(part.scale, 1e-300), 1e300) for part in self.parts]
        fits = [scale * (len(part.columns) * self.classes + 2) for scale, part in zip(scales, self.parts, strict=True)]
        return 1 << max(0, min(FINE - math.ceil(math.log2(min(scales))), MOST_FINE - math.ceil(math.log2(max(fits))), MOST_UNIT))

    @property
    def coarseness(self) -> float:
        """What the lattice adds to the price: all steps of Lemma 4 over their scales."""
        return sum(part.steps(self.classes) / (part.scale * self.unit) for part in self.parts)

    def event(self, mechanism: str, terms: Terms) -> Event:
        """The price and the noise, on a lattice that is far finer than it."""
        values = sum(len(part.columns) for part in self.parts) * self.classes
        unit = self.unit
        sizes = tuple(len(part.columns) * self.classes for part in self.parts)
        scales = tuple(part.scale * unit * (1 + part.steps(self.classes) / (part.reach * unit)) for part in self.parts)
        for part, size, scale in zip(self.parts, sizes, scales, strict=True):
            checks[part.noise](size, scale)
        several: dict[str, Any] = {"parts": sizes, "scales": scales} if len(self.parts) > 1 else {}
        return Event(
            mechanism=mechanism,
            epsilon=terms.budget.epsilon,
            delta=self.delta,
            adjacency=terms.adjacency,
            rows_per_person=int(terms.rows_per_person),
            noise="+".join(part.noise for part in self.parts),
            sensitivity=math.ceil((self.parts[0].reach if self.delta else sum(part.reach for part in self.parts)) * unit),
            scale=scales[0],
            unit=unit,
            n_values=values,
            widths=tuple(part.widths for part in self.parts) if any(part.widths for part in self.parts) else (),
            **several,
        )

    def drawn(self, noise: Noise, event: Event) -> Floats:
        """The tilt: (columns, classes)."""
        flat = noised(noise, np.zeros(event.n_values, dtype=np.int64), event) / event.unit
        return self._in_order(flat.reshape(-1, self.classes))

    def _in_order(self, by_part: Floats) -> Floats:
        """What stands part by part, in the order of columns."""
        order = np.concatenate([np.array(part.columns, dtype=np.intp) for part in self.parts])
        found = np.empty_like(by_part)
        found[order] = by_part
        return found


def _check_laplace(size: int, scale: float) -> None:
    """Refuse what 64 bits would cut off: for a tilt, unlike for noise on a release, cutting is not post-processing."""
    if not (size + 1) * scale <= 2.0**MOST_LAPLACE:
        raise PrivacyError(
            f"Laplace noise on {size} values with scale {scale:.3g} was asked for, and it does not fit 64-bit whole numbers. "
            "Use a larger epsilon, or a loss and a target in larger units."
        )


checks = {"laplace": _check_laplace, "linf": check_cube, "octahedra": check_cube, "l2": check_ball, "normal": check_ball}


def make_tilt(
    kind: str, gradients: Gradients, epsilon: float, delta: float, bend_cost: float | None, beside: tuple[float, ...] = ()
) -> Tilt:
    """The tilt of this kind that costs epsilon (and delta) for slopes and curvature: where curvature costs this much, or nothing if None.

    Normal noise may have pure steps `beside` it, of so many epsilons: then all of them together cost epsilon and delta.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 to 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    left = (epsilon - (bend_cost or 0.0)) * SAFE
    columns, classes = tuple(range(gradients.norms.columns)), gradients.classes
    if kind == "gaussian":
        flat = (epsilon - sum(beside)) * FLAT_CORNERS / gradients.people if bend_cost is None else 0.0
        least = least_scale(lambda sd: objective_delta(gradients, left, 1 / sd, flat, beside), delta * SAFE, 1 / left)
        return Tilt(kind, _normal(gradients, least / SAFE), classes, delta)
    if kind == "mixed":
        if not gradients.norms.blocks:
            raise PrivacyError("noise='mixed' was given for features without blocks of columns. Use 'l2' or 'auto'.")
        return Tilt(kind, _mixed(gradients, left), classes)
    reach = gradients.sensitivity(NORMS[kind])
    return Tilt(kind, (Part(columns, kind, reach / left, reach),), classes)


def _mixed(gradients: Gradients, epsilon: float) -> tuple[Part, ...]:
    """Blocks of about the same width have one draw of octahedra together; epsilon is shared among such groups so that the mean square of all values is least.

    A group of n values with noise of size a / (its share of epsilon) adds n a^2 / share^2: least for shares proportional to the cube root of n a^2. Then the sum of these roots counts, and groups
    are chosen so that it is least. A block alone has Laplace noise; a group of columns that stand alone has a cube.
    """
    norms, classes = gradients.norms, gradients.classes
    neighbours = gradients.sensitivity("linf") / gradients.of_one_row("linf")
    singles: list[Columns] = [(column,) for column in norms.singles]
    blocks: list[Columns] = [tuple(range(*ends)) for ends in norms.blocks]
    if classes == 1:  # then a single column reaches as far as a block
        singles, blocks = [], singles + blocks
    groups = [singles] * bool(singles) + _grouped(blocks, classes)
    parts = [_part(group, neighbours, gradients) for group in groups]
    furthest = max(part.reach for part in parts)
    sizes = [float(((part.sds(classes) / furthest) ** 2).sum()) ** (1 / 3) for part in parts]
    return tuple(replace(part, scale=part.reach / (size / sum(sizes) * epsilon * SAFE)) for part, size in zip(parts, sizes, strict=True))


def _part(group: list[Columns], neighbours: float, gradients: Gradients) -> Part:
    """These blocks with one draw of noise, as if epsilon were 1."""
    columns = tuple(column for block in group for column in block)
    alone = len(columns) == len(group)
    reach = neighbours * gradients.of_slopes("linf" if alone else "l1")
    if alone or len(group) == 1:
        return Part(columns, "linf" if alone else "laplace", reach, reach)
    return Part(columns, "octahedra", reach, reach, tuple(len(block) * gradients.classes for block in group))


def _grouped(blocks: list[Columns], classes: int) -> list[list[Columns]]:
    """Blocks in groups that have the least noise: those of one width are together, with those of the next widths if that is less.

    A very wide block stays alone: together with others it would have hardly less noise (by about 1.5 over its width), and take long to draw.
    """
    alone = [[block] for block in blocks if len(block) * classes > WIDE]
    by_width: dict[int, list[Columns]] = {}
    for block in sorted((block for block in blocks if len(block) * classes <= WIDE), key=len):
        by_width.setdefault(len(block) * classes, []).append(block)
    values = np.concatenate([[0], np.cumsum([width * len(own) for width, own in by_width.items()])])
    inverse = np.concatenate([[0.0], np.cumsum([2 * width * len(own) / ((width + 1) * (width + 2)) for width, own in by_width.items()])])
    least, starts = [0.0], [0]
    for end in range(1, len(by_width) + 1):  # what the first widths cost, and where their last group begins
        sizes = values[end] - values[:end]
        costs = np.array(least) + ((sizes + 1) * (sizes + 2) * (inverse[end] - inverse[:end])) ** (1 / 3)
        starts.append(int(costs.argmin()))
        least.append(float(costs.min()))
    own, groups, end = list(by_width.values()), alone, len(by_width)
    while end:
        groups.append([block for kind in own[starts[end] : end] for block in kind])
        end = starts[end]
    return groups[::-1]


def _normal(gradients: Gradients, ratio: float) -> tuple[Part, ...]:
    """Normal noise, whose standard deviation is `ratio` times the largest gradient of a row when both are measured block by block.

    With standard deviation s_j on block j a row's gradient has the squared length of its slope times the sum of 1 / s_j^2. The mean square over blocks of n_j columns is
    least for s_j^2 proportional to one over the root of n_j.
    """
    norms = gradients.norms
    blocks = [(column,) for column in norms.singles] + [tuple(range(*ends)) for ends in norms.blocks]
    reach = gradients.sensitivity("l2")
    if not blocks:
        return (Part(tuple(range(norms.columns)), "normal", ratio * gradients.of_one_row("l2"), reach),)
    size = ratio * gradients.of_slopes("l2") * math.sqrt(sum(math.sqrt(len(block)) for block in blocks))
    by_width: dict[int, list[int]] = {}
    for block in blocks:
        by_width.setdefault(len(block), []).extend(block)
    return tuple(Part(tuple(columns), "normal", size * width**-0.25, reach) for width, columns in by_width.items())


def candidates(gradients: Gradients, delta: float) -> tuple[str, ...]:
    """The kinds of noise that make sense for these gradients."""
    kinds = ["laplace", "linf", "l2"]
    if gradients.norms.blocks:
        kinds.append("mixed")
    return (*kinds, "gaussian") if delta > 0 else tuple(kinds)


def free_ridge(kind: str, gradients: Gradients, epsilon: float) -> float:
    """The ridge from which on curvature is free. For normal noise: where a row without slope bends no more than `make_tilt` has set aside.

    Guarantee: docs/proofs/perturbation.md, Theorems 2 and 3.
    """
    if kind == "gaussian":
        loss = gradients.loss
        if loss.taper is None or gradients.coupling != "one" or not loss.one_sided:
            return math.inf
        return loss.taper * gradients.most_slope * gradients.norms.l2**2 / (epsilon * FLAT_CORNERS / gradients.people) * ENOUGH
    lattice = make_tilt(kind, gradients, epsilon, 0.0, None).coarseness
    return gradients.free_ridge(epsilon, adds_up=kind == "laplace") * (ENOUGH + 2 * lattice / epsilon)


def objective_delta(gradients: Gradients, epsilon: float, shift: float, extra: float = 0.0, beside: tuple[float, ...] = ()) -> float:
    """An upper bound of delta for a normal tilt whose standard deviation is one over `shift` times the largest gradient of a row, and pure steps beside it.

    `extra` is what a leaving row without slope can still bend. The loss of privacy is convex in the slopes of the rows that leave and enter, so that it is largest where each
    is none or the largest one; each such corner is a Gaussian mechanism, and their deltas are added up.

    Guarantee: docs/proofs/perturbation.md, Theorem 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    losses, chances = losses_beside(beside)
    people, entering, corners = gradients.people, gradients.people if gradients.replace else 0, gradients.corners
    if not gradients.loss.one_sided:  # then none is no corner
        total = people + entering
        every = log_gaussian_deltas(epsilon - losses, np.full(losses.shape, total * shift))
        return _sum_of_exps(total * math.log(corners) + chances + every)
    left, entered = np.meshgrid(np.arange(people + 1), np.arange(entering + 1), indexing="ij")
    number = _log_choose(people, left) + _log_choose(entering, entered) + (left + entered) * math.log(corners)
    each = np.asarray(epsilon - (people - left) * extra, dtype=np.float64)
    shifts = np.broadcast_to((left + entered) * shift, (*losses.shape, *each.shape)).astype(np.float64)
    deltas = log_gaussian_deltas(each - losses[:, None, None], shifts)
    return _sum_of_exps(number + chances[:, None, None] + deltas)


def losses_beside(steps: tuple[float, ...]) -> tuple[Floats, Floats]:
    """What pure steps of so many epsilons can give away together, and the logarithm of how likely that is: each gives its epsilon away, or the same the other way.

    Losses that are nearly the same are counted as the larger one.

    Guarantee: docs/proofs/pairs.md, Theorem 2: no pure step is told apart better than such a coin.
    """
    losses, chances = np.zeros(1), np.zeros(1)
    for step in sorted(set(steps)):
        times = steps.count(step)
        up = np.arange(times + 1)
        own = _log_choose(times, up) + up * step - times * np.logaddexp(0.0, step)
        losses = (losses[:, None] + step * (2 * up - times)[None, :]).ravel()
        chances = (chances[:, None] + own[None, :]).ravel()
    if not steps:
        return losses, chances
    least = sum(steps) * 2.0**-40
    found, places = np.unique(np.ceil(losses / least), return_inverse=True)
    together = np.full(len(found), -np.inf)
    np.logaddexp.at(together, places, chances)
    return found * least, together


def _sum_of_exps(logs: Floats) -> float:
    total = float(logsumexp(logs)) + 1e-9
    return math.exp(total) if total < 700 else math.inf


def _log_choose(people: int, some: NDArray[np.int64]) -> Floats:
    """The logarithm of the number of ways to choose some of these people."""
    return np.asarray(gammaln(people + 1) - gammaln(some + 1) - gammaln(people - some + 1), dtype=np.float64)


def refuse_gaussian_without_delta(kind: str, delta: float) -> None:
    """Normal noise needs a delta."""
    if kind == "gaussian" and delta <= 0:
        raise PrivacyError("noise='gaussian' was given with delta=0; it needs a small chance to fail. Give one: delta=1e-6.")
