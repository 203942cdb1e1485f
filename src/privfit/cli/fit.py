"""`privfit fit`: from a private file to a model that can be released."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.errors import CommandError
from privfit.cli.output import check_output
from privfit.cli.schema import complete_schema
from privfit.models import ElasticNet, KMeans, Lasso, LinearRegression, LinearSVC, LogisticRegression, Ridge
from privfit.privacy import Budget, Ledger, LedgerError, PrivacyError, Terms
from privfit.schema import Numeric, Schema, SchemaError
from privfit.tables import column_positions, open_table, settled_box


class Model(StrEnum):
    """The models that `privfit fit` knows."""

    linear = "linear"
    ridge = "ridge"
    lasso = "lasso"
    elastic_net = "elastic-net"
    logistic = "logistic"
    svm = "svm"
    kmeans = "kmeans"


class Adjacency(StrEnum):
    """Which two tables the promise makes hard to tell apart."""

    replace_one = "replace-one"
    add_remove = "add-remove"


class NumericStyle(StrEnum):
    """How numeric columns without bins of their own enter the model."""

    auto = "auto"
    slope = "slope"
    bins = "bins"
    splines = "splines"


class Mechanism(StrEnum):
    """The mechanisms that `privfit fit` knows by name."""

    auto = "auto"
    objective = "objective"
    output = "output"
    functional = "functional"
    genetic = "genetic"
    hybrid = "hybrid"
    cells = "cells"
    grid = "grid"
    lloyd = "lloyd"
    aggregate = "sample-and-aggregate"
    adassp = "adassp"
    boosted_adassp = "boosted-adassp"


class SvmLoss(StrEnum):
    huber = "huber"
    hinge = "hinge"


class Kernel(StrEnum):
    linear = "linear"
    rbf = "rbf"


ESTIMATORS: dict[Model, Any] = {
    Model.linear: LinearRegression,
    Model.ridge: Ridge,
    Model.lasso: Lasso,
    Model.elastic_net: ElasticNet,
    Model.logistic: LogisticRegression,
    Model.svm: LinearSVC,
    Model.kmeans: KMeans,
}
CLASSES = (Model.logistic, Model.svm)


PRIVACY = "Privacy"
MODEL = "Model"


def fit(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="The private table: a Parquet or CSV file, one row per person.")],
    schema: Annotated[
        Path,
        typer.Option("--schema", "-s", metavar="TOML", help="The public facts; `privfit schema FILE` drafts them.", rich_help_panel=MODEL),
    ],
    model: Annotated[
        Model,
        typer.Option(
            "--model",
            "-m",
            metavar="KIND",
            help="linear, ridge, lasso or elastic-net (predict a number), logistic or svm (predict a class), or kmeans (clusters).",
            rich_help_panel=MODEL,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="JSON", help="Where to write the model.", rich_help_panel=MODEL)],
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", "-e", help="What this fit spends. Smaller protects more and adds more noise.", rich_help_panel=PRIVACY),
    ],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", "-l", metavar="DB", help="The budget to pay from; see `privfit ledger`.", rich_help_panel=PRIVACY),
    ] = None,
    ledger_epsilon: Annotated[
        float | None, typer.Option(help="Make the ledger, with this budget, if there is none.", show_default=False, rich_help_panel=PRIVACY)
    ] = None,
    ledger_delta: Annotated[
        float | None, typer.Option(help="The delta of a ledger made so; 0 if left out.", show_default=False, rich_help_panel=PRIVACY)
    ] = None,
    note: Annotated[str, typer.Option(help="What it is for: a line in the ledger.", show_default=False, rich_help_panel=PRIVACY)] = "",
    rows_per_person: Annotated[int, typer.Option(help="The most rows that one person can have.", rich_help_panel=PRIVACY)] = 1,
    adjacency: Annotated[
        Adjacency,
        typer.Option(metavar="KIND", help="replace-one (the number of rows is public) or add-remove (it is not).", rich_help_panel=PRIVACY),
    ] = Adjacency.replace_one,
    delta: Annotated[
        float,
        typer.Option(
            help="The chance that the promise may fail. Above 0, Gaussian noise is used where it is less.", rich_help_panel=PRIVACY
        ),
    ] = 0.0,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable noise, for tests: the model is NOT private.", show_default=False, rich_help_panel=PRIVACY),
    ] = None,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit without a constant term.", rich_help_panel=MODEL)] = False,
    numeric: Annotated[
        NumericStyle,
        typer.Option(metavar="KIND", help="Numbers as lines (slope), steps (bins), bent lines (splines), or auto.", rich_help_panel=MODEL),
    ] = NumericStyle.auto,
    mechanism: Annotated[
        Mechanism,
        typer.Option(
            metavar="NAME",
            help="auto; objective, output or genetic for classes; functional for numbers and logistic; adassp or boosted-adassp for linear; "
            "hybrid, cells, grid, lloyd or genetic for kmeans; sample-and-aggregate for classes and kmeans.",
            rich_help_panel=MODEL,
        ),
    ] = Mechanism.auto,
    expected_rows: Annotated[
        int | None,
        typer.Option(help="A public guess of the number of rows, for add-remove.", show_default=False, rich_help_panel=PRIVACY),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="The penalty of ridge, lasso and elastic-net: a number, auto (from public facts) or select (by the data, privately).",
            show_default="auto",
            rich_help_panel=MODEL,
        ),
    ] = None,
    l1_ratio: Annotated[
        float | None,
        typer.Option(help="The share of elastic-net's penalty on absolute values.", show_default="0.5", rich_help_panel=MODEL),
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(min=1, help="How many clusters kmeans has.", show_default="8", rich_help_panel=MODEL)
    ] = None,
    interactions: Annotated[
        int | None,
        typer.Option(
            help="For logistic: how many tables for pairs of columns, or numbers in fine steps, are chosen privately; 0 for a sum over columns.",
            show_default="by a public rule",
            rich_help_panel=MODEL,
        ),
    ] = None,
    loss: Annotated[
        SvmLoss | None,
        typer.Option(metavar="KIND", help="For svm: huber (rounded) or hinge.", show_default="huber", rich_help_panel=MODEL),
    ] = None,
    kernel: Annotated[
        Kernel | None,
        typer.Option(
            metavar="KIND",
            help="For logistic and svm: linear, or rbf, which bends in all columns together.",
            show_default="linear",
            rich_help_panel=MODEL,
        ),
    ] = None,
    row_norm: Annotated[
        float | None,
        typer.Option(
            help="For logistic and svm: the length that no row of numbers exceeds; longer ones are shortened.",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Fit a private model on a file and write it as JSON.

    The ledger is charged before any noise is drawn. If it
    has too little left, nothing is drawn or written, and the exit code is 3.

    \b
    Examples:
      privfit fit people.csv --schema schema.toml --model linear \\
          --epsilon 0.5 --ledger budget.db -o model.json
      privfit fit people.parquet -s schema.toml -m logistic -e 0.5 \\
          -l new.db --ledger-epsilon 1 -o model.json
    """
    Terms(Budget(epsilon, delta), adjacency.value, rows_per_person, expected_rows)  # refuses what no guarantee could be given for
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    own = _penalty(model, alpha, l1_ratio) | _of_clusters(model, clusters, no_intercept, numeric)
    own |= _only(model, (Model.logistic,), interactions=interactions)
    own |= _only(model, (Model.svm,), loss=loss and loss.value) | _only(model, CLASSES, kernel=kernel and kernel.value, row_norm=row_norm)
    check_output(output, table, schema, ledger=ledger)
    facts = complete_schema(schema)
    _check_target(model, facts)
    _check_columns(table, facts.with_target(None) if model is Model.kmeans else facts)
    estimator = ESTIMATORS[model](
        epsilon=epsilon,
        delta=delta,
        schema=facts,
        adjacency=adjacency.value,
        mechanism=mechanism.value,
        expected_rows=expected_rows,
        rows_per_person=rows_per_person,
        random_state=seed,
        **own,
    )
    estimator._objective(estimator._chosen_mechanism(), facts)  # refuses options that mean nothing, before a ledger is made
    if ledger is not None:
        check_new_budget(ledger, Budget(epsilon, delta), ledger_epsilon, ledger_delta or 0.0)
        estimator.set_params(ledger=opened_ledger(ledger, ledger_epsilon, ledger_delta).with_note(note))
    with counting_rows(f"Reading {table.name}"):
        estimator.fit(table)
    estimator.save(output)
    _show(estimator, output, as_json)


def _penalty(model: Model, alpha: str | None, l1_ratio: float | None) -> dict[str, Any]:
    """The options about a penalty, as the estimator takes them."""
    chosen: dict[str, Any] = {}
    if alpha is not None:
        if model not in (Model.ridge, Model.lasso, Model.elastic_net):
            raise CommandError(
                f"--alpha {alpha} was given with --model {model}, which has no penalty. Use --model ridge, lasso or elastic-net."
            )
        try:
            chosen["alpha"] = alpha if alpha in ("auto", "select") else float(alpha)
        except ValueError:
            raise CommandError(f"--alpha {alpha} was given; it is a number, auto or select. Leave it out if in doubt.") from None
    if l1_ratio is not None:
        if model is not Model.elastic_net:
            raise CommandError(f"--l1-ratio {l1_ratio:g} was given with --model {model}; only elastic-net has it. Leave it out.")
        chosen["l1_ratio"] = l1_ratio
    return chosen


def _of_clusters(model: Model, clusters: int | None, no_intercept: bool, numeric: NumericStyle) -> dict[str, Any]:
    """The options that clusters have and linear models do not, or the other way round."""
    if model is not Model.kmeans:
        if clusters is not None:
            raise CommandError(f"--clusters {clusters} was given with --model {model}; only kmeans has clusters. Leave it out.")
        return {"fit_intercept": not no_intercept, "numeric": numeric.value}
    if no_intercept or numeric is not NumericStyle.auto:
        raise CommandError(
            "--no-intercept or --numeric was given with --model kmeans, which has distances and no coefficients. Leave it out."
        )
    return {} if clusters is None else {"n_clusters": clusters}


def _only(model: Model, models: tuple[Model, ...], **options: Any) -> dict[str, Any]:
    """Options that only these models have, as the estimator takes them: those that were given."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and model not in models:
        name, value = next(iter(given.items()))
        raise CommandError(
            f"--{name.replace('_', '-')} {value} was given with --model {model}; only {' and '.join(models)} can have it. Leave it out."
        )
    return given


def check_ledger_options(
    seed: int | None, ledger: Path | None, ledger_epsilon: float | None, ledger_delta: float | None, note: str
) -> None:
    """Refuse options about a ledger and a seed that do not go together."""
    if seed is not None and ledger is not None:
        raise PrivacyError(
            f"--seed {seed} was given together with --ledger; noise from a seed can be repeated and subtracted, so the model is not private "
            "and a ledger does not take it. Leave out --seed, or leave out --ledger. Nothing was charged."
        )
    if ledger_epsilon is not None and ledger is None:
        raise CommandError(f"--ledger-epsilon {ledger_epsilon:g} was given without --ledger. Say which file: --ledger budget.db.")
    if note and ledger is None:
        raise CommandError("--note was given without --ledger, and it is a line of the ledger. Say which file: --ledger budget.db.")
    if ledger_delta is not None and ledger_epsilon is None:
        raise CommandError(
            f"--ledger-delta {ledger_delta:g} was given without --ledger-epsilon. A new budget needs both: add --ledger-epsilon 1."
        )


def _check_columns(table: Path, schema: Schema) -> None:
    """Find a missing file, column or header before a ledger is made."""
    opened = open_table(table)
    if schema.any_width:
        opened, schema = settled_box(opened, schema)
    column_positions(opened, schema.columns)


def _check_target(model: Model, schema: Schema) -> None:
    if model is Model.kmeans:
        return
    numeric = model not in CLASSES
    needed = "a numeric column" if numeric else "a category"
    if schema.target is None:
        raise SchemaError(
            f"--model {model} was given, and the schema names no column to predict. Rename its [[feature]] to [target]; it must be {needed}."
        )
    if isinstance(schema.target, Numeric) != numeric:
        other = Model.logistic if numeric else Model.linear
        raise SchemaError(
            f"--model {model} predicts {needed}, and the schema's target {schema.target.name!r} is of another type. "
            f"Use --model {other}, or correct the target in the schema. Nothing was charged."
        )


def check_new_budget(path: Path, asked: Budget, epsilon: float | None, delta: float) -> None:
    """A ledger that could not pay even for the first fit is not made: its budget would stand for ever."""
    if path.exists() or epsilon is None:
        return
    if asked.epsilon > epsilon or asked.delta > delta:
        raise CommandError(
            f"This fit asks for epsilon {asked.epsilon:g} and delta {asked.delta:g}, and the new ledger would have epsilon {epsilon:g} and delta {delta:g} in all. "
            "It was not made. Give a larger --ledger-epsilon or --ledger-delta, or ask for less."
        )


def opened_ledger(path: Path, epsilon: float | None, delta: float | None) -> Ledger:
    """The ledger in this file; a new one only where the user says how much it may spend."""
    if path.exists():
        return Ledger(path, epsilon, delta)
    if epsilon is None:
        raise LedgerError(
            f"There is no ledger {str(path)!r}, and a new one needs a budget. Check the path, add --ledger-epsilon 1, "
            f"or make it first: privfit ledger {path} --create --epsilon 1. Nothing was charged."
        )
    budget = Budget(epsilon, delta or 0.0)
    made = Ledger(path, budget.epsilon, budget.delta)
    and_delta = f" and delta {made.delta:g}" if made.delta else ""
    hint(f"Made the ledger {path} with a budget of epsilon {made.epsilon:g}{and_delta}.")
    return made


def _show(estimator: Any, output: Path, as_json: bool) -> None:
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
        hint("No ledger was given, so nobody adds up what several fits on this table cost. Use --ledger budget.db --ledger-epsilon 1.")
