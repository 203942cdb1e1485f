"""Pictures of examples, each with a text in place of it: what privfit's drawings say of themselves, or what the titles,
axes and legends of other figures say.
"""

from __future__ import annotations

from typing import Any

from sphinx_gallery.scrapers import figure_rst

from privfit.report.figure import Drawing


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures of a block, and the drawing that its last line evaluates to."""
    import matplotlib.pyplot as plt

    found = [plt.figure(number) for number in plt.get_fignums()]
    last = block_vars["example_globals"].get("___")
    if isinstance(last, Drawing) and not last.get_label():
        last.set_label("shown")
        found.append(last)
    images = []
    for figure, path in zip(found, block_vars["image_path_iterator"], strict=False):
        figure.savefig(path, dpi=gallery_dpi(figure))
        images.append(figure_rst([path], gallery_conf["src_dir"], in_words(figure)))
    plt.close("all")
    return "".join(images)


def gallery_dpi(figure: Any) -> float:
    """So that pictures of all widths are as sharp: about 1,400 pixels wide."""
    return max(100.0, 1400.0 / float(figure.get_figwidth()))


def in_words(figure: Any) -> str:
    """A text in place of a figure."""
    if isinstance(figure, Drawing):
        return one_line(figure.alt)
    return one_line("; ".join(filter(None, map(panel_in_words, figure.axes)))) or "A picture"


def panel_in_words(axes: Any) -> str:
    """What is drawn in one panel: its title, its axes, and the names of its lines."""
    across, up, title = axes.get_xlabel(), axes.get_ylabel(), axes.get_title()
    against = f"{up} against {across}" if across and up else across or up
    legend = axes.get_legend()
    lines = [text.get_text() for text in legend.get_texts()] if legend else []
    return ": ".join(filter(None, (title, against, ", ".join(lines))))


def one_line(text: str) -> str:
    """Without what reStructuredText would end an option at."""
    return " ".join(text.replace("\\", "").split())
