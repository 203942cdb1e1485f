"""Panels of a drawing, their style, and the file that they are written to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

Given = ParamSpec("Given")

COLUMNS = 3
"""Panels beside each other."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's colours, which people with every kind of colour vision can distinguish; their yellow is left out,
because it is hardly seen on paper."""
MARKS = ("o", "s", "^", "D", "v", "P", "X")
"""A mark for each colour: what is drawn in grey can still be distinguished."""
LINES = ("-", "--", "-.", ":")
"""Lines change when all colours were used."""
GREY = "#6b6b6b"
DIVERGING, RISING = "PuOr", "Blues"
"""Colour maps for values about zero and for counts: both are in order of lightness on either side."""
DOTS_PER_INCH = 200
"""Of a file of pixels: sharp in print at this size."""


STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.dpi": DOTS_PER_INCH,
    "text.parse_math": False,  # names of columns may have a dollar
}


def styled(draw: Callable[Given, Any]) -> Callable[Given, Any]:
    """A function that draws, in the style of all drawings; it says what to install where nothing can be drawn."""

    @wraps(draw)
    def in_style(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        try:
            import matplotlib
            import matplotlib.figure
            from cycler import cycler
        except ImportError:
            raise ImportError(
                "Drawing needs matplotlib, which is not installed. Install the extra: pip install 'privfit[plots]'."
            ) from None
        with matplotlib.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
            return draw(*args, **kwargs)

    return in_style


def blank_figure(
    panels: int, height: float, width: float = 4.0, across: int = COLUMNS, shared: bool = False
) -> tuple[Any, list[Any]]:
    """A figure of so many panels, each of so many inches."""
    from privfit.report.figure import Drawing, as_array

    columns = 2 if panels == 4 and across == COLUMNS else min(across, panels)
    lines = math.ceil(panels / columns)
    figure = Drawing(figsize=(width * columns, height * lines), layout="constrained")
    axes = as_array(figure.subplots(lines, columns, squeeze=False, sharey=shared))
    for unused in axes[panels:]:
        unused.set_axis_off()
    return figure, axes[:panels]


def written(figure: Any, path: str | Path | None, alt: str) -> Any:
    """The figure with a text in place of it, written to a file where one is named."""
    figure.alt = alt
    if path is not None:
        figure.savefig(path)
    return figure


def listed(names: Sequence[object], most: int = 8) -> str:
    """Names in words, the first of them where there are many."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def reaches(values: Sequence[float], ends: Sequence[Sequence[float]]) -> list[list[float]]:
    """How far intervals reach below and above their values."""
    below = [max(value - end[0], 0.0) for value, end in zip(values, ends, strict=True)]
    above = [max(end[1] - value, 0.0) for value, end in zip(values, ends, strict=True)]
    return [below, above]


def beside(count: int, place: int, of: int) -> list[float]:
    """The places of so many points of one of several sets, which stand beside those of the others."""
    shift = (place - (of - 1) / 2) * min(0.15, 0.6 / of)
    return [point + shift for point in range(count)]
