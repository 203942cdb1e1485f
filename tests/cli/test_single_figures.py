"""`privfit count`, `mean`, `quantile`, `histogram`, `crosstab`: what they print, pay for and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import privfit as pf
from privfit.cli.errors import CommandError
from privfit.cli.figures import counted_among, parsed_column
from tests.cli.conftest import Run

NEW = ("--ledger", "new.db", "--ledger-epsilon", "9")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with people.csv and people.toml."""
    ages = [30.0] * 200 + [50.0] * 300 + [70.0] * 500
    pl.DataFrame({"age": ages, "ill": ["no", "yes"] * 500, "dose": [0, 1, 1, 2] * 250}).write_csv(
        tmp_path / "people.csv"
    )
    columns = [pf.Numeric("age", 0, 120, bins=[40, 60]), pf.Category("dose", [0, 1, 2])]
    pf.Schema(columns, pf.Category("ill", ["no", "yes"]), where={"dose": [0, 1]}).save(tmp_path / "people.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(run: Run, *words: object) -> dict[str, Any]:
    found = run(*words, "--epsilon", 4, *NEW, "--json")
    assert found.exit_code == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


@pytest.mark.parametrize(
    ("words", "of", "value"),
    [
        (("count", "people.csv", "age=0:120", "--among", "40:60"), {"age": "40 to 60"}, 300),
        (("count", "people.csv", "dose=0,1,2", "--among", "1", "--among", "2"), {"dose": "1 or 2"}, 750),
        (("count", "people.csv", "ill", "-s", "people.toml", "--among", "yes"), {"ill": "yes"}, 250),
        (("mean", "people.csv", "age=0:120"), {"age": "mean"}, 56),
        (("quantile", "people.csv", "age=0:120"), {"age": "median"}, 60),
        (("histogram", "people.csv", "age=0:120:40,60"), {"age": [0.0, 40.0]}, 200),
        (("crosstab", "people.csv", "age=0:120:60,", "ill=no,yes"), {"age": [0.0, 60.0], "ill": "no"}, 250),
        (("crosstab", "people.csv", "age", "ill", "-s", "people.toml"), {"age": [0.0, 40.0], "ill": "no"}, 100),
    ],
    ids=lambda words: " ".join(map(str, words)) if isinstance(words, tuple) else None,
)
def test_every_figure_says_what_it_is_about_and_is_paid_for(
    run: Run, people: Path, words: tuple[str, ...], of: dict[str, Any], value: float
) -> None:
    answer = told(run, *words)
    first = answer["figures"][0]
    assert first["of"] == of
    assert first["value"] == pytest.approx(value, abs=11 if words[0] == "quantile" else 4)
    assert first["interval"][0] <= first["value"] <= first["interval"][1]
    assert answer["report"]["epsilon"] == answer["ledger"]["spent"]["epsilon"] == 4
    assert pf.Ledger("new.db").entries()[0].model == words[0]


def test_several_quantiles_are_lines_of_one_release(run: Run, people: Path) -> None:
    found = run("quantile", "people.csv", "age=0:120", "-q", 0.1, "-q", 0.9, "-e", 4)
    assert found.exit_code == 0, found.stderr
    head, first, second = found.stdout.splitlines()[:3]
    assert head.split() == ["age", "value", "90%", "interval"]
    assert (first.split()[0], second.split()[0]) == ("10%", "90%")
    assert "Privacy report of quantile" in found.stdout


def test_a_drawing_is_written(run: Run, people: Path) -> None:
    pytest.importorskip("matplotlib")
    found = run("crosstab", "people.csv", "age", "ill", "-s", "people.toml", "-e", 1, "--figure", "cells.png")
    assert found.exit_code == 0, found.stderr
    assert (people / "cells.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mean", "people.csv", "age"), "needs its public range or levels"),
        (("mean", "people.csv", "height", "-s", "people.toml"), "The schema has age, dose, ill"),
        (("mean", "people.csv", "ill=no,yes"), "it is a number with public bounds"),
        (("count", "people.csv", "age=0:120", "--among", "18"), "Write --among 18:65"),
        (("count", "people.csv", "ill=no,yes", "--among", "maybe"), "whose levels are"),
        (("histogram", "people.csv", "age=0:120:few"), "are no bins"),
        (("histogram", "people.csv", "age=0:120:150,160"), "rising edges"),
        (("quantile", "people.csv", "age=0:120", "-q", "1.5"), "above 0 and below 1"),
        (("quantile", "people.csv", "age=120:0"), "low < high"),
    ],
)
def test_what_means_nothing_is_refused_and_nothing_charged(
    run: Run, people: Path, words: tuple[str, ...], said: str
) -> None:
    found = run(*words, "--epsilon", 1, *NEW)
    assert found.exit_code == 1
    assert said in " ".join(found.stderr.split())
    assert not Path("new.db").exists() or pf.Ledger("new.db").spent.epsilon == 0


def test_a_column_on_the_command_line_is_a_number_or_a_category() -> None:
    assert parsed_column("income=0:1e6", None) == pf.Numeric("income", 0, 1e6)
    assert parsed_column("gain=-5:5:4", None) == pf.Numeric("gain", -5, 5, bins=4)
    assert parsed_column("a=b=0:1", None) == pf.Numeric("a=b", 0, 1)
    assert parsed_column("sex=f, m", None) == pf.Category("sex", ["f", "m"])
    assert parsed_column("dose=0,1.5", None) == pf.Category("dose", [0, 1.5])
    assert parsed_column("time=10:20 h,later", None) == pf.Category("time", ["10:20 h", "later"])
    assert counted_among(pf.Category("dose", [0, 1.5]), ["1.5"]) == [1.5]
    with pytest.raises(CommandError, match="income=0:1000000"):
        parsed_column("income=", None)
