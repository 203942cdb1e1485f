"""The path of a newcomer: draft a schema, fill it in, check it, fit against a ledger, predict, look at the ledger."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl

import privfit as pf
from tests.cli.conftest import Run

FACTS = {
    "age": (16, 95),
    "education": (0, 20),
    "hours": (0, 80),
    "residence": (0, 60),
    "family": (1, 10),
    "children": (0, 8),
    "cars": (0, 5),
    "income": (0, 150_000),
}
LEVELS = {
    "gender": ["female", "male"],
    "marital": ["single", "married", "divorced/widowed"],
    "disability": ["no", "yes"],
    "nativity": ["foreign", "native"],
    "dwelling": ["rented", "owned"],
}


def filled_in(draft: str) -> str:
    """The draft with every question mark replaced, as a person with an editor would."""
    for name, (low, high) in FACTS.items():
        draft = re.sub(
            rf'(name = "{name}"\ntype = "numeric"\n)low = "\?"\nhigh = "\?"', rf"\1low = {low}\nhigh = {high}", draft
        )
    for name, levels in LEVELS.items():
        draft = re.sub(
            rf'(name = "{name}"\ntype = "category"\n)levels = \["\?"\]', rf"\1levels = {json.dumps(levels)}", draft
        )
    return draft


def test_from_a_file_to_predictions_and_a_charge(run: Run, folder: Path) -> None:
    drafted = run("schema", "people.csv", "--target", "income", "-o", "schema.toml")
    assert drafted.exit_code == 0, drafted.stderr
    draft = Path("schema.toml").read_text()
    assert run("schema", "--check", "schema.toml", "people.csv").exit_code == 2
    Path("schema.toml").write_text(filled_in(draft))
    checked = run("schema", "--check", "schema.toml", "people.csv")
    assert checked.exit_code == 0, checked.stderr

    assert run("ledger", "budget.db", "--create", "--epsilon", 1).exit_code == 0
    options = (
        "--schema",
        "schema.toml",
        "--model",
        "linear",
        "--epsilon",
        0.4,
        "--ledger",
        "budget.db",
        "-o",
        "model.json",
    )
    fitted = run("fit", "people.csv", *options)
    assert fitted.exit_code == 0, fitted.stderr
    assert "model.json" in fitted.stdout
    assert "0.6 is left" in fitted.stdout

    assert run("predict", "model.json", "people.csv", "-o", "predictions.csv").exit_code == 0
    model = pf.load_model("model.json")
    predictions = pl.read_csv("predictions.csv")
    assert predictions.columns == ["prediction"]
    np.testing.assert_array_equal(predictions["prediction"].to_numpy(), model.predict(pl.read_csv("people.csv")))

    shown = json.loads(run("ledger", "budget.db", "--json").stdout)
    assert (shown["epsilon"], shown["spent"]["epsilon"], shown["remaining"]["epsilon"]) == (1.0, 0.4, 0.6)
    assert [(entry["dataset"], entry["epsilon"]) for entry in shown["entries"]] == [("people.csv", 0.4)]


def test_a_logistic_model_predicts_classes_and_probabilities(run: Run, folder: Path) -> None:
    fitted = run("fit", "high.parquet", "-s", "logistic.toml", "-m", "logistic", "-e", 2, "-o", "model.json")
    assert fitted.exit_code == 0, fitted.stderr
    run("predict", "model.json", "high.parquet", "-o", "predictions.parquet")
    model, table = pf.load_model("model.json"), pl.read_parquet("high.parquet")
    predictions = pl.read_parquet("predictions.parquet")
    assert predictions.columns == ["prediction", "probability_no", "probability_yes"]
    assert predictions["prediction"].to_list() == model.predict(table).tolist()
    np.testing.assert_array_equal(predictions.drop("prediction").to_numpy(), model.predict_proba(table))
