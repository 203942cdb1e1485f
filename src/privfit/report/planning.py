"""A plan, drawn: score against epsilon, a line per mechanism, the fit without noise as a dashed line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.report.drawing import GREY, LINES, MARKS, blank_figure, listed, styled, written


@styled
def draw_plan(plan: dict[str, Any], path: str | Path | None = None) -> Any:
    """Draw the scores with their spreads; write them to a file where one is named."""
    figure, (axes,) = blank_figure(1, height=4.0, width=6.5)
    names = list(dict.fromkeys(one["mechanism"] for one in plan["forecasts"]))
    words = []
    for place, name in enumerate(names):
        own = sorted((one for one in plan["forecasts"] if one["mechanism"] == name), key=lambda one: one["epsilon"])
        columns = {key: [one[key] for one in own] for key in ("epsilon", "score", "deviation")}
        look = {"marker": MARKS[place % len(MARKS)], "linestyle": LINES[place % len(LINES)], "markersize": 4}
        axes.errorbar(columns["epsilon"], columns["score"], yerr=columns["deviation"], label=name, capsize=3, **look)
        words.append(f"{name} from {own[0]['score']:.3g} to {own[-1]['score']:.3g}")
    axes.axhline(plan["reference"], linestyle="--", color=GREY, label="without noise")
    axes.set(xscale="log", xlabel="epsilon", ylabel=plan["measure"])
    epsilons = sorted({one["epsilon"] for one in plan["forecasts"]})
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set_xticks([], minor=True)
    axes.legend()
    over = f"epsilon {epsilons[0]:g} to {epsilons[-1]:g}"
    told = f"Expected {plan['measure']} over {over}: {listed(words)}; without noise {plan['reference']:.3g}."
    return written(figure, path, told)
