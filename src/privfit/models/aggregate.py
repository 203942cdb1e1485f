"""Any function of a private table, by sample and aggregate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import BlockAnswers, BlockFit, SampleAndAggregate
from privfit.mechanisms.base import AnyMechanism
from privfit.models._docs import documented
from privfit.models.bounds import checked_bounds
from privfit.models.private import PrivateModel
from privfit.privacy import Ledger, PrivacyError
from privfit.schema import Schema

Floats = NDArray[np.float64]


@documented
class Aggregate(PrivateModel):
    """Estimate what any function says about a private table, by sample and aggregate.

    The function is run on many disjoint blocks of rows. Its answers are clipped to public bounds and averaged, and the
    mean is released with noise. Nothing need be known about the function but the bounds of what it returns. What it
    says about a few hundred rows should be what it says about all: medians, slopes and shares qualify; the largest
    value does not.

    Parameters
    ----------
    function : callable
        From the rows of a block to one number or several. The rows are an array with the target in the last column,
        numbers within their bounds and categories as the index of their level. The function may fail or return NaN: the
        block then counts with the middle of the bounds. It must keep nothing from block to block, nor write down what
        it sees. It is run block after block unless the mechanism says otherwise.
    low : float or array-like
        Lower bounds of what the function returns: an array, or a number together with `n_outputs`.
    high : float or array-like
        Upper bounds of what the function returns, in the same form.
    n_outputs : int or None
        How many numbers the function returns, where the bounds are numbers.
    mechanism : 'auto' or SampleAndAggregate
        How blocks are made and averaged. With `pf.SampleAndAggregate(ranges="percentiles")` the bounds may be wide:
        half of epsilon then finds where the answers are.

    Attributes
    ----------
    estimate_ : ndarray of shape (n_outputs,)
        The noisy mean of the answers, within the bounds.

    See Also
    --------
    SampleAndAggregate : The mechanism and its settings.
    GeneticSearch : A private search by a fitting function.

    Notes
    -----
    How many blocks failed is private, and is not reported.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] P. Mohan, A. Thakurta, E. Shi, D. Song and D. Culler, "GUPT: privacy preserving data analysis made easy",
       SIGMOD 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 60.0), 500)[:, None]
    >>> schema = pf.Schema([pf.Numeric("age", 0, 120)])
    >>> found = pf.Aggregate(np.median, low=0, high=120, epsilon=2.0, schema=schema).fit(ages)
    >>> bool(20 < found.estimate_[0] < 60)
    True
    """

    _target = "taken"

    def __init__(
        self,
        function: Callable[[Floats], Any],
        *,
        low: Any,
        high: Any,
        n_outputs: int | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: Any = "auto",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        self.function = function
        self.low = low
        self.high = high
        self.n_outputs = n_outputs
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> SampleAndAggregate:
        named = isinstance(self.mechanism, str) and self.mechanism in ("auto", SampleAndAggregate.name)
        mechanism = SampleAndAggregate() if named else self.mechanism
        if not isinstance(mechanism, SampleAndAggregate):
            raise PrivacyError(
                f"mechanism={self.mechanism!r} was given to Aggregate; it knows 'auto' and pf.SampleAndAggregate(...). "
                "Use 'auto' if in doubt."
            )
        mechanism.check()
        return mechanism

    def _objective(self, mechanism: AnyMechanism, schema: Schema) -> BlockAnswers:
        if not callable(self.function):
            raise PrivacyError(
                f"function={type(self.function).__name__} was given; it is a function from the rows of a block to "
                "numbers. Write one, such as np.median."
            )
        low, high = checked_bounds(self.low, self.high, self.n_outputs, "n_outputs", "number that the function returns")
        return BlockAnswers(self.function, low, high)

    def _keep(self, fit: BlockFit, mechanism: AnyMechanism) -> None:
        self.estimate_ = fit.values

    def _described(self, mechanism: AnyMechanism, fit: BlockFit) -> tuple[dict[str, Any], list[str]]:
        return {}, [
            *fit.notes,
            "blocks in which the function failed count with the middle of the range, and are not told",
            "the function is believed to keep nothing from block to block",
        ]

    def _public_facts(self) -> tuple[str, ...]:
        return (*super()._public_facts(), "the ranges of the answers")
