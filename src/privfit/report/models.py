"""A model, drawn: coefficients with intervals, curves and levels, heat maps of pairs, profiles of centres."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privfit.report.drawing import (
    COLOURS,
    DIVERGING,
    GREY,
    LINES,
    MARKS,
    beside,
    blank_figure,
    listed,
    styled,
    written,
)

Facts = Mapping[str, Any]
MOST_COEFFICIENTS = 40
"""The largest so many are drawn: more have names too small to read on a page."""
MOST_LETTERS = 24
"""Names are cut to so many letters on an axis."""
LINE_HEIGHT = 0.24
"""Inches for each coefficient."""
MOST_CELLS_WRITTEN = 36
"""A heat map has its values written into cells up to so many of them."""


@styled
def draw_coefficients(sets: Sequence[Facts], label: str, path: str | Path | None = None) -> Any:
    """Draw sets of coefficients, a panel for each class: a dot per coefficient, a line where it has an interval.

    A set has a `title`, `names`, `values` and `intervals`, which are None where there are none.
    """
    order = _largest(sets)
    names = [sets[0]["names"][place] for place in order]
    across = min(3, len(sets))
    figure, panels = blank_figure(
        len(sets), height=1.2 + LINE_HEIGHT * len(names), width=max(3.2, 7.0 / across), across=across, shared=True
    )
    for panel, own in zip(panels, sets, strict=True):
        _draw_set(panel, own, order)
        panel.set_title(own["title"])
    ends = [panel.get_xlim() for panel in panels]
    for panel in panels:
        panel.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    panels[0].set_yticks(range(len(names)), [_short(name) for name in names])
    panels[0].invert_yaxis()
    with_intervals = sets[0]["intervals"] is not None
    note = (
        "lines: 90% intervals, from edge to edge where noise hides the value; grey: zero is within"
        if with_intervals
        else "no intervals: noise is not shown"
    )
    left_out = len(sets[0]["names"]) - len(names)
    note += f"; the {left_out} smallest are left out" if left_out else ""
    figure.supxlabel(f"{label}\n{note}", fontsize="small")
    sure = " with 90% intervals" if with_intervals else ""
    words = [f"{own['title']} {_in_words(own, order)}".strip() for own in sets]
    return written(figure, path, f"Coefficients{sure}: {'; '.join(words)}.")


def _largest(sets: Sequence[Facts]) -> list[int]:
    """The places of the coefficients that are drawn, in their order."""
    size = [max(abs(float(own["values"][place])) for own in sets) for place in range(len(sets[0]["names"]))]
    kept = sorted(range(len(size)), key=lambda place: -size[place])[:MOST_COEFFICIENTS]
    return sorted(kept)


def _in_words(own: Facts, order: Sequence[int]) -> str:
    """The largest coefficients as a text."""
    largest = sorted(order, key=lambda place: -abs(own["values"][place]))
    return listed([f"{own['names'][place]} {own['values'][place]:.3g}" for place in largest])


def _draw_set(panel: Any, own: Facts, order: Sequence[int]) -> None:
    panel.axvline(0.0, color=GREY, linewidth=0.8)
    values = [own["values"][place] for place in order]
    if own["intervals"] is None:
        panel.plot(values, range(len(values)), "o", color=COLOURS[0])
        return
    ends = [own["intervals"][place] for place in order]
    widest = max((abs(end) for pair in ends for end in pair if math.isfinite(end)), default=1.0) or 1.0
    for place, (value, (low, high)) in enumerate(zip(values, ends, strict=True)):
        sure = low > 0 or high < 0
        color, filled = (COLOURS[0], COLOURS[0]) if sure else (GREY, "white")
        inside = [max(low, -widest), min(high, widest)]
        panel.plot(inside, [place, place], color=color, linewidth=2.5 if sure else 1.2)
        panel.plot(value, place, "o", color=color, markerfacecolor=filled)
    panel.set_xlim(-1.08 * widest, 1.08 * widest)


def _short(name: object) -> str:
    text = str(name)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


@styled
def draw_centres(profile: Facts, path: str | Path | None = None) -> Any:
    """Draw the profile of every centre: a line over the columns, each scaled by its public bounds.

    A profile has `columns`, `low`, `high` and `centres`, in the units of the table.
    """
    columns, low, high = profile["columns"], profile["low"], profile["high"]
    figure, (panel,) = blank_figure(1, height=4.2, width=max(6.0, 1.1 * len(columns)))
    for place, centre in enumerate(profile["centres"]):
        scaled = [(value - a) / (b - a) for value, a, b in zip(centre, low, high, strict=True)]
        colour, line = COLOURS[place % len(COLOURS)], LINES[place // len(COLOURS) % len(LINES)]
        mark = MARKS[place % len(MARKS)]
        panel.plot(range(len(columns)), scaled, line, color=colour, marker=mark, label=f"cluster {place}")
    names = [f"{_short(name)}\n{a:g} to {b:g}" for name, a, b in zip(columns, low, high, strict=True)]
    turned = len(columns) > 8
    panel.set_xticks(range(len(columns)), names, rotation=90 if turned else 0, fontsize="small")
    panel.set(ylim=(-0.03, 1.03), ylabel="place within the public bounds")
    panel.legend(loc="upper left", bbox_to_anchor=(1, 1))
    words = [
        f"cluster {place} at " + listed([f"{name} {value:.3g}" for name, value in zip(columns, centre, strict=True)], 5)
        for place, centre in enumerate(profile["centres"])
    ]
    return written(figure, path, f"Profiles of clusters: {listed(words, 6)}.")


@styled
def draw_heat_maps(maps: Sequence[Facts], label: str, path: str | Path | None = None) -> Any:
    """Draw tables of values as colours, one map beside the other: `title`, `down`, `across` and `values`."""
    figure, panels = blank_figure(len(maps), height=3.8, width=5.0, across=2)
    for panel, own in zip(panels, maps, strict=True):
        draw_heat_map(figure, panel, own, label)
    words = [f"{own['title']}, " + _map_in_words(own) for own in maps]
    return written(figure, path, f"Heat maps: {listed(words, 6).removeprefix(', ')}.")


def _map_in_words(own: Facts) -> str:
    """What counts most in each line of a map."""
    most = [max(zip(line, own["across"], strict=True), key=lambda one: abs(one[0])) for line in own["values"]]
    return listed([f"{name}: {cell} {value:.2g}" for name, (value, cell) in zip(own["down"], most, strict=True)], 6)


def draw_heat_map(figure: Any, panel: Any, own: Facts, label: str) -> None:
    """Draw one table of values; colours are symmetric about zero."""
    values = own["values"]
    most = max((abs(value) for line in values for value in line), default=0.0) or 1.0
    image = panel.imshow(values, cmap=DIVERGING, vmin=-most, vmax=most, aspect="auto")
    figure.colorbar(image, ax=panel, label=label)
    if sum(map(len, values)) <= MOST_CELLS_WRITTEN:
        for place, line in enumerate(values):
            for other, value in enumerate(line):
                color = "white" if abs(value) > 0.6 * most else "black"
                panel.text(other, place, f"{value:.2g}", ha="center", va="center", color=color, fontsize="small")
    panel.set_xticks(range(len(own["across"])), [_short(name) for name in own["across"]], fontsize="small")
    panel.tick_params(axis="x", rotation=90 if len(own["across"]) > 3 else 0)
    panel.set_yticks(range(len(own["down"])), [_short(name) for name in own["down"]], fontsize="small")
    panel.set_title(own["title"])


@styled
def draw_class_profiles(
    classes: Sequence[str], numbers: Sequence[Facts], levels: Sequence[Facts], path: str | Path | None = None
) -> Any:
    """Draw what distinguishes classes: a panel per number, with a mean and a standard deviation for every class, and a
    panel per category, with the share of every level."""
    figure, panels = blank_figure(len(numbers) + len(levels), height=1.4 + 0.3 * len(classes), width=3.6)
    for panel, own in zip(panels, numbers, strict=False):
        for place, (mean, spread) in enumerate(zip(own["means"], own["spreads"], strict=True)):
            panel.errorbar([mean], [place], xerr=[spread], fmt=MARKS[place % len(MARKS)], capsize=3)
        panel.set(title=_short(own["name"]), xlim=(own["low"], own["high"]), ylim=(len(classes) - 0.5, -0.5))
        panel.set_yticks(range(len(classes)), [_short(name) for name in classes])
    for panel, own in zip(panels[len(numbers) :], levels, strict=True):
        start = len(own["title"]) + 1
        for place, shares in enumerate(own["shares"]):
            look = {"marker": MARKS[place % len(MARKS)], "linestyle": "none", "label": _short(classes[place])}
            panel.plot(beside(len(shares), place, len(classes)), shares, color=COLOURS[place % len(COLOURS)], **look)
        names = [_short(label[start:]) for label in own["levels"]]
        panel.set_xticks(range(len(names)), names, rotation=90 if len(names) > 3 else 0, fontsize="small")
        panel.set(title=_short(own["title"]), ylim=(0, 1), ylabel="share of the class")
        panel.set_xlim(-0.5, len(names) - 0.5)
        panel.legend(fontsize="small")
    if numbers:
        figure.supxlabel("numbers: mean and standard deviation within each class", fontsize="small")
    words = [
        f"{own['name']} " + listed([f"{name} {mean:.3g}" for name, mean in zip(classes, own["means"], strict=True)], 6)
        for own in numbers
    ]
    words += [f"shares of {own['title']}" for own in levels]
    return written(figure, path, f"Within every class: {listed(words, 6)}.")
