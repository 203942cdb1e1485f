"""Plans: scores rise with epsilon, follow the library, read no private row, and print in 80 columns."""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.planning import Forecast
from privfit.planning.generated import Source
from privfit.planning.hazards import HazardSource, concordance, with_time
from privfit.planning.simulation import MODELS, NO_NOISE, Repetition, Settings
from privfit.tables import columns_to_frame

FEATURES = [pf.Numeric("age", 0, 100), pf.Category("area", ["n", "s", "e", "w"])]
CLASSES = pf.Schema(FEATURES, target=pf.Category("ill", ["no", "yes"]))
NUMBERS = pf.Schema(FEATURES, target=pf.Numeric("income", 0, 100))
POINTS = pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("height", 100, 200)])
TIMES = pf.Schema([*FEATURES, pf.Numeric("years", 0, 5)])
SCHEMAS = {"logistic": CLASSES, "svc": CLASSES, "additive-classifier": CLASSES, "kmeans": POINTS, "cox": TIMES}
SCHEMAS |= {"naive-bayes": CLASSES, "pca": pf.Schema([pf.Numeric(name, 0, 1) for name in "abcde"])}
NAMED: dict[str, dict[str, Any]] = {"cox": {"time": "years", "event": "died"}, "pca": {"n_components": 2}}


def people(rows: int) -> pl.DataFrame:
    age = np.linspace(0, 100, rows)
    area = np.array(["n", "s", "e", "w"])[np.arange(rows) % 4]
    return pl.DataFrame({"age": age, "area": area, "ill": np.where(age + 20 * (area == "n") > 60, "yes", "no")})


@pytest.mark.parametrize("model", list(MODELS))
def test_every_model_has_a_plan(model: str) -> None:
    plan = pf.plan(
        SCHEMAS.get(model, NUMBERS),
        3000,
        model=model,
        epsilon=(0.01, 5),
        mechanisms=("auto",),
        repetitions=2,
        costs=False,
        **NAMED.get(model, {}),
    )
    low, high = plan.curve()
    assert low.score < high.score <= plan.reference + 0.05


def test_hazards_are_planned_by_the_order_of_pairs() -> None:
    event = pf.Category("state", ["alive", "dead"])
    plan = pf.plan(
        TIMES, 4000, model="cox", epsilon=(0.02, 2.0), repetitions=3, time=pf.Numeric("years", 0, 5), event=event
    )
    assert plan.measure == "concordance"
    assert 0.6 < plan.best(2.0).score <= plan.reference + 0.01 < 0.85
    assert plan.best(0.02).score < plan.best(2.0).score
    assert {one.what for one in plan.costs} == {"bounds half as wide", "without column age", "without column area"} | {
        "half of the levels of area, the rest joined"
    }
    with pytest.raises(pf.PrivacyError, match="Leave out public"):
        pf.plan(TIMES, 4000, model="cox", time="years", event="died", public=people(100))
    with pytest.raises(pf.SchemaError, match="public bounds"):
        pf.plan(CLASSES, 4000, model="cox")


def test_counts_and_quantiles_are_planned_by_what_is_explained() -> None:
    above = pf.plan(NUMBERS, 3000, model="quantile", quantile=0.9, epsilon=(0.1, 5), repetitions=2)
    assert above.measure == "D^2, the share of the pinball loss that is explained"
    assert above.best(0.1).score < above.best(5).score <= above.reference + 0.01
    assert "bounds half as wide" in {one.what for one in above.costs}
    for model in ("poisson", "gamma", "fractional"):
        plan = pf.plan(NUMBERS, 3000, model=model, epsilon=(1, 5), repetitions=2)
        assert "deviance" in plan.measure
        assert 0.1 < plan.reference < 0.6
        assert plan.best(5).score == pytest.approx(plan.reference, abs=0.05)
        with pytest.raises(pf.SchemaError, match="at least 0"):
            pf.plan(pf.Schema(FEATURES, pf.Numeric("y", -1, 1)), 3000, model=model)


def test_components_are_planned_by_the_variance_that_they_explain() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(0, 0.3, 3000)
    sample = pl.DataFrame(
        {
            name: (size * part + rng.normal(0, 0.1, 3000)).clip(-1, 1)
            for name, part in zip("abcd", (1, 0.8, 0.5, 0.0), strict=True)
        }
    )
    schema = pf.Schema([pf.Numeric(name, -1, 1) for name in "abcd"])
    plan = pf.plan(schema, 5000, model="pca", n_components=1, epsilon=(0.02, 2.0), repetitions=2, public=sample)
    assert plan.measure == "share of the variance that components explain"
    assert 0.6 < plan.reference < 0.95
    assert plan.best(0.02).score < plan.best(2.0).score <= plan.reference + 0.02
    assert plan.costs == ()
    with pytest.raises(pf.PrivacyError, match="n_components=2"):
        pf.plan(schema, 5000, model="pca")


def test_rows_of_zero_have_no_gamma_deviance() -> None:
    once = Repetition.of(Source.of(NUMBERS, None, 0), 3000, 0)
    income = np.array(once.test["income"].to_list())
    assert (income == 0).any()
    settings = Settings("gamma", 3000, 3000, 1, {})
    model = settings.estimator(NUMBERS, "auto", 5.0, once.seed).fit(once.train)
    kept = pl.DataFrame({name: once.test[name].to_list() for name in once.test.columns}).filter(pl.col("income") > 0)
    expected = model.score(kept, kept["income"].to_numpy())
    assert once.score(settings, NUMBERS, "auto", 5.0) == pytest.approx(expected)


def test_generated_events_are_about_half_and_orders_are_counted_by_hand() -> None:
    settled, named = with_time(TIMES, NAMED["cox"])
    drawn = HazardSource.of(settled, named["event"], None, 0).table(2000, 1)
    died, years = np.array(drawn["died"].to_list()), np.array(drawn["years"].to_list())
    assert 0.35 < died.mean() < 0.65
    assert not died[years == 5].any()
    model = pf.CoxRegression(2.0, schema=TIMES, random_state=0, **named).fit(drawn)
    scores, right, pairs = model.predict(drawn), 0.0, 0
    for first, other in itertools.permutations(range(60), 2):
        if died[first] and years[first] < years[other]:
            pairs += 1
            right += (scores[first] > scores[other]) + 0.5 * (scores[first] == scores[other])
    some = columns_to_frame({name: np.array(drawn[name].to_list(), dtype=object)[:60] for name in drawn.columns})
    assert concordance(model, some) == pytest.approx(right / pairs)


def test_a_plan_is_what_the_library_fits() -> None:
    settings, source = Settings("logistic", 2000, 2000, 1, {}), Source.of(CLASSES, None, 0)
    once = Repetition.of(source, 2000, 0)
    model = pf.LogisticRegression(0.5, schema=CLASSES, random_state=once.seed).fit(once.train)
    plan = pf.plan(CLASSES, 2000, epsilon=(0.5,), mechanisms=("auto",), repetitions=1, costs=False)
    assert plan.curve()[0].score == model.score(once.test, once.test["ill"].to_numpy())
    assert once.score(settings, CLASSES, "auto", NO_NOISE) > 0.5


def test_no_table_but_the_generated_ones_and_the_sample_is_opened(tmp_path) -> None:
    private, seen = tmp_path / "private.csv", []
    people(100).write_csv(private)
    CLASSES.save(tmp_path / "people.toml")
    sys.addaudithook(lambda event, args: seen.append(str(args[0])) if event == "open" else None)
    pf.plan(tmp_path / "people.toml", 1000, epsilon=(1,), mechanisms=("auto",), repetitions=1, costs=False)
    assert any(name.endswith("people.toml") for name in seen)
    assert not any(name.endswith("private.csv") for name in seen)
    private.read_bytes()  # the hook sees what is opened
    assert any(name.endswith("private.csv") for name in seen)


def test_a_public_sample_makes_the_target() -> None:
    plan = pf.plan(CLASSES, 3000, epsilon=(1,), public=people(200), mechanisms=("auto",), repetitions=2, costs=False)
    assert plan.source == "public sample"
    assert plan.reference > 0.85


def test_a_sample_that_does_not_fit_is_refused() -> None:
    with pytest.raises(pf.DataError, match="no columns"):
        pf.plan(CLASSES, 1000, public=people(200).drop("age"))
    with pytest.raises(pf.DataError, match="needs 50"):
        pf.plan(CLASSES, 1000, public=people(20))


def test_more_rows_than_are_simulated_scale_epsilon() -> None:
    settings = Settings("logistic", 100_000, 20_000, 1, {})
    assert settings.estimator(CLASSES, "auto", 0.1, 0).epsilon == pytest.approx(0.5)


@pytest.fixture(scope="module")
def plan() -> pf.Plan:
    return pf.plan(CLASSES, 2000, epsilon=(0.02, 0.2, 2), mechanisms=("auto", "output"), rows_per_person=5)


def test_the_text_fits_a_terminal_and_nothing_warns(plan: pf.Plan) -> None:
    assert max(map(len, str(plan).splitlines())) <= 80
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.plan(CLASSES, 500, epsilon=(1,), mechanisms=("auto",), repetitions=1, costs=False)


def test_the_dearest_fact_is_named(plan: pf.Plan) -> None:
    assert plan.costs[0].gain >= plan.costs[-1].gain
    assert "one row per person" in [change.what for change in plan.costs if change.matters]


def test_another_mechanism_is_best_only_where_it_is_clearly_better(plan: pf.Plan) -> None:
    def best(score: float) -> str:
        own = (Forecast("auto", 1.0, 0.70, 0.02), Forecast("output", 1.0, score, 0.02))
        return replace(plan, forecasts=own).best(1.0).mechanism

    assert [best(score) for score in (0.6, 0.71, 0.75)] == ["auto", "auto", "output"]


def test_epsilon_for_a_score_lies_between_planned_ones(plan: pf.Plan) -> None:
    low, high = plan.curve()[0], plan.curve()[-1]
    assert low.epsilon < plan.epsilon_for((low.score + high.score) / 2) < high.epsilon
    assert plan.epsilon_for(1.1) is None
    assert plan.epsilon_for(0.0) == low.epsilon


def test_a_plan_is_plain_values_and_is_drawn(plan: pf.Plan, tmp_path, monkeypatch) -> None:
    assert plan.to_dict()["recommendation"] == plan.recommendation
    plan.plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 1000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"privfit\[plots\]"):
        plan.plot()


def test_the_example_of_the_page_runs(capsys) -> None:
    page, names = Path(__file__).parents[2] / "docs/planning.md", {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert "without noise" in capsys.readouterr().out
