"""The published regularised regressions: printed as they are printed, honest where they claim to be, and never taken
for private.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, Ridge

import privfit as pf
from privfit.datasets.census import census_schema, generated_census
from privfit.privacy import SeededNoise
from privfit_papers.bench import data, histogram, printed
from privfit_papers.bench.cps import STATES, cps_wages
from privfit_papers.bench.histogram import Grid, HistogramFits, cells_per_axis, noisy_counts, weighted_regression
from privfit_papers.bench.penalty import ALPHAS, SIZES, Penalty, least_test_error, penalties
from privfit_papers.bench.printed import PrintedFunctional, Quadratic, printed_sensitivity
from privfit_papers.bench.regularised import LEAST_SQUARES, MEAN, Spread, error_spreads
from privfit_papers.bench.split import Outcome, random_split
from tests.support.beats import assert_told_in_order

OURS = {"ours": lambda epsilon, schema, seed: pf.LinearRegression(epsilon, schema=schema, random_state=seed)}
FOUR = ("age", "gender", "nativity", "education")
MODELS = list(ALPHAS)


def four_predictors() -> pf.Schema:
    whole = census_schema()
    return pf.Schema([column for column in whole.features if column.name in FOUR], target=whole.target)


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return generated_census(20_000, seed=5)


@pytest.fixture(scope="module")
def split(people):
    return random_split(people, four_predictors(), seed=0)


@pytest.fixture(scope="module")
def spreads(people) -> dict[tuple[str, float | None], Spread]:
    """Figure 1's methods on four predictors, eight runs."""
    results = error_spreads(
        "people", people, four_predictors(), OURS, [PrintedFunctional(), HistogramFits()], (0.2, 3.2), runs=8
    )
    return {(spread.method, spread.epsilon): spread for spread in results}


# -- penalties -------------------------------------------------------------------------------------


def table(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    return X, X @ [0.6, -0.3, 0.1, 0.0] + rng.normal(0, 0.3, n), rng.integers(1, 6, n).astype(float)


def by_search(X: np.ndarray, y: np.ndarray, weights: np.ndarray, size: float, alpha: float) -> np.ndarray:
    """The minimiser of the paper's objective by a general solver: w is a difference of two non-negative parts, so that
    nothing has kinks.
    """
    d = X.shape[1]

    def objective(parts: np.ndarray) -> tuple[float, np.ndarray]:
        w = parts[:d] - parts[d:]
        slope = -2 * X.T @ (weights * (y - X @ w)) + 2 * size * alpha * w
        value = weights @ (y - X @ w) ** 2 + size * (alpha * w @ w + (1 - alpha) * parts.sum())
        return float(value), np.concatenate([slope, -slope]) + size * (1 - alpha)

    found = minimize(
        objective,
        np.zeros(2 * d),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * d),
        options={"ftol": 1e-16, "gtol": 1e-9},
    )
    return found.x[:d] - found.x[d:]


@pytest.mark.parametrize(("alpha", "reference"), [(0.0, Lasso), (0.3, ElasticNet), (0.5, ElasticNet), (1.0, Ridge)])
def test_the_papers_penalty_is_the_translated_one_of_sklearn(alpha: float, reference: type) -> None:
    """Equation 4, minimised by search, against scikit-learn with the translated parameters."""
    X, y, _ = table()
    penalty = Penalty(40.0, alpha)
    settings = penalty.in_sklearn(len(y))
    given = {Lasso: {"alpha": settings["alpha"]}, ElasticNet: settings, Ridge: {"alpha": penalty.ridge}}[reference]
    fitted = reference(fit_intercept=False, **given, **({} if reference is Ridge else {"tol": 1e-12})).fit(X, y).coef_
    np.testing.assert_allclose(fitted, by_search(X, y, np.ones(len(y)), 40.0, alpha), atol=2e-5)


def test_one_minus_alpha_is_the_l1_ratio_at_the_ends_only() -> None:
    """The tempting l1_ratio = 1 - alpha is another objective in between: scikit-learn halves the L2 term."""
    assert Penalty(1.0, 0.0).in_sklearn(10)["l1_ratio"] == 1
    assert Penalty(1.0, 1.0).in_sklearn(10)["l1_ratio"] == 0
    assert Penalty(1.0, 0.5).in_sklearn(10) == pytest.approx({"alpha": 0.075, "l1_ratio": 1 / 3})
    X, y, _ = table()
    naive = ElasticNet(alpha=40.0 / (2 * len(y)), l1_ratio=0.5, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    assert np.abs(naive - by_search(X, y, np.ones(len(y)), 40.0, 0.5)).max() > 0.01


@pytest.mark.parametrize("model", MODELS)
def test_weighted_regressions_minimise_the_papers_objective_on_weighted_rows(model: str) -> None:
    X, y, weights = table(seed=1)
    size = 0.0 if model == "linear" else 60.0
    regression = weighted_regression(model, Penalty(size, ALPHAS[model]), float(weights.sum()), intercept=False)
    fitted = regression.set_params(
        **({"tol": 1e-12} if hasattr(regression, "tol") and model in ("lasso", "elastic net") else {})
    )
    fitted = fitted.fit(X, y, sample_weight=weights).coef_
    np.testing.assert_allclose(fitted, by_search(X, y, weights, size, ALPHAS[model]), atol=2e-5)


def test_every_model_but_the_linear_one_tries_every_size() -> None:
    assert penalties("linear", 100) == [Penalty(0.0, 1.0)]
    assert [penalty.size for penalty in penalties("lasso", 100)] == [100 * size for size in SIZES]
    assert {penalty.alpha for penalty in penalties("elastic net", 100)} == {0.5}
    assert least_test_error(penalties("ridge", 1), lambda penalty: abs(penalty.size - 0.01)).size == pytest.approx(0.01)


# -- the functional mechanism as printed -----------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_without_noise_the_printed_models_are_sklearns(model: str) -> None:
    X, y, _ = table()
    penalty = Penalty(0.0 if model == "linear" else 30.0, ALPHAS[model])
    weights, bounded = Quadratic(X.T @ X, X.T @ y).stationary(penalty)
    assert bounded
    settings = penalty.in_sklearn(len(y))
    references = {
        "linear": LinearRegression(fit_intercept=False),
        "ridge": Ridge(alpha=30.0, fit_intercept=False),
        "lasso": Lasso(alpha=settings["alpha"], fit_intercept=False, tol=1e-12),
        "elastic net": ElasticNet(**settings, fit_intercept=False, tol=1e-12),
    }
    np.testing.assert_allclose(weights, references[model].fit(X, y).coef_, atol=1e-6)
    assert (weights[3] == 0) == (model in ("lasso", "elastic net")), "the idle column leaves where there is an L1 term"


def test_noise_is_on_every_entry_with_the_printed_scale() -> None:
    """All d^2 entries apart, the matrix no longer symmetric; the linear coefficient 2v gets as much, so v half."""
    d, epsilon = 5, 0.7
    assert printed_sensitivity(d) == 2 * (d + 1) ** 2 == 72
    draws = [Quadratic(np.zeros((d, d)), np.zeros(d)).noised(epsilon, SeededNoise(seed)) for seed in range(400)]
    matrices = np.array([draw.matrix for draw in draws])
    scale = printed_sensitivity(d) / epsilon
    assert np.abs(matrices).mean() == pytest.approx(scale, rel=0.04)
    assert np.abs([draw.vector for draw in draws]).mean() == pytest.approx(scale / 2, rel=0.08)
    assert (matrices[0] != matrices[0].T).sum() == d * d - d
    assert abs(np.corrcoef(matrices[:, 0, 1], matrices[:, 1, 0])[0, 1]) < 0.15


def test_a_lost_symmetry_changes_no_value_of_the_objective() -> None:
    """The paper says that symmetrising is not allowed; w'Mw is the same number, so there is nothing to allow."""
    noisy = Quadratic(np.zeros((3, 3)), np.zeros(3)).noised(1.0, SeededNoise(0)).matrix
    for w in np.random.default_rng(0).normal(size=(5, 3)):
        assert w @ noisy @ w == pytest.approx(w @ ((noisy + noisy.T) / 2) @ w)


@pytest.mark.parametrize("lasso", [0.0, 1.0, 1000.0])
def test_an_l1_penalty_gives_no_minimum_to_what_has_none(lasso: float) -> None:
    """Against the paper's hope: along a downward direction the square wins over the L1 norm, whatever its size."""
    objective = Quadratic(np.diag([2.0, -0.5]), np.array([1.0, 0.3]))
    _, bounded = objective.stationary(Penalty(lasso, 0.0))
    assert not bounded
    far = np.array([0.0, 1e6])
    assert far @ objective.matrix @ far - 2 * objective.vector @ far + lasso * np.abs(far).sum() < -1e10
    assert objective.stationary(Penalty(0.6, 1.0))[1], "an L2 term above the lowest eigenvalue does"


def test_where_there_is_no_minimum_a_point_without_slope_is_returned() -> None:
    matrix, vector = np.array([[2.0, 0.3, 0.1], [0.3, -0.5, 0.2], [0.1, 0.2, 1.0]]), np.array([1.0, 0.4, 0.05])
    for lasso in (0.0, 0.3, 0.9):
        weights, bounded = Quadratic(matrix, vector).stationary(Penalty(lasso, 0.0))
        assert not bounded
        active = weights != 0
        slope = 2 * matrix @ weights - 2 * vector + lasso * np.sign(weights)
        assert active.any()
        assert np.abs(slope[active]).max() < 1e-8


def test_a_local_minimum_near_zero_is_taken_where_there_is_one() -> None:
    """A large L1 term makes zero a local minimum of an objective without a global one; a smaller one lets the upward
    directions in.
    """
    objective = Quadratic(np.array([[2.0, 0.1], [0.1, -0.5]]), np.array([1.0, 0.3]))
    assert objective.stationary(Penalty(2.5, 0.0))[0].tolist() == [0.0, 0.0]
    weights, bounded = objective.stationary(Penalty(1.0, 0.0))
    assert weights == pytest.approx([0.25, 0.0])
    assert not bounded
    around = weights + np.random.default_rng(0).normal(0, 1e-3, (500, 2))
    values = [w @ objective.matrix @ w - 2 * objective.vector @ w + np.abs(w).sum() for w in (weights, *around)]
    assert min(values) == values[0]


def test_columns_are_scaled_by_the_data_as_printed(people) -> None:
    """Stretching the public bounds changes nothing: the printed method never looks at them. (That is why it is not
    private.)
    """
    schema = four_predictors()
    wide = pf.Schema(
        [replace(c, low=c.low - 50, high=c.high + 90) if isinstance(c, pf.Numeric) else c for c in schema.features],
        schema.target,
    )
    errors = [PrintedFunctional().outcomes(random_split(people, s, 0), 1.0, 7) for s in (schema, wide)]
    assert errors[0] == errors[1]


def test_the_penalty_is_the_best_on_the_test_rows_or_knows_nothing_of_the_noise(split) -> None:
    own, blind = (PrintedFunctional(tuned_on=tuned).outcomes(split, 0.05, 3) for tuned in ("noisy", "exact"))
    assert own["printed linear"] == blind["printed linear"]
    for model in ("ridge", "lasso", "elastic net"):
        assert own[f"printed {model}"].error < blind[f"printed {model}"].error, model
    assert own["printed ridge"].error < own["printed linear"].error / 1.2


def test_without_an_intercept_as_printed_the_models_do_worse(split) -> None:
    with_one, without = (PrintedFunctional(intercept=given).outcomes(split, None, 0) for given in (True, False))
    assert all(without[name].error > 1.02 * with_one[name].error for name in with_one)


# -- the noisy histogram ---------------------------------------------------------------------------


def test_cells_follow_the_rate() -> None:
    assert cells_per_axis(250_000, 5) == math.floor((250_000 / math.sqrt(math.log(250_000))) ** (2 / 7)) == 24
    assert cells_per_axis(3, 6) == cells_per_axis(0, 1) == 2
    assert cells_per_axis(10**6, 3) > cells_per_axis(10**4, 3)


def test_the_histogram_counts_every_row_once_in_its_cell() -> None:
    schema = pf.Schema([pf.Numeric("x", 0, 10), pf.Category("c", ["a", "b", "z"])], target=pf.Numeric("y", 0, 1))
    grid = Grid.of(schema, 100, cells=2)
    assert grid.shape == (2, 3, 2)
    part = SimpleNamespace(
        features=np.array([[0.0, 0], [10.0, 2], [5.0, 1], [4.99, 1]]), target=np.array([0.0, 1.0, 0.2, 0.9])
    )
    counts = grid.counts(part).reshape(grid.shape)
    assert counts.sum() == 4
    assert counts[0, 0, 0] == counts[1, 2, 1] == counts[1, 1, 0] == counts[0, 1, 1] == 1


def test_replacing_one_row_moves_two_counts_by_one(split) -> None:
    """What the noise of scale 2 / epsilon is for: at most 2 in L1, and 2 is reached."""
    grid = Grid.of(split.schema, len(split.train.target))
    exact = grid.counts(split.train)
    moved = []
    for row, other in ((0, 5), (17, 4000), (3, 3)):
        features, target = split.train.features.copy(), split.train.target.copy()
        features[row], target[row] = features[other], target[other]
        moved.append(np.abs(grid.counts(replace(split.train, features=features, target=target)) - exact).sum())
    assert max(moved) == 2
    assert moved[-1] == 0
    assert exact.sum() == len(split.train.target)


def test_counts_get_laplace_noise_for_two_moves() -> None:
    noise = noisy_counts(np.zeros(200_000, dtype=np.int64), 0.5, SeededNoise(0))
    decay = math.exp(-0.5 / 2)
    assert noise.var() == pytest.approx(2 * decay / (1 - decay) ** 2, rel=0.03)
    assert (noise == 0).mean() == pytest.approx((1 - decay) / (1 + decay), rel=0.05)


def test_joined_cells_give_the_fit_of_all_cells() -> None:
    """Cells that differ in the target alone are joined; a fit on every positive cell by itself has the same
    coefficients.
    """
    schema = pf.Schema([pf.Numeric("x", -1, 1), pf.Category("c", [0, 1])], target=pf.Numeric("y", -1, 1))
    grid = Grid.of(schema, 0, cells=6)
    counts = np.random.default_rng(0).integers(-4, 9, grid.shape)
    centres, means, weights = grid.positive(counts.ravel())
    sixths = (2 * np.arange(6) + 1) / 6 - 1
    rows = [
        (sixths[i], 2 * j - 1, sixths[k], counts[i, j, k])
        for i in range(6)
        for j in range(2)
        for k in range(6)
        if counts[i, j, k] > 0
    ]
    x, c, y, w = np.array(rows).T
    assert weights.sum() == w.sum()
    for model in MODELS:
        penalty = Penalty(0.0 if model == "linear" else 5.0, ALPHAS[model])
        joined = weighted_regression(model, penalty, w.sum(), True).fit(centres, means, sample_weight=weights)
        apart = weighted_regression(model, penalty, w.sum(), True).fit(np.column_stack([x, c]), y, sample_weight=w)
        np.testing.assert_allclose(joined.coef_, apart.coef_, atol=1e-4)
        assert joined.intercept_ == pytest.approx(apart.intercept_, abs=1e-4)


def test_a_histogram_without_a_positive_cell_predicts_the_middle(monkeypatch, split) -> None:
    monkeypatch.setattr(histogram, "noisy_counts", lambda counts, epsilon, noise: counts * 0 - 1)
    found = HistogramFits().outcomes(split, 0.1, 0)
    middle = np.sqrt(np.mean((split.test.target - 75_000) ** 2))
    assert [outcome.error for outcome in found.values()] == [pytest.approx(middle)] * 4


def test_a_grid_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError) as refused:
        Grid.of(census_schema(), 1000, cells=20)
    assert_told_in_order(str(refused.value), ["13 columns", "cells", "at most 10,000,000", "Choose fewer columns"])


# -- side by side ----------------------------------------------------------------------------------


def test_every_method_and_epsilon_is_told_once_with_its_spread(spreads) -> None:
    names = {method for method, epsilon in spreads if epsilon == 0.2}
    assert names == {"ours"} | {f"{kind} {model}" for kind in ("printed", "DPME") for model in MODELS}
    assert {method for method, epsilon in spreads if epsilon is None} == (names - {"ours"}) | {MEAN, LEAST_SQUARES}
    for spread in spreads.values():
        assert spread.runs == 8
        assert (
            spread.low <= spread.lower_quartile <= spread.median <= spread.upper_quartile <= spread.high <= spread.worst
        )
        assert spread.deviation > 0
        assert spread.to_dict()["mean"] == spread.mean


def test_the_papers_order_and_ours_before_it(spreads) -> None:
    """Figure 1: the functional mechanism beats the histogram, for every model and epsilon.

    Ours beats both, without looking at test rows.
    """
    for epsilon in (0.2, 3.2):
        ours = spreads["ours", epsilon]
        assert ours.worse_than_mean == 0
        for model in MODELS:
            functional, histograms = spreads[f"printed {model}", epsilon], spreads[f"DPME {model}", epsilon]
            assert histograms.worse_than_mean == 1 or epsilon == 3.2
            assert functional.median < histograms.median
            assert ours.median < (1.0 if epsilon < 1 else 1.001) * functional.median, (
                "where noise hardly matters they are the same"
            )
    assert spreads["ours", 0.2].worst < spreads["printed linear", 0.2].mean


def test_noise_fades_as_epsilon_grows(spreads) -> None:
    for method in ("ours", "printed linear", "DPME linear"):
        assert spreads[method, 0.2].mean > spreads[method, 3.2].mean
    assert spreads["ours", 3.2].mean == pytest.approx(spreads[LEAST_SQUARES, None].mean, rel=0.002)
    assert spreads["printed linear", None].mean == pytest.approx(spreads[LEAST_SQUARES, None].mean, rel=0.002)


def test_the_printed_fits_have_the_outliers_that_the_paper_shows_and_ours_do_not(people) -> None:
    """Figure 2, all predictors: objectives without a minimum, runs far beyond the box, means far above medians.

    Penalty chosen without noise.
    """
    results = error_spreads(
        "people", people, census_schema(), OURS, [PrintedFunctional(tuned_on="exact")], (1.6,), runs=15
    )
    named = {spread.method: spread for spread in results if spread.epsilon == 1.6}
    for model in MODELS:
        spread = named[f"printed {model}"]
        assert spread.unbounded > 0.5
        assert spread.outliers > 0.1
        assert spread.worst > 5 * spread.median
        assert spread.mean > 1.5 * spread.median
        assert spread.worse_than_mean > 0.3
    ours = named["ours"]
    assert ours.worst < 1.05 * ours.median
    assert ours.worse_than_mean == ours.unbounded == 0


def test_a_spread_says_what_a_boxplot_would() -> None:
    outcomes = [Outcome(float(value)) for value in (1, 2, 3, 4)] + [Outcome(100.0, bounded=False)]
    spread = Spread.of("t", "m", 1.0, outcomes, [2.5] * 5)
    assert (spread.median, spread.lower_quartile, spread.upper_quartile, spread.worst) == (3, 2, 4, 100)
    assert (spread.mean, spread.runs) == (22, 5)
    assert (spread.outliers, spread.worse_than_mean, spread.unbounded) == pytest.approx((0.2, 0.6, 0.2))


def test_the_same_numbers_come_out_twice_and_splits_differ(people) -> None:
    def once():
        return error_spreads(
            "people", people.head(2000), four_predictors(), OURS, [PrintedFunctional(), HistogramFits()], (1.0,), runs=2
        )

    assert once() == once()
    first, second = (random_split(people, four_predictors(), seed) for seed in (0, 1))
    assert not first.test.frame.equals(second.test.frame)
    assert first.train.frame.height == 16_000
    assert first.test.frame.height == 4_000


# -- never private ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start",
    [
        lambda ledger: PrintedFunctional(ledger=ledger),
        lambda ledger: HistogramFits(ledger=ledger),
        lambda ledger: error_spreads("t", generated_census(10), census_schema(), {}, runs=1, ledger=ledger),
    ],
    ids=["printed", "histogram", "comparison"],
)
def test_a_ledger_is_refused_in_three_beats_and_charged_nothing(start) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError) as refused:
        start(ledger)
    assert_told_in_order(str(refused.value), ["A ledger was given", "private fits only", "Leave it out"])
    assert ledger.entries() == []


def test_the_comparisons_are_not_part_of_the_library() -> None:
    """They live under bench/ and no public name leads to them."""
    assert all(module.__name__.startswith("privfit_papers.bench.") for module in (printed, histogram))
    assert not {"PrintedFunctional", "HistogramFits"} & set(dir(pf))


# -- real data -------------------------------------------------------------------------------------


def real_wages(**given):
    try:
        return cps_wages(data.data_folder(), **given)
    except data.NoData as missing:
        pytest.skip(str(missing))


def test_wages_of_heads_fit_their_public_schema() -> None:
    frame, schema = real_wages()
    assert frame.height == 278_660
    assert frame["age_head"].min() >= 16
    assert [column.name for column in schema.features] == ["age_head", "MARS", "XTOT", "nu18", "fips"]
    assert schema.target == pf.Numeric("e00200p", 0, 300_000)
    assert len(STATES) == 51
    for column in schema.features:
        values = frame[column.name]
        if isinstance(column, pf.Category):
            assert set(values.unique()) <= set(column.levels)
        else:
            assert values.is_between(column.low, column.high).mean() > 0.999
    assert real_wages(highest=100_000)[1].target == pf.Numeric("e00200p", 0, 100_000)


def test_a_folder_without_the_wages_is_told(tmp_path) -> None:
    with pytest.raises(data.NoData, match=r"no cps-tax-units.csv.gz. Put it there"):
        cps_wages(tmp_path)


def test_on_real_wages_the_order_is_the_papers_and_ours_is_first() -> None:
    frame, schema = real_wages()
    few = pf.Schema([column for column in schema.features if column.name != "fips"], schema.target)
    results = error_spreads("wages", frame, few, OURS, [PrintedFunctional(), HistogramFits(cells=12)], (0.2,), runs=2)
    named = {spread.method: spread for spread in results if spread.epsilon == 0.2}
    assert all(named["ours"].mean < named[f"printed {model}"].mean < named[f"DPME {model}"].mean for model in MODELS)
    assert named["ours"].worse_than_mean == 0
