"""`privfit schema --buy-bounds`: a draft whose numbers have bounds that were bought."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privfit.cli.bounds import parsed_range
from privfit.cli.console import counting_rows, hint
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import check_ledger_options, check_new_budget, opened_ledger
from privfit.cli.options import Adjacency, shown_source
from privfit.privacy import Budget, Ledger, PrivacyParameters
from privfit.schema import Numeric
from privfit.schema.toml import value_text
from privfit.summaries import BoughtBounds, bounds

WIDEST = 1e9
"""Numbers are looked for from minus this to this where no range is given: public, and too wide for nearly all."""


@dataclass(frozen=True)
class Purchase:
    """The options that go with --buy-bounds."""

    epsilon: float
    ranges: Sequence[str] = ()
    ledger: str | None = None
    ledger_epsilon: float | None = None
    adjacency: Adjacency = Adjacency.replace_one
    rows_per_person: int = 1
    expected_rows: int | None = None

    def made(self, table: str, draft: str) -> tuple[str, BoughtBounds, Ledger | None]:
        """The draft with bounds in place of question marks, what was bought, and the ledger that paid."""
        budget = Budget(self.epsilon)
        PrivacyParameters(budget, self.adjacency.value, self.rows_per_person, self.expected_rows)  # or refuses them
        check_ledger_options(None, self.ledger, self.ledger_epsilon, None, "")
        wanted = self._wanted(draft)
        book: Ledger | None = None
        if self.ledger is not None:
            check_new_budget(self.ledger, budget, self.ledger_epsilon, 0.0)
            book = opened_ledger(self.ledger, self.ledger_epsilon, None)
        with warnings.catch_warnings(record=True) as told, counting_rows(f"Reading {shown_source(table)}"):
            warnings.simplefilter("always", UserWarning)
            bought = bounds(
                table,
                wanted,
                epsilon=self.epsilon,
                ledger=book,
                adjacency=self.adjacency.value,
                rows_per_person=self.rows_per_person,
                expected_rows=self.expected_rows,
            )
        for one in told:
            hint(str(one.message))
        return filled_in(draft, bought, self._receipt(bought)), bought, book

    def _wanted(self, draft: str) -> Mapping[str, Numeric]:
        """The numbers of the draft, or of them those for which a range is given."""
        document = tomllib.loads(draft)
        columns = [*document.get("feature", []), *([document["target"]] if "target" in document else [])]
        numbers = [str(column["name"]) for column in columns if column["type"] == "numeric"]
        given = dict(map(parsed_range, self.ranges))
        unknown = [name for name in given if name not in numbers]
        if unknown or not numbers:
            raise CommandError(
                f"--range was given for {unknown}, or there are no numbers; the table has {len(numbers)} columns of "
                "numbers. Name one of them, as the table calls it."
            )
        return given or {name: Numeric(name, -WIDEST, WIDEST) for name in numbers}

    def _receipt(self, bought: BoughtBounds) -> str:
        """What was bought, for whoever reads the schema."""
        people = f", {self.rows_per_person} rows a person" if self.rows_per_person > 1 else ""
        paid = f"paid from {self.ledger}" if self.ledger is not None and "://" not in self.ledger else "paid"
        names = ", ".join(map(value_text, bought))
        return (
            f"# Bought, not known: the bounds of {names}. They hold about 99% of the rows. "
            f"Epsilon {self.epsilon:g} ({self.adjacency.value}{people}) was {paid}."
        )


def filled_in(draft: str, bought: BoughtBounds, receipt: str) -> str:
    """The draft with the bounds that were bought, and a line on top that says so."""
    lines, name = [receipt], ""
    for line in draft.splitlines():
        if line.startswith("name = "):
            name = tomllib.loads(line)["name"]
        if name in bought and line in ('low = "?"', 'high = "?"'):
            low, high = bought[name]
            line = f"low = {value_text(low)}" if line.startswith("low") else f"high = {value_text(high)}"
        lines.append(line)
    return "\n".join(lines) + "\n"
