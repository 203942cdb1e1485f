"""`privfit audit`: attack every estimator, on built-in tables or on tables made from a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.audit import mechanisms
from privfit.audit.estimators import suitable
from privfit.cli.console import hint, print_json, stdout
from privfit.cli.errors import FAILED, CommandError
from privfit.cli.options import AsJson
from privfit.models import ESTIMATORS
from privfit.schema import Schema


def audit(
    quick: Annotated[bool, typer.Option("--quick/--full", help="Few runs, in two minutes; or many, in hours.")] = True,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", metavar="TOML", help="Make tables from this schema.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="NAME", help="Attack this estimator alone.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the rows that are tried.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Attack every estimator: does its noise hide what it claims to hide?

    Tables are made from public facts; no private row is read, nothing is charged.
    The exit code is 1 if a claim is refuted.

    \b
    Examples:
      privfit audit --quick
      privfit audit --schema people.toml --json
    """
    facts = None if schema is None else Schema.load(schema)
    known = {one.__name__: one for one in suitable(ESTIMATORS, facts)}
    if not known or not set(model or ()) <= known.keys():
        raise CommandError(
            f"{', '.join(model or ()) or 'No estimator'} was given; for this schema an audit knows "
            f"{', '.join(known) or 'none: it has no target'}. Name one of them, or give another schema."
        )
    chosen = [known[name] for name in model] if model else list(known.values())
    result = mechanisms(quick=quick, estimators=chosen, schema=facts, seed=seed)
    if as_json:
        print_json(result.to_dict())
    else:
        stdout().print(str(result), markup=False, soft_wrap=True, highlight=False)
        if not result.violated:
            hint("No attack refuted a claim. That is evidence, not a proof: docs/proofs has those.")
    if result.violated:
        raise typer.Exit(FAILED)
