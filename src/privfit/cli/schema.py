"""`privfit schema`: draft the public facts of a table, and check them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer
from rich.table import Table as Lines
from rich.text import Text

from privfit.cli.console import hint, ledger_facts, print_json, stderr, stdout
from privfit.cli.errors import INCOMPLETE, CommandError, FactsMissing
from privfit.cli.options import (
    Adjacency,
    AdjacencyOption,
    AsJson,
    DeltaOption,
    ExpectedRowsOption,
    LedgerDeltaOption,
    LedgerEpsilonOption,
    LedgerOption,
    RowsPerPersonOption,
    shown_source,
)
from privfit.cli.output import check_output
from privfit.cli.schema_options import (
    BuyBoundsOption,
    BuyLevelsOption,
    CheckOption,
    DraftOutput,
    LevelsOfOption,
    RangeOption,
    TableArgument,
    TargetOption,
)
from privfit.cli.schema_purchase import Purchase
from privfit.schema import Category, Column, Numeric, Schema
from privfit.schema.toml import value_text
from privfit.tables import NUMBER_OF_A_DATE, Table, draft_schema, open_table, settled_box
from privfit.tables.checking import Findings, find
from privfit.tables.kinds import table_kinds

UNKNOWN = "?"


def schema(
    table: TableArgument = None,
    target: TargetOption = None,
    output: DraftOutput = None,
    check: CheckOption = None,
    buy_bounds: BuyBoundsOption = None,
    range_: RangeOption = None,
    buy_levels: BuyLevelsOption = None,
    levels_of: LevelsOfOption = None,
    delta: DeltaOption = 0.0,
    ledger: LedgerOption = None,
    ledger_epsilon: LedgerEpsilonOption = None,
    ledger_delta: LedgerDeltaOption = None,
    rows_per_person: RowsPerPersonOption = 1,
    adjacency: AdjacencyOption = Adjacency.replace_one,
    expected_rows: ExpectedRowsOption = None,
    as_json: AsJson = False,
) -> None:
    """Draft the public facts of a table, or check them.

    A schema lists, for every column, what could be in it: the smallest and
    largest number, or all levels. Noise is chosen from these facts, so they must
    come from knowledge about the world (a questionnaire, a law, common sense) and
    never from the rows. The draft has a "?" wherever you have to fill in a fact.

    Exit code 2 means that facts are missing or do not fit the file.

    \b
    Examples:
      privfit schema people.csv --target income -o schema.toml
      privfit schema people.csv --buy-bounds 0.05 --range income=0:1e7 \\
          --ledger budget.db -o schema.toml
      privfit schema people.csv --buy-levels 0.1 --delta 1e-6 \\
          --levels-of drug --ledger budget.db -o schema.toml
      privfit schema --check schema.toml people.csv
    """
    purchase = None
    if buy_bounds is not None or buy_levels is not None:
        purchase = Purchase(
            buy_bounds,
            buy_levels,
            delta,
            range_ or (),
            levels_of or (),
            ledger,
            ledger_epsilon,
            ledger_delta,
            adjacency,
            rows_per_person,
            expected_rows,
        )
    elif ledger is not None or ledger_epsilon is not None or ledger_delta is not None:
        raise CommandError(
            "--ledger was given without --buy-bounds or --buy-levels; nothing else here costs anything. Say how much "
            "to spend: --buy-bounds 0.05."
        )
    _check_purchase(bool(range_), buy_bounds, bool(levels_of) or delta > 0, buy_levels, delta)
    if check is not None:
        if target is not None or output is not None or purchase is not None:
            raise CommandError(
                "--check was given with --target, -o, --buy-bounds or --buy-levels, which are for drafting. Leave them "
                "out, or leave out --check."
            )
        _check(check, table, as_json)
    elif table is None:
        raise CommandError(
            "Neither a TABLE to draft a schema from nor --check SCHEMA was given. Give one: privfit schema people.csv."
        )
    else:
        _draft(table, target, output, as_json, purchase)


def _check_purchase(
    has_ranges: bool, for_bounds: float | None, has_levels: bool, for_levels: float | None, delta: float
) -> None:
    """Options that say what to buy go with those that say how much to spend."""
    if has_ranges and for_bounds is None:
        raise CommandError("--range was given without --buy-bounds. Say how much to spend: --buy-bounds 0.05.")
    if has_levels and for_levels is None:
        raise CommandError(
            "--levels-of or --delta was given without --buy-levels. Say how much to spend: --buy-levels 0.1."
        )
    if for_levels is not None and not delta:
        raise CommandError(
            "--buy-levels was given without --delta: that a level exists which nobody has listed may reveal a person. "
            "Give a delta far below one over the number of rows, such as --delta 1e-6."
        )


def complete_schema(path: Path) -> Schema:
    """The schema in a file, or an error that names every fact it still lacks, all at once."""
    missing = missing_facts(path)
    if missing:
        listed = ", ".join(f"{name} ({' and '.join(facts)})" for name, facts in missing.items())
        raise FactsMissing(
            f"The schema {path.name!r} lacks public facts, and they cannot be taken from private data: {listed}. "
            f"Fill them in, then check them: privfit schema --check {path}"
        )
    return Schema.load(path)


def missing_facts(path: Path) -> dict[str, list[str]]:
    """For every column whose bounds or levels are absent or still "?", which of them.

    Anything else that may be wrong with the file is left to Schema.load, whose errors say more.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    features = document.get("feature", [])
    entries = [*(features if isinstance(features, list) else []), document.get("target")]
    named = {str(entry["name"]): _missing(entry) for entry in entries if isinstance(entry, dict) and "name" in entry}
    return {name: facts for name, facts in named.items() if facts}


def _missing(column: dict[str, Any]) -> list[str]:
    needed = {"numeric": ["low", "high"], "category": ["levels"]}.get(str(column.get("type")), [])
    return [fact for fact in needed if column.get(fact, UNKNOWN) in (UNKNOWN, [UNKNOWN], [])]


def _draft(
    table: str, target: str | None, output: Path | None, as_json: bool, purchase: Purchase | None = None
) -> None:
    if output is not None:
        check_output(output, table)
        if output.exists():
            raise CommandError(
                f"-o {output} exists, and facts that you filled in would be lost. Choose another name, or remove the "
                "file."
            )
    text, told = draft_schema(table, target), dict[str, Any]()
    if purchase is not None:
        text, bought = purchase.made(table, text)
        told = bought.to_dict() | {"ledger": None if bought.ledger is None else ledger_facts(bought.ledger)}
        for line in bought.lines():
            hint(f"Bought: {line}.")
    if output is not None:
        output.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"schema": text, "written": None if output is None else str(output), **told})
    elif output is None:
        typer.echo(text, nl=False)
    else:
        again = "TABLE" if "://" in table else table  # an address may hold a password
        todo = 'Replace every "?" in it' if missing_facts(output) else "Read it, and change what you know better"
        hint(f"The draft is in {output}. {todo}, then check it: privfit schema --check {output} {again}")


def _check(path: Path, table: str | None, as_json: bool) -> None:
    problems = [f"Column {name!r} still needs {' and '.join(facts)}." for name, facts in missing_facts(path).items()]
    loaded = None if problems else Schema.load(path)
    if loaded is not None and table is not None:
        problems = _misfits(loaded, open_table(table))
    if as_json:
        columns = [] if loaded is None else [_facts(column, loaded) for column in _shown(loaded)]
        print_json({"complete": not problems, "problems": problems, "columns": columns})
    elif loaded is not None:
        _show(loaded)
    if problems:
        stderr().print(Text("\n".join(problems), style="red"), soft_wrap=True)
        if loaded is None:
            hint(
                "low and high are the smallest and the largest value that can occur; levels lists every value that can "
                "occur."
            )
        raise typer.Exit(INCOMPLETE)
    if not as_json:
        fits = "" if table is None else f" and fits {shown_source(table)}"
        stdout().print(f"The schema is complete{fits}.", markup=False, soft_wrap=True)


def _misfits(schema: Schema, file: Table) -> list[str]:
    """What the file contradicts, in sentences: names, types, missing values and levels, of all columns at once.

    No value is shown.
    """
    table: Table = file
    if schema.any_width:
        table, schema = settled_box(file, schema)
    kinds = dict(zip(table.names or (), table_kinds(file).values(), strict=True))
    told = {column: _misfit(column, kinds, file) for column in schema.columns}
    sentences = [sentence for sentence in told.values() if sentence]
    others = [condition.name for condition in schema.where] + ([] if schema.person is None else [schema.person])
    sentences += [
        f"The file {file.label} has no column {name!r}, which the schema leaves rows out by. Correct the name."
        for name in dict.fromkeys(others)
        if name not in kinds and name not in {column.name for column in schema.columns}
    ]
    readable = [column for column, sentence in told.items() if not sentence]
    found = find(table, readable) if readable else Findings()
    sentences += [_absent(column, is_target=column is schema.target) for column in found.absent]
    sentences += [
        f"Column {column.name!r} has levels that the schema does not list. Add them to levels, or write other = true "
        "under it."
        for column in found.unknown
    ]
    return sentences + found.errors


def _misfit(column: Column, kinds: dict[str, Any], file: Table) -> str:
    """What the file's names and types say against a column, or nothing."""
    if column.name not in kinds:
        return f"The file {file.label} has no column {column.name!r}. Correct the name, or take it out of the schema."
    kind = kinds[column.name]
    if kind.is_temporal() and not (file.is_csv and isinstance(column, Category)):
        return (
            f"Column {column.name!r} holds dates or times in {file.label}. {NUMBER_OF_A_DATE}, or take it out of the "
            "schema."
        )
    if isinstance(column, Numeric) and not (kind.is_numeric() or str(kind) == "Boolean"):
        found = "text" if str(kind) == "String" else type(kind).__name__
        return (
            f"Column {column.name!r} is numeric in the schema and {found} in {file.label}. Correct the schema, or "
            "convert the column."
        )
    return ""


def _absent(column: Column, is_target: bool) -> str:
    """What to do about missing values, in terms of the schema's file."""
    if is_target:
        return (
            f"The target {column.name!r} has missing values. Do not fill them in: what stands for them is learnt as if "
            'it had been measured. Write fill = "drop" under [target]: rows without a target are left out, inside the '
            "promise. Or leave them out before the fit, which is about rows that have a target then; fit with "
            "--adjacency add-remove, unless it is public how many are left."
        )
    example = column.levels[0] if isinstance(column, Category) else (column.low + column.high) / 2
    return (
        f"Column {column.name!r} has missing values, and nothing stands for them. Choose a public value and write it "
        "under "
        f"name = {value_text(column.name)}, for example: fill = {value_text(example)}"
    )


def _shown(schema: Schema) -> tuple[Column, ...]:
    return schema.with_features(["(every column)"]).columns


def _facts(column: Column, schema: Schema) -> dict[str, Any]:
    role = "target" if column is schema.target else "feature"
    if isinstance(column, Category):
        return {
            "name": column.name,
            "role": role,
            "type": "category",
            "levels": list(column.levels),
            "fill": column.fill,
        }
    bins = list(column.bins) if isinstance(column.bins, tuple) else column.bins
    return {
        "name": column.name,
        "role": role,
        "type": "numeric",
        "low": column.low,
        "high": column.high,
        "bins": bins,
        "fill": column.fill,
    }


def _show(schema: Schema) -> None:
    stdout().print(schema_table(schema))
    if schema.person is not None:
        hint(f"Person: {schema.person}. Of each, at most --rows-per-person rows are used.")
    for condition in schema.where:
        hint(f"Rows are used where {condition}.")
    if schema.target is None:
        hint(
            "There is no [target] yet, and a model needs one. Rename the [[feature]] that it shall predict to "
            '"[target]".'
        )


def schema_table(schema: Schema) -> Lines:
    """The schema as a table for the terminal."""
    lines = Lines()
    for name in ("column", "role", "type", "public facts", "if missing"):
        lines.add_column(name, overflow="fold")
    for column in _shown(schema):
        facts = _facts(column, schema)
        absent = "refused" if column.fill is None else f"counts as {_plain(column.fill)}"
        absent = "row is left out" if column.drops else absent
        lines.add_row(
            *(Text(str(cell)) for cell in (column.name, facts["role"], facts["type"], _in_words(column), absent))
        )
    return lines


def _plain(value: Any) -> str:
    """A value as somebody would write it: 60, not 60.0."""
    return f"{value:,.10g}" if isinstance(value, float) else str(value)


def _in_words(column: Column) -> str:
    if isinstance(column, Category):
        return ", ".join(map(str, column.levels))
    bins = "" if column.bins is None else f", cut at {', '.join(f'{edge:,.10g}' for edge in column.edges())}"
    return f"{column.low:,.10g} to {column.high:,.10g}{bins}"
