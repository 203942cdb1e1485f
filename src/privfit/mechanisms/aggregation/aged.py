"""Settings of sample and aggregate from aged data: rows so old, or so long public, that they are no secret any more.

GUPT (SIGMOD 2012) chooses the size of blocks, and the epsilon for a wanted accuracy, from what a function says about
blocks of such rows. Nothing here reads a private row, and nothing is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.aggregation.block_plan import BlockAnswers
from privfit.mechanisms.aggregation.sample_aggregate import SampleAndAggregate
from privfit.mechanisms.base import PublicFacts
from privfit.privacy import Budget, PrivacyError, PrivacyParameters, seeded_generator
from privfit.rows.partition import answered
from privfit.schema import Geometry

Floats = NDArray[np.float64]

LEAST_BLOCKS = 2
"""The least number of blocks that has a spread."""
STEPS_PER_OCTAVE = 2
"""Numbers of blocks that are tried, from 2 to half of the rows: finer steps change the error by a few percent, which is
less than aged rows can resolve.
"""
SHUFFLE_SEED = 20_120_521
"""Public: aged rows are put into blocks in the same way everywhere."""
LEAST_EPSILON, MOST_EPSILON = 1e-6, 1e6
"""Limits of the search for an epsilon: beyond them there is only noise, or none."""
EPSILON_PRECISION = 1e-4
"""The search for an epsilon ends when its logarithm is known to this: far finer than an epsilon is ever chosen."""


@dataclass(frozen=True)
class AgedAnswers:
    """What a function says about aged rows, and the private fit that settings are wanted for.

    `n_rows` is the public number of private rows, or a public guess of it.
    """

    answers: BlockAnswers
    rows: Floats
    geometry: Geometry
    mechanism: SampleAndAggregate
    parameters: PrivacyParameters
    n_rows: int

    def best_blocks(self) -> int:
        """The number of blocks with the least expected error."""
        return min(self._candidates(), key=self.expected_error)

    def expected_error(self, blocks: int) -> float:
        """GUPT's sum: how far the mean answer of aged blocks of that size is from the answer of all aged rows, and the
        standard deviation of the noise; as a share of the range, on average over answers.
        """
        off = np.abs(self._block_answers(blocks).mean(axis=0) - self.whole)
        return float(np.mean(off / self.widths)) + self.noise_sd(blocks, self.parameters.budget.epsilon)

    def epsilon_for(self, within: Floats, confidence: float, blocks: int) -> float:
        """The least epsilon at which, by Chebyshev's inequality, the answer is within so much of the mean of what
        blocks say with this confidence: their variance over the number of blocks, and that of the noise, are at most
        (1 - confidence) within^2.
        """
        sampling = self._block_answers(blocks).var(axis=0, ddof=1) / blocks
        left = (1 - confidence) * within**2 - sampling
        wanted = float(np.min(np.sqrt(np.maximum(left, 0.0)) / self.widths))
        if not wanted or self.noise_sd(blocks, MOST_EPSILON) > wanted:
            raise PrivacyError(
                f"A result within {np.min(within):.3g} was asked for; {blocks} blocks differ so much among aged rows "
                "that no epsilon gives it. Ask for less accuracy, or use more rows or other blocks. Nothing was "
                "charged."
            )
        low, high = math.log(LEAST_EPSILON), math.log(MOST_EPSILON)
        while high - low > EPSILON_PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if self.noise_sd(blocks, math.exp(middle)) <= wanted else (middle, high)
        return math.exp(high)

    @cached_property
    def whole(self) -> Floats:
        """What the function says about all aged rows."""
        return self._answered(self.rows)

    @property
    def widths(self) -> Floats:
        """How wide the ranges of answers are."""
        return self.answers.high - self.answers.low

    def noise_sd(self, blocks: int, epsilon: float) -> float:
        """The standard deviation of the noise on a mean, as a share of its range."""
        parameters = replace(self.parameters, budget=Budget(epsilon, self.parameters.budget.delta))
        facts = PublicFacts(self.geometry, parameters, self.n_rows)
        return float(replace(self.mechanism, blocks=blocks).plan(facts, self.answers).event.noise_sd)

    def _candidates(self) -> list[int]:
        """Numbers of blocks for whose size there are two blocks of aged rows."""
        steps = range(int(STEPS_PER_OCTAVE * math.log2(max(LEAST_BLOCKS, self.n_rows // 2))) + 1)
        tried = {round(2 ** (step / STEPS_PER_OCTAVE)) for step in steps}
        fit = sorted(blocks for blocks in tried if blocks >= LEAST_BLOCKS and 2 * self._size(blocks) <= len(self.rows))
        if not fit:
            raise PrivacyError(
                f"{len(self.rows)} aged rows were given for {self.n_rows} private ones; even the smallest blocks need "
                "two of their size. Give more aged rows. Nothing was charged."
            )
        return fit

    def _size(self, blocks: int) -> int:
        """How many rows a private block will have."""
        return max(1, round(self.n_rows * int(self.mechanism.resampling) / blocks))

    def _block_answers(self, blocks: int) -> Floats:
        """What the function says about aged blocks of the size that so many private blocks have."""
        size = self._size(blocks)
        count = len(self.rows) // size
        if count < 2:
            raise PrivacyError(
                f"{len(self.rows)} aged rows were given, and two blocks of {size} are needed. Give more aged rows, or "
                "more blocks. Nothing was charged."
            )
        order = seeded_generator(SHUFFLE_SEED).permutation(len(self.rows))[: count * size].reshape(count, size)
        return np.array([self._answered(self.rows[mine]) for mine in order])

    def _answered(self, rows: Floats) -> Floats:
        """As a private fit counts an answer: cut at its bounds, or in the middle where there is none."""
        low, high = self.answers.low, self.answers.high
        found = answered(self.answers.function, rows, len(low))
        return np.where(np.isnan(found), low / 2 + high / 2, np.clip(found, low, high))
