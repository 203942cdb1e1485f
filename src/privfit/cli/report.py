"""`privfit report`: a document about a saved model, for the people who read it and the people it is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from privfit.cli.console import hint, print_json
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import opened_ledger
from privfit.cli.options import AsJson
from privfit.cli.output import check_output
from privfit.models import load_model
from privfit.models.release import Known, estimates_of, release_facts
from privfit.report import html_page, markdown_page, registry


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `privfit fit -o MODEL` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A .html, .md, .json or .yaml file to write.")],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", "-l", metavar="DB", help="The ledger that paid: lists what else was spent."),
    ] = None,
    evaluation: Annotated[
        Path | None, typer.Option(metavar="JSON", help="What `privfit evaluate --json` printed about this model.")
    ] = None,
    audit: Annotated[Path | None, typer.Option(metavar="JSON", help="What `privfit audit --json` printed.")] = None,
    publisher: Annotated[str, typer.Option(help="Who releases the model.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write a document about a release: what it promises, what it cost, how to verify it.

    The format follows the ending: .html (one page, no scripts), .md, .json, or
    .yaml (an entry for a public registry). It is made from the saved model and
    costs no budget. Notes and owners of ledger entries are left out.

    \b
    Examples:
      privfit report model.json -o release.html
      privfit report model.json --ledger people.db -o release.md
      privfit report model.json --evaluation found.json \\
          --publisher "City Hospital" -o release.html
    """
    write = _FORMATS.get(output.suffix.lower())
    if write is None:
        raise CommandError(
            f"-o {output} has an ending that is not known. Give a name that ends with one of {', '.join(_FORMATS)}. "
            "Nothing was written."
        )
    check_output(output, model, evaluation, audit, ledger=ledger)
    fitted = load_model(model)
    book = None if ledger is None else opened_ledger(ledger, None, None)
    known = Known(
        fitted.schema_,
        book,
        model,
        estimates_of(fitted),
        None if evaluation is None else _read(evaluation, "figures", "privfit evaluate --json"),
        None if audit is None else _read(audit, "findings", "privfit audit --json"),
        publisher,
    )
    output.write_text(write(release_facts(fitted.report_.to_dict(), known)), encoding="utf-8")
    if as_json:
        print_json({"output": str(output), "format": output.suffix.lower().removeprefix(".")})
    else:
        hint(f"The report is in {output}.")


def _read(path: Path, key: str, command: str) -> dict[str, Any]:
    """What a command printed as JSON, which has this key."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict) or key not in found:
        raise CommandError(f"{path} is not what `{command}` prints. Write it with `{command} > {path.name}`.")
    return found


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, default=str) + "\n"


_FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {
    ".html": html_page.page,
    ".md": markdown_page.markdown,
    ".json": _json,
    ".yaml": registry.entry,
}
