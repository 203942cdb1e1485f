"""`privfit select`: the columns that go with a target most, in one release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.errors import CommandError
from privfit.cli.fit import checked_table
from privfit.cli.fit_options import SchemaFile
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
from privfit.cli.schema import complete_schema
from privfit.models import SelectPrivate
from privfit.privacy import Budget, Ledger, PrivacyParameters
from privfit.schema import SchemaError


def select(
    table: Table,
    schema: SchemaFile,
    number: Annotated[int, typer.Option("--number", "-k", help="How many columns are wanted.")],
    epsilon: EpsilonOption,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="TOML", help="Where to write the schema of the selected columns alone."),
    ] = None,
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
    """Select the columns that go with the schema's target most, in one release.

    Noise grows with the number of columns, so that a fit of the few that matter
    is often better than one of all. Columns are judged one by one. The ledger is
    charged before any noise is drawn.

    \b
    Examples:
      privfit select people.csv --schema people.toml -k 5 --epsilon 0.2 \\
          --ledger people.db -o few.toml
      privfit fit people.csv --schema few.toml --model logistic -e 0.8 \\
          --ledger people.db -o model.json
    """
    PrivacyParameters(Budget(epsilon), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    if output is not None:
        check_output(output, table, schema, ledger=ledger)
    facts = complete_schema(schema)
    if facts.target is None:
        raise SchemaError(
            f"The schema {schema.name!r} names no column to predict, and columns are selected for one. Rename its "
            "[[feature]] to [target]. Nothing was charged."
        )
    if not 1 <= number <= len(facts.features):
        raise CommandError(
            f"-k {number} was given, and the schema has {len(facts.features)} columns beside its target. Ask for at "
            "least one of them and at most all. Nothing was charged."
        )
    opened = checked_table(table, facts)
    book = paying_ledger(ledger, Budget(epsilon), ledger_epsilon, ledger_delta, note)
    found = SelectPrivate(
        number,
        epsilon=epsilon,
        schema=facts,
        adjacency=adjacency.value,
        rows_per_person=rows_per_person,
        expected_rows=expected_rows,
        ledger=book,
        random_state=seed,
    )
    with counting_rows(f"Reading {shown_source(table)}", opened.n_rows):
        found.fit(opened)
    if output is not None:
        found.selected_schema_.save(output)
    _show(found, book, output, as_json)


def _show(found: SelectPrivate, ledger: Ledger | None, output: Path | None, as_json: bool) -> None:
    if as_json:
        state = None if ledger is None else ledger_facts(ledger)
        chosen = {"selected": found.selected_.tolist(), "written": None if output is None else str(output)}
        print_json({**chosen, "report": found.report_.to_dict(), "ledger": state})
        return
    print_report(found.report_)
    console = stdout()
    console.print()
    console.print(f"Selected, in this order: {', '.join(found.selected_)}", markup=False, soft_wrap=True)
    if output is not None:
        console.print(f"Their schema is in {output}.", markup=False, soft_wrap=True)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
    elif found.report_.private:
        hint("No ledger was given, so nobody adds up what several releases from this table cost. Use --ledger.")
