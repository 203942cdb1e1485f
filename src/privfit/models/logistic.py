"""Logistic regression under differential privacy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from privfit.losses import LOGISTIC, ConvexLoss, tempered_logistic, truncated_logistic
from privfit.mechanisms import (
    AggregatedWeights,
    FunctionalMechanism,
    LinearFit,
    ObjectivePerturbation,
    PairedPerturbation,
    Perturbation,
    PrivGene,
    RiskFit,
)
from privfit.models.base import original_units
from privfit.models.classes import ClassModel, log_chances
from privfit.models.inputs import predicting
from privfit.models.perturbed import USUAL_PAIRS, PerturbedModel
from privfit.privacy import Ledger, PrivacyError
from privfit.schema import Schema
from privfit.solvers import calibrate

Floats = NDArray[np.float64]


class LogisticRegression(ClassModel, PerturbedModel):
    """Logistic regression for two or more classes, fitted under differential privacy.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier.
    delta : the chance that the promise fails. With a delta above 0, Gaussian noise is used wherever it is less by three percent or more.
    schema : the public facts, with a Category as target. "public" declares the table itself public.
    mechanism : "auto" and "objective" perturb the objective, the most accurate way on every table that was measured; "output" perturbs the minimum; "functional" releases moments
        and fits a quadratic in place of the loss, for two classes; "genetic" moves weights by private choices, for two classes; "sample-and-aggregate" averages the weights of many blocks, for comparison. Or an instance:
        pf.ObjectivePerturbation(ridge=...), pf.OutputPerturbation(...), pf.FunctionalMechanism(...), pf.PrivGene(...), pf.SampleAndAggregate(...).
    adjacency : "replace-one" (the number of rows is public) or "add-remove" (it is not).
    fit_intercept : whether to fit an intercept.
    numeric : how numeric columns without bins of their own enter: "slope" (a line), "bins" (steps), "splines" (a line through knots) or "auto". That is "slope" where rows times epsilon over
        columns is below 200, splines with 8 knots from there on, or where the number of rows is not known beforehand; and "slope" for the functional mechanism.
    kernel : "linear", or "rbf": a linear model of random Fourier features, which come from a public seed. The model then bends in all columns together.
    gamma : for "rbf", how quickly it bends: exp(-gamma |x - x'|^2) of rows as encoded. "auto" is four over the number of columns, where a category counts as three. With a kernel numbers enter as they are, from -1 to 1, unless `numeric` says otherwise.
    n_components : for "rbf", how many features. They have no intercept.
    row_norm : a public length that no row of numbers exceeds, as embeddings of length one have it; longer rows are shortened when fitting, not when predicting. Noise then follows this
        length, not the number of columns. For schemas like pf.Schema.box(-1, 1), whose columns are numbers with the same bounds on both sides of zero, best as wide as rows are long; each enters as a slope.
    interactions : how many tables of scores there are beside the sum over columns: for a pair of columns, one score for every two levels, bins or eighths of a number's range; or for a number by itself,
        in 500 fine steps. They are chosen privately, where the rest of the fit misses most. "auto" is two where rows times epsilon (over rows_per_person) are 40,000 or more, one from
        20,000 on, and none below; half of these limits where a delta makes noise Gaussian; and none where a mechanism is named, for more than two classes, for more than 5,000 to choose from,
        or where the number of rows is not known beforehand. 0 keeps the model a sum over columns with 8 knots a number. A number of your own goes with mechanism="objective" too.
    rows_per_person : the most rows that one person can have; the promise is made to people.
    expected_rows : a public guess of the number of rows, for the ridge and for how numbers enter, where the true number is private (add-remove).
    ledger : the pf.Ledger to charge. Without one, a ledger without a limit keeps the running total of the process.
    random_state : a seed makes the noise repeatable and the result NOT private. For tests and experiments.

    Attributes
    ----------
    classes_ : the public classes, sorted.
    coef_ : shape (1, columns) for two classes, (classes, columns) for more; one coefficient per name in get_feature_names_out(), in the units of the table.
    intercept_ : shape (1,) or (classes,).
    report_, schema_, n_features_in_, feature_names_in_ : as in LinearRegression.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/perturbation.md, Theorems 1 to 4, docs/proofs/pairs.md, Theorems 1 and 2, for interactions, docs/proofs/moments.md,
    Theorem 3, for the functional mechanism, docs/proofs/selection.md, Theorem 3, for the genetic one, and docs/proofs/aggregate.md, Theorem 1, for sample and aggregate.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.LogisticRegression(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    _loss = truncated_logistic()
    _knows_moments = _evolves = _aggregates = True
    _mechanisms = (
        "'auto', 'objective', 'output', 'functional', 'genetic', 'sample-and-aggregate', pf.ObjectivePerturbation(...), pf.OutputPerturbation(...), "
        "pf.FunctionalMechanism(...), pf.PrivGene(...) and pf.SampleAndAggregate(...)"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: Any = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        kernel: str = "linear",
        gamma: float | str = "auto",
        n_components: int = 2 * USUAL_PAIRS,
        row_norm: float | None = None,
        interactions: int | str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
        )
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.row_norm = row_norm
        self.interactions = interactions

    def _chosen_mechanism(self) -> Any:
        chosen = super()._chosen_mechanism()
        paired = PairedPerturbation.of(ObjectivePerturbation(), self.interactions)
        paired.check()
        if type(chosen) is ObjectivePerturbation:
            none = self.interactions == "auto" and not (isinstance(self.mechanism, str) and self.mechanism == "auto")
            return chosen if none or self.interactions == 0 else PairedPerturbation.of(chosen, self.interactions)
        if self.interactions not in ("auto", 0):
            raise PrivacyError(
                f"interactions={self.interactions!r} was given with mechanism={self.mechanism!r}; tables for pairs of columns go with a perturbed objective. Use mechanism='auto' or 'objective'."
            )
        return chosen

    def _fits_many(self, mechanism: Any) -> bool:
        return isinstance(mechanism, Perturbation | AggregatedWeights)

    def _instead(self) -> str:
        return "Use mechanism='objective', which fits any number of classes, or join classes in the schema."

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        return LOGISTIC

    def _objective(self, mechanism: Any, schema: Schema) -> Any:
        if isinstance(mechanism, Perturbation | PrivGene | AggregatedWeights):
            return self._risk(mechanism, schema)
        if self.kernel != "linear":
            raise PrivacyError(
                f"kernel={self.kernel!r} was given with the functional mechanism, which fits linear models. Use mechanism='objective'."
            )
        if self.row_norm is not None:
            raise PrivacyError(
                f"row_norm={self.row_norm!r} was given with the functional mechanism, which knows bounds of columns only. Use mechanism='objective'."
            )
        return super()._objective(mechanism, schema)

    def _keep(self, fit: Any, mechanism: Any) -> None:
        self._length = 1.0
        if isinstance(fit, RiskFit):
            self._keep_weights(fit)
            self._slopes = None if fit.loss == LOGISTIC else (float(fit.loss.most_slope or 1), float(fit.loss.taper or 1))
            self._softmax = fit.coupling == "softmax"
            return
        self._slopes, self._softmax = None, False
        self._pairs, self._features = (), None
        self._keep_moments(fit, mechanism)

    def _keep_moments(self, fit: LinearFit, mechanism: FunctionalMechanism) -> None:
        if mechanism.calibration == "tight" and mechanism.loss is None:
            centred = self._geometry.intercept and self._checked_intercept()
            length, intercept = calibrate(fit.weights, fit.intercept, fit.target_mean, fit.moments, centred, mechanism.interval)
            fit = replace(fit, weights=fit.weights * length, intercept=intercept)
            self._length = length
        coef, intercept = original_units(fit, self._geometry)
        self.coef_ = coef[None, :]
        self.intercept_ = np.array([intercept])

    def _notes(self, mechanism: Any) -> tuple[str, ...]:
        return (
            (f"coefficients are stretched {self._length:.3g} times, because a quadratic stands in for the logistic loss",)
            if self._length != 1
            else ()
        )

    # -- probabilities ------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of classes_."""
        return np.asarray(np.exp(self.predict_log_proba(X)), dtype=np.float64)

    @predicting
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of predict_proba."""
        scores = self._scores(X)
        if scores.ndim == 1:
            return np.column_stack([self._log_chance(-scores), self._log_chance(scores)])
        return np.asarray(log_softmax(scores, axis=1), dtype=np.float64) if self._softmax else log_chances(self._log_odds(scores), scores)

    def _log_chance(self, scores: Floats) -> Floats:
        """The logarithm of the chance that a score stands for."""
        return np.asarray(log_expit(self._log_odds(scores)), dtype=np.float64)

    def _log_odds(self, scores: Floats) -> Floats:
        """Scores as they would be for the logistic loss. A loss with smaller slopes has larger scores for the same chance, or smaller ones."""
        if self._slopes is None:
            return scores
        return tempered_logistic(*self._slopes).log_odds(scores)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"slopes": self._slopes, "softmax": self._softmax}

    def _restore_facts(self, facts: dict[str, Any]) -> None:
        super()._restore_facts(facts)
        slopes = facts.get("slopes")
        self._slopes = None if slopes is None else (float(slopes[0]), float(slopes[1]))
        self._softmax = bool(facts.get("softmax", False))
