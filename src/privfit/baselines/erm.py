"""Empirical risk minimisation as Chaudhuri, Monteleoni and Sarwate print it: Differentially Private Empirical Risk Minimization, JMLR 12 (2011), 1069-1109.

Algorithm 1 perturbs the output, Algorithm 2 the objective, Algorithm 3 tunes the regulariser. The paper's rows have length 1 at most. Ours have length K at most, K^2 being the number of columns of
the schema (and the intercept): dividing rows by K is multiplying weights by it, so that its ridge n Lambda becomes n Lambda K^2 beside a sum over our rows, and its noise K times as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.utils.metaestimators import available_if

from privfit.losses import LOGISTIC, ConvexLoss, smooth_hinge
from privfit.losses.convex import is_positive
from privfit.mechanisms import ObjectivePerturbation, OutputPerturbation, Perturbation, Release, Risk, RiskFit, TunedPerturbation
from privfit.mechanisms.minima import Plan, with_output_noise
from privfit.mechanisms.perturbation import NoiseKind
from privfit.mechanisms.precision import most_rows, objective_precision, solvable_ridge
from privfit.mechanisms.rules import FOR_CERTIFICATE, USUAL_ROWS, Numbers
from privfit.mechanisms.tilts import SAFE, make_tilt
from privfit.models.classes import ClassModel
from privfit.models.perturbed import PerturbedModel
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.rows import Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import Gradients

Floats = NDArray[np.float64]

HUBER_WIDTH = 0.5
LOSSES: dict[str, ConvexLoss] = {"logistic": LOGISTIC, "huber": smooth_hinge(HUBER_WIDTH)}
IN_PRIVGENE = 1e-12
"""The regularisation factor with which PrivGene's authors compared (Zhang, Xiao, Yang, Zhang, Winslett, SIGMOD 2013, section 6)."""
CANDIDATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


# -- Algorithms 1 and 2 --------------------------------------------------------------------------------------------------


def printed_rule(gradients: Gradients, ridge: float, epsilon: float) -> tuple[float, float]:
    """The ridge beside a sum over rows, and what is left of epsilon for the random term: epsilon'.

    As printed: epsilon' = epsilon - 2 log(1 + c / (n Lambda)); where that is not positive, n (Lambda + Delta) = c / (e^(epsilon/4) - 1) and epsilon' = epsilon / 2.
    """
    left = epsilon - 2 * gradients.bend_cost(ridge)
    return (ridge, left) if left > 0 else (gradients.forced_ridge(epsilon / 4), epsilon / 2)


def public_rows(n_rows: int | None, terms: Terms, instead: str = "") -> int:
    """By how many rows a mean is taken: public, or a public guess. Before a table is read any number will do: only the price is asked for."""
    known = n_rows if n_rows is not None else terms.expected_rows
    if known is None and terms.adjacency == "add-remove":
        raise PrivacyError(
            "adjacency='add-remove' was given without expected_rows; the loss is a mean over rows here, and their number is private. "
            f"Give a public guess, such as expected_rows=40_000{instead}."
        )
    return known if known is not None else USUAL_ROWS


@dataclass(frozen=True)
class PrintedERM(Perturbation):
    """What the two algorithms share: Lambda, and the paper's factor 2 in the noise, which serves either adjacency."""

    noise: NoiseKind = "l2"
    regularisation: float = IN_PRIVGENE
    share: float = 1.0
    """Which part of the rows is expected to take part in the fit."""

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not is_positive(self.regularisation):
            raise PrivacyError(
                f"regularisation={self.regularisation!r} was given; it is a positive number, Lambda beside the mean over rows, or 'tune'. "
                "Use 1e-3 if in doubt; 1e-12 is what PrivGene's authors compared with."
            )

    def _gradients(self, geometry: Geometry, terms: Terms, objective: Risk) -> Gradients:
        return replace(super()._gradients(geometry, terms, objective), replace=True)  # adding or removing a row moves them half as far

    def solve(self, release: Release[RiskFit], geometry: Geometry, objective: Risk) -> RiskFit:
        """The weights are what was released: nothing is undone, as printed."""
        return release.value

    def _sum_ridge(self, gradients: Gradients, terms: Terms, n_rows: int | None) -> float:
        """n Lambda K^2: the ridge beside a sum over rows of length K."""
        return float(self.regularisation) * self.share * public_rows(n_rows, terms) * gradients.norms.l2**2


@dataclass(frozen=True)
class PrintedObjective(PrintedERM, ObjectivePerturbation):
    """Algorithm 2: the objective is tilted by b of density proportional to exp(-epsilon' |b| / 2), for rows of length 1.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to a chance below 2^-64: the printed constants are larger than
    needed. docs/proofs/baselines.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    def _plan_with(self, kind: str, gradients: Gradients, terms: Terms, n_rows: int | None) -> Plan:
        epsilon = terms.budget.epsilon * (1 - FOR_CERTIFICATE) * SAFE
        asked = self._sum_ridge(gradients, terms, n_rows)
        ridge, left = printed_rule(gradients, asked, epsilon)
        tilt = make_tilt(kind, gradients, epsilon, 0.0, epsilon - left)
        ridge = solvable_ridge(gradients, most_rows(terms, n_rows), ridge, tilt)
        raised = ", Lambda raised" if ridge > asked else ""
        plan = Plan(
            gradients,
            ridge,
            tilt.event(f"PrivateERM, objective{raised}", terms),
            objective_precision(gradients, most_rows(terms, n_rows), ridge, tilt),
            tilt.sd,
            tilt,
        )
        return with_output_noise(plan, terms)


@dataclass(frozen=True)
class PrintedOutput(PrintedERM, OutputPerturbation):
    """Algorithm 1: noise of density proportional to exp(-n Lambda epsilon |b| / 2) on the minimum, for rows of length 1.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to a chance below 2^-64;
    docs/proofs/baselines.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    def _plan_with(self, kind: str, gradients: Gradients, terms: Terms, n_rows: int | None) -> Plan:
        ours = OutputPerturbation(ridge=self._sum_ridge(gradients, terms, n_rows))
        plan = ours._plan_with(kind, gradients, terms, n_rows)
        return replace(plan, event=replace(plan.event, mechanism="PrivateERM, output"))


METHODS: dict[str, type[PrintedERM]] = {"objective": PrintedObjective, "output": PrintedOutput}


# -- Algorithm 3 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TunedFit(RiskFit):
    """The chosen fit, and its Lambda."""

    regularisation: float = 0.0


@dataclass(frozen=True)
class Tuned(TunedPerturbation):
    """Algorithm 3 of the paper, for its own mechanisms.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to a chance below 2^-64;
    docs/proofs/baselines.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    what: ClassVar[str] = "values of Lambda"

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk) -> Release[RiskFit]:
        """As TunedPerturbation, with the Lambda that was chosen."""
        made = super().release(rows, terms, ledger, noise, objective)
        assert made.choice is not None
        chosen = self.candidates[made.choice]
        assert isinstance(chosen, PrintedERM)
        fit = made.value
        return replace(
            made, value=TunedFit(fit.weights, fit.ridge, fit.loss, fit.coupling, fit.features, regularisation=chosen.regularisation)
        )


# -- the estimator -------------------------------------------------------------------------------------------------------


def _is_logistic(model: Any) -> bool:
    return bool(model.loss == "logistic")


class PrivateERM(ClassModel, PerturbedModel):
    """Private empirical risk minimisation for two classes as Chaudhuri, Monteleoni and Sarwate print it (JMLR 2011): a baseline.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier.
    loss : "logistic", or "huber", the hinge loss with its corner rounded over a half to either side.
    method : "objective" tilts what is minimised (Algorithm 2); "output" adds noise to the minimum (Algorithm 1).
    regularisation : Lambda, which multiplies half the squared weights beside the mean of the loss over rows of length 1; or "tune", to choose it privately among `candidates` (Algorithm 3).
        The default is what PrivGene's authors compared with. It is for "objective", which raises it to what privacy needs; "output" needs far more, such as 0.01.
    candidates : for "tune", the values to choose from. Each is fitted on a part of the rows of its own.
    delta : not needed, and not spent.
    numeric : how numeric columns without bins of their own enter; "auto" is "slope", a number scaled to [-1, 1], as in the papers.
    expected_rows : a public guess of the number of rows. With adjacency="add-remove" it has to be given: Lambda belongs to a mean over rows.
    schema, adjacency, fit_intercept, rows_per_person, ledger, random_state : as in LogisticRegression.

    Attributes
    ----------
    regularisation_ : the Lambda that was asked for, or chosen.
    classes_, coef_, intercept_, report_, schema_, n_features_in_, feature_names_in_ : as in LogisticRegression.

    Guarantee: epsilon-DP, replace-one or add-remove, by the printed constants, which are larger than they need to be (pf.LogisticRegression and pf.LinearSVC have smaller ones); half a percent of
    epsilon pays for what a solver leaves undone. docs/proofs/baselines.md, Theorems 1 to 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.baselines.PrivateERM(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        loss: str = "logistic",
        method: str = "objective",
        regularisation: float | str = IN_PRIVGENE,
        candidates: Sequence[float] = CANDIDATES,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
        )
        self.loss = loss
        self.method = method
        self.regularisation = regularisation
        self.candidates = candidates

    def _chosen_mechanism(self) -> Any:
        for name, given, known in (("loss", self.loss, LOSSES), ("method", self.method, METHODS)):
            if given not in tuple(known):
                raise PrivacyError(
                    f"{name}={given!r} was given to PrivateERM; it is one of {tuple(known)}. Use {next(iter(known))!r} if in doubt."
                )
        kind = METHODS[self.method]
        chosen: PrintedERM | Tuned
        if isinstance(self.regularisation, str) and self.regularisation == "tune":
            values = tuple(np.ravel(self.candidates).tolist())
            chosen = Tuned(candidates=tuple(kind(regularisation=value, share=1 / (len(values) + 1)) for value in values))
        else:
            chosen = kind(regularisation=self.regularisation)  # type: ignore[arg-type]
        chosen.check()
        return chosen

    def _numeric_style(self, mechanism: Any) -> Numbers:
        return "slope" if self.numeric == "auto" else super()._numeric_style(mechanism)

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        return LOSSES[self.loss]

    def _objective(self, mechanism: Any, schema: Schema) -> Risk:
        return self._risk(mechanism, schema)

    def _keep(self, fit: Any, mechanism: Any) -> None:
        self._keep_weights(fit)
        self.regularisation_ = fit.regularisation if isinstance(fit, TunedFit) else float(mechanism.regularisation)

    def _notes(self, mechanism: Any) -> tuple[str, ...]:
        printed = "constants as printed in 2011, which are larger than needed"
        if not isinstance(mechanism, Tuned):
            return (f"Lambda {self.regularisation_:g}; {printed}",)
        given = ", ".join(f"{candidate.regularisation:g}" for candidate in mechanism.candidates if isinstance(candidate, PrintedERM))
        return (
            f"Lambda {self.regularisation_:g} was chosen among {given} by mistakes on other rows; the noise told is the largest of all of them; {printed}",
        )

    def _described(self, mechanism: Any, fit: Any) -> tuple[dict[str, Any], list[str]]:
        repairs, notes = super()._described(mechanism, fit)
        if isinstance(mechanism, Tuned):
            notes = [note.replace("over all rows", "over its part of the rows") for note in notes]
        return repairs, notes

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of classes_. For the logistic loss only."""
        return np.asarray(np.exp(self.predict_log_proba(X)), dtype=np.float64)

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of predict_proba."""
        scores = self._scores(X)
        return np.asarray(np.column_stack([log_expit(-scores), log_expit(scores)]), dtype=np.float64)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"loss": self.loss, "method": self.method, "regularisation": self.regularisation_}

    def _restore_facts(self, facts: dict[str, Any]) -> None:
        super()._restore_facts(facts)
        self.loss, self.method = str(facts["loss"]), str(facts["method"])
        self.regularisation = self.regularisation_ = float(facts["regularisation"])
