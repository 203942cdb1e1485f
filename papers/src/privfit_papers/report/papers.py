"""Figures of papers, drawn from results: the paper's axes and names, our lines beside them, bands for spread."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privfit_papers.bench.grid import Axis, Figure, Method
from privfit_papers.bench.results import Results
from privfit_papers.report.accuracy import GRID, INK

OURS = ("#0b6e99", "#12a08c", "#5b8def", "#2f3f8f")
PAPERS = ("#d9730d", "#6940a5", "#c4477d", "#8a6d3b", "#b8a200", "#a33b2e", "#7d8a2e", "#d98ba5")
REFERENCES = ("#4a4a4a", "#8c8c8c", "#b0b0b0")
DASHES = ((0, (4, 2.5)), (0, (1, 1.5)), (0, (7, 2, 1.5, 2)), (0, (2, 4)))
MARKERS = "sD^vPX<>"
SUFFIXES = (".png", ".svg")
LONGEST_TICK = 6
HIGHEST_ROW = 3
"""Panels beside each other at most; four make a square."""


def draw(figure: Figure, results: Results, paper: str, note: str, stem: Path) -> list[Path]:
    """Draw a figure into `stem`.png and `stem`.svg.

    The paper's title and, in small print, a note go with it, so that a picture on its own says where it comes from.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(
        {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "privfit", "axes.edgecolor": INK, "text.color": INK}
    ):
        picture = _table(plt, figure, results) if figure.style == "table" else _panels(plt, figure, results)
        line = 0.19 / picture.get_figheight()
        width = int(picture.get_figwidth() * 19)
        heading = textwrap.fill(f"Figure {figure.number}: {figure.title}", int(width * 0.72))
        picture.text(0.5, 1 + 1.6 * line, heading, ha="center", va="bottom", fontsize=11.5, fontweight="bold")
        picture.text(0.5, 1 + 0.4 * line, paper, ha="center", va="bottom", fontsize=9, color="#666666")
        picture.text(
            0.5,
            -0.02,
            textwrap.fill(note, width),
            ha="center",
            va="top",
            fontsize=7.5,
            color="#666666",
            transform=picture.transFigure,
        )
        stem.parent.mkdir(parents=True, exist_ok=True)
        paths = [stem.with_name(stem.name + suffix) for suffix in SUFFIXES]
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            picture.savefig(path, dpi=110, bbox_inches="tight", pad_inches=0.15, facecolor="white", metadata=metadata)
        plt.close(picture)
    return paths


def _panels(plt: Any, figure: Figure, results: Results) -> Any:
    shown = list(figure.panels)
    columns = 2 if len(shown) == 4 else min(len(shown), HIGHEST_ROW)
    rows = -(-len(shown) // columns)
    picture, axes = plt.subplots(rows, columns, figsize=(max(4.1 * columns, 6.2), 3.0 * rows + 0.5), squeeze=False)
    styles = _styles(figure.methods)
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes.flat, shown, strict=False):
        {"lines": _lines, "boxes": _boxes, "bars": _bars}[figure.style](axis, figure, results, panel, styles)
        axis.set_title(figure.panels[panel], fontsize=9.5)
        _dress(axis, figure, results, panel)
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    order = [method.name for method in figure.methods if method.name in handles]
    picture.tight_layout()
    if order:
        across = min(len(order), 5)
        lines = -(-len(order) // across)
        picture.subplots_adjust(bottom=(0.62 + 0.2 * lines) / picture.get_figheight())
        picture.legend(
            [handles[name] for name in order],
            order,
            loc="lower center",
            ncols=across,
            frameon=False,
            bbox_to_anchor=(0.5, -0.01),
            fontsize=8.5,
        )
    return picture


def _styles(methods: Sequence[Method]) -> dict[str, dict[str, Any]]:
    """A look for every method: ours blue and thick, references grey and dashed, the paper's in warm colours with a
    marker each.
    """
    counts = {"ours": 0, "paper": 0, "reference": 0}
    styles = {}
    for method in methods:
        place = counts[method.kind]
        counts[method.kind] += 1
        if method.kind == "ours":
            styles[method.name] = {
                "color": OURS[place % len(OURS)],
                "linewidth": 2.6,
                "marker": "o",
                "markersize": 5.5,
                "zorder": 5,
            }
        elif method.kind == "paper":
            marker = MARKERS[place % len(MARKERS)]
            styles[method.name] = {
                "color": PAPERS[place % len(PAPERS)],
                "linewidth": 1.5,
                "marker": marker,
                "markersize": 5,
                "zorder": 4,
            }
        else:
            look = {"color": REFERENCES[place % len(REFERENCES)], "linestyle": DASHES[place % len(DASHES)]}
            styles[method.name] = look | {"linewidth": 1.4, "zorder": 3}
    return styles


def _lines(axis: Any, figure: Figure, results: Results, panel: str, styles: dict[str, dict[str, Any]]) -> None:
    for method in figure.methods:
        xs = results.xs(panel, method.name)
        if not xs:
            continue
        style = dict(styles[method.name])
        if len(xs) > 25:
            style.pop("marker", None)
        axis.plot(xs, [results.middle(panel, method.name, x) for x in xs], label=method.name, **style)
        low, high = zip(*(results.band(panel, method.name, x) for x in xs), strict=True)
        axis.fill_between(xs, low, high, color=style["color"], alpha=0.14, linewidth=0, zorder=1)


def _reference(axis: Any, place: Any, results: Results, panel: str, name: str, style: dict[str, Any]) -> None:
    """A line through the places that were measured; right across where there is only one."""
    xs = results.xs(panel, name)
    if len(xs) == 1:
        axis.axhline(results.middle(panel, name, xs[0]), label=name, **style)
    else:
        axis.plot([place(x) for x in xs], [results.middle(panel, name, x) for x in xs], label=name, **style)


def _boxes(axis: Any, figure: Figure, results: Results, panel: str, styles: dict[str, dict[str, Any]]) -> None:
    measured = [method for method in figure.methods if results.xs(panel, method.name)]
    places = sorted({x for method in measured for x in results.xs(panel, method.name)})
    for method in (method for method in measured if method.kind == "reference"):
        _reference(axis, places.index, results, panel, method.name, styles[method.name])
    shown = [method for method in measured if method.kind != "reference"]
    width = 0.8 / max(len(shown), 1)
    for number, method in enumerate(shown):
        colour = styles[method.name]["color"]
        xs = results.xs(panel, method.name)
        drawn = axis.boxplot(
            [results.values(panel, method.name, x) for x in xs],
            positions=[places.index(x) + (number - (len(shown) - 1) / 2) * width for x in xs],
            widths=width * 0.8,
            patch_artist=True,
            manage_ticks=False,
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
            medianprops={"color": colour, "linewidth": 1.8},
            whiskerprops={"color": colour},
            capprops={"color": colour},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour + "40", edgecolor=colour)
        axis.fill_between([], [], [], color=colour, label=method.name)
    axis.set_xticks(range(len(places)), [f"{x:g}" for x in places])


def _bars(axis: Any, figure: Figure, results: Results, panel: str, styles: dict[str, dict[str, Any]]) -> None:
    shown = [method for method in figure.methods if results.xs(panel, method.name)]
    places = sorted({x for method in shown for x in results.xs(panel, method.name)})
    width = 0.8 / max(len(shown), 1)
    for number, method in enumerate(shown):
        xs = results.xs(panel, method.name)
        middles = np.array([results.middle(panel, method.name, x) for x in xs])
        low, high = np.array([results.band(panel, method.name, x) for x in xs]).T
        reach = np.clip([middles - low, high - middles], 0.0, None)
        where = [places.index(x) + (number - (len(shown) - 1) / 2) * width for x in xs]
        axis.bar(
            where,
            middles,
            width * 0.9,
            yerr=reach,
            color=styles[method.name]["color"],
            ecolor=INK,
            capsize=2,
            label=method.name,
            error_kw={"linewidth": 0.8},
        )
    axis.set_xticks(range(len(places)), [f"{x:g}" for x in places] if len(places) > 1 else [""] * len(places))


def _table(plt: Any, figure: Figure, results: Results) -> Any:
    columns = [
        (panel, x)
        for panel in figure.panels
        for x in sorted({x for name in results.methods(panel) for x in results.xs(panel, name)})
    ]
    columns = columns or [(panel, 0.0) for panel in figure.panels]  # nothing was measured yet
    several = len({x for _, x in columns}) > 1
    heads = [figure.panels[panel] + (f", {figure.x.label} {x:g}" if several else "") for panel, x in columns]
    body = [[_mean_and_spread(results, panel, method.name, x) for panel, x in columns] for method in figure.methods]
    picture, axis = plt.subplots(figsize=(2.6 * (len(columns) + 1), 0.3 * (len(body) + 1)))
    picture.subplots_adjust(left=0, right=1, bottom=0.02, top=1)
    axis.axis("off")
    shares = 1 / (len(columns) + 1)
    names = [method.name for method in figure.methods]
    drawn = axis.table(
        cellText=body, rowLabels=names, colLabels=heads, bbox=(shares, 0, 1 - shares, 1), cellLoc="center"
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    ours = {method.name for method in figure.methods if method.kind == "ours"}
    for (row, column), cell in drawn.get_celld().items():
        cell.set_edgecolor(GRID)
        name = figure.methods[row - 1].name if row else ""
        if row == 0:
            cell.set_text_props(fontsize=8)
        if row == 0 or name in ours:
            cell.set_text_props(fontweight="bold", color=OURS[0] if name in ours else INK)
        if column == -1:
            cell.set_text_props(ha="right")
    return picture


def _mean_and_spread(results: Results, panel: str, method: str, x: float) -> str:
    values = results.values(panel, method, x)
    if not len(values):
        return "–"
    return f"{results.middle(panel, method, x):.4f}" + (f" ± {values.std():.4f}" if len(values) > 1 else "")


def _dress(axis: Any, figure: Figure, results: Results, panel: str) -> None:
    if figure.style == "lines":
        _scale(axis.set_xscale, figure.x)
        ticks = figure.x.ticks or tuple(sorted({x for name in results.methods(panel) for x in results.xs(panel, name)}))
        if len(ticks) <= 12 and max((len(f"{tick:g}") for tick in ticks), default=0) <= LONGEST_TICK:
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
        if figure.x.limits != (None, None):
            axis.set_xlim(*figure.x.limits)
    _scale(axis.set_yscale, figure.y)
    if figure.y.limits != (None, None):
        axis.set_ylim(*figure.y.limits)
    if figure.y.log:
        _plain_numbers(axis)
    axis.set_xlabel(figure.x.label)
    axis.set_ylabel(figure.y.label)
    axis.grid(True, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _scale(scaled: Any, axis: Axis) -> None:
    if axis.log:
        scaled("log")


def _plain_numbers(axis: Any) -> None:
    """On a logarithm: 0.4 instead of 4 x 10^-1, with a few more ticks where it spans less than two powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_ylim()
    if high / low >= 100:
        return
    axis.yaxis.set_major_locator(MaxNLocator(5, prune="lower") if high / low < 5 else LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
