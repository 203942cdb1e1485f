"""Ridge, lasso and elastic net under differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import PenaltySelection, QuadraticProblem
from privfit.mechanisms.base import AnyMechanism, Description
from privfit.models._docs import documented
from privfit.models.inputs import Input
from privfit.models.linear import LinearRegression, LinearResult
from privfit.models.named import MOMENTS, PENALISED, MomentMechanism
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import Schema
from privfit.solvers import Penalty

Alpha = float | Literal["auto", "select"]
AUTO_STEPS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Multiples of the automatic alpha that alpha="select" chooses from: a finer grid is closer to the best alpha, and
every further candidate makes the selection less certain."""


class _Penalised(LinearRegression):
    """What the three share: a penalty that is a number, or chosen from public facts, or selected privately.

    Parameters
    ----------
    alpha : float, 'auto' or 'select'
        Strength of the penalty. "auto" chooses one per column from public facts: the noise level and the bounds of the
        columns. "select" chooses privately, within the same epsilon: a random fifth of the rows is kept for the choice.
    alphas : sequence of float or None
        With alpha="select", the values to choose from; None takes multiples of "auto".
    penalty_units : {'table', 'scaled'}
        "table": alpha is for coefficients in the units of the table, as in scikit-learn. "scaled": for coefficients of
        columns and a target that are scaled to [-1, 1] by their bounds, as Dandekar, Basu and Bressan have it.
    mechanism : {'auto', 'functional', 'objective'}, FunctionalMechanism or ObjectiveRegression
        "functional" releases moments; "objective" minimises a perturbed objective (`ObjectiveRegression`), for alphas
        that are numbers or "auto". "auto" is "functional".
    intervals : bool
        Whether intervals will be asked for; the functional mechanism has them either way.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_columns,)
        The alpha that was used: a number, or one per column with "auto".
    dual_gap_ : float
        Certified bound of the distance of the objective from its minimum, as a share of what the fit explains.
    """

    _ridge = False
    alpha_: float | NDArray[np.float64]
    _mechanisms = PENALISED

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        alpha: Alpha = "auto",
        alphas: Sequence[float] | None = None,
        penalty_units: str = "table",
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        intervals: bool = False,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            intervals=intervals,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            max_weight=max_weight,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        self.alpha = alpha
        self.alphas = alphas
        self.penalty_units = penalty_units

    def _ratio(self) -> float:
        """The share of the penalty that is on absolute values."""
        raise NotImplementedError

    def _problem(self) -> QuadraticProblem:
        return replace(super()._problem(), penalty=None if self._selects() else self._penalty())

    def _selects(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "select"

    def _penalty(self) -> Penalty:
        automatic = isinstance(self.alpha, str) and self.alpha == "auto"
        alpha: float | Literal["auto"] = "auto" if automatic else _strength("alpha", self.alpha)
        return Penalty(alpha, self._ratio(), self._ridge, scaled=self._scaled())

    def _scaled(self) -> bool:
        if self.penalty_units not in ("table", "scaled"):
            raise PrivacyError(
                f"penalty_units={self.penalty_units!r} was given; it is 'table' or 'scaled'. Use 'table' if in doubt."
            )
        return self.penalty_units == "scaled"

    def _facts(self) -> JSONObject:
        return {**super()._facts(), "alpha_": np.asarray(self.alpha_).tolist(), "dual_gap": self.dual_gap_}

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        alpha = facts["alpha_"]
        self.alpha_ = np.array(alpha) if isinstance(alpha, list) else float(alpha)
        self.dual_gap_ = float(facts["dual_gap"])

    def _chosen_mechanism(self) -> MomentMechanism:
        if self.alphas is not None and not self._selects():
            raise PrivacyError(
                f"alphas={self.alphas!r} was given with alpha={self.alpha!r}; a list is chosen from with "
                "alpha='select'. Set it, or leave alphas out."
            )
        if self._selects():
            return PenaltySelection(MOMENTS.choose(self.mechanism, type(self).__name__), self._candidates())
        chosen = PENALISED.choose(self.mechanism, type(self).__name__)
        return self._with_intervals(chosen) if self.intervals else chosen

    def _settled(
        self, mechanism: MomentMechanism, given: Input, parameters: PrivacyParameters
    ) -> tuple[MomentMechanism, Input]:
        """A penalty is applied to released moments."""
        return mechanism, given

    def _candidates(self) -> tuple[Penalty, ...]:
        """The penalties that alpha="select" chooses among: the alphas given, or multiples of the automatic one."""
        if self.alphas is None:
            return tuple(Penalty("auto", self._ratio(), self._ridge, times) for times in AUTO_STEPS)
        given = (
            list(self.alphas)
            if isinstance(self.alphas, Sequence | np.ndarray) and not isinstance(self.alphas, str)
            else []
        )
        if not given:
            raise PrivacyError(
                f"alphas={self.alphas!r} was given; it is a list of numbers to choose from. Write alphas=[0.1, 1.0, "
                "10.0]."
            )
        own = self._ratio(), self._ridge
        return tuple(Penalty(_strength("alphas", alpha), *own, scaled=self._scaled()) for alpha in given)

    def _keep(self, result: LinearResult) -> None:
        super()._keep(result)
        fit = result.fit
        assert fit.penalty is not None
        strength = fit.penalty[0] / self._ratio() if self._ratio() > 0.5 else fit.penalty[1] / (1 - self._ratio())
        per_column = strength
        if not self._ridge:
            per_column = strength / max(fit.rows, 1.0)
        numbers = self.alphas is not None if self._selects() else self.alpha != "auto"
        self.alpha_ = float(per_column[0]) if numbers else per_column
        self.dual_gap_ = fit.gap

    def _described(self, result: LinearResult) -> Description:
        described = super()._described(result)
        return Description(described.repairs, (self._penalty_note(), *described.notes))

    def _penalty_note(self) -> str:
        kind = "selected privately on a fifth of the rows" if self._selects() else "as given"
        kind = "from public facts, one per column" if isinstance(self.alpha, str) and self.alpha == "auto" else kind
        alpha = np.ravel(self.alpha_)
        shown = f"{alpha[0]:.4g}" if alpha.min() == alpha.max() else f"{alpha.min():.4g} to {alpha.max():.4g}"
        if self.dual_gap_ == np.inf:
            exactly = "the noisy objective has no minimum: a local one, or a point without slope, was taken"
        elif self.dual_gap_ < 1e-9:
            exactly = "solved exactly"
        else:
            exactly = f"solved to a share of {self.dual_gap_:.1g} of what the fit explains"
        return f"alpha {shown} ({kind}); {exactly}"


@documented
class Ridge(_Penalised):
    """Least squares with an L2 penalty, fitted under differential privacy.

    The objective is scikit-learn's: |y - X coef|^2 + alpha |coef|^2, with one column per level of every category and
    the intercept not penalised. The penalty is applied to the released moments, or with mechanism="objective" in the
    perturbed objective, so it costs no privacy.

    See Also
    --------
    LinearRegression : The same fit without a penalty.
    Lasso : Least squares with an L1 penalty.
    ElasticNet : Both penalties.

    Notes
    -----
    Dandekar, Basu and Bressan [1]_ write the penalty as lambda (a |w|^2 + (1 - a) |w|_1) beside the sum of squared
    errors. Their ridge (a = 1) is Ridge(alpha=lambda), their lasso (a = 0) is Lasso(alpha=lambda / (2 n)), and in
    between it is ElasticNet with alpha l1_ratio = lambda (1 - a) / (2 n) and alpha (1 - l1_ratio) = lambda a / n, n
    being the number of rows.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/moments.md,
    Theorem 3, for "objective" docs/proofs/regression-objective.md, Theorem 2, and docs/proofs/selection.md, Theorem 1,
    with alpha="select".
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] A. Dandekar, D. Basu and S. Bressan, "Differential privacy for regularised linear regression", DEXA 2018.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.Ridge(epsilon=1.0, alpha=10.0, schema=schema).fit(X, 0.5 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.1)
    True
    """

    _ridge = True

    def _ratio(self) -> float:
        return 0.0


@documented
class Lasso(_Penalised):
    """Least squares with an L1 penalty, fitted under differential privacy.

    The objective is scikit-learn's: |y - X coef|^2 / (2 n) + alpha |coef|_1, with one column per level of every
    category and the intercept not penalised. The penalty is applied to the released moments, which are first made
    convex, because an L1 term does not bound a quadratic that is not; or with mechanism="objective" in the perturbed
    objective, rounded off at zero. So it costs no privacy.

    Parameters
    ----------
    alpha : float, 'auto' or 'select'
        Strength of the penalty. "auto" chooses one per column from public facts: a share of what noise alone would
        explain. "select" chooses privately, within the same epsilon: a random fifth of the rows is kept for the choice.

    See Also
    --------
    Ridge : Least squares with an L2 penalty.
    ElasticNet : Both penalties.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/moments.md,
    Theorem 3, for "objective" docs/proofs/regression-objective.md, Theorem 2, and docs/proofs/selection.md, Theorem 1,
    with alpha="select".
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] A. Dandekar, D. Basu and S. Bressan, "Differential privacy for regularised linear regression", DEXA 2018.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 100).reshape(-1, 1)
    >>> X = np.column_stack([X, np.repeat(np.linspace(-1, 1, 100), 200)])
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.Lasso(epsilon=2.0, alpha=0.02, schema=schema).fit(X, 0.5 * X[:, 0])
    >>> bool(abs(model.coef_[0]) > 0.3 > 0.1 > abs(model.coef_[1]))
    True
    """

    def _ratio(self) -> float:
        return 1.0


@documented
class ElasticNet(_Penalised):
    """Least squares with L1 and L2 penalties, fitted under differential privacy.

    The objective is scikit-learn's: |y - X coef|^2 / (2 n) + alpha (l1_ratio |coef|_1 + (1 - l1_ratio) |coef|^2 / 2),
    with one column per level of every category and the intercept not penalised. The penalty is applied to the released
    moments, or with mechanism="objective" in the perturbed objective, rounded off at zero; so it costs no privacy.

    Parameters
    ----------
    l1_ratio : float
        Share of the L1 penalty, from 0 (as Ridge, up to a factor) to 1 (as Lasso).

    See Also
    --------
    Ridge : Least squares with an L2 penalty.
    Lasso : Least squares with an L1 penalty.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/moments.md,
    Theorem 3, for "objective" docs/proofs/regression-objective.md, Theorem 2, and docs/proofs/selection.md, Theorem 1,
    with alpha="select".
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] A. Dandekar, D. Basu and S. Bressan, "Differential privacy for regularised linear regression", DEXA 2018.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.ElasticNet(epsilon=1.0, alpha=0.01, l1_ratio=0.5, schema=schema).fit(X, 0.5 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.15)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        alpha: Alpha = "auto",
        l1_ratio: float = 0.5,
        alphas: Sequence[float] | None = None,
        penalty_units: str = "table",
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        intervals: bool = False,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            alpha=alpha,
            alphas=alphas,
            penalty_units=penalty_units,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            intervals=intervals,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            max_weight=max_weight,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        self.l1_ratio = l1_ratio

    def _ratio(self) -> float:
        ratio = _strength("l1_ratio", self.l1_ratio)
        if ratio > 1:
            raise PrivacyError(f"l1_ratio={self.l1_ratio!r} was given; it is between 0 and 1. Use 0.5 if in doubt.")
        return ratio


def _strength(name: str, value: object) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    number = float(cast("float", value)) if is_number else np.nan
    if not 0 <= number < np.inf:
        words = {
            "alpha": "it is a number of at least 0, 'auto' or 'select'. Use 'auto' if in doubt.",
            "alphas": "each of them is a number of at least 0. Write alphas=[0.1, 1.0, 10.0].",
            "l1_ratio": "it is between 0 and 1. Use 0.5 if in doubt.",
        }[name]
        raise PrivacyError(f"{name}={value!r} was given; {words}")
    return number
