"""An audit, drawn: for every mechanism and setting, what attacks found as a share of the claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROW_HEIGHT = 0.2
"""Inches for each mechanism and setting."""


def draw_audit(audit: dict[str, Any], path: str | Path | None = None) -> Any:
    """Draw a dot per attack, the claim as a line; write it to a file where one is named."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed. Install the extra: pip install 'privfit[plots]'."
        ) from None
    found = [one for one in audit["findings"] if one["found"] is not None and one["claimed"]]
    rows = list(dict.fromkeys(f"{one['mechanism']} ({one['setting']})" for one in audit["findings"]))[::-1]
    figure = Figure(figsize=(9, 1.5 + ROW_HEIGHT * len(rows)), layout="constrained")
    axes = figure.subplots()
    for attack in dict.fromkeys(one["attack"] for one in found):
        own = [one for one in found if one["attack"] == attack]
        shares = [one["found"] / one["claimed"] for one in own]
        places = [rows.index(f"{one['mechanism']} ({one['setting']})") for one in own]
        axes.plot(shares, places, "o", markersize=4, alpha=0.7, label=attack)
    for one in audit["findings"]:
        if one["verdict"] == "violated":
            place = rows.index(f"{one['mechanism']} ({one['setting']})")
            axes.axhspan(place - 0.4, place + 0.4, color="red", alpha=0.2)
    axes.axvline(1.0, linestyle="--", color="grey", label="the claim")
    axes.set(xlabel="loss found, as a share of the claim", yticks=range(len(rows)), ylim=(-1, len(rows)))
    axes.set_yticklabels(rows, fontsize=7)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    if path is not None:
        figure.savefig(path)
    return figure
