"""The schedule of a fit that releases sums query by query: what each may cost and its noise, from public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Additive, KNorm, Laplace
from privfit.privacy.samplers.norms import check_fits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_BITS, MOST_BITS, BITS = 16, 32, 20
"""How fine the lattice is: 2^20 steps times epsilon to 1, so that noise is a few thousand steps; within limits that
keep sums in 64 bits.
"""


@dataclass(frozen=True)
class ClusteringFacts:
    """Everything public that queries, shares and rules may depend on.

    `rows` is the number of rows under replace-one, and a public guess of it under add-remove.
    """

    columns: int
    clusters: int
    rows: int
    parameters: PrivacyParameters

    @property
    def epsilon(self) -> float:
        """The whole price of the fit."""
        return self.parameters.budget.epsilon

    @property
    def knows_rows(self) -> bool:
        """Whether `rows` is the number of rows and no guess."""
        return self.parameters.adjacency == "replace-one"

    @property
    def sensitivity(self) -> int:
        """What a person can change of a query, in its norm: 1 per row that is there or not, 2 per row that takes other
        values.

        Guarantee: docs/proofs/clustering.md, Lemmas 2 to 5.
        """
        return (2 if self.parameters.adjacency == "replace-one" else 1) * int(self.parameters.rows_per_person)

    @property
    def signal(self) -> float:
        """How many times larger than the noise a count of all rows is, about."""
        return self.rows * self.epsilon / self.sensitivity


@dataclass(frozen=True)
class Query:
    """Values that are released together: with Laplace noise on all of them, or L-infinity noise on every block.

    `norm` is the largest norm of what one row adds, in units of 1.
    """

    name: str
    noise: Literal["laplace", "linf"]
    blocks: tuple[int, ...]
    share: Fraction
    norm: int = 1

    def part(self, scale: float, sensitivity: int, unit: int, epsilon: float) -> Additive:
        """The recipe of its noise."""
        size = sum(self.blocks)
        if self.noise == "laplace":
            return Laplace(
                size=size, scale=scale, sensitivity=sensitivity, unit=unit, epsilon=epsilon, purpose=self.name
            )
        for block in self.blocks:
            check_fits("linf", block, scale)
        return KNorm(
            norm="linf",
            blocks=self.blocks,
            size=size,
            scale=scale,
            sensitivity=sensitivity,
            unit=unit,
            epsilon=epsilon,
            purpose=self.name,
        )


@dataclass(frozen=True)
class QuerySchedule:
    """The queries of a fit, in order. Their shares of epsilon add up to at most 1.

    Guarantee: drawing every query once is epsilon-DP; docs/proofs/clustering.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    mechanism: str
    queries: tuple[Query, ...]
    facts: ClusteringFacts

    def __post_init__(self) -> None:
        if sum(query.share for query in self.queries) > 1:
            raise PrivacyError(
                f"The queries of {self.mechanism!r} cost more than the whole. Shares of epsilon add up to at most 1."
            )

    @cached_property
    def unit(self) -> int:
        """Lattice steps to 1, a power of two: noise is a few thousand of them at least, for any usual epsilon."""
        return 1 << min(max(math.ceil(math.log2(self.facts.epsilon)) + BITS, LEAST_BITS), MOST_BITS)

    def scale(self, query: Query) -> float:
        """The scale of a query's noise, on the lattice: what a person changes, over the query's share of epsilon."""
        return laplace_scale(self._sensitivity(query), exact(self.facts.epsilon) * query.share)

    def _sensitivity(self, query: Query) -> int:
        return query.norm * self.facts.sensitivity * self.unit

    def part(self, query: Query) -> Additive:
        """The recipe of a query's noise."""
        epsilon = float(exact(self.facts.epsilon) * query.share)
        return query.part(self.scale(query), self._sensitivity(query), self.unit, epsilon)

    def sd(self, query: Query) -> float:
        """The standard deviation of the noise on one value of a query, in units of 1."""
        return self.part(query).sd

    @cached_property
    def event(self) -> Event:
        """The price of everything and the noise of every query."""
        return Event(
            mechanism=self.mechanism,
            epsilon=self.facts.epsilon,
            adjacency=self.facts.parameters.adjacency,
            rows_per_person=int(self.facts.parameters.rows_per_person),
            parts=tuple(self.part(query) for query in self.queries),
        )

    def drawn(self, draws: Draws, values: Integers) -> Floats:
        """The values of the next query, which are on the lattice, with their noise, in units of 1."""
        return np.asarray(draws.add(values) / self.unit, dtype=np.float64)

    @property
    def shares(self) -> str:
        """What epsilon is spent on, in words."""
        return ", ".join(f"{query.name} {float(query.share):.0%}" for query in self.queries)
