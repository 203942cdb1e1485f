"""`privfit schema --buy-bounds` and `--buy-levels`: a draft with bounds and levels that were bought."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from privfit.cli.bounds import parsed_range
from privfit.cli.console import counting_rows, hint
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import check_ledger_options, paying_ledger
from privfit.cli.options import Adjacency, shown_source
from privfit.privacy import Budget, Event, Ledger, PrivacyParameters
from privfit.schema import Numeric
from privfit.schema.toml import value_text
from privfit.summaries import BoughtBounds, BoughtLevels, bounds, levels

Answer = TypeVar("Answer")

WIDEST = 1e9
"""Numbers are looked for from minus this to this where no range is given: public, and too wide for nearly all."""


@dataclass
class Bought:
    """What was bought, and the ledger that paid."""

    bounds: BoughtBounds | None = None
    levels: dict[str, BoughtLevels] = field(default_factory=dict)
    ledger: Ledger | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it but the ledger as plain values."""
        told: dict[str, Any] = {}
        if self.bounds is not None:
            told["bounds"] = {name: list(pair) for name, pair in self.bounds.items()}
            told["report"] = self.bounds.report.to_dict()
        if self.levels:
            told["levels"] = {name: list(found) for name, found in self.levels.items()}
            told["reports_of_levels"] = {name: found.report.to_dict() for name, found in self.levels.items()}
        return told

    def lines(self) -> list[str]:
        """A line for every column."""
        found = [f"{name} from {low:.10g} to {high:.10g}" for name, (low, high) in (self.bounds or {}).items()]
        return found + [f"{len(own)} levels of {name}" for name, own in self.levels.items()]


@dataclass(frozen=True)
class Purchase:
    """The options that go with --buy-bounds and --buy-levels; an epsilon of None buys nothing."""

    for_bounds: float | None = None
    for_levels: float | None = None
    delta: float = 0.0
    ranges: Sequence[str] = ()
    categories: Sequence[str] = ()
    ledger: str | None = None
    ledger_epsilon: float | None = None
    ledger_delta: float | None = None
    adjacency: Adjacency = Adjacency.replace_one
    rows_per_person: int = 1
    expected_rows: int | None = None

    def made(self, table: str, draft: str) -> tuple[str, Bought]:
        """The draft with bounds and levels in place of question marks, and what was bought."""
        prices = [price for price in (self.for_bounds, self.for_levels) if price is not None]
        for price in prices:
            PrivacyParameters(Budget(price), self.adjacency.value, self.rows_per_person, self.expected_rows)
        asked = Budget(sum(prices), self.delta)
        check_ledger_options(None, self.ledger, self.ledger_epsilon, self.ledger_delta, "")
        ranges = {} if self.for_bounds is None else self._ranges(draft)
        names = [] if self.for_levels is None else self._names(draft)
        bought = Bought(ledger=paying_ledger(self.ledger, asked, self.ledger_epsilon, self.ledger_delta, ""))
        if bought.ledger is not None:
            bought.ledger.check(Event("schema", asked.epsilon, asked.delta))
        if ranges:
            bought.bounds = self._told(
                table, lambda: bounds(table, ranges, epsilon=self.for_bounds or 0.0, **self._terms(bought.ledger))
            )
        for name in names:
            bought.levels[name] = self._told(table, partial(self._levels, table, name, len(names), bought.ledger))
        return filled_in(draft, bought, self._receipt(bought)), bought

    def _levels(self, table: str, name: str, of: int, ledger: Ledger | None) -> BoughtLevels:
        epsilon, delta = (self.for_levels or 0.0) / of, self.delta / of
        return levels(table, name, epsilon=epsilon, delta=delta, **self._terms(ledger))

    def _terms(self, ledger: Ledger | None) -> dict[str, Any]:
        return {
            "ledger": ledger,
            "adjacency": self.adjacency.value,
            "rows_per_person": self.rows_per_person,
            "expected_rows": self.expected_rows,
        }

    def _told(self, table: str, buy: Callable[[], Answer]) -> Answer:
        """What is bought, with its warnings as hints."""
        with warnings.catch_warnings(record=True) as told, counting_rows(f"Reading {shown_source(table)}"):
            warnings.simplefilter("always", UserWarning)
            found = buy()
        for one in told:
            hint(str(one.message))
        return found

    def _ranges(self, draft: str) -> Mapping[str, Numeric]:
        """The numbers of the draft, or of them those for which a range is given."""
        numbers = _drafted(draft, "numeric")
        given = dict(map(parsed_range, self.ranges))
        unknown = [name for name in given if name not in numbers]
        if unknown or not numbers:
            raise CommandError(
                f"--range was given for {unknown}, or there are no numbers; the table has {len(numbers)} columns of "
                "numbers. Name one of them, as the table calls it."
            )
        return given or {name: Numeric(name, -WIDEST, WIDEST) for name in numbers}

    def _names(self, draft: str) -> Sequence[str]:
        """The categories of the draft whose levels are open, or of them those that are named."""
        open_ = _drafted(draft, "category")
        unknown = [name for name in self.categories if name not in open_]
        if unknown or not open_:
            raise CommandError(
                f"--levels-of was given for {unknown}, or there are no categories; the table has {len(open_)} columns "
                "that are neither numbers nor dates nor truth values. Name one of them, as the table calls it."
            )
        return list(dict.fromkeys(self.categories)) or open_

    def _receipt(self, bought: Bought) -> list[str]:
        """What was bought, for whoever reads the schema: a line each."""
        people = f", {self.rows_per_person} rows a person" if self.rows_per_person > 1 else ""
        paid = f"paid from {self.ledger}" if self.ledger is not None and "://" not in self.ledger else "paid"
        lines = []
        if bought.bounds is not None:
            lines.append(
                f"# Bought, not known: the bounds of {', '.join(map(value_text, bought.bounds))}. They hold about 99% "
                f"of the rows. Epsilon {self.for_bounds:g} ({self.adjacency.value}{people}) was {paid}."
            )
        if bought.levels:
            lines.append(
                f"# Bought, not known: levels of {', '.join(map(value_text, bought.levels))} that many rows have. "
                f"Epsilon {self.for_levels:g}, delta {self.delta:g} ({self.adjacency.value}{people}) was {paid}."
            )
        return lines


def _drafted(draft: str, kind: str) -> list[str]:
    """The names of the draft's columns of this kind that still have question marks."""
    document = tomllib.loads(draft)
    columns = [*document.get("feature", []), *([document["target"]] if "target" in document else [])]
    return [str(column["name"]) for column in columns if column["type"] == kind and column.get("levels", "?") in OPEN]


OPEN = ("?", ["?"])


def filled_in(draft: str, bought: Bought, receipt: Sequence[str]) -> str:
    """The draft with what was bought, and lines on top that say so."""
    lines, name = list(receipt), ""
    ranges: Mapping[str, tuple[float, float]] = bought.bounds or {}
    for line in draft.splitlines():
        if line.startswith("name = "):
            name = tomllib.loads(line)["name"]
        if name in ranges and line in ('low = "?"', 'high = "?"'):
            low, high = ranges[name]
            line = f"low = {value_text(low)}" if line.startswith("low") else f"high = {value_text(high)}"
        if bought.levels.get(name) and line == 'levels = ["?"]':
            line = f"levels = {value_text(list(bought.levels[name]))}\nother = true"
        lines.append(line)
    return "\n".join(lines) + "\n"
