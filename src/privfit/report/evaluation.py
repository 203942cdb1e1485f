"""An evaluation, drawn: its figures with intervals, and a panel for every curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privfit.report.drawing import blank_figure, written

Facts = Mapping[str, Any]


def draw_evaluation(facts: Facts, path: str | Path | None = None) -> Any:
    """Draw the figures and the curves of an evaluation; write them to a file where one is named."""
    panels = [(name, draw) for name, draw in PANELS.items() if name in facts]
    figure, axes = blank_figure(1 + len(panels), height=3.5)
    _draw_figures(axes[0], facts["figures"])
    for (name, draw), panel in zip(panels, axes[1:], strict=False):
        draw(panel, facts[name])
        panel.set_title(name.replace("_", " "))
    return written(figure, path)


def _draw_figures(panel: Any, figures: Facts) -> None:
    known = {name: one for name, one in figures.items() if None not in (one["value"], *one["interval"])}
    values = [one["value"] for one in known.values()]
    below = [max(one["value"] - one["interval"][0], 0.0) for one in known.values()]
    above = [max(one["interval"][1] - one["value"], 0.0) for one in known.values()]
    panel.errorbar(values, range(len(known)), xerr=[below, above], fmt="o", capsize=3)
    panel.set_yticks(range(len(known)), [name.replace("_", " ") for name in known])
    panel.invert_yaxis()
    panel.set_title("figures, with 90% intervals")


def _draw_roc(panel: Any, curve: Facts) -> None:
    across, up = curve["false_positive_rate"], curve["true_positive_rate"]
    known = [place for place, one in enumerate(zip(across["values"], up["values"], strict=True)) if None not in one]
    low, high = ([up["interval"][place][end] for place in known] for end in (0, 1))
    places = [across["values"][place] for place in known]
    panel.fill_between(places, low, high, alpha=0.3)
    panel.plot(places, [up["values"][place] for place in known])
    panel.plot([0, 1], [0, 1], linestyle=":", color="grey")
    panel.set_xlabel("false positive rate")
    panel.set_ylabel("true positive rate")


def _draw_calibration(panel: Any, curve: Facts) -> None:
    observed, predicted = curve["observed"], curve["predicted"]["values"]
    known = [place for place, value in enumerate(observed["values"]) if value is not None]
    values = [observed["values"][place] for place in known]
    ends = [observed["interval"][place] for place in known]
    below = [max(value - low, 0.0) for value, (low, _) in zip(values, ends, strict=True)]
    above = [max(high - value, 0.0) for value, (_, high) in zip(values, ends, strict=True)]
    panel.errorbar([predicted[place] for place in known], values, yerr=[below, above], fmt="o", capsize=3)
    panel.plot([0, 1], [0, 1], linestyle=":", color="grey")
    panel.set_xlabel("predicted probability")
    panel.set_ylabel("observed share")


def _draw_confusion(panel: Any, table: Facts) -> None:
    counts, (true, predicted) = table["values"], table["labels"]
    panel.imshow(counts, cmap="Blues", aspect="auto")
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
