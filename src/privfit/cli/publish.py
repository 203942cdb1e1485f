"""`privfit publish`: weights that let a public table stand for a private one."""

from __future__ import annotations

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.errors import CommandError
from privfit.cli.fit import PRIVACY, Adjacency, check_ledger_options, check_new_budget, opened_ledger
from privfit.cli.output import check_output
from privfit.cli.predict import check_ending
from privfit.cli.schema import complete_schema
from privfit.privacy import Budget, Terms
from privfit.publish import ImportanceWeights
from privfit.tables import open_table, refuse_nested, write_frame

WEIGHTS = "Weights"


class Method(StrEnum):
    """How weights are found."""

    tilting = "tilting"
    paper = "paper"
    objective = "objective"


class Pairs(StrEnum):
    """Whether shares of pairs of columns are released."""

    auto = "auto"
    all = "all"
    none = "none"


def publish(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="The private table: a Parquet or CSV file, one row per person.")],
    schema: Annotated[
        Path,
        typer.Option(
            "--schema", "-s", metavar="TOML", help="The public facts; `privfit schema FILE` drafts them.", rich_help_panel=WEIGHTS
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the weighted rows: .parquet or .csv.", rich_help_panel=WEIGHTS),
    ],
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="What this spends. Smaller protects more and adds more noise.", rich_help_panel=PRIVACY)
    ],
    public: Annotated[
        list[Path] | None,
        typer.Option(
            "--public",
            "-p",
            metavar="FILE",
            help="A public table with some of the same columns. Repeat for more. Without one, rows are made up from the schema.",
            rich_help_panel=WEIGHTS,
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(metavar="NAME", help="tilting (noisy shares), paper (Ji and Elkan 2013) or objective.", rich_help_panel=WEIGHTS),
    ] = Method.tilting,
    alpha: Annotated[
        float | None,
        typer.Option(help="The ridge of paper and objective; the paper's lambda.", show_default="0.1", rich_help_panel=WEIGHTS),
    ] = None,
    pairs: Annotated[
        Pairs, typer.Option(metavar="KIND", help="Shares of pairs of columns for tilting: auto, all or none.", rich_help_panel=WEIGHTS)
    ] = Pairs.auto,
    tau: Annotated[float, typer.Option(help="From 0 (all weights equal) to 1.", rich_help_panel=WEIGHTS)] = 1.0,
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
    delta: Annotated[float, typer.Option(help="The chance that the promise may fail.", rich_help_panel=PRIVACY)] = 0.0,
    expected_rows: Annotated[
        int | None, typer.Option(help="A public guess of the number of rows, for add-remove.", show_default=False, rich_help_panel=PRIVACY)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable noise, for tests: the weights are NOT private.", show_default=False, rich_help_panel=PRIVACY),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Weigh public rows so that they stand for a private table.

    Writes the public rows with a column `weight`, 1 on average, for
    `sample_weight` in scikit-learn or a SUM in SQL. Any number of questions can
    then be asked of the file at no further cost. The ledger is charged before any
    noise is drawn.

    \b
    Examples:
      privfit publish people.parquet --public volunteers.parquet \\
          --schema schema.toml --epsilon 0.1 -o weights.parquet
      privfit publish people.csv -s schema.toml -e 0.5 \\
          -l new.db --ledger-epsilon 1 -o made-up.csv
    """
    Terms(Budget(epsilon, delta), adjacency.value, rows_per_person, expected_rows)  # refuses what no guarantee could be given for
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    _check_method(method, alpha, pairs)
    check_ending(output)
    check_output(output, table, schema, *(public or []), ledger=ledger)
    if any(one.resolve() == table.resolve() for one in public or []):
        raise CommandError(
            f"{table} was given as the private and as a public table; public rows are published as they are. Give another --public."
        )
    facts = complete_schema(schema)
    for path in (table, *(public or [])):
        open_table(path)  # a missing file is found before a ledger is made
    refuse_nested(public or [], output)
    model = ImportanceWeights(
        epsilon,
        delta=delta,
        schema=facts,
        method=method.value,
        alpha=0.1 if alpha is None else alpha,
        pairs=pairs.value,
        tau=tau,
        adjacency=adjacency.value,
        rows_per_person=rows_per_person,
        expected_rows=expected_rows,
        random_state=seed,
    )
    model._chosen_mechanism()  # refuses options that mean nothing, before a ledger is made
    if ledger is not None:
        check_new_budget(ledger, Budget(epsilon, delta), ledger_epsilon, ledger_delta or 0.0)
        model.set_params(ledger=opened_ledger(ledger, ledger_epsilon, ledger_delta).with_note(note))
    with warnings.catch_warnings(record=True) as told, counting_rows(f"Reading {table.name}"):
        warnings.simplefilter("always", UserWarning)
        model.fit(table, list(public) if public else None)
    for one in told:
        hint(str(one.message))
    write_frame(model.to_frame(), output)
    _show(model, output, as_json)


def _check_method(method: Method, alpha: float | None, pairs: Pairs) -> None:
    if method is Method.tilting and alpha is not None:
        raise CommandError(
            f"--alpha {alpha:g} was given with --method tilting, whose ridge follows from its noise. Leave it out, or use --method paper."
        )
    if method is not Method.tilting and pairs is not Pairs.auto:
        raise CommandError(f"--pairs {pairs} was given with --method {method}; only tilting releases shares of pairs. Leave it out.")


def _show(model: ImportanceWeights, output: Path, as_json: bool) -> None:
    ledger = model.ledger
    if as_json:
        state = None if ledger is None else ledger_facts(ledger)
        facts = {"rows": len(model.weights_), "effective_rows": model.effective_rows_, "columns": model.used_columns_}
        print_json({"written": str(output), "weights": facts, "report": model.report_.to_dict(), "ledger": state})
        return
    print_report(model.report_)
    console = stdout()
    console.print()
    console.print(f'The rows are in {output}, their weights in its column "weight".', markup=False, soft_wrap=True)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
    elif model.report_.private:
        hint(
            "No ledger was given, so nobody adds up what several releases from this table cost. Use --ledger budget.db --ledger-epsilon 1."
        )
