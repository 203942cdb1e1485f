"""The shapes of an additive model, drawn: a panel per column, a line for a number, a dot per level, and bands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

PANELS_IN_A_ROW = 3
"""Panels beside each other: more are too narrow for names of levels."""
MOST_LEVEL_LETTERS = 12
"""Names of levels are cut to so many letters on an axis."""
MOST_OF_BANDS = 2.5
"""The picture ends at so many times the largest value: wider bands leave it, and curves stay legible."""


def draw_shapes(shapes: dict[str, dict[str, Any]], label: str, path: str | Path | None = None) -> Any:
    """Draw what every column adds; write the picture to a file where one is named."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed. Install the extra: pip install 'privfit[plots]'."
        ) from None
    across = min(PANELS_IN_A_ROW, len(shapes))
    down = math.ceil(len(shapes) / across)
    figure = Figure(figsize=(3.2 * across, 2.6 * down + 0.5), layout="constrained")
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for panel, (name, shape) in zip(panels, shapes.items(), strict=False):
        _draw(panel, shape)
        panel.axhline(0.0, color="grey", linewidth=0.5)
        panel.set_title(name, fontsize="medium")
    for panel in panels[len(shapes) :]:
        panel.set_axis_off()
    _limit(panels[0], shapes)
    figure.supylabel(label, fontsize="medium")
    figure.supxlabel("bands: 90%, for the noise of privacy alone, not for the sampling of people", fontsize="small")
    if path is not None:
        figure.savefig(path)
    return figure


def _draw(panel: Any, shape: dict[str, Any]) -> None:
    """A curve where the grid has numbers, dots where it has names."""
    grid, there = shape["grid"], [place for place, point in enumerate(shape["grid"]) if not isinstance(point, str)]
    if there:
        line = [grid[place] for place in there]
        values, lower, upper = ([shape[key][place] for place in there] for key in ("values", "lower", "upper"))
        panel.fill_between(line, lower, upper, alpha=0.25, linewidth=0)
        panel.plot(line, values)
        return
    places = range(len(grid))
    below = [value - low for value, low in zip(shape["values"], shape["lower"], strict=True)]
    above = [high - value for value, high in zip(shape["values"], shape["upper"], strict=True)]
    panel.errorbar(places, shape["values"], yerr=[below, above], fmt="o", capsize=3)
    names = [str(name)[:MOST_LEVEL_LETTERS] for name in grid]
    panel.set_xticks(list(places), names, rotation=90 if len(names) > 4 else 0, fontsize="small")


def _limit(panel: Any, shapes: dict[str, dict[str, Any]]) -> None:
    """Show all values, and bands as far as curves stay legible."""
    largest = max((abs(float(value)) for shape in shapes.values() for value in shape["values"]), default=0.0)
    low, high = panel.get_ylim()
    if largest > 0:
        panel.set_ylim(max(low, -MOST_OF_BANDS * largest), min(high, MOST_OF_BANDS * largest))
