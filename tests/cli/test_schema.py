"""`privfit schema`: drafts that hold no value of any row, and checks that say everything at once."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import privfit as pf
from privfit.datasets.census import census_schema
from tests.cli.conftest import Run


def test_a_draft_says_nothing_about_values(run: Run, folder: Path) -> None:
    whole = run("schema", "people.csv", "--target", "income").stdout
    pl.read_csv("people.csv").with_columns(pl.col("income") * 7 + 1, marital=pl.lit("secret")).tail(5).write_csv(
        "people.csv"
    )
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
        (("--json",), "TABLE"),
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
    assert [name for name in ("'age'", "'cars'", "'marital'", "'hours'") if name in result.stderr] == [
        "'age'",
        "'cars'",
        "'marital'",
    ]


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
    "text",
    ["not toml at all", '[[feature]]\nname = "a"\ntype = "color"\n', '[feature]\nname = "a"\n', "feature = [1]\n"],
)
def test_a_broken_schema_is_one_sentence(run: Run, folder: Path, text: str) -> None:
    Path("broken.toml").write_text(text)
    for arguments in (
        ("schema", "--check", "broken.toml"),
        ("fit", "people.csv", "-s", "broken.toml", "-m", "linear", "-e", 1, "-o", "m"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.output


def test_check_says_when_there_is_nothing_to_predict(run: Run, folder: Path) -> None:
    census_schema().with_target(None).save("aimless.toml")
    result = run("schema", "--check", "aimless.toml")
    assert result.exit_code == 0
    assert "[target]" in result.stderr


# -- what a file holds that its schema does not provide for ----------------------------------------

GAPS = pf.Schema(
    [
        pf.Numeric("age", 0, 120),
        pf.Category("sex", ["f", "m"]),
        pf.Numeric("hours", 0, 80, fill=40),
        pf.Numeric("cars", 0, 5),
        pf.Category("town", ["a", "b"]),
    ],
    pf.Numeric("pay", 0, 1000),
)
HOLES = {
    "age": [30.0, None, 50.0],
    "sex": ["f", "m", None],
    "hours": [None, 20.0, 30.0],
    "cars": [1.0, 2.0, 3.0],
    "town": ["a", "SECRET77", "b"],
    "pay": [None, 20.0, 30.0],
}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_check_lists_all_columns_with_missing_values_at_once_in_terms_of_toml(
    run: Run, folder: Path, name: str
) -> None:
    GAPS.save("gaps.toml")
    frame = pl.DataFrame(HOLES)
    frame.write_csv(name) if name == "t.csv" else frame.write_parquet(name)
    result = run("schema", "--check", "gaps.toml", name, "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)["problems"]
    assert [sentence.split("'")[1] for sentence in told] == ["age", "sex", "pay", "town"]
    assert told[0].endswith('write it under name = "age", for example: fill = 60.0')
    assert told[1].endswith('write it under name = "sex", for example: fill = "f"')
    assert "Do not fill them in" in told[2]
    assert told[2].count("fill =") == told[2].count('fill = "drop"') == 1
    assert "--adjacency add-remove" in told[2]
    assert told[3].startswith("Column 'town' has levels that the schema does not list")
    assert "SECRET77" not in result.output


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_check_advises_makes_the_schema_fit(run: Run, folder: Path, name: str) -> None:
    GAPS.save("gaps.toml")
    text = Path("gaps.toml").read_text()
    for column, fill in (("age", "60.0"), ("sex", '"f"')):
        text = text.replace(f'name = "{column}"\n', f'name = "{column}"\nfill = {fill}\n')
    Path("gaps.toml").write_text(text.replace('levels = ["a", "b"]', 'levels = ["a", "b"]\nother = true'))
    frame = pl.DataFrame(HOLES).drop_nulls("pay")
    frame.write_csv(name) if name == "t.csv" else frame.write_parquet(name)
    result = run("schema", "--check", "gaps.toml", name)
    assert result.exit_code == 0, result.stderr
    assert "fits" in result.stdout


def test_check_goes_on_behind_a_column_that_cannot_be_read(run: Run, folder: Path) -> None:
    """A text behind the rows that tell a column's type, beside a column with missing values."""
    pf.Schema([pf.Numeric("a", 0, 1), pf.Numeric("b", 0, 1)]).save("s.toml")
    Path("t.csv").write_text("a,b\n" + "0.5,0.5\n" * 500 + "SECRET77,\n")
    result = run("schema", "--check", "s.toml", "t.csv")
    assert result.exit_code == 2
    assert "'a' holds texts that are not numbers" in result.stderr
    assert "'b' has missing values" in result.stderr
    assert "SECRET77" not in result.output
    assert "charged" not in result.stderr


def test_check_finds_dates(run: Run, folder: Path) -> None:
    pf.Schema([pf.Category("born", ["2001-02-03"], other=True), pf.Numeric("since", 0, 1)]).save("s.toml")
    pl.DataFrame({"born": ["2001-02-03"], "since": ["2001-02-03"]}).with_columns(pl.all().str.to_date()).write_parquet(
        "t.parquet"
    )
    result = run("schema", "--check", "s.toml", "t.parquet")
    assert result.exit_code == 2
    for name in ("born", "since"):
        assert f"Column '{name}' holds dates or times in t.parquet. Turn it into a number" in result.stderr


def test_check_of_a_box_tells_columns_by_position(run: Run, folder: Path) -> None:
    pf.Schema.box(-1, 1, target=(0, 5)).save("box.toml")
    pl.DataFrame({"SECRET77": [0.5], "target": [1.0], "SECRET78": ["text"], "SECRET79": [None]}).write_csv("plain.csv")
    result = run("schema", "--check", "box.toml", "plain.csv")
    assert result.exit_code == 2
    assert "'x1' is numeric in the schema and text" in result.stderr
    assert "'x2'" in result.stderr
    assert "SECRET" not in result.output


def test_a_file_without_a_header_is_neither_drafted_nor_checked_nor_fitted(run: Run, folder: Path) -> None:
    Path("rows.csv").write_text("7313.5,2\n3,4\n5,6\n")
    pf.Schema.box(0, 10_000).save("box.toml")
    fit = (
        "fit",
        "rows.csv",
        "-s",
        "box.toml",
        "-m",
        "kmeans",
        "-e",
        1,
        "-l",
        "new.db",
        "--ledger-epsilon",
        1,
        "-o",
        "m.json",
    )
    for arguments in (("schema", "rows.csv"), ("schema", "--check", "box.toml", "rows.csv"), fit):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "as if a row stood where names should be" in result.stderr
        assert "7313" not in result.output
    assert not Path("new.db").exists()


def test_a_schema_that_leaves_rows_out_is_shown_and_checked(run: Run, folder: Path) -> None:
    Path("t.csv").write_text("id,age,area,income\n1,30,n,5\n2,40,s,\n3,50,x,7\n")
    pf.Schema(
        [pf.Numeric("age", 0, 100)],
        pf.Numeric("income", 0, 10, fill="drop"),
        person="id",
        where={"age": (18, 65), "area": ["n", "s"]},
    ).save("t.toml")
    shown = run("schema", "--check", "t.toml", "t.csv")
    assert shown.exit_code == 0
    for told in ("row is left out", "Person: id", "age is at least 18 and at most 65", "area is n or s"):
        assert told in shown.stdout + shown.stderr
    Path("t.csv").write_text("age,income\n30,5\n")
    missing = run("schema", "--check", "t.toml", "t.csv")
    assert missing.exit_code != 0
    assert "no column 'id', which the schema leaves rows out by" in missing.stderr


def test_a_command_fits_with_persons_filter_and_dropped_targets(run: Run, folder: Path) -> None:
    Path("t.csv").write_text("id,age,area,income\n" + "1,30,n,5\n2,40,s,\n3,50,x,7\n1,20,n,3\n" * 20)
    Path("t.toml").write_text(
        'person = "id"\n[where]\narea = ["n", "s"]\nage = { low = 18 }\n'
        '[target]\nname = "income"\ntype = "numeric"\nlow = 0\nhigh = 10\nfill = "drop"\n'
        '[[feature]]\nname = "age"\ntype = "numeric"\nlow = 0\nhigh = 100\n'
    )
    fitted = run("fit", "t.csv", "-s", "t.toml", "-m", "linear", "-e", 1, "--rows-per-person", 2, "-o", "m.json")
    assert fitted.exit_code == 0
    assert "at most 2: others were left out" in Path("m.json").read_text() + fitted.stdout
