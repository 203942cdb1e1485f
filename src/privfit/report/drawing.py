"""Panels of a drawing, and the file that they are written to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLUMNS = 3
"""Panels beside each other."""


def blank_figure(panels: int, height: float) -> tuple[Any, list[Any]]:
    """A figure of so many panels, each so many inches high."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed. Install the extra: pip install 'privfit[plots]'."
        ) from None
    lines, beside = -(-panels // COLUMNS), min(COLUMNS, panels)
    figure = Figure(figsize=(4 * beside, height * lines), layout="constrained")
    axes = figure.subplots(lines, beside, squeeze=False).ravel().tolist()
    for unused in axes[panels:]:
        unused.set_visible(False)
    return figure, axes[:panels]


def written(figure: Any, path: str | Path | None) -> Any:
    """The figure, written to a file where one is named."""
    if path is not None:
        figure.savefig(path)
    return figure
