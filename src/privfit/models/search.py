"""A private search for the parameters of anything that can be scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import Breeding, GeneticMechanism, Search
from privfit.models.bounds import checked_bounds
from privfit.models.private import PrivateModel
from privfit.privacy import Ledger, PrivacyError
from privfit.schema import Schema
from privfit.statistics import RowFitness, TableFitness

Floats = NDArray[np.float64]


class GeneticSearch(PrivateModel):
    """Search the parameters that fit a private table best: PrivGene for any fitting function.

    In every round candidates are scored on the rows, some are selected privately, and new ones are bred from them by crossover and mutation.

    Parameters
    ----------
    fitness : a pf.RowFitness (a sum over rows that states how far one row can tell two candidates apart) or a pf.TableFitness (anything with a stated sensitivity).
    low, high : the bounds of the parameters: two arrays, or two numbers with n_parameters.
    n_parameters : how many parameters there are, where the bounds are numbers.
    epsilon, delta : the privacy budget of one fit. With a delta, many rounds cost less.
    schema : the public facts about the table.
    selection : "enhanced" is the exponential mechanism by how far a row can tell candidates apart, "permute-and-flip" a sharper rule with the same bound, "exponential" the
        exponential mechanism by how far a row can move a score. "auto" is permute-and-flip, or "enhanced" where a delta makes that sharper.
    candidates, parents : how many candidates a round has, and how many of them are selected to beget the next.
    rounds : how many; "auto" is 0.00125 times rows times epsilon over parents, by the paper's rule.
    mutation, decay : how far a mutation goes, as a share of the bounds, in the first round, and by what factor that shrinks.
    start : candidates to begin with, from public knowledge. Otherwise they are scattered.
    adjacency, rows_per_person, expected_rows, ledger, random_state : as in LogisticRegression.

    Attributes
    ----------
    best_ : the parameters that were found.
    report_, schema_ : as in LogisticRegression. The score of best_ on private rows is private, and not among them.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, replace-one or add-remove; docs/proofs/selection.md, Theorem 2. A TableFitness is believed.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

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
        low: Any,
        high: Any,
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
        start: Any = None,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
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
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> GeneticMechanism:
        breeding = Breeding(self.candidates, self.parents, self.mutation, self.decay)
        mechanism = GeneticMechanism(self.selection, breeding, self.rounds)  # type: ignore[arg-type]
        mechanism.check()
        return mechanism

    def _objective(self, mechanism: Any, schema: Schema) -> Search:
        if not isinstance(self.fitness, RowFitness | TableFitness):
            raise PrivacyError(
                f"fitness={type(self.fitness).__name__} was given; it is a pf.RowFitness or a pf.TableFitness, which state how far one row can move a score. "
                "Write pf.RowFitness(score, spread=...)."
            )
        low, high = checked_bounds(self.low, self.high, self.n_parameters, "n_parameters", "parameter")
        return Search(self.fitness, low, high, self._checked_start(len(low)))

    def _checked_start(self, parameters: int) -> Floats | None:
        if self.start is None:
            return None
        try:
            start = np.atleast_2d(np.asarray(self.start, dtype=np.float64))
        except (TypeError, ValueError):
            start = np.empty(0)
        if start.ndim != 2 or not len(start) or start.shape[1] != parameters or not np.isfinite(start).all():
            raise PrivacyError(
                f"start has the shape {start.shape}; it has one row per candidate, at least one, and {parameters} columns, one per parameter, "
                "all of them numbers. Leave it out to start anywhere."
            )
        return start

    def _keep(self, fit: Floats, mechanism: Any) -> None:
        self.best_ = fit

    def _described(self, mechanism: Any, fit: Any) -> tuple[dict[str, Any], list[str]]:
        believed = isinstance(self.fitness, TableFitness)
        return {}, ["the sensitivity of the fitness was stated by its author, and is believed"] if believed else []
