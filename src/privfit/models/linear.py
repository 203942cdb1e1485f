"""Least squares under differential privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from privfit.losses import SQUARED
from privfit.mechanisms import FunctionalMechanism, LinearFit
from privfit.models.base import PrivateLinearModel, original_units
from privfit.schema import Numeric


class LinearRegression(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Ordinary least squares, fitted under differential privacy by the functional mechanism.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier.
    delta : the chance that the promise fails. Laplace noise needs none, so that nothing of it is spent.
    schema : the public facts: a pf.Schema or the path of a TOML file. "public" declares the table itself public.
    mechanism : "auto", "functional" or a pf.FunctionalMechanism.
    adjacency : "replace-one" (the number of rows is public) or "add-remove" (it is not).
    fit_intercept : whether to fit an intercept.
    numeric : how numeric columns without bins of their own enter: "slope", "bins", or "auto", which is "slope" here.
    rows_per_person : the most rows that one person can have; the promise is made to people.
    expected_rows : a public guess of the number of rows. This mechanism does not need it.
    ledger : the pf.Ledger to charge. Without one, a ledger without a limit keeps the running total of the process.
    random_state : a seed makes the noise repeatable and the result NOT private. For tests and experiments.

    Attributes
    ----------
    coef_ : one coefficient per name in get_feature_names_out(), in the units of the table.
    intercept_ : the intercept, in the units of the target.
    report_ : what was promised and what it cost.
    schema_ : the schema that was used.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/moments.md, Theorem 3.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> model = pf.LinearRegression(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=(-1, 1))).fit(X, 0.5 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.1)
    True
    """

    _loss = SQUARED

    def _keep(self, fit: LinearFit, mechanism: FunctionalMechanism) -> None:
        coef, intercept = original_units(fit, self._geometry)
        target = self.schema_.target
        assert isinstance(target, Numeric)
        half, middle = target.high / 2 - target.low / 2, target.high / 2 + target.low / 2
        self.coef_ = coef * half
        self.intercept_ = intercept * half + middle

    def _restore(self, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """coef_'x + intercept_ for every row."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1 the 200 rows of scikit-learn's check are drowned, as they must be
        return tags
