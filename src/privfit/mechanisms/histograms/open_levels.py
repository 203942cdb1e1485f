"""Levels that nobody has listed: those whose noisy count is so large that one person's level is hardly ever there.

Korolova, Kenthapadi, Mishra, Ntoulas, Releasing Search Queries and Clicks Privately, WWW 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

from privfit.mechanisms.base import USUAL_ROWS, Description, Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.histograms.filtered_sample import MOST_LIFTED, MOST_SCALES, cell_noise
from privfit.privacy import Budget, Draws, Event, PrivacyError
from privfit.privacy.parts import HeldThreshold
from privfit.privacy.samplers.threshold import MOST_COUNT
from privfit.rows import OpenCounts, Rows, count_open_levels
from privfit.schema import Geometry, Schema, make_block

DIGITS = 60
"""Decimal digits of the probabilities that a threshold is found by: far more than thresholds have."""

Level = str | float


@dataclass(frozen=True)
class OpenLevels(Mechanism[None, ReleasePlan, OpenCounts, dict[Level, int]]):
    """The levels of a column that nobody has listed, if their noisy count is at least a threshold; with that count.

    A level that the rows of one person alone have passes with a probability of at most delta.

    Guarantee: (epsilon, delta)-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/open-levels.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "open levels"

    def geometry(self, schema: Schema, problem: None = None, numeric: Numbers = "slope") -> Geometry:
        """The only column; of its levels none is known."""
        return Geometry((make_block(schema.features[0], 0, whole=True),), False)

    def plan(self, facts: PublicFacts, problem: None) -> ReleasePlan:
        """The noise and the threshold, from public facts alone."""
        parameters = facts.parameters
        budget, people = parameters.budget, int(parameters.rows_per_person)
        if not budget.delta:
            raise PrivacyError(
                "Levels were asked for that no list has, and delta=0: that such a level exists may reveal a person. "
                "Give a delta far below one over the number of rows, such as delta=1e-6, or a public list: "
                "pf.Category('code', ['A01', 'A02']). Nothing was charged."
            )
        sensitivity, scale = cell_noise(parameters)
        threshold, size = least_threshold(scale, budget, people), facts.n_rows or USUAL_ROWS
        if math.log(size) - (threshold - threshold // 2) / scale > math.log(MOST_LIFTED):
            raise PrivacyError(
                f"delta={budget.delta:g} is too large for {size:,} rows: more than {MOST_LIFTED:,} levels would be "
                "listed in passing. Give a delta far below one over the number of rows. Nothing was charged."
            )
        part = HeldThreshold(
            size=size,
            scale=scale,
            threshold=threshold,
            sensitivity=sensitivity,
            epsilon=budget.epsilon,
        )
        event = Event(self.name, budget.epsilon, budget.delta, 0.0, parameters.adjacency, people, (part,))
        return ReleasePlan(event, facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> OpenCounts:
        """How many rows each level has, in the order of the levels: the order of rows does not show."""
        return dict(sorted(count_open_levels(rows).items()))

    def draw(self, data: OpenCounts, plan: ReleasePlan, draws: Draws) -> dict[Level, int]:
        """The levels that pass, with their noisy counts."""
        levels, passed = list(data), draws.passing_held(list(data.values()))
        return {levels[place]: count for place, count in passed.items()}

    def describe(self, fit: dict[Level, int], schema: Schema, geometry: Geometry) -> Description:
        """What delta is for."""
        return Description(notes=("delta bounds the probability that a level which only one person has is released",))


def least_threshold(scale: float, budget: Budget, rows_per_person: int) -> int:
    """The least threshold that levels of one person alone pass with probability at most delta, however their rows are
    divided among levels; and with probability at most 1 - exp(-1 / scale), which the proof needs.

    Guarantee: docs/proofs/open-levels.md, Lemma 3.
    """
    with localcontext(Context(prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        step = 1 / Decimal(scale)
        once = (-step).exp()
        wanted = min(Decimal(budget.delta), 1 - once)
        least = rows_per_person + 1

        def fails(threshold: int) -> bool:
            """Whether one level with all rows, or as many with one row each, pass too often."""
            together = (-step * (threshold - rows_per_person)).exp()
            apart = rows_per_person * (-step * (threshold - 1)).exp()
            return max(together, apart) > wanted * (1 + once)

        above = least
        while fails(above):
            least, above = above, 2 * above
        while least < above:
            middle = (least + above) // 2
            least, above = (middle + 1, above) if fails(middle) else (least, middle)
    if least > min(MOST_SCALES * scale, MOST_COUNT):
        raise PrivacyError(
            f"epsilon={budget.epsilon:g} asks for a threshold of {least:g} with noise of scale {scale:g}, beyond what "
            "is computed exactly. Choose an epsilon that is neither tiny nor huge. Nothing was charged."
        )
    return least
