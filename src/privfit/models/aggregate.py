"""Any function of a private table, by sample and aggregate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.mechanisms import BlockAnswers, BlockFit, SampleAndAggregate
from privfit.mechanisms.aggregation.aged import AgedAnswers
from privfit.mechanisms.base import Description
from privfit.models._docs import documented
from privfit.models.bounds import checked_bounds
from privfit.models.inputs import Input, fit_input
from privfit.models.left_out import using_rows
from privfit.models.private import FitResult, PrivateModel
from privfit.privacy import Budget, Ledger, PrivacyError, PrivacyParameters, Seed, noise_source
from privfit.rows import PlainRows, Rows, memory_bytes
from privfit.schema import Geometry, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]


@documented
class Aggregate(PrivateModel[SampleAndAggregate, BlockAnswers, BlockFit]):
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
        function: Callable[[Floats], ArrayLike],
        *,
        low: ArrayLike,
        high: ArrayLike,
        n_outputs: int | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | SampleAndAggregate = "auto",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
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
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def blocks_from(self, aged: TableLike, n_rows: int) -> int:
        """Choose the number of blocks from aged rows, which are public.

        For every number of blocks the function is run on aged blocks of the size that private blocks will have. The
        number with the least sum of bias and noise is returned, as in the paper (GUPT).

        Parameters
        ----------
        aged : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            A table with the columns of the schema whose rows are no secret any more. It is read without noise: never
            give private rows.
        n_rows : int
            The public number of private rows, or a public guess of it.

        Returns
        -------
        int
            The number of blocks, for `pf.SampleAndAggregate(blocks=...)`.
        """
        return self._aged(aged, n_rows).best_blocks()

    def epsilon_for(
        self,
        aged: TableLike,
        n_rows: int,
        *,
        accuracy: float | None = None,
        within: ArrayLike | None = None,
        confidence: float = 0.9,
    ) -> float:
        """Compute the epsilon that a wanted accuracy takes, from aged rows, which are public.

        The error is measured from the mean of what blocks say; blocks that are too small to say what all rows do have a
        bias besides, which `blocks_from` weighs. The bound is Chebyshev's, as in the paper (GUPT).

        Parameters
        ----------
        aged : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            A table whose rows are no secret any more, as in `blocks_from`.
        n_rows : int
            The public number of private rows, or a public guess of it.
        accuracy : float or None, default=None
            Share of the answer that is to be met, such as 0.95: the error is at most 5% of what aged rows say.
        within : float, array-like or None, default=None
            The largest error itself, in the units of the answers, in place of `accuracy`.
        confidence : float, default=0.9
            How likely the error is at most that, over blocks and noise.

        Returns
        -------
        float
            The epsilon.
        """
        found = self._aged(aged, n_rows)
        error = wanted_error(accuracy, within, confidence, found.whole)
        return found.epsilon_for(error, float(confidence), found.mechanism.n_blocks(int(n_rows)))

    def _aged(self, aged: TableLike, n_rows: int) -> AgedAnswers:
        if isinstance(n_rows, bool) or not hasattr(n_rows, "__index__") or int(n_rows) < 2:
            raise PrivacyError(f"n_rows={n_rows!r} was given; it is an integer of at least 2. Write n_rows=10_000.")
        parameters = PrivacyParameters(
            Budget(self.epsilon, self.delta),
            self.adjacency,  # type: ignore[arg-type]
            self.rows_per_person,
            self.expected_rows,
        )
        mechanism, given = self._chosen_mechanism(), fit_input(self, aged, None, many_classes=True)
        memory = memory_bytes(self.max_memory)
        if given.schema.leaves_out:
            given = using_rows(given, parameters, noise_source(self.random_state), memory)
        problem, geometry = self._encoded(mechanism, given, parameters)
        plain = PlainRows(Rows(given.table, given.schema, geometry, threads=self.n_jobs, max_memory=memory))
        plain.read()
        return AgedAnswers(problem, plain.every_row(lambda rows: rows), geometry, mechanism, parameters, int(n_rows))

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

    def _encoded(
        self, mechanism: SampleAndAggregate, given: Input, parameters: PrivacyParameters
    ) -> tuple[BlockAnswers, Geometry]:
        if not callable(self.function):
            raise PrivacyError(
                f"function={type(self.function).__name__} was given; it is a function from the rows of a block to "
                "numbers. Write one, such as np.median."
            )
        low, high = checked_bounds(self.low, self.high, self.n_outputs, "n_outputs", "number that the function returns")
        answers = BlockAnswers(self.function, low, high)
        return answers, mechanism.geometry(given.schema, answers)

    def _keep(self, result: FitResult[SampleAndAggregate, BlockAnswers, BlockFit]) -> None:
        self.estimate_ = result.fit.values

    def _described(self, result: FitResult[SampleAndAggregate, BlockAnswers, BlockFit]) -> Description:
        return Description(
            notes=(
                *result.fit.notes,
                "blocks in which the function failed count with the middle of the range, and are not reported",
                "the function is believed to keep nothing from block to block",
            )
        )

    def _public_facts(self) -> tuple[str, ...]:
        return (*super()._public_facts(), "the ranges of the answers")


def wanted_error(accuracy: float | None, within: ArrayLike | None, confidence: float, answer: Floats) -> Floats:
    """The largest error that is wanted, for each answer."""
    if (accuracy is None) == (within is None):
        raise PrivacyError(
            "accuracy and within were both given, or neither; one of them says which error is wanted. Write "
            "accuracy=0.95."
        )
    if not 0 < confidence < 1:
        raise PrivacyError(f"confidence={confidence!r} was given; it is between 0 and 1. Use 0.9 if in doubt.")
    if accuracy is not None and not 0 < accuracy < 1:
        raise PrivacyError(f"accuracy={accuracy!r} was given; it is a share between 0 and 1. Write accuracy=0.95.")
    error = np.abs(answer) * (1 - accuracy) if accuracy is not None else np.asarray(within, dtype=np.float64)
    wanted = np.broadcast_to(error, answer.shape)
    if not (wanted > 0).all():
        raise PrivacyError(
            "An error of 0 was asked for, or a share of an answer that aged rows say is 0; errors are positive. Give "
            "within=, in the units of the answers."
        )
    return wanted
