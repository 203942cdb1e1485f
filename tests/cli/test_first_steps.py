"""What somebody meets who types commands for the first time, with a table of their own and a word misspelt."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import privfit as pf
from privfit.cli.errors import FAILED, INCOMPLETE
from privfit.cli.fit_options import Model
from tests.cli.conftest import Run

NEW = ("-e", 0.5, "--ledger", "new.db", "--ledger-epsilon", 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with wages.csv and wages.toml."""
    pl.DataFrame({"hourly wage": [9.5, 20.0] * 50, "sector": ["public", "private"] * 50}).write_csv(
        tmp_path / "wages.csv"
    )
    schema = pf.Schema([pf.Category("sector", ["public", "private"])], pf.Numeric("hourly wage", 0, 100, fill=20))
    schema.save(tmp_path / "wages.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("asked", ["wage", "Hourly Wage", "hourly_wage", "hourly wages"])
def test_a_target_that_is_misspelt_is_answered_with_the_column_that_was_meant(
    run: Run, folder: Path, asked: str
) -> None:
    result = run("schema", "wages.csv", "--target", asked)
    assert result.exit_code == FAILED
    assert "Did you mean 'hourly wage'?" in result.stderr
    assert "sector" not in result.stderr
    assert "Did you mean" not in run("schema", "wages.csv", "--target", "income").stderr


def test_question_marks_that_are_left_end_a_fit_like_a_check(run: Run, folder: Path) -> None:
    run("schema", "wages.csv", "-t", "hourly wage", "-o", "draft.toml")
    for words in (("fit", "wages.csv", "-m", "linear", "-o", "model.json"), ("describe", "wages.csv")):
        result = run(*words, "-s", "draft.toml", *NEW)
        assert result.exit_code == INCOMPLETE
        assert "hourly wage (low and high)" in result.stderr
    assert run("schema", "--check", "draft.toml").exit_code == INCOMPLETE
    assert not Path("new.db").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("bounds", "wages.csv", "wage=0:100"),
        ("mean", "wages.csv", "wage=0:100"),
        ("crosstab", "wages.csv", "sector=public,private", "trade=a,b"),
        ("describe", "others.csv", "-s", "wages.toml"),
        ("kaplan-meier", "others.csv", "-s", "wages.toml", "--time", "hourly wage", "--event", "sector"),
    ],
    ids=lambda words: words[0],
)
def test_no_ledger_is_made_for_a_column_that_is_not_there(run: Run, folder: Path, words: tuple[str, ...]) -> None:
    pl.DataFrame({"sector": ["public", "private"]}).write_csv("others.csv")
    result = run(*words, *NEW)
    assert result.exit_code == FAILED
    assert "has no column" in result.stderr
    assert not Path("new.db").exists()


def test_a_verb_of_the_ledger_that_is_misspelt_is_not_taken_for_a_file(run: Run, folder: Path) -> None:
    result = run("ledger", "exprt", "people.db")
    assert result.exit_code == INCOMPLETE
    assert "Did you mean 'export'?" in " ".join(result.stderr.replace("│", " ").split())
    assert run("ledger", "creat", "--create", "--epsilon", 1).exit_code == 0  # a file may be called so
    assert run("ledger", "creat").exit_code == 0
    assert "There is no ledger 'shown.db'" in run("ledger", "shown.db").stderr


def test_help_names_every_model_that_can_be_fitted(run: Run) -> None:
    shown = run("fit", "--help").stdout.replace("│", " ").split()
    assert [str(model) for model in Model if not any(word.strip(",.;") == model for word in shown)] == []


def test_values_for_missing_ones_are_shown_as_they_were_written(run: Run, folder: Path) -> None:
    assert "counts as 20 " in run("schema", "--check", "wages.toml").stdout


@pytest.mark.parametrize(
    ("target", "model", "told"),
    [
        (pf.Numeric("voted", 0, 1), "logistic", 'type = "category" with levels, such as [0, 1]'),
        (pf.Category("voted", [0, 1]), "linear", 'type = "numeric" with low and high'),
    ],
    ids=["a class", "a number"],
)
def test_a_class_that_is_written_as_a_number_is_declared_as_the_error_says(
    run: Run, folder: Path, target: pf.Numeric | pf.Category, model: str, told: str
) -> None:
    pl.DataFrame({"voted": [0, 1] * 50, "age": list(range(100))}).write_csv("votes.csv")
    assert 'type = "category" and levels = [0, 1]' in run("schema", "votes.csv", "-t", "voted").stdout
    pf.Schema([pf.Numeric("age", 0, 100)], target).save("votes.toml")
    result = run("fit", "votes.csv", "-s", "votes.toml", "-m", model, *NEW, "-o", "model.json")
    assert result.exit_code == FAILED
    assert told in result.stderr
    other = "linear" if model == "logistic" else "logistic"
    assert run("fit", "votes.csv", "-s", "votes.toml", "-m", other, *NEW, "-o", "model.json").exit_code == 0
