"""`privfit ledger`: what may be spent, what was spent and on what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from privfit.cli.console import ledger_facts, ledger_sentence, print_json, stdout
from privfit.cli.errors import CommandError
from privfit.privacy import OUTSIDE, Budget, Event, Ledger, LedgerError


def ledger(
    path: Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file, for example budget.db.")],
    create: Annotated[bool, typer.Option("--create", help="Make a new ledger. Needs --epsilon.")] = False,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="With --create: how much may be spent in all.", show_default=False)
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="With --create: the chance, over all fits, that the promise fails.", show_default="0")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ledger as JSON.")] = False,
) -> None:
    """Show a privacy budget and every release that was paid from it, or make a new one.

    Make one ledger per table of people and let every fit on that table pay from
    it: what the fits give away adds up. A budget is decided once; it cannot be
    raised. Keep the file safe, at one place: whoever deletes it and makes a new
    one spends on the same people again, and nothing can notice.

    \b
    Examples:
      privfit ledger budget.db --create --epsilon 1
      privfit ledger budget.db
    """
    book = _made(path, epsilon, delta) if create else _opened(path, epsilon, delta)
    if as_json:
        print_json(ledger_facts(book) | {"entries": [entry.to_dict() for entry in book.entries()]})
    else:
        _show(book)


def _made(path: Path, epsilon: float | None, delta: float | None) -> Ledger:
    if epsilon is None:
        raise CommandError("--create was given without --epsilon, and a ledger needs a budget. Say how much: --create --epsilon 1.")
    if path.exists():
        raise LedgerError(
            f"There already is a file {str(path)!r}, and a budget is made once. Show it without --create, or choose another name."
        )
    budget = Budget(epsilon, delta or 0.0)
    return Ledger(path, budget.epsilon, budget.delta)


def _opened(path: Path, epsilon: float | None, delta: float | None) -> Ledger:
    if epsilon is not None or delta is not None:
        raise CommandError("--epsilon and --delta set the budget of a new ledger. To make one add --create; to show one leave them out.")
    if not path.exists():
        raise LedgerError(f"There is no ledger {str(path)!r}. Check the path, or make one: privfit ledger {path} --create --epsilon 1.")
    return Ledger(path)


def _show(book: Ledger) -> None:
    console = stdout()
    console.print(ledger_sentence(book), markup=False, soft_wrap=True)
    entries = book.entries()
    if not entries:
        console.print("Nothing was charged yet.")
        return
    lines = Table()
    lines.add_column("#", justify="right")
    lines.add_column("time (UTC)", no_wrap=True)
    lines.add_column("table", overflow="fold")
    lines.add_column("mechanism", overflow="fold", min_width=12)
    lines.add_column("neighbours", overflow="fold", min_width=11)
    lines.add_column("epsilon", justify="right")
    lines.add_column("delta", justify="right")
    for entry in entries:
        time = entry.time.replace("T", " ").removesuffix("+00:00")[:16]
        cells = (str(entry.id), time, entry.dataset, entry.mechanism, _promise(entry.event), f"{entry.epsilon:.6g}", f"{entry.delta:.3g}")
        lines.add_row(*map(Text, cells))
    console.print(lines)
    if len({_promise(entry.event) for entry in entries} - {""}) > 1:
        console.print("These entries protect against different neighbours; their prices do not add up to one claim.", style="yellow")


def _promise(event: Event) -> str:
    """Whom an entry protects: nothing is known of a release made outside privfit."""
    if event.noise == OUTSIDE:
        return ""
    return event.adjacency if event.rows_per_person == 1 else f"{event.adjacency}, {event.rows_per_person} rows a person"
