"""`privfit ledger`: what may be spent, what was spent and on what, and whether the file still says what was written."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from privfit.cli.console import counted, encodable, hint, ledger_facts, ledger_sentence, print_json, stdout, visible
from privfit.cli.entries import Form, show_table, written
from privfit.cli.errors import CommandError, in_one_sentence
from privfit.cli.ledger_options import shown
from privfit.cli.options import AsJson
from privfit.cli.output import check_output
from privfit.privacy import Budget, Ledger, LedgerError, Receipt, place_of

_Path = Annotated[
    str, typer.Argument(metavar="LEDGER", help="The ledger's file, for example budget.db, or postgresql://...")
]
_Last = Annotated[
    int | None, typer.Option("--last", min=0, help="Only so many of the newest entries.", show_default=False)
]
_Spenders = Annotated[
    list[str] | None,
    typer.Option("--spender", help="A role of the server that may charge it; may be given again.", show_default=False),
]
_Readers = Annotated[
    list[str] | None,
    typer.Option("--reader", help="A role of the server that may only read it, in the same way.", show_default=False),
]
_SHOWN = 100  # entries of a table when not asked for more: a few screens


class _ShowByDefault(TyperGroup):
    """`privfit ledger budget.db` is `privfit ledger show budget.db`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            near = get_close_matches(args[0], self.commands, n=1) if args[0].isalpha() else []
            if near and "--create" not in args and not Path(args[0]).exists():
                ctx.fail(f"{args[0]!r} is neither a ledger nor what can be done with one. Did you mean {near[0]!r}?")
            args = ["show", *args]
        return super().parse_args(ctx, args)


group = typer.Typer(
    cls=_ShowByDefault,
    no_args_is_help=True,
    help="Make a privacy budget, see what was spent from it and on what, and check that its file was not changed. "
    "`privfit ledger budget.db` is short for `privfit ledger show budget.db`.\n\n\b\nExamples:\n"
    "  privfit ledger create budget.db --epsilon 1\n  privfit ledger budget.db",
)


@group.command(no_args_is_help=True)
@in_one_sentence
def show(
    path: _Path,
    create: Annotated[bool, typer.Option("--create", help="Make a new ledger. Needs --epsilon.")] = False,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", "-e", help="With --create: how much may be spent in all.", show_default=False),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="With --create: the probability, over all fits, that the guarantee fails.", show_default="0"),
    ] = None,
    last: _Last = None,
    form: Annotated[Form, typer.Option("--format", help="How to print it.")] = Form.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show a privacy budget and every release that was paid from it.

    Make one ledger per table of people and let every fit on that table pay from
    it: what the fits give away adds up. A budget is decided once; it cannot be
    raised. Keep the file safe, at one place and under one name. Whoever deletes
    it and makes a new one spends on the same people again, and nothing can
    notice.

    \b
    Examples:
      privfit ledger budget.db
      privfit ledger show budget.db --last 5 --json
    """
    book = _made(path, epsilon, delta) if create else _opened(path, epsilon, delta)
    if as_json or form is not Form.TABLE:
        typer.echo(encodable(written(book, Form.JSON if as_json else form, last)), nl=False)
        return
    stdout().print(ledger_sentence(book), markup=False, soft_wrap=True)
    show_table(book, _SHOWN if last is None else last)


@group.command(no_args_is_help=True)
@in_one_sentence
def create(
    path: _Path,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="How much may be spent in all.", show_default=False)
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The probability, over all fits, that the guarantee fails.", show_default="0")
    ] = None,
    spender: _Spenders = None,
    reader: _Readers = None,
    as_json: AsJson = False,
) -> None:
    """Make a new ledger, in a file or in a PostgreSQL database.

    A database holds one ledger for each table of people, and budgets of projects,
    which are taken from that of their ledger. Who makes a ledger owns it; rights
    of others are granted here, or later with `privfit ledger grant`.

    \b
    Examples:
      privfit ledger create budget.db --epsilon 1
      privfit ledger create "postgresql://host/db?ledger=people" \\
          --epsilon 4 --reader auditor
      privfit ledger create \\
          "postgresql://host/db?ledger=people&project=readmission" \\
          --epsilon 1 --spender alice
    """
    place_of(path).check_roles([*(spender or ()), *(reader or ())])
    book = _made(path, epsilon, delta)
    if spender or reader:
        place_of(path).grant(spenders=spender or (), readers=reader or ())
    if as_json:
        print_json(ledger_facts(book))
        return
    stdout().print(ledger_sentence(book), markup=False, soft_wrap=True)


@group.command(no_args_is_help=True)
@in_one_sentence
def grant(path: _Path, spender: _Spenders = None, reader: _Readers = None, as_json: AsJson = False) -> None:
    """Let roles of a PostgreSQL server charge a ledger, or read it.

    Who owns the ledger can do this. A spender reads and adds entries; a reader
    reads. Neither can change or remove an entry, or set a budget. What was
    granted is taken back in SQL, with REVOKE.

    \b
    Example:
      privfit ledger grant "postgresql://host/db?ledger=people" --spender alice
    """
    if not spender and not reader:
        raise CommandError("Nobody was named. Say who may charge the ledger or read it: --spender alice --reader bob.")
    book = _opened(path, None, None)
    place_of(path).grant(spenders=spender or (), readers=reader or ())
    if as_json:
        print_json({"path": str(book.path), "spenders": spender or [], "readers": reader or []})
        return
    names = encodable(visible(", ".join([*(spender or ()), *(reader or ())])))
    hint(f"Granted the ledger {book.name} to {names}.")


@group.command(no_args_is_help=True)
@in_one_sentence
def verify(
    path: _Path,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            help="A model or a report that was paid for from it; may be given several times.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Read a whole ledger and check it: entries against their chain, sums against entries.

    An edited, removed or reordered entry and a changed budget are found. Whoever
    can write the file can also write all of it anew; so compare it with saved
    models, which carry the head of the chain at their charge: an older copy,
    another ledger or a rewritten one does not fit them.

    \b
    Examples:
      privfit ledger verify budget.db
      privfit ledger verify budget.db --against model.json
    """
    book = _opened(path, None, None)
    receipts = {str(file): _receipt(file) for file in against or []}
    found = book.verify()
    for file, receipt in receipts.items():
        try:
            book.check_receipt(receipt)
        except LedgerError as error:
            raise LedgerError(f"{file}: {error}") from None
    if as_json:
        paid = {file: receipt.entry for file, receipt in receipts.items()}
        facts = {"entries": found.entries, "unprotected": found.unprotected, "head": found.head, "against": paid}
        print_json(ledger_facts(book) | {"verified": facts})
        return
    console, name = stdout(), encodable(visible(book.name))
    head = f", head {found.head[:16]}..." if found.head else ""
    console.print(f"The ledger {name} is in order: {counted(found.entries)}{head}.", markup=False, soft_wrap=True)
    for file, receipt in receipts.items():
        console.print(
            f"{encodable(visible(file))} was paid for by entry {receipt.entry}.", markup=False, soft_wrap=True
        )
    if found.unprotected:
        console.print(
            f"{_first(found.unprotected)} written before the file kept a chain: what was changed there before that "
            "cannot be seen.",
            style="yellow",
            soft_wrap=True,
        )
    console.print(ledger_sentence(book), markup=False, soft_wrap=True)


@group.command(no_args_is_help=True)
@in_one_sentence
def export(
    path: _Path,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write; the terminal if left out.", show_default=False),
    ] = None,
    form: Annotated[
        Form | None,
        typer.Option("--format", help="csv or json; by the name of the output, or csv.", show_default=False),
    ] = None,
    last: _Last = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write every entry of a ledger as CSV or JSON, for a spreadsheet or a script.

    JSON has texts exactly as they were charged. In CSV every entry is one line:
    control characters are written as \\n or \\x1b, and a text that a spreadsheet
    would take for a formula has an apostrophe in front.

    \b
    Examples:
      privfit ledger export budget.db -o spent.csv
      privfit ledger export budget.db --format json
    """
    form = Form.JSON if as_json else form
    chosen = form or (Form.JSON if output is not None and output.suffix.lower() == ".json" else Form.CSV)
    if chosen is Form.TABLE:
        raise CommandError(
            "--format table was given to export, which writes csv or json. Use `privfit ledger show` for a table."
        )
    book = _opened(path, None, None)
    if output is None:
        typer.echo(encodable(written(book, chosen, last)), nl=False)
        return
    check_output(output, ledger=path)
    output.write_text(written(book, chosen, last), encoding="utf-8")
    hint(f"Wrote {output}.")


def _first(entries: int) -> str:
    return "Entry 1 was" if entries == 1 else f"Entries 1 to {entries:,} were"


def _receipt(path: Path) -> Receipt:
    """The receipt in a saved model, a report or what `privfit fit --json` printed."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        document = None
    report = document.get("report", document) if isinstance(document, dict) else None
    receipt = report.get("receipt") if isinstance(report, dict) else None
    if not receipt:
        raise CommandError(
            f"{str(path)!r} names no entry of a ledger: it is no model or report of privfit, was saved by an older "
            "version, or was fitted without a "
            "ledger. Give a model that was fitted with one."
        )
    return Receipt.from_dict(receipt)


def _made(path: str, epsilon: float | None, delta: float | None) -> Ledger:
    if epsilon is None:
        raise CommandError(
            "A new ledger was asked for without --epsilon, and it needs a budget. Say how much: --epsilon 1."
        )
    place = place_of(path)
    if place.exists():
        what = "file" if place.kind == "file" else "ledger"
        raise LedgerError(
            f"There already is a {what} {shown(path)!r}, and a budget is made once. Show it without --create, or "
            "choose another name."
        )
    budget = Budget(epsilon, delta or 0.0)
    return Ledger(path, budget.epsilon, budget.delta)


def _opened(path: str, epsilon: float | None, delta: float | None) -> Ledger:
    if epsilon is not None or delta is not None:
        raise CommandError(
            "--epsilon and --delta set the budget of a new ledger. To make one add --create; to show one leave them "
            "out."
        )
    if not place_of(path).exists():
        raise LedgerError(
            f"There is no ledger {shown(path)!r}. Check the path, or make one: privfit ledger create {shown(path)} "
            "--epsilon 1."
        )
    return Ledger(path)
