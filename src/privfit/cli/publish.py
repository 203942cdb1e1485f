"""`privfit publish`: weights that let a public table stand for a private one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from privfit.cli.console import counting_rows, hint, ledger_facts, ledger_sentence, print_json, print_report, stdout
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import check_ledger_options, check_new_budget, opened_ledger
from privfit.cli.options import (
    Adjacency,
    AdjacencyOption,
    AsJson,
    DeltaOption,
    EpsilonOption,
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
from privfit.cli.prediction_files import check_ending
from privfit.cli.publish_options import (
    AlphaOption,
    Method,
    MethodOption,
    Output,
    Pairs,
    PairsOption,
    PublicTables,
    SchemaFile,
    Seed,
    TauOption,
    WeightNameOption,
)
from privfit.cli.schema import complete_schema
from privfit.privacy import Budget, PrivacyParameters
from privfit.publish import WEIGHT, ImportanceWeights
from privfit.tables import open_table, refuse_nested, write_frame


def publish(
    table: Table,
    schema: SchemaFile,
    output: Output,
    epsilon: EpsilonOption,
    public: PublicTables = None,
    method: MethodOption = Method.tilting,
    alpha: AlphaOption = None,
    pairs: PairsOption = Pairs.auto,
    tau: TauOption = 1.0,
    weight_name: WeightNameOption = WEIGHT,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    note: Note = "",
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    delta: DeltaOption = 0.0,
    expected_rows: ExpectedRowsOption = None,
    seed: Seed = None,
    as_json: AsJson = False,
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
    PrivacyParameters(Budget(epsilon, delta), adjacency.value, rows_per_person, expected_rows)  # or refuses them
    check_ledger_options(seed, ledger, ledger_epsilon, ledger_delta, note)
    _check_method(method, alpha, pairs)
    check_ending(output)
    check_output(output, table, schema, *(public or []), ledger=ledger)
    _refuse_private(table, public or [])
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
        weight_name=weight_name,
        adjacency=adjacency.value,
        rows_per_person=rows_per_person,
        expected_rows=expected_rows,
        random_state=seed,
    )
    model._chosen_mechanism().check()  # refuses options that mean nothing, before a ledger is made
    if ledger is not None:
        check_new_budget(ledger, Budget(epsilon, delta), ledger_epsilon, ledger_delta or 0.0)
        model.set_params(ledger=opened_ledger(ledger, ledger_epsilon, ledger_delta).with_note(note))
    with warnings.catch_warnings(record=True) as told, counting_rows(f"Reading {shown_source(table)}"):
        warnings.simplefilter("always", UserWarning)
        model.fit(table, list(public) if public else None)
    for one in told:
        hint(str(one.message))
    write_frame(model.to_frame(), output)
    _show(model, output, as_json)


def _refuse_private(table: str, public: Sequence[Path]) -> None:
    """Refuse the private table in place of a public one: its rows would be published."""
    if any(one.resolve() == Path(table).resolve() for one in public):
        raise CommandError(
            f"{table} was given as the private and as a public table; public rows are published as they are. Give "
            "another --public."
        )


def _check_method(method: Method, alpha: float | None, pairs: Pairs) -> None:
    if method is Method.tilting and alpha is not None:
        raise CommandError(
            f"--alpha {alpha:g} was given with --method tilting, whose ridge follows from its noise. Leave it out, or "
            "use --method paper."
        )
    if method is not Method.tilting and pairs is not Pairs.auto:
        raise CommandError(
            f"--pairs {pairs} was given with --method {method}; only tilting releases shares of pairs. Leave it out."
        )


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
    told = f'The rows are in {output}, their weights in its column "{model.weight_name}".'
    console.print(told, markup=False, soft_wrap=True)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
    elif model.report_.private:
        hint(
            "No ledger was given, so nobody adds up what several releases from this table cost. Use --ledger budget.db "
            "--ledger-epsilon 1."
        )
