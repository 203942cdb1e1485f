"""One picture of what privacy costs: the share of the explained variance that is lost, by epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

INK, GRID = "#2b2b2b", "#e4e4e4"
COLOURS = ("#0b6e99", "#d9730d", "#6940a5", "#448361")


def accuracy_figure(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw results of `privfit bench accuracy` (one dict per table, method and epsilon) into a PNG or SVG file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tables = list(dict.fromkeys(result["table"] for result in results))
    figure, axes = plt.subplots(1, len(tables), figsize=(4.6 * len(tables), 3.6), squeeze=False, sharey=True)
    for axis, table in zip(axes[0], tables, strict=True):
        _panel(axis, [result for result in results if result["table"] == table], table)
    axes[0][0].set_ylabel("share lost of the variance\nthat least squares explains")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, bbox_to_anchor=(0.5, -0.04))
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=160, bbox_inches="tight", facecolor="white")
    plt.close(figure)


def _panel(axis: Any, results: Sequence[dict[str, Any]], title: str) -> None:
    methods = list(dict.fromkeys(result["method"] for result in results))
    epsilons = sorted({result["epsilon"] for result in results})
    for method, colour in zip(methods, COLOURS, strict=False):
        points = sorted(
            (result for result in results if result["method"] == method), key=lambda result: result["epsilon"]
        )
        x = [point["epsilon"] for point in points]
        axis.plot(x, [point["median"] for point in points], "o-", color=colour, label=method, linewidth=2, markersize=5)
        axis.fill_between(
            x,
            [point["low"] for point in points],
            [point["high"] for point in points],
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
    axis.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axis.text(epsilons[len(epsilons) // 2], 0.78, "predicting the mean", ha="center", va="top", fontsize=8, color=INK)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_ylim(bottom=1e-5)
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.set_xlabel("epsilon")
    axis.set_title(title, fontsize=10, color=INK)
    axis.grid(True, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
