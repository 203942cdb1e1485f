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
from privfit.privacy.octahedra import check_octahedra, octahedra_sds, octahedra_sum_sd
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
WIDE = 200
MANY_PEOPLE, MOST_PEOPLE = 16, 2000
MOST_TOGETHER = 2000
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
        """The standard deviation of the noise on a weight of each column, beside others of its block."""
        if not self.widths:
            return np.full(len(self.columns), self.scale * value_sd(self.noise, len(self.columns) * classes))
        return self.scale * np.repeat(octahedra_sds(self.widths), [width // classes for width in self.widths])

    def steps(self, classes: int) -> int:
        """By how many steps of the lattice rounding can lengthen a move, in the norm of the noise; none for noise that is drawn as a real number and rounded.

        Guarantee: docs/proofs/perturbation.md, Lemma 4.
        """
        return {"laplace": len(self.columns) * classes, "linf": 1, "octahedra": 2 * max(self.widths, default=0) - 1}.get(self.noise, 0)


@dataclass(frozen=True)
class Tilt:
    """The noise of a perturbed objective.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 and 3.
    """

    kind: str
    parts: tuple[Part, ...]
    classes: int
    delta: float = 0.0
    tied: tuple[tuple[int, int], ...] = ()
    """Blocks of columns whose noise has one sum for all of them in place of a sum of each: no row can pull their sums apart."""
    sum_sd: float = 0.0
    """The standard deviation of that sum."""

    @property
    def sds(self) -> Floats:
        """The standard deviation of the noise on a weight of each column, beside others of its block: what all of them share is left out."""
        return self._in_order(np.concatenate([part.sds(self.classes) for part in self.parts]))

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
        """The largest eigenvalue of the covariance: contrasts within blocks, single columns and the one sum do not depend on each other."""
        sums = [sum_sd**2 * sum(1 / len(columns) for columns in blocks) for blocks, sum_sd in self._with_one_sum()]
        return max([float((self.sds**2).max()), *sums])

    def _with_one_sum(self) -> list[tuple[list[list[int]], float]]:
        """Blocks of columns whose noise has the same sum, and the standard deviation of that: those that are tied, and those of each part with octahedra."""
        found = [([list(range(*ends)) for ends in self.tied], self.sum_sd)] if self.tied else []
        for part in self.parts:
            if part.widths:
                blocks = np.split(np.array(part.columns), np.cumsum(part.widths)[:-1])
                found.append(([block.tolist() for block in blocks if len(block) > 1], part.scale * octahedra_sum_sd(part.widths)))
        return found

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

    @property
    def blur(self) -> float:
        """How far, in L2, noise on the lattice lies at most from the real-valued noise that it stands for.

        Guarantee: docs/proofs/perturbation.md, Lemma 4.
        """
        square = float(sum(len(part.columns) * (2 + max(part.widths, default=0)) for part in self.parts))
        if self.tied:  # half a step of each value counts in the sum
            widths = [stop - start for start, stop in self.tied]
            square += (self._stretch_of_sums * sum(widths) / 2) ** 2 * sum(1 / width for width in widths)
        return math.sqrt(self.classes * square) / self.unit

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
        found = self._in_order(flat.reshape(-1, self.classes))
        blocks = [found[start:stop] for start, stop in self.tied]
        together = self._stretch_of_sums * sum(block.sum(axis=0) for block in blocks) if blocks else 0.0
        for block in blocks:
            block += together / len(block) - block.mean(axis=0)
        return found

    @property
    def _stretch_of_sums(self) -> float:
        """What the sum of all tied values is multiplied by, to become the one sum."""
        sds = self.sds
        return self.sum_sd / math.sqrt(sum(float(sds[start:stop] @ sds[start:stop]) for start, stop in self.tied))

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


checks = {"laplace": _check_laplace, "linf": check_cube, "octahedra": check_octahedra, "l2": check_ball, "normal": check_ball}


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
        if gradients.people > MOST_PEOPLE:
            raise PrivacyError(
                f"noise='gaussian' was given with rows_per_person={gradients.people}; it adds up the chances of all ways in which so many rows can pull, and gains nothing. Use 'auto'."
            )
        flat = (epsilon - sum(beside)) * FLAT_CORNERS / gradients.people if bend_cost is None else 0.0
        least = least_scale(lambda sd: objective_delta(gradients, left, 1 / sd, flat, beside), delta * SAFE, 1 / left)
        return _normal(gradients, least / SAFE, delta)
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
    """Blocks in groups that have about the least noise: those of one width are together, with those of the next widths if that is less.

    A very wide block stays alone, and a very large group is dealt out to several: together they would have hardly less noise, and take long to draw.
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
    """The cube root of about the sum over columns of the squared noise in a group from each width to before `end`; see `octahedra_sds`, of which this is an estimate."""
    widths, many = np.array(list(by_width)[:end]), np.array([len(own) for own in by_width.values()][:end])
    size, count = (np.cumsum((many * each)[::-1])[::-1] for each in (np.maximum(widths - 1, 1), 1))
    each = np.where(widths == 1, 1 / 3, 2 * widths / ((widths + 1) * (widths + 2)))
    squares = (size + 2) * (size + 3) * np.cumsum((many * each)[::-1])[::-1]
    if widths[-1] == 1:  # a cube
        squares[-1] = size[-1] * (size[-1] + 1) * (size[-1] + 2) / 3
    elif count[-1] == 1:  # Laplace noise
        squares[-1] = 2 * widths[-1]
    return np.asarray(np.cbrt(squares))


def _normal(gradients: Gradients, ratio: float, delta: float) -> Tilt:
    """Normal noise, whose standard deviation is `ratio` times the largest gradient of a row when both are measured block by block.

    A row moves the sums of all blocks alike, by its slope, and within a block of n columns by a vector of squared length 1 - 1 / n at most. With standard deviation s_j in block j, and s on the sum, a row's gradient has the squared
    length of its slope times 1 / s^2 plus the sum of (1 - 1 / n_j) / s_j^2. The mean square over all directions is least for s_j^2 proportional to one over the root of n_j. The sum is one number that all rows
    tell of, where a column is told of by one in n rows: it counts as one of so many, and has more noise.
    """
    norms, classes = gradients.norms, gradients.classes
    reach = gradients.sensitivity("l2")
    if not (norms.singles or norms.blocks):
        return Tilt("gaussian", (Part(tuple(range(norms.columns)), "normal", ratio * gradients.of_one_row("l2"), reach),), classes, delta)
    widths = [stop - start for start, stop in norms.blocks]
    of_sum = len(widths) / sum(widths) if widths else 0.0
    total = len(norms.singles) + sum((width - 1) / math.sqrt(width) for width in widths) + math.sqrt(of_sum)
    size = ratio * gradients.of_slopes("l2") * math.sqrt(total)
    by_width: dict[int, list[int]] = {}
    for block in [(column,) for column in norms.singles] + [tuple(range(*ends)) for ends in norms.blocks]:
        by_width.setdefault(len(block), []).extend(block)
    parts = tuple(Part(tuple(columns), "normal", size * width**-0.25, reach) for width, columns in by_width.items())
    return Tilt("gaussian", parts, classes, delta, norms.blocks, size * of_sum**-0.25 if widths else 0.0)


def candidates(gradients: Gradients, delta: float) -> tuple[str, ...]:
    """The kinds of noise that make sense for these gradients."""
    kinds = ["laplace", "linf", "l2"]
    if gradients.norms.blocks:
        kinds.append("mixed")
    return (*kinds, "gaussian") if delta > 0 and gradients.people <= MANY_PEOPLE else tuple(kinds)


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
