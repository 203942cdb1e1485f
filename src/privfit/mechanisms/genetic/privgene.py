"""PrivGene for classes: weights that move by private choices.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013. The paper's candidates differ from their parent in one
coordinate (population.py). Here a candidate moves every level of one column, up or down (moves.py), and all patterns of
all columns can be chosen from at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from privfit.losses import LOGISTIC, ConvexLoss, tempered_logistic
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts
from privfit.mechanisms.genetic.breeding import Breeding
from privfit.mechanisms.genetic.moves import Moves, MoveSchedule, MovesPlan
from privfit.mechanisms.genetic.operators import Crossover, Mutate
from privfit.mechanisms.genetic.population import Population, PopulationPlan, population_loss
from privfit.mechanisms.genetic.rounds import NumberOfRounds, check_rounds, plan_rounds
from privfit.mechanisms.genetic.schedule import SchedulePlanner
from privfit.mechanisms.genetic.selections import SelectionRule
from privfit.mechanisms.genetic.settings import Automatic, Start, check_settings
from privfit.mechanisms.genetic.weights import FARTHEST, HINGE_WEIGHT
from privfit.mechanisms.perturbation.precision import check_number
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws, PrivacyError
from privfit.rows import CachedDesign, Rows
from privfit.schema import Geometry, Schema

LARGEST_SLOPE, SELF_BOUND = 0.5, 50.0
"""The Lipschitz constant and the self-bound of the logistic loss that is scored. Smaller slopes have less sensitivity;
chosen mainly on Adult, docs/genetic.md. No curvature is paid for here, so that the self-bound may be large."""
FIRST_STEP, FIRST_STEP_OF_HINGES, LAST_STEP = 1.5, 1.0, 0.2
"""Steps shrink from the first to the last: long ones find weights in few rounds, short ones refine them. Chosen mainly
on Adult: docs/genetic.md."""
LISTED = 200
"""Candidates of a round where they are listed: fewer miss good ones, more take longer to score. docs/genetic.md has
them beside all patterns."""


@dataclass(frozen=True)
class PrivGene(Mechanism[ERMProblem, MovesPlan | PopulationPlan, CachedDesign, ERMFit]):
    """Improve weights round by round: candidates are scored on the rows, and one is selected privately.

    Two classes have one linear predictor; more have one each, against the rest, which share epsilon. Columns enter as
    categories or splines; for "genes" numbers are slopes.

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
        algorithm of the paper: a population that starts anywhere in the search box, crossover, and mutations of one
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
    elitism : bool, default=True
        For "genes": whether the parents stay among the candidates of the next round. False is Algorithm 1 as printed.
    crossover : Crossover or None, default=None
        For "genes": a function of the user's own that makes two candidates of two. None swaps the ends of two parents
        behind a random place, as the paper does.
    mutate : Mutate or None, default=None
        For "genes": a function of the user's own that changes candidates. None moves one coordinate up or down, as the
        paper does.
    C : float, None or 'auto', default='auto'
        Weight of the loss of all rows beside half the squared weights; the constant of "genes" is not among these,
        while "columns" and "coordinates" have no constant of their own. None leaves the squared weights out. "auto" is
        the paper's 10 for hinge losses with "genes", and None otherwise.
    steepest : float or 'auto', default='auto'
        For the logistic loss: largest slope of the loss that is scored; 1 is the logistic loss itself, as in the paper.
        "auto" is 1 for "genes" and 0.5 otherwise, which halves what one row can do.
    box : float or 'auto', default='auto'
        For "genes": the search box, weights from -box to box. "auto" is the paper's 5; for k-means, where a centre lies
        within the bounds of its columns, it is 1 and at most 1.
    start : {'auto', 'scattered'}, default='auto'
        For "genes": the first candidates. "scattered" draws all of them anywhere in the box (Algorithm 1). "auto" adds
        the paper's candidates that predict one class for all rows; for k-means it begins with centres that are spread
        evenly, or, with calibration="paper", scattered.

    See Also
    --------
    GeneticSearch : The same for any fitting function.
    Crossover : What a crossover of the user's own takes and returns.
    Mutate : What a mutation of the user's own takes and returns.
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
    elitism: bool = True
    crossover: Crossover | None = None
    mutate: Mutate | None = None
    C: float | Automatic | None = "auto"
    steepest: float | Automatic = "auto"
    box: float | Automatic = "auto"
    start: Start = "auto"

    name: ClassVar[str] = "genetic"
    solves: ClassVar[str] = "weights"
    numeric: ClassVar[Numbers] = "splines"
    many_classes: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        check_rounds(self.rounds)
        check_settings(self)
        if self.bred:
            self.breeding.check()

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
            self.elitism,
            self.crossover,
            self.mutate,
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
        geometry = schema.geometry(numeric=numeric, intercept=False, knots=problem.knots, whole=True, several=True)
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
        return schema.geometry(numeric=numeric, whole=True, several=True)

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What the search makes small."""
        squares = f" over all rows, plus {fit.ridge:.4g} / 2 times the squared weights" if fit.ridge else ""
        return Description(notes=(f"searches for weights that make this small: {fit.loss.name}{squares}",))

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
        rounds = plan_rounds(
            facts.parameters, facts.n_rows, selection, self.breeding, self.rounds, max(1, problem.classes)
        )
        return PopulationPlan.of(facts, rounds, self._population(facts.geometry, problem))

    def _population(self, geometry: Geometry, problem: ERMProblem) -> Population:
        box = FARTHEST if self.box == "auto" else float(self.box)
        logistic = problem.loss == LOGISTIC
        C = self.C if self.C != "auto" else None if logistic else HINGE_WEIGHT
        return Population(
            population_loss(self._scored_loss(problem.loss, 1.0), box, geometry),
            box,
            None if C is None else float(C),
            self.start == "auto",
            None if self.calibration != "paper" else "logistic" if logistic else "hinge",
        )

    def schedule(self, facts: PublicFacts, problem: ERMProblem) -> MoveSchedule:
        """Return the steps of all rounds and the budget of their selections.

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
        usual = FIRST_STEP if problem.loss == LOGISTIC else FIRST_STEP_OF_HINGES
        first = usual if self.first_step == "auto" else float(self.first_step)
        planner = SchedulePlanner(
            self._scored_loss(problem.loss, LARGEST_SLOPE),
            first,
            min(LAST_STEP, first) if self.last_step == "auto" else float(self.last_step),
            self.rounds,
            self.selection,
            "permute-and-flip" if self.moves == "coordinates" else "exponential",
            None if self.C in ("auto", None) else float(self.C),
            problem.classes,
        )
        return planner.schedule(facts)

    def _scored_loss(self, loss: ConvexLoss, usual: float) -> ConvexLoss:
        """The loss that is scored: the logistic one with slopes up to a half, where nobody says, which halves what a
        row can do; "genes" have the logistic loss itself.
        """
        steepest = usual if self.steepest == "auto" else float(self.steepest)
        return tempered_logistic(steepest, SELF_BOUND) if loss == LOGISTIC else loss

    # -- reading and drawing -----------------------------------------------------------------------

    def read(self, rows: Rows, plan: MovesPlan | PopulationPlan, problem: ERMProblem, draws: Draws) -> CachedDesign:
        """Read the rows once, and keep them; functions of the user's own are tried before."""
        if isinstance(plan, PopulationPlan):
            self.breeding.rehearse(*plan.bounds)
        kept = CachedDesign(rows)
        check_number(kept.n_rows, plan.facts.parameters)
        if isinstance(plan, PopulationPlan):
            plan.check_sums(kept.n_rows)
        return kept

    def draw(self, data: CachedDesign, plan: MovesPlan | PopulationPlan, draws: Draws) -> ERMFit:
        """Search, round by round."""
        return plan.fit(data, draws)
