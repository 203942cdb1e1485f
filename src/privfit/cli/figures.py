"""Figures about one or a few columns: how a command line names columns, and how answers are paid for and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from privfit.cli.console import hint, print_answer, reading
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import check_ledger_options, paying_ledger
from privfit.cli.options import Adjacency
from privfit.cli.output import check_output
from privfit.cli.schema import complete_schema
from privfit.models import Report
from privfit.privacy import Budget, PrivacyParameters
from privfit.report.description import draw_description
from privfit.schema import Category, Column, Numeric, Schema
from privfit.tables import open_table

SchemaOption = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        "-s",
        metavar="TOML",
        help="Public facts: columns can be named alone, and rows are left out as it says.",
    ),
]
FigureOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw the figures into this PNG, SVG or PDF file.")
]
ColumnArgument = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN", help="A number with its public range, income=0:1e6, a category, sex=f,m, or a name."
    ),
]
NumberArgument = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN", help="A number with its public range: income=0:1e6; a name alone where a schema has it."
    ),
]
BinnedArgument = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN",
        help="A number with its range and its bins, age=0:120:12 (so many) or age=0:120:18,65 (their edges), a "
        "category, sex=f,m, or a name.",
    ),
]


@dataclass(frozen=True)
class Price:
    """The options about privacy that all commands have."""

    epsilon: float
    adjacency: Adjacency
    rows_per_person: int
    expected_rows: int | None
    seed: int | None
    ledger: str | None
    ledger_epsilon: float | None
    ledger_delta: float | None
    note: str

    def check(self) -> None:
        """Refuse what means nothing, before anything is read or made."""
        PrivacyParameters(Budget(self.epsilon), self.adjacency.value, self.rows_per_person, self.expected_rows)
        check_ledger_options(self.seed, self.ledger, self.ledger_epsilon, self.ledger_delta, self.note)


@dataclass
class Answers:
    """Figures with what each is about: for every column a level, a bin or the name of a figure."""

    columns: tuple[str, ...]
    figures: tuple[tuple[tuple[Any, ...], float, tuple[float, float]], ...]
    report: Report

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        listed = [
            {"of": dict(zip(self.columns, about, strict=True)), "value": value, "interval": list(interval)}
            for about, value, interval in self.figures
        ]
        return {"figures": listed, "report": self.report.to_dict()}

    def plot(self, path: Path) -> None:
        """Draw the figures with their intervals."""
        points = [
            {"figure": ", ".join(map(_in_words, about)), "value": value, "interval": list(interval)}
            for about, value, interval in self.figures
        ]
        draw_description({", ".join(self.columns): points}, path)

    def __str__(self) -> str:
        lines = [(*self.columns, "value", "90% interval")]
        for about, value, (low, high) in self.figures:
            lines.append((*map(_in_words, about), f"{value:,.6g}", f"{low:,.6g} to {high:,.6g}"))
        widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
        last = len(self.columns)
        return "\n".join(
            "  ".join(
                f"{cell:{'>' if place == last else '<'}{widths[place]}}" for place, cell in enumerate(line)
            ).rstrip()
            for line in lines
        )


def answer(
    ask: Callable[..., Any],
    table: str,
    columns: Sequence[str],
    schema: Path | None,
    price: Price,
    figure: Path | None,
    as_json: bool,
    question: Callable[[Sequence[Column]], tuple[Any, ...]],
    told: Callable[[Sequence[Column], Any], Iterator[tuple[tuple[Any, ...], float, tuple[float, float]]]],
) -> None:
    """Check, pay, ask and print. `question` makes what the function takes of the columns, `told` says what of its
    answer each figure is about.
    """
    price.check()
    if figure is not None:
        check_output(figure, table, schema, ledger=price.ledger)
    facts = None if schema is None else complete_schema(schema)
    wanted = [parsed_column(text, facts) for text in columns]
    asked = question(wanted)
    open_table(table).positions(wanted)  # a missing file or column is found before a ledger is made
    budget = Budget(price.epsilon)
    book = paying_ledger(price.ledger, budget, price.ledger_epsilon, price.ledger_delta, price.note)
    with reading(table):
        found = ask(
            table,
            *asked,
            schema=facts,
            epsilon=price.epsilon,
            ledger=book,
            adjacency=price.adjacency.value,
            rows_per_person=price.rows_per_person,
            expected_rows=price.expected_rows,
            random_state=price.seed,
        )
    shown = Answers(tuple(column.name for column in wanted), tuple(told(wanted, found)), found.report)
    if figure is not None:
        shown.plot(figure)
        hint(f"The drawing is in {figure}.")
    print_answer(shown, book, as_json)


# -- columns ---------------------------------------------------------------------------------------


def parsed_column(text: str, schema: Schema | None) -> Column:
    """The column in `income=0:1000000`, `age=0:120:18,65` or `sex=f,m`, or the schema's of that name."""
    listed = {} if schema is None else {column.name: column for column in schema.of_used_rows().columns}
    if text in listed:
        return listed[text]
    name, given, facts = text.rpartition("=")
    if not name or not given or not facts:
        known = f" The schema has {', '.join(listed)}." if listed else ""
        raise CommandError(
            f"{text!r} was given, and a column needs its public range or levels.{known} Write income=0:1000000 or "
            "sex=f,m, or name a column of --schema FILE."
        )
    limits = facts.split(":")
    numbers = [_number(limit) for limit in limits[:2]]
    if len(limits) in (2, 3) and None not in numbers:
        bins = None if len(limits) == 2 else _bins(text, limits[2])
        return Numeric(name, numbers[0], numbers[1], bins=bins)  # type: ignore[arg-type]
    levels = [level.strip() for level in facts.split(",")]
    values = [_number(level) for level in levels]
    return Category(name, levels if None in values else [_plain(value) for value in values if value is not None])


def _bins(text: str, given: str) -> int | list[float]:
    """The number of bins, or the edges between them: those of `40,` are one edge."""
    if given.isdecimal():
        return int(given)
    edges = [_number(edge) for edge in given.rstrip(",").split(",")]
    if None in edges:
        raise CommandError(
            f"{text!r} was given, and {given!r} are no bins. Write how many, as in age=0:120:12, or the edges between "
            "them, as in age=0:120:18,65."
        )
    return [edge for edge in edges if edge is not None]


def counted_among(column: Column, given: Sequence[str]) -> Any:
    """The levels that are counted, or the range of numbers in `18:65`."""
    if isinstance(column, Category):
        levels = {str(level): level for level in column.levels}
        return [levels.get(text, text) for text in given]
    ends = [_number(end) for end in given[0].split(":")] if len(given) == 1 else []
    if len(ends) != 2 or None in ends:
        raise CommandError(
            f"--among {' '.join(given)} was given for the number {column.name!r}; of a number those from LOW on and "
            "below HIGH are counted. Write --among 18:65."
        )
    return tuple(ends)


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None


def _plain(value: float) -> float:
    return int(value) if value.is_integer() else value


def _in_words(about: Any) -> str:
    return f"{about[0]:g} to {about[1]:g}" if isinstance(about, tuple) else str(about)
