"""A plan, drawn: score against epsilon, a line per mechanism, the fit without noise as a dashed line."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw_plan(plan: dict[str, Any], path: str | Path | None = None) -> Any:
    """Draw the scores with their spreads; write them to a file where one is named."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed. Install the extra: pip install 'privfit[plots]'."
        ) from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(one["mechanism"] for one in plan["forecasts"]):
        own = sorted((one for one in plan["forecasts"] if one["mechanism"] == name), key=lambda one: one["epsilon"])
        columns = {key: [one[key] for one in own] for key in ("epsilon", "score", "deviation")}
        axes.errorbar(columns["epsilon"], columns["score"], yerr=columns["deviation"], label=name, capsize=3)
    axes.axhline(plan["reference"], linestyle="--", color="grey", label="without noise")
    axes.set(xscale="log", xlabel="epsilon", ylabel=plan["measure"])
    axes.legend()
    if path is not None:
        figure.savefig(path)
    return figure
