"""What ridge and noise shrink, and how much of it is undone: against minima that are known exactly, and on tables."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.losses import tempered_logistic
from privfit.mechanisms.perturbation import problem
from privfit.mechanisms.perturbation.problem import ERMFit, stretch
from privfit.schema import RowNorms

LOSS = tempered_logistic(0.5, 3.0)
BLOCKS = RowNorms(6.0, math.sqrt(3), 1.0, 10, singles=(0,), blocks=((1, 4), (4, 10)))


def fit_of(weights: list[float], ridge: float = 10.0) -> ERMFit:
    return ERMFit(np.array(weights)[:, None], ridge, LOSS, n_rows=1000)


# -- the rule --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ridge", "sd"), [(30.0, 8.0), (5.0, 20.0), (100.0, 1.0), (40.0, 40.0)])
def test_the_rule_finds_the_best_stretch_of_a_quadratic_whose_levels_are_equally_frequent(
    ridge: float, sd: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minima of perturbed quadratics, for many draws of noise: on average the whole of what is said to be lost is."""
    for name, value in (("UNDONE", 1.0), ("LEAST_STRETCH", -99.0), ("MOST_STRETCH", 99.0)):
        monkeypatch.setattr(problem, name, value)
    rng = np.random.default_rng(1)
    width, curvature = 160, 8000.0
    bend = curvature / width
    truth = rng.normal(0, 1, width)
    truth -= truth.mean()
    wanted, told = [], []
    for _ in range(300):
        noise = rng.laplace(0, sd / math.sqrt(2), width)
        found = (bend * truth - noise) / (bend + ridge)
        found -= found.mean()
        wanted.append((found @ truth) / (found @ found))
        told.append(stretch(float(found @ found), width, ridge, sd, curvature))
    assert np.mean(told) == pytest.approx(np.mean(wanted), rel=0.04)


def test_half_of_it_is_undone_within_limits() -> None:
    whole = 30.0 / 400.0  # without noise: ridge over curvature
    assert stretch(4.0, 1, 30.0, 0.0, 400.0) == pytest.approx(1 + whole / 2)
    assert stretch(4.0, 2, 30.0, 0.0, 400.0) == pytest.approx(1 + whole)  # half of the rows for each level
    assert stretch(4.0, 1, 1e9, 0.0, 400.0) == 1.25
    assert stretch(4.0, 1, 30.0, 1e4, 400.0) == 0.6
    assert stretch(0.0, 1, 30.0, 1.0, 400.0) == 1.0
    assert stretch(4.0, 1, 30.0, 1.0, 0.0) == 1.0


def test_every_block_is_stretched_about_its_middle_by_its_own_factor() -> None:
    fit = fit_of([-1.5, 0.5, 0.2, -0.1, 1.0, 0.0, 0.0, -1.0, 0.3, 0.3])
    found = fit.debiased(BLOCKS, True, 3.0)
    before, after = fit.weights[:, 0], found.weights[:, 0]
    assert before.tolist() == [-1.5, 0.5, 0.2, -0.1, 1.0, 0.0, 0.0, -1.0, 0.3, 0.3]
    assert after[0] == before[0]  # the intercept
    assert found.stretches[0] != found.stretches[1]
    for block, factor in zip((slice(1, 4), slice(4, 10)), found.stretches, strict=True):
        assert after[block].mean() == pytest.approx(before[block].mean())
        np.testing.assert_allclose(
            after[block] - after[block].mean(), factor * (before[block] - before[block].mean()), atol=1e-12
        )


def test_a_single_column_is_a_slope_where_there_is_no_intercept() -> None:
    fit = fit_of([1.5, 0.5, 0.2, -0.1, 1.0, 0.0, 0.0, -1.0, 0.3, 0.3])
    found = fit.debiased(BLOCKS, False, 3.0)
    assert len(found.stretches) == 3
    assert found.weights[0, 0] == pytest.approx(1.5 * found.stretches[0])
    assert found.stretches[0] > 1


def test_a_strong_effect_is_stretched_and_one_that_is_mostly_noise_is_shrunk() -> None:
    loud, faint = [2.0, -2.0, 1.0, -1.0, 0.5, -0.5], [0.02, -0.02, 0.01]
    found = fit_of([-1.0, *faint, *loud]).debiased(BLOCKS, True, 3.0)
    assert found.stretches[0] < 1 < found.stretches[1]


def test_weights_that_are_all_the_same_are_left_alone() -> None:
    fit = fit_of([-1.0, *[0.25] * 3, *[-0.5] * 6])
    found = fit.debiased(BLOCKS, True, 3.0)
    assert found.stretches == (1.0, 1.0)
    np.testing.assert_allclose(found.weights, fit.weights)


def test_a_fit_far_out_has_no_curvature_to_divide_by() -> None:
    found = fit_of([-4000.0, 0.5, 0.2, -0.1, 1.0, 0.0, 0.0, -1.0, 0.3, 0.3]).debiased(BLOCKS, True, 3.0)
    assert np.isfinite(found.weights).all()


def test_a_constant_on_levels_that_nearly_all_rows_have_is_hardly_moved() -> None:
    """The rule takes levels for equally frequent; where they are not, the mean of all probabilities must stay right."""
    rng = np.random.default_rng(3)
    names = [f"c{j}" for j in range(8)]
    schema = pf.Schema([pf.Category(name, list(range(10))) for name in names], target=pf.Category("y", ["no", "yes"]))
    shares = np.array([0.9, *[0.1 / 9] * 9])
    codes = rng.choice(10, (5000, 8), p=shares)
    yes = rng.random(5000) < 1 / (1 + np.exp(1.5 - rng.normal(0, 0.5, (8, 10))[np.arange(8), codes].sum(axis=1)))
    rows = pl.DataFrame({name: codes[:, j] for j, name in enumerate(names)} | {"y": np.where(yes, "yes", "no")})
    means = [
        pf.LogisticRegression(0.2, schema=schema, random_state=seed).fit(rows).predict_proba(rows)[:, 1].mean()
        for seed in range(6)
    ]
    assert abs(np.mean(means) - yes.mean()) < 0.03


# -- where it is used ------------------------------------------------------------------------------

LEVELS = ["a", "b", "c", "d"]
SCHEMA = pf.Schema([pf.Category(name, LEVELS) for name in "uvwx"], target=pf.Category("y", ["no", "yes"]))


def table(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (rows, 4))
    effects = np.array([[-1.5, -0.5, 0.5, 1.5], [1.0, -1.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0], [0.3, 0.3, -0.3, -0.3]])
    scores = sum(effects[j, codes[:, j]] for j in range(4)) - 1
    yes = rng.random(rows) < 1 / (1 + np.exp(-scores))
    columns = {name: np.array(LEVELS)[codes[:, j]] for j, name in enumerate("uvwx")}
    return pl.DataFrame(columns | {"y": np.where(yes, "yes", "no")})


def log_loss(model: pf.LogisticRegression, rows: pl.DataFrame) -> float:
    chances = model.predict_proba(rows)[:, 1]
    yes = (rows["y"] == "yes").to_numpy()
    return float(-np.log(np.where(yes, chances, 1 - chances)).mean())


def test_probabilities_are_better_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On average over draws of noise, where the ridge shrinks much."""
    train, test = table(4000, 0), table(4000, 1)

    def losses() -> np.ndarray:
        return np.array(
            [
                log_loss(pf.LogisticRegression(0.1, schema=SCHEMA, random_state=seed).fit(train), test)
                for seed in range(30)
            ]
        )

    stretched = losses()
    monkeypatch.setattr(problem, "UNDONE", 0.0)
    gained = losses() - stretched
    assert gained.mean() > 3 * gained.std() / math.sqrt(len(gained))


@pytest.mark.parametrize(
    "given_",
    [
        {"mechanism": pf.ObjectivePerturbation(ridge=40.0)},
        {"mechanism": pf.OutputPerturbation()},
        {"adjacency": "add-remove"},
        {"kernel": "rbf"},
    ],
    ids=["a ridge of one's own", "output", "an unknown number of rows", "a kernel"],
)
def test_other_fits_are_left_alone(given_: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = SCHEMA if "kernel" not in given_ else pf.Schema([pf.Numeric("u", -1, 1)], target=SCHEMA.target)
    rows = table(400, 0) if "kernel" not in given_ else table(400, 0).select(pl.lit(0.5).alias("u"), "y")
    fits = [pf.LogisticRegression(0.5, schema=schema, random_state=0, **given_).fit(rows)]
    monkeypatch.setattr(problem, "UNDONE", 0.9)
    fits.append(pf.LogisticRegression(0.5, schema=schema, random_state=0, **given_).fit(rows))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert not any("stretched" in note for note in fits[0].report_.notes)


def test_the_report_tells_of_it_and_a_guess_of_the_number_of_rows_is_enough() -> None:
    model = pf.LogisticRegression(0.5, schema=SCHEMA, adjacency="add-remove", expected_rows=400, random_state=0).fit(
        table(400, 0)
    )
    assert any("stretched" in note for note in model.report_.notes)
