"""Survival curves, drawn: a line for each group, with its band."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privfit.report.drawing import COLOURS, LINES, blank_figure, listed, styled, written

Facts = Mapping[str, Any]


@styled
def draw_survival(facts: Facts, path: str | Path | None = None) -> Any:
    """Draw survival over time for every group, as far as it is known; write it to a file where one is named."""
    figure, (panel,) = blank_figure(1, height=3.5, width=6.0)
    for place, (name, curve) in enumerate(facts["curves"].items()):
        _draw_curve(panel, facts["times"], curve, name, place)
    panel.set_ylim(0.0, 1.02)
    panel.set_xlabel("time")
    panel.set_ylabel("share without an event")
    if len(facts["curves"]) > 1:
        panel.legend()
    return written(figure, path, _alt(facts))


def _draw_curve(panel: Any, times: list[float], curve: Facts, name: str, place: int) -> None:
    known = [at for at, value in enumerate(curve["survival"]) if value is not None]
    colour, shown = COLOURS[place % len(COLOURS)], [times[at] for at in known]
    low, high = ([curve["band"][at][end] for at in known] for end in (0, 1))
    panel.fill_between(shown, low, high, alpha=0.2, linewidth=0, color=colour)
    panel.plot(
        shown, [curve["survival"][at] for at in known], color=colour, linestyle=LINES[place % len(LINES)], label=name
    )


def _alt(facts: Facts) -> str:
    """What the drawing shows, in words."""
    told = []
    for name, curve in facts["curves"].items():
        known = [value for value in curve["survival"] if value is not None]
        told.append(f"{name} {known[-1]:.3g} at time {facts['times'][len(known) - 1]:.4g}")
    return f"The share of people without an event over time, with 90% bands: {listed(told)}."
