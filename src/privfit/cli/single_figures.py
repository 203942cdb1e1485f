"""`privfit count`, `mean`, `quantile`, `histogram` and `crosstab`: one question about a table each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated, Any

import numpy as np
import typer

from privfit import summaries
from privfit.cli.figures import (
    BinnedArgument,
    ColumnArgument,
    FigureOption,
    NumberArgument,
    Price,
    SchemaOption,
    answer,
    counted_among,
)
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
from privfit.schema import Column

Told = Iterator[tuple[tuple[Any, ...], float, tuple[float, float]]]
Asked = tuple[Any, ...]


def count(
    table: Table,
    column: ColumnArgument,
    among: Annotated[
        list[str],
        typer.Option(metavar="WHAT", help="Which rows: a level, repeat for more, or numbers from LOW to below HIGH."),
    ],
    epsilon: EpsilonOption,
    schema: SchemaOption = None,
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
    """Count rows: those at some levels, or with a number in a range.

    The interval is about the table's own count. The ledger is charged before any
    noise is drawn.

    \b
    Examples:
      privfit count people.csv age=0:120 --among 18:65 --epsilon 0.05 \\
          --ledger people.db
      privfit count people.csv ill --schema people.toml --among yes -e 0.05
    """
    terms = (rows_per_person, expected_rows, seed, ledger, ledger_epsilon, ledger_delta, note)

    def question(columns: Sequence[Column]) -> Asked:
        return columns[0], counted_among(columns[0], among)

    def told(columns: Sequence[Column], found: Any) -> Told:
        yield (" or ".join(among).replace(":", " to "),), float(found), found.interval

    answer(summaries.count, table, [column], schema, Price(epsilon, adjacency, *terms), None, as_json, question, told)


def mean(
    table: Table,
    column: NumberArgument,
    epsilon: EpsilonOption,
    schema: SchemaOption = None,
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
    """Release the mean of a number.

    The range may be generous: a quarter of epsilon buys a narrower one. The
    interval is about the population that the rows are drawn from. The ledger is
    charged before any noise is drawn.

    \b
    Examples:
      privfit mean people.csv income=0:1000000 --epsilon 0.2 --ledger people.db
      privfit mean people.csv income --schema people.toml -e 0.2 --json
    """
    terms = (rows_per_person, expected_rows, seed, ledger, ledger_epsilon, ledger_delta, note)

    def told(columns: Sequence[Column], found: Any) -> Told:
        yield ("mean",), float(found), found.interval

    answer(summaries.mean, table, [column], schema, Price(epsilon, adjacency, *terms), None, as_json, tuple, told)


def quantile(
    table: Table,
    column: NumberArgument,
    epsilon: EpsilonOption,
    quantile: Annotated[
        list[float] | None, typer.Option("--quantile", "-q", help="Repeat for more. Default: 0.5, the median.")
    ] = None,
    schema: SchemaOption = None,
    figure: FigureOption = None,
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
    """Release quantiles of a number: the median, or others, several at one price.

    The range may be generous. Intervals are about the population that the rows
    are drawn from. The ledger is charged before any noise is drawn.

    \b
    Examples:
      privfit quantile people.csv income=0:1000000 -q 0.5 -q 0.9 --epsilon 0.1 \\
          --ledger people.db
      privfit quantile people.csv age --schema people.toml --epsilon 0.1
    """
    terms = (rows_per_person, expected_rows, seed, ledger, ledger_epsilon, ledger_delta, note)
    wanted = quantile or [0.5]

    def question(columns: Sequence[Column]) -> Asked:
        return columns[0], wanted

    def told(columns: Sequence[Column], found: Any) -> Told:
        for one, value, interval in zip(wanted, found.tolist(), found.interval.tolist(), strict=True):
            yield ("median" if one == 0.5 else f"{100 * one:g}%",), value, tuple(interval)

    price = Price(epsilon, adjacency, *terms)
    answer(summaries.quantile, table, [column], schema, price, figure, as_json, question, told)


def histogram(
    table: Table,
    column: BinnedArgument,
    epsilon: EpsilonOption,
    schema: SchemaOption = None,
    figure: FigureOption = None,
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
    """Count the rows in the public bins of a number, or at the levels of a category.

    A number without bins has eight. Counts may be negative and need not add up:
    what is computed from clipped ones is biased. The ledger is charged before any
    noise is drawn.

    \b
    Examples:
      privfit histogram people.csv age=0:120:12 --epsilon 0.1 --ledger people.db
      privfit histogram people.csv sex=f,m -e 0.1 --figure sex.png
    """
    terms = (rows_per_person, expected_rows, seed, ledger, ledger_epsilon, ledger_delta, note)
    price = Price(epsilon, adjacency, *terms)
    answer(summaries.histogram, table, [column], schema, price, figure, as_json, tuple, _cells)


def crosstab(
    table: Table,
    columns: Annotated[
        list[str],
        typer.Argument(
            metavar="COLUMN...", help="Columns, as in age=0:120:18,65 (edges of bins) or sex=f,m, or names."
        ),
    ],
    epsilon: EpsilonOption,
    schema: SchemaOption = None,
    figure: FigureOption = None,
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
    """Count rows by the levels and bins of several columns together.

    Every margin is a sum of the cells, at no further cost. Numbers without bins
    have eight. The ledger is charged before any noise is drawn.

    \b
    Examples:
      privfit crosstab people.csv age=0:120:18,65 ill=no,yes --epsilon 0.1 \\
          --ledger people.db
      privfit crosstab people.csv age ill --schema people.toml -e 0.1 --json
    """
    terms = (rows_per_person, expected_rows, seed, ledger, ledger_epsilon, ledger_delta, note)
    price = Price(epsilon, adjacency, *terms)
    answer(summaries.crosstab, table, columns, schema, price, figure, as_json, lambda wanted: (list(wanted),), _cells)


def _cells(columns: Sequence[Column], found: Any) -> Told:
    """Every cell of an array of counts, in the order of its axes."""
    ends = found.interval.reshape(-1, 2).tolist()
    for about, value, interval in zip(product(*found.labels), np.ravel(found).tolist(), ends, strict=True):
        yield about, value, tuple(interval)
