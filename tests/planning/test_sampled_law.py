"""What a public sample leaves possible: posteriors, shares of classes, and tables like the sample."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import privfit as pf
from privfit.planning.generated import Source, coded_sample
from privfit.planning.sampled_law import Effects, SampledLaw, class_posterior, number_posterior
from privfit.planning.simulation import NO_NOISE, Repetition, Settings

FEATURES = [pf.Numeric("age", 0, 100), pf.Numeric("gain", 0, 100_000), pf.Category("area", ["n", "s", "e", "w"])]
CLASSES = pf.Schema(FEATURES, target=pf.Category("ill", ["no", "yes"]))
THREE = pf.Schema(FEATURES, target=pf.Category("kind", ["a", "b", "c"]))
NUMBERS = pf.Schema(FEATURES, target=pf.Numeric("income", 0, 1000))


def people(rows: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age, area = np.rint(rng.uniform(20, 80, rows)), rng.choice(["n", "s", "e", "w"], rows, p=[0.4, 0.3, 0.2, 0.1])
    gain = np.where(rng.random(rows) < 0.1, rng.uniform(5_000, 90_000, rows), 0.0)
    score = np.abs(age - 50) / 10 - 3 + 3 * (gain > 0) + (area == "n")
    income = np.clip(300 + 60 * score + rng.normal(0, 60, rows), 0, 1000)
    kind = np.array(["a", "b", "c"])[(rng.random(rows) < expit(score)).astype(int) + (rng.random(rows) < 0.1)]
    ill = np.where(rng.random(rows) < expit(score), "yes", "no")
    return pl.DataFrame({"age": age, "gain": gain, "area": area, "ill": ill, "income": income, "kind": kind})


def test_the_most_likely_weights_are_a_minimum_and_draws_have_the_posteriors_law() -> None:
    rng = np.random.default_rng(1)
    design, variances = np.column_stack([np.ones(80), rng.normal(size=(80, 2))]), np.array([100.0, 0.5, 2.0])
    own = (rng.random(80) < expit(design[:, 1])).astype(float)
    found = class_posterior(design, own, variances, np.zeros(3))
    probability = expit(design @ found.weights)
    assert np.abs(design.T @ (probability - own) + found.weights / variances).max() < 1e-2
    precision = (design.T * (probability * (1 - probability))) @ design + np.diag(1 / variances)
    drawn = np.array([found.drawn(rng) for _ in range(4000)])
    assert drawn.mean(axis=0) == pytest.approx(found.weights, abs=0.05)
    assert np.cov(drawn.T) == pytest.approx(np.linalg.inv(precision), abs=0.02)
    assert found.second_moments == pytest.approx((drawn**2).mean(axis=0), abs=0.05)
    line = number_posterior(design, design @ [1.0, 2.0, 0.0], np.full(3, 1e6), 0.1)
    assert line.weights == pytest.approx([1, 2, 0], abs=1e-3)


@pytest.mark.parametrize("schema", [CLASSES, THREE])
def test_drawn_classes_have_the_shares_of_the_sample(schema) -> None:
    sample = coded_sample(schema, people(400))
    law, name = SampledLaw.of(schema, sample, 0), schema.target.name
    wanted = np.bincount(sample[name].astype(int)) / 400
    for seed in range(5):
        drawn = law.drawn(seed).draw(
            {key: np.tile(held, 20) for key, held in sample.items()}, np.random.default_rng(seed)
        )
        assert np.bincount(drawn.astype(int)) / 8000 == pytest.approx(wanted, abs=0.03)


def test_laws_differ_as_much_as_the_sample_leaves_open() -> None:
    others = coded_sample(CLASSES, people(200, 9))

    def spread(rows: int) -> float:
        law = SampledLaw.of(CLASSES, coded_sample(CLASSES, people(rows)), 0)
        scores = [law.effects.scores(others, law.drawn(seed).weights) for seed in range(20)]
        return float(np.std(scores, axis=0).mean())

    assert spread(2000) < 0.6 * spread(100)


def test_values_that_many_rows_have_stay_and_others_move_between_neighbours() -> None:
    table = Source.of(CLASSES, people(300), 0).with_law(0).table(5000, 1)
    gain, own = table["gain"].to_numpy(), people(300)["gain"].to_numpy()
    assert np.mean(gain == 0) == pytest.approx(np.mean(own == 0), abs=0.03)
    assert not ((gain > 0) & (gain < own[own > 0].min() / 2 - 1)).any()
    assert len(np.unique(gain)) > 2 * len(np.unique(own))


def test_one_repetition_has_one_law_and_others_have_others() -> None:
    source = Source.of(NUMBERS, people(200), 0)
    settled = source.with_law(3)
    assert settled.with_law(4) is settled
    one, other = (source.with_law(seed).law.weights for seed in (1, 2))
    assert not np.allclose(one, other)


def test_generated_tables_are_as_hard_as_the_table_behind_the_sample() -> None:
    """Curves, and a number that few rows have: a straight line does not find them."""
    for schema, model in ((CLASSES, "logistic"), (NUMBERS, "additive-regressor")):
        settings = Settings(model, 8000, 8000, 1, {"interactions": 0})
        source = Source.of(schema, people(1000), 0)
        told = [Repetition.of(source, 8000, seed).score(settings, schema, "auto", NO_NOISE) for seed in range(3)]
        real = Repetition(people(8000, 5), people(8000, 6), 0).score(settings, schema, "auto", NO_NOISE)
        assert np.mean(told) == pytest.approx(real, abs=0.05)


def test_effects_are_made_piece_by_piece() -> None:
    sample = coded_sample(CLASSES, people(100))
    effects = Effects.of(CLASSES, sample, 0)
    values = {name: np.tile(held, 90) for name, held in sample.items()}
    weights = np.random.default_rng(0).normal(size=effects(sample).shape[1])
    assert effects.scores(values, weights) == pytest.approx(effects(values) @ weights)
    assert effects(sample).shape[1] == len(effects.groups)
