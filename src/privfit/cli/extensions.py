"""Commands of other distributions: an entry point in the group `privfit.commands` names a `typer.Typer`.

One with a single command becomes that command, any other a group of commands; it is made with `add_completion=False`.
It is loaded when it is called or when help lists it: no other command waits for it, or fails because of it. A command
of privfit's own cannot be replaced.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from privfit.cli.console import visible
from privfit.cli.errors import CommandError, in_one_sentence

GROUP = "privfit.commands"
OF_THE_PAPERS = ("reproduce", "bench")
"""Commands of the distribution privfit-papers, so that whoever lacks it learns where they are."""


class Commands(TyperGroup):
    """privfit's own commands, and those that installed distributions add."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Our own in the order in which they were made, then the others by name."""
        own = super().list_commands(ctx)
        return [*own, *sorted(entry_points(group=GROUP).names - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; one that cannot be had here, but somewhere else, says where when it is called."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        added = entry_points(group=GROUP, name=cmd_name)
        if added:
            return _loaded(added[cmd_name])
        if cmd_name in OF_THE_PAPERS:
            return _refusal(
                cmd_name,
                f"The command {cmd_name!r} was given. It needs privfit-papers, which is not installed and is not on "
                "any package index. In a copy of privfit's source code, run: pip install ./papers",
            )
        return None


def _loaded(point: EntryPoint) -> Any:
    """The command of an entry point, or a command that says why it cannot be loaded."""
    try:
        app = point.load()
        if not isinstance(app, typer.Typer):
            raise TypeError(f"{point.value} is of type {type(app).__name__}, and a typer.Typer is needed")
        command = typer.main.get_command(app)
    except Exception as error:
        owner = point.dist.name if point.dist else point.value
        reason = visible(" ".join(f"{type(error).__name__}: {error}".split()))
        return _refusal(
            point.name,
            f"The command {point.name!r} of {owner} was given, and it cannot be loaded ({reason}). It needs a {owner} "
            f"that fits this version of privfit, with all that it depends on. Install {owner} again; other commands "
            "work without it.",
        )
    command.name = point.name
    return command


def _refusal(name: str, message: str) -> Any:
    """A command that takes any arguments and ends with this error."""
    app = typer.Typer(add_completion=False)

    @app.command(
        name,
        short_help="Cannot be loaded; call it to see why.",
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    @in_one_sentence
    def refuse(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        raise CommandError(message)

    return typer.main.get_command(app)
