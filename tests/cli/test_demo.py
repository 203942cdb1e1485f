"""`privfit demo`: true numbers, a real budget, and words that a newcomer can follow."""

import json

import pytest

from tests.cli.conftest import Run


def test_json_tells_scores_report_and_ledger(run: Run) -> None:
    result = run("demo", "--rows", 20_000, "-e", 4, "-e", 1, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert [score["epsilon"] for score in told["scores"]] == [None, 1.0, 4.0, None]
    guess, _, best, plain = told["scores"]
    assert abs(guess["explained"]) < 0.01
    assert guess["typical_error"] > best["typical_error"] > 0.98 * plain["typical_error"]
    assert 0.3 < best["explained"] < plain["explained"] + 0.02
    assert guess["correct"] + 0.05 < best["correct"] < plain["correct"] + 0.02
    assert told["report"]["private"] is True
    assert told["report"]["epsilon"] == 4.0
    assert told["ledger"]["spent"]["epsilon"] == 10.0
    assert told["ledger"]["remaining"]["epsilon"] == 2.0
    assert "epsilon 4 was asked for" in told["refusal"]


def test_noise_is_real(run: Run) -> None:
    scores = {run("demo", "--rows", 1_000, "-e", 1, "--json").stdout for _ in range(2)}
    errors = {json.loads(text)["scores"][1]["typical_error"] for text in scores}
    assert len(errors) == 2


def test_words_for_newcomers(run: Run) -> None:
    shown = run("demo", "--rows", 2_000).stdout
    for said in (
        "2,000 made-up people",
        "16 to 95",
        "scikit-learn, no privacy",
        "Privacy report",
        "0.5 is left",
        "refused",
        "Next",
        "privfit schema",
    ):
        assert said in shown


@pytest.mark.parametrize(
    ("option", "value", "code"), [("--rows", 3, 2), ("-e", 0, 1), ("-e", "nan", 1), ("-e", "inf", 1)]
)
def test_nonsense_is_refused(run: Run, option: str, value: object, code: int) -> None:
    result = run("demo", option, value)
    assert result.exit_code == code
    assert "Traceback" not in result.output
