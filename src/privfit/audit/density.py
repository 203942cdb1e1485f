"""The density attack: how much likelier neighbours make the weights of a perturbed objective, by the exact law.

Noise in an objective is on no sum over rows, so that replay shows no loss. But the law of the minimum is known: weights
w come from the linear term b(w) = -(gradient of the objective at w), and their density is that of the noise at b(w)
times the determinant of the Hessian at w. The attack takes objective, ridge and rows from the code that minimises them,
and the noise from what is drawn; it uses no sensitivity, no log-determinant bound and no ridge rule of the library.

1. Link: the weights of a recorded fit must be the minimum for the linear term that was drawn.
2. Pure noise: the largest log ratio of the densities of two neighbours, over many weights.
3. Gaussian noise, one weight: the least epsilon whose hockey-stick divergence is at most delta, by quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.audit.recording import Call
from privfit.audit.replay import Replay, Seen, pure_loss
from privfit.mechanisms.perturbation import objective, precision, regression
from privfit.mechanisms.perturbation.objective_noise import NoiseGroup
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.privacy import SeededNoise
from privfit.privacy.event import Event
from privfit.privacy.parts import CERTIFICATE, RELEASE, Additive, DiscreteGaussian, KNorm, Laplace, RoundedGaussian
from privfit.rows import CachedDesign, SampledDesign

Floats = NDArray[np.float64]
SIZES = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
"""Lengths of the weights that are tried: more cost time alone. Chosen, not measured."""
STEPS = 100
"""Places between zero and one on which random directions lie. Chosen, not measured."""
DIRECTIONS = 4
"""Random directions of weights, beside those in which neighbours differ. Chosen, not measured."""
GRID = 2001
"""Points of the quadrature; twice as many change the epsilons of tests by less than one in 10,000."""
TAIL = 12.0
"""Standard deviations of the noise that the quadrature covers: beyond lies less than 1e-30."""
LEFT_OPEN = 1e-4
"""How far the gradient at recorded weights may be from zero, in standard deviations of the noise on it."""
DIGITS = 50
"""Halvings of a bracket of epsilons."""


@dataclass(frozen=True)
class Minimisation:
    """An objective that was minimised: its plan, and the rows."""

    plan: ERMPlan
    rows: CachedDesign
    term: Floats
    weights: Floats

    @cached_property
    def _sample(self) -> SampledDesign:
        """All rows: an audit's tables are smaller than any sample."""
        return self.rows.sample()

    def gradient(self, weights: Floats) -> Floats:
        """The gradient of loss and penalty."""
        return self._sample.gradient(weights, self.plan.gradients.row_slopes) + self.plan.penalised(weights)

    def log_determinant(self, weights: Floats) -> float:
        """The logarithm of the determinant of the Hessian."""
        hessian = self._sample.hessian(weights, self.plan.gradients.row_curvatures)[0]
        return float(np.linalg.slogdet(hessian + self.plan.penalty_hessian(weights))[1])


@contextmanager
def watched_minima() -> Iterator[list[Minimisation]]:
    """While this is open, every perturbed objective that is minimised is written down."""
    found: list[Minimisation] = []
    usual = precision.minimised

    def minimised(plan: ERMPlan, rows: CachedDesign, term: Floats) -> Floats:
        weights = usual(plan, rows, term)
        found.append(Minimisation(plan, rows, term.copy(), weights))
        return weights

    for place in (objective, regression):
        place.minimised = minimised  # type: ignore[attr-defined]
    try:
        yield found
    finally:
        for place in (objective, regression):
            place.minimised = usual  # type: ignore[attr-defined]


def loss_of_fit(one: Seen, other: Seen, minima: list[Minimisation]) -> Replay | None:
    """The loss of a fit and its replay on a neighbour that minimised one objective each: of the weights, by their law,
    and of everything else that was drawn, by its moves. None where that is not so, or the law is not known.
    """
    if len(minima) != 2 or not one.events or len(one.noise.calls) != len(other.noise.calls):
        return None
    event, claimed = one.events[0], one.events[0].epsilon
    if not all(is_minimum(found, seen.noise.calls) for found, seen in zip(minima, (one, other), strict=True)):
        return Replay(claimed, None, ("what is minimised is not what was drawn for",))
    of_weights = density_loss(minima[0], minima[1], event)
    pairs = zip(one.noise.calls, other.noise.calls, strict=True)
    others = [pure_loss(*pair) for pair in pairs if not _is_certificate(minima[0], pair[0]) and np.any(pair[0].values)]
    if of_weights is None or any(found is None for found in others):
        return None
    return Replay(claimed, of_weights + sum(found for found in others if found), ())


def _is_certificate(found: Minimisation, call: Call) -> bool:
    """Whether this is the noise on the weights themselves, which covers what the solver leaves open."""
    unit = found.plan.certificate.unit if found.plan.certificate is not None else 1
    return np.array_equal(np.ravel(call.values), np.rint(found.weights * unit).astype(np.int64).ravel())


def density_loss(one: Minimisation, other: Minimisation, event: Event) -> float | None:
    """The largest privacy loss of the weights; None where neither attack applies."""
    noise = one.plan.noise
    if noise is None or one.plan.gradients.classes > 1 or other.plan.noise is None:
        return None
    drawn = _drawn(event)
    if any(isinstance(part, RoundedGaussian | DiscreteGaussian) for part in drawn):
        return quadrature_epsilon(one, other, drawn[0], event.delta) if len(one.weights) == 1 else None
    return max(_ratio(one, other, drawn, weights) for weights in _tried(one, other))


def _drawn(event: Event) -> list[Additive]:
    """The parts of the linear term, as the ledger has them: those before the certificate."""
    found: list[Additive] = []
    for part in event.flat():
        if isinstance(part, Additive) and part.purpose == CERTIFICATE:
            break
        if isinstance(part, Additive) and part.purpose == RELEASE:
            found.append(part)
    return found


def _tried(one: Minimisation, other: Minimisation) -> Iterator[Floats]:
    """Weights near and far, along the gradients by which neighbours differ, and their minima."""
    columns = len(one.weights)
    source = SeededNoise(0)
    differences = [one.gradient(at) - other.gradient(at) for at in (np.zeros((columns, 1)), one.weights)]
    directions = [sign * apart for apart in differences for sign in (1.0, -1.0) if np.abs(apart).max() > 0]
    directions = [apart / np.abs(apart).max() for apart in directions]
    places = [source.below(np.full((columns, 1), 2 * STEPS + 1)) for _ in range(DIRECTIONS)]
    directions += [(place - STEPS) / STEPS for place in places]
    yield from (size * direction for size in SIZES for direction in directions)
    yield from (one.weights, other.weights)


def _ratio(one: Minimisation, other: Minimisation, drawn: list[Additive], weights: Floats) -> float:
    """The log ratio of the two densities at these weights, without its sign."""
    ends = []
    for found in (one, other):
        assert found.plan.noise is not None
        term = found.gradient(weights)
        lengths = [length(group, part, term) for group, part in zip(found.plan.noise.groups, drawn, strict=True)]
        ends.append(found.log_determinant(weights) - sum(lengths))
    return abs(ends[0] - ends[1])


def length(group: NoiseGroup, part: Additive, term: Floats) -> float:
    """The exponent of the density of one group of the noise: the norm of its part of the linear term, in scales."""
    own = np.abs(term[list(group.columns)].ravel()) * (part.unit / part.scale)
    if isinstance(part, Laplace):
        return float(own.sum())
    assert isinstance(part, KNorm)
    if part.norm == "l2":
        return float(np.linalg.norm(own))
    if part.norm == "linf":
        return float(own.max())
    return max(float(block.sum()) for block in np.split(own, np.cumsum(part.blocks)[:-1]))


def is_minimum(found: Minimisation, calls: list[Call]) -> bool:
    """Whether the recorded weights minimise the objective with the linear term that was drawn: else the law that is
    attacked is not that of the release.
    """
    noise = found.plan.noise
    if noise is None:
        return True
    drawn = [call for call in calls if not np.any(call.values)]
    terms = [noise.by_column(np.asarray(values)) for values in _joined(drawn, noise.values)]
    given = any(np.array_equal(term, found.term) for term in terms)
    open_ = np.abs(found.gradient(found.weights) + found.term).max()
    return given and bool(open_ <= LEFT_OPEN * noise.sd)


def _joined(calls: list[Call], size: int) -> Iterator[NDArray[np.int64]]:
    """Draws that follow one another and are that many values together."""
    for start in range(len(calls)):
        values = np.zeros(0, dtype=np.int64)
        for call in calls[start:]:
            values = np.concatenate([values, np.ravel(np.asarray(call.output, dtype=np.int64))])
            if len(values) >= size:
                break
        if len(values) == size:
            yield values


# -- one weight and Gaussian noise: the exact divergence ---------------------------------------------


def quadrature_epsilon(one: Minimisation, other: Minimisation, part: Additive, delta: float) -> float:
    """The least epsilon at which the laws of one weight differ by at most delta, in both directions, by quadrature."""
    sd = part.scale / part.unit
    grid = _grid(one, other, sd)
    densities = [np.array([_log_density(found, at, sd) for at in grid]) for found in (one, other)]
    step = np.gradient(grid)

    def divergence(epsilon: float) -> float:
        return max(
            float((np.maximum(np.exp(first) - np.exp(epsilon + second), 0.0) * step).sum())
            for first, second in (densities, densities[::-1])
        )

    low, high = 0.0, 1.0
    if divergence(low) <= delta:
        return 0.0
    while divergence(high) > delta:
        high *= 2
    for _ in range(DIGITS):
        middle = (low + high) / 2
        low, high = (low, middle) if divergence(middle) <= delta else (middle, high)
    return low


def _grid(one: Minimisation, other: Minimisation, sd: float) -> Floats:
    """Weights, evenly spread, that the noise leads to with all but a vanishing probability."""
    ends = []
    for sign in (-1.0, 1.0):
        at = sign
        while any(sign * float(found.gradient(np.full((1, 1), at))[0, 0]) < TAIL * sd for found in (one, other)):
            at *= 2
        ends.append(at)
    return np.linspace(ends[0], ends[1], GRID)


def _log_density(found: Minimisation, at: float, sd: float) -> float:
    weights = np.full((1, 1), at)
    term = float(found.gradient(weights)[0, 0]) / sd
    return found.log_determinant(weights) - term**2 / 2 - math.log(sd * math.sqrt(2 * math.pi))
