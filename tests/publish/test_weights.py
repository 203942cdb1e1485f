"""ImportanceWeights: what it estimates, whom it charges, that nothing un-noised leaves, and that its variances are
those of simulations.
"""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import privfit as pf
from privfit.publish import diagnostics
from privfit.publish.public_tables import synthetic_table
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise, ReplayingNoise

METHODS = ("tilting", "paper", "objective")
SCHEMA = pf.Schema(
    [pf.Category("job", ["craft", "office", "none"]), pf.Numeric("age", 0, 100)],
    target=pf.Category("rich", ["no", "yes"]),
)


def people(rows: int, craft: float, rich: float, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    job = generator.choice(["craft", "office", "none"], p=[craft, 0.9 - craft, 0.1], size=rows)
    age = np.clip(generator.normal(45 - 10 * (job == "craft"), 15), 0, 100)
    return pd.DataFrame(
        {"job": job, "age": age, "rich": np.where(generator.random(rows) < rich + 0.2 * (job == "office"), "yes", "no")}
    )


PRIVATE, PUBLIC = people(4000, 0.7, 0.3, 1), people(1500, 0.2, 0.1, 2)


def is_rich(table: pd.DataFrame) -> pd.Series:
    return table["rich"] == "yes"


@pytest.mark.parametrize("method", METHODS)
def test_estimates_move_from_the_public_to_the_private_share(method: str) -> None:
    truth, unweighted = is_rich(PRIVATE).mean(), is_rich(PUBLIC).mean()
    model = pf.ImportanceWeights(50.0, schema=SCHEMA, method=method, alpha=0.01, random_state=0).fit(PRIVATE, PUBLIC)
    assert abs(model.estimate(is_rich) - truth) < 0.3 * abs(unweighted - truth)
    assert model.estimate(lambda table: table["job"] == "craft") == pytest.approx(
        (PRIVATE["job"] == "craft").mean(), abs=0.05
    )
    assert model.weights_.shape == (1500,)
    assert model.weights_.mean() == pytest.approx(1)
    assert (model.weights_ > 0).all()
    assert len(model.beta_) == len(model.beta_names_)


def test_more_budget_converges_to_the_private_means_of_every_level() -> None:
    model = pf.ImportanceWeights(1e5, schema=SCHEMA, pairs="none").fit(PRIVATE, PUBLIC)
    for level in ("craft", "office", "none"):
        assert model.estimate(lambda table, level=level: table["job"] == level) == pytest.approx(
            (PRIVATE["job"] == level).mean(), abs=0.005
        )


def test_b_is_a_function_a_column_or_numbers() -> None:
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, PUBLIC)
    assert (
        model.estimate("age") == model.estimate(lambda table: table["age"]) == model.estimate(PUBLIC["age"].to_numpy())
    )
    assert model.estimate(lambda table: 1 + 0 * table["age"]) == pytest.approx(1)
    for wrong, said in (
        ("job", "holds no numbers"),
        ("salary", "no column 'salary'"),
        (lambda table: [1.0], "one finite number"),
    ):
        with pytest.raises(pf.DataError, match=said):
            model.estimate(wrong)


def test_the_frame_is_of_the_users_kind_and_trains_other_models() -> None:
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, PUBLIC)
    frame = model.to_frame()
    assert isinstance(frame, pd.DataFrame)
    kept = PUBLIC.set_index(np.arange(1500) + 7)
    assert model.fit(PRIVATE, kept).to_frame().index.equals(kept.index)
    assert list(frame.columns) == ["job", "age", "rich", "weight"]
    assert "weight" not in PUBLIC.columns
    np.testing.assert_array_equal(frame["weight"], model.weights_)
    LogisticRegression().fit(frame[["age"]], frame["rich"], sample_weight=frame["weight"])
    for public in (pl.from_pandas(PUBLIC), pa.Table.from_pandas(PUBLIC), pl.from_pandas(PUBLIC).lazy()):
        other = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, public)
        assert isinstance(other.to_frame(), pl.DataFrame)
        np.testing.assert_array_equal(other.to_frame()["weight"].to_numpy(), model.weights_)


def test_files_are_read_and_handed_to_b_as_frames(tmp_path) -> None:
    pl.from_pandas(PRIVATE).write_parquet(tmp_path / "private.parquet")
    pl.from_pandas(PUBLIC).write_csv(tmp_path / "public.csv")
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(
        tmp_path / "private.parquet", tmp_path / "public.csv"
    )
    expected = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, PUBLIC)
    assert model.estimate(lambda table: table["rich"] == "yes") == pytest.approx(expected.estimate(is_rich))


def test_rows_are_drawn_by_weight() -> None:
    model = pf.ImportanceWeights(5.0, schema=SCHEMA, random_state=0).fit(PRIVATE, PUBLIC)
    drawn = model.draw(20_000, random_state=1)
    assert list(drawn.columns) == ["job", "age", "rich"]
    assert is_rich(drawn).mean() == pytest.approx(model.estimate(is_rich), abs=0.02)
    assert len(model.draw(3)) == 3
    with pytest.raises(pf.PrivacyError, match="n_rows=0"):
        model.draw(0)


def test_several_public_tables_are_put_together() -> None:
    parts = [PUBLIC.iloc[:500], PUBLIC.iloc[500:]]
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, parts)
    whole = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, PUBLIC)
    np.testing.assert_allclose(model.weights_, whole.weights_)
    assert model.estimate(is_rich) == pytest.approx(whole.estimate(is_rich))
    assert len(model.to_frame()) == 1500
    mixed = pf.ImportanceWeights(1.0, schema=SCHEMA, random_state=0).fit(PRIVATE, [parts[0], pl.from_pandas(parts[1])])
    np.testing.assert_allclose(mixed.to_frame()["weight"].to_numpy(), whole.weights_)


@pytest.mark.parametrize("method", METHODS)
def test_only_columns_that_all_tables_have_are_used_and_the_report_says_so(method: str) -> None:
    public = PUBLIC.drop(columns="age").assign(hobby=1.5)
    model = pf.ImportanceWeights(3.0, schema=SCHEMA, method=method, random_state=0).fit(PRIVATE, public)
    assert model.used_columns_ == ["job", "rich"]
    assert any("not used: age" in note for note in model.report_.notes)
    assert model.estimate("hobby") == pytest.approx(1.5)
    assert set(model.to_frame().columns) == {"job", "rich", "hobby", "weight"}
    both = pf.ImportanceWeights(3.0, schema=SCHEMA, method=method, random_state=0).fit(
        PRIVATE.drop(columns="job"), PUBLIC
    )
    assert both.used_columns_ == ["age", "rich"]
    with pytest.raises(pf.DataError, match="share none"):
        pf.ImportanceWeights(3.0, schema=SCHEMA, method=method, random_state=0).fit(PRIVATE, public[["hobby"]])


def test_without_a_public_table_rows_are_made_up_from_the_schema() -> None:
    model = pf.ImportanceWeights(5.0, schema=SCHEMA, synthetic_rows=5000, random_state=0).fit(PRIVATE)
    frame = model.to_frame()
    assert frame.height == 5000
    assert set(frame["job"]) == {"craft", "office", "none"}
    assert 0 <= frame["age"].min() < frame["age"].max() <= 100
    assert model.estimate(lambda table: table["rich"] == "yes") == pytest.approx(is_rich(PRIVATE).mean(), abs=0.03)
    assert model.estimate("age") == pytest.approx(PRIVATE["age"].mean(), abs=3)
    assert any("made up" in note for note in model.report_.notes)
    again = pf.ImportanceWeights(5.0, schema=SCHEMA, synthetic_rows=5000, random_state=1).fit(people(50, 0.1, 0.9, 5))
    assert again.to_frame().drop("weight").equals(frame.drop("weight"))  # the rows themselves say nothing


def test_made_up_rows_fill_every_bin_evenly() -> None:
    columns = (pf.Numeric("wage", 0, 100_000, bins="auto"), pf.Category("n", [1, 2], other=True))
    table = synthetic_table(columns, 8000)
    counts = np.histogram(table["wage"], [0, *columns[0].edges(), 100_000])[0]
    assert counts.min() > 850
    assert set(table["n"]) == {1, 2}


def test_arrays_go_by_position() -> None:
    schema = pf.Schema.box(0, 1, 2)
    generator = np.random.default_rng(0)
    private, public = generator.beta(4, 2, (3000, 2)), generator.random((800, 2))
    model = pf.ImportanceWeights(5.0, schema=schema, random_state=0).fit(private, public)
    assert model.estimate(lambda rows: rows[:, 0]) == pytest.approx(private[:, 0].mean(), abs=0.03)
    assert model.estimate("x1") == pytest.approx(private[:, 1].mean(), abs=0.03)
    assert model.to_frame().columns == ["x0", "x1", "weight"]
    with pytest.raises(pf.DataError, match="3 columns"):
        pf.ImportanceWeights(5.0, schema=schema, random_state=0).fit(private, generator.random((800, 3)))


def test_tempering_makes_weights_more_even() -> None:
    fits = [
        pf.ImportanceWeights(2.0, schema=SCHEMA, tau=tau, random_state=0).fit(PRIVATE, PUBLIC)
        for tau in (0.0, 0.5, 1.0)
    ]
    np.testing.assert_allclose(fits[0].weights_, 1)
    assert fits[0].effective_rows_ == pytest.approx(1500)
    assert fits[0].effective_rows_ > fits[1].effective_rows_ > fits[2].effective_rows_
    half, whole = (np.log(fit.weights_ / fit.weights_[0]) for fit in fits[1:])
    np.testing.assert_allclose(half, 0.5 * whole, atol=1e-9)


def test_a_few_heavy_rows_are_told_of() -> None:
    public = pd.DataFrame({"c": ["a"] * 999 + ["b"]})
    private = pd.DataFrame({"c": ["b"] * 5000})
    schema = pf.Schema([pf.Category("c", ["a", "b"])])
    with pytest.warns(UserWarning, match="heaviest hundredth"):
        model = pf.ImportanceWeights(10.0, schema=schema, random_state=0).fit(private, public)
    assert model.effective_rows_ < 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.ImportanceWeights(10.0, schema=schema, random_state=0).fit(private, pd.DataFrame({"c": ["a", "b"] * 100}))


# -- who pays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_fit_charges_what_it_says(tmp_path, method: str, adjacency: str) -> None:
    ledger = pf.Ledger(tmp_path / "budget.db", epsilon=1.0)
    model = pf.ImportanceWeights(
        0.4, schema=SCHEMA, method=method, adjacency=adjacency, expected_rows=4000, ledger=ledger
    )
    clone(model).fit(PRIVATE, PUBLIC)
    model.fit(PRIVATE, PUBLIC)
    assert ledger.spent == pytest.approx(0.8)
    assert model.report_.private
    assert (model.report_.epsilon, model.report_.adjacency) == (0.4, adjacency)
    before = dict(model.__dict__)
    with pytest.raises(pf.BudgetExceeded):
        model.fit(PRIVATE, PUBLIC)
    assert model.__dict__ == before


@pytest.mark.parametrize("method", METHODS)
def test_what_is_refused_is_not_charged(tmp_path, method: str) -> None:
    ledger = pf.Ledger(tmp_path / "budget.db", epsilon=1.0)
    model = pf.ImportanceWeights(0.4, schema=SCHEMA, method=method, ledger=ledger)
    broken = PRIVATE.assign(job="unheard of")
    for private, public in (
        (broken, PUBLIC),
        (PRIVATE, broken),
        (PRIVATE.iloc[:0], PUBLIC),
        (PRIVATE, PUBLIC.iloc[:0]),
    ):
        with pytest.raises(pf.DataError):
            model.fit(private, public)
    assert ledger.spent == 0
    assert not hasattr(model, "weights_")
    with pytest.raises(pf.DataError, match="In the public table"):
        model.fit(PRIVATE, broken)
    with pytest.raises(pf.PrivacyError, match="random_state"):
        pf.ImportanceWeights(0.4, schema=SCHEMA, method=method, ledger=ledger, random_state=0).fit(PRIVATE, PUBLIC)


def neighbours(adjacency: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    table = people(60, 0.4, 0.3, 9)
    table.loc[0] = ["none", 100.0, "yes"]
    if adjacency == "add-remove":
        return table, table.iloc[1:].reset_index(drop=True)
    other = table.copy()
    other.loc[0] = ["craft", 0.0, "no"]
    return table, other


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_with_the_same_noisy_values_neighbours_cannot_be_told_apart(
    monkeypatch, method: str, adjacency: str, delta: float
) -> None:
    """End to end: everything that leaves a fit is a function of noisy values and public facts."""
    first = RecordingNoise()
    fits = []
    for place, table in enumerate(neighbours(adjacency)):
        source = ReplayingNoise(first.calls) if place else first
        monkeypatch.setattr("privfit.models.private.noise_source", lambda _, source=source: source)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fit = pf.ImportanceWeights(
                0.5, delta=delta, schema=SCHEMA, method=method, adjacency=adjacency, expected_rows=60
            )
            fit.set_params(ledger=pf.Ledger(epsilon=1.0, delta=1e-4)).fit(table, PUBLIC)
        fits.append((fit, [str(one.message) for one in told]))
    (one, said), (two, also_said) = fits
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.beta_, two.beta_)
    assert one.report_ == two.report_
    assert said == also_said
    assert (one.variance_bound(is_rich), one.estimate(is_rich)) == (two.variance_bound(is_rich), two.estimate(is_rich))
    np.testing.assert_array_equal(one.covariance(), two.covariance())


def test_noise_covers_what_a_neighbour_moves(monkeypatch) -> None:
    for method, adjacency in itertools.product(("tilting", "paper"), ("replace-one", "add-remove")):
        noises = [RecordingNoise(), RecordingNoise()]
        sources = iter(noises)
        monkeypatch.setattr("privfit.models.private.noise_source", lambda _, sources=sources: next(sources))
        for table in neighbours(adjacency):
            model = pf.ImportanceWeights(0.5, schema=SCHEMA, method=method, adjacency=adjacency, expected_rows=60)
            model.set_params(ledger=pf.Ledger(epsilon=1.0)).fit(table, PUBLIC)
        (one,), (two,) = noises[0].calls, noises[1].calls
        assert (one.kind, one.scale) == (two.kind, two.scale)
        moved = np.linalg.norm((one.values - two.values).astype(float), 1 if one.kind == "laplace" else 2)
        assert 0 < moved <= 0.5 * one.scale * (1 + 1e-12)


# -- variances and biases --------------------------------------------------------------------------


def test_the_pull_is_the_derivative_and_half_of_what_the_paper_prints() -> None:
    generator = np.random.default_rng(0)
    model = pf.ImportanceWeights(2.0, schema=SCHEMA, method="paper", random_state=0).fit(PRIVATE, PUBLIC.iloc[:200])
    design, beta = model._released.design, model.beta_
    values = generator.random(200)
    slope = diagnostics.estimate_gradient(values, model.weights_, design)

    def estimate(at: np.ndarray) -> float:
        weights = np.exp(design @ at)
        return float(weights @ values / weights.sum())

    steps = np.eye(len(beta)) * 1e-5
    expected = [(estimate(beta + step) - estimate(beta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope, expected, atol=1e-8)
    dense, w = design.toarray(), model.weights_ / model.weights_.sum()
    printed = np.einsum("i,j,ij,ijk->k", w, w, values[:, None] - values, dense[:, None] - dense[None])
    np.testing.assert_allclose(printed, 2 * slope, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_variances_are_those_of_simulations(method: str) -> None:
    estimates, betas = [], []
    for seed in range(60):
        private = people(2000, 0.7, 0.3, 100 + seed)
        model = pf.ImportanceWeights(1.0, schema=SCHEMA, method=method, random_state=seed, pairs="none").fit(
            private, PUBLIC
        )
        estimates.append(model.estimate(is_rich))
        betas.append(model.beta_)
    found = np.var(estimates)
    slope = diagnostics.estimate_gradient(is_rich(PUBLIC).to_numpy(float), model.weights_, model._released.design)
    assert 0.4 * found < slope @ model.covariance() @ slope < 2.5 * found
    assert found < 2 * model.variance_bound(is_rich)
    assert 0.4 < np.trace(model.covariance()) / np.cov(np.array(betas).T).trace() < 2.5


def test_lemma_7_is_corrected() -> None:
    """Noise of density exp(-|b| / scale) in d columns has variance (d + 1) scale^2 in each, by drawing it; the paper
    prints d / (d + 1).
    """
    model = pf.ImportanceWeights(0.5, schema=SCHEMA, method="paper", random_state=0).fit(PRIVATE, PUBLIC)
    event, d = model._released.event, len(model.beta_)
    assert event.noise_sd**2 == pytest.approx((d + 1) * (event.scale / event.unit) ** 2)
    generator = np.random.default_rng(0)
    draws = generator.gamma(d, event.scale, 20_000)[:, None] * (lambda z: z / np.linalg.norm(z, axis=1, keepdims=True))(
        generator.standard_normal((20_000, d))
    )
    assert draws.var() / event.unit**2 == pytest.approx(event.noise_sd**2, rel=0.05)


def test_narrow_columns_have_more_noise_and_the_bound_is_that_of_the_noisiest() -> None:
    """Columns that share one draw of octahedra have different deviations."""
    model = pf.ImportanceWeights(0.5, schema=SCHEMA, method="objective", random_state=0).fit(PRIVATE, PUBLIC)
    fit = model._released
    assert fit.noise.sds.shape == model.beta_.shape
    assert fit.noise.sds.max() > 1.2 * fit.noise.sds.min() > 0
    slope = diagnostics.estimate_gradient(is_rich(PUBLIC).to_numpy(float), model.weights_, model._released.design)
    assert model.variance_bound(is_rich) > (fit.noise.sds.max() / fit.ridge) ** 2 * float(slope @ slope)


@pytest.mark.parametrize("method", METHODS)
def test_the_bias_is_that_of_endless_rows_without_noise(method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pf.ImportanceWeights(1.0, schema=SCHEMA, method=method, alpha=0.1, random_state=0, pairs="none").fit(
            PRIVATE, PUBLIC
        )
        bias = model.bias(is_rich, PRIVATE)
    exact = pf.ImportanceWeights(1e6, schema=SCHEMA, method=method, alpha=0.1, random_state=0, pairs="none").fit(
        PRIVATE, PUBLIC
    )
    assert bias == pytest.approx(exact.estimate(is_rich) - is_rich(PRIVATE).mean(), abs=3e-3)
    assert abs(bias) < 1e-3 if method == "tilting" else abs(bias) > 0.005
    with pytest.warns(pf.PrivacyWarning, match="without noise"):
        model.bias(is_rich, PRIVATE)


@pytest.mark.filterwarnings("ignore:.*heaviest hundredth")
def test_an_alpha_that_privacy_does_not_allow_is_raised_and_told() -> None:
    small = pf.ImportanceWeights(0.01, schema=SCHEMA, method="objective", alpha=1e-4, random_state=0).fit(
        PRIVATE, PUBLIC
    )
    assert any("alpha was raised from 0.0001" in note for note in small.report_.notes)
    usual = pf.ImportanceWeights(1.0, schema=SCHEMA, method="objective", alpha=0.1, random_state=0).fit(PRIVATE, PUBLIC)
    assert not any("raised" in note for note in usual.report_.notes)
    assert small.variance_bound(is_rich) > usual.variance_bound(is_rich) > 0


@pytest.mark.parametrize("method", ["paper", "objective"])
def test_every_row_counts_the_same_without_balance(method: str) -> None:
    """The paper's footnote 2: with few public rows the regression hardly looks at them, and its ridge is shared by all
    rows.
    """
    fits = [
        pf.ImportanceWeights(1e6, schema=SCHEMA, method=method, balanced=balanced, random_state=0).fit(PRIVATE, PUBLIC)
        for balanced in (True, False)
    ]
    assert np.abs(fits[0].beta_ - fits[1].beta_).max() > 0.01
    assert fits[0].report_.repairs["ridge"] == pytest.approx(400)
    assert fits[1].report_.repairs["ridge"] == pytest.approx(550)


def test_a_direct_count_is_better_for_one_question() -> None:
    assert diagnostics.direct_count_deviation(21_000, 0.1) == pytest.approx(10 * np.sqrt(2) / 21_000)


@pytest.mark.parametrize(
    ("wrong", "beats"),
    [
        ({"method": "magic"}, ("method='magic'", "one of", "Use 'tilting'")),
        ({"tau": 2}, ("tau=2", "from 0", "Use 1")),
        ({"synthetic_rows": 0}, ("synthetic_rows=0", "at least 1", "Use 20_000")),
        ({"pairs": "few"}, ("pairs='few'", "it is 'auto'", "Write pairs=")),
        ({"method": "paper", "alpha": 0}, ("alpha=0", "positive", "0.1")),
    ],
)
def test_parameters_that_mean_nothing_are_refused_in_three_beats(wrong: dict, beats: tuple[str, ...]) -> None:
    with pytest.raises(pf.PrivacyError) as refused:
        pf.ImportanceWeights(1.0, schema=SCHEMA, **wrong).fit(PRIVATE, PUBLIC)
    assert_told_in_order(str(refused.value), beats)


def test_a_column_called_weight_is_refused_before_the_charge() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.DataError, match="the name of the weights"):
        pf.ImportanceWeights(1.0, schema=SCHEMA, ledger=ledger).fit(PRIVATE, PUBLIC.assign(weight=1.0))
    assert ledger.spent.epsilon == 0


def test_the_private_table_is_no_public_one() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    for public in (PRIVATE, [PUBLIC, PRIVATE]):
        with pytest.raises(pf.PrivacyError, match="also given as the public one"):
            pf.ImportanceWeights(1.0, schema=SCHEMA, ledger=ledger).fit(PRIVATE, public)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("method", ["tilting", "paper", "objective"])
def test_a_fitted_model_can_be_pickled(method: str) -> None:
    model = pf.ImportanceWeights(1.0, schema=SCHEMA, method=method, random_state=0).fit(PRIVATE, PUBLIC)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).weights_, model.weights_)


def test_a_box_matches_public_columns_by_position_or_asks_for_names() -> None:
    rng = np.random.default_rng(0)
    private = pl.DataFrame({"SECRET77": rng.uniform(0, 1, 200), "SECRET78": rng.uniform(0, 1, 200)})
    weights = pf.ImportanceWeights(1.0, schema=pf.Schema.box(0, 1), random_state=0)
    with pytest.raises(
        pf.DataError, match=r"A box knows the private columns by position: give a schema that lists names"
    ) as caught:
        weights.fit(private, private.head(50))
    assert "SECRET" not in str(caught.value)
    assert len(weights.fit(private, private.head(50).to_numpy()).weights_) == 50
