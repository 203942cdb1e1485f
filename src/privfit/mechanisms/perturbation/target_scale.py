"""Where a target lies and how far it spreads, chosen privately: the centre and the threshold of residuals.

Both are permute-and-flip on integer scores that are counts of rows. Targets are in [-1, 1], as encoded.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import USUAL_ROWS, PublicFacts
from privfit.privacy import Draws, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Part, Selection
from privfit.rows import CachedDesign, count_up_to
from privfit.schema import Geometry

Floats = NDArray[np.float64]

EDGES = np.arange(-127, 128) / 128
"""Edges of the 256 cells that the centre is chosen among: more cells are distinguished less surely. Weights find what
the centre misses; `python papers/experiments/regression.py` measures the whole."""
CENTRES = np.arange(-255, 256, 2) / 256
"""The middles of the cells."""
STEPS_TO_TWICE = 4
"""Candidates of the threshold to a factor of two: more fit better and are distinguished less surely. Chosen, not
measured."""
THRESHOLDS = 2.0 ** (-np.arange(13 * STEPS_TO_TWICE, -1, -1) / STEPS_TO_TWICE)
"""Candidates of the threshold, ascending: from 1/8192 of half the target's range to all of it, four to a factor of two.
A bound that is far too wide costs no accuracy down to there."""
LEAST_THRESHOLD = float(THRESHOLDS[0])
"""The least of them, for which a plan must hold too."""
PARTS_OF_ONE = 1 << 12
"""The share of rows beyond the threshold is rounded to one in so many: scores are integers."""
CLIPPING_PER_NOISE, LEAST_BEYOND, MOST_BEYOND = 6.0, 4.0, 0.35
"""The share of rows that may lie beyond the threshold: six times the noise on predictions per unit of threshold, at
least as many rows as four scales of the choice, and at most 35%. More means a smaller threshold: less noise and more
bias. Generated tables prefer ten times at small epsilons, skewed real wages four: papers/experiments/regression.py."""
LARGER_COSTS, MOST_LARGER_COSTS = 0.5, 0.25
"""What twice the threshold costs in the choice: half as many rows as may lie beyond, and at most a quarter of all rows
over the whole grid. Less chooses thresholds that are too large more often, more such that are too small."""


COVERING_BEYOND = 0.05 / CLIPPING_PER_NOISE
"""For intervals, noise on predictions counts as so large that 5% of the targets may lie beyond what is chosen."""
COVERING_STRETCH, LEAST_STRETCH, MOST_STRETCH = 0.04, 2.0, 8.0
"""Then the threshold is a multiple of that: so much times the root of rows
times epsilon per column, from two to eight. More means less bias where errors are skewed and more noise. For the second
moments of gradients residuals count up to twice what is multiplied. Chosen; coverage.py --models measures."""
WHOLE_RANGE = 2.0
"""No two targets are farther apart, so that no threshold needs to be larger."""


class ChosenScale(Protocol):
    """What is chosen of the target before weights are fitted."""

    @property
    def stretch(self) -> float:
        """What multiplies the choice."""

    def parts(self) -> tuple[Part, ...]:
        """What is drawn."""

    def drawn(self, design: CachedDesign, draws: Draws) -> tuple[float, float]:
        """Where predictors are measured from, and their unit."""


@dataclass(frozen=True)
class KnownScale:
    """A centre and a unit that are public: nothing is chosen."""

    centre: float = 0.0
    unit: float = 1.0
    stretch: ClassVar[float] = 1.0

    def parts(self) -> tuple[Part, ...]:
        """Nothing is drawn."""
        return ()

    def drawn(self, design: CachedDesign, draws: Draws) -> tuple[float, float]:
        """The centre and the unit."""
        return self.centre, self.unit


@dataclass(frozen=True)
class TargetScale:
    """The plan of choosing a centre, if there is one, and a threshold.

    About `rows` rows are expected: a public number or a guess. `beyond` of PARTS_OF_ONE of the rows may lie beyond the
    threshold, which is then multiplied by `stretch`. `centre` and `threshold` are their epsilons.

    Guarantee: docs/proofs/regression-objective.md, Lemmas 1 and 2.
    """

    parameters: PrivacyParameters
    rows: int
    beyond: int
    centre: Fraction | None
    threshold: Fraction
    stretch: float = 1.0

    @classmethod
    def planned(
        cls, parameters: PrivacyParameters, rows: int, noise: float, centre: Fraction, threshold: Fraction
    ) -> TargetScale:
        """The plan for so many rows, such noise on predictions per unit of threshold, and these shares of epsilon, the
        first of which may be none.
        """
        epsilon = exact(parameters.budget.epsilon)
        scale = int(parameters.rows_per_person) / float(epsilon * threshold)
        share = min(max(CLIPPING_PER_NOISE * noise, LEAST_BEYOND * scale / rows), MOST_BEYOND)
        beyond = max(round(share * PARTS_OF_ONE), 1)
        return cls(parameters, rows, beyond, epsilon * centre if centre else None, epsilon * threshold)

    @property
    def centre_sensitivity(self) -> int:
        """The most by which a person can change the difference of two centres' scores."""
        return (4 if self.parameters.adjacency == "replace-one" else 2) * int(self.parameters.rows_per_person)

    @property
    def threshold_sensitivity(self) -> int:
        """The same of two thresholds' scores."""
        return PARTS_OF_ONE * int(self.parameters.rows_per_person)

    def parts(self) -> tuple[Selection, ...]:
        """What is drawn: a choice, or two."""
        found = []
        if self.centre is not None:
            found.append(_choice("centre of the target", self.centre_sensitivity, self.centre))
        return (*found, _choice("threshold of residuals", self.threshold_sensitivity, self.threshold))

    def drawn(self, design: CachedDesign, draws: Draws) -> tuple[float, float]:
        """A centre near the median, and a small threshold that no more than the wanted share of rows lie beyond."""
        centre = 0.0
        if self.centre is not None:
            centre = float(CENTRES[draws.select(self.centre_scores(design))])
        chosen = float(THRESHOLDS[draws.select(self.threshold_scores(design, centre))])
        return centre, min(self.stretch * chosen, max(WHOLE_RANGE, chosen))

    def centre_scores(self, design: CachedDesign) -> list[int]:
        """Minus the number of rows by which those on one side of a cell are more than all others."""
        counts = [0, *count_up_to(design, EDGES).tolist(), design.n_rows]
        return [
            -max(2 * below - design.n_rows, design.n_rows - 2 * up_to, 0) for below, up_to in itertools.pairwise(counts)
        ]

    def threshold_scores(self, design: CachedDesign, centre: float) -> list[int]:
        """The scores of thresholds on distances from the centre."""
        return self.scores_of(count_up_to(design, THRESHOLDS, centre).tolist(), design.n_rows)

    def scores_of(self, counts: list[int], rows: int) -> list[int]:
        """Minus the number of rows beyond, as far as that is more than wanted, and minus what a larger threshold costs
        by a public rule: in PARTS_OF_ONE of a row. `counts` of the rows are up to each threshold.
        """
        excess = [max(PARTS_OF_ONE * (rows - count) - self.beyond * rows, 0) for count in counts]
        return [-more - place * self._step for place, more in enumerate(excess)]

    @property
    def _step(self) -> int:
        """What the next larger threshold costs."""
        steps = len(THRESHOLDS) - 1
        most = MOST_LARGER_COSTS * PARTS_OF_ONE / steps
        return round(min(LARGER_COSTS * self.beyond / STEPS_TO_TWICE, most) * self.rows)


def _choice(purpose: str, sensitivity: int, epsilon: Fraction) -> Selection:
    return Selection(
        rule="permute-and-flip",
        scale=laplace_scale(sensitivity, epsilon),
        sensitivity=sensitivity,
        purpose=purpose,
        epsilon=float(epsilon),
    )


@dataclass(frozen=True)
class AmountScale:
    """The choice of a cap of amounts that few rows are above: a threshold of y - zero, whatever is below zero.

    `zero` is where the amount is 0 on the target's scale from -1 to 1, `top` the largest amount in units of it, `unit`
    what 1 means there. Caps are `stretch` times what is chosen, at least `least`, in the units of the target, and at
    most the top unless they may be `beyond_top`.

    Guarantee: docs/proofs/amount-objective.md, Lemma 2.
    """

    choice: TargetScale
    zero: float
    top: float
    unit: float
    purpose: str = "cap of amounts"
    stretch: float = 1.0
    least: float = 0.0
    beyond_top: bool = False

    @classmethod
    def planned(
        cls, parameters: PrivacyParameters, rows: int, share: Fraction, geometry: Geometry, beyond: float
    ) -> AmountScale:
        """The plan with this share of epsilon, for a cap that about `beyond` of the rows may be above."""
        zero, top = amount_scale(geometry)
        choice = TargetScale.planned(parameters, rows, beyond / CLIPPING_PER_NOISE, Fraction(0), share)
        assert geometry.target is not None
        return cls(choice, zero, top, geometry.target.unit)

    def parts(self) -> tuple[Selection, ...]:
        """One choice."""
        return (_choice(self.purpose, self.choice.threshold_sensitivity, self.choice.threshold),)

    def drawn(self, design: CachedDesign, draws: Draws) -> tuple[float, float]:
        """Zero, and a small cap that no more than the wanted share of rows are above."""
        chosen = self.stretch * self.top * float(THRESHOLDS[draws.select(self.scores(design))])
        most = self.top * max(self.stretch, 1.0) if self.beyond_top else self.top
        return self.zero, min(max(chosen, self.least / self.unit), most)

    def scores(self, design: CachedDesign) -> list[int]:
        """Those of every cap: how many rows are above it."""
        counts = count_up_to(design, self.zero + self.top * THRESHOLDS).tolist()
        return self.choice.scores_of(counts, design.n_rows)


def amount_scale(geometry: Geometry) -> tuple[float, float]:
    """Where a target is 0 on its scale from -1 to 1, and its largest amount in units of that: from public bounds."""
    block = geometry.target
    assert block is not None
    zero = -block.center / block.unit
    return zero, 1.0 - zero


def covering_stretch(facts: PublicFacts) -> float:
    """What multiplies the threshold where intervals are bought: from public facts."""
    return min(max(COVERING_STRETCH * math.sqrt(signal_of(facts)), LEAST_STRETCH), MOST_STRETCH)


def signal_of(facts: PublicFacts) -> float:
    """Rows times epsilon, per column of the schema: how far effects stand out from noise, from public facts."""
    rows, parameters = facts.n_rows or USUAL_ROWS, facts.parameters
    return rows * parameters.budget.epsilon / (int(parameters.rows_per_person) * facts.geometry.l2**2)
