"""Importance weights: a public table, weighed so that it stands for a private one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.base import Description
from privfit.mechanisms.reweighting.base import ReweightingFit, ReweightingProblem, tilted_weights
from privfit.mechanisms.reweighting.density_ratio import DensityRatio
from privfit.mechanisms.reweighting.exponential_tilting import ExponentialTilting
from privfit.models._docs import documented
from privfit.models.inputs import Input
from privfit.models.private import FitResult
from privfit.privacy import Budget, Ledger, PrivacyError, PrivacyParameters, PrivacyWarning, Seed, seeded_generator
from privfit.publish import diagnostics
from privfit.publish.public_tables import PublicTables, Query, check_settings, refuse_same
from privfit.publish.publisher import WEIGHT, Publisher
from privfit.rows import count_rows
from privfit.schema import Geometry, Schema
from privfit.tables import Frame, TableLike, in_memory, open_table, taken, with_column

Floats = NDArray[np.float64]
Reweighting = DensityRatio | ExponentialTilting
METHODS = ("tilting", "paper", "objective")


@documented
class ImportanceWeights(Publisher[Reweighting, ReweightingProblem, ReweightingFit]):
    """Weights for a public table, so that means over it are close to those over a private one.

    The weights are released once. Any number of estimates, and any model that takes `sample_weight`, can then be
    computed from the public rows without further cost.

    Parameters
    ----------
    method : {'tilting', 'paper', 'objective'}
        "tilting" releases noisy shares of levels (and of pairs of levels, where the noise is small enough) and weights
        public rows until they match: exponential tilting. "paper" is Algorithm 1 of Ji and Elkan [1]_: a logistic
        regression of private against public rows, with noise on its coefficients. "objective" perturbs the objective of
        that regression instead.
    alpha : float
        The lambda of the paper: the ridge of "paper" and "objective". For "tilting" the ridge of every column follows
        from its noise.
    balanced : bool
        For "paper" and "objective": whether all public rows together count as much as all private ones. Otherwise every
        row counts the same (footnote 2 of the paper).
    numeric : {'bins', 'slope'}
        How numbers without bins of their own enter "paper" and "objective": in bins, or "slope", scaled to [0, 1] as in
        the paper, so that the log-weight is a line in them. "tilting" matches shares of bins.
    calibration : {'tight', 'paper'}
        For "paper": "tight" noise covers how far two rows of this schema can lie apart, "paper" is the printed noise,
        with the root of the number of columns. Under "add-remove" without `expected_rows` the printed noise knows the
        number of private rows, as in the paper: the fit is NOT private, says so, and no ledger takes it.
    pairs : {'auto', 'all', 'none'} or list of pairs of str
        For "tilting": the pairs of columns whose joint shares are released. "auto" follows a public rule.
    spread : float
        For "tilting": how large the log-weights of levels are expected to be.
    tau : float
        From 0 to 1; weights are raised to this power, which makes them more even.
    synthetic_rows : int
        Number of rows that are drawn uniformly over the schema where there is no public table.
    weight_name : str
        The name of the column of weights in `to_frame()`, which no public table may have.

    Attributes
    ----------
    weights_ : ndarray of shape (n_public,)
        One weight per public row; they are 1 on average.
    beta_ : ndarray of shape (n_columns,)
        Log-weights per encoded column: all that was learned from the private table is in them. For "paper" and
        "objective" they are the release itself.
    beta_names_ : list of str
        Names of the entries of `beta_`.
    moments_ : ndarray
        For "tilting", the release: noisy means of encoded columns.
    effective_rows_ : float
        How many rows of equal weight would be as informative.
    used_columns_ : list of str
        The columns of the schema that all tables have, and that were used.

    See Also
    --------
    privfit.baselines.DPME : A noisy histogram instead of weights.
    LogisticRegression : A classifier fitted on the private table itself.

    Notes
    -----
    A target in the schema is one more column. Under "add-remove" the methods "paper" and "objective" need
    `expected_rows`; only the printed calibration, which is then not private, does without.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, replace-one or add-remove; docs/proofs/weights.md, Theorem 1
    ("paper", "objective") and Theorem 2 ("tilting"). Public tables are taken to be public.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] Z. Ji and C. Elkan, "Differential privacy based on importance weighting", Machine Learning 93(1), 2013.

    Examples
    --------
    >>> import polars as pl, privfit as pf
    >>> schema = pf.Schema([pf.Category("smokes", ["no", "yes"]), pf.Numeric("age", 0, 100)])
    >>> private = pl.DataFrame({"smokes": ["no", "yes"] * 2000, "age": [50.0] * 4000})
    >>> public = pl.DataFrame({"smokes": ["no"] * 900 + ["yes"] * 100, "age": [50.0] * 1000})
    >>> weights = pf.ImportanceWeights(epsilon=1.0, schema=schema).fit(private, public)
    >>> bool(0.45 < weights.estimate(lambda table: table["smokes"] == "yes") < 0.55)
    True
    """

    _public_given: TableLike
    _public: PublicTables
    _released: ReweightingFit

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        method: str = "tilting",
        alpha: float = 0.1,
        balanced: bool = True,
        numeric: str = "bins",
        calibration: str = "tight",
        pairs: str | Sequence[tuple[str, str]] = "auto",
        spread: float = 0.3,
        tau: float = 1.0,
        synthetic_rows: int = 20_000,
        weight_name: str = WEIGHT,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.method = method
        self.alpha = alpha
        self.balanced = balanced
        self.numeric = numeric
        self.calibration = calibration
        self.pairs = pairs
        self.spread = spread
        self.tau = tau
        self.synthetic_rows = synthetic_rows
        self.weight_name = weight_name
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def fit(self, private: TableLike, public: TableLike = None) -> Self:
        """Weight public rows. The ledger is charged before any noise is drawn.

        Parameters
        ----------
        private : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The private table.
        public : table, list of tables or None, default=None
            Tables that are public, whose rows are put together. None draws rows uniformly over the schema. Public rows
            are published as they are: never give a copy or a part of the private table.

        Returns
        -------
        Self
            The fitted weights.

        Raises
        ------
        DataError
            If a table does not fit the schema. Nothing is charged.
        BudgetExceeded
            If the ledger has less left than the fit costs. Nothing is charged and nothing is drawn.
        """
        refuse_same(private, public)
        self._public_given = public
        try:
            super().fit(private)
        finally:
            self.__dict__.pop("_public_given", None)
        return self

    # -- wiring ------------------------------------------------------------------------------------

    def _chosen_mechanism(self) -> Reweighting:
        if self.method not in METHODS:
            raise PrivacyError(f"method={self.method!r} was given; it is one of {METHODS}. Use 'tilting' if in doubt.")
        check_settings(self.tau, self.synthetic_rows, self.weight_name)
        mechanism = self._tilting() if self.method == "tilting" else self._density_ratio()
        mechanism.check()
        return mechanism

    def _tilting(self) -> ExponentialTilting:
        for name, given, only in (("numeric", self.numeric, "bins"), ("calibration", self.calibration, "tight")):
            if given != only:
                raise PrivacyError(
                    f"{name}={given!r} was given with method='tilting', which knows {only!r} only. Use method='paper', "
                    f"or leave {name} out."
                )
        pairs = self.pairs if isinstance(self.pairs, str) else tuple((one, other) for one, other in self.pairs)
        return ExponentialTilting(pairs, self.spread)

    def _density_ratio(self) -> DensityRatio:
        private = self.adjacency == "add-remove" and self.expected_rows is None
        return DensityRatio(
            self.alpha,
            "output" if self.method == "paper" else "objective",
            bool(self.balanced),
            self.numeric,  # type: ignore[arg-type]
            self.calibration,  # type: ignore[arg-type]
            "printed" if private and self.calibration == "paper" else "public",
        )

    def _settled(
        self, mechanism: Reweighting, given: Input, parameters: PrivacyParameters
    ) -> tuple[Reweighting, Input]:
        """All columns of the schema that the private and all public tables have; the target is one of them."""
        self._public = PublicTables.gathered(self._public_given, given, int(self.synthetic_rows), self.weight_name)
        self.used_columns_ = [column.name for column in self._public.columns]
        return mechanism, replace(given, schema=Schema(self._public.columns))

    def _encoded(
        self, mechanism: Reweighting, given: Input, parameters: PrivacyParameters
    ) -> tuple[ReweightingProblem, Geometry]:
        geometry = mechanism.geometry(given.schema, None)
        if mechanism.reasons_not_private(problem := ReweightingProblem(self._public.rows(given.schema, geometry))):
            problem = replace(problem, printed_rows=count_rows(given.table, given.schema.columns))  # known to noise
        return problem, geometry

    def _keep(self, result: FitResult[Reweighting, ReweightingProblem, ReweightingFit]) -> None:
        fit = self._released = result.fit
        self.beta_, self.beta_names_ = fit.beta, fit.names()
        self.__dict__.pop("moments_", None)  # of an earlier fit
        if fit.means is not None:
            self.moments_ = fit.means
        self.weights_ = self._weights_at(fit, fit.beta)
        self.effective_rows_ = diagnostics.effective_rows(self.weights_)
        self.columns_ = {name: np.asarray(self._public.frame[name]) for name in self.used_columns_}
        few = diagnostics.weight_of_few(self.weights_)
        if few > diagnostics.MUCH:
            warnings.warn(
                f"{few:.0%} of all weight is on the heaviest hundredth of the public rows: the weighted table says as "
                f"much as {self.effective_rows_:.0f} rows. "
                "Use a public table that is more like the private one, a larger epsilon, or tau below 1.",
                UserWarning,
                stacklevel=4,
            )

    def _weights_at(self, fit: ReweightingFit, beta: Floats) -> Floats:
        """The weights of public rows for a beta, tempered by tau."""
        return tilted_weights(float(self.tau) * (fit.design @ beta))

    def _described(self, result: FitResult[Reweighting, ReweightingProblem, ReweightingFit]) -> Description:
        kind = self._public.described()
        notes = [f"{len(self.weights_)} {kind} are worth {self.effective_rows_:.0f} rows of equal weight"]
        if self._public.left_out:
            notes.append(f"not in all tables, and not used: {', '.join(self._public.left_out)}")
        return Description(dict(result.fit.repairs()), (*notes, *result.fit.notes()))

    def _public_facts(self) -> tuple[str, ...]:
        return (*super()._public_facts(), *(() if self._public.synthetic else ("all of the public table",)))

    # -- what the weights are for ------------------------------------------------------------------

    def to_frame(self) -> Frame:
        """Return the public rows with a column of weights, "weight" or `weight_name`.

        Weights go into scikit-learn's `sample_weight`, or a SUM in SQL.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            A pandas frame if the public table was one, else a polars frame.
        """
        check_is_fitted(self)
        return with_column(self._public.frame, self.weight_name, self.weights_)

    def draw(self, n_rows: int, random_state: Seed = None) -> Frame:
        """Draw public rows at random, with probabilities by weight: a table for models that take no weights.

        Estimates from it have a larger variance than weighted ones.

        Parameters
        ----------
        n_rows : int
            Number of rows to draw.
        random_state : int, Generator, RandomState or None, default=None
            Source of the draw. The weights are public, so a seed reveals nothing.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            The rows that were drawn.
        """
        check_is_fitted(self)
        if isinstance(n_rows, bool) or not hasattr(n_rows, "__index__") or n_rows < 1:
            raise PrivacyError(f"n_rows={n_rows!r} was given; it is an integer of at least 1. Write draw(10_000).")
        shares = self.weights_ / self.weights_.sum()
        return taken(self._public.frame, seeded_generator(random_state).choice(len(shares), size=int(n_rows), p=shares))

    def estimate(self, b: Query) -> float:
        """Estimate the mean of b over the private table by the weighted public table.

        Parameters
        ----------
        b : callable, str or array-like
            A function from the public table, as it was given, to one number per row; or the name of a numeric column;
            or one number per row. Of several public tables it is called for each; files are polars frames to it.

        Returns
        -------
        float
            The weighted mean.
        """
        check_is_fitted(self)
        return float(self.weights_ @ self._public.values(b, len(self.weights_)) / self.weights_.sum())

    def variance_bound(self, b: Query) -> float:
        """Bound the variance of `estimate(b)`, over private samples and noise, for many private rows.

        For "paper" and "objective" it is Theorem 2 of the paper with Lemma 7 corrected, at the released beta. "tilting"
        has no ridge to bound by; its variance follows from `covariance()`. The bias of weights that cannot match is not
        included. docs/proofs/weights.md, Propositions 1 and 2.

        Parameters
        ----------
        b : callable, str or array-like
            As in `estimate`.

        Returns
        -------
        float
            The bound.
        """
        check_is_fitted(self)
        fit, values = self._released, self._public.values(b, len(self.weights_))
        return fit.variance_bound(float(self.tau) * diagnostics.estimate_gradient(values, self.weights_, fit.design))

    def covariance(self) -> Floats:
        """Estimate the covariance of `beta_`, over private samples (Lemma 5) and noise.

        Weighted public rows stand for the private ones.

        Returns
        -------
        ndarray of shape (n_columns, n_columns)
            The covariance matrix.
        """
        check_is_fitted(self)
        return self._released.covariance()

    def bias(self, b: Query, reference: TableLike) -> float:
        """Compute the bias of `estimate(b)` if private rows were distributed as a reference (Theorem 3).

        It is the error that remains with infinitely many private rows and no noise. NOT private for the rows of the
        reference: give a table that is public, or do not share the result.

        Parameters
        ----------
        b : callable, str or array-like
            As in `estimate`.
        reference : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The table that the private rows are assumed to be distributed as.

        Returns
        -------
        float
            The bias.

        Warns
        -----
        PrivacyWarning
            Because the reference is read without noise.
        """
        check_is_fitted(self)
        warnings.warn(
            "bias() reads the reference without noise: its answer may be shown only if the reference may.",
            PrivacyWarning,
            stacklevel=2,
        )
        table, fit = in_memory(reference), self._released
        parameters = PrivacyParameters(Budget(self.epsilon, self.delta), "replace-one", self.rows_per_person)
        weights = self._weights_at(fit, fit.without_noise(open_table(table), self.schema_, parameters))
        estimate = float(weights @ self._public.values(b, len(self.weights_)) / weights.sum())
        return estimate - float(np.mean(self._public.numbers(b, table)))
