"""A private search for the parameters of anything that can be scored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.mechanisms import Breeding, Crossover, GeneticMechanism, Mutate, Search
from privfit.mechanisms.base import Description
from privfit.models._docs import documented
from privfit.models.bounds import checked_bounds
from privfit.models.inputs import Input
from privfit.models.private import FitResult, PrivateModel
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import Geometry, Schema
from privfit.statistics import RowFitness, TableFitness

Floats = NDArray[np.float64]


@documented
class GeneticSearch(PrivateModel[GeneticMechanism, Search, Floats]):
    """Search the parameters that fit a private table best: PrivGene for any fitting function.

    In every round candidates are scored on the rows, some are selected privately, and the candidates of the next round
    are made from them by crossover and mutation.

    Parameters
    ----------
    fitness : RowFitness or TableFitness
        What is maximised: a sum over rows that states by how much one row can change the difference of two scores, or
        any function of the table with a stated sensitivity.
    low : float or array-like
        Lower bounds of the parameters: an array, or a number together with `n_parameters`.
    high : float or array-like
        Upper bounds of the parameters, in the same form.
    n_parameters : int or None
        How many parameters there are, where the bounds are numbers.
    delta : float
        Probability with which the guarantee may fail; 0 asks for pure epsilon-DP. With a delta above 0, many rounds
        cost less.
    selection : {'auto', 'enhanced', 'permute-and-flip', 'exponential'}
        The rule of selection. "enhanced" is the exponential mechanism with the sensitivity of differences of scores,
        "permute-and-flip" a more accurate rule with the same guarantee, "exponential" the exponential mechanism with
        the sensitivity of single scores. "auto" is "permute-and-flip", or "enhanced" where a delta makes that more
        accurate.
    candidates : int
        Number of candidates in a round.
    parents : int
        How many candidates of a round are selected as parents of the next.
    rounds : int or 'auto'
        Number of rounds; "auto" is 0.00125 times rows times epsilon over parents, the rule of the paper.
    mutation : float
        Size of a mutation in the first round, as a share of the bounds.
    decay : float
        Factor by which mutations shrink from round to round.
    start : array-like of shape (n_candidates, n_parameters) or None
        First candidates, from public knowledge. None scatters them.
    elitism : bool
        Whether the parents stay among the candidates of the next round. False is Algorithm 1 of the paper as printed.
    crossover : Crossover or None
        A function of the user's own that makes two candidates of two. None swaps the ends of two parents.
    mutate : Mutate or None
        A function of the user's own that changes candidates. None moves one parameter up or down.

    Attributes
    ----------
    best_ : ndarray of shape (n_parameters,)
        The parameters that were found.

    See Also
    --------
    RowFitness : A fitting function that is a sum over rows.
    TableFitness : A fitting function with a stated sensitivity.
    PrivGene : The same idea for classifiers and clusters.
    Crossover : What a crossover of the user's own takes and returns.
    Mutate : What a mutation of the user's own takes and returns.

    Notes
    -----
    A crossover and a mutation of the user's own never see a row, and must not get one from the fitness: see
    docs/sharp-edges.md.

    The score of `best_` on private rows is private, and is not reported.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, replace-one or add-remove; docs/proofs/selection.md, Theorem 2. The
    sensitivity of a TableFitness is taken from its author.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Zhang, X. Xiao, Y. Yang, Z. Zhang and M. Winslett, "PrivGene: differentially private model fitting using
       genetic algorithms", SIGMOD 2013.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.tile(np.arange(10.0), 300)[:, None]
    >>> fitness = pf.RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=lambda w: float(np.ptp(w)))
    >>> search = pf.GeneticSearch(fitness, low=[0.0], high=[10.0], schema=pf.Schema.box(0, 10), rounds=8).fit(rows)
    >>> bool(2 < search.best_[0] < 7)
    True
    """

    _target = "taken"

    def __init__(
        self,
        fitness: RowFitness | TableFitness,
        *,
        low: ArrayLike,
        high: ArrayLike,
        n_parameters: int | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        selection: str = "auto",
        candidates: int = 200,
        parents: int = 1,
        rounds: int | str = "auto",
        mutation: float = 0.05,
        decay: float = 0.95,
        start: ArrayLike | None = None,
        elitism: bool = True,
        crossover: Crossover | None = None,
        mutate: Mutate | None = None,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.fitness = fitness
        self.low = low
        self.high = high
        self.n_parameters = n_parameters
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.selection = selection
        self.candidates = candidates
        self.parents = parents
        self.rounds = rounds
        self.mutation = mutation
        self.decay = decay
        self.start = start
        self.elitism = elitism
        self.crossover = crossover
        self.mutate = mutate
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> GeneticMechanism:
        breeding = Breeding(
            self.candidates, self.parents, self.mutation, self.decay, self.elitism, self.crossover, self.mutate
        )
        mechanism = GeneticMechanism(self.selection, breeding, self.rounds)  # type: ignore[arg-type]
        mechanism.check()
        return mechanism

    def _encoded(
        self, mechanism: GeneticMechanism, given: Input, parameters: PrivacyParameters
    ) -> tuple[Search, Geometry]:
        if not isinstance(self.fitness, RowFitness | TableFitness):
            raise PrivacyError(
                f"fitness={type(self.fitness).__name__} was given; it is a pf.RowFitness or a pf.TableFitness, which "
                "state how far one row can move a score. "
                "Write pf.RowFitness(score, spread=...)."
            )
        low, high = checked_bounds(self.low, self.high, self.n_parameters, "n_parameters", "parameter")
        search = Search(self.fitness, low, high, self._checked_start(len(low)))
        return search, mechanism.geometry(given.schema, search)

    def _checked_start(self, parameters: int) -> Floats | None:
        if self.start is None:
            return None
        try:
            start = np.atleast_2d(np.asarray(self.start, dtype=np.float64))
        except (TypeError, ValueError):
            start = np.empty(0)
        if start.ndim != 2 or not len(start) or start.shape[1] != parameters or not np.isfinite(start).all():
            raise PrivacyError(
                f"start has the shape {start.shape}; it has one row per candidate, at least one, and {parameters} "
                "columns, one per parameter, "
                "all of them numbers. Leave it out to start anywhere."
            )
        return start

    def _keep(self, result: FitResult[GeneticMechanism, Search, Floats]) -> None:
        self.best_ = result.fit

    def _described(self, result: FitResult[GeneticMechanism, Search, Floats]) -> Description:
        stated = "the sensitivity of the fitness was stated by its author, and is believed"
        return Description(notes=(stated,) if isinstance(self.fitness, TableFitness) else ())
