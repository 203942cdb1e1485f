"""The shapes of an additive model, drawn: a panel per column, a line for a number, a dot per level, bands, and a heat
map for every pair of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privfit.report.drawing import COLOURS, LINES, MARKS, beside, blank_figure, listed, reaches, styled, written
from privfit.report.models import draw_heat_map

MOST_LEVEL_LETTERS = 16
"""Names of levels are cut to so many letters on an axis."""
MOST_OF_BANDS = 2.5
"""The picture ends at so many times the largest value: wider bands leave it, and curves stay legible."""
Shapes = Mapping[str, Mapping[str, Any]]


@styled
def draw_shapes(
    curves: Mapping[str, Shapes], label: str, path: str | Path | None = None, maps: Sequence[Mapping[str, Any]] = ()
) -> Any:
    """Draw what every column adds, a line for each of `curves`, and the maps of pairs after them."""
    several, names = len(curves) > 1, list(next(iter(curves.values())))
    figure, panels = blank_figure(len(names) + len(maps), height=2.7, width=3.4)
    own = panels[: len(names)]
    for place, shapes in enumerate(curves.values()):
        for panel, name in zip(own, names, strict=True):
            _draw(panel, shapes[name], place, len(curves))
    for panel, name in zip(own, names, strict=True):
        panel.axhline(0.0, color="grey", linewidth=0.5)
        panel.set_title(name)
    _limit(own, [shape for shapes in curves.values() for shape in shapes.values()])
    for panel, one in zip(panels[len(names) :], maps, strict=True):
        draw_heat_map(figure, panel, one, "")
    figure.supylabel(label, fontsize="medium")
    bands = not several and any(_has_band(shape) for shape in next(iter(curves.values())).values())
    if bands:
        told = "bands: 90%, for the noise of privacy alone, not for the sampling of people"
        figure.supxlabel(told, fontsize="small")
    if several:
        handles = [own[0].plot([], [], **_looks(place), label=name)[0] for place, name in enumerate(curves)]
        figure.legend(handles=handles, loc="outside upper center", ncols=min(6, len(curves)))
    return written(figure, path, _alt(curves, maps, bands))


def _alt(curves: Mapping[str, Shapes], maps: Sequence[Mapping[str, Any]], bands: bool) -> str:
    first = next(iter(curves.values()))
    words = [f"{name} from {min(shape['values']):.3g} to {max(shape['values']):.3g}" for name, shape in first.items()]
    pairs = f" Heat maps: {listed([one['title'] for one in maps])}." if maps else ""
    return f"What each column adds{', with bands' if bands else ''}: {listed(words)}.{pairs}"


def _looks(place: int) -> dict[str, Any]:
    """Colour, line and mark of a curve."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": LINES[place % len(LINES)],
        "marker": MARKS[place % len(MARKS)],
        "markersize": 4,
    }


def _has_band(shape: Mapping[str, Any]) -> bool:
    return all(math.isfinite(end) for key in ("lower", "upper") for end in shape[key])


def _draw(panel: Any, shape: Mapping[str, Any], place: int, curves: int) -> None:
    """A curve where the grid has numbers, dots where it has names."""
    grid, there = shape["grid"], [at for at, point in enumerate(shape["grid"]) if not isinstance(point, str)]
    looks, bands = _looks(place), curves == 1 and _has_band(shape)
    if there:
        line = [grid[at] for at in there]
        values, lower, upper = ([shape[key][at] for at in there] for key in ("values", "lower", "upper"))
        if bands:
            panel.fill_between(line, lower, upper, alpha=0.25, linewidth=0, color=looks["color"])
        panel.plot(line, values, color=looks["color"], linestyle=looks["linestyle"])
        for at in set(range(len(grid))) - set(there):  # what a missing value adds, at the right of the curve
            right = line[-1] + 0.08 * (line[-1] - line[0])
            panel.plot([right], [shape["values"][at]], marker=looks["marker"], color=looks["color"])
            panel.annotate(
                grid[at], (right, shape["values"][at]), xytext=(-4, 5), textcoords="offset points", ha="right"
            )
        return
    ends = list(zip(shape["lower"], shape["upper"], strict=True))
    reach = reaches(shape["values"], ends) if bands else None
    look = {**looks, "linestyle": "none"}
    panel.errorbar(beside(len(grid), place, curves), shape["values"], yerr=reach, capsize=3, **look)
    names = [str(name)[:MOST_LEVEL_LETTERS] for name in grid]
    panel.set_xticks(range(len(grid)), names, rotation=90 if len(names) > 4 else 0, fontsize="small")
    panel.set_xlim(-0.5, len(grid) - 0.5)


def _limit(panels: Sequence[Any], shapes: Sequence[Mapping[str, Any]]) -> None:
    """The same axis for all: all values, and bands as far as curves stay legible."""
    largest = max((abs(float(value)) for shape in shapes for value in shape["values"]), default=0.0)
    low = min(panel.get_ylim()[0] for panel in panels)
    high = max(panel.get_ylim()[1] for panel in panels)
    if largest > 0:
        low, high = max(low, -MOST_OF_BANDS * largest), min(high, MOST_OF_BANDS * largest)
    for panel in panels:
        panel.set_ylim(low, high)
