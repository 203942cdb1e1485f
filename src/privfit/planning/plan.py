"""`pf.plan`: the expected score of every mechanism against epsilon, by simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privfit.planning.costs import changes, measured_changes
from privfit.planning.generated import Source
from privfit.planning.hazards import HazardSource, with_time
from privfit.planning.result import Forecast, Plan, forecast
from privfit.planning.simulation import (
    MODELS,
    NO_NOISE,
    WITHOUT_TARGET,
    Repetition,
    Settings,
    Step,
    without_noise,
)
from privfit.privacy import Budget, PrivacyError
from privfit.schema import Category, Numeric, Schema, SchemaError
from privfit.tables import TableLike

CLASSIFIERS = ("logistic", "svc", "additive-classifier", "naive-bayes")
DEVIANCES = ("poisson", "gamma", "fractional")
Progress = Callable[[int, int], None]


def plan(
    schema: Schema | str | Path,
    n_rows: int,
    *,
    model: str = "logistic",
    epsilon: Sequence[float] = (0.1, 0.2, 0.4, 0.8, 1.6),
    public: TableLike | Mapping[Any, Any] | None = None,
    mechanisms: Sequence[str] | None = None,
    repetitions: int = 3,
    rows_per_person: int = 1,
    max_rows: int = 20_000,
    costs: bool = True,
    random_state: int = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> Plan:
    """Forecast the score of a private fit, before anything is spent and without the private table.

    Tables are generated from the schema, or from a public sample of rows, and the library's own estimators are fitted
    to them with seeded noise. Nothing private is read, so nothing is charged.

    Parameters
    ----------
    schema : Schema, str or Path
        Public facts about the private table, or the path of a TOML file that has them.
    n_rows : int
        Number of rows of the private table, or a public guess.
    model : str, default='logistic'
        One of "linear", "ridge", "lasso", "elastic-net", "logistic", "svc", "kmeans", "additive-regressor",
        "additive-classifier", "naive-bayes", "poisson", "gamma", "fractional", "quantile", "pca", "cox"; for the last
        one `time` and `event` are given as to `CoxRegression`, and for "pca" `n_components` as to `PCA`.
    epsilon : sequence of float, default=(0.1, 0.2, 0.4, 0.8, 1.6)
        The epsilons to compare.
    public : array-like, data frame, Arrow table, str, Path, dict or None, default=None
        Public rows with the columns of the schema. They are resampled, numbers are smoothed a little, and the target of
        each generated table is drawn from a law that they leave possible. Never the private table: the plan would
        reveal its rows. Or a public summary: a dict of (mean, standard deviation) by number, of shares of levels by
        category, and of correlations by pair of names; rows are made that agree with it.
    mechanisms : sequence of str or None, default=None
        Mechanisms to compare, by name; None for all that the model knows.
    repetitions : int, default=3
        Number of generated tables.
    rows_per_person : int, default=1
        Largest number of rows that one person can have.
    max_rows : int, default=20_000
        Most rows of a generated table. For more rows, tables have so many and epsilon is larger in proportion.
    costs : bool, default=True
        Whether to plan again with one public fact changed, to find what costs most.
    random_state : int, default=0
        Seed of tables and noise.
    progress : callable or None, default=None
        Called with the number of finished steps and of all steps.
    **parameters : object
        Other parameters of the estimator, such as `delta` or `n_clusters`.

    Returns
    -------
    Plan
        Expected scores with their spreads; it prints as a table with a recommendation.

    Raises
    ------
    SchemaError
        If the schema has no target that this model can predict.
    DataError
        If the public sample does not fit the schema.

    See Also
    --------
    bounds : Buys bounds where nobody knows them.
    LogisticRegression : One of the models that can be planned.

    Examples
    --------
    >>> import privfit as pf
    >>> schema = pf.Schema([pf.Numeric("age", 0, 120)], target=pf.Category("ill", ["no", "yes"]))
    >>> plan = pf.plan(schema, 5000, epsilon=(0.1, 1.0), mechanisms=("auto", "output"), repetitions=2)
    >>> plan.best(1.0).score >= plan.best(0.1).score
    True
    """
    if model == "cox":
        schema, parameters = with_time(_loaded(schema), parameters)
    if model == "pca" and parameters.get("n_components") is None:
        raise PrivacyError(
            "A plan for pca was asked for without n_components; all components explain all of the variance whatever "
            "the noise. Write n_components=2, for example."
        )
    settled = checked_schema(schema, model)
    _check_counts(n_rows=n_rows, repetitions=repetitions, max_rows=max_rows)
    epsilons = tuple(sorted({Budget(one).epsilon for one in epsilon}))
    settings = Settings(model, int(n_rows), int(max_rows), rows_per_person, parameters)
    event = parameters.get("event")
    if isinstance(event, Category) and model == "cox":
        source: Source | HazardSource = HazardSource.of(settled, event, public, random_state)
    else:
        source = Source.of(settled, public, random_state)
    tables = [Repetition.of(source, settings.simulated_rows, random_state + one) for one in range(int(repetitions))]
    names, refused = _usable(mechanisms, settings, settled, tables[0])
    middle = epsilons[len(epsilons) // 2]
    steps = 1 + len(names) * len(epsilons) + (len(list(changes(settled, settings))) if costs else 0)
    step = _counter(steps, progress)
    reference = float(np.mean([one.score(without_noise(settings), settled, "auto", NO_NOISE) for one in tables]))
    step()
    forecasts = tuple(
        _counted(forecast(name, one, [table.score(settings, settled, name, one) for table in tables]), step)
        for name in names
        for one in epsilons
    )
    return Plan(
        model,
        settings.n_rows,
        settings.simulated_rows,
        len(tables),
        "schema" if public is None else "public summary" if isinstance(public, Mapping) else "public sample",
        measure(settled, model),
        reference,
        forecasts,
        measured_changes(settled, settings, tables, middle, step) if costs else (),
        middle,
        refused,
    )


def _counted(made: Forecast, step: Step) -> Forecast:
    step()
    return made


def _counter(steps: int, progress: Progress | None) -> Step:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, steps)

    return step


def _usable(
    asked: Sequence[str] | None, settings: Settings, schema: Schema, table: Repetition
) -> tuple[list[str], dict[str, str]]:
    """The mechanisms that can fit this, and why others cannot. What was asked for by name must."""
    known = MODELS[settings.model][1]
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise PrivacyError(f"mechanisms={unknown} was given; {settings.model} knows {list(known)}. Name some of these.")
    refused = {
        name: why for name in asked or known if name != "auto" and (why := settings.refusal(schema, name, table.train))
    }
    return [name for name in asked or known if name not in refused], refused


def checked_schema(schema: object, model: str) -> Schema:
    """The schema of used rows, with a target that the model predicts."""
    if model not in MODELS:
        raise PrivacyError(f"model={model!r} was given; a plan knows {list(MODELS)}. Name one of these.")
    settled = _loaded(schema).of_used_rows()
    if model in WITHOUT_TARGET:
        return settled.with_target(None)
    wanted = Category if model in CLASSIFIERS else Numeric
    if not isinstance(settled.target, wanted):
        raise SchemaError(
            f"The plan is for {model}, which predicts a {wanted.__name__} target, and the schema has "
            f"{'none' if settled.target is None else type(settled.target).__name__}. Change the target or the model."
        )
    if model in DEVIANCES and isinstance(settled.target, Numeric) and settled.target.low < 0:
        raise SchemaError(
            f"The plan is for {model}, whose deviance is of numbers from 0 on, and the target {settled.target.name!r} "
            f"may be as low as {settled.target.low:g}. Give it a lower bound of at least 0, or plan another model."
        )
    return settled


def _loaded(schema: object) -> Schema:
    settled = Schema.load(schema) if isinstance(schema, str | Path) else schema
    if not isinstance(settled, Schema) or settled.any_width:
        raise SchemaError("plan needs a pf.Schema with named columns, or the path of a TOML file. Give one.")
    return settled


def _check_counts(**counts: object) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
            raise PrivacyError(f"{name}={value!r} was given; it is an integer of at least 1. Give a count.")


def measure(schema: Schema, model: str) -> str:
    """What a score of this model is."""
    if model == "kmeans":
        return "explained share of the scaled variance"
    if model == "pca":
        return "share of the variance that components explain"
    if model == "cox":
        return "concordance"
    if model in DEVIANCES:
        return "D^2, the share of the deviance that is explained"
    if model == "quantile":
        return "D^2, the share of the pinball loss that is explained"
    return "share of right classes" if isinstance(schema.target, Category) else "R^2"
