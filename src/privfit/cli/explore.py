"""`privfit explore`: a page on this machine that shows what epsilon, rows, columns and bounds do to a forecast."""

from __future__ import annotations

import ipaddress
import logging
import socket
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.console import hint, print_json, stdout
from privfit.cli.errors import CommandError
from privfit.cli.fit_options import planned_name
from privfit.cli.options import AsJson
from privfit.cli.schema import complete_schema
from privfit.planning.plan import checked_schema
from privfit.schema import Schema

MODELS = ("linear", "ridge", "logistic", "svm")
"""Models whose forecasts take seconds; `privfit plan` knows more."""


def explore(
    schema: Annotated[
        Path | None,
        typer.Argument(metavar="[TOML]", help="Public facts to forecast for; without them, tables are made up."),
    ] = None,
    model: Annotated[str, typer.Option("--model", "-m", metavar="KIND", help=f"{', '.join(MODELS)}.")] = "linear",
    host: Annotated[str, typer.Option(help="An address of this machine alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show in a page what epsilon, rows, columns and bounds do to a forecast.

    The page is for this machine alone, loads nothing from elsewhere, and reads
    no table: it needs the extra `explore`. Control-C ends it.

    \b
    Examples:
      privfit explore --open
      privfit explore people.toml --port 8050
    """
    listens = loopback(host)
    facts = settled(schema, model)
    try:
        from werkzeug.serving import make_server

        from privfit.cli.explore_page import Page, made_app
    except ImportError:
        raise CommandError(
            "The page needs dash, which is not installed. Nothing was started. Install the extra: pip install "
            "'privfit[explore]'."
        ) from None
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would write a line for each answer
    name = f"[{listens}]" if ":" in listens else listens
    with listening(listens, port) as open_socket:
        port = open_socket.getsockname()[1]
        app = made_app(Page(planned_name(model), facts), [f"{known}:{port}" for known in (name, "localhost")])
        server = make_server(listens, port, app.server, threaded=True, fd=open_socket.fileno())
    address = f"http://{name}:{port}/"
    if as_json:
        print_json({"address": address})
    else:
        stdout().print(address, markup=False, soft_wrap=True)
        hint("Control-C ends it.")
    if browser:
        webbrowser.open(address)
    server.serve_forever()  # returns at Control-C
    hint("Ended.")


def loopback(host: str) -> str:
    """The host as an address, if only this machine can reach it."""
    try:
        found = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        found = None
    if found is None or not found.is_loopback:
        raise CommandError(
            f"--host {host} was given, and the page is for this machine alone. Nothing was started. Leave --host out, "
            "or give 127.0.0.1 or ::1."
        )
    return str(found)


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens there. The library that serves the page would end the program where that is refused."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        raise CommandError(
            f"--port {port} of {address} cannot be listened on: {error.strerror or type(error).__name__}. Nothing was "
            "started. Leave --port out, and a free one is taken."
        ) from None


def settled(schema: Path | None, model: str) -> Schema | None:
    """The public facts of a file, if the model predicts their target."""
    if planned_name(model) not in map(planned_name, MODELS):
        raise CommandError(f"--model {model} was given; the page knows {', '.join(MODELS)}. Name one of these.")
    return None if schema is None else checked_schema(complete_schema(schema), planned_name(model))
