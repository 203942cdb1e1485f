"""An evaluation, drawn: its figures with intervals, and a panel for every curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privfit.report.drawing import GREY, RISING, blank_figure, listed, reaches, styled, written

Facts = Mapping[str, Any]


ERRORS = ("rmse", "mae", "mean_squared_distance")
"""Figures in the unit of the target, or of distances: they have a panel of their own, beside shares and scores."""


@styled
def draw_evaluation(facts: Facts, path: str | Path | None = None) -> Any:
    """Draw the figures and the curves of an evaluation; write them to a file where one is named."""
    known = {name: one for name, one in facts["figures"].items() if None not in (one["value"], *one["interval"])}
    errors = {name: one for name, one in known.items() if name in ERRORS}
    scores = {name: one for name, one in known.items() if name not in ERRORS}
    groups = [(title, own) for title, own in (("scores", scores), ("errors", errors)) if own]
    panels = [(name, draw) for name, draw in PANELS.items() if name in facts]
    figure, axes = blank_figure(max(1, len(groups) + len(panels)), height=3.5)
    for (title, own), panel in zip(groups, axes, strict=False):
        _draw_figures(panel, own)
        panel.set_title(f"{title}, with 90% intervals")
    for (name, draw), panel in zip(panels, axes[len(groups) :], strict=False):
        draw(panel, facts[name])
        panel.set_title(name.replace("_", " "))
    told = listed([f"{name} {one['value']:.3g}" for name, one in known.items()]) or "nothing is known"
    curves = f" Panels: {listed([name for name, _ in panels])}." if panels else ""
    return written(figure, path, f"How good the {facts['model']} is, with 90% intervals: {told}.{curves}")


def _draw_figures(panel: Any, known: Facts) -> None:
    values, ends = [one["value"] for one in known.values()], [one["interval"] for one in known.values()]
    panel.errorbar(values, range(len(known)), xerr=reaches(values, ends), fmt="o", capsize=3)
    panel.set_yticks(range(len(known)), [name.replace("_", " ") for name in known])
    panel.set_ylim(len(known) - 0.5, -0.5)


def _draw_roc(panel: Any, curve: Facts) -> None:
    across, up = curve["false_positive_rate"], curve["true_positive_rate"]
    known = [place for place, one in enumerate(zip(across["values"], up["values"], strict=True)) if None not in one]
    low, high = ([up["interval"][place][end] for place in known] for end in (0, 1))
    places = [across["values"][place] for place in known]
    panel.fill_between(places, low, high, alpha=0.3)
    panel.plot(places, [up["values"][place] for place in known])
    panel.plot([0, 1], [0, 1], linestyle=":", color=GREY)
    panel.set_xlabel("false positive rate")
    panel.set_ylabel("true positive rate")


def _draw_calibration(panel: Any, curve: Facts) -> None:
    observed, predicted = curve["observed"], curve["predicted"]["values"]
    known = [place for place, value in enumerate(observed["values"]) if value is not None]
    values = [observed["values"][place] for place in known]
    ends = [observed["interval"][place] for place in known]
    places = [predicted[place] for place in known]
    panel.errorbar(places, values, yerr=reaches(values, ends), fmt="o", capsize=3)
    panel.plot([0, 1], [0, 1], linestyle=":", color=GREY)
    panel.set_xlabel("predicted probability")
    panel.set_ylabel("observed share")


def _draw_confusion(panel: Any, table: Facts) -> None:
    counts, (true, predicted) = table["values"], table["labels"]
    panel.imshow(counts, cmap=RISING, aspect="auto")
    most = max(max(line) for line in counts)
    for place, line in enumerate(counts):
        for other, count in enumerate(line):
            color = "white" if count > most / 2 else "black"
            panel.text(other, place, f"{count:,.0f}", ha="center", va="center", color=color)
    panel.set_xticks(range(len(predicted)), predicted)
    panel.set_yticks(range(len(true)), true)
    panel.set_xlabel("predicted class")
    panel.set_ylabel("true class")


PANELS: dict[str, Callable[[Any, Facts], None]] = {
    "roc": _draw_roc,
    "calibration": _draw_calibration,
    "confusion": _draw_confusion,
}
