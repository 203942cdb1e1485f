"""Figures of papers in every style, and the page that shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from papers.tests.support.tiny_paper import PAPER
from privfit_papers.bench.claims import judged
from privfit_papers.bench.papers import paper_named
from privfit_papers.bench.results import Results, Value
from privfit_papers.report.gallery import Shown, tally, write_gallery
from privfit_papers.report.papers import draw

FIGURE = replace(
    PAPER.figures[0],
    methods=(*PAPER.figures[0].methods, replace(PAPER.figures[0].methods[0], name="bare", kind="reference")),
)
VALUES = [
    Value("left", method, epsilon, size / epsilon + 0.1 * run)
    for method, size in (("ours", 1.0), ("theirs", 3.0), ("bare", 0.5))
    for epsilon in (0.1, 1.0)
    for run in range(3)
]
STYLES: tuple[Literal["lines", "boxes", "bars", "table"], ...] = ("lines", "boxes", "bars", "table")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("epsilons", [(0.1, 1.0), (0.1,)])
def test_every_style_shows_every_method_and_the_small_print(tmp_path: Path, style, epsilons: tuple[float, ...]) -> None:
    values = [value for value in VALUES if value.x in epsilons]
    png, svg = draw(
        replace(FIGURE, style=style),
        Results(values),
        "A tiny paper",
        "Small print of the figure.",
        tmp_path / "deep" / "figure",
    )
    assert png.read_bytes()[:4] == b"\x89PNG"
    text = svg.read_text()
    for shown in (
        "ours",
        "theirs",
        "bare",
        "The only panel",
        "A tiny paper",
        "Small print of the figure.",
        "Figure 1: errors against epsilon",
    ):
        assert shown in text, shown


def test_a_reference_of_one_place_goes_right_across_and_of_several_through_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda picture, *args, **kwargs: drawn.append(picture))
    for epsilons in ((1.0,), (0.1, 1.0)):
        draw(
            replace(FIGURE, style="boxes"),
            Results([value for value in VALUES if value.x in epsilons]),
            "",
            "",
            tmp_path / "figure",
        )
    across, through = (
        [line for line in picture.axes[0].lines if line.get_label() == "bare"] for picture in (drawn[0], drawn[-1])
    )
    assert [list(line.get_xdata()) for line in across] == [[0, 1]]
    assert [list(line.get_ydata()) for line in across] == [[pytest.approx(0.6)] * 2]
    assert [list(line.get_ydata()) for line in through] == [[pytest.approx(5.1), pytest.approx(0.6)]]


def test_nothing_measured_is_an_empty_figure_and_no_error(tmp_path: Path) -> None:
    for style in STYLES:
        png, _ = draw(replace(FIGURE, style=style), Results([]), "A tiny paper", "Nothing yet.", tmp_path / style)
        assert png.stat().st_size > 1_000


def test_the_page_has_claims_outcomes_and_captions_and_escapes_them(tmp_path: Path) -> None:
    picture = tmp_path / "figures" / "one.png"
    first, *others = judged(FIGURE, Results(VALUES))
    verdicts = [("a < b | c", replace(first[1], printed="1 in 3")), *others]
    shown = [Shown(PAPER, FIGURE, picture, "Rows & columns.", verdicts)]
    markdown, page = write_gallery(shown, "Made by `a command`.", tmp_path, "pages")
    text, html = markdown.read_text(), page.read_text()
    assert "| a < b \\| c | ✘ not held | 1 in 3 |" in text
    assert "| claim | outcome | the paper's number | our number |" in text
    assert "<td>1 in 3</td>" in html
    assert "figures/one.png" in text
    assert "Rows & columns." in text
    assert "a &lt; b | c" in html
    assert "Rows &amp; columns." in html
    assert "<code>a command</code>" in html
    assert tally(shown) == {"held": 1, "held in part": 0, "not held": 1, "cannot be tested": 0}


def test_the_prose_of_the_markdown_page_wraps(tmp_path: Path) -> None:
    shown = [Shown(PAPER, FIGURE, tmp_path / "one.png", "words " * 60, [])]
    text = write_gallery(shown, "words " * 60, tmp_path, "pages")[0].read_text()
    assert text.count("words") == 120
    assert max(len(line) for line in text.splitlines()) <= 120


@pytest.mark.parametrize(
    ("paper", "figure", "number"),
    [
        ("functional-mechanism", "2", "117/206"),
        ("functional-mechanism", "3", "0.015"),
        ("logistic-regression", "1", "0.1426 ± 0.1284; 0.1903 ± 0.1105"),
        ("importance-weighting", "1", "2.34"),
        ("importance-weighting", "3", "7.17"),
        ("privgene", "5", "100 times"),
        ("privgene", "6", "over 10%"),
    ],
)
def test_the_gallery_has_the_papers_own_numbers(paper: str, figure: str, number: str) -> None:
    (found,) = paper_named(paper).figures_of(figure)
    assert number in [claim.printed for claim in found.claims]
    assert number in [verdict.printed for _, verdict in judged(found, Results([]))]
    page = (Path(__file__).parents[3] / "docs" / "reproduction" / "gallery.md").read_text(encoding="utf-8")
    assert f"| {number} |" in page
