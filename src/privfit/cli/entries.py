"""Entries of a ledger as a table for a person, and as CSV or JSON for a program."""

from __future__ import annotations

import csv
import io
from enum import StrEnum
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from privfit.cli.console import counted, encodable, json_text, ledger_facts, stdout, visible
from privfit.privacy import Entry, Event, Ledger


class Form(StrEnum):
    """How entries are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def written(book: Ledger, form: Form, last: int | None) -> str:
    """Entries as CSV, or the ledger and its entries as JSON; with a line end. JSON is exact."""
    if form is Form.JSON:
        facts = ledger_facts(book) | {"entries": [entry.to_dict() for entry in book.iter_entries(last)]}
        return json_text(facts) + "\n"
    text = io.StringIO()
    lines = csv.DictWriter(text, list(_CELLS), lineterminator="\n")
    lines.writeheader()
    lines.writerows(_flat(entry) for entry in book.iter_entries(last))
    return text.getvalue()


_FORMULAS = tuple("=+-@＝＋－＠")  # spreadsheets read the wide forms as the plain ones
_CELLS = (
    *("id", "time", "model", "target", "dataset", "note", "owner", "mechanism", "epsilon", "delta"),
    *("rho", "adjacency", "rows_per_person", "noise", "version", "hash"),
)


def _flat(entry: Entry) -> dict[str, Any]:
    """An entry as one line: what it says itself, and of its event what a spreadsheet can hold."""
    told = {"noise": entry.event.in_words}
    return {
        name: _cell(told[name] if name in told else getattr(entry if hasattr(entry, name) else entry.event, name))
        for name in _CELLS
    }


def _cell(value: Any) -> Any:
    """Numbers as they are; texts on one line, with an apostrophe in front of what a spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(_FORMULAS) else shown


def show_table(book: Ledger, last: int) -> None:
    """The newest entries as a table that fits a terminal of 80 columns."""
    console = stdout()
    everything = book.n_entries
    if not everything:
        console.print("Nothing was charged yet.")
        return
    lines = Table(box=box.SIMPLE, pad_edge=False)
    lines.add_column("#", justify="right", no_wrap=True)
    lines.add_column("time (UTC)", no_wrap=True)
    lines.add_column("release", overflow="fold", ratio=1)
    lines.add_column("epsilon", justify="right", no_wrap=True)
    lines.add_column("delta", justify="right", no_wrap=True)
    for entry in book.iter_entries(last):
        time = entry.time.replace("T", " ").removesuffix("+00:00")[:16]
        release = encodable(visible(_in_words(entry)))
        lines.add_row(*map(Text, (str(entry.id), time, release, f"{entry.epsilon:.6g}", f"{entry.delta:.3g}")))
    if last < everything:
        console.print(f"The newest {last:,} of {counted(everything)}; --last {everything} shows all.", soft_wrap=True)
    console.print(lines)
    if book.has_mixed_promises:
        console.print(
            "These entries protect against different neighbours; their prices do not add up to one claim.",
            style="yellow",
        )


def _in_words(entry: Entry) -> str:
    """What was released: the model and its target, how, from which table, for whom and what for."""
    model = f"{entry.model} of {entry.target}" if entry.target else entry.model
    by = f"by {entry.owner}" if entry.owner else ""
    return "; ".join(
        part for part in (model, entry.mechanism, entry.dataset, promise(entry.event), entry.note, by) if part
    )


def promise(event: Event) -> str:
    """Whom an entry protects: nothing is known of a release made outside privfit."""
    if event.elsewhere:
        return ""
    people = f", {event.rows_per_person} rows a person" if event.rows_per_person > 1 else ""
    part = f", part {event.split_part!r} of split {event.split[:8]}" if event.split else ""
    return f"{event.adjacency}{people}{part}"
