"""Sample and aggregate: any function of a table, made private by running it on many small parts and averaging with noise.

Mohan, Thakurta, Shi, Song, Culler: GUPT: privacy preserving data analysis made easy, SIGMOD 2012, after Nissim, Raskhodnikova and Smith (STOC 2007). Corrected: rows are dealt by coins of their own, not
in equal parts, which a row that comes or goes would shift; and the answers get one draw of noise in the shape of what a row can do to them, not a share of epsilon each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing import current_process
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.choices import Choices, plan_choices
from privfit.mechanisms.minima import public_rows
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.rules import USUAL_ROWS
from privfit.mechanisms.trials import try_out
from privfit.privacy import Budget, Event, Ledger, Noise, PrivacyError, Terms, noised
from privfit.privacy.shapes import Source
from privfit.rows import DealtRows, Rows
from privfit.rows.dealt import BlockFunction
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
"""Percentiles are chosen among so many evenly spaced points of the range, and its lower end. Every lattice has a multiple of it."""
DEALT_AT_ONCE = 1 << 20
MOSTLY_NOISE = 0.25


@dataclass(frozen=True)
class BlockAnswers:
    """What is aggregated: a function of the rows of a block, and the public range of every number that it returns."""

    function: BlockFunction
    low: Floats
    high: Floats


@dataclass(frozen=True)
class BlockFit:
    """The noisy means of answers, and lines for the report."""

    values: Floats
    notes: tuple[str, ...]


# -- what is planned from public facts -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockPlan:
    """All that is decided before a row is read, and its price.

    Guarantee: dealing rows into `blocks` blocks, `copies` times each, and `combined` with the answers, keep the promise of `event`; docs/proofs/aggregate.md, Theorem 1.
    """

    blocks: int
    copies: int
    moved: int
    """How many answers one person can change."""
    unit: int
    """Lattice steps to the whole range of an answer."""
    event: Event
    choices: Choices | None = None

    @property
    def reach(self) -> int:
        """The most by which a person can change the difference of two scores, added up over all menus of percentiles, in quarters of a block.

        Guarantee: docs/proofs/aggregate.md, Lemma 3.
        """
        return 8 * self.moved * 2 * self.event.n_values

    def places(self, rows: int, source: Source) -> Integers:
        """The blocks of every row, one line each: `copies` different ones, all such sets as likely, whatever the other rows got."""
        limits = np.arange(self.blocks, self.blocks - self.copies, -1, dtype=np.int64)
        sizes = [min(DEALT_AT_ONCE, rows - first) for first in range(0, rows, DEALT_AT_ONCE)]
        drawn = np.concatenate([source.below(np.tile(limits, size)) for size in sizes]).reshape(rows, self.copies)
        for place in range(1, self.copies):
            for taken in np.sort(drawn[:, :place], axis=1).T:  # skip those that the row has
                drawn[:, place] += drawn[:, place] >= taken
        return drawn

    def combined(self, answers: Floats, low: Floats, high: Floats, noise: Noise) -> Floats:
        """The noisy means of the answers, cut at their ranges. Blocks without an answer (NaN) count with the middle."""
        steps = self._on_lattice(answers, low, high)
        first, width = np.zeros(len(low)), np.full(len(low), float(GRID))
        if self.choices is not None:
            first, width = self._quartiles(steps, noise)
            steps = self._cut(steps, first, width)
        drawn = noised(noise, steps.sum(axis=0), self.event)
        means = np.clip(drawn / (self.blocks * self.unit), 0.0, 1.0)
        share = (first + width * means) / GRID
        return np.clip(low * (1 - share) + high * share, low, high)

    def _on_lattice(self, answers: Floats, low: Floats, high: Floats) -> Integers:
        """Answers as whole numbers from 0, at the lower end of their range, to `unit`."""
        with np.errstate(all="ignore"):
            share = np.clip((answers - low) / (high - low), 0.0, 1.0)
        return np.asarray(np.rint(np.where(np.isnan(share), 0.5, share) * self.unit), dtype=np.int64)

    def _quartiles(self, steps: Integers, noise: Noise) -> tuple[Floats, Floats]:
        """For every answer the lower end and the width of what lies between its quartiles, chosen privately, in grid points. Widths are at least one."""
        assert self.choices is not None
        near = (2 * GRID * steps + self.unit) // (2 * self.unit)
        menus = [menu for column in near.T for menu in quartile_scores(column, self.blocks)]
        chosen = np.array(self.choices.choose(noise, 0, menus, self.reach)).reshape(-1, 2)
        lower = np.minimum(chosen.min(axis=1), GRID - 1)
        return lower.astype(np.float64), np.maximum(chosen.max(axis=1) - lower, 1).astype(np.float64)

    def _cut(self, steps: Integers, first: Floats, width: Floats) -> Integers:
        """Answers cut at the ranges that were chosen, each stretched to all of the lattice."""
        point = self.unit // GRID
        inside = np.clip(steps - first * point, 0.0, width * point)
        return np.rint(inside * GRID / width).astype(np.int64)


def quartile_scores(near: Integers, blocks: int) -> tuple[list[int], list[int]]:
    """How well each grid point serves as the first and as the third quartile: minus the answers, in quarters, by which it misses.

    Guarantee: docs/proofs/aggregate.md, Lemma 3.
    """
    counts = np.bincount(near, minlength=GRID + 1)
    up_to = 4 * np.cumsum(counts)
    below = up_to - 4 * counts

    def scores(wanted: int) -> list[int]:
        return (-np.maximum(0, np.maximum(below - wanted, wanted - up_to))).tolist()  # type: ignore[no-any-return]

    return scores(blocks), scores(3 * blocks)


# -- the mechanism ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleAndAggregate:
    """Run a function on many small blocks of rows and release the mean of its answers, with noise: GUPT, for any function.

    Every row is dealt to a block by secret coins. A row can change what its own block says and no other; and each answer is cut at public bounds, so that it can move the mean by at most the width of the bounds over
    the number of blocks, whatever the function does.

    As `mechanism=` of pf.Aggregate for any function; of pf.LogisticRegression and pf.LinearSVC, which then average weights; and of pf.KMeans, which averages centres, sorted by their first column. A baseline: weights and
    centres have many numbers, blocks are few, and the noise on each grows with the first over the second.

    Parameters
    ----------
    blocks : how many; "auto" is rows^0.4, by the paper's rule, times `resampling`. More blocks mean less noise and worse answers.
    ranges : "given": answers are cut at the bounds given. "percentiles": half of epsilon buys the quartiles of the answers, between which they are cut.
    resampling : in how many blocks each row is. It steadies what dealing does by chance, at the same noise.
    noise : "auto" takes the least of one "linf" draw (a cube) for all answers, "laplace" noise, and with a delta "gaussian" noise.
    workers : "one" runs block after block. "threads" run side by side, for functions that neither touch nor depend on what a process shares: filters of warnings, the global generators of numpy and random, the environment. "processes" suit plain Python, and keep a
        crash away from other blocks. "auto" is "one" for a function of the user's own, and "threads" for privfit's.
    largest_weight, ridge : for classifiers: weights are searched between minus and plus `largest_weight`, 5 as in the comparison of PrivGene's authors, with `ridge` / 2 times their squares added to the loss of a block.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1. The function is believed to see its own
    rows only: it keeps nothing from block to block (global generators of random numbers are kept: make one inside the function), and tells nobody what it sees.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    blocks: int | Literal["auto"] = "auto"
    ranges: Ranges = "given"
    resampling: int = 1
    noise: Literal["auto", "laplace", "linf", "gaussian"] = "auto"
    workers: Literal["auto", "one", "threads", "processes"] = "auto"
    largest_weight: float = 5.0
    ridge: float = 1.0

    name = "sample-and-aggregate"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.blocks != "auto" and not _is_count(self.blocks, MOST_BLOCKS):
            raise PrivacyError(
                f"blocks={self.blocks!r} was given; it is 'auto' or a whole number from 1 to {MOST_BLOCKS}, chosen without looking at the rows. Use 'auto' if in doubt."
            )
        most = MOST_COPIES if self.blocks == "auto" else min(MOST_COPIES, int(self.blocks))
        if not _is_count(self.resampling, most):
            raise PrivacyError(
                f"resampling={self.resampling!r} was given; it is a whole number from 1 to {most}: a row is in as many blocks. Use 1 if in doubt."
            )
        for name, value, known in (("ranges", self.ranges, RANGES), ("noise", self.noise, NOISES), ("workers", self.workers, WORKERS)):
            if value not in known:
                raise PrivacyError(f"{name}={value!r} was given; it is one of {known}. Use {known[0]!r} if in doubt.")
        if self.ranges == "percentiles" and self.noise == "gaussian":
            raise PrivacyError(
                "noise='gaussian' was given with ranges='percentiles', whose choices and noise spend epsilon alone. Use noise='auto'."
            )
        for name, number in (("largest_weight", self.largest_weight), ("ridge", self.ridge)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 1e-6 <= number <= 1e6:
                raise PrivacyError(f"{name}={number!r} was given; it is a number from 1e-6 to 1e6. Leave it out if in doubt.")

    def plan(self, size: int, terms: Terms, n_rows: int | None) -> BlockPlan:
        """How many blocks there are and the noise on so many answers, from public facts."""
        copies = int(self.resampling)
        rows = n_rows or terms.expected_rows or USUAL_ROWS
        blocks = min(copies * max(1, round(rows**POWER)), MOST_BLOCKS) if self.blocks == "auto" else int(self.blocks)
        moved = min(blocks, copies * int(terms.rows_per_person))
        unit = 1 << min(max(math.ceil(math.log2(terms.budget.epsilon)) + BITS, LEAST_BITS), MOST_BITS)
        name = f"sample and aggregate, {blocks} block{'s' * (blocks > 1)}"
        if self.ranges == "given":
            return BlockPlan(blocks, copies, moved, unit, self._event(name, terms, size, moved * unit, blocks * unit, 1.0))
        pure = replace(terms, budget=Budget(terms.budget.epsilon))
        name += f", ranges by {2 * size} choices"
        choices = plan_choices(
            name, pure, "permute-and-flip", [Fraction(1), Fraction(1)]
        )  # the first half of epsilon, exactly; the second is noise
        return BlockPlan(blocks, copies, moved, unit, self._event(name, terms, size, moved * unit, blocks * unit, 0.5), choices)

    def _event(self, name: str, terms: Terms, size: int, most: int, whole: int, share: float) -> Event:
        """The least noise there is where a person moves each of so many sums by `most`; `whole` is a mean of 1.

        Guarantee: docs/proofs/aggregate.md, Lemma 2.
        """
        kinds = (
            [self.noise]
            if self.noise != "auto"
            else ["laplace", *["linf"] * (size > 1), *["gaussian"] * (terms.budget.delta > 0 and share == 1)]
        )
        reaches = {"laplace": size * most, "linf": most, "gaussian": math.isqrt(size * most**2 - 1) + 1}
        events: list[Event] = []
        refusals: list[PrivacyError] = []
        for kind in kinds:
            facts: dict[str, Any] = {"sensitivity": reaches[kind], "adjacency": terms.adjacency, "n_values": size, "unit": whole}
            try:
                if kind == "gaussian":
                    events.append(Event.gaussian(name, terms.budget, **facts))
                else:
                    events.append(Event.pure(name, terms.budget, noise=kind, share=share, **facts))
            except PrivacyError as error:  # more noise than this kind can hold
                refusals.append(error)
        if not events:
            raise refusals[0]
        return replace(min(events, key=lambda event: event.noise_sd), rows_per_person=int(terms.rows_per_person))

    # -- for any function ---------------------------------------------------------------------------------------------------------

    def geometry(self, schema: Schema, objective: BlockAnswers) -> Geometry:
        """How rows are read: numbers as they are, categories by their places."""
        return schema.geometry(numeric="slope", intercept=False, several=True)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: BlockAnswers) -> Release[Floats]:
        """Read the rows, try the function on made-up ones, charge the ledger, and run it on every block."""

        def trial(block_rows: int) -> None:
            try_out(objective.function, len(objective.low), rows.geometry, block_rows, self.workers == "processes")

        return self.aggregated(DealtRows(rows), rows.label, terms, ledger, noise, objective, trial)

    def aggregated(
        self,
        dealt: DealtRows,
        label: str,
        terms: Terms,
        ledger: Ledger | None,
        noise: Noise,
        objective: BlockAnswers,
        trial: Callable[[int], None] | None = None,
    ) -> Release[Floats]:
        """Read, charge, deal, run and combine. `trial`, of a function of the user's own, is called with the usual number of rows of a block, before the charge."""
        check_ledger(ledger, noise)
        if self.workers == "processes" and current_process().daemon:
            raise PrivacyError(
                "workers='processes' was given in a process that may have none of its own. Use workers='one'. Nothing was charged."
            )
        low, high, size = objective.low, objective.high, len(objective.low)
        if ledger is not None:  # before a long reading
            ledger.check(self.plan(size, terms, None).event)
        dealt.read()
        known = public_rows(dealt.n_rows, terms)
        plan = self.plan(size, terms, known)  # public facts only
        if trial is not None:
            trial(max(1, round((known or USUAL_ROWS) * plan.copies / plan.blocks)))
        if ledger is not None:
            ledger.charge(plan.event, dataset=label)  # durable before any draw
        places = plan.places(dealt.n_rows, cast(Source, noise))
        together = self.workers == "threads" or (self.workers == "auto" and trial is None)
        answers = dealt.answers(places, plan.blocks, objective.function, size, self.workers == "processes", side_by_side=together)
        return Release(plan.combined(answers, low, high, noise), plan.event, noise.private)

    def solve(self, release: Release[Floats], geometry: Geometry, objective: BlockAnswers) -> BlockFit:
        """The means are what was released."""
        return BlockFit(release.value, notes_of(release.event))


def notes_of(event: Event) -> tuple[str, ...]:
    """Lines for the report: in which unit noise is told, and whether anything is left beside it. From public facts."""
    told = f"noise is told as a share of the range {'chosen for' if 'ranges by' in event.mechanism else 'of'} each answer"
    if event.noise_sd < MOSTLY_NOISE:
        return (told,)
    return (
        told,
        f"noise of {event.noise_sd:.2g} ranges on {event.n_values} answer{'s' * (event.n_values > 1)}: they are mostly noise. Use fewer answers, more blocks, a larger epsilon, or another mechanism",
    )


def _is_count(value: object, most: int) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and 1 <= int(value) <= most
