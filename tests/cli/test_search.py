"""`privfit search` and `privfit select`: what they write, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import privfit as pf
from privfit.cli.errors import CommandError
from privfit.cli.search import parsed_values
from tests.cli.conftest import Run

START = ("search", "high.parquet", "--schema", "logistic.toml", "--model", "logistic", "-e", 3, "-o", "model.json")
NEW = ("--ledger", "new.db", "--ledger-epsilon", "9")


def test_the_chosen_fit_is_written_with_the_price_of_the_search(run: Run, folder: Path) -> None:
    found = run(*START, "--grid", "mechanism=objective,output", *NEW, "--json")
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["best_params"]["mechanism"] in ("objective", "output")
    assert told["report"]["epsilon"] == told["ledger"]["spent"]["epsilon"] == 3
    model = pf.load_model("model.json")
    assert (model.report_.model, model.report_.epsilon) == ("LogisticRegression", 3)
    assert pf.Ledger("new.db").verify(model.report_.receipt).entries == 1
    assert run("ledger", "verify", "new.db", "--against", "model.json").exit_code == 0
    assert run("predict", "model.json", "high.parquet", "-o", "predicted.csv").exit_code == 0


def test_a_person_reads_which_setting_was_chosen(run: Run, folder: Path) -> None:
    found = run(
        "search", "people.csv", "-s", "linear.toml", "-m", "ridge", "--grid", "alpha=1,1000", "-e", 3, "-o", "m.json"
    )
    assert found.exit_code == 0, found.stderr
    assert "Of 2 settings this one was chosen: alpha=" in found.stdout
    assert "Privacy report of PrivateSearch" in found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--grid", "mechanism"), "Write, for example, --grid alpha=0.1,1,10"),
        (("--grid", "mechanism=objective"), "takes from 2 to"),
        (("--grid", "colour=red,blue"), "of the parameters"),
        (("--grid", "mechanism=objective,magic"), "magic"),
        (("--grid", "epsilon=1,2"), "The same for all is"),
        (("--grid", "mechanism=objective,output", "--rows-per-person", "2"), "rows_per_person=1"),
    ],
)
def test_settings_that_mean_nothing_are_refused_before_a_ledger_is_made(
    run: Run, folder: Path, words: tuple[str, ...], said: str
) -> None:
    found = run(*START, *words, *NEW)
    assert found.exit_code == 1
    assert said in " ".join(found.stderr.split())
    assert not Path("new.db").exists()


def test_what_predicts_nothing_cannot_be_compared(run: Run, folder: Path) -> None:
    words = [word if word != "logistic" else "kmeans" for word in START]
    found = run(*words, "--grid", "n_clusters=2,3")
    assert found.exit_code == 1
    assert "compared by what they predict" in found.stderr


def test_values_on_the_command_line_are_numbers_words_or_texts() -> None:
    assert parsed_values("alpha=0.1, 1,10") == ("alpha", [0.1, 1, 10])
    assert parsed_values("intervals=true,False,none") == ("intervals", [True, False, None])
    assert parsed_values("numeric=slope") == ("numeric", ["slope"])
    with pytest.raises(CommandError):
        parsed_values("alpha=")


def test_selected_columns_are_printed_and_their_schema_is_written(run: Run, folder: Path) -> None:
    found = run("select", "people.csv", "-s", "linear.toml", "-k", 3, "-e", 1, *NEW, "-o", "few.toml", "--json")
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert len(told["selected"]) == 3
    assert told["ledger"]["spent"]["epsilon"] == 1
    few = pf.Schema.load("few.toml")
    assert {column.name for column in few.features} == set(told["selected"])
    assert few.target == pf.Schema.load("linear.toml").target


@pytest.mark.parametrize(("number", "said"), [(0, "at least one"), (999, "columns beside its target")])
def test_a_number_of_columns_that_there_are_not_is_refused(run: Run, folder: Path, number: int, said: str) -> None:
    found = run("select", "people.csv", "-s", "linear.toml", "-k", number, "-e", 1, *NEW)
    assert found.exit_code == 1
    assert said in " ".join(found.stderr.split())
    assert not Path("new.db").exists()
