"""What a report says of a promise that holds but protects little, or that no kept budget counts: in words, from public
facts.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import privfit as pf
from privfit.baselines import NoPrivacy
from privfit.models.reporting import WEAK_EPSILON
from privfit.privacy.ledger import ledger as ledger_module
from tests.support.noise import RecordingNoise, ReplayingNoise

X = np.linspace(-1, 1, 200).reshape(-1, 2)
Y = X[:, 0]
SCHEMA = pf.Schema.box(-1, 1, target=(-1, 1))


@pytest.fixture(autouse=True)
def fresh_process_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_process_ledger", None)
    warnings.simplefilter("ignore", pf.PrivacyWarning)


def fitted(epsilon: float = 1.0, budget: float | None = 1000.0, **parameters):
    ledger = None if budget is None else pf.Ledger(epsilon=budget, delta=0.5)
    return pf.LinearRegression(epsilon, schema=SCHEMA, ledger=ledger, **parameters).fit(X, Y)


def private_line(report: pf.Report) -> str:
    return next(line for line in str(report).splitlines() if line.startswith("  private "))


def test_a_plain_promise_is_a_plain_yes() -> None:
    report = fitted().report_
    assert report.cautions == ()
    assert private_line(report).split() == ["private", "yes"]
    assert report.to_dict()["cautions"] == []


def test_an_epsilon_above_ten_is_called_weak_and_ten_is_not() -> None:
    assert fitted(WEAK_EPSILON).report_.cautions == ()
    report = fitted(20.0).report_
    assert "yes, but epsilon 20 is above 10: such a guarantee is weak" in private_line(report)
    assert report.private


def test_a_fit_without_a_ledger_says_so_from_the_first_one_on_and_counts() -> None:
    first, second = fitted(0.5, None).report_, fitted(0.25, None).report_
    assert "yes, but no ledger was given" in private_line(first)
    assert "have spent epsilon 0.5 in this process so far" in private_line(first)
    assert "have spent epsilon 0.75 in this process so far" in private_line(second)


def test_a_delta_above_one_over_the_rows_is_put_in_words() -> None:
    gaussian = {"mechanism": pf.FunctionalMechanism(noise="gaussian")}
    assert fitted(delta=1 / 100, **gaussian).report_.cautions == ()
    (caution,) = fitted(delta=0.011, **gaussian).report_.cautions
    assert "delta 0.011 is above 1 / 100" in caution
    assert "publishing one row at random, as it is, would satisfy it too" in caution


def test_one_row_at_random_is_not_said_to_satisfy_what_it_does_not() -> None:
    """With five rows a person, a random row of a hundred exposes a person with probability 0.05."""
    gaussian = {"mechanism": pf.FunctionalMechanism(noise="gaussian"), "rows_per_person": 5}
    (below,), (above,) = (fitted(delta=delta, **gaussian).report_.cautions for delta in (0.04, 0.06))
    assert "at random" not in below
    assert "at random" in above


def test_a_private_number_of_rows_never_reaches_the_cautions() -> None:
    gaussian = {"mechanism": pf.FunctionalMechanism(noise="gaussian"), "adjacency": "add-remove", "delta": 0.02}
    assert fitted(**gaussian).report_.cautions == ()
    (told,) = fitted(expected_rows=1_000, **gaussian).report_.cautions
    assert "1 / 1,000" in told
    assert fitted(expected_rows=10, **gaussian).report_.cautions == ()


def test_all_cautions_are_told_and_survive_saving(tmp_path) -> None:
    model = fitted(20.0, None, delta=0.1, mechanism=pf.FunctionalMechanism(noise="gaussian"))
    assert len(model.report_.cautions) == 3
    lines = str(model.report_).splitlines()[-3:]
    assert [line.split()[0] for line in lines] == ["private", "and", "and"]
    model.save(tmp_path / "model.json")
    assert pf.load_model(tmp_path / "model.json").report_ == model.report_


def test_a_report_that_knew_no_cautions_is_still_read() -> None:
    plain = fitted(20.0).report_.to_dict()
    del plain["cautions"]
    assert pf.Report.from_dict(plain).cautions == ()


def test_what_is_not_private_has_reasons_and_no_cautions() -> None:
    seeded = pf.LinearRegression(20.0, schema=SCHEMA, random_state=0).fit(X, Y).report_
    assert seeded.cautions == ()
    assert private_line(seeded).split()[1] == "NO:"
    assert NoPrivacy("linear", schema=SCHEMA).fit(X, Y).report_.cautions == ()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_neighbours_have_the_same_cautions(monkeypatch: pytest.MonkeyPatch, adjacency: str) -> None:
    from privfit.models import private

    right = (X[:-1], Y[:-1]) if adjacency == "add-remove" else (np.vstack([X[:-1], [[1.0, -1.0]]]), Y)
    noise = RecordingNoise(1)
    reports = []
    for source, table in ((noise, (X, Y)), (None, right)):
        monkeypatch.setattr(ledger_module, "_process_ledger", None)
        monkeypatch.setattr(private, "noise_source", lambda _, source=source: source or ReplayingNoise(noise.calls))
        model = pf.LinearRegression(
            20.0, delta=0.02, schema=SCHEMA, adjacency=adjacency, mechanism=pf.FunctionalMechanism(noise="gaussian")
        )
        reports.append(model.fit(*table).report_)
    assert len(reports[0].cautions) == (3 if adjacency == "replace-one" else 2)
    assert reports[0].cautions == reports[1].cautions
    assert str(reports[0]) == str(reports[1])
