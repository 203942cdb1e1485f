"""How far a fit has come, for the person in front of it: in a terminal, or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

from privfit.rows.rows import on_progress

EVERY = 0.25
"""Seconds between two updates in a notebook: each is a message to the browser. Chosen, not measured."""


Step = Callable[..., None]
"""What is called after every step, as `step(done, total)`."""
Shown = Callable[[int, int | None], None]
"""Shows that so many are done, of so many where that is known."""


@contextmanager
def progress(what: str = "Reading rows", *, total: int | None = None) -> Iterator[Step]:
    """Show how far the fits within have come, in a terminal or a notebook; elsewhere nothing is shown.

    It disappears at the end. A notebook keeps what it displays when it is saved, so there the number of rows is not
    shown: only the time and, with a public `total`, a bar.

    Parameters
    ----------
    what : str, default="Reading rows"
        What is being done, in a few words.
    total : int or None, default=None
        Public number of rows, or of steps, for a bar.

    Yields
    ------
    callable
        What `plan` and `audit.mechanisms` take as `progress=`.

    See Also
    --------
    plan : Takes it as `progress`.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> X = np.linspace(-1, 1, 1000).reshape(-1, 1)
    >>> with pf.progress():
    ...     model = pf.LinearRegression(epsilon=1.0, schema=schema).fit(X, 0.5 * X[:, 0])
    """
    show = _in_notebook if _is_notebook() else _in_terminal if sys.stderr.isatty() else _nowhere
    by_steps = False
    with show(what) as shown:

        def step(done: int, of: int | None = None, *about: object) -> None:
            nonlocal by_steps
            by_steps = True
            shown(done, total if of is None else of)

        def rows_read(rows: int) -> None:
            if not by_steps:  # rows of the fits within a step do not count
                shown(rows, total)

        with on_progress(rows_read):
            yield step


def _is_notebook() -> bool:
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


@contextmanager
def _nowhere(what: str) -> Iterator[Shown]:
    yield lambda done, of: None


@contextmanager
def _in_terminal(what: str) -> Iterator[Shown]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as lines:
        task = lines.add_task(what, total=None)
        yield lambda done, of: lines.update(task, completed=done, total=of)


@contextmanager
def _in_notebook(what: str) -> Iterator[Shown]:
    from IPython.display import HTML, display

    start = last = time.monotonic()
    handle = display(HTML(_bar(what, None, 0.0)), display_id=True)

    def shown(done: int, of: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            handle.update(HTML(_bar(what, min(done / of, 1.0) if of else None, now - start)))

    try:
        yield shown
    finally:
        handle.update(HTML(""))


def _bar(what: str, share: float | None, seconds: float) -> str:
    """A bar with its text beside it; without a share it moves by itself."""
    value = "" if share is None else f' value="{share:.2f}"'
    label = escape(what)
    return f'<div><progress max="1" aria-label="{label}"{value}></progress> {label}, {seconds:.0f} s</div>'
