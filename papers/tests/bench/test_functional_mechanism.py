"""The functional-mechanism paper: its examples to the digit, one fold measured on a small table, and checks that can
fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.privacy import PrivacyError, seeded_generator
from privfit.schema import Category, Numeric, Schema
from privfit_papers.bench.claims import judged, tallied
from privfit_papers.bench.grid import Cell
from privfit_papers.bench.kept_sums import FunctionalOnce
from privfit_papers.bench.papers import paper_named
from privfit_papers.bench.papers.functional_mechanism import examples as example
from privfit_papers.bench.papers.functional_mechanism.checks import (
    beside,
    both,
    ends_within,
    less_steep,
    ratio_changes,
    stays,
)
from privfit_papers.bench.papers.functional_mechanism.fits import (
    CONSTANT,
    FM,
    NO_PRIVACY,
    NOISELESS_FM,
    OURS,
    OURS_FUNCTIONAL,
    TRUNCATED,
    Fold,
)
from privfit_papers.bench.papers.functional_mechanism.sweeps import BUDGET, CARDINALITY, DIMENSIONALITY, SWEEPS
from privfit_papers.bench.papers.functional_mechanism.tables import BRAZIL, SCHOOLING, Tasks, brazil, men, people
from privfit_papers.bench.results import Results, Value
from privfit_papers.bench.sources import Loaded, Source
from privfit_papers.bench.stand_ins import men_of_1980

PAPER = paper_named("functional-mechanism")


@pytest.fixture(scope="module")
def small() -> Tasks:
    return people(Source(download=False), rows=3000)


@pytest.fixture(scope="module")
def logistic(small: Tasks) -> list[Value]:
    return list(DIMENSIONALITY.measure(Cell("dimensionality", "people", "logistic, fold 1", 0, quick=True), small))


# -- what is declared ------------------------------------------------------------------------------


def test_every_figure_has_its_experiment_and_every_cell_its_table() -> None:
    assert [figure.number for figure in PAPER.figures] == [str(number) for number in range(2, 10)]
    for figure in PAPER.figures:
        assert PAPER.experiment(figure.experiment).cells(True)
    for experiment in PAPER.experiments:
        for quick in (True, False):
            cells = experiment.cells(quick)
            assert len({cell.key for cell in cells}) == len(cells)
            assert {cell.table for cell in cells} <= set(PAPER.tables)


def test_a_full_run_is_the_papers_grid() -> None:
    """Table 2 of the paper: fifty five-fold cross-validations, ten rates, six epsilons, four sets of attributes."""
    assert len(BUDGET.cells(False)) == 50 * 5 * 2 * 2
    assert [point.epsilon for point in BUDGET.points] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert [point.rate for point in CARDINALITY.points] == pytest.approx(np.arange(1, 11) / 10)
    assert [point.d for point in DIMENSIONALITY.points] == [5, 8, 11, 14]
    assert {point.epsilon for point in (*CARDINALITY.points, *DIMENSIONALITY.points)} == {0.8}


def test_panels_and_methods_are_those_that_cells_emit(logistic: list[Value], small: Tasks) -> None:
    linear = list(DIMENSIONALITY.measure(Cell("dimensionality", "people", "linear, fold 0", 0, quick=True), small))
    for figure in PAPER.figures:
        if figure.experiment in {sweep.name for sweep in SWEEPS}:
            shown = {method.name for method in figure.methods}
            emitted = {
                value.method
                for value in (*linear, *logistic)
                if value.panel in figure.panels and value.measure == figure.measure
            }
            assert emitted == shown, figure.number
            assert {f"US {kind}" for kind in ("linear", "logistic")} & set(figure.panels)


# -- the examples ----------------------------------------------------------------------------------


def test_the_examples_have_the_printed_numbers() -> None:
    experiment = PAPER.experiment("examples")
    values = [value for cell in experiment.cells(True) for value in experiment.measure(cell, None)]
    results = Results(values, "objective")
    assert results.middle("epsilon 0.8", example.OBJECTIVE, 0.0, "a") == pytest.approx(2.06, abs=1e-12)
    assert results.middle("epsilon 0.8", example.OBJECTIVE, 0.0, "b") == pytest.approx(-2.34, abs=1e-12)
    assert results.middle("epsilon 0.8", example.OBJECTIVE, 0.0, "c") == pytest.approx(1.25, abs=1e-12)
    assert results.middle("epsilon 0.8", example.OBJECTIVE, 0.0, "minimum") == pytest.approx(117 / 206, abs=1e-12)
    assert results.middle("epsilon 100", example.NOISY, 0.0, "sensitivity") == 8
    assert results.middle(example.LOGISTIC, example.APPROXIMATION, 0.0, "minimum") == pytest.approx(0.8, abs=1e-6)
    assert results.middle(example.LOGISTIC, example.APPROXIMATION, 0.0, "spread of the remainder") == pytest.approx(
        0.0049, abs=5e-5
    )
    assert pytest.approx(0.015, abs=5e-4) == example.PRINTED_BOUND
    for number in ("2", "3"):
        outcomes = judged(PAPER.figures_of(number)[0], results)
        assert {verdict.outcome for _, verdict in outcomes} == {"held"}, outcomes
    assert results.middle("epsilon 0.8", example.NOISY, 0.0, "without a minimum") > 0.25


def test_a_wrong_number_is_not_held() -> None:
    results = Results([Value(panel, example.OBJECTIVE, 0.0, 2.07, "a") for panel in example.NOISY_AT])
    assert example.number(example.OBJECTIVE, "a", 2.06)(results).outcome == "not held"
    assert example.number(example.OBJECTIVE, "b", 2.06)(results).outcome == "cannot be tested"


# -- a fold ----------------------------------------------------------------------------------------


def test_a_fold_is_a_fifth_and_folds_share_no_row(small: Tasks) -> None:
    task = small.task("linear", 5)
    numbered = replace(task, frame=task.frame.with_row_index("row"))
    order = seeded_generator(0).permutation(3000)
    folds = [Fold.of("linear", numbered, order, 0.5, fold) for fold in range(5)]
    tested = [row for fold in folds for row in fold.test["row"].to_list()]
    assert sorted(tested) == sorted(order[:1500].tolist())
    for fold in folds:
        assert fold.train.height == 1200
        assert not set(fold.train["row"]) & set(fold.test["row"])


def test_errors_are_those_of_a_target_on_minus_one_to_one(small: Tasks) -> None:
    fold = Fold.of("linear", small.task("linear", 5), seeded_generator(0).permutation(3000), 1.0, 0)
    assert fold.error(fold.truth + 75_000) == pytest.approx(1.0), "half of the bounds [0, 150,000] is 1"


def test_every_method_is_measured_at_every_place(logistic: list[Value]) -> None:
    results = Results(logistic)
    everything = {FM, "DPME", "FP", NO_PRIVACY, TRUNCATED, NOISELESS_FM, CONSTANT, OURS, OURS_FUNCTIONAL}
    assert results.panels() == ["US logistic"]
    assert set(results.methods("US logistic")) == everything
    for method in everything:
        assert results.xs("US logistic", method) == [5, 8, 11, 14]
    assert set(results.methods("US logistic", "seconds")) == everything - {NOISELESS_FM, CONSTANT}
    assert all(value.value > 0 for value in logistic)


def test_what_is_not_private_beats_a_constant_and_noise_costs(logistic: list[Value]) -> None:
    results = Results(logistic)

    def error(method: str) -> float:
        return results.middle("US logistic", method, 14)

    assert error(NO_PRIVACY) == pytest.approx(error(TRUNCATED), abs=0.02)
    assert error(NO_PRIVACY) < error(CONSTANT) - 0.1
    assert error(OURS) < error(FM)
    assert error(NO_PRIVACY) < error(OURS_FUNCTIONAL) < error(FM)


def test_a_cell_has_the_same_errors_whenever_it_is_measured(logistic: list[Value], small: Tasks) -> None:
    again = list(DIMENSIONALITY.measure(Cell("dimensionality", "people", "logistic, fold 1", 0, quick=True), small))
    errors, repeated = ([value for value in values if value.measure == "error"] for values in (logistic, again))
    assert errors == repeated


def test_references_are_flat_over_epsilon(small: Tasks) -> None:
    values = list(BUDGET.measure(Cell("budget", "men", "linear, fold 0", 3, quick=True), small))
    results = Results(values)
    for method in (NO_PRIVACY, NOISELESS_FM, CONSTANT):
        assert len({results.middle("US linear", method, x) for x in results.xs("US linear", method)}) == 1
        assert len(results.xs("US linear", method)) == 6
    assert results.middle("US linear", FM, 3.2) < results.middle("US linear", FM, 0.1)


# -- kept sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_kept_sums_give_the_fit_that_reading_again_gives(small: Tasks, kind) -> None:
    task = small.task(kind, 11)
    estimator = {"linear": pf.LinearRegression, "logistic": pf.LogisticRegression}[kind]
    once = FunctionalOnce()
    for epsilon, seed in ((0.5, 1), (2.0, 2)):
        kept = estimator(epsilon, schema=task.schema, mechanism=once, random_state=seed).fit(task.frame)
        read = estimator(epsilon, schema=task.schema, mechanism="functional", random_state=seed).fit(task.frame)
        np.testing.assert_array_equal(kept.coef_, read.coef_)
    assert len(once.kept.sums) == 1
    assert once.kept.saved > 0


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("repair", ["trim", "ridge", "rerun", None])
def test_the_lines_of_the_figures_are_those_of_one_call(small: Tasks, kind, repair) -> None:
    """FM of the figures, as printed: calibration, encoding and repair are parameters of the estimators."""
    task = small.task(kind, 8)
    estimator = {"linear": pf.LinearRegression, "logistic": pf.LogisticRegression}[kind]
    for mechanism in (FunctionalOnce, pf.FunctionalMechanism):
        made = mechanism(calibration="paper", repair=repair)
        fitted = estimator(50.0, schema=task.schema, mechanism=made, random_state=3).fit(task.frame)
        assert fitted.report_.repairs["kind"] == str(repair).lower()
        if mechanism is FunctionalOnce:
            expected = fitted.coef_
    np.testing.assert_array_equal(fitted.coef_, expected)


def test_kept_sums_are_for_seeded_noise_only(small: Tasks) -> None:
    task = small.task("linear", 5)
    model = pf.LinearRegression(1.0, schema=task.schema, mechanism=FunctionalOnce())
    assert not model.fit(task.frame).report_.private
    ledger = pf.Ledger(epsilon=2.0)
    with pytest.raises(PrivacyError, match="seeded"):
        model.set_params(ledger=ledger).fit(task.frame)
    assert ledger.spent.epsilon == 0


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FakeSource(Source):
    """A source whose real tables are made up here."""

    def brazil(self) -> Loaded:
        generator = seeded_generator(0)
        columns = {f"column_{i}": generator.integers(0, 2, 50) for i in range(53)} | {
            "column_49": generator.integers(1, 100, 50)
        }
        level = generator.integers(0, 4, 50)
        columns |= {name: (level == i).astype(int) for i, name in enumerate(SCHOOLING)}
        features = [
            Numeric(name, 1, 99) if name == "column_49" else Category(name, [0, 1])
            for name in columns
            if name != "column_52"
        ]
        return Loaded(
            pl.DataFrame(columns), Schema(features, Category("column_52", [0, 1])), "Brazil", "folder", "Made up."
        )

    def census_1980(self) -> Loaded:
        frame, schema = men_of_1980(500)
        return Loaded(frame, schema, "US", "folder", "Made up.")


def test_brazil_has_the_papers_attributes_and_hours_for_a_number_to_predict() -> None:
    tasks, source = brazil(FakeSource()), FakeSource().brazil().frame
    for d in (5, 8, 11, 14):
        assert len(tasks.task("linear", d).schema.columns) == len(tasks.task("logistic", d).schema.columns) == d
    linear, logistic = tasks.task("linear", 14), tasks.task("logistic", 14)
    assert linear.schema.target == Numeric("hours", 1, 99)
    assert "high_income" in [column.name for column in linear.schema.features]
    assert logistic.frame["high_income"].to_list() == source[BRAZIL["high_income"]].to_list()
    level = sum(i * source[name].to_numpy() for i, name in enumerate(SCHOOLING))
    np.testing.assert_array_equal(logistic.frame["education"].to_numpy(), level)


def test_without_the_brazil_file_a_generated_census_of_its_size_is_used_and_said(tmp_path: Path) -> None:
    tasks = brazil(Source(tmp_path, download=False))
    assert tasks.origin == "generated"
    assert "No data folder" in tasks.notice
    assert tasks.task("logistic", 14).frame.height == 38_000


def test_wages_are_high_above_four_hundred_dollars() -> None:
    tasks = men(FakeSource())
    numbers, classes = tasks.task("linear").frame, tasks.task("logistic").frame
    np.testing.assert_array_equal(classes["high_wage"].to_numpy() == "yes", np.exp(numbers["lwage"].to_numpy()) > 400)
    assert "lwage" not in classes.columns


# -- checks ----------------------------------------------------------------------------------------


def lines(**of: Iterable[float]) -> Results:
    return Results([Value("p", name, x, value) for name, values in of.items() for x, value in enumerate(values)])


def test_checks_see_what_holds_and_what_does_not() -> None:
    results = lines(base=[1, 1, 1], up=[2, 2, 4], down=[4, 3, 1.01])
    assert ratio_changes(["up"], "base", grows=True, panels=["p"])(results).outcome == "held"
    assert ratio_changes(["up"], "base", grows=False, panels=["p"])(results).outcome == "not held"
    assert ratio_changes(["down"], "base", grows=False, panels=["p"], differences=True)(results).outcome == "held"
    assert stays(["base"], 1.0, panels=["p"])(results).outcome == "held"
    assert stays(["up"], 1.5, panels=["p"])(results).outcome == "not held"
    assert stays(["down"], 1.0, panels=["p"], start=2)(results).outcome == "cannot be tested"
    assert less_steep(["base", "up"], ["down"], panels=["p"])(results).outcome == "held"
    assert less_steep(["down"], ["up"], panels=["p"])(results).outcome == "not held"
    assert ends_within(["down"], ["base"], 1.05, panels=["p"])(results).outcome == "held"
    assert ends_within(["up"], ["base"], 1.05, panels=["p"])(results).outcome == "not held"
    assert ends_within(["up"], ["nobody"], 1.05, panels=["p"])(results).outcome == "cannot be tested"


def test_checks_are_joined_and_told_beside_each_other() -> None:
    results = lines(base=[1, 1], up=[2, 4])
    good, bad = (ratio_changes(["up"], "base", grows=grows, panels=["p"]) for grows in (True, False))
    assert both(good, bad)(results).outcome == "held in part"
    assert both(good, good)(results).outcome == "held"
    told = beside(bad, good)(results)
    assert told.outcome == "not held"
    assert "tight calibration (privfit): held" in told.number
    assert tallied([]).outcome == "cannot be tested"
    assert tallied([(True, "a"), (True, "b"), (False, "c")]) == tallied([(False, "c"), (True, "a"), (True, "b")])
    assert tallied([(True, "a"), (True, "b"), (False, "c")]).number == "2 of 3: c; a; b"
