"""The figures of the PrivGene paper: every line that is declared is measured, on small generated tables; claims are
judged rightly; what is kept is used again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privfit import KMeans, Ledger, LogisticRegression
from privfit.mechanisms import PrivGene, SampleAndAggregate
from privfit.mechanisms.aggregation.block_fits import AggregatedCentres
from privfit.mechanisms.genetic.rounds import automatic_rounds
from privfit.privacy import Budget, PrivacyError, PrivacyParameters
from privfit.schema import Category, Numeric, Schema
from privfit_papers.bench.grid import Cell
from privfit_papers.bench.papers import paper_named
from privfit_papers.bench.papers.privgene import clusters
from privfit_papers.bench.papers.privgene.claims import (
    ahead,
    close,
    gap_grows,
    least_inside,
    limited,
    moves_more_than,
    near,
    nearly_least,
    steady,
    times,
    worse_by_more,
)
from privfit_papers.bench.papers.privgene.fits import NO_PRIVACY, OURS, Trace, error_after, traced_errors
from privfit_papers.bench.papers.privgene.gupt import GuptOnce
from privfit_papers.bench.papers.privgene.runs import (
    ADULT,
    BANKING,
    BRAZIL,
    EEM,
    EM,
    EPSILONS,
    ITERATIONS,
    KMEANS,
    LIFESCI,
    QUICK_CS,
    REPETITIONS,
    SELECTION_BRAZIL,
    SVM,
    US,
    ratios,
)
from privfit_papers.bench.papers.privgene.runs import LOGISTIC as LOGISTIC_EXPERIMENT
from privfit_papers.bench.papers.privgene.tables import ClassTable, Fold, PointTable, us
from privfit_papers.bench.results import Results, Value
from privfit_papers.bench.sources import Source
from privfit_papers.bench.stand_ins import labelled, mixture

PAPER = paper_named("privgene")
FIGURES = {figure.number: figure for figure in PAPER.figures}
SMALL = Schema(
    [Numeric("u", 0, 10), Category("c", ["p", "q", "r"]), Category("two", ["x", "y"]), Category("d", list("stuv"))],
    Category("class", ["no", "yes"]),
)


@pytest.fixture(scope="module")
def classes() -> ClassTable:
    return ClassTable(labelled(SMALL, 4000, 0.5, 1), SMALL, "generated", "made up")


@pytest.fixture(scope="module")
def points() -> PointTable:
    schema = Schema.box(-5, 5, 3)
    return PointTable(mixture(schema, 1500, 3, 0).to_numpy(), schema, "generated", "made up")


@pytest.fixture
def fold(classes) -> Fold:
    return next(iter(classes.folds(0, 1)))


def quick_cells(experiment, table: str) -> list[Cell]:
    return [cell for cell in experiment.cells(True) if cell.table == table and cell.repetition == 0]


def measured(experiment, table: str, rows: object) -> list[Value]:
    return [value for cell in quick_cells(experiment, table) for value in experiment.measure(cell, rows)]


def results(**lines: dict[float, float]) -> Results:
    return Results([Value(*name.split("__"), x, value) for name, line in lines.items() for x, value in line.items()])


# -- what is declared ------------------------------------------------------------------------------


def test_every_figure_of_the_evaluation_is_declared_with_its_experiment_and_claims() -> None:
    assert [figure.number for figure in PAPER.figures] == ["2", "3", "4", "5", "6", "7"]
    for figure in PAPER.figures:
        assert PAPER.experiment(figure.experiment).cells(True)
        assert figure.claims
        assert figure.default is None or figure.default in [method.name for method in figure.methods]


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_cells_name_tables_of_the_paper_and_have_names_of_their_own(experiment) -> None:
    for quick in (True, False):
        cells = experiment.cells(quick)
        assert len({cell.key for cell in cells}) == len(cells)
        assert {cell.table for cell in cells} <= set(PAPER.tables)
        assert 1 + max(cell.repetition for cell in cells) <= REPETITIONS
    assert REPETITIONS == 500  # the paper's


def test_a_quick_run_of_all_figures_is_planned_for_a_few_minutes() -> None:
    assert 60 < sum(cell.cost for experiment in PAPER.experiments for cell in experiment.cells(True)) < 400


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of a minimum that meets far more noise
@pytest.mark.parametrize(("experiment", "number"), [(LOGISTIC_EXPERIMENT, "3"), (SVM, "4")], ids=["logistic", "svm"])
def test_every_line_of_the_comparisons_is_measured_at_every_epsilon(experiment, number, classes) -> None:
    figure = FIGURES[number]
    found = Results(measured(experiment, BRAZIL, classes))
    assert found.panels() == [BRAZIL]
    assert set(found.methods(BRAZIL)) == {method.name for method in figure.methods}
    for method in figure.methods:
        assert found.xs(BRAZIL, method.name) == list(EPSILONS)
        assert all(0 <= found.middle(BRAZIL, method.name, x) <= 1 for x in EPSILONS)
    assert found.middle(BRAZIL, NO_PRIVACY, 1.0) < found.middle(BRAZIL, OURS, 0.01)
    assert found.middle(BRAZIL, OURS, 1.0) < 0.5 * 0.9


def test_every_line_of_the_clusters_is_measured(points) -> None:
    figure = FIGURES["5"]
    panel = "Lifesci, k = 3"
    found = Results(
        measured(
            replace(KMEANS, cells=lambda quick: [cell for cell in KMEANS.cells(quick) if cell.part == "3"]),
            LIFESCI,
            points,
        )
    )
    assert found.panels() == [panel]
    assert panel in figure.panels
    assert set(found.methods(panel)) == {method.name for method in figure.methods}
    assert found.middle(panel, clusters.NO_PRIVACY, 1.0) <= found.middle(panel, clusters.OURS, 1.0)
    assert found.middle(panel, clusters.GUPT, 0.05) > found.middle(panel, clusters.CUT_GUPT, 0.05)


def test_both_rules_of_selection_are_measured_after_every_iteration(classes) -> None:
    figure = FIGURES["7"]
    found = Results(measured(SELECTION_BRAZIL, BRAZIL, classes))
    iterations = [float(place) for place in range(1, round(0.00125 * 3200) + 1)]
    for panel in figure.panels:
        for method in figure.methods:
            assert found.xs(panel, method.name) == iterations


def test_ratios_start_at_one_and_keep_the_order_of_the_errors(classes) -> None:
    values = measured(ITERATIONS, ADULT, classes)
    found = Results([*values, *ratios(values)], "ratio")
    assert set(found.panels()) == set(FIGURES["2"].panels)
    for panel in found.panels():
        assert found.xs(panel, ADULT) == list(QUICK_CS)
        assert found.middle(panel, ADULT, QUICK_CS[0]) == 1.0
        by_ratio, by_error = (
            sorted(QUICK_CS, key=lambda x, m=m: found.middle(panel, ADULT, x, m)) for m in ("ratio", "error")
        )
        assert by_ratio == by_error


def test_a_cell_gives_the_same_numbers_again(classes) -> None:
    cell = next(cell for cell in quick_cells(LOGISTIC_EXPERIMENT, US) if cell.part == "genes")
    assert list(LOGISTIC_EXPERIMENT.measure(cell, classes)) == list(LOGISTIC_EXPERIMENT.measure(cell, classes))


# -- tables ----------------------------------------------------------------------------------------


def test_the_stand_in_for_us_has_levels_only_and_says_what_it_is(tmp_path) -> None:
    table = us(Source(folder=tmp_path / "none", download=False))
    assert table.frame.height <= 40_000
    assert table.schema.geometry(whole=True).n_columns == 1 + 11 + 21 + 3 * 2 + 9
    assert all(isinstance(column, Category) for column in table.schema.features)
    assert "20,000 dollars" in table.notice


def test_plain_rows_are_what_the_paper_has(fold) -> None:
    """Every number and level a column in [-1, 1], two levels together one: the root of their number bounds a row."""
    train, sides, test = fold.plain
    assert train.shape[1] == test.shape[1] == 1 + 3 + 1 + 4
    assert np.abs(train).max() <= 1
    assert set(np.unique(train[:, 1:])) == {-1.0, 1.0}
    assert np.array_equal(sides == "yes", fold.split.is_second(fold.split.train))
    assert len(fold.plain_schema.features) == train.shape[1]


# -- what is kept, and what is traced --------------------------------------------------------------


@pytest.mark.parametrize("selection", ["enhanced", "exponential"])
def test_a_trace_ends_where_the_fit_ends_and_has_every_iteration(selection, fold) -> None:
    errors = traced_errors("logistic", fold, 1.0, selection, seed=5)
    assert len(errors) == round(0.00125 * fold.split.train.height)
    assert 0 < min(errors) <= max(errors) < 1
    assert 0 < error_after("logistic", fold, 1.0, len(errors), seed=5) < 1


def test_traces_are_weights_of_the_encoded_columns_and_lead_to_the_fit(fold) -> None:
    trace = Trace()
    model = LogisticRegression(
        1.0, schema=fold.schema, mechanism=PrivGene(moves="genes", rounds=4, crossover=trace), random_state=0
    ).fit(fold.split.train)
    seen = list(trace.parents.values())
    assert [weights.shape for weights in seen] == [(fold.geometry.n_columns,)] * 3
    assert max(np.count_nonzero(one != other) for one, other in zip(seen[1:], seen, strict=False)) <= 1
    assert fold.error(model.decision_function(fold.split.test)) <= 1


def test_the_way_of_a_search_is_private_as_its_end_is(fold) -> None:
    """Every parent was chosen privately, and paid for: a crossover may keep it."""
    trace, ledger = Trace(), Ledger(epsilon=1.0)
    genes = PrivGene(moves="genes", rounds=3, crossover=trace)
    LogisticRegression(1.0, schema=fold.schema, mechanism=genes, ledger=ledger).fit(fold.split.train)
    assert ledger.spent == 1.0
    assert len(trace.parents) == 2


def test_blocks_are_fitted_once_and_noised_again(points, monkeypatch) -> None:
    blocks = AggregatedCentres(GuptOnce())

    def centres(epsilon: float, seed: int) -> np.ndarray:
        return (
            KMeans(2, epsilon, schema=points.schema, mechanism=blocks, random_state=seed)
            .fit(points.rows)
            .cluster_centers_
        )

    quiet = centres(1e6, 0)
    monkeypatch.setattr(
        "privfit.rows.partition.PartitionedRows.answers", lambda *given, **named: pytest.fail("fitted twice")
    )
    assert np.allclose(centres(1e6, 1), quiet, atol=1e-3)
    assert not np.allclose(centres(1.0, 1), centres(1.0, 2), atol=1e-3)
    spread = np.std([centres(0.1, seed) for seed in range(40)], axis=0).mean()
    blocks_of = round(1500**0.4)
    assert spread == pytest.approx(
        np.sqrt(2) * 10 * 6 / (blocks_of * 0.1), rel=0.3
    )  # Laplace noise for a sixth of epsilon each, not cut


def test_gupt_of_the_figures_is_one_call(points) -> None:
    """As printed: Laplace noise, no cut."""
    printed = SampleAndAggregate(noise="laplace", cut=False)
    for seed in range(3):
        once, call = (
            KMeans(2, 0.5, schema=points.schema, mechanism=mechanism, random_state=seed).fit(points.rows)
            for mechanism in (AggregatedCentres(GuptOnce()), printed)
        )
        np.testing.assert_allclose(once.cluster_centers_, call.cluster_centers_, rtol=1e-9)


def test_kept_blocks_take_no_ledger(points, tmp_path) -> None:
    model = KMeans(
        2,
        1.0,
        schema=points.schema,
        mechanism=AggregatedCentres(GuptOnce()),
        ledger=Ledger(tmp_path / "l.db", epsilon=2.0),
    )
    with pytest.raises(PrivacyError, match="seeded noise"):
        model.fit(points.rows)


def test_the_printed_numbers_of_iterations() -> None:
    """c n epsilon / m' with c = 0.00125 and, for the exponential mechanism, ten parents."""
    for rows, epsilon, rounds in ((26_733, 1.0, 3), (34_112, 1.0, 4), (26_733, 0.05, 1)):
        assert automatic_rounds(PrivacyParameters(Budget(epsilon)), rows, clusters.PARENTS) == rounds
    assert clusters.PARENTS == 10


# -- claims ----------------------------------------------------------------------------------------


def outcome(check, found: Results) -> str:
    return check(found).outcome


def test_points_ahead_are_counted_at_the_end_or_anywhere() -> None:
    found = results(p__EEM={1: 0.4, 2: 0.25, 3: 0.3}, p__EM={1: 0.4, 2: 0.4, 3: 0.35})
    assert ahead(EEM, EM, 8.0, panel="p")(found).number == "5.0 points at 3"
    assert outcome(ahead(EEM, EM, 8.0, panel="p"), found) == "held in part"
    assert outcome(ahead(EEM, EM, 8.0, panel="p", anywhere=True), found) == "held"
    assert outcome(ahead(EM, EEM, 8.0, panel="p"), found) == "not held"
    assert outcome(ahead(EEM, EM, 8.0, panel="other"), found) == "cannot be tested"


def test_gaps_grow_one_way_or_the_other() -> None:
    found = results(p__a={1: 1.0, 2: 1.0, 3: 1.0}, p__b={1: 1.1, 2: 1.3, 3: 2.0})
    assert outcome(gap_grows("a", "b", panels=("p",)), found) == "held"
    assert outcome(gap_grows("a", "b", panels=("p",), backwards=True), found) == "not held"


def test_places_can_be_left_out() -> None:
    found = results(p__a={0.01: 0.9, 0.1: 0.2, 1: 0.2}, p__b={0.01: 0.2, 0.1: 0.22, 1: 0.21})
    assert outcome(close("a", "b", 5.0), found) == "not held"
    assert outcome(limited(close("a", "b", 5.0), 0.05), found) == "held"
    assert outcome(close("a", "b", 5.0, last=True), found) == "held"
    assert outcome(limited(close("a", "b", 5.0), 2.0), found) == "cannot be tested"


def test_levels_and_movements() -> None:
    found = results(p__a={1: 0.45, 2: 0.53}, p__b={1: 0.8, 2: 0.2}, q__a={1: 0.2, 2: 0.2})
    assert outcome(near("a", 0.5, 5.0, panels=("p",)), found) == "held"
    assert outcome(near(("a", "b"), 0.5, 5.0), found) == "held in part"
    assert outcome(steady("b", 1.0, panels=("p",)), found) == "not held"
    assert outcome(steady("a", 1.0, panels=("q",)), found) == "held"
    assert outcome(moves_more_than("b", 2.0), found) == "held"
    assert outcome(times("b", "a", 1.5, 1.0), found) == "held"
    assert outcome(times("b", "a", 2.0, 1.0), found) == "not held"


def test_how_far_a_line_is_above_another_is_compared_between_panels() -> None:
    found = results(BR__g={1: 0.5}, BR__n={1: 0.2}, US__g={1: 0.4}, US__n={1: 0.35})
    assert outcome(worse_by_more("g", "n", BRAZIL, (US,)), found) == "held"
    assert outcome(worse_by_more("g", "n", US, (BRAZIL,)), found) == "not held"
    assert outcome(worse_by_more("g", "n", US, (BANKING,)), found) == "cannot be tested"


def test_the_least_is_inside_or_at_an_end() -> None:
    inside, end = results(p__a={0.5: 1.0, 1.25: 0.9, 3: 1.1}), results(p__a={0.5: 1.0, 1.25: 0.9, 3: 0.8})
    assert outcome(least_inside, inside) == "held"
    assert outcome(least_inside, end) == "not held"
    assert outcome(nearly_least(1.25, 1.03), inside) == "held"
    assert outcome(nearly_least(1.25, 1.03), end) == "not held"


def test_nothing_that_was_measured_is_no_verdict() -> None:
    for figure in PAPER.figures:
        for claim in figure.claims:
            assert claim.check(Results([], figure.measure)).outcome == "cannot be tested", claim.text
