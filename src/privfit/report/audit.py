"""An audit, drawn: for every mechanism and setting, what attacks found as a share of the claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.report.drawing import GREY, MARKS, blank_figure, styled, written

ROW_HEIGHT = 0.2
"""Inches for each mechanism and setting."""


@styled
def draw_audit(audit: dict[str, Any], path: str | Path | None = None) -> Any:
    """Draw a dot per attack, the claim as a line; write it to a file where one is named."""
    found = [one for one in audit["findings"] if one["found"] is not None and one["claimed"]]
    rows = list(dict.fromkeys(f"{one['mechanism']} ({one['setting']})" for one in audit["findings"]))[::-1]
    figure, (axes,) = blank_figure(1, height=1.5 + ROW_HEIGHT * len(rows), width=9)
    for mark, attack in enumerate(dict.fromkeys(one["attack"] for one in found)):
        own = [one for one in found if one["attack"] == attack]
        shares = [one["found"] / one["claimed"] for one in own]
        places = [rows.index(f"{one['mechanism']} ({one['setting']})") for one in own]
        axes.plot(shares, places, MARKS[mark % len(MARKS)], markersize=4, alpha=0.7, label=attack)
    for one in audit["findings"]:
        if one["verdict"] == "violated":
            place = rows.index(f"{one['mechanism']} ({one['setting']})")
            axes.axhspan(place - 0.4, place + 0.4, color="#D55E00", alpha=0.25)
    axes.axvline(1.0, linestyle="--", color=GREY, label="the claim")
    axes.set(xlabel="loss found, as a share of the claim", yticks=range(len(rows)), ylim=(-1, len(rows)))
    axes.set_yticklabels(rows, fontsize=7)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    refuted = sum(one["verdict"] == "violated" for one in audit["findings"])
    told = f"Loss found by attacks as a share of the claim, {len(rows)} mechanisms and settings: {refuted} refuted."
    return written(figure, path, told)
