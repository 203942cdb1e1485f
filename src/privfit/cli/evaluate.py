"""`privfit evaluate`: how good a saved model is on private rows, with noise and with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import hint, print_answer, reading
from privfit.cli.holdout_options import HoldoutOption, HoldoutShareOption, check_holdout, part_of
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
)
from privfit.cli.output import check_output
from privfit.evaluation import evaluate as evaluated
from privfit.models import load_model
from privfit.privacy import Budget, PrivacyParameters
from privfit.tables import open_table


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `privfit fit -o MODEL` wrote.")],
    table: Table,
    epsilon: EpsilonOption,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="A figure that is wanted; repeat for more. Default: all."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the figures into this PNG, SVG or PDF file.")
    ] = None,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    note: Note = "",
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    expected_rows: ExpectedRowsOption = None,
    seed: SeedOption = None,
    holdout: HoldoutOption = None,
    holdout_share: HoldoutShareOption = None,
    as_json: AsJson = False,
) -> None:
    """Measure how good a saved model is on the rows of a private table.

    The table has the model's columns and its target. All figures are one release.
    The ledger is charged before any noise is drawn. Give rows that the model was
    not fitted to.

    \b
    Examples:
      privfit evaluate model.json holdout.parquet --epsilon 0.1 --ledger people.db
      privfit evaluate model.json holdout.csv -e 0.1 --metric auc --json
      privfit evaluate model.json people.csv -e 0.1 -l people.db --holdout 2026
    """
    PrivacyParameters(Budget(epsilon), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    check_holdout(holdout, holdout_share, ledger)
    if figure is not None:
        check_output(figure, model, table, ledger=ledger)
    fitted = load_model(model)
    open_table(table)  # a missing file is found before a ledger is made
    book = paying_ledger(ledger, Budget(epsilon), ledger_epsilon, ledger_delta, note)
    with reading(table):
        found = evaluated(
            fitted,
            part_of(table, "evaluate", holdout, holdout_share, book, fitted.schema_),
            epsilon=epsilon,
            ledger=book,
            metrics=metric or "auto",
            adjacency=adjacency.value,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            random_state=seed,
        )
    if figure is not None:
        found.plot(figure)
        hint(f"The drawing is in {figure}.")
    print_answer(found, book, as_json)
