"""A drawing with a text in place of it: the only file that imports the plotting library when it is imported."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

from matplotlib.figure import Figure


class Drawing(Figure):
    """A figure that says in words what it shows, and that notebooks display with that text."""

    alt: str = ""
    """What is drawn, for whoever cannot see it."""

    def _repr_html_(self) -> str:
        held = io.BytesIO()
        self.savefig(held, format="png", dpi=110)
        data = base64.b64encode(held.getvalue()).decode()
        return f'<img alt="{escape(self.alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'

    def __repr__(self) -> str:
        return f"<Drawing: {self.alt}>"


def as_array(axes: Any) -> list[Any]:
    """The axes of a figure as a list, by lines."""
    return list(axes.ravel())
