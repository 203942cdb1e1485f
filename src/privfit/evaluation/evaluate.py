"""`pf.evaluate`: how good a released model is on private rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from privfit.evaluation.clusters import Clusters
from privfit.evaluation.components import Components
from privfit.evaluation.concordance import PairGrid, Survivals
from privfit.evaluation.many_classes import ManyClasses
from privfit.evaluation.predictor import Predictor, rows_schema
from privfit.evaluation.quantile_losses import QuantileLosses
from privfit.evaluation.regressions import Regression
from privfit.evaluation.result import KNOWN, Curve, Evaluation
from privfit.evaluation.score_grid import ScoreGrid
from privfit.evaluation.subject import Found, Subject
from privfit.evaluation.two_classes import TwoClasses
from privfit.mechanisms.base import STREAM_ROWS
from privfit.mechanisms.unread import refuse_unread
from privfit.models import PCA, QuantileRegressor
from privfit.models.inputs import table_with_target
from privfit.models.private import AnyModel, PrivateModel
from privfit.models.report import Report
from privfit.privacy import Adjacency, Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.rows import Rows
from privfit.schema import Category, Column, Schema
from privfit.summaries.figures import Figure, Figures
from privfit.summaries.release import Computed, Terms, guessed_rows, is_used_up, released
from privfit.tables import ComputedTable, DataError, MissingValues, Table, TableLike

PUBLIC = ("the model, which was released before, and its schema",)


def evaluate(
    model: AnyModel,
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    metrics: str | Sequence[str] = "auto",
    delta: float = 0.0,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> Evaluation:
    """Measure how good a released model is on private rows, with noise and with intervals.

    Two classes: noisy counts of rows by class and cell of predicted probability give all figures at one price. More
    classes: a confusion matrix, and calibration. Numbers: R2 and errors from clipped sums; quantiles: also the pinball
    loss. Clusters: distances. Components: the share of variance. The model is public here: it was released before. Its
    own schema says which rows are used, and what stands for missing values. Give rows that the model was not fitted to
    (docs/evaluation.md).

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, for a model that
    does not depend on these rows or was released with a guarantee of its own; docs/proofs/evaluation.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    model : LogisticRegression, LinearRegression, KMeans or another fitted model
        A fitted model, or one that `load_model` read.
    X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The private table, as in `fit`.
    y : array-like or None, default=None
        The target, unless X has a column with the name of the model's target.
    epsilon : float
        Privacy budget of all figures together.
    ledger : Ledger or None, default=None
        Budget that is charged before anything is drawn.
    metrics : 'auto', str or list of str, default='auto'
        The figures that are wanted, such as "accuracy" or ["auc", "roc"]. Fewer may be more accurate: where accuracy
        and the confusion matrix are all, fewer counts are released.
    delta : float, default=0.0
        It is not spent: these draws need epsilon alone.
    adjacency : {'replace-one', 'add-remove'}, default='replace-one'
        Which tables are neighbours.
    rows_per_person : int, default=1
        Largest number of rows that one person can have.
    expected_rows : int or None, default=None
        Public guess of the number of rows where that is private ("add-remove").
    random_state : int, Generator, RandomState or None, default=None
        None draws secret noise. A seed makes the result NOT private, and no ledger takes it.

    Returns
    -------
    Evaluation
        Figures with intervals, curves, and a report.

    Raises
    ------
    DataError
        If the table does not fit the model's schema. Nothing is charged.
    BudgetExceeded
        If the ledger has less left than this costs. Nothing is charged and nothing is drawn.

    See Also
    --------
    load_model : Read a saved model.
    describe : Figures about the table itself.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.LogisticRegression(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> found = pf.evaluate(model, X, y, epsilon=1.0)
    >>> bool(found.auc > 0.95)
    True
    """
    _check_model(model)
    asked = _checked_metrics(metrics)
    terms = Terms(epsilon, delta, adjacency, rows_per_person, expected_rows, ledger, random_state)
    schema = rows_schema(model)
    opened = table_with_target(model, X, y, schema)
    subject = _subject_of(model, opened, schema, terms, asked)
    _check_asked(model, subject, asked)
    problem = subject.problem
    target = schema.target
    derived = Computed(_computing(subject), "" if target is None else target.name, PUBLIC, _notes(model))
    try:
        answer = released("evaluate", subject.mechanism, problem, opened, subject.columns, terms, schema, derived)
        return _evaluation(model, subject.found(answer), answer.report, asked)
    except MissingValues as error:
        if target is None or error.column != target.name:
            raise
    raise _missing_target(target)


def _check_model(model: object) -> None:
    if not isinstance(model, PrivateModel) or not (hasattr(model, "predict") or isinstance(model, PCA)):
        raise PrivacyError(
            f"evaluate was given a {type(model).__name__}; it is a fitted model of privfit, which knows its schema. "
            "Fit one, or read one with pf.load_model(path)."
        )
    check_is_fitted(model, "schema_")


def _checked_metrics(metrics: str | Sequence[str]) -> tuple[str, ...] | None:
    """The figures that are wanted; None for all."""
    if isinstance(metrics, str) and metrics == "auto":
        return None
    wanted = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    unknown = [name for name in wanted if name not in KNOWN]
    if unknown or not wanted:
        raise PrivacyError(
            f"metrics={metrics!r} was given; they are some of {', '.join(KNOWN)}. Use 'auto' for all that the model "
            "has."
        )
    return wanted


def _check_asked(model: AnyModel, subject: Subject, asked: tuple[str, ...] | None) -> None:
    missing = [name for name in asked or () if name not in subject.names]
    if missing:
        raise PrivacyError(
            f"metrics={asked!r} was given for a {type(model).__name__}, and {KNOWN[missing[0]]} has {missing[0]!r}. "
            f"This model has {', '.join(subject.names)}. Nothing was charged."
        )


def _subject_of(model: AnyModel, table: Table, schema: Schema, terms: Terms, asked: tuple[str, ...] | None) -> Subject:
    """What is computed and asked, for so many rows as is public before one is read, or else for a guess. With a person
    column it is not: a person may have any number of rows (docs/proofs/persons.md).
    """
    parameters, rows = terms.parameters, terms.expected_rows or STREAM_ROWS
    if schema.person is None:
        if is_used_up(table, parameters):
            usual = _subject(Predictor.of(model), rows, parameters, asked)
            own, asks = Schema(usual.columns), usual.mechanism
            unread = Rows(_computing(usual)(table), own, asks.geometry(own, usual.problem))
            refuse_unread(terms.ledger, asks, usual.problem, unread, parameters)
        columns = [*schema.columns, *(condition.column for condition in schema.where)]
        rows = guessed_rows(table, columns, parameters)
    return _subject(Predictor.of(model), rows, parameters, asked)


def _subject(predictor: Predictor, rows: int, parameters: PrivacyParameters, asked: tuple[str, ...] | None) -> Subject:
    """What is computed and asked, by the kind of the model."""
    changed = int(parameters.rows_per_person) * (2 if parameters.adjacency == "replace-one" else 1)
    epsilon = float(parameters.budget.epsilon)
    grid = ScoreGrid.of(rows, epsilon, changed)
    target = predictor.schema.target
    if hasattr(predictor.model, "baseline_survival_"):
        return Survivals(predictor, PairGrid.of(predictor.model, rows, epsilon, changed))
    if isinstance(target, Category):
        return (TwoClasses if len(target.levels) == 2 else ManyClasses).of(predictor, grid, asked)
    if target is not None:
        return (QuantileLosses if isinstance(predictor.model, QuantileRegressor) else Regression)(predictor)
    if isinstance(predictor.model, PCA):
        return Components(predictor, rows * epsilon)
    if hasattr(predictor.model, "cluster_centers_"):
        return Clusters(predictor, rows * epsilon)
    raise PrivacyError(
        f"evaluate was given a {type(predictor.model).__name__} ; it evaluates classifiers, regressions, survival "
        "models, PCA and KMeans."
    )


def _computing(subject: Subject) -> Any:
    predictor = subject.predictor
    return lambda table: ComputedTable(
        table, predictor.schema.columns, [column.name for column in subject.columns], subject.compute
    )


def _notes(model: AnyModel) -> tuple[str, ...]:
    report = getattr(model, "report_", None)
    if report is None or report.private:
        return ()
    return (f"the model itself is not private: {'; '.join(report.not_private_because)}",)


def _missing_target(target: Column) -> DataError:
    return DataError(
        f"The target {target.name!r} contains NaN or missing values, and the model was fitted without a rule for them. "
        "Leave such rows out before evaluating: with adjacency='add-remove' if it is private who has no target. "
        "Nothing was charged."
    )


# -- from estimates to what a user sees ------------------------------------------------------------


def _evaluation(model: AnyModel, found: Found, report: Report, asked: tuple[str, ...] | None) -> Evaluation:
    figures = {name: Figure(one.value, (one.low, one.high), report) for name, one in found.figures.items()}
    curves = {name: _curve(one, report) for name, one in found.curves.items()}
    if asked is not None:
        figures = {name: one for name, one in figures.items() if name in asked}
        curves = {name: one for name, one in curves.items() if name in asked}
    at = found.confusion_at
    return Evaluation(type(model).__name__, figures, curves, report, None if at is None else _Confusion(at, report))


class _Confusion:
    """The confusion matrix for any threshold, with its report."""

    def __init__(self, found: Any, report: Report) -> None:
        self._found, self._report = found, report

    def __call__(self, threshold: float) -> Figures:
        table: Figures = _curve(self._found(threshold), self._report)
        return table


def _curve(found: Any, report: Report) -> Any:
    """Lines of estimates, or a matrix with its labels."""
    if isinstance(found, dict):
        return Curve({name: _figures(own, report, ()) for name, own in found.items()})
    table, labels, _ = found
    return _figures(table, report, labels)


def _figures(estimates: list[Any], report: Report, labels: tuple[Any, ...]) -> Figures:
    values = np.array(estimates, dtype=np.float64)  # an estimate is a line of three
    return Figures(values[..., 0], values[..., 1:], report, labels)
