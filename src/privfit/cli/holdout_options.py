"""A part of a table that the ledger keeps divided, as `fit` and `evaluate` take it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from privfit.cli.errors import CommandError
from privfit.cli.options import PRIVACY
from privfit.models.holdout import holdout
from privfit.privacy import Ledger
from privfit.schema import Schema

HoldoutOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Divide the table, and read one part: `fit` most of it, `evaluate` the rest. The ledger keeps the split.",
        show_default=False,
        rich_help_panel=PRIVACY,
    ),
]
HoldoutShareOption = Annotated[
    float | None,
    typer.Option(help="The share to evaluate on; 0.2 if left out.", show_default=False, rich_help_panel=PRIVACY),
]
USUAL_SHARE = 0.2
"""As of pf.holdout."""


def check_holdout(name: str | None, share: float | None, ledger: str | None) -> None:
    """Refuse options that do not go together, before a ledger is made."""
    if name is None and share is not None:
        raise CommandError("--holdout-share was given without --holdout. Name the split: --holdout 2026.")
    if name is not None and ledger is None:
        raise CommandError(
            "--holdout was given without --ledger, which keeps the split and adds up its parts. Say which file: "
            "--ledger budget.db."
        )


def part_of(table: Any, part: str, name: str | None, share: float | None, ledger: Ledger | None, schema: Schema) -> Any:
    """The table, or the named part of it."""
    if name is None or ledger is None:
        return table
    share = USUAL_SHARE if share is None else share
    parts = holdout(table, ledger=ledger, schema=schema, share=share, name=name)
    return getattr(parts, part)
