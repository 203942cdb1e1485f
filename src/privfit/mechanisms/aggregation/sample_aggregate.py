"""Sample and aggregate: any function of a table, made private by running it on many small parts and averaging with
noise.

Mohan, Thakurta, Shi, Song, Culler: GUPT: privacy preserving data analysis made easy, SIGMOD 2012, after Nissim,
Raskhodnikova and Smith (STOC 2007). Corrected: rows are dealt by coins of their own, not in equal parts, which a row
that comes or goes would shift; and the answers get one draw of noise in the shape of what a row can do to them, not a
share of epsilon each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing import current_process
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.aggregation.trials import try_out
from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.genetic.selections import plan_choices
from privfit.mechanisms.perturbation.defaults import USUAL_ROWS
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import Part, RandomBits
from privfit.privacy.samplers.norms import Source
from privfit.rows import PartitionedRows, Rows
from privfit.rows.partition import BlockFunction
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ranges = Literal["given", "percentiles"]

RANGES = ("given", "percentiles")
NOISES = ("auto", "laplace", "linf", "gaussian")
WORKERS = ("auto", "one", "threads", "processes")
POWER = 0.4
MOST_BLOCKS = 1 << 20
MOST_COPIES = 100
LEAST_BITS, MOST_BITS, BITS = 16, 32, 20
GRID = 256
"""Percentiles are chosen among so many evenly spaced points of the range, and its lower end.

Every lattice has a multiple of it.
"""
DEALT_AT_ONCE = 1 << 20
MOSTLY_NOISE = 0.25


@dataclass(frozen=True)
class BlockAnswers:
    """What is aggregated: a function of the rows of a block, and the public range of every number that it returns.

    `of_user` is whether the function is the user's own: it is tried on made-up rows first, and not run in threads.
    """

    function: BlockFunction
    low: Floats
    high: Floats
    of_user: bool = True


@dataclass(frozen=True)
class BlockFit:
    """The noisy means of answers, and lines for the report."""

    values: Floats
    notes: tuple[str, ...]


# -- what is planned from public facts -------------------------------------------------------------


@dataclass(frozen=True)
class BlockPlan(ReleasePlan):
    """All that is decided before a row is read, and its price.

    Guarantee: dealing rows into `blocks` blocks, `copies` times each, and `combined` with the answers, keep the promise
    of `event`; docs/proofs/aggregate.md, Theorem 1.
    """

    answers: BlockAnswers
    blocks: int
    copies: int
    moved: int
    """How many answers one person can change."""
    unit: int
    """Lattice steps to the whole range of an answer."""
    chooses_ranges: bool = False

    def places(self, rows: int, source: Source) -> Integers:
        """The blocks of every row, one line each: `copies` different ones, all such sets as likely, whatever the other
        rows got.
        """
        limits = np.arange(self.blocks, self.blocks - self.copies, -1, dtype=np.int64)
        sizes = [min(DEALT_AT_ONCE, rows - first) for first in range(0, rows, DEALT_AT_ONCE)]
        drawn = np.concatenate([source.below(np.tile(limits, size)) for size in sizes]).reshape(rows, self.copies)
        for place in range(1, self.copies):
            for taken in np.sort(drawn[:, :place], axis=1).T:  # skip those that the row has
                drawn[:, place] += drawn[:, place] >= taken
        return drawn

    def combined(self, found: Floats, draws: Draws) -> Floats:
        """The noisy means of what blocks have found, cut at their ranges. Blocks without an answer (NaN) count with the
        middle.
        """
        low, high = self.answers.low, self.answers.high
        steps = self._on_lattice(found, low, high)
        first, width = np.zeros(len(low)), np.full(len(low), float(GRID))
        if self.chooses_ranges:
            first, width = self._quartiles(steps, draws)
            steps = self._cut(steps, first, width)
        means = np.clip(draws.add(steps.sum(axis=0)) / (self.blocks * self.unit), 0.0, 1.0)
        share = (first + width * means) / GRID
        return np.clip(low * (1 - share) + high * share, low, high)

    def _on_lattice(self, answers: Floats, low: Floats, high: Floats) -> Integers:
        """Answers as whole numbers from 0, at the lower end of their range, to `unit`."""
        with np.errstate(all="ignore"):
            share = np.clip((answers - low) / (high - low), 0.0, 1.0)
        return np.asarray(np.rint(np.where(np.isnan(share), 0.5, share) * self.unit), dtype=np.int64)

    def _quartiles(self, steps: Integers, draws: Draws) -> tuple[Floats, Floats]:
        """For every answer the lower end and the width of what lies between its quartiles, chosen privately, in grid
        points. Widths are at least one.
        """
        near = (2 * GRID * steps + self.unit) // (2 * self.unit)
        menus = [menu for column in near.T for menu in quartile_scores(column, self.blocks)]
        chosen = np.array(draws.select_each(menus)).reshape(-1, 2)
        lower = np.minimum(chosen.min(axis=1), GRID - 1)
        return lower.astype(np.float64), np.maximum(chosen.max(axis=1) - lower, 1).astype(np.float64)

    def _cut(self, steps: Integers, first: Floats, width: Floats) -> Integers:
        """Answers cut at the ranges that were chosen, each stretched to all of the lattice."""
        point = self.unit // GRID
        inside = np.clip(steps - first * point, 0.0, width * point)
        return np.rint(inside * GRID / width).astype(np.int64)


def quartile_sensitivity(moved: int, size: int) -> int:
    """The most by which a person who changes so many answers of this size can change the difference of two scores,
    added up over all menus of percentiles, in quarters of a block.

    Guarantee: docs/proofs/aggregate.md, Lemma 3.
    """
    return 8 * moved * 2 * size


def quartile_scores(near: Integers, blocks: int) -> tuple[list[int], list[int]]:
    """How well each grid point serves as the first and as the third quartile: minus the answers, in quarters, by which
    it misses.

    Guarantee: docs/proofs/aggregate.md, Lemma 3.
    """
    counts = np.bincount(near, minlength=GRID + 1)
    up_to = 4 * np.cumsum(counts)
    below = up_to - 4 * counts

    def scores(wanted: int) -> list[int]:
        return (-np.maximum(0, np.maximum(below - wanted, wanted - up_to))).tolist()  # type: ignore[no-any-return]

    return scores(blocks), scores(3 * blocks)


# -- the mechanism ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleAndAggregate(Mechanism[BlockAnswers, BlockPlan, PartitionedRows, Floats]):
    """Run a function on many small blocks of rows and release the mean of its answers, with noise.

    GUPT [1]_, for any function. Every row is assigned to a block by secret random bits. A row can change the answer of
    its own block and no other; and each answer is clipped to public bounds, so that a row changes the mean by at most
    the width of the bounds over the number of blocks, whatever the function does.

    It is a mechanism of pf.Aggregate for any function; of pf.LogisticRegression and pf.LinearSVC, which then average
    weights; and of pf.KMeans, which averages centres, sorted by their first column. There it is a baseline: weights and
    centres have many numbers, blocks are few, and the noise on each grows with the first over the second.

    Parameters
    ----------
    blocks : int or 'auto', default='auto'
        Number of blocks; "auto" is rows^0.4, the rule of the paper, times `resampling`. More blocks mean less noise and
        worse answers.
    ranges : {'given', 'percentiles'}, default='given'
        "given": answers are clipped to the bounds given. "percentiles": half of epsilon buys the quartiles of the
        answers, to which they are clipped.
    resampling : int, default=1
        In how many blocks each row is. It reduces the variance of the random assignment, at the same noise.
    noise : {'auto', 'laplace', 'linf', 'gaussian'}, default='auto'
        "auto" takes the smallest of K-norm noise for the L-infinity norm of all answers, Laplace noise, and with a
        delta Gaussian noise.
    workers : {'auto', 'one', 'threads', 'processes'}, default='auto'
        "one" runs block after block. "threads" run side by side, for functions that neither touch nor depend on what a
        process shares: filters of warnings, the global generators of numpy and random, the environment. "processes"
        suit plain Python, and keep a crash away from other blocks. "auto" is "one" for a function of the user's own,
        and "threads" for privfit's.
    largest_weight : float, default=5.0
        For classifiers: weights are searched between minus and plus this; 5 as in the comparison of PrivGene's authors.
    ridge : float, default=1.0
        For classifiers: ridge / 2 times the squared weights is added to the loss of a block.

    See Also
    --------
    Aggregate : Any function of a private table.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1. The function is trusted to see its own rows only:
    it keeps nothing from block to block (global generators of random numbers are kept: make one inside the function),
    and tells nobody what it sees.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] P. Mohan, A. Thakurta, E. Shi, D. Song and D. Culler, "GUPT: privacy preserving data analysis made easy",
       SIGMOD 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 60.0), 500)[:, None]
    >>> mechanism = pf.SampleAndAggregate(blocks=100)
    >>> schema = pf.Schema([pf.Numeric("age", 0, 120)])
    >>> found = pf.Aggregate(np.mean, low=0, high=120, epsilon=2.0, mechanism=mechanism, schema=schema).fit(ages)
    >>> bool(20 < found.estimate_[0] < 60)
    True
    """

    blocks: int | Literal["auto"] = "auto"
    ranges: Ranges = "given"
    resampling: int = 1
    noise: Literal["auto", "laplace", "linf", "gaussian"] = "auto"
    workers: Literal["auto", "one", "threads", "processes"] = "auto"
    largest_weight: float = 5.0
    ridge: float = 1.0

    name: ClassVar[str] = "sample-and-aggregate"
    solves: ClassVar[str] = "answers"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.blocks != "auto" and not _is_count(self.blocks, MOST_BLOCKS):
            raise PrivacyError(
                f"blocks={self.blocks!r} was given; it is 'auto' or a whole number from 1 to {MOST_BLOCKS}, chosen "
                "without looking at the rows. Use 'auto' if in doubt."
            )
        most = MOST_COPIES if self.blocks == "auto" else min(MOST_COPIES, int(self.blocks))
        if not _is_count(self.resampling, most):
            raise PrivacyError(
                f"resampling={self.resampling!r} was given; it is a whole number from 1 to {most}: a row is in as many "
                "blocks. Use 1 if in doubt."
            )
        for name, value, known in (
            ("ranges", self.ranges, RANGES),
            ("noise", self.noise, NOISES),
            ("workers", self.workers, WORKERS),
        ):
            if value not in known:
                raise PrivacyError(f"{name}={value!r} was given; it is one of {known}. Use {known[0]!r} if in doubt.")
        if self.ranges == "percentiles" and self.noise == "gaussian":
            raise PrivacyError(
                "noise='gaussian' was given with ranges='percentiles', whose choices and noise spend epsilon alone. "
                "Use noise='auto'."
            )
        for name, number in (("largest_weight", self.largest_weight), ("ridge", self.ridge)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 1e-6 <= number <= 1e6:
                raise PrivacyError(
                    f"{name}={number!r} was given; it is a number from 1e-6 to 1e6. Leave it out if in doubt."
                )

    # -- the plan ----------------------------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: BlockAnswers) -> BlockPlan:
        """How many blocks there are and the noise on so many answers."""
        parameters, size, copies = facts.parameters, len(problem.low), int(self.resampling)
        blocks = self.n_blocks(facts.n_rows)
        moved = min(blocks, copies * int(parameters.rows_per_person))
        unit = 1 << min(max(math.ceil(math.log2(parameters.budget.epsilon)) + BITS, LEAST_BITS), MOST_BITS)
        name, share = f"sample and aggregate, {blocks} block{'s' * (blocks > 1)}", 1.0
        before: list[Part] = [RandomBits(purpose="blocks")]
        if self.ranges == "percentiles":
            name, share = name + f", ranges by {2 * size} choices", 0.5
            pure = replace(parameters, budget=Budget(parameters.budget.epsilon))
            halves = plan_choices(name, pure, "permute-and-flip", [Fraction(1), Fraction(1)])  # the second is noise
            before.append(halves.part(0, sensitivity=quartile_sensitivity(moved, size), purpose="ranges"))
        noise = self._noise(name, parameters, size, moved * unit, blocks * unit, share)
        event = replace(noise, parts=(*before, *noise.parts), rows_per_person=int(parameters.rows_per_person))
        return BlockPlan(event, facts, problem, blocks, copies, moved, unit, self.ranges == "percentiles")

    def n_blocks(self, n_rows: int | None) -> int:
        """Return the number of blocks for a public number of rows.

        Parameters
        ----------
        n_rows : int or None
            Number of rows; None where it is private and there is no guess.

        Returns
        -------
        int
            Number of blocks.
        """
        if self.blocks != "auto":
            return int(self.blocks)
        rows = float(n_rows or USUAL_ROWS)
        wanted = int(self.resampling) * max(1, round(float(rows**POWER)))
        return min(wanted, MOST_BLOCKS)

    def _noise(self, name: str, parameters: PrivacyParameters, size: int, most: int, whole: int, share: float) -> Event:
        """The least noise there is where a person moves each of so many sums by `most`; `whole` is a mean of 1.

        Guarantee: docs/proofs/aggregate.md, Lemma 2.
        """
        budget = parameters.budget
        kinds = (
            [self.noise]
            if self.noise != "auto"
            else ["laplace", *["linf"] * (size > 1), *["gaussian"] * (budget.delta > 0 and share == 1)]
        )
        norms = {"laplace": size * most, "linf": most, "gaussian": math.isqrt(size * most**2 - 1) + 1}
        events: list[Event] = []
        refusals: list[PrivacyError] = []
        for kind in kinds:
            facts: dict[str, Any] = {
                "sensitivity": norms[kind],
                "adjacency": parameters.adjacency,
                "n_values": size,
                "unit": whole,
            }
            try:
                if kind == "gaussian":
                    events.append(Event.gaussian(name, budget, **facts))
                else:
                    events.append(Event.pure(name, budget, noise=kind, share=share, **facts))
            except PrivacyError as error:  # more noise than this kind can hold
                refusals.append(error)
        if not events:
            raise refusals[0]
        return min(events, key=lambda event: event.noise_sd)

    # -- reading and drawing -----------------------------------------------------------------------

    def geometry(self, schema: Schema, problem: BlockAnswers, numeric: Numbers = "slope") -> Geometry:
        """How rows are read: numbers as they are, categories by their places."""
        return schema.geometry(numeric="slope", intercept=False, several=True)

    def read(self, rows: Rows, plan: BlockPlan, problem: BlockAnswers, draws: Draws) -> PartitionedRows:
        """Read the rows, and try the function on made-up ones."""
        return self.read_blocks(PartitionedRows(rows), rows.geometry, plan)

    def read_blocks(self, dealt: PartitionedRows, geometry: Geometry, plan: BlockPlan) -> PartitionedRows:
        """Read rows that will be assigned to blocks.

        A function of the user's own is first tried on as many made-up rows as a block has.

        Parameters
        ----------
        dealt : PartitionedRows
            The rows.
        geometry : Geometry
            How rows are encoded.
        plan : BlockPlan
            The plan.

        Returns
        -------
        PartitionedRows
            The rows, read.
        """
        apart, answers = self.workers == "processes", plan.answers
        if apart and current_process().daemon:
            raise PrivacyError(
                "workers='processes' was given in a process that may have none of its own. Use workers='one'. Nothing "
                "was charged."
            )
        dealt.read()
        if answers.of_user:
            known = (plan.facts.n_rows if plan.facts.counted else dealt.n_rows) or USUAL_ROWS
            block_rows = max(1, round(known * plan.copies / self.n_blocks(known)))
            try_out(answers.function, len(answers.low), geometry, block_rows, apart)
        return dealt

    def draw(self, data: PartitionedRows, plan: BlockPlan, draws: Draws) -> Floats:
        """Deal the rows to blocks, run the function on every block, and average with noise."""
        answers = plan.answers
        places = plan.places(data.n_rows, draws.random_integers())
        found = data.answers(
            places,
            plan.blocks,
            answers.function,
            len(answers.low),
            self.workers == "processes",
            side_by_side=self.workers == "threads" or (self.workers == "auto" and not answers.of_user),
        )
        return plan.combined(found, draws)

    def solve(self, release: Release[Floats], geometry: Geometry, problem: BlockAnswers) -> BlockFit:
        """The means are what was released."""
        return BlockFit(release.value, notes_of(release.event))


def notes_of(event: Event) -> tuple[str, ...]:
    """Lines for the report: in which unit noise is told, and whether anything is left beside it. From public facts."""
    told = (
        f"noise is told as a share of the range {'chosen for' if 'ranges by' in event.mechanism else 'of'} each answer"
    )
    if event.noise_sd < MOSTLY_NOISE:
        return (told,)
    return (
        told,
        f"noise of {event.noise_sd:.2g} ranges on {event.n_values} answer{'s' * (event.n_values > 1)}: they are "
        "mostly noise. Use fewer answers, more blocks, a larger epsilon, or another mechanism",
    )


def _is_count(value: object, most: int) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and 1 <= int(value) <= most
