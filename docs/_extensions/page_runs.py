"""Runs the code of every page when it is read, and shows beneath each block what it printed.

`-D run_pages=0` leaves that out, to look at a page quickly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pages
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SECONDS = 1200
"""A page that takes longer is broken: on a quiet machine the slowest takes a hundredth. Chosen, not measured."""


def run_and_show(app: Sphinx, name: str, source: list[str]) -> None:
    """Put what a page prints beneath its blocks; a page that fails is a warning, and so an error."""
    path = Path(app.env.doc2path(name))
    if not app.config.run_pages or path.suffix != ".md" or not pages.blocks_of(source[0]):
        return
    command = [sys.executable, pages.__file__, "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        LOGGER.warning("the code of this page fails: %s", done.stderr.strip(), location=name)
        return
    lines = source[0].splitlines()
    for block in reversed(json.loads(done.stdout.splitlines()[-1])):
        if block["printed"]:
            lines[block["after"] : block["after"]] = shown(block["printed"])
    source[0] = "\n".join(lines) + "\n"


def shown(printed: str) -> list[str]:
    """A block of output in Markdown."""
    return ["", "````{code-block} none", ":class: output", "", *printed.splitlines(), "````", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.add_config_value("run_pages", True, "env", bool)
    app.connect("source-read", run_and_show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
