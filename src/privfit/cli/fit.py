"""`privfit fit`: from a private file to a model that can be released."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.errors import CommandError
from privfit.cli.fit_options import (
    AlphaOption,
    ClassWeightOption,
    ClustersOption,
    ComponentsOption,
    DeltaOption,
    EpsilonOption,
    EventOption,
    InteractionsOption,
    IntervalsOption,
    JobsOption,
    KernelOption,
    L1RatioOption,
    LossOption,
    MaxWeightOption,
    Mechanism,
    MechanismOption,
    MemoryOption,
    Model,
    ModelOption,
    NoInterceptOption,
    NumericOption,
    NumericStyle,
    Output,
    QuantileOption,
    RowNormOption,
    SchemaFile,
    Seed,
    TimeOption,
    WeightOption,
)
from privfit.cli.holdout_options import HoldoutOption, HoldoutShareOption, check_holdout, part_of
from privfit.cli.ledger_options import check_ledger_options, check_new_budget, opened_ledger
from privfit.cli.options import (
    Adjacency,
    AdjacencyOption,
    AsJson,
    ExpectedRowsOption,
    LedgerDeltaOption,
    LedgerEpsilonOption,
    LedgerOption,
    Note,
    RowsPerPersonOption,
    Table,
    shown_source,
)
from privfit.cli.output import check_output
from privfit.cli.schema import complete_schema
from privfit.models import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    CoxRegression,
    ElasticNet,
    FractionalRegressor,
    GammaRegressor,
    GaussianNB,
    KMeans,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from privfit.models.weights import BALANCED
from privfit.privacy import Budget, Ledger, PrivacyParameters
from privfit.schema import Numeric, Schema, SchemaError
from privfit.tables import Table as OpenTable
from privfit.tables import open_table, settled_box

ESTIMATORS: dict[Model, Any] = {
    Model.linear: LinearRegression,
    Model.ridge: Ridge,
    Model.lasso: Lasso,
    Model.elastic_net: ElasticNet,
    Model.logistic: LogisticRegression,
    Model.svm: LinearSVC,
    Model.additive_regressor: AdditiveRegressor,
    Model.additive_classifier: AdditiveClassifier,
    Model.quantile: QuantileRegressor,
    Model.naive_bayes: GaussianNB,
    Model.poisson: PoissonRegressor,
    Model.gamma: GammaRegressor,
    Model.fractional: FractionalRegressor,
    Model.cox: CoxRegression,
    Model.kmeans: KMeans,
    Model.pca: PCA,
}
CLASSES = (Model.logistic, Model.svm, Model.additive_classifier, Model.naive_bayes)
WITHOUT_TARGET = (Model.kmeans, Model.pca)
WITHOUT_WEIGHTS = (Model.kmeans,)
"""Models whose rows count alike."""


def fit(
    table: Table,
    schema: SchemaFile,
    model: ModelOption,
    output: Output,
    epsilon: EpsilonOption,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    note: Note = "",
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    delta: DeltaOption = 0.0,
    seed: Seed = None,
    no_intercept: NoInterceptOption = False,
    numeric: NumericOption = NumericStyle.auto,
    mechanism: MechanismOption = Mechanism.auto,
    expected_rows: ExpectedRowsOption = None,
    alpha: AlphaOption = None,
    l1_ratio: L1RatioOption = None,
    quantile: QuantileOption = None,
    time: TimeOption = None,
    event: EventOption = None,
    intervals: IntervalsOption = False,
    clusters: ClustersOption = None,
    components: ComponentsOption = None,
    interactions: InteractionsOption = None,
    loss: LossOption = None,
    kernel: KernelOption = None,
    row_norm: RowNormOption = None,
    weight: WeightOption = None,
    max_weight: MaxWeightOption = None,
    class_weight: ClassWeightOption = None,
    n_jobs: JobsOption = None,
    max_memory: MemoryOption = None,
    holdout: HoldoutOption = None,
    holdout_share: HoldoutShareOption = None,
    as_json: AsJson = False,
) -> None:
    """Fit a private model on a table and write it as JSON.

    The ledger is charged before any noise is drawn. If it has too little left,
    nothing is drawn or written, and the exit code is 3.

    \b
    Examples:
      privfit fit people.csv --schema schema.toml --model linear \\
          --epsilon 0.5 --ledger budget.db -o model.json
      privfit fit people.parquet -s schema.toml -m logistic -e 0.5 \\
          -l new.db --ledger-epsilon 1 -o model.json
      privfit fit "postgresql://me@host/db?table=people" \\
          -s schema.toml -m ridge -e 0.5 -l budget.db -o model.json
    """
    PrivacyParameters(Budget(epsilon, delta), adjacency.value, rows_per_person, expected_rows)  # or a refusal
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    check_holdout(holdout, holdout_share, ledger)
    own = _penalty(model, alpha, l1_ratio) | _of_points(model, clusters, components)
    own |= _of_coefficients(model, no_intercept, numeric, mechanism, intervals)
    own |= _of_rest(model, interactions, quantile) | _only(model, (Model.cox,), time=time, event=event)
    check_output(output, table, schema, ledger=ledger)
    facts = checked_schema(model, schema)
    own |= _of_weights(model, weight, max_weight, class_weight, facts) | _of_margins(model, loss, kernel, row_norm)
    opened = checked_table(table, facts.with_target(None) if model in WITHOUT_TARGET else facts)
    promised = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency.value, "rows_per_person": rows_per_person}
    own |= {"expected_rows": expected_rows, "random_state": seed, "n_jobs": n_jobs, "max_memory": max_memory}
    estimator = ESTIMATORS[model](schema=facts, **promised, **own)
    estimator._check_parameters(facts)  # before a ledger is made
    estimator.set_params(ledger=_paying_ledger(estimator, ledger, ledger_epsilon, ledger_delta, note))
    with counting_rows(f"Reading {shown_source(table)}", opened.n_rows):
        rows = part_of(opened, "fit", holdout, holdout_share, estimator.ledger, facts)
        estimator.fit(rows, *((None, weight) if weight else ()))
    _saved_and_shown(estimator, output, as_json)


def _paying_ledger(
    estimator: Any, path: str | None, whole_epsilon: float | None, whole_delta: float | None, note: str
) -> Ledger | None:
    """The ledger that was asked for, made now if there is none, that the estimator's budget is charged to."""
    if path is None:
        return None
    check_new_budget(path, Budget(estimator.epsilon, estimator.delta), whole_epsilon, whole_delta or 0.0)
    return opened_ledger(path, whole_epsilon, whole_delta).with_note(note)


def _penalty(model: Model, alpha: str | None, l1_ratio: float | None) -> dict[str, Any]:
    """The options about a penalty, as the estimator takes them."""
    chosen: dict[str, Any] = {}
    if alpha is not None:
        if model not in (Model.ridge, Model.lasso, Model.elastic_net):
            raise CommandError(
                f"--alpha {alpha} was given with --model {model}, which has no penalty. Use --model ridge, lasso or "
                "elastic-net."
            )
        try:
            chosen["alpha"] = alpha if alpha in ("auto", "select") else float(alpha)
        except ValueError:
            raise CommandError(
                f"--alpha {alpha} was given; it is a number, auto or select. Leave it out if in doubt."
            ) from None
    if l1_ratio is not None:
        if model is not Model.elastic_net:
            raise CommandError(
                f"--l1-ratio {l1_ratio:g} was given with --model {model}; only elastic-net has it. Leave it out."
            )
        chosen["l1_ratio"] = l1_ratio
    return chosen


def _of_points(model: Model, clusters: int | None, components: int | None) -> dict[str, Any]:
    """How many clusters or components there are."""
    chosen = _only(model, (Model.kmeans,), clusters=clusters) | _only(model, (Model.pca,), components=components)
    return {f"n_{name}": number for name, number in chosen.items()}


def _of_coefficients(
    model: Model, no_intercept: bool, numeric: NumericStyle, mechanism: Mechanism, intervals: bool
) -> dict[str, Any]:
    """The options that models with coefficients have, where the model has them too."""
    given: dict[str, tuple[str, Any, Any]] = {
        "fit_intercept": ("--no-intercept", not no_intercept, True),
        "numeric": ("--numeric", numeric.value, "auto"),
        "mechanism": ("--mechanism", mechanism.value, "auto"),
        "intervals": ("--intervals", intervals, False),
    }
    taken = ESTIMATORS[model]._get_param_names()
    for name, (option, value, usual) in given.items():
        if name not in taken and value != usual:
            raise CommandError(f"{option} was given with --model {model}, which does not have it. Leave it out.")
    return {name: value for name, (_, value, _) in given.items() if name in taken}


def _of_rest(model: Model, interactions: Any, quantile: float | None) -> dict[str, Any]:
    """Interaction terms and the quantile."""
    with_terms = (Model.logistic, Model.additive_classifier, Model.additive_regressor)
    found = _only(model, with_terms, interactions=interactions)
    return found | _only(model, (Model.quantile,), quantile=quantile)


def _of_weights(
    model: Model, weight: str | None, max_weight: float | None, class_weight: str | None, schema: Schema
) -> dict[str, Any]:
    """Weights of rows, their bound, and weights of classes."""
    weighed = tuple(known for known in Model if known not in WITHOUT_WEIGHTS)
    balanced = tuple(known for known in CLASSES if known is not Model.naive_bayes)
    _only(model, weighed, weight=weight)
    found = _only(model, weighed, max_weight=max_weight) | _only(model, balanced, class_weight=class_weight)
    if class_weight is None or class_weight == BALANCED:
        return found
    pairs = [part.rpartition("=") for part in class_weight.split(",")]
    levels = {str(level): level for level in getattr(schema.target, "levels", ())}
    try:
        by_level = {levels.get(name.strip(), name.strip()): float(number) for name, _, number in pairs}
        return found | {"class_weight": by_level}
    except ValueError:
        raise CommandError(
            f"--class-weight {class_weight} was given; it is 'balanced', or numbers by class. Write, for example, "
            "--class-weight no=1,yes=5."
        ) from None


def _of_margins(model: Model, loss: Any, kernel: Any, row_norm: float | None) -> dict[str, Any]:
    """The options of classifiers with a margin."""
    found = _only(model, (Model.svm,), loss=loss and loss.value)
    return found | _only(model, (Model.logistic, Model.svm), kernel=kernel and kernel.value, row_norm=row_norm)


def _only(model: Model, models: tuple[Model, ...], **options: Any) -> dict[str, Any]:
    """Options that only these models have, as the estimator takes them: those that were given."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and model not in models:
        name, value = next(iter(given.items()))
        raise CommandError(
            f"--{name.replace('_', '-')} {value} was given with --model {model}; only {' and '.join(models)} can have "
            "it. Leave it out."
        )
    return given


def checked_table(table: str, schema: Schema) -> OpenTable:
    """The table, once a missing file, column or header would have been found: before a ledger is made."""
    opened = found = open_table(table)
    if schema.any_width:
        opened, schema = settled_box(opened, schema)
    opened.positions(schema.columns)
    return found


def checked_schema(model: Model, path: Path) -> Schema:
    """The schema of this file, whose target is of the kind that the model predicts."""
    schema = complete_schema(path)
    if model in WITHOUT_TARGET or model is Model.cox:
        return schema
    numeric = model not in CLASSES
    needed = "a numeric column" if numeric else "a category"
    if schema.target is None:
        raise SchemaError(
            f"--model {model} was given, and the schema names no column to predict. Rename its [[feature]] to "
            f"[target]; it must be {needed}."
        )
    if isinstance(schema.target, Numeric) != numeric:
        other = Model.logistic if numeric else Model.linear
        facts = "low and high" if numeric else "levels, such as [0, 1]"
        kind = "numeric" if numeric else "category"
        raise SchemaError(
            f"--model {model} predicts {needed}, and the schema's target {schema.target.name!r} is of another type. "
            f'Use --model {other}, or write type = "{kind}" with {facts} under [target]. Nothing was charged.'
        )
    return schema


def _saved_and_shown(estimator: Any, output: Path, as_json: bool) -> None:
    estimator.save(output)
    ledger: Ledger | None = estimator.ledger
    if as_json:
        state = None if ledger is None else ledger_facts(ledger)
        print_json({"written": str(output), "report": estimator.report_.to_dict(), "ledger": state})
        return
    print_report(estimator.report_)
    console = stdout()
    console.print()
    console.print(f"The model is in {output}. Use it: privfit predict {output} FILE", markup=False, soft_wrap=True)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
    elif estimator.report_.private:
        hint(
            "No ledger was given, so nobody adds up what several fits on this table cost. Use --ledger budget.db "
            "--ledger-epsilon 1."
        )
