"""A summary: several questions about columns, asked in one release. Every question has a share of the price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.privacy import Adjacency, Draws, Event, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace, Part
from privfit.rows import Rows, count_levels
from privfit.schema import Block, Geometry, Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVEL = 0.9
"""How often an interval is to hold what it is about."""
NORMAL = float(ndtri(0.5 + LEVEL / 2))
"""Standard deviations to either side that hold so much of a normal law."""


@dataclass(frozen=True)
class Interval:
    """A figure, or several, with the ends of their intervals."""

    value: Floats
    low: Floats
    high: Floats


Figures = Mapping[str, Interval]


@dataclass(frozen=True)
class Share:
    """What a question may spend, and whom its noise protects; `n_rows` as far as it is public."""

    epsilon: Fraction
    adjacency: Adjacency
    rows_per_person: int
    n_rows: int

    def scale(self, sensitivity: int, part: Fraction = Fraction(1)) -> float:
        """The scale of noise for so much change by one row, with a part of the share."""
        return laplace_scale(sensitivity * self.rows_per_person, self.epsilon * part)

    def laplace(self, size: int, sensitivity: int, unit: int = 1, part: Fraction = Fraction(1), **more: Any) -> Laplace:
        """Laplace noise on so many values."""
        return Laplace(
            size=size,
            scale=self.scale(sensitivity, part),
            sensitivity=sensitivity * self.rows_per_person,
            unit=unit,
            epsilon=float(self.epsilon * part),
            **more,
        )


class Question(ABC):
    """Something that is asked of one column, which is counted at public levels."""

    @abstractmethod
    def block(self, start: int) -> Block:
        """The levels at which the column is counted."""

    @abstractmethod
    def parts(self, share: Share) -> tuple[Part, ...]:
        """What is drawn, from public facts alone; together it spends at most the share."""

    @abstractmethod
    def draw(self, counts: Integers, share: Share, draws: Draws) -> Any:
        """Draw the parts, in order."""

    @abstractmethod
    def figures(self, drawn: Any, share: Share) -> Figures:
        """The answer: a function of what was drawn and of public facts."""


@dataclass(frozen=True)
class SummaryProblem:
    """Questions, each with its weight in the price."""

    questions: tuple[Question, ...]
    weights: tuple[Fraction, ...]


@dataclass(frozen=True)
class SummaryPlan(ReleasePlan):
    """The questions, each with its share."""

    questions: tuple[Question, ...]
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Summary(Mechanism[SummaryProblem, SummaryPlan, list[Integers], tuple[list[Any], tuple[Share, ...]]]):
    """Answers to several questions about the columns of a table, each with noise of its own.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "summary"

    def geometry(self, schema: Schema, problem: SummaryProblem, numeric: Numbers = "slope") -> Geometry:
        """The levels of every question's column."""
        blocks: list[Block] = []
        for question in problem.questions:
            blocks.append(question.block(blocks[-1].stop if blocks else 0))
        return Geometry(tuple(blocks), False)

    def plan(self, facts: PublicFacts, problem: SummaryProblem) -> SummaryPlan:
        """The parts of every question, in order."""
        parameters, total = facts.parameters, sum(problem.weights, Fraction(0))
        shares = tuple(
            Share(
                exact(parameters.budget.epsilon) * weight / total,
                parameters.adjacency,
                int(parameters.rows_per_person),
                facts.n_rows or 1,
            )
            for weight in problem.weights
        )
        parts = [part for own, share in zip(problem.questions, shares, strict=True) for part in own.parts(share)]
        event = Event(
            self.name,
            parameters.budget.epsilon,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            parts=tuple(parts),
        )
        return SummaryPlan(event, facts, problem.questions, shares)

    def read(self, rows: Rows, plan: SummaryPlan, problem: SummaryProblem, draws: Draws) -> list[Integers]:
        """How many rows each level of every column has."""
        return count_levels(rows)

    def draw(self, data: list[Integers], plan: SummaryPlan, draws: Draws) -> tuple[list[Any], tuple[Share, ...]]:
        """What every question draws, in order."""
        each = zip(plan.questions, data, plan.shares, strict=True)
        return [question.draw(counts, share, draws) for question, counts, share in each], plan.shares

    def solve(
        self, release: Release[tuple[list[Any], tuple[Share, ...]]], geometry: Geometry, problem: SummaryProblem
    ) -> list[Figures]:
        """The figures of every question."""
        each = zip(problem.questions, *release.value, strict=True)
        return [question.figures(drawn, share) for question, drawn, share in each]
