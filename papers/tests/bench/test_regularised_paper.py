"""The paper of Dandekar, Basu and Bressan: one split measured on a small table, and checks that can fail."""

from __future__ import annotations

import numpy as np
import pytest

import privfit as pf
from privfit_papers.bench.grid import Cell
from privfit_papers.bench.histogram import Counted, HistogramFits
from privfit_papers.bench.papers import paper_named
from privfit_papers.bench.papers.regularised_regression import fits, paper
from privfit_papers.bench.penalty import ALPHAS, Penalty
from privfit_papers.bench.printed import PrintedFunctional, Quadratic, Scaled
from privfit_papers.bench.results import Results, Value
from privfit_papers.bench.sources import Source
from privfit_papers.bench.split import Split, random_split
from privfit_papers.bench.stand_ins import men_of_1980
from tests.support.noise import RecordingNoise

PAPER = paper_named("regularised-regression")


@pytest.fixture(scope="module")
def men() -> fits.People:
    frame, schema = men_of_1980(3000)
    return fits.People(frame, schema, "1980 census", "generated", "Made up.")


@pytest.fixture(scope="module")
def few(men: fits.People) -> list[Value]:
    return list(fits.measure_few(Cell("few predictors", "men", "split", 0, quick=True), men))


@pytest.fixture(scope="module")
def every(men: fits.People) -> list[Value]:
    people = fits.people(Source(download=False), rows=3000)
    tables = {"men": men, "people": people}
    return [
        value
        for name, table in tables.items()
        for value in fits.measure_all(Cell("all predictors", name, "split", 0, quick=True), table)
    ]


def test_every_figure_shows_what_its_cells_emit(few: list[Value], every: list[Value]) -> None:
    emitted = {"few predictors": few, "all predictors": every}
    assert [figure.number for figure in PAPER.figures] == ["1", "2", "3"]
    for figure in PAPER.figures:
        results = Results(emitted[figure.experiment])
        assert set(figure.panels) == set(results.panels())
        for panel in figure.panels:
            assert {method.name for method in figure.methods} <= set(results.methods(panel))
            assert all(results.xs(panel, method.name) == list(fits.EPSILONS) for method in figure.methods)
    assert {method.name for method in PAPER.figures_of("3")[0].methods} == set(
        Results(every).methods("1980 census, as printed")
    )


def test_a_full_run_has_fifty_splits_and_cells_have_tables() -> None:
    for experiment in PAPER.experiments:
        cells = experiment.cells(False)
        assert {cell.table for cell in cells} <= set(PAPER.tables)
        assert {cell.repetition for cell in cells} == set(range(50))
        assert len({cell.key for cell in cells}) == len(cells)


def one_call(split: Split, model: str, penalty: Penalty, epsilon: float) -> pf.LinearRegression:
    """The printed settings as parameters of an estimator. The bounds are read off the table: NOT private."""
    low, high = split.train.features.min(axis=0), split.train.features.max(axis=0)
    columns = [pf.Numeric(f"x{j}", *ends) for j, ends in enumerate(zip(low, high, strict=True))]
    target = pf.Numeric("y", split.train.target.min(), split.train.target.max())
    in_sklearn, n = penalty.in_sklearn(len(split.train.target)), len(split.train.target)
    given = {
        "linear": {},
        "ridge": {"alpha": penalty.size},
        "lasso": {"alpha": penalty.size / (2 * n)},
        "elastic net": in_sklearn,
    }[model]
    units = {} if model == "linear" else {"penalty_units": "scaled"}
    mechanism = pf.FunctionalMechanism(calibration="paper-box", repair=None)
    made = fits.OURS[model](epsilon, schema=pf.Schema(columns, target), mechanism=mechanism, **given, **units)
    return made.fit(split.train.features, split.train.target)


@pytest.mark.parametrize("model", ALPHAS)
def test_the_printed_settings_are_those_of_one_call(men: fits.People, monkeypatch, model: str) -> None:
    """Without noise the same test errors; with noise the same weights from the same noisy coefficients."""
    split = random_split(men.frame, men.schema, 3)
    whole = Scaled(split, intercept=False)
    for epsilon in (1e9, 0.5):
        noise = RecordingNoise(4)
        monkeypatch.setattr("privfit.models.private.noise_source", lambda _, noise=noise: noise)
        penalty = whole.best_without_noise[model]
        fitted = one_call(split, model, penalty, epsilon)
        (call,) = noise.calls
        d = whole.train.shape[1]
        assert call.values.shape == (d * d + d,)
        assert call.scale / 2**32 == pytest.approx(2 * (d + 1) ** 2 / epsilon, rel=1e-6)
        noisy = Quadratic(call.output[: d * d].reshape(d, d) / 2**32, call.output[d * d :] / 2**33)
        weights, bounded = noisy.stationary(penalty)
        assert fitted.report_.repairs["bounded"] or not bounded or penalty.ridge > 0
        half = (split.train.features.max(axis=0) - split.train.features.min(axis=0)) / 2
        unit = (split.train.target.max() - split.train.target.min()) / 2
        np.testing.assert_allclose(fitted.coef_ * half / unit, weights, rtol=1e-3, atol=1e-4)
        if epsilon > 1:
            printed = PrintedFunctional(intercept=False).drawn(whole, None, 0)[f"printed {model}"].error
            assert whole.test_error(weights) == pytest.approx(printed, rel=1e-3)


def test_an_intercept_helps_the_printed_methods(few: list[Value]) -> None:
    """As printed they fit no constant."""
    results = Results(few)
    for model in fits.SHORT:
        exact, better = (
            results.middle(model, fits.with_intercept(fits.NON_PRIVATE, given), 3.0) for given in (False, True)
        )
        assert better < min(exact, results.middle(model, paper.MEAN, 3.0))


def test_noise_costs_and_privfit_learns_where_it_is_small(every: list[Value]) -> None:
    results = Results(every)
    for panel in paper.PANELS:
        assert results.middle(panel, "functional LR", 0.01) > results.middle(panel, "LR", 0.01)
        assert results.middle(panel, "privfit LR", 3.0) < results.middle(panel, paper.MEAN, 3.0)


def test_a_split_that_was_scaled_or_counted_once_gives_the_same_fits(men: fits.People) -> None:
    split = random_split(men.frame, men.schema, 1)
    scaled, counted = Scaled(split, True), Counted(split)
    for epsilon in (None, 0.5):
        for tuned in ("noisy", "exact"):
            method = PrintedFunctional(True, tuned)
            assert method.drawn(scaled, epsilon, 3) == method.outcomes(split, epsilon, 3)
        assert HistogramFits(True).drawn(counted, epsilon, 3) == HistogramFits(True).outcomes(split, epsilon, 3)


def test_a_cell_has_the_same_errors_whenever_it_is_measured(men: fits.People, few: list[Value]) -> None:
    assert list(fits.measure_few(Cell("few predictors", "men", "split", 0, quick=True), men)) == few


# -- checks ----------------------------------------------------------------------------------------

PANEL = next(iter(paper.PANELS))


def spread(method: str, values: list[float], x: float = 0.1, measure: str = "error") -> list[Value]:
    return [Value(PANEL, method, x, value, measure) for value in values]


def test_the_steadier_line_is_found() -> None:
    results = Results([*spread("calm", [1.0, 1.1]), *spread("wild", [1.0, 5.0])])
    assert paper.steadier(["calm"], ["wild"])(results).outcome == "held"
    assert paper.steadier(["wild"], ["calm"])(results).outcome == "not held"


def test_outliers_and_wide_bands_are_counted() -> None:
    usual, far = list(np.linspace(1, 1.1, 18)), [9.0, 9.0]
    results = Results([*spread("functional EN", [*usual, *far]), *spread("functional LR", usual)])
    assert paper.many_outliers(["functional EN"])(results).number.startswith(f"1 of 1: {PANEL}, functional EN: 10%")
    assert paper.many_outliers(["functional LR"])(results).outcome == "not held"
    wide = Results(spread("functional LR", [1.0, 1.0, 4.0, 4.0]))
    assert "unstable up to epsilon 0.1" in paper.unstable()(wide).number
    assert paper.unstable()(Results(spread("functional LR", usual))).outcome == "not held"
    assert paper.unstable("other")(wide).outcome == "cannot be tested"


def test_objectives_without_a_minimum_are_counted() -> None:
    for share, outcome in ((0.0, "not held"), (1.0, "held")):
        results = Results(spread("functional LR", [0.0, share], measure=fits.UNBOUNDED))
        assert paper.without_minimum(results).outcome == outcome


def test_lines_are_compared_with_their_own_without_noise() -> None:
    values = [
        value
        for name in paper.FUNCTIONALS
        for x, error in ((0.1, 2.0), (1.0, 1.001))
        for value in spread(name, [error], x)
    ]
    values += [value for short in fits.SHORT.values() for x in (0.1, 1.0) for value in spread(short, [1.0], x)]
    results = Results(values)
    assert paper.approaches(results).outcome == "held"
    assert paper.worse_than_exact(results).outcome == "held"
    assert paper.alike(results).outcome == "held"
    better = Results([*values, *spread("functional LR", [-5.0], 0.1)])
    assert paper.worse_than_exact(better).outcome == "held in part"
