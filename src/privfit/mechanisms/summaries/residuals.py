"""Sums of residuals and of a target: two ranges are bought first, then all sums share one noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import USUAL_ROWS, Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.summaries.questions import Share
from privfit.privacy import Draws, Event, exact
from privfit.privacy.parts import KNorm, Selection
from privfit.privacy.samplers.norms import check_fits
from privfit.rows import Rows, count_levels
from privfit.schema import Block, Geometry, Schema
from privfit.statistics.quantiles import STEP, FineGrid
from privfit.statistics.ranges import octave_price, range_scores, tolerated

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOR_RANGES = Fraction(30, 100)
"""Part of the price of both ranges together; the rest goes to the sums. With less, ranges hold fewer rows and tails are
guessed; papers/experiments/evaluation.py."""
HELD = 0.9995
"""The share of rows that a range shall hold, before it is widened; noise mostly makes it hold less."""
WIDER = 1.25
"""Ranges are widened by this factor: more noise against fewer values that are clipped;
papers/experiments/evaluation.py."""
NARROWER = 2.0
"""How much more a factor of two in width costs than for bounds: a range that is far too wide spoils squares most;
papers/experiments/evaluation.py."""
UNIT = 1 << 10
"""Steps of a score per row. No command varies it."""


@dataclass(frozen=True)
class ResidualProblem:
    """Fine grids of residuals and of the target's distance from a public number, both with nested ranges around 0."""

    residuals: FineGrid
    target: FineGrid
    sided: bool = False
    """Whether residuals below zero are distinguished from those above, for quantiles: two more sums share the noise."""


@dataclass(frozen=True)
class ResidualPlan(ReleasePlan):
    """The grids, and what may be spent on them."""

    grids: tuple[FineGrid, FineGrid]
    share: Share
    sided: bool = False


@dataclass(frozen=True)
class Sums:
    """What was drawn: the range of residuals, that of the target, and noisy means over steps of the ranges: the square
    and size of a residual, the square and half of the target's distance; for quantiles a residual above zero, and
    whether it is not above; and where it is private the number of rows.
    """

    reach: tuple[float, float]
    cut_off: tuple[float, float]
    """Rows beyond each range, before it was widened, that noise may have left out."""
    sums: Floats
    n_rows: int


@dataclass(frozen=True)
class ResidualSums(Mechanism[ResidualProblem, ResidualPlan, list[Integers], Sums]):
    """Sums of squares and sizes of residuals, and of a target, each clipped to a range that is bought on the way.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/evaluation.md, Lemma 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "residual sums"

    def geometry(self, schema: Schema, problem: ResidualProblem, numeric: Numbers = "slope") -> Geometry:
        """The levels of both grids."""
        first: Block = problem.residuals.block(0)
        return Geometry((first, problem.target.block(first.stop)), False)

    def plan(self, facts: PublicFacts, problem: ResidualProblem) -> ResidualPlan:
        """Two choices, and one noise for all sums."""
        parameters = facts.parameters
        share = Share(
            exact(parameters.budget.epsilon),
            parameters.adjacency,
            int(parameters.rows_per_person),
            facts.n_rows or USUAL_ROWS,
        )
        choice = Selection(
            rule="permute-and-flip",
            scale=share.scale(UNIT, FOR_RANGES / 2),
            sensitivity=UNIT * share.rows_per_person,
            epsilon=float(share.epsilon * FOR_RANGES / 2),
            purpose="bounds",
        )
        size = 4 + 2 * problem.sided + (share.adjacency == "add-remove")
        check_fits("linf", size, share.scale(STEP, 1 - FOR_RANGES))
        noise = KNorm(
            norm="linf",
            size=size,
            scale=share.scale(STEP, 1 - FOR_RANGES),
            sensitivity=STEP * share.rows_per_person,
            unit=STEP,
            epsilon=float(share.epsilon * (1 - FOR_RANGES)),
        )
        event = Event(
            self.name,
            parameters.budget.epsilon,
            adjacency=parameters.adjacency,
            rows_per_person=share.rows_per_person,
            parts=(choice, choice, noise),
        )
        return ResidualPlan(event, facts, (problem.residuals, problem.target), share, problem.sided)

    def read(self, rows: Rows, plan: ResidualPlan, problem: ResidualProblem, draws: Draws) -> list[Integers]:
        """How many rows each level of both columns has."""
        return count_levels(rows)

    def draw(self, data: list[Integers], plan: ResidualPlan, draws: Draws) -> Sums:
        """Both ranges, then all sums together."""
        share = plan.share
        allowed = tolerated(HELD, share.n_rows, share.scale(UNIT, FOR_RANGES / 2) / UNIT)
        reach = tuple(
            _reach(grid, counts, allowed, share, draws) for grid, counts in zip(plan.grids, data, strict=True)
        )
        sums = clipped_sums(plan.grids, data, (reach[0], reach[1]), plan.sided)
        if share.adjacency == "add-remove":
            sums.append(STEP * int(data[0].sum()))
        drawn = draws.add(np.array(sums, dtype=np.int64))
        return Sums((reach[0], reach[1]), (allowed, allowed), np.asarray(drawn / STEP), share.n_rows)


def _reach(grid: FineGrid, counts: Integers, allowed: float, share: Share, draws: Draws) -> float:
    """How far a range around 0 reaches that holds most rows: selected, and widened."""
    candidates = grid.ranges()
    price = NARROWER * octave_price(allowed, share.n_rows, float(candidates.octaves.max()))
    _, high = candidates.ends(draws.select(range_scores(candidates, counts, allowed, price, UNIT)))
    return min(high * WIDER, grid.column.high)


def clipped_sums(
    grids: tuple[FineGrid, FineGrid], counts: list[Integers], reach: tuple[float, float], sided: bool = False
) -> list[int]:
    """The sums over rows, STEP to a range: of squares and sizes of residuals, of squares and halves of the target, and
    of residuals above zero and of rows without one.

    Guarantee: every row adds to each sum an integer of a range of STEP; docs/proofs/evaluation.md, Lemma 3.
    """
    shares = [
        np.rint(np.clip(grid.values / own, -1.0, 1.0) * STEP).astype(np.int64)
        for grid, own in zip(grids, reach, strict=True)
    ]
    residuals, target = shares
    lines = [(0, residuals * residuals // STEP), (0, np.abs(residuals)), (1, target * target // STEP), (1, target // 2)]
    if sided:
        lines += [(0, np.maximum(residuals, 0)), (0, np.where(residuals > 0, 0, STEP))]
    return [int(counts[place].astype(object) @ line.astype(object)) for place, line in lines]
