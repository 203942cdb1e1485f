"""Support vector machines under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from privfit.losses import ConvexLoss, hinge, smooth_hinge
from privfit.mechanisms import ERMFit, ERMProblem, OutputPerturbation, PrivGene
from privfit.mechanisms.base import AnyMechanism
from privfit.models._docs import documented
from privfit.models.base import WeighedClasses
from privfit.models.classes import ClassModel
from privfit.models.features import USUAL_COMPONENTS
from privfit.models.inputs import PUBLIC
from privfit.models.intervals import ClassesWithIntervals
from privfit.models.named import WEIGHTS, ERMMechanism
from privfit.models.perturbed import PerturbedModel
from privfit.privacy import Ledger, Seed
from privfit.schema import Category, Schema


@documented
class LinearSVC(
    WeighedClasses,
    ClassesWithIntervals,
    ClassModel[ERMMechanism, ERMProblem, ERMFit],
    PerturbedModel[ERMMechanism, ERMFit],
):
    """Support vector classification for two or more classes, fitted under differential privacy.

    More than two classes are fitted one against the rest, in one release.

    Parameters
    ----------
    loss : {'huber', 'hinge'}
        "huber" is the hinge loss with its corner rounded; "hinge" rounds it over a thousandth only. A perturbed
        objective needs bounded curvature, so "hinge" goes with mechanism="output" or "genetic".
    width : float
        For "huber", how much of the corner is rounded, to either side.
    mechanism : str, ObjectivePerturbation, OutputPerturbation, PrivGene or SampleAndAggregate
        "auto" perturbs the objective for "huber", and for "hinge" changes weights step by step by private selection
        ("genetic", two classes). Otherwise "objective", "output", "genetic" or "sample-and-aggregate".

    See Also
    --------
    LogisticRegression : Classification with the logistic loss, with probabilities.
    privfit.baselines.PrivateSVM : A published private support vector machine.
    privfit.losses.smooth_hinge : The loss behind "huber".

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/perturbation.md,
    Theorems 1 to 4, docs/proofs/selection.md, Theorem 3, and docs/proofs/aggregate.md, Theorem 1, for sample and
    aggregate.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.LinearSVC(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = (
        PerturbedModel._choices | ClassesWithIntervals._choices | {"loss": ("huber", "hinge")}
    )
    _mechanisms = WEIGHTS

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        loss: str = "huber",
        width: float = 0.5,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        kernel: str = "linear",
        gamma: float | str = "auto",
        n_components: int = USUAL_COMPONENTS,
        row_norm: float | None = None,
        intervals: bool = False,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
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
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.loss = loss
        self.width = width
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.row_norm = row_norm
        self.intervals = intervals

    def _chosen_mechanism(self) -> ERMMechanism:
        if not self.intervals and self.loss == "hinge" and isinstance(self.mechanism, str) and self.mechanism == "auto":
            return PrivGene() if self._suits_privgene() else OutputPerturbation()
        chosen: ERMMechanism = super()._chosen_mechanism()
        return chosen

    def _suits_privgene(self) -> bool:
        """Whether PrivGene can fit this: two classes, and columns as bins or splines."""
        schema = (
            Schema.load(self.schema) if isinstance(self.schema, str | Path) and self.schema != PUBLIC else self.schema
        )
        classes = len(schema.target.levels) if isinstance(schema, Schema) and isinstance(schema.target, Category) else 2
        return (
            classes == 2
            and self.kernel == "linear"
            and self.row_norm is None
            and self.numeric != "slope"
            and bool(self.fit_intercept)
        )

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        return hinge() if self.loss == "hinge" else smooth_hinge(self.width)
