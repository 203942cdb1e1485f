"""`privfit schema`: drafts that hold no value of any row, and checks that say everything at once."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import privfit as pf
from privfit.bench.census import census_schema
from tests.cli.conftest import Run


def test_a_draft_says_nothing_about_values(run: Run, folder: Path) -> None:
    whole = run("schema", "people.csv", "--target", "income").stdout
    pl.read_csv("people.csv").with_columns(pl.col("income") * 7 + 1, marital=pl.lit("secret")).tail(5).write_csv("people.csv")
    assert run("schema", "people.csv", "--target", "income").stdout == whole
    assert "secret" not in whole
    assert len(re.findall(r'^(low|high|levels) = \[?"\?"\]?$', whole, re.MULTILINE)) == 2 * 8 + 5


def test_a_draft_does_not_overwrite_facts(run: Run, folder: Path) -> None:
    before = Path("linear.toml").read_text()
    result = run("schema", "people.csv", "-o", "linear.toml")
    assert result.exit_code == 1
    assert Path("linear.toml").read_text() == before


def test_a_draft_as_json(run: Run, folder: Path) -> None:
    told = json.loads(run("schema", "people.csv", "-o", "draft.toml", "--json").stdout)
    assert told == {"schema": Path("draft.toml").read_text(), "written": "draft.toml"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("people.csv", "--target", "wealth"), "'wealth'"),
        (("nobody.csv",), "'nobody.csv'"),
        (("--json",), "FILE"),
        (("--check", "nothing.toml"), "'nothing.toml'"),
        (("--check", "linear.toml", "nobody.csv"), "'nobody.csv'"),
        (("--check", "linear.toml", "--target", "age"), "--check"),
    ],
)
def test_wrong_arguments_are_named(run: Run, folder: Path, arguments: tuple[str, ...], named: str) -> None:
    result = run("schema", *arguments)
    assert result.exit_code == 1
    assert named in result.stderr


def test_check_shows_every_column_and_fact(run: Run, folder: Path) -> None:
    features = [pf.Numeric("age", 0, 120, bins=[18, 65], fill=40), pf.Category("sex", ["f", "[bold]m"], other=True)]
    pf.Schema(features, pf.Numeric("pay", 0, 2_000_000)).save("shown.toml")
    shown = run("schema", "--check", "shown.toml").stdout
    for fact in ("age", "0 to 120", "18, 65", "counts as 40", "f, [bold]m, other", "2,000,000", "target"):
        assert fact in shown


def test_check_lists_all_that_is_missing(run: Run, folder: Path) -> None:
    Path("half.toml").write_text(
        '[target]\nname = "pay"\ntype = "numeric"\nlow = 0\nhigh = "?"\n'
        '[[feature]]\nname = "age"\ntype = "numeric"\n'
        '[[feature]]\nname = "sex"\ntype = "category"\nlevels = ["?"]\n'
        '[[feature]]\nname = "town"\ntype = "category"\nlevels = []\n'
        '[[feature]]\nname = "hours"\ntype = "numeric"\nlow = 0\nhigh = 80\n'
    )
    result = run("schema", "--check", "half.toml", "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert told["complete"] is False
    assert told["problems"] == [
        "Column 'age' still needs low and high.",
        "Column 'sex' still needs levels.",
        "Column 'town' still needs levels.",
        "Column 'pay' still needs high.",
    ]


def test_check_against_a_file_lists_all_misfits(run: Run, folder: Path) -> None:
    table = pl.read_csv("people.csv").with_columns(age=pl.lit("old")).drop("cars", "marital")
    table.write_csv("people.csv")
    result = run("schema", "--check", "linear.toml", "people.csv")
    assert result.exit_code == 2
    assert [name for name in ("'age'", "'cars'", "'marital'", "'hours'") if name in result.stderr] == ["'age'", "'cars'", "'marital'"]


def test_check_as_json(run: Run, folder: Path) -> None:
    told = json.loads(run("schema", "--check", "linear.toml", "people.csv", "--json").stdout)
    assert told["complete"] is True
    assert [column["name"] for column in told["columns"]] == [column.name for column in census_schema().columns]
    assert told["columns"][-1] | {"bins": None, "fill": None} == {
        "name": "income",
        "role": "target",
        "type": "numeric",
        "low": 0.0,
        "high": 150_000.0,
        "bins": None,
        "fill": None,
    }


def test_a_box_of_any_width_can_be_checked(run: Run, folder: Path) -> None:
    pf.Schema.box(-1, 1, target=(0, 5)).save("box.toml")
    pl.DataFrame({"a": [0.5], "b": [0.1], "target": [1.0]}).write_csv("plain.csv")
    result = run("schema", "--check", "box.toml", "plain.csv")
    assert result.exit_code == 0, result.stderr
    assert "-1 to 1" in result.stdout


@pytest.mark.parametrize(
    "text", ["not toml at all", '[[feature]]\nname = "a"\ntype = "color"\n', '[feature]\nname = "a"\n', "feature = [1]\n"]
)
def test_a_broken_schema_is_one_sentence(run: Run, folder: Path, text: str) -> None:
    Path("broken.toml").write_text(text)
    for arguments in (("schema", "--check", "broken.toml"), ("fit", "people.csv", "-s", "broken.toml", "-m", "linear", "-e", 1, "-o", "m")):
        result = run(*arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.output


def test_check_says_when_there_is_nothing_to_predict(run: Run, folder: Path) -> None:
    census_schema().with_target(None).save("aimless.toml")
    result = run("schema", "--check", "aimless.toml")
    assert result.exit_code == 0
    assert "[target]" in result.stderr
