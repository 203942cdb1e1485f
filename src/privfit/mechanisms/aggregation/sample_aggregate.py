"""Sample and aggregate: any function of a table, made private by running it on many small parts and averaging with
noise.

Mohan, Thakurta, Shi, Song, Culler: GUPT: privacy preserving data analysis made easy, SIGMOD 2012, after Nissim,
Raskhodnikova and Smith (STOC 2007). By default corrected: rows are assigned by random bits of their own, not in equal
parts, which a row that comes or goes would shift; and the answers get one draw of noise in the shape of what a row can
do to them, not a share of epsilon each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing import current_process
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.aggregation.block_plan import (
    BlockAnswers,
    BlockFit,
    BlockPlan,
    InputColumns,
    Ranges,
    Translate,
    check_translation,
    quartile_sensitivity,
)
from privfit.mechanisms.aggregation.trials import try_out
from privfit.mechanisms.base import USUAL_ROWS, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.genetic.selections import plan_choices
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import Part, RandomBits
from privfit.rows import PartitionedRows, Rows
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

RANGES = ("given", "percentiles", "inputs")
DEALINGS = ("independent", "equal")
NOISES = ("auto", "laplace", "linf", "gaussian")
WORKERS = ("auto", "one", "threads", "processes")
POWER = 0.4
"""Blocks are the number of rows to this power, the rule of GUPT's authors. More blocks have less noise and poorer
answers: papers/experiments/aggregate.py has this rule beside 1,000 blocks."""
MOST_BLOCKS = 1 << 20
"""More blocks would need more memory than the rows themselves."""
MOST_COPIES = 100
"""The most blocks that one row is in: the work grows with it, the noise does not."""
LEAST_BITS, MOST_BITS, BITS = 16, 32, 20
"""Bits of the lattice of answers: 20 and those of epsilon, within limits. Finer costs nothing up to what 64-bit sums
hold; coarser adds rounding to the answers."""
LONGEST_TIME = 86_400.0
"""A day: the longest time limit of a block, in seconds."""
MOSTLY_NOISE = 0.25
"""A report calls answers mostly noise above this standard deviation, as a share of the range: a uniform guess has 0.29.
Chosen, not measured."""


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
    ranges : {'given', 'percentiles', 'inputs'}, default='given'
        "given": answers are clipped to the bounds given. "percentiles": half of epsilon buys the quartiles of the
        answers, to which they are clipped. "inputs": half of epsilon buys the quartiles of the columns, which
        `translate` turns into bounds of the answers (the paper's "helper" form).
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
    time_limit : float or None, default=None
        Seconds that a block has. A block that is late counts with the middle of the bounds; every block takes so long,
        also one that is done before. Blocks then run one after the other, each in a process of its own.
    translate : callable or None, default=None
        For ranges="inputs": from the lower and the upper ends of the columns (two arrays, the target last) to the lower
        and the upper ends of the answers. It sees no row.
    cut : bool, default=True
        Whether noisy means are clipped to their ranges. The paper does not.
    dealing : {'independent', 'equal'}, default='independent'
        "independent": every row is assigned by random bits of its own. "equal": blocks of equal size, as in the paper;
        refused under "add-remove", where that is not private.

    See Also
    --------
    Aggregate : Any function of a private table.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1. The function is trusted to see its own rows only:
    it keeps nothing from block to block (global generators of random numbers are kept: make one inside the function),
    and passes on nothing of what it sees.
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
    time_limit: float | None = None
    translate: Translate | None = None
    cut: bool = True
    dealing: Literal["independent", "equal"] = "independent"

    name: ClassVar[str] = "sample-and-aggregate"
    solves: ClassVar[str] = "answers"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.blocks != "auto" and not _is_count(self.blocks, MOST_BLOCKS):
            raise PrivacyError(
                f"blocks={self.blocks!r} was given; it is 'auto' or an integer from 1 to {MOST_BLOCKS}, chosen "
                "without looking at the rows. Use 'auto' if in doubt."
            )
        most = MOST_COPIES if self.blocks == "auto" else min(MOST_COPIES, int(self.blocks))
        if not _is_count(self.resampling, most):
            raise PrivacyError(
                f"resampling={self.resampling!r} was given; it is an integer from 1 to {most}: a row is in as many "
                "blocks. Use 1 if in doubt."
            )
        for name, value, known in (
            ("ranges", self.ranges, RANGES),
            ("noise", self.noise, NOISES),
            ("workers", self.workers, WORKERS),
            ("dealing", self.dealing, DEALINGS),
        ):
            if value not in known:
                raise PrivacyError(f"{name}={value!r} was given; it is one of {known}. Use {known[0]!r} if in doubt.")
        if self.ranges != "given" and self.noise == "gaussian":
            raise PrivacyError(
                f"noise='gaussian' was given with ranges={self.ranges!r}, whose choices and noise spend epsilon alone. "
                "Use noise='auto'."
            )
        if (self.ranges == "inputs") != callable(self.translate):
            raise PrivacyError(
                f"ranges={self.ranges!r} was given with translate={self.translate!r}; bounds of inputs are turned into "
                "bounds of answers by a function, and nothing else is. Give both ranges='inputs' and translate, or "
                "neither."
            )
        if self.dealing == "equal" and int(self.resampling) != 1:
            raise PrivacyError(
                f"resampling={self.resampling!r} was given with dealing='equal'; a row is in one of equal parts. Use "
                "dealing='independent'."
            )
        limit = self.time_limit
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= LONGEST_TIME
        ):
            raise PrivacyError(
                f"time_limit={limit!r} was given; it is a number of seconds above 0, up to {LONGEST_TIME:g}, or None. "
                "Leave it out if in doubt."
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
        if self.dealing == "equal" and parameters.adjacency == "add-remove":
            raise PrivacyError(
                "dealing='equal' was given under add-remove, where it is not private: a row that leaves shifts others "
                "to other blocks. Use dealing='independent', or replace-one. Nothing was charged."
            )
        blocks = self.n_blocks(facts.n_rows)
        moved = min(blocks, copies * int(parameters.rows_per_person))
        unit = 1 << min(max(math.ceil(math.log2(parameters.budget.epsilon)) + BITS, LEAST_BITS), MOST_BITS)
        name, share = f"sample and aggregate, {blocks} block{'s' * (blocks > 1)}", 1.0
        before: list[Part] = [RandomBits(purpose="blocks")]
        if self.ranges != "given":
            name, share, sensitivity = self._choices(name, facts, problem, moved)
            pure = replace(parameters, budget=Budget(parameters.budget.epsilon))
            halves = plan_choices(name, pure, "permute-and-flip", [Fraction(1), Fraction(1)])  # the second is noise
            before.append(halves.part(0, sensitivity=sensitivity, purpose="ranges"))
        noise = self._noise(name, parameters, size, moved * unit, blocks * unit, share)
        event = replace(noise, parts=(*before, *noise.parts), rows_per_person=int(parameters.rows_per_person))
        equal = self.dealing == "equal"
        return BlockPlan(event, facts, problem, blocks, copies, moved, unit, self.ranges, equal, bool(self.cut))

    def _choices(self, name: str, facts: PublicFacts, problem: BlockAnswers, moved: int) -> tuple[str, float, int]:
        """The name of an event with choices of ranges, what they leave of epsilon, and their sensitivity.

        Guarantee: docs/proofs/aggregate.md, Lemma 3 and, for inputs, Lemma 4.
        """
        size = len(problem.low)
        if self.ranges == "percentiles":
            return name + f", ranges by {2 * size} choices", 0.5, quartile_sensitivity(moved, size)
        numbers = len(InputColumns.of(facts.geometry).numbers)
        if not problem.of_user or not numbers:
            raise PrivacyError(
                "ranges='inputs' was given for a model of privfit's own, or a schema without numbers; it is for "
                "pf.Aggregate and numbers. Use ranges='percentiles'. Nothing was charged."
            )
        rows = int(facts.parameters.rows_per_person)
        return name + f", ranges by {2 * numbers} choices among inputs", 0.5, quartile_sensitivity(rows, numbers)

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

    def read_blocks(self, rows: PartitionedRows, geometry: Geometry, plan: BlockPlan) -> PartitionedRows:
        """Read rows that will be assigned to blocks.

        A function of the user's own is first tried on as many made-up rows as a block has.

        Parameters
        ----------
        rows : PartitionedRows
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
        rows.read()
        if answers.of_user:
            known = (plan.facts.n_rows if plan.facts.counted else rows.n_rows) or USUAL_ROWS
            block_rows = max(1, round(known * plan.copies / self.n_blocks(known)))
            if self.translate is not None:
                check_translation(self.translate, InputColumns.of(geometry), answers)
            try_out(answers.function, len(answers.low), geometry, block_rows, apart, self.time_limit)
        return rows

    def draw(self, data: PartitionedRows, plan: BlockPlan, draws: Draws) -> Floats:
        """Deal the rows to blocks, run the function on every block, and average with noise."""
        answers, bounds = plan.answers, None
        places = plan.places(data.n_rows, draws.random_integers())
        if self.translate is not None:
            columns = InputColumns.of(plan.facts.geometry)
            bounds = plan.bought_ranges(data.counts(columns.grids), self.translate, columns, draws)
        found = data.answers(
            places,
            plan.blocks,
            answers.function,
            len(answers.low),
            self.workers == "processes",
            side_by_side=self.workers == "threads" or (self.workers == "auto" and not answers.of_user),
            time_limit=self.time_limit,
        )
        return plan.combined(found, draws, bounds)

    def solve(self, release: Release[Floats], geometry: Geometry, problem: BlockAnswers) -> BlockFit:
        """The means are what was released."""
        return BlockFit(release.value, notes_of(release.event))


def notes_of(event: Event) -> tuple[str, ...]:
    """Lines for the report: in which unit noise is stated, and whether anything is left beside it. From public
    facts."""
    which = "chosen for" if "ranges by" in event.mechanism else "of"
    told = f"noise is stated as a share of the range {which} each answer"
    if event.noise_sd < MOSTLY_NOISE:
        return (told,)
    return (
        told,
        f"noise of {event.noise_sd:.2g} ranges on {event.n_values} answer{'s' * (event.n_values > 1)}: they are "
        "mostly noise. Use fewer answers, more blocks, a larger epsilon, or another mechanism",
    )


def _is_count(value: object, most: int) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and 1 <= int(value) <= most
