"""Importance weights: a public table, weighed so that it stands for a private one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.density import Contrast, DensityRatio, Slopes
from privfit.models.inputs import Input
from privfit.privacy import Budget, Ledger, PrivacyError, PrivacyWarning, Terms, seeded_generator
from privfit.publish import diagnostics
from privfit.publish.publisher import WEIGHT, Publisher
from privfit.publish.tilting import ExponentialTilting, Moments, Tilt, noise_covariance
from privfit.rows import PublicRows, Rows
from privfit.schema import OTHER, Category, Column, Geometry, Schema
from privfit.tables import DataError, column_numbers, columns_to_frame, in_memory, joined, open_table, several_tables, taken, with_column

Floats = NDArray[np.float64]
Query = str | Callable[[Any], Any] | Any

METHODS = ("tilting", "paper", "objective")
SYNTHETIC_SEED = 2013


class ImportanceWeights(Publisher):
    """Weigh the rows of a public table so that means over it are near those over a private one.

    The weights are released once; any number of questions, and any model that takes `sample_weight`, can then be asked of the public rows without further cost.

    Parameters
    ----------
    epsilon, delta : the privacy budget of one fit.
    schema : the public facts about the tables. Its target counts as one more column.
    method : "tilting" releases noisy shares of levels (and of pairs of levels, where noise is small enough) and weighs public rows until they have them. "paper" is Algorithm 1 of Ji
        and Elkan (2013): a logistic regression of private against public rows, with noise on its coefficients. "objective" perturbs the objective of that regression instead.
    alpha : the paper's lambda: the ridge of "paper" and "objective". Tilting has a ridge for every column that follows from its noise.
    balanced : of "paper" and "objective": whether public rows together count as much as private ones; otherwise every row counts the same (the paper's footnote 2).
    pairs : of "tilting": "auto" (a public rule), "all", "none", or a list of pairs of column names.
    spread : of "tilting": how large the log-weights of levels are expected to be.
    tau : from 0 to 1; weights are taken to this power, which makes them more even.
    synthetic_rows : how many rows are made up, uniformly over the schema, when there is no public table.
    adjacency, rows_per_person, expected_rows, ledger, random_state : as in LogisticRegression. Under add-remove "paper" and "objective" need expected_rows.

    Attributes
    ----------
    weights_ : one weight per public row; they are 1 on average.
    beta_ : log-weights per encoded column, `beta_names_`: all that was learned from the private table is in them. For "paper" and "objective" they are the release itself.
    moments_ : of "tilting", the release: noisy means of encoded columns.
    effective_rows_ : how many rows of equal weight would tell as much.
    used_columns_ : the columns of the schema that all tables have, and that were used.
    report_, schema_ : as in LogisticRegression.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, replace-one or add-remove; docs/proofs/weights.md, Theorem 1 ("paper", "objective") and Theorem 2 ("tilting"). Public tables are
    believed to be public.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, pandas as pd, privfit as pf
    >>> schema = pf.Schema([pf.Category("smokes", ["no", "yes"]), pf.Numeric("age", 0, 100)])
    >>> private = pd.DataFrame({"smokes": ["no", "yes"] * 2000, "age": 50.0})
    >>> public = pd.DataFrame({"smokes": ["no"] * 900 + ["yes"] * 100, "age": 50.0})
    >>> weights = pf.ImportanceWeights(epsilon=1.0, schema=schema).fit(private, public)
    >>> bool(0.45 < weights.estimate(lambda table: table["smokes"] == "yes") < 0.55)
    True
    """

    _public_given: Any

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        method: str = "tilting",
        alpha: float = 0.1,
        balanced: bool = True,
        pairs: Any = "auto",
        spread: float = 0.3,
        tau: float = 1.0,
        synthetic_rows: int = 20_000,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.method = method
        self.alpha = alpha
        self.balanced = balanced
        self.pairs = pairs
        self.spread = spread
        self.tau = tau
        self.synthetic_rows = synthetic_rows
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, private: Any, public: Any = None) -> ImportanceWeights:
        """Weigh public rows. Charges the ledger before any noise is drawn.

        Parameters
        ----------
        private : the private table, of any kind that privfit reads.
        public : a table that is public, or a list of such tables, whose rows are put together. Without one, rows are drawn uniformly from the schema. Its rows are published as they are:
            never give a copy or a part of the private table.
        """
        _refuse_same(private, public)
        self._public_given = public
        try:
            super().fit(private)
        finally:
            self.__dict__.pop("_public_given", None)
        return self

    # -- wiring ---------------------------------------------------------------------------------------------------

    def _chosen_mechanism(self) -> DensityRatio | ExponentialTilting:
        if self.method not in METHODS:
            raise PrivacyError(f"method={self.method!r} was given; it is one of {METHODS}. Use 'tilting' if in doubt.")
        if not isinstance(self.tau, int | float) or isinstance(self.tau, bool) or not 0 <= self.tau <= 1:
            raise PrivacyError(f"tau={self.tau!r} was given; it is from 0, where all weights are equal, to 1. Use 1 if in doubt.")
        if isinstance(self.synthetic_rows, bool) or not hasattr(self.synthetic_rows, "__index__") or self.synthetic_rows < 1:
            raise PrivacyError(f"synthetic_rows={self.synthetic_rows!r} was given; it is a whole number of at least 1. Use 20_000.")
        pairs = tuple(tuple(pair) for pair in self.pairs) if isinstance(self.pairs, list | tuple) else self.pairs
        mechanism: DensityRatio | ExponentialTilting
        if self.method == "tilting":
            mechanism = ExponentialTilting(pairs, self.spread)
        else:
            mechanism = DensityRatio(self.alpha, "output" if self.method == "paper" else "objective", bool(self.balanced))
        mechanism.check()
        return mechanism

    def _prepared(self, given: Input, mechanism: Any) -> Input:
        """All columns of the schema that the private and all public tables have; the target is one of them."""
        columns = given.schema.columns
        public = None if self._public_given is None else [in_memory(table) for table in several_tables(self._public_given)]
        self._tables = [synthetic_table(columns, int(self.synthetic_rows))] if public is None else public
        self._is_synthetic = public is None
        names = [open_table(table).names for table in self._tables] + [given.table.names]
        used = tuple(column for column in columns if all(own is None or column.name in own for own in names))
        if not used:
            raise DataError(
                f"The private and the public table share none of the schema's columns {[column.name for column in columns]}. "
                + ("A box knows the private columns by position: give a schema that lists names. " if given.by_position else "")
                + "Rename columns so that both have some of them. Nothing was charged."
            )
        if len(used) < len(columns) and any(own is None for own in names):
            raise DataError(
                "A table without column names was given beside one that lacks columns of the schema, so that it is unclear which is which. "
                "Give both as frames with names. Nothing was charged."
            )
        for table, own in zip(self._tables, names, strict=False):
            if own is None and np.asarray(table).shape[1] != len(columns):
                raise DataError(
                    f"The public array has {np.asarray(table).shape[1]} columns, and the schema lists {len(columns)}. Give them in the order of the schema. Nothing was charged."
                )
        try:
            self._frame = joined(self._tables, [column.name for column in used])
        except Exception as error:  # of public rows, which may be told
            raise DataError(
                f"The public tables could not be put together: {error}. Give them the same columns of the same types. Nothing was charged."
            ) from None
        if WEIGHT in list(self._frame.columns):
            raise DataError(f"The public table has a column {WEIGHT!r}, which is the name of the weights. Rename it. Nothing was charged.")
        self.used_columns_ = [column.name for column in used]
        self._left_out = [column.name for column in columns if column not in used]
        return replace(given, schema=Schema(used))

    def _objective(self, mechanism: Any, schema: Schema) -> Contrast:
        try:
            return Contrast(PublicRows.read([open_table(table) for table in self._tables], schema, mechanism.geometry(schema)))
        except DataError as error:
            raise DataError(f"In the public table: {error}") from None

    def _keep(self, fit: Slopes | Tilt, mechanism: Any) -> None:
        self.beta_ = fit.beta
        self.beta_names_ = beta_names(self._geometry, fit.moments.pairs if isinstance(fit, Tilt) else ())
        self.__dict__.pop("moments_", None)  # of an earlier fit
        if isinstance(fit, Tilt):
            self.moments_ = fit.moments.means

    def _kept_for_later(self, mechanism: Any, release: Any, fit: Slopes | Tilt, objective: Contrast) -> Any:
        design = fit.design if isinstance(fit, Tilt) else objective.public.design
        self.weights_ = diagnostics.tilted_weights(float(self.tau) * (design @ fit.beta))
        self.effective_rows_ = diagnostics.effective_rows(self.weights_)
        self.columns_ = {name: np.asarray(self._frame[name]) for name in self.used_columns_}
        few = diagnostics.weight_of_few(self.weights_)
        if few > diagnostics.MUCH:
            warnings.warn(
                f"{few:.0%} of all weight is on the heaviest hundredth of the public rows: the weighted table tells as much as {self.effective_rows_:.0f} rows. "
                "Use a public table that is more like the private one, a larger epsilon, or tau below 1.",
                UserWarning,
                stacklevel=5,
            )
        return mechanism, release.event, fit, objective.public, design

    def _described(self, mechanism: Any, fit: Any) -> tuple[dict[str, Any], list[str]]:
        rows = len(self.weights_)
        kind = (
            "rows made up from the schema"
            if self._is_synthetic
            else f"public rows of {len(self._tables)} table{'s' * (len(self._tables) > 1)}"
        )
        notes = [f"{rows} {kind} are worth {self.effective_rows_:.0f} rows of equal weight"]
        if self._left_out:
            notes.append(f"not in all tables, and not used: {', '.join(self._left_out)}")
        if isinstance(fit, Tilt):
            notes.append(
                f"shares of levels{f' and of {len(fit.moments.pairs)} pairs of columns' if fit.moments.pairs else ''} were released"
            )
            return {}, notes
        if fit.alpha > float(self.alpha) * (1 + 1e-9):
            notes.append(
                f"alpha was raised from {float(self.alpha):.3g} to {fit.alpha:.3g}: noise in the objective is private with such a ridge only"
            )
        return {"ridge": fit.ridge}, notes

    def _public_facts(self) -> tuple[str, ...]:
        return (*super()._public_facts(), *(() if self._is_synthetic else ("all of the public table",)))

    # -- what the weights are for ---------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """The public rows with a column "weight": a pandas frame if the public table was one, else a polars frame. Weights go into `sample_weight`, or a SUM in SQL."""
        check_is_fitted(self)
        return with_column(self._frame, WEIGHT, self.weights_)

    def draw(self, n_rows: int, random_state: Any = None) -> Any:
        """So many rows drawn by weight: a table without weights, for models that know none. Estimates from it vary more than weighted ones."""
        check_is_fitted(self)
        if isinstance(n_rows, bool) or not hasattr(n_rows, "__index__") or n_rows < 1:
            raise PrivacyError(f"n_rows={n_rows!r} was given; it is a whole number of at least 1. Write draw(10_000).")
        places = seeded_generator(random_state).choice(len(self.weights_), size=int(n_rows), p=self.weights_ / self.weights_.sum())
        return taken(self._frame, places)

    def estimate(self, b: Query) -> float:
        """The mean of b over the private table, as the weighted public table has it.

        b is a function from the public table, as it was given, to one number a row; or the name of a column of numbers; or one number a row. Of several public tables
        the function is asked for each. Files are handed to it as polars frames.
        """
        check_is_fitted(self)
        return float(self.weights_ @ self._values(b) / self.weights_.sum())

    def variance_bound(self, b: Query) -> float:
        """A bound of the variance of `estimate(b)`, over private samples and noise, as the number of private rows grows.

        For "paper" and "objective" it is Theorem 2 of the paper with Lemma 7 corrected, at the released beta; "tilting" has no ridge to bound by, and its variance follows
        from `covariance()`. The bias of weights that cannot match is not in it. docs/proofs/weights.md, Propositions 1 and 2.
        """
        check_is_fitted(self)
        _, _, fit, _, design = self._released
        slope = float(self.tau) * diagnostics.pull(self._values(b), self.weights_, design)
        if isinstance(fit, Tilt):
            return float(slope @ self.covariance() @ slope)
        norm = self._geometry.l2 * fit.rows / fit.total
        bound = diagnostics.regression_bound(norm, fit.rows, fit.alpha, self._noise_variance(fit))
        return float(bound * slope @ slope)

    def covariance(self) -> Floats:
        """The covariance of beta_, over private samples (Lemma 5) and noise, with weighted public rows in place of the private ones."""
        check_is_fitted(self)
        mechanism, event, fit, public, design = self._released
        weights = diagnostics.tilted_weights(design @ fit.beta)
        if isinstance(fit, Tilt):
            spread = diagnostics.covariance(design, weights / weights.sum())
            inverse = np.linalg.pinv(spread + np.diag(fit.ridge), hermitian=True)
            return np.asarray(
                inverse @ (spread / fit.moments.rows + noise_covariance(fit.moments, self._geometry)) @ inverse, dtype=np.float64
            )
        shares = (fit.rows / fit.total, mechanism.weight(public.n_rows, fit.rows) * public.n_rows / fit.total)
        sampling = diagnostics.regression_covariance(design, weights, fit.beta, fit.rows, fit.alpha, *shares)
        if fit.tilt is None:
            return np.asarray(sampling + event.noise_sd**2 * np.eye(len(fit.beta)), dtype=np.float64)
        inverse = np.linalg.inv(fit.total * diagnostics.curvature(design, weights, fit.beta, fit.alpha, *shares))
        return np.asarray(sampling + inverse @ fit.tilt.covariance() @ inverse, dtype=np.float64)

    def bias(self, b: Query, reference: Any) -> float:
        """Theorem 3: how far `estimate(b)` is off with endlessly many private rows and no noise, if they were distributed as a reference.

        NOT private for the rows of the reference: give a table that is public, or keep the answer.
        """
        check_is_fitted(self)
        mechanism, _, fit, public, design = self._released
        warnings.warn(
            "bias() reads the reference without noise: its answer may be shown only if the reference may.", PrivacyWarning, stacklevel=2
        )
        table = in_memory(reference)
        rows = Rows(open_table(table), self.schema_, self._geometry)
        if isinstance(fit, Tilt):
            held = PublicRows.read([open_table(table)], self.schema_, self._geometry)
            exact = [held.design, *([held.products(fit.moments.pairs)] if fit.moments.pairs else [])]
            means = np.concatenate([np.asarray(part.mean(axis=0)).ravel() for part in exact])
            beta = mechanism.tilted(Moments(means, np.zeros(len(means)), np.inf, fit.moments.pairs), public).beta
        else:
            terms = Terms(Budget(self.epsilon, self.delta), "replace-one", self.rows_per_person)
            beta = mechanism.without_noise(rows, terms, Contrast(public))
        weights = diagnostics.tilted_weights(float(self.tau) * (design @ beta))
        return float(weights @ self._values(b) / weights.sum() - np.mean(_numbers(b, table, self._names())))

    # -- details --------------------------------------------------------------------------------------------------

    def _noise_variance(self, fit: Slopes) -> float:
        _, event, *_ = self._released
        return float(event.noise_sd**2 if fit.tilt is None else fit.tilt.largest_variance() / fit.ridge**2)

    def _names(self) -> list[str]:
        return [column.name for column in self.schema_.columns]

    def _values(self, b: Query) -> Floats:
        if not callable(b) and not isinstance(b, str):
            values = np.asarray(b, dtype=np.float64)
        else:
            values = np.concatenate([_numbers(b, table, self._names()) for table in self._tables])
        if values.shape != self.weights_.shape or not np.isfinite(values).all():
            raise DataError(
                f"b gave values of shape {values.shape}; it gives one finite number for each of the {len(self.weights_)} public rows. Correct the function."
            )
        return values


def _refuse_same(private: Any, public: Any) -> None:
    """Refuse the private table itself in place of a public one: its rows would be published."""
    for table in public if isinstance(public, list | tuple) else [public]:
        paths = all(isinstance(one, str | Path) for one in (private, table))
        if table is private or (paths and Path(table).resolve() == Path(private).resolve()):
            raise PrivacyError(
                "The private table was also given as the public one, whose rows are published with weights. Give a table that is public, or none. Nothing was charged."
            )


def _numbers(b: Query, table: Any, names: list[str]) -> Floats:
    """What b makes of a table: one number a row."""
    if isinstance(b, str):
        return column_numbers(joined([table], names), b)
    if callable(b):
        return np.asarray(b(table), dtype=np.float64).ravel()
    raise DataError("b is a list of numbers, which says nothing about another table. Give a function or the name of a column.")


def beta_names(geometry: Geometry, pairs: tuple[tuple[int, int], ...] = ()) -> list[str]:
    """The names of encoded columns: a level each, or, of two levels, the second, whose opposite is the first."""
    own = [list(block.labels) if block.kind == "levels" else [block.labels[1]] for block in geometry.blocks]
    return [name for names in own for name in names] + [f"{a} x {b}" for left, right in pairs for a in own[left] for b in own[right]]


def synthetic_table(columns: tuple[Column, ...], n_rows: int) -> Any:
    """Rows drawn uniformly from the schema, with a fixed seed that anybody may know: every level, and every bin of a number, is as likely as another."""
    generator = seeded_generator(SYNTHETIC_SEED)
    drawn: dict[str, NDArray[Any]] = {}
    for column in columns:
        if isinstance(column, Category):
            levels = np.array([level for level in column.levels if column.is_text or level != OTHER], dtype=object)
            drawn[column.name] = levels[generator.integers(len(levels), size=n_rows)]
            continue
        edges = np.array([column.low, *column.edges("auto"), column.high])
        place = generator.integers(len(edges) - 1, size=n_rows)
        drawn[column.name] = edges[place] + (edges[place + 1] - edges[place]) * generator.random(n_rows)
    return columns_to_frame(drawn)
