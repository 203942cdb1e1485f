"""Steps and shares of weights that move round by round, from public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privfit.losses import ConvexLoss
from privfit.losses.margins import GRAIN, MarginLoss
from privfit.mechanisms.base import USUAL_ROWS, PublicFacts
from privfit.mechanisms.genetic.moves import MoveSchedule
from privfit.mechanisms.genetic.rounds import NumberOfRounds, name_of
from privfit.mechanisms.genetic.selections import Choices, SelectionRule, plan_choices
from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.privacy.samplers.selection import Rule
from privfit.schema import Geometry

ROUND_FACTOR = 0.03
"""Rounds per root of rows times epsilon times columns: more rounds are noisier choices, fewer stop short. Chosen on
generated tables: docs/genetic.md."""
LEAST_ROUNDS = 3
"""Fewer rounds cannot leave zero. See docs/constants.md."""
MOST_AUTOMATIC_ROUNDS = 2000
"""It limits the time; with so many rounds weights no longer change. See docs/constants.md."""
MANY_COLUMNS = 16
"""Fewer columns count as so many in the number of rounds: with few columns every one needs several. Chosen, not
measured."""
STEP_GRAIN = 8
"""Steps are integer multiples of eight lattice steps, so that eighths of a knot's share stay integers."""
MOST_MARGIN = 1 << 22
"""The largest margin, in lattice steps, that all steps of a plan may lead to."""


@dataclass(frozen=True)
class SchedulePlanner:
    """What a schedule follows from, beside public facts. The rules were chosen on generated tables and on Adult:
    docs/genetic.md.
    """

    loss: ConvexLoss
    first: float
    last: float
    rounds: NumberOfRounds
    selection: SelectionRule
    usual: Rule
    C: float | None = None
    classes: int = 1

    def schedule(self, facts: PublicFacts) -> MoveSchedule:
        """The steps of all rounds and the budget of their selections; with a delta, of twice as many rounds where zCDP
        makes these sharper.
        """
        steps = self._steps(facts, 1)
        pure = self._choices(facts.parameters, steps)
        if facts.parameters.budget.delta > 0 and self.selection != "permute-and-flip":
            more = self._steps(facts, 2)
            pooled = self._choices(facts.parameters, more)
            if pooled.rho:
                return self._planned(more, pooled)
        return self._planned(steps, pure)

    def _planned(self, steps: tuple[int, ...], choices: Choices) -> MoveSchedule:
        return MoveSchedule(steps, MarginLoss(self.loss, sum(steps)), choices, self.C, self.classes)

    def _steps(self, facts: PublicFacts, more: int) -> tuple[int, ...]:
        """The steps of all rounds, in lattice steps, with so many times the automatic number of rounds."""
        first, last = self.first, self.last
        automatic = automatic_rounds(facts.geometry, facts.parameters, facts.n_rows, self.classes)
        rounds = more * automatic if self.rounds == "auto" else int(self.rounds)
        sizes = [first * (last / first) ** (place / max(rounds - 1, 1)) for place in range(rounds)]
        steps = tuple(max(1, round(size * GRAIN / STEP_GRAIN)) * STEP_GRAIN for size in sizes)
        if sum(steps) > MOST_MARGIN:
            raise PrivacyError(
                f"{rounds} rounds of steps from {first:g} to {last:g} were given, in which a weight could go beyond "
                f"{MOST_MARGIN // GRAIN}. Use fewer rounds or smaller steps."
            )
        return steps

    def _choices(self, parameters: PrivacyParameters, steps: tuple[int, ...]) -> Choices:
        """The choices of all rounds of all predictors: small steps get more of the budget."""
        shares = [Fraction(1 / math.sqrt(step)) for step in steps] * self.classes
        return plan_choices(name_of(len(steps), self.classes), parameters, self.selection, shares, self.usual)


def automatic_rounds(geometry: Geometry, parameters: PrivacyParameters, n_rows: int | None, classes: int = 1) -> int:
    """How many rounds "auto" stands for, with the share of epsilon that one predictor has. (The paper's number grows
    with rows times epsilon, for moves of one coordinate.)
    """
    signal = (n_rows or USUAL_ROWS) * parameters.budget.epsilon / int(parameters.rows_per_person) / classes
    return max(
        LEAST_ROUNDS,
        min(round(ROUND_FACTOR * math.sqrt(signal * max(geometry.n_blocks, MANY_COLUMNS))), MOST_AUTOMATIC_ROUNDS),
    )
