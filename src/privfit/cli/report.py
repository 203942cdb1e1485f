"""`privfit report`: a document about a saved model, for the people who read it and the people it is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from privfit.cli.console import hint
from privfit.cli.errors import CommandError
from privfit.cli.ledger_options import opened_ledger
from privfit.cli.output import check_output
from privfit.models import load_model
from privfit.models.release import Known, Line, release_facts
from privfit.report import html_page, markdown_page, registry

MOST_LISTED = 200
"""Coefficients that a document lists; models with more have none listed. About four printed pages. Chosen, not
measured."""


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `privfit fit -o MODEL` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A .html, .md, .json or .yaml file to write.")],
    ledger: Annotated[
        str | None, typer.Option("--ledger", "-l", help="The ledger that paid: lists what else was spent.")
    ] = None,
) -> None:
    """Write a document about a release: what it promises, what it cost, how to verify it.

    The format follows the ending: .html (one page, no scripts), .md, .json, or
    .yaml (an entry for a public registry). It is made from the saved model and
    costs no budget. Notes and owners of ledger entries are left out.

    \b
    Examples:
      privfit report model.json -o release.html
      privfit report model.json --ledger people.db -o release.md
    """
    write = _FORMATS.get(output.suffix.lower())
    if write is None:
        raise CommandError(
            f"-o {output} has an ending that is not known. Give a name that ends with one of {', '.join(_FORMATS)}. "
            "Nothing was written."
        )
    check_output(output, model, ledger=ledger)
    fitted = load_model(model)
    book = None if ledger is None else opened_ledger(ledger, None, None)
    known = Known(fitted.schema_, book, model, _estimates(fitted))
    output.write_text(write(release_facts(fitted.report_.to_dict(), known)), encoding="utf-8")
    hint(f"The report is in {output}.")


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, default=str) + "\n"


_FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {
    ".html": html_page.page,
    ".md": markdown_page.markdown,
    ".json": _json,
    ".yaml": registry.entry,
}


def _estimates(model: Any) -> tuple[Line, ...]:
    """Coefficients of one predictor, with their 90% intervals where the file has them."""
    coef = np.atleast_2d(getattr(model, "coef_", np.empty((0, 0))))
    if len(coef) != 1 or coef.shape[1] > MOST_LISTED:
        return ()
    names = [str(name) for name in model.get_feature_names_out()]
    if len(names) != coef.shape[1]:  # interaction terms have no single name
        return ()
    try:
        ends = model.coef_interval_.tolist()
    except AttributeError:
        return tuple(zip(names, coef[0].tolist(), strict=True))
    shown = [pair if np.isfinite(pair).all() else ["not identified"] * 2 for pair in ends]
    return tuple((name, value, *pair) for name, value, pair in zip(names, coef[0].tolist(), shown, strict=True))
