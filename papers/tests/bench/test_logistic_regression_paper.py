"""The figures of the logistic-regression paper: what is declared is what cells measure, and checks judge what they
should.
"""

from __future__ import annotations

import numpy as np
import pytest

from privfit_papers.bench.claims import judged
from privfit_papers.bench.grid import Cell
from privfit_papers.bench.papers import paper_named
from privfit_papers.bench.papers.logistic_regression import claims
from privfit_papers.bench.papers.logistic_regression import paper as declared
from privfit_papers.bench.papers.logistic_regression.claims import AT, HOLDOUT, LOSS, SPREAD
from privfit_papers.bench.results import Results, Value
from privfit_papers.bench.simulated import (
    BOXED,
    DEFAULT,
    HALVED,
    KINDS,
    PRINTED,
    REPAIRED,
    SENSITIVITY,
    STANDARD,
    points,
)
from privfit_papers.bench.sources import Source

PAPER = paper_named("logistic-regression")
SMALL_POINTS = 3000


@pytest.fixture(autouse=True)
def few_restarts(monkeypatch) -> None:
    monkeypatch.setattr(declared, "QUICK_DRAWS", 4)
    monkeypatch.setattr(declared, "QUICK_FITS", 1)


@pytest.fixture
def table() -> declared.Simulation:
    small = declared.Simulation("unseparable")
    small.__dict__["points"] = points("unseparable", SMALL_POINTS)
    return small


def measured(experiment: str, part: str, table: declared.Simulation, fold: int = 0) -> list[Value]:
    return list(PAPER.experiment(experiment).measure(Cell(experiment, table.kind, part, fold, True), table))


# -- what is declared ------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda figure: figure.number)
def test_every_figure_has_cells_of_its_own_names_on_tables_that_exist(figure, quick) -> None:
    cells = PAPER.experiment(figure.experiment).cells(quick)
    assert {cell.table for cell in cells} == set(figure.panels) == set(PAPER.tables) == set(KINDS)
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.repetition for cell in cells} == set(range(5))
    assert all(0 < cell.cost <= 20 for cell in cells)


@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda figure: figure.number)
def test_cells_measure_every_line_of_their_figure_at_every_place(figure, table) -> None:
    parts = {cell.part for cell in PAPER.experiment(figure.experiment).cells(True)}
    results = Results([value for part in sorted(parts) for value in measured(figure.experiment, part, table)])
    places = {method.name: results.xs("unseparable", method.name) for method in figure.methods}
    assert all(places.values())
    assert len({tuple(xs) for xs in places.values()}) == 1
    assert figure.default in places


def test_a_full_run_has_the_papers_sizes_and_the_estimator_at_all_of_them() -> None:
    for experiment, places in (("learning", declared.SIZES), ("epsilon", declared.ALL_EPSILONS)):
        parts = {cell.part for cell in PAPER.experiment(experiment).cells(False)} - {declared.POINTS}
        cells = [
            Cell(experiment, "separable", part, 0) for part in sorted(parts, key=lambda part: int(part.split()[-1]))
        ]
        assert [x for cell in cells for x in declared._share(cell, places)[1]] == list(places)
    assert list(declared.SIZES) == list(range(1000, 14_001, 1000))


def test_points_are_made_up_and_need_no_source() -> None:
    found = PAPER.tables["separable"](Source(download=False))
    assert found.origin == "generated"
    assert found.points.features.shape == (17_500, 10)


# -- what is measured ------------------------------------------------------------------------------


def test_the_papers_own_numbers_stand_beside_ours(table) -> None:
    results = Results(measured("table", declared.RECORDED, table))
    assert results.middle("unseparable", "paper: new method", AT) == pytest.approx(0.1903)
    assert results.deviation("unseparable", "paper: new method", AT) == pytest.approx(0.1105)
    assert results.middle("unseparable", "paper: sensitivity method", AT) == pytest.approx(0.3257)
    assert results.middle("unseparable", "paper: standard LR", AT) == pytest.approx(0.0530)


def test_cells_repeat_and_folds_differ(table) -> None:
    first, again, other = (measured("table", declared.POINTS, table, fold) for fold in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_cell_has_a_mean_and_a_deviation_of_restarts_and_knows_what_the_printed_method_loses(table) -> None:
    results = Results(measured("learning", declared.POINTS, table))
    sizes = results.xs("unseparable", PRINTED)
    assert results.xs("unseparable", PRINTED, LOSS) == sizes == list(declared.QUICK_SIZES)
    assert results.middle("unseparable", PRINTED, 1000, LOSS) == pytest.approx(0.0365, abs=1e-4)
    assert results.middle("unseparable", PRINTED, 14_000, LOSS) < AT
    assert all(0 < results.middle("unseparable", SENSITIVITY, x, SPREAD) < 0.3 for x in sizes)
    assert results.middle("unseparable", STANDARD, 1000, SPREAD) == 0


# -- checks ----------------------------------------------------------------------------------------


def curve(method: str, errors: dict[float, float], measure: str = "error") -> list[Value]:
    return [Value(kind, method, x, error, measure) for kind in KINDS for x, error in errors.items()]


def test_most_places_are_enough_for_most_and_half_are_not() -> None:
    upper = curve(SENSITIVITY, {1: 0.4, 2: 0.3, 3: 0.2})
    check = claims.mostly_below(PRINTED, SENSITIVITY)
    assert check(Results([*upper, *curve(PRINTED, {1: 0.5, 2: 0.2, 3: 0.1})])).outcome == "held"
    assert check(Results([*upper, *curve(PRINTED, {1: 0.5, 2: 0.4, 3: 0.1})])).outcome == "not held"
    assert "not at 1" in check(Results([*upper, *curve(PRINTED, {1: 0.5, 2: 0.2, 3: 0.1})])).number


def test_ends_of_curves_are_compared_at_the_right_end() -> None:
    results = Results([*curve(SENSITIVITY, {1: 0.48, 2: 0.3}), *curve(PRINTED, {1: 0.49, 2: 0.1})])
    assert claims.lower_at_the_end(results).outcome == "held"
    assert claims.better_at_the_start(results).outcome == "held"
    assert claims.near_guessing(results).outcome == "held"


def test_a_loss_above_epsilon_is_found_and_told() -> None:
    lost = claims.loses_no_more(Results(curve(PRINTED, {1000: 2 * AT, 14_000: 0.5 * AT}, LOSS)))
    assert lost.outcome == "not held"
    assert "1,000 points" in lost.number
    assert claims.loses_no_more(Results(curve(PRINTED, {14_000: 0.5 * AT}, LOSS))).outcome == "held"
    assert claims.loses_no_more(Results([])).outcome == "cannot be tested"


def test_the_least_ridge_is_asked_for_in_both_simulations() -> None:
    both = curve(STANDARD, {0.001: 0.06, 0.01: 0.05, 0.1: 0.07}, HOLDOUT)
    assert claims.tuned_ridge(Results(both)).outcome == "held"
    worse = [Value(KINDS[0], STANDARD, 0.0001, 0.01, HOLDOUT)]
    assert claims.tuned_ridge(Results([*both, *worse])).outcome == "held in part"


def test_the_papers_own_means_are_met_and_others_are_not() -> None:
    own = [Value(kind, SENSITIVITY, AT, claims.PAPER[kind][SENSITIVITY][0]) for kind in KINDS]
    assert claims.as_printed(SENSITIVITY)(Results(own)).outcome == "held"
    off = [Value(kind, SENSITIVITY, AT, 0.1) for kind in KINDS]
    assert claims.as_printed(SENSITIVITY)(Results(off)).outcome == "not held"


def test_all_claims_of_the_table_are_judged_from_small_cells(table) -> None:
    (figure,) = PAPER.figures_of("1")
    parts = (declared.POINTS, declared.ESTIMATOR, declared.RECORDED, declared.TUNING)
    values = [value for part in parts for value in measured("table", part, table)]
    both = [*values, *(Value("separable", one.method, one.x, one.value, one.measure) for one in values)]
    verdicts = judged(figure, Results(both))
    assert len(verdicts) == len(figure.claims) + 1
    assert all(verdict.number and "nan" not in verdict.number for _, verdict in verdicts)
    errors = {
        name: np.mean([one.value for one in values if one.method == name and one.measure == "error"])
        for name in (PRINTED, REPAIRED, HALVED, DEFAULT, BOXED)
    }
    assert all(0.03 < error < 0.6 for error in errors.values())
