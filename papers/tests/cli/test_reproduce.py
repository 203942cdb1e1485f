"""`privfit reproduce`: the list, a figure from nothing, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privfit_papers.bench.papers import MODULES, paper_named
from privfit_papers.bench.results import Log
from tests.cli.conftest import Run

ASKED = {
    "functional-mechanism": {"2", "3", "4", "5", "6", "7", "8", "9"},
    "regularised-regression": {"1", "2", "3"},
    "logistic-regression": {"1", "2"},
    "importance-weighting": {"1", "2", "3", "4", "5", "6"},
    "privgene": {"2", "3", "4", "5", "6", "7"},
}
"""Every figure of the five papers that has results in it."""


def test_the_list_has_a_line_for_every_figure_of_the_five_papers(run: Run) -> None:
    result = run("reproduce", "--list")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == sum(len(paper_named(name).figures) for name in MODULES)
    for name, numbers in ASKED.items():
        own = {line.split()[2].rstrip("abcdefgh-") for line in lines if line.startswith(name + " ")}
        assert own == numbers, name
    told = json.loads(run("reproduce", "--list", "--json").stdout)["figures"]
    assert [one["paper"] for one in told] == [line.split()[0] for line in lines]


def test_worked_examples_are_reproduced_without_any_data(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    asked = (
        "reproduce",
        "functional-mechanism",
        "-f",
        2,
        "-f",
        3,
        "--offline",
        "--data",
        tmp_path / "empty",
        "--out",
        tmp_path,
        "-j",
        1,
        "--json",
    )
    result = run(*asked)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert {one["figure"] for one in told["figures"]} == {"2", "3"}
    held = {one["claim"]: one["outcome"] for one in told["claims"]}
    assert [
        held[claim] for claim in held if "2.06" in claim or "2.34" in claim or "1.25" in claim or "117/206" in claim
    ] == ["held"] * 4
    for one in told["figures"]:
        picture = Path(one["picture"])
        assert picture.read_bytes()[:4] == b"\x89PNG"
        assert picture.with_suffix(".svg").read_text().rstrip().endswith("</svg>")
        assert one["caption"]
    assert told["failed"] == []
    before = Log(Path(told["results"])).path.read_bytes()
    again = run(*asked)
    assert json.loads(again.stdout) == told
    assert Log(Path(told["results"])).path.read_bytes() == before, "a finished cell was measured again"
    assert (tmp_path / "functional-mechanism.html").read_text().count("<img") == 2


def test_one_paper_can_be_listed_alone(run: Run) -> None:
    lines = run("reproduce", "privgene", "--list").stdout.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("privgene ") for line in lines)


def test_a_file_of_something_else_is_refused_and_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("name,age\nAnn,41\n")
    result = run("reproduce", "functional-mechanism", "-f", 2, "--offline", "--out", tmp_path)
    assert result.exit_code == 1
    assert "is not a file of results" in " ".join(result.stderr.split())
    assert (tmp_path / "results.csv").read_text() == "name,age\nAnn,41\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("nothing",), "There is no paper nothing"),
        ((), "Which paper?"),
        (("privgene", "--figure", 99), "privgene has no figure 99"),
        (("all", "--figure", 2), "--figure needs one paper"),
        (("privgene", "--data", "nowhere"), "nowhere, which is no folder"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(run: Run, asked: tuple[object, ...], said: str) -> None:
    result = run("reproduce", *asked, "--json")
    assert result.exit_code == 1
    assert said in json.loads(result.stdout)["message"]
