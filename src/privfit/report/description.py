"""The figures of a description, drawn: one panel per column, every figure with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privfit.report.drawing import blank_figure, listed, reaches, styled, written


@styled
def draw_description(columns: Mapping[str, list[dict[str, Any]]], path: str | Path | None = None) -> Any:
    """Draw the figures of every column as points with their intervals; write them to a file where one is named."""
    figure, panels = blank_figure(len(columns), height=2.5)
    for panel, (name, figures) in zip(panels, columns.items(), strict=False):
        _draw_column(panel, name, figures)
    return written(figure, path, f"Figures of {listed(list(columns))}, each with its interval.")


def _draw_column(panel: Any, name: str, figures: list[dict[str, Any]]) -> None:
    values = [one["value"] for one in figures]
    places = range(len(figures))
    panel.errorbar(values, places, xerr=reaches(values, [one["interval"] for one in figures]), fmt="o", capsize=3)
    panel.set_yticks(places, [one["figure"] for one in figures])
    panel.invert_yaxis()
    panel.set_title(name)
