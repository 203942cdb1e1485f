"""`privfit fit`: what it writes, what it refuses, and that a refusal charges and changes nothing."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import privfit as pf
from privfit.cli import console
from privfit.datasets.census import census_schema
from tests.cli.conftest import Run
from tests.support.pairs import CROSSED, planted

LINEAR = ("fit", "people.csv", "--schema", "linear.toml", "--model", "linear")


def test_the_model_is_json_and_not_a_pickle(run: Run, folder: Path) -> None:
    assert run(*LINEAR, "-e", 1, "-o", "model").exit_code == 0
    written = Path("model").read_bytes()
    assert not written.startswith(b"\x80")
    assert json.loads(written)["model"] == "LinearRegression"


def test_json_has_the_report_and_the_ledger(run: Run, folder: Path) -> None:
    result = run(*LINEAR, "-e", 0.5, "-l", "budget.db", "--ledger-epsilon", 2, "-o", "model.json", "--json")
    told = json.loads(result.stdout)
    assert told["written"] == "model.json"
    assert told["report"]["private"] is True
    assert told["report"]["epsilon"] == 0.5
    assert told["ledger"]["remaining"] == {"epsilon": 1.5, "delta": 0.0}


def test_options_reach_the_model(run: Run, folder: Path) -> None:
    options = (
        "--adjacency",
        "add-remove",
        "--rows-per-person",
        3,
        "--no-intercept",
        "--numeric",
        "bins",
        "--delta",
        1e-6,
    )
    assert run(*LINEAR, "-e", 0.5, *options, "-o", "model.json").exit_code == 0
    model = pf.load_model("model.json")
    assert model.report_.adjacency == "add-remove"
    assert model.report_.rows_per_person == 3
    assert (model.fit_intercept, model.numeric, model.delta) == (False, "bins", 1e-6)
    assert any(name.startswith("age_[") for name in model.get_feature_names_out())


def test_threads_and_memory_reach_the_model_or_are_refused(run: Run, folder: Path) -> None:
    assert run(*LINEAR, "-e", 0.5, "--n-jobs", 1, "--max-memory", "700MB", "-o", "model.json").exit_code == 0
    model = pf.load_model("model.json")
    assert (model.n_jobs, model.max_memory) == (1, "700MB")
    for option, value in (("--max-memory", "much"), ("--n-jobs", 0)):
        refused = run(*LINEAR, "-e", 0.5, "-l", "new.db", "--ledger-epsilon", 2, option, value, "-o", "other.json")
        assert refused.exit_code == 1
        assert not Path("new.db").exists()


def test_a_seed_repeats_and_says_not_private(run: Run, folder: Path) -> None:
    for name in ("first.json", "second.json"):
        result = run(*LINEAR, "-e", 1, "--seed", 7, "-o", name, "--json")
        report = json.loads(result.stdout)["report"]
        assert report["private"] is False
    assert Path("first.json").read_text() == Path("second.json").read_text()
    assert json.loads(Path("first.json").read_text())["report"]["private"] is False
    schema = census_schema("income")
    expected = pf.LinearRegression(1.0, schema=schema, random_state=7).fit(pl.read_csv("people.csv"))
    np.testing.assert_array_equal(pf.load_model("first.json").coef_, expected.coef_)


def test_without_a_seed_no_two_fits_are_alike(run: Run, folder: Path) -> None:
    for name in ("first.json", "second.json"):
        run(*LINEAR, "-e", 1, "-o", name)
    assert pf.load_model("first.json").intercept_ != pf.load_model("second.json").intercept_


@pytest.mark.parametrize("made_before", [True, False])
def test_a_seed_with_a_ledger_is_refused(run: Run, folder: Path, made_before: bool) -> None:
    if made_before:
        pf.Ledger("budget.db", epsilon=1.0)
    result = run(*LINEAR, "-e", 0.5, "--seed", 7, "-l", "budget.db", "--ledger-epsilon", 1, "-o", "model.json")
    assert result.exit_code == 1
    assert "not private" in result.stderr
    assert not Path("model.json").exists()
    if made_before:
        assert pf.Ledger("budget.db").entries() == []
    else:
        assert not Path("budget.db").exists()


def test_an_overdrawn_ledger_exits_with_three_and_writes_nothing(run: Run, folder: Path) -> None:
    pf.Ledger("budget.db", epsilon=1.0)
    assert run(*LINEAR, "-e", 0.7, "-l", "budget.db", "-o", "first.json").exit_code == 0
    before = Path("first.json").read_bytes()
    for output in ("second.json", "first.json"):
        result = run(*LINEAR, "-e", 0.4, "-l", "budget.db", "-o", output, "--json")
        assert result.exit_code == 3
        assert json.loads(result.stdout)["error"] == "BudgetExceeded"
        assert "0.3" in result.stderr
    assert not Path("second.json").exists()
    assert Path("first.json").read_bytes() == before
    assert [entry.epsilon for entry in pf.Ledger("budget.db").entries()] == [0.7]


def test_a_ledger_is_not_made_by_accident(run: Run, folder: Path) -> None:
    result = run(*LINEAR, "-e", 0.5, "-l", "budgte.db", "-o", "model.json")
    assert result.exit_code == 1
    assert "--ledger-epsilon" in result.stderr
    assert not Path("budgte.db").exists()
    assert not Path("model.json").exists()


def test_another_budget_for_an_existing_ledger_is_refused(run: Run, folder: Path) -> None:
    pf.Ledger("budget.db", epsilon=1.0)
    result = run(*LINEAR, "-e", 0.5, "-l", "budget.db", "--ledger-epsilon", 5, "-o", "model.json")
    assert result.exit_code == 1
    assert pf.Ledger("budget.db").epsilon == 1.0
    assert not Path("model.json").exists()


BAD = {
    "no file": (("fit", "nobody.csv", "-s", "linear.toml", "-m", "linear", "-e", 1, "-o", "model.json"), "nobody.csv"),
    "no schema": (
        ("fit", "people.csv", "-s", "nothing.toml", "-m", "linear", "-e", 1, "-o", "model.json"),
        "nothing.toml",
    ),
    "wrong target": ((*LINEAR[:-1], "logistic", "-e", 1, "-o", "model.json"), "predicts a category"),
    "missing column": (("fit", "high.parquet", *LINEAR[2:], "-e", 1, "-o", "model.json"), "'income'"),
    "no folder": ((*LINEAR, "-e", 1, "-o", "nowhere/model.json"), "folder"),
    "a folder": ((*LINEAR, "-e", 1, "-o", "."), "folder"),
    "over the data": ((*LINEAR, "-e", 1, "-o", "people.csv"), "overwritten"),
    "over the schema": ((*LINEAR, "-e", 1, "-o", "./linear.toml"), "overwritten"),
    "epsilon 0": ((*LINEAR, "-e", 0, "-o", "model.json"), "epsilon=0"),
    "epsilon nan": ((*LINEAR, "-e", "nan", "-o", "model.json"), "epsilon=nan"),
    "delta 1": ((*LINEAR, "-e", 1, "--delta", 1, "-o", "model.json"), "delta=1"),
    "no rows per person": ((*LINEAR, "-e", 1, "--rows-per-person", 0, "-o", "model.json"), "rows_per_person=0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence_and_changes_nothing(run: Run, folder: Path, case: str) -> None:
    arguments, named = BAD[case]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*arguments, "-l", "budget.db", "--ledger-epsilon", 1)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert named in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_budget_without_limit_is_not_a_budget(run: Run, folder: Path) -> None:
    result = run(*LINEAR, "-e", 1, "-l", "budget.db", "--ledger-epsilon", "inf", "-o", "model.json")
    assert result.exit_code == 1
    assert not Path("budget.db").exists()


def test_a_ledger_budget_without_a_ledger_is_refused(run: Run, folder: Path) -> None:
    result = run(*LINEAR, "-e", 1, "--ledger-epsilon", 1, "-o", "model.json")
    assert result.exit_code == 1
    assert "--ledger budget.db" in result.stderr


def test_a_schema_without_a_target_is_refused(run: Run, folder: Path) -> None:
    census_schema("income").with_target(None).save("linear.toml")
    result = run(*LINEAR, "-e", 1, "-o", "model.json")
    assert result.exit_code == 1
    assert "[target]" in result.stderr


def test_an_unfinished_schema_names_every_missing_fact(run: Run, folder: Path) -> None:
    run("schema", "people.csv", "--target", "income", "-o", "draft.toml")
    result = run("fit", "people.csv", "-s", "draft.toml", "-m", "linear", "-e", 1, "-o", "model.json")
    assert result.exit_code == 2
    assert "age (low and high)" in result.stderr
    assert "marital (levels)" in result.stderr
    assert "income (low and high)" in result.stderr


def test_cells_are_not_quoted_and_nothing_is_charged(run: Run, folder: Path) -> None:
    table = pl.read_csv("people.csv").with_columns(gender=pl.lit("hush-hush"))
    table.write_csv("people.csv")
    pf.Ledger("budget.db", epsilon=1.0)
    result = run(*LINEAR, "-e", 1, "-l", "budget.db", "-o", "model.json", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "DataError"
    assert "hush-hush" not in result.output
    assert pf.Ledger("budget.db").entries() == []
    assert not Path("model.json").exists()


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ("age,sex,ill\n30,f,no\n,m,yes\n", 'write it under name = "age": fill = ...'),
        ("age,sex,ill\n30,,no\n30,m,yes\n", 'write it under name = "sex": fill = ...'),
        ("age,sex,ill\n30,x,no\n30,m,yes\n", 'write other = true under name = "sex"'),
        ("age,sex,ill\n30,f,\n30,m,yes\n", 'fill = "drop" under [target]'),
    ],
)
def test_advice_about_the_schema_is_in_the_terms_of_its_file(run: Run, folder: Path, table: str, advice: str) -> None:
    Path("t.csv").write_text(table)
    pf.Schema([pf.Numeric("age", 0, 100), pf.Category("sex", ["f", "m"])], pf.Category("ill", ["no", "yes"])).save(
        "t.toml"
    )
    result = run("fit", "t.csv", "--schema", "t.toml", "--model", "logistic", "-e", 1, "-o", "m.json", "--json")
    assert result.exit_code == 1
    for told in (result.stderr, json.loads(result.stdout)["message"]):
        assert advice in told
        assert told.strip().endswith("Nothing was charged.")
        for python in ("Numeric(", "Category(", "adjacency="):
            assert python not in told


def test_unknown_choices_are_usage_errors(run: Run, folder: Path) -> None:
    assert run(*LINEAR[:-1], "quadratic", "-e", 1, "-o", "model.json").exit_code == 2


def test_without_a_ledger_the_user_is_told_that_nobody_counts(run: Run, folder: Path) -> None:
    assert "No ledger" in run(*LINEAR, "-e", 1, "-o", "model.json").stderr
    assert run(*LINEAR, "-e", 1, "-l", "b.db", "--ledger-epsilon", 1, "-o", "model.json").stderr.count("No ledger") == 0


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals_only(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    screen = StringIO()
    monkeypatch.setattr(console, "stderr", lambda: Console(file=screen, force_terminal=terminal, width=100))
    assert run(*LINEAR, "-e", 1, "-o", "model.json", "--json").exit_code == 0
    assert ("3,000 rows" in screen.getvalue()) is terminal


@pytest.mark.parametrize(
    "options",
    [
        ["--delta", 1e-6],
        ["-e", 5],
        ["--model", "lasso", "--alpha", "-1"],
        ["--model", "linear", "--alpha", "1"],
        ["--l1-ratio", 0.2],
    ],
)
def test_a_fit_that_is_refused_leaves_no_ledger_behind(run: Run, folder: Path, options: list) -> None:
    result = run(*LINEAR, "-e", 0.5, *options, "-l", "new.db", "--ledger-epsilon", 1, "-o", "model.json")
    assert result.exit_code != 0
    assert not Path("new.db").exists()
    assert not Path("model.json").exists()


def test_additive_models_from_the_command_line(run: Run, folder: Path) -> None:
    result = run(*LINEAR, "--model", "additive-regressor", "-e", 1, "--seed", 1, "-o", "m.json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(Path("m.json").read_text())["model"] == "AdditiveRegressor"
    assert run("predict", "m.json", LINEAR[1]).exit_code == 0
    refused = run(*LINEAR, "--model", "additive-classifier", "-e", 1, "--seed", 1, "-o", "n.json")
    assert refused.exit_code != 0
    assert "predicts a category" in refused.stderr


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize(("model", "kind"), [("ridge", "Ridge"), ("lasso", "Lasso"), ("elastic-net", "ElasticNet")])
def test_penalised_models_from_the_command_line(run: Run, folder: Path, model: str, kind: str) -> None:
    for alpha in ("auto", "select", "0.5"):
        result = run(
            *LINEAR,
            "--model",
            model,
            "--alpha",
            alpha,
            "-e",
            1,
            "--delta",
            1e-6,
            "-l",
            f"{alpha}.db",
            "--ledger-epsilon",
            2,
            "--ledger-delta",
            1e-5,
            "-o",
            "m.json",
        )
        assert result.exit_code == 0, result.stderr
        assert json.loads(Path("m.json").read_text())["model"] == kind
        assert run("predict", "m.json", LINEAR[1]).exit_code == 0


def test_clusters_are_fitted_and_predicted_from_files(run: Run, folder: Path) -> None:
    rows = np.tile([[20.0, 160.0], [70.0, 190.0]], (1500, 1))
    pl.DataFrame(rows, schema=["age", "height"], orient="row").write_csv("points.csv")
    pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("height", 120, 220)]).save("points.toml")
    made = run(
        "fit",
        "points.csv",
        "-s",
        "points.toml",
        "-m",
        "kmeans",
        "--clusters",
        2,
        "-e",
        1,
        "-l",
        "k.db",
        "--ledger-epsilon",
        1,
        "-o",
        "k.json",
    )
    assert made.exit_code == 0, made.output
    assert pf.Ledger("k.db").spent.epsilon == 1
    told = run("predict", "k.json", "points.csv").stdout.split()
    assert told[0] == "prediction"
    assert len(set(told[1:])) == 2
    assert told[1::2] == [told[1]] * 1500


def test_components_and_naive_bayes_are_fitted_and_used_from_files(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"x": [0.1, 0.9] * 1500, "z": [0.2, 0.7] * 1500, "kind": ["a", "b"] * 1500})
    rows.write_csv("rows.csv")
    features = [pf.Numeric("x", 0, 1), pf.Numeric("z", 0, 1)]
    pf.Schema(features, pf.Category("kind", ["a", "b"])).save("rows.toml")
    given = ("fit", "rows.csv", "-s", "rows.toml", "-e", 1, "-l", "k.db", "--ledger-epsilon", 2)
    assert run(*given, "-m", "pca", "--components", 1, "-o", "pca.json").exit_code == 0
    assert run(*given[:-2], "-m", "naive-bayes", "-o", "bayes.json").exit_code == 0
    assert pf.Ledger("k.db").spent.epsilon == 2
    scores = run("predict", "pca.json", "rows.csv").stdout.split()
    assert scores[0] == "pca0"
    np.testing.assert_array_equal(np.array(scores[1:], float), pf.load_model("pca.json").transform(rows).ravel())
    told = run("predict", "bayes.json", "rows.csv").stdout.split()
    assert told[0] == "prediction,probability_a,probability_b"
    assert [line[0] for line in told[1:]] == ["a", "b"] * 1500


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-m", "linear", "--clusters", 3), "only kmeans can have it"),
        (("-m", "kmeans", "--no-intercept"), "--no-intercept was given with --model kmeans"),
        (("-m", "pca", "--mechanism", "functional"), "--mechanism was given with --model pca"),
        (("-m", "kmeans", "--components", 2), "only pca can have it"),
        (
            ("-m", "linear", "--interactions", 1),
            "only logistic and additive-classifier and additive-regressor can have it",
        ),
        (("-m", "linear", "--loss", "hinge"), "only svm can have it"),
        (("-m", "ridge", "--kernel", "rbf"), "only logistic and svm can have it"),
        (("-m", "kmeans", "--row-norm", 1.0), "--row-norm 1.0 was given"),
    ],
)
def test_options_of_other_models_are_refused(run: Run, folder: Path, options: tuple, told: str) -> None:
    result = run("fit", "people.csv", "--schema", "linear.toml", *options, "-e", 1, "-o", "model.json")
    assert result.exit_code != 0
    assert told in " ".join(result.output.split())
    assert not Path("model.json").exists()


def test_pairs_of_columns_from_the_command_line(run: Run, folder: Path) -> None:
    planted(3000).write_csv("crossed.csv")
    CROSSED.save("crossed.toml")
    fit = (
        "fit",
        "crossed.csv",
        "-s",
        "crossed.toml",
        "-m",
        "logistic",
        "-e",
        10,
        "-l",
        "pairs.db",
        "--ledger-epsilon",
        20,
    )
    made = run(*fit, "--interactions", 1, "-o", "pairs.json")
    assert made.exit_code == 0, made.output
    assert "u x w" in " ".join(made.output.split())
    assert run("predict", "pairs.json", "crossed.csv").exit_code == 0
    plain = run(*fit, "--interactions", 0, "-o", "plain.json")
    assert plain.exit_code == 0, plain.output
    assert "chosen privately" not in " ".join(plain.output.split())
    assert pf.Ledger("pairs.db").spent.epsilon == 20


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (("-m", "logistic", "--kernel", "rbf"), {"kernel": "rbf"}),
        (("-m", "svm", "--loss", "hinge"), {"loss": "hinge"}),
        (("-m", "svm", "--row-norm", 1.5), {"row_norm": 1.5}),
    ],
)
def test_kernels_losses_and_lengths_from_the_command_line(run: Run, folder: Path, options: tuple, kept: dict) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 2000))
    pl.DataFrame({"a": a, "b": b, "y": np.where(a + b > 0, "yes", "no")}).write_csv("numbers.csv")
    pf.Schema([pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)], target=pf.Category("y", ["no", "yes"])).save(
        "numbers.toml"
    )
    made = run("fit", "numbers.csv", "-s", "numbers.toml", *options, "-e", 5, "--seed", 1, "-o", "numbers.json")
    assert made.exit_code == 0, made.output
    model = pf.load_model("numbers.json")
    assert {name: model.get_params()[name] for name in kept} == kept
    assert model.score(np.column_stack([a, b]), np.where(a + b > 0, "yes", "no")) > 0.9


def test_weights_of_rows_and_classes_reach_the_model(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 3000)
    frame = pl.DataFrame({"x": x, "w": rng.uniform(0, 9, 3000), "y": np.where(x > 0.7, 1, 0)})
    frame.write_csv("weighed.csv")
    pf.Schema([pf.Numeric("x", -1, 1)], pf.Category("y", [0, 1])).save("classes.toml")
    command = ("fit", "weighed.csv", "-s", "classes.toml", "-m", "logistic", "-e", 2, "-o", "model.json")
    assert run(*command, "--weight", "w", "--max-weight", 5, "--class-weight", "0=1,1=4.5").exit_code == 0
    model = pf.load_model("model.json")
    assert (model.max_weight, model.class_weight) == (5.0, {0: 1.0, 1: 4.5})
    told = run(*command, "--class-weight", "balanced")
    assert told.exit_code == 0
    assert "classes weigh alike" in " ".join(told.stdout.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--class-weight", "even"), "numbers by class"),
        (("--class-weight", "5=2"), "no class of the schema"),
        (("--weight", "age"), "without max_weight"),
    ],
)
def test_weights_that_mean_nothing_are_refused(run: Run, folder: Path, options, told) -> None:
    pl.DataFrame({"x": [0.0, 1.0], "age": [1, 2], "y": [0, 1]}).write_csv("small.csv")
    pf.Schema([pf.Numeric("x", -1, 1)], pf.Category("y", [0, 1])).save("classes.toml")
    result = run("fit", "small.csv", "-s", "classes.toml", "-m", "logistic", "-e", 1, "-o", "model.json", *options)
    assert result.exit_code != 0
    assert told in " ".join(result.stderr.split())
    assert not Path("model.json").exists()


def test_log_hazards_are_fitted_from_a_time_and_an_event(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    x, watched = rng.uniform(-1, 1, 4000), rng.uniform(0, 6, 4000)
    lives = rng.exponential(2 * np.exp(-x))
    pl.DataFrame({"x": x, "years": np.minimum(lives, watched), "died": (lives <= watched).astype(int)}).write_csv(
        "t.csv"
    )
    schema = pf.Schema([pf.Numeric("x", -1, 1), pf.Numeric("years", 0, 5)])
    schema.save("t.toml")
    fit = ("fit", "t.csv", "--schema", "t.toml", "--model", "cox", "-e", 5, "-o", "model.json")
    assert run(*fit, "--time", "years", "--event", "died").exit_code == 0
    model = pf.load_model("model.json")
    assert model.coef_[0] == pytest.approx(1.0, abs=0.2)
    pl.read_csv("t.csv").with_columns(w=pl.lit(2.0)).write_csv("t.csv")
    weighed = (*fit, "--time", "years", "--event", "died", "--weight", "w")
    assert run(*weighed, "--max-weight", 3).exit_code == 0
    assert pf.load_model("model.json").max_weight == 3.0
    assert "without max_weight" in " ".join(run(*weighed).stderr.split())
    assert "public bounds" in run(*fit, "--time", "days", "--event", "died").stderr
    assert "only cox" in run(*LINEAR, "-e", 1, "--time", "years", "-o", "model.json").stderr
    assert "--no-intercept" in run(*fit, "--time", "years", "--event", "died", "--no-intercept").stderr
