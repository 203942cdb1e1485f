"""The random linear term of a perturbed objective: which shapes of noise there are, how large each has to be, and which is least for a schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfit.privacy import Event, Noise, PrivacyError, Terms, noised
from privfit.privacy.event import value_sd
from privfit.privacy.normal import least_scale, log_gaussian_deltas
from privfit.privacy.shapes import check_ball, check_cube
from privfit.statistics import Gradients, Norm

Floats = NDArray[np.float64]

TILTS = ("laplace", "linf", "l2", "mixed", "gaussian")
NORMS: dict[str, Norm] = {"laplace": "l1", "linf": "linf", "l2": "l2"}
FINE = 38
MOST_FINE = 52
MOST_LAPLACE = 53
FLAT_CORNERS = 0.5
SAFE = 1 - 1e-12
ENOUGH = 1 + 1e-6


@dataclass(frozen=True)
class Part:
    """Some of the columns, and the noise on their weights. `reach` is how far one person moves their gradients, in the norm of the noise."""

    columns: tuple[int, ...]
    noise: str
    scale: float
    reach: float


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
    def sd(self) -> float:
        """The size of the noise on one value: the root of its mean square."""
        sizes = [len(part.columns) for part in self.parts]
        sds = np.array([value_sd(part.noise, len(part.columns) * self.classes) * part.scale for part in self.parts])
        return float(sds.max() * math.sqrt(np.average((sds / sds.max()) ** 2, weights=sizes)))

    def event(self, mechanism: str, terms: Terms) -> Event:
        """The price and the noise, on a lattice that is far finer than it."""
        values = sum(len(part.columns) for part in self.parts) * self.classes
        unit = _unit(min(part.scale for part in self.parts), values)
        sizes = tuple(len(part.columns) * self.classes for part in self.parts)
        scales = tuple(
            part.scale * unit * (1 + _steps(part.noise, size) / (part.reach * unit)) for part, size in zip(self.parts, sizes, strict=True)
        )
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
            **several,
        )

    def drawn(self, noise: Noise, event: Event) -> Floats:
        """The tilt: (columns, classes)."""
        flat = noised(noise, np.zeros(event.n_values, dtype=np.int64), event) / event.unit
        order = np.concatenate([np.array(part.columns, dtype=np.intp) for part in self.parts])
        tilt = np.empty((len(order), self.classes))
        tilt[order] = flat.reshape(len(order), self.classes)
        return tilt


def _check_laplace(size: int, scale: float) -> None:
    """Refuse what 64 bits would cut off: for a tilt, unlike for noise on a release, cutting is not post-processing."""
    if not (size + 1) * scale <= 2.0**MOST_LAPLACE:
        raise PrivacyError(
            f"Laplace noise on {size} values with scale {scale:.3g} was asked for, and it does not fit 64-bit whole numbers. "
            "Use a larger epsilon, or a loss and a target in larger units."
        )


checks = {"laplace": _check_laplace, "linf": check_cube, "l2": check_ball, "normal": check_ball}


def make_tilt(kind: str, gradients: Gradients, epsilon: float, delta: float, bend_cost: float | None) -> Tilt:
    """The tilt of this kind that costs epsilon (and delta) for slopes and curvature: where curvature costs this much, or nothing if None.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 to 3.
    """
    left = (epsilon - (bend_cost or 0.0)) * SAFE
    columns, classes = tuple(range(gradients.norms.columns)), gradients.classes
    if kind == "gaussian":
        flat = epsilon * FLAT_CORNERS / gradients.people if bend_cost is None else 0.0
        least = least_scale(lambda sd: objective_delta(gradients, left, 1 / sd, flat), delta * SAFE, 1 / left)
        return Tilt(kind, _normal(gradients, least / SAFE), classes, delta)
    if kind == "mixed":
        if not gradients.norms.blocks:
            raise PrivacyError("noise='mixed' was given for features without blocks of columns. Use 'l2' or 'auto'.")
        return Tilt(kind, _mixed(gradients, left), classes)
    reach = gradients.sensitivity(NORMS[kind])
    return Tilt(kind, (Part(columns, kind, reach / left, reach),), classes)


def _mixed(gradients: Gradients, epsilon: float) -> tuple[Part, ...]:
    """A cube for the columns that are blocks of their own, Laplace noise for every other block; epsilon is shared so that the mean square of all values is least.

    A part of n values with noise of size a / (its share of epsilon) adds n a^2 / share^2: least for shares proportional to the cube root of n a^2.
    """
    norms, classes = gradients.norms, gradients.classes
    neighbours = gradients.sensitivity("linf") / gradients.of_one_row("linf")
    reaches = [neighbours * gradients.of_slopes("linf")] * bool(norms.singles) + [neighbours * gradients.of_slopes("l1")] * len(
        norms.blocks
    )
    columns = [norms.singles] * bool(norms.singles) + [tuple(range(*ends)) for ends in norms.blocks]
    noises = ["linf"] * bool(norms.singles) + ["laplace"] * len(norms.blocks)
    sizes = [
        (len(own) * (reach * value_sd(noise, len(own) * classes)) ** 2) ** (1 / 3)
        for own, noise, reach in zip(columns, noises, reaches, strict=True)
    ]
    shares = [size / sum(sizes) for size in sizes]
    return tuple(
        Part(own, noise, reach / (share * epsilon * SAFE), reach)
        for own, noise, reach, share in zip(columns, noises, reaches, shares, strict=True)
    )


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
    lattice = gradients.values * 2.0 ** (2 - _fine(gradients.values))  # more than all steps of Lemma 4 over their scales
    return gradients.free_ridge(epsilon, adds_up=kind == "laplace") * (ENOUGH + 2 * lattice / epsilon)


def objective_delta(gradients: Gradients, epsilon: float, shift: float, extra: float = 0.0) -> float:
    """An upper bound of delta for a normal tilt whose standard deviation is one over `shift` times the largest gradient of a row.

    `extra` is what a leaving row without slope can still bend. The loss of privacy is convex in the slopes of the rows that leave and enter, so that it is largest where each
    is none or the largest one; each such corner is a Gaussian mechanism, and their deltas are added up.

    Guarantee: docs/proofs/perturbation.md, Theorem 3.
    """
    people, entering, corners = gradients.people, gradients.people if gradients.replace else 0, gradients.corners
    if not gradients.loss.one_sided:  # then none is no corner
        total = people + entering
        return _sum_of_exps(total * math.log(corners) + log_gaussian_deltas(np.array([epsilon]), np.array([total * shift])))
    left, entered = np.meshgrid(np.arange(people + 1), np.arange(entering + 1), indexing="ij")
    number = _log_choose(people, left) + _log_choose(entering, entered) + (left + entered) * math.log(corners)
    each = np.asarray(epsilon - (people - left) * extra, dtype=np.float64)
    deltas = log_gaussian_deltas(each, np.asarray((left + entered) * shift, dtype=np.float64))
    return _sum_of_exps(number + deltas)


def _sum_of_exps(logs: Floats) -> float:
    total = float(logsumexp(logs)) + 1e-9
    return math.exp(total) if total < 700 else math.inf


def _log_choose(people: int, some: NDArray[np.int64]) -> Floats:
    """The logarithm of the number of ways to choose some of these people."""
    return np.asarray(gammaln(people + 1) - gammaln(some + 1) - gammaln(people - some + 1), dtype=np.float64)


def _steps(noise: str, values: int) -> int:
    """By how many steps of the lattice rounding can lengthen a move, in the norm of the noise; none for noise that is drawn as a real number and rounded.

    Guarantee: docs/proofs/perturbation.md, Lemma 4.
    """
    return {"laplace": values, "linf": 1}.get(noise, 0)


def _unit(scale: float, values: int) -> int:
    """How many lattice steps make 1: a power of two, so that the noise is far coarser than its lattice and fits 64 bits."""
    return 1 << max(0, _fine(values) - math.ceil(math.log2(max(scale, 1e-300))))


def _fine(values: int) -> int:
    """The logarithm of how many steps the scale of noise on so many values has."""
    return min(FINE, MOST_FINE - math.ceil(math.log2(values + 2)))


def refuse_gaussian_without_delta(kind: str, delta: float) -> None:
    """Normal noise needs a delta."""
    if kind == "gaussian" and delta <= 0:
        raise PrivacyError("noise='gaussian' was given with delta=0; it needs a small chance to fail. Give one: delta=1e-6.")
