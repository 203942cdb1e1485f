"""`privfit audit`: attack everything that releases something, on built-in tables or on tables made from a schema."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from privfit.audit import AuditResult, mechanisms
from privfit.cli.console import hint, print_json, stderr, stdout
from privfit.cli.errors import FAILED
from privfit.cli.options import AsJson
from privfit.cli.output import check_output
from privfit.schema import Schema


def audit(
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Few runs, in two minutes; or many at three prices, in hours.")
    ] = True,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", metavar="TOML", help="Make tables from this schema.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="NAME", help="Attack this estimator or function alone.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the rows that are tried.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; every core by default, one where a model is named.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Write every line to this file at once, and skip what it holds already.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result into this PNG, SVG or PDF file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attack every mechanism: does its noise hide what it claims to hide?

    Tables are made from public facts; no private row is read, nothing is charged.
    The exit code is 1 if a claim is refuted.

    \b
    Examples:
      privfit audit --quick
      privfit audit --full --resume audit.jsonl
      privfit audit --schema people.toml --json
    """
    facts = None if schema is None else Schema.load(schema)
    if figure is not None:
        check_output(figure, schema, resume)
    console = stderr()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("Attacking", total=None)
        result = mechanisms(
            quick=quick,
            schema=facts,
            seed=seed,
            names=model or None,
            n_jobs=jobs or (1 if model else os.cpu_count() or 1),
            resume=resume,
            progress=lambda done, cases, last: shown.update(task, completed=done, total=cases, description=last[:40]),
        )
    _show(result, figure, as_json)
    if result.violated:
        raise typer.Exit(FAILED)


def _show(result: AuditResult, figure: Path | None, as_json: bool) -> None:
    """Draw it and print it."""
    if figure is not None:
        result.plot(figure)
        hint(f"The drawing is in {figure}.")
    if as_json:
        print_json(result.to_dict())
        return
    stdout().print(str(result), markup=False, soft_wrap=True, highlight=False)
    if not result.violated:
        hint("No attack refuted a claim. That is evidence, not a proof: docs/proofs has those.")
