"""PrivGene for classes: weights that move by private choices.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013. The paper's candidates differ from their parent in one coordinate. Here a candidate moves every level of one column, up or down: a row is in
one level of a column, so that this costs no more than moving one of them, and all patterns of all columns can be chosen from at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC, ConvexLoss, tempered_logistic
from privfit.losses.margins import GRAIN, MarginLoss
from privfit.mechanisms.breeding import Breeding
from privfit.mechanisms.choices import Choices, Selection, plan_choices
from privfit.mechanisms.genes import FARTHEST, WeightScorer, first_candidates, on_lattice
from privfit.mechanisms.minima import Risk, RiskFit, check_number, public_rows
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.rules import USUAL_ROWS, Numbers
from privfit.mechanisms.search import GeneticMechanism, check_rounds
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.privacy.patterns import Chain
from privfit.privacy.shapes import Source
from privfit.rows import KeptRows, MarginRows, Rows
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

Moves = Literal["columns", "coordinates", "genes"]

STEEPEST, TAPER = 0.5, 50.0
ROUND_FACTOR = 0.03
LEAST_ROUNDS = 3
MOST_ROUNDS = 2000
MANY_COLUMNS = 16
FIRST_STEP, FIRST_STEP_OF_HINGES, LAST_STEP = 1.5, 1.0, 0.2
STEP_GRAIN = 8
"""Steps are whole numbers of eighths of a knot's share."""
LISTED = 200
MOST_REACH = 1 << 22


@dataclass(frozen=True)
class GenePlan:
    """All that is decided before a row is read: the steps of the rounds, in lattice steps, the loss, and the price."""

    steps: tuple[int, ...]
    loss: MarginLoss
    choices: Choices

    def within(self, place: int) -> int:
        """The largest margin that any row can have before a round: the sum of all earlier steps."""
        return sum(self.steps[:place])

    def reach(self, place: int, terms: Terms) -> int:
        """The most by which one person can change the difference of two candidates' scores in a round.

        Guarantee: docs/proofs/selection.md, Lemma 6.
        """
        replaced = terms.adjacency == "replace-one"
        if self.choices.by_range:
            spread = self.loss.spread(self.within(place), self.steps[place])
            return spread * (2 if replaced else 1) * int(terms.rows_per_person)
        return 2 * self.loss.change(self.within(place) + self.steps[place], replaced) * int(terms.rows_per_person)


@dataclass(frozen=True)
class PrivGene:
    """Let weights evolve: in every round candidates are scored on the rows, and one is selected privately to beget the next.

    Parameters
    ----------
    selection : "enhanced" is the exponential mechanism by how far one row can tell candidates apart, "exponential" by how far it can move a score, as usual, "permute-and-flip" a sharper rule for
        listed candidates. "auto" is "enhanced".
    candidates : how many candidates a round has; "all" are all patterns of all columns, which the exponential mechanism chooses from without listing them. "auto" is "all", or 200
        with permute-and-flip or single coordinates.
    moves : "columns" moves every level of one column up or down; "coordinates" one level; "genes" is the paper's algorithm: a population that starts anywhere in [-5, 5], crossover, and mutations of
        one coordinate.
    rounds : how many; "auto" grows with the root of rows times epsilon, and for "genes" is the paper's 0.00125 times rows times epsilon over parents.
    first_step, last_step : how far weights move in the first and in the last round; in between steps shrink evenly. "auto" is 1.5 (1 for hinge losses) and 0.2.
    parents, mutation, decay : for "genes": how many candidates are selected to beget the next, how far mutations go in the first round (as a share of the bounds), and by what factor that shrinks.
    calibration : "tight", or "paper": "genes" with the constants that the paper prints, for comparison. For hinge losses and k-means those are NOT private, and no ledger takes them.

    For two classes. Columns enter as categories or splines; for "genes" numbers are slopes.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove, for persons with at most `rows_per_person` rows, up to a chance below 2^-100;
    docs/proofs/selection.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    selection: Selection = "auto"
    candidates: int | Literal["all", "auto"] = "auto"
    moves: Moves = "columns"
    rounds: int | Literal["auto"] = "auto"
    first_step: float | Literal["auto"] = "auto"
    last_step: float | Literal["auto"] = "auto"
    parents: int = 1
    mutation: float = 0.05
    decay: float = 0.95
    calibration: Literal["tight", "paper"] = "tight"

    name = "genetic"
    numeric: ClassVar[Numbers] = "splines"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        check_rounds(self.rounds)
        if self.moves not in ("columns", "coordinates", "genes"):
            raise PrivacyError(f"moves={self.moves!r} was given; it is 'columns', 'coordinates' or 'genes'. Use 'columns' if in doubt.")
        if self.calibration not in ("tight", "paper"):
            raise PrivacyError(f"calibration={self.calibration!r} was given; it is 'tight' or 'paper'. Use 'tight' if in doubt.")
        listed = self.candidates
        if listed not in ("all", "auto") and (isinstance(listed, bool) or not hasattr(listed, "__index__") or int(listed) < 2):
            raise PrivacyError(
                f"candidates={listed!r} was given; it is 'all', 'auto' or a whole number of at least 2. Use 'auto' if in doubt."
            )
        if self.bred:
            self.breeding.check()
        elif self.parents != 1:
            raise PrivacyError(
                f"parents={self.parents!r} was given with moves={self.moves!r}, which move one parent. Use moves='genes' for more."
            )
        if listed == "all" and (self.selection == "permute-and-flip" or self.moves == "coordinates" or self.bred):
            raise PrivacyError(
                "candidates='all' was given with permute-and-flip or single coordinates; all patterns of columns are chosen from by the exponential mechanism. "
                "Use selection='enhanced' and moves='columns', or a number of candidates."
            )
        for name, step in (("first_step", self.first_step), ("last_step", self.last_step)):
            if step != "auto" and (isinstance(step, bool) or not isinstance(step, int | float) or not 0.05 <= step <= 10):
                raise PrivacyError(f"{name}={step!r} was given; it is 'auto' or a number from 0.05 to 10. Use 'auto' if in doubt.")

    def reasons_not_private(self, objective: Risk) -> tuple[str, ...]:
        """Why its releases are not private, if they are not: the paper's constants hold for the logistic loss alone; docs/proofs/selection.md, Theorem 3."""
        if self.calibration != "paper" or objective.loss == LOGISTIC:
            return ()
        return ("calibration='paper' of PrivGene for a hinge loss: the paper prints half of what its dampening factor must be",)

    @property
    def bred(self) -> bool:
        """Whether candidates are bred as in the paper."""
        return self.moves == "genes" or self.calibration == "paper"

    @property
    def breeding(self) -> Breeding:
        """How candidates beget candidates as in the paper."""
        return Breeding(LISTED if self.candidates in ("auto", "all") else int(self.candidates), self.parents, self.mutation, self.decay)

    def geometry(self, schema: Schema, numeric: Numbers, objective: Risk) -> Geometry:
        """How rows are encoded: levels and splines, of which every column carries a constant; for the paper's algorithm slopes and levels, and a constant of its own."""
        if self.bred:
            return self._bred_geometry(schema, numeric, objective)
        if numeric == "slope" or not objective.fit_intercept or objective.features is not None:
            raise PrivacyError(
                "The genetic mechanism was asked for slopes, a kernel, or a model without an intercept; it moves levels and knots of columns, which carry a constant. "
                "Use numeric='splines' or 'bins', or mechanism='objective'."
            )
        geometry = schema.geometry(numeric=numeric, intercept=False, knots=objective.knots, whole=True)
        if self.moves == "coordinates" and any(block.kind == "hats" for block in geometry.blocks):
            raise PrivacyError(
                "moves='coordinates' was given with splines; a knot that moved alone would move its rows by shares. Use numeric='bins', or moves='columns'."
            )
        return geometry

    def _bred_geometry(self, schema: Schema, numeric: Numbers, objective: Risk) -> Geometry:
        if numeric == "splines" or not objective.fit_intercept or objective.features is not None:
            raise PrivacyError(
                "The paper's genetic algorithm was asked for splines, a kernel, or a model without an intercept, which it does not know. "
                "Use numeric='slope' or 'bins', or moves='columns'."
            )
        return schema.geometry(numeric=numeric, whole=True)

    def numbers(self, asked: str, usual: Numbers) -> Numbers:
        """How numbers enter: as splines, in bins where single levels move (a knot that moved alone would move its rows by shares), and as slopes in the paper's algorithm."""
        if asked != "auto":
            return usual
        return "slope" if self.bred else "bins" if self.moves == "coordinates" else "splines"

    @property
    def lists(self) -> int:
        """How many candidates are listed in a round; 0 if all are chosen from."""
        if self.candidates == "auto":
            return LISTED if self.selection == "permute-and-flip" or self.moves == "coordinates" else 0
        return 0 if self.candidates == "all" else int(self.candidates)

    def price(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None) -> Choices:
        """How many choices there are and what each may spend, from public facts."""
        return self._algorithm.plan(None, terms, n_rows) if self.bred else self.plan(geometry, terms, objective, n_rows).choices

    @property
    def _algorithm(self) -> GeneticMechanism:
        selection: Selection = "enhanced" if self.selection == "auto" and self.calibration == "paper" else self.selection
        return GeneticMechanism(selection, self.breeding, self.rounds)

    def plan(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None) -> GenePlan:
        """Rounds, steps and shares of the budget, from public facts. The rules were chosen on generated tables and on Adult: docs/genetic.md."""
        pure = self._planned(geometry, terms, objective, n_rows, 1)
        if terms.budget.delta <= 0 or self.selection == "permute-and-flip":
            return pure
        pooled = self._planned(geometry, terms, objective, n_rows, 2)
        return pooled if pooled.choices.event.rho else pure

    def _planned(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None, more: int) -> GenePlan:
        loss = scored_loss(objective.loss)
        rounds = more * automatic_rounds(geometry, terms, n_rows) if self.rounds == "auto" else int(self.rounds)
        first = (
            (FIRST_STEP if objective.loss == LOGISTIC else FIRST_STEP_OF_HINGES) if self.first_step == "auto" else float(self.first_step)
        )
        last = min(LAST_STEP, first) if self.last_step == "auto" else float(self.last_step)
        sizes = [first * (last / first) ** (place / max(rounds - 1, 1)) for place in range(rounds)]
        steps = tuple(max(1, round(size * GRAIN / STEP_GRAIN)) * STEP_GRAIN for size in sizes)
        if sum(steps) > MOST_REACH:
            raise PrivacyError(
                f"{rounds} rounds of steps from {first:g} to {last:g} were given, in which a weight could go beyond {MOST_REACH // GRAIN}. Use fewer rounds or smaller steps."
            )
        shares = [Fraction(1 / math.sqrt(step)) for step in steps]
        name = f"genetic search, {rounds} round{'s' * (rounds > 1)}"
        choices = plan_choices(name, terms, self.selection, shares, "permute-and-flip" if self.moves == "coordinates" else "exponential")
        return GenePlan(steps, MarginLoss(loss, sum(steps)), choices)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk) -> Release[RiskFit]:
        """Read the rows, charge the ledger, and let weights move round by round. With constants that are not private a ledger is refused."""
        check_ledger(ledger, noise, self.reasons_not_private(objective))
        if ledger is not None:  # before a long reading
            ledger.check(self.price(rows.geometry, terms, objective, None).event)
        kept = KeptRows(rows)
        check_number(kept.n_rows, terms)
        if self.bred:
            return self._bred(kept, rows, terms, ledger, noise, objective)
        plan = self.plan(rows.geometry, terms, objective, public_rows(kept.n_rows, terms))  # public facts only
        margins = MarginRows(kept, plan.loss)
        reaches = [plan.reach(place, terms) for place in range(len(plan.steps))]
        for place, reach in enumerate(reaches):
            plan.choices.scale(place, reach)  # an epsilon too small for 64 bits is refused before the charge
        if ledger is not None:
            ledger.charge(plan.choices.event, dataset=rows.label)  # durable before any draw
        for place, step in enumerate(plan.steps):
            chains = [Chain(alone, linked) for alone, linked in margins.gains(step)]
            column, signs = self._chosen(chains, plan, place, terms, noise)
            margins.move(column, signs, step)
        weights = margins.weights[:, None] / GRAIN
        private = noise.private and not self.reasons_not_private(objective)
        return Release(RiskFit(weights, 0.0, plan.loss.loss), plan.choices.event, private)

    def _bred(self, kept: KeptRows, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk) -> Release[RiskFit]:
        """The paper's algorithm."""
        algorithm, geometry = self._algorithm, rows.geometry
        choices = algorithm.plan(None, terms, public_rows(kept.n_rows, terms))
        loss = MarginLoss(objective.loss, int(FARTHEST * GRAIN) * (geometry.n_blocks + 1) + 1)
        scores = WeightScorer(kept, loss, geometry, self.calibration == "paper", objective.loss != LOGISTIC, self.breeding)
        farthest = (2 * int(FARTHEST) * geometry.n_columns + 4) * loss.unit * int(terms.rows_per_person)
        choices.scale(
            min(range(len(choices.each)), key=choices.each.__getitem__), farthest
        )  # an epsilon too small for 64 bits is refused before the charge
        if ledger is not None:
            ledger.charge(choices.event, dataset=rows.label)  # durable before any draw
        first, low, high = first_candidates(self.breeding.candidates, geometry, noise)
        best = algorithm.searched(scores, low, high, terms, choices, noise, first)
        weights = on_lattice(best[None])[0][:, None] / GRAIN
        private = noise.private and not self.reasons_not_private(objective)
        return Release(RiskFit(weights, 0.0, objective.loss), choices.event, private)

    def _chosen(self, chains: list[Chain], plan: GenePlan, place: int, terms: Terms, noise: Noise) -> tuple[int, tuple[int | None, ...]]:
        reach = plan.reach(place, terms)
        if not self.lists:
            return noise.pattern(chains, plan.choices.scale(place, reach))
        listed = self._listed(chains, cast(Source, noise))
        scores = [0 if move is None else _gain(chains[move[0]], move[1]) for move in listed]
        (found,) = plan.choices.choose(noise, place, [scores], reach)
        return listed[found] or (0, (None,) * chains[0].levels)

    def _listed(self, chains: list[Chain], source: Source) -> list[tuple[int, tuple[int | None, ...]] | None]:
        """Candidates at random, and first of all the parent itself."""
        wanted = self.lists - 1
        levels = np.array([chain.levels for chain in chains])
        if self.moves == "columns":
            columns = source.below(np.full(wanted, len(chains), dtype=np.int64))
            signs = iter(source.below(np.full(int(levels[columns].sum()), 2, dtype=np.int64)).tolist())
            return [None, *((int(column), tuple(next(signs) for _ in range(levels[column]))) for column in columns)]
        ends = np.cumsum(levels)
        places = source.below(np.full(wanted, ends[-1], dtype=np.int64))
        columns = np.searchsorted(ends, places, side="right")
        signs_ = source.below(np.full(wanted, 2, dtype=np.int64)).tolist()
        found: list[tuple[int, tuple[int | None, ...]] | None] = [None]
        for column, place, sign in zip(columns.tolist(), places.tolist(), signs_, strict=True):
            own = place - int(ends[column] - levels[column])
            found.append((column, tuple(sign if level == own else None for level in range(levels[column]))))
        return found

    def solve(self, release: Release[RiskFit], geometry: Geometry, objective: Risk) -> RiskFit:
        """The weights are what was released."""
        return release.value


def automatic_rounds(geometry: Geometry, terms: Terms, n_rows: int | None) -> int:
    """How many rounds "auto" stands for. (The paper's number grows with rows times epsilon, for moves of one coordinate.)"""
    told = (n_rows or USUAL_ROWS) * terms.budget.epsilon / int(terms.rows_per_person)
    return max(LEAST_ROUNDS, min(round(ROUND_FACTOR * math.sqrt(told * max(geometry.n_blocks, MANY_COLUMNS))), MOST_ROUNDS))


def scored_loss(loss: ConvexLoss) -> ConvexLoss:
    """The loss that is scored: the logistic one with slopes up to a half, which halves what a row can do."""
    return tempered_logistic(STEEPEST, TAPER) if loss == LOGISTIC else loss


def _gain(chain: Chain, signs: tuple[int | None, ...]) -> int:
    """What a pattern gains in which levels may stay. A knot that moves alone is no such pattern: its neighbours' rows move by shares of their own."""
    if None not in signs:
        return chain.gain(cast(tuple[int, ...], signs))
    assert chain.linked is None
    return sum(int(chain.alone[level, sign]) for level, sign in enumerate(signs) if sign is not None)
