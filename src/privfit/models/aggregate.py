"""Any function of a private table, by sample and aggregate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import BlockAnswers, BlockFit, SampleAndAggregate
from privfit.models.bounds import checked_bounds
from privfit.models.private import PrivateModel
from privfit.privacy import Ledger, PrivacyError
from privfit.schema import Schema

Floats = NDArray[np.float64]


class Aggregate(PrivateModel):
    """What a function of your own says about a private table: run on many blocks of its rows, cut at public bounds, averaged, with noise.

    Nothing need be known about the function but the bounds of what it returns. It is run on small blocks and their answers are averaged, so that what it says about a few hundred rows should be what it says about all: medians,
    slopes and shares do; the largest value does not.

    Parameters
    ----------
    function : from the rows of a block, an array with a row a line and the target last (numbers within their bounds, categories as the places of their levels), to one number or several. It may fail, or return NaN: the
        block then counts with the middle of the bounds. It must keep nothing from block to block, nor write down what it sees. It is run block after block unless the mechanism says otherwise.
    low, high : the bounds of what it returns: two arrays, or two numbers with n_outputs.
    n_outputs : how many numbers it returns, where the bounds are numbers.
    epsilon, delta : the privacy budget of one fit. A delta is spent where Gaussian noise is less.
    schema : the public facts about the table.
    mechanism : "auto", or pf.SampleAndAggregate(blocks=..., ranges=..., resampling=...). With ranges="percentiles" the bounds may be wide: half of epsilon then finds where the answers are.
    adjacency, rows_per_person, expected_rows, ledger, random_state : as in LogisticRegression.

    Attributes
    ----------
    estimate_ : the noisy mean of what the function says, one entry per number it returns, within the bounds.
    report_, schema_ : as in LogisticRegression. How many blocks failed is private, and not among them.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

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
                f"mechanism={self.mechanism!r} was given to Aggregate; it knows 'auto' and pf.SampleAndAggregate(...). Use 'auto' if in doubt."
            )
        mechanism.check()
        return mechanism

    def _objective(self, mechanism: Any, schema: Schema) -> BlockAnswers:
        if not callable(self.function):
            raise PrivacyError(
                f"function={type(self.function).__name__} was given; it is a function from the rows of a block to numbers. Write one, such as np.median."
            )
        low, high = checked_bounds(self.low, self.high, self.n_outputs, "n_outputs", "number that the function returns")
        return BlockAnswers(self.function, low, high)

    def _keep(self, fit: BlockFit, mechanism: Any) -> None:
        self.estimate_ = fit.values

    def _described(self, mechanism: Any, fit: BlockFit) -> tuple[dict[str, Any], list[str]]:
        return {}, [
            *fit.notes,
            "blocks in which the function failed count with the middle of the range, and are not told",
            "the function is believed to keep nothing from block to block",
        ]

    def _public_facts(self) -> tuple[str, ...]:
        return (*super()._public_facts(), "the ranges of the answers")
