"""`privfit search`: settings of a model, fitted, compared and chosen at one price."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from sklearn.base import clone

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.errors import CommandError
from privfit.cli.fit import ESTIMATORS, checked_schema, checked_table
from privfit.cli.fit_options import Model, ModelOption, Output, SchemaFile
from privfit.cli.ledger_options import check_ledger_options, paying_ledger
from privfit.cli.options import (
    Adjacency,
    AdjacencyOption,
    AsJson,
    EpsilonOption,
    ExpectedRowsOption,
    LedgerDeltaOption,
    LedgerEpsilonOption,
    LedgerOption,
    Note,
    RowsPerPersonOption,
    SeedOption,
    Table,
    shown_source,
)
from privfit.cli.output import check_output
from privfit.models import PrivateSearch
from privfit.privacy import Budget, Ledger, PrivacyParameters

WORDS = {"true": True, "false": False, "none": None}
"""Values that are neither numbers nor texts."""
PREDICTING = tuple(model for model in Model if model not in (Model.kmeans, Model.pca, Model.cox))


def search(
    table: Table,
    schema: SchemaFile,
    model: ModelOption,
    grid: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUES", help="A parameter, as in Python, and its values: alpha=0.1,1,10; repeat for more."
        ),
    ],
    output: Output,
    epsilon: EpsilonOption,
    scoring: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="accuracy for classes; squared or absolute for numbers.", show_default=False),
    ] = None,
    share: Annotated[float, typer.Option(help="The share of rows that settings are compared on.")] = 0.2,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    note: Note = "",
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    expected_rows: ExpectedRowsOption = None,
    seed: SeedOption = None,
    as_json: AsJson = False,
) -> None:
    """Choose among settings of a model privately, and write the chosen fit.

    One price for all fits and the choice: two or three settings share epsilon; of
    more, random ones are fitted at a third of it each until a random stop. The
    ledger is charged once, before any noise is drawn.

    \b
    Examples:
      privfit search adult.csv --schema adult.toml --model logistic \\
          --grid mechanism=objective,output --grid numeric=slope,bins \\
          --epsilon 1 --ledger adult.db -o model.json
      privfit search people.csv -s people.toml -m ridge \\
          --grid alpha=0.1,1,10 -e 1 -o model.json
    """
    PrivacyParameters(Budget(epsilon), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    candidates = dict(parsed_values(text) for text in grid)
    if model not in PREDICTING:
        raise CommandError(
            f"--model {model} was given; settings are compared by what they predict. Use one of "
            f"{', '.join(PREDICTING)}."
        )
    check_output(output, table, schema, ledger=ledger)
    facts = checked_schema(model, schema)
    opened = checked_table(table, facts)
    estimator = ESTIMATORS[model](
        schema=facts, adjacency=adjacency.value, rows_per_person=rows_per_person, expected_rows=expected_rows
    )
    found = PrivateSearch(estimator, candidates, epsilon=epsilon, scoring=scoring, share=share, random_state=seed)
    found._check_estimator()
    for setting in found._settings():  # all before a ledger is made
        clone(estimator).set_params(epsilon=epsilon, **setting)._check_parameters(facts)
    book = paying_ledger(ledger, Budget(epsilon), ledger_epsilon, ledger_delta, note)
    with counting_rows(f"Reading {shown_source(table)}", opened.n_rows):
        found.set_params(ledger=book).fit(opened)
    found._best().save(output)
    _show(found, book, str(output), as_json)


def parsed_values(text: str) -> tuple[str, list[Any]]:
    """The parameter and its values in `alpha=0.1,1,10`."""
    name, given, values = text.partition("=")
    if not name or not given or not values:
        raise CommandError(
            f"--grid {text} was given; it is the name of a parameter and its values. Write, for example, "
            "--grid alpha=0.1,1,10."
        )
    return name.strip(), [_value(one.strip()) for one in values.split(",")]


def _value(text: str) -> Any:
    """A number, True, False or None where the text is one; otherwise the text."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _show(found: PrivateSearch, ledger: Ledger | None, output: str, as_json: bool) -> None:
    if as_json:
        state = None if ledger is None else ledger_facts(ledger)
        chosen = {"written": output, "best_params": found.best_params_, "candidates": len(found.candidates_)}
        print_json({**chosen, "report": found.report_.to_dict(), "ledger": state})
        return
    print_report(found.report_)
    console = stdout()
    console.print()
    setting = ", ".join(f"{name}={value}" for name, value in found.best_params_.items())
    console.print(f"Of {len(found.candidates_)} settings this one was chosen: {setting}.", markup=False, soft_wrap=True)
    console.print(f"Its fit is in {output}. Use it: privfit predict {output} FILE", markup=False, soft_wrap=True)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
    elif found.report_.private:
        hint("No ledger was given, so nobody adds up what several releases from this table cost. Use --ledger.")
