"""PrivGene for classes: weights that move by private choices.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013. The paper's candidates differ from their parent in one
coordinate (population.py). Here a candidate moves every level of one column, up or down (moves.py), and all patterns of
all columns can be chosen from at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from privfit.losses import LOGISTIC, ConvexLoss, tempered_logistic
from privfit.losses.margins import GRAIN, MarginLoss
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts
from privfit.mechanisms.genetic.breeding import Breeding
from privfit.mechanisms.genetic.moves import Moves, MoveSchedule, MovesPlan
from privfit.mechanisms.genetic.population import PopulationPlan
from privfit.mechanisms.genetic.rounds import NumberOfRounds, check_rounds, plan_rounds
from privfit.mechanisms.genetic.selections import Choices, SelectionRule, plan_choices
from privfit.mechanisms.perturbation.certified_minimum import check_number
from privfit.mechanisms.perturbation.defaults import USUAL_ROWS
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws, PrivacyError, PrivacyParameters
from privfit.privacy.samplers.selection import Rule
from privfit.rows import CachedDesign, Rows
from privfit.schema import Geometry, Schema

STEEPEST, TAPER = 0.5, 50.0
ROUND_FACTOR = 0.03
LEAST_ROUNDS = 3
MOST_ROUNDS = 2000
MANY_COLUMNS = 16
FIRST_STEP, FIRST_STEP_OF_HINGES, LAST_STEP = 1.5, 1.0, 0.2
STEP_GRAIN = 8
"""Steps are whole numbers of eighths of a knot's share."""
LISTED = 200
MOST_MARGIN = 1 << 22
"""The largest margin, in lattice steps, that all steps of a plan may lead to."""


@dataclass(frozen=True)
class PrivGene(Mechanism[ERMProblem, MovesPlan | PopulationPlan, CachedDesign, ERMFit]):
    """Improve weights round by round: candidates are scored on the rows, and one is selected privately.

    For two classes. Columns enter as categories or splines; for "genes" numbers are slopes.

    Parameters
    ----------
    selection : {'auto', 'enhanced', 'exponential', 'permute-and-flip'}, default='auto'
        "enhanced" is the exponential mechanism with the sensitivity of differences of scores, "exponential" the one
        with the sensitivity of single scores, "permute-and-flip" a more accurate rule for enumerated candidates. "auto"
        is "enhanced".
    candidates : int, 'all' or 'auto', default='auto'
        Number of candidates in a round; "all" are all patterns of all columns, from which the exponential mechanism
        selects without enumerating them. "auto" is "all", or 200 with permute-and-flip or single coordinates.
    moves : {'columns', 'coordinates', 'genes'}, default='columns'
        "columns" changes every level of one column up or down; "coordinates" changes one level; "genes" is the
        algorithm of the paper: a population that starts anywhere in [-5, 5], crossover, and mutations of one
        coordinate.
    rounds : int or 'auto', default='auto'
        Number of rounds; "auto" grows with the square root of rows times epsilon, and for "genes" is the paper's
        0.00125 times rows times epsilon over parents.
    first_step : float or 'auto', default='auto'
        How far weights change in the first round; "auto" is 1.5 (1 for hinge losses). Steps shrink evenly to the last.
    last_step : float or 'auto', default='auto'
        How far weights change in the last round; "auto" is 0.2.
    parents : int, default=1
        For "genes": how many candidates of a round are selected as parents of the next.
    mutation : float, default=0.05
        For "genes": size of a mutation in the first round, as a share of the bounds.
    decay : float, default=0.95
        For "genes": factor by which mutations shrink from round to round.
    calibration : {'tight', 'paper'}, default='tight'
        "paper" is "genes" with the constants that the paper prints, for comparison. For hinge losses and k-means those
        are NOT private, and a ledger is refused.

    See Also
    --------
    GeneticSearch : The same for any fitting function.
    LogisticRegression : Takes it as a mechanism.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove, for persons with at most
    `rows_per_person` rows, up to a probability below 2^-100; docs/proofs/selection.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Zhang, X. Xiao, Y. Yang, Z. Zhang and M. Winslett, "PrivGene: differentially private model fitting using
       genetic algorithms", SIGMOD 2013.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    >>> model = pf.LogisticRegression(epsilon=2.0, mechanism=pf.PrivGene(rounds=10), schema=schema).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    selection: SelectionRule = "auto"
    candidates: int | Literal["all", "auto"] = "auto"
    moves: Moves = "columns"
    rounds: NumberOfRounds = "auto"
    first_step: float | Literal["auto"] = "auto"
    last_step: float | Literal["auto"] = "auto"
    parents: int = 1
    mutation: float = 0.05
    decay: float = 0.95
    calibration: Literal["tight", "paper"] = "tight"

    name: ClassVar[str] = "genetic"
    solves: ClassVar[str] = "weights"
    numeric: ClassVar[Numbers] = "splines"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        check_rounds(self.rounds)
        if self.moves not in ("columns", "coordinates", "genes"):
            raise PrivacyError(
                f"moves={self.moves!r} was given; it is 'columns', 'coordinates' or 'genes'. Use 'columns' if in doubt."
            )
        if self.calibration not in ("tight", "paper"):
            raise PrivacyError(
                f"calibration={self.calibration!r} was given; it is 'tight' or 'paper'. Use 'tight' if in doubt."
            )
        listed = self.candidates
        if listed not in ("all", "auto") and (
            isinstance(listed, bool) or not hasattr(listed, "__index__") or int(listed) < 2
        ):
            raise PrivacyError(
                f"candidates={listed!r} was given; it is 'all', 'auto' or a whole number of at least 2. Use 'auto' if "
                "in doubt."
            )
        if self.bred:
            self.breeding.check()
        elif self.parents != 1:
            raise PrivacyError(
                f"parents={self.parents!r} was given with moves={self.moves!r}, which move one parent. Use "
                "moves='genes' for more."
            )
        if listed == "all" and (self.selection == "permute-and-flip" or self.moves == "coordinates" or self.bred):
            raise PrivacyError(
                "candidates='all' was given with permute-and-flip or single coordinates; all patterns of columns are "
                "chosen from by the exponential mechanism. "
                "Use selection='enhanced' and moves='columns', or a number of candidates."
            )
        for name, step in (("first_step", self.first_step), ("last_step", self.last_step)):
            if step != "auto" and (
                isinstance(step, bool) or not isinstance(step, int | float) or not 0.05 <= step <= 10
            ):
                raise PrivacyError(
                    f"{name}={step!r} was given; it is 'auto' or a number from 0.05 to 10. Use 'auto' if in doubt."
                )

    def reasons_not_private(self, problem: ERMProblem) -> tuple[str, ...]:
        """Why its releases are not private, if they are not: the paper's constants hold for the logistic loss alone;
        docs/proofs/selection.md, Theorem 3.
        """
        if self.calibration != "paper" or problem.loss == LOGISTIC:
            return ()
        return (
            "calibration='paper' of PrivGene for a hinge loss: the paper prints half of what its dampening factor "
            "must be",
        )

    @property
    def bred(self) -> bool:
        """Whether candidates are made by crossover and mutation, as in the paper.

        Returns
        -------
        bool
            True for moves="genes".
        """
        return self.moves == "genes" or self.calibration == "paper"

    @property
    def breeding(self) -> Breeding:
        """Settings of crossover and mutation, as in the paper.

        Returns
        -------
        Breeding
            The settings.
        """
        return Breeding(
            LISTED if self.candidates in ("auto", "all") else int(self.candidates),
            self.parents,
            self.mutation,
            self.decay,
        )

    def geometry(self, schema: Schema, problem: ERMProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded: levels and splines, of which every column carries a constant; for the paper's algorithm
        slopes and levels, and a constant of its own.
        """
        if self.bred:
            return self._bred_geometry(schema, problem, numeric)
        if numeric == "slope" or not problem.fit_intercept or problem.features is not None:
            raise PrivacyError(
                "The genetic mechanism was asked for slopes, a kernel, or a model without an intercept; it moves "
                "levels and knots of columns, which carry a constant. "
                "Use numeric='splines' or 'bins', or mechanism='objective'."
            )
        geometry = schema.geometry(numeric=numeric, intercept=False, knots=problem.knots, whole=True)
        if self.moves == "coordinates" and any(block.kind == "spline" for block in geometry.blocks):
            raise PrivacyError(
                "moves='coordinates' was given with splines; a knot that moved alone would move its rows by shares. "
                "Use numeric='bins', or moves='columns'."
            )
        return geometry

    def _bred_geometry(self, schema: Schema, problem: ERMProblem, numeric: Numbers) -> Geometry:
        if numeric == "splines" or not problem.fit_intercept or problem.features is not None:
            raise PrivacyError(
                "The paper's genetic algorithm was asked for splines, a kernel, or a model without an intercept, which "
                "it does not know. "
                "Use numeric='slope' or 'bins', or moves='columns'."
            )
        return schema.geometry(numeric=numeric, whole=True)

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What the search makes small."""
        return Description(notes=(f"searches for weights that make this small: {fit.loss.name}",))

    def numbers(self, asked: str, default: Numbers) -> Numbers:
        """Return how numbers are encoded.

        As splines; in bins where single levels change (a knot that changed alone would change its rows by shares); as
        slopes in the paper's algorithm.

        Parameters
        ----------
        asked : str
            The estimator's `numeric`.
        default : {'slope', 'bins', 'splines'}
            The encoding for "auto".

        Returns
        -------
        {'slope', 'bins', 'splines'}
            The encoding.
        """
        if asked != "auto":
            return default
        return "slope" if self.bred else "bins" if self.moves == "coordinates" else "splines"

    @property
    def lists(self) -> int:
        """Number of candidates that are enumerated in a round; 0 if all are selected from.

        Returns
        -------
        int
            The number.
        """
        if self.candidates == "auto":
            return LISTED if self.selection == "permute-and-flip" or self.moves == "coordinates" else 0
        return 0 if self.candidates == "all" else int(self.candidates)

    # -- the plan ----------------------------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> MovesPlan | PopulationPlan:
        """Rounds, steps and shares of the budget, from public facts."""
        if not self.bred:
            schedule = self.schedule(facts, problem)
            return MovesPlan(schedule.event(self.lists), facts, schedule, self.moves, self.lists)
        printed = self.calibration == "paper"
        selection: SelectionRule = "enhanced" if self.selection == "auto" and printed else self.selection
        rounds = plan_rounds(facts.parameters, facts.n_rows, selection, self.breeding, self.rounds)
        return PopulationPlan.of(facts, rounds, problem, printed)

    def schedule(self, facts: PublicFacts, problem: ERMProblem) -> MoveSchedule:
        """Return the steps of all rounds and the budget of their selections.

        The rules were chosen on generated tables and on Adult: docs/genetic.md.

        Parameters
        ----------
        facts : PublicFacts
            All that the schedule may depend on.
        problem : ERMProblem
            What is minimised.

        Returns
        -------
        MoveSchedule
            The schedule.
        """
        steps, loss = self._steps(facts, problem, 1), scored_loss(problem.loss)
        pure = self._choices(facts.parameters, steps)
        if facts.parameters.budget.delta > 0 and self.selection != "permute-and-flip":
            more = self._steps(facts, problem, 2)
            pooled = self._choices(facts.parameters, more)
            if pooled.rho:
                return MoveSchedule(more, MarginLoss(loss, sum(more)), pooled)
        return MoveSchedule(steps, MarginLoss(loss, sum(steps)), pure)

    def _steps(self, facts: PublicFacts, problem: ERMProblem, more: int) -> tuple[int, ...]:
        """The steps of all rounds, in lattice steps, with so many times the automatic number of rounds."""
        automatic = self.rounds == "auto"
        rounds = more * automatic_rounds(facts.geometry, facts.parameters, facts.n_rows) if automatic else self.rounds
        usual = FIRST_STEP if problem.loss == LOGISTIC else FIRST_STEP_OF_HINGES
        first = usual if self.first_step == "auto" else float(self.first_step)
        last = min(LAST_STEP, first) if self.last_step == "auto" else float(self.last_step)
        rounds = int(rounds)
        sizes = [first * (last / first) ** (place / max(rounds - 1, 1)) for place in range(rounds)]
        steps = tuple(max(1, round(size * GRAIN / STEP_GRAIN)) * STEP_GRAIN for size in sizes)
        if sum(steps) > MOST_MARGIN:
            raise PrivacyError(
                f"{rounds} rounds of steps from {first:g} to {last:g} were given, in which a weight could go beyond "
                f"{MOST_MARGIN // GRAIN}. Use fewer rounds or smaller steps."
            )
        return steps

    def _choices(self, parameters: PrivacyParameters, steps: tuple[int, ...]) -> Choices:
        """The choices of all rounds: small steps get more of the budget."""
        shares = [Fraction(1 / math.sqrt(step)) for step in steps]
        name = f"genetic search, {len(steps)} round{'s' * (len(steps) > 1)}"
        usual: Rule = "permute-and-flip" if self.moves == "coordinates" else "exponential"
        return plan_choices(name, parameters, self.selection, shares, usual)

    # -- reading and drawing -----------------------------------------------------------------------

    def read(self, rows: Rows, plan: MovesPlan | PopulationPlan, problem: ERMProblem, draws: Draws) -> CachedDesign:
        """Read the rows once, and keep them."""
        kept = CachedDesign(rows)
        check_number(kept.n_rows, plan.facts.parameters)
        return kept

    def draw(self, data: CachedDesign, plan: MovesPlan | PopulationPlan, draws: Draws) -> ERMFit:
        """Search, round by round."""
        return plan.fit(data, draws)


def automatic_rounds(geometry: Geometry, parameters: PrivacyParameters, n_rows: int | None) -> int:
    """How many rounds "auto" stands for. (The paper's number grows with rows times epsilon, for moves of one
    coordinate.)
    """
    told = (n_rows or USUAL_ROWS) * parameters.budget.epsilon / int(parameters.rows_per_person)
    return max(
        LEAST_ROUNDS, min(round(ROUND_FACTOR * math.sqrt(told * max(geometry.n_blocks, MANY_COLUMNS))), MOST_ROUNDS)
    )


def scored_loss(loss: ConvexLoss) -> ConvexLoss:
    """The loss that is scored: the logistic one with slopes up to a half, which halves what a row can do."""
    return tempered_logistic(STEEPEST, TAPER) if loss == LOGISTIC else loss
