"""A ledger, drawn: what was spent of the budget, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from privfit.report.drawing import COLOURS, GREY, blank_figure, styled, written

FEW_SECONDS = 120
"""Entries within so many seconds are drawn by their number and not by their time."""


@styled
def draw_ledger(facts: Mapping[str, Any], path: str | Path | None = None) -> Any:
    """Draw the running total as steps: `entries` are pairs of a time and the epsilon spent after it, oldest first;
    `epsilon` is the budget, infinite where there is no limit."""
    figure, (axes,) = blank_figure(1, height=4.0, width=7.0)
    times = [datetime.fromisoformat(time) for time, _ in facts["entries"]]
    totals = [spent for _, spent in facts["entries"]]
    dated = len(times) > 1 and (times[-1] - times[0]).total_seconds() > FEW_SECONDS
    places: list[Any] = list(times) if dated else list(facts["numbers"])
    if places:
        start = places[0] if dated else 0
        axes.step([start, *places], [0.0, *totals], where="post", color=COLOURS[0])
        axes.fill_between([start, *places], [0.0, *totals], step="post", color=COLOURS[0], alpha=0.2, linewidth=0)
        axes.plot(places, totals, "o", color=COLOURS[0], markersize=4)
    budget, spent = facts["epsilon"], totals[-1] if totals else 0.0
    limit = "no limit" if budget == float("inf") else f"{budget:g}"
    if limit != "no limit":
        axes.axhline(budget, linestyle="--", color=COLOURS[1])
        axes.annotate(f"budget {budget:g}", (0.01, budget), xycoords=("axes fraction", "data"), va="bottom", color=GREY)
        axes.set_ylim(0, 1.15 * max(budget, spent))
    axes.set(xlabel="time of the charge (UTC)" if dated else "entry", ylabel="epsilon spent in all")
    axes.set_title(f"{facts['name']}: {facts['n_entries']} entries", loc="left")
    if dated:
        axes.tick_params(axis="x", rotation=30)
    else:
        axes.xaxis.get_major_locator().set_params(integer=True)
    return written(figure, path, f"Epsilon spent after each entry: {spent:.3g} of {limit} in the end.")
