"""The board of peers on generated tables, without a network: peers that answer, fail, die or cannot be installed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from privfit.privacy import seeded_generator
from privfit.schema import Category, Numeric, Schema
from privfit_papers.bench.board import environments, runs
from privfit_papers.bench.board.cells import Cell, Result
from privfit_papers.bench.board.environments import NoEnvironment, interpreter
from privfit_papers.bench.board.methods import METHODS, OURS, OURS_WITH_DELTA, OWN, Environment, Method
from privfit_papers.bench.board.peers.serve import Split
from privfit_papers.bench.board.printed import Abstained, BoostedAdaSSP, TukeyEM, gaussian_shift, log_volumes
from privfit_papers.bench.board.runs import Board, planned
from privfit_papers.bench.board.scores import Difference, Spread, scores
from privfit_papers.bench.board.standing import ahead_of_us, standing
from privfit_papers.bench.board.tables import BoardTable
from privfit_papers.report.board import board_page, shortened

HERE = [method for method in METHODS if method.environment.here]
BY_NAME = {method.name: method for method in METHODS}


def table_of(task: str, rows: int = 1_500) -> BoardTable:
    generator = seeded_generator(5)
    x, group = generator.uniform(-1, 1, rows), generator.choice(["a", "b", "c"], rows)
    number = 2 * x + np.where(group == "a", 1.0, 0.0) + generator.normal(0, 0.3, rows)
    target = Numeric("y", -4, 4) if task == "numbers" else Category("y", ["no", "yes"])
    told = number if task == "numbers" else np.where(number > 0, "yes", "no")
    frame = pl.DataFrame({"x": x, "group": group, "y": told})
    return BoardTable.of(task, frame, Schema([Numeric("x", -1, 1), Category("group", ["a", "b", "c"])], target=target))


# -- tables ----------------------------------------------------------------------------------------


def test_a_table_leaves_out_what_its_schema_does_not_cover() -> None:
    frame = pl.DataFrame({"x": [0.5, None, 7.0, 0.1], "g": ["b", "a", "a", "z"], "y": ["yes", "no", "no", "yes"]})
    schema = Schema([Numeric("x", -1, 1), Category("g", ["a", "b"])], target=Category("y", ["yes", "no"]))
    table = BoardTable.of("t", frame, schema)
    assert table.left_out == 2
    assert table.rows.tolist() == [[0.5, 1.0], [1.0, 0.0]]
    assert table.target.tolist() == [1.0, 0.0]  # "no" comes first


def test_three_classes_are_refused() -> None:
    frame, schema = (
        pl.DataFrame({"x": [0.0], "y": ["a"]}),
        Schema([Numeric("x", -1, 1)], target=Category("y", [*"abc"])),
    )
    with pytest.raises(ValueError, match="two levels"):
        BoardTable.of("t", frame, schema)


def test_a_split_is_what_was_saved(tmp_path: Path) -> None:
    table = table_of("numbers")
    for number in (0, 1, 0):
        table.save_split(number, tmp_path / f"{number}")
    split, other = Split.load(tmp_path / "0"), Split.load(tmp_path / "1")
    assert sorted([*split.target, *split.truth]) == sorted(table.target)
    assert len(split.target) == 1_200
    assert split.bounds == (-4, 4)
    assert (split.truth != other.truth).any()
    lines = split.lines(split.train)
    assert lines.shape == (1_200, 4)
    assert (lines[:, 1:].sum(axis=1) == 1).all()
    assert np.linalg.norm(lines, axis=1).max() <= split.row_norm
    np.testing.assert_allclose(split.unscaled(split.scaled_target()), split.target)


def test_fewer_rows_are_the_same_ones_every_time() -> None:
    table = table_of("classes")
    some = table.at_most(100)
    assert len(some.rows) == 100
    np.testing.assert_array_equal(some.rows, table.at_most(100).rows)
    assert table.at_most(None) is table.at_most(10_000) is table


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_every_method_that_needs_no_installation_is_measured_once(task, tmp_path, monkeypatch) -> None:
    table, board, told = table_of(task), Board(tmp_path), []
    cells = planned(table, HERE, (2.0,), 1)
    board.run(table, cells[:2], 1)  # a run that was stopped
    board.run(table, cells, 2, told.append)
    assert len(told) == len(cells) - 2
    found = {cell: board.result(table, cell) for cell in cells}
    by_name = {cell.method.name: result for cell, result in found.items() if result}
    assert set(by_name) == {method.name for method in HERE if task in method.tasks}
    main = next(iter(by_name["constant"].scores))
    sign = -1 if main == "error" else 1
    assert sign * by_name[OURS].scores[main] > sign * by_name["constant"].scores[main]
    assert all(result.scores or result.failed for result in by_name.values())
    monkeypatch.setattr(runs, "Peer", None)  # nothing is left to measure
    board.run(table, cells, 2)


def test_other_rows_are_measured_again(tmp_path) -> None:
    table, board = table_of("classes"), Board(tmp_path)
    cells = planned(table, [BY_NAME["constant"]], (1.0,), 1)
    board.run(table, cells, 1)
    assert board.result(table, cells[0]) is not None
    assert board.result(table.at_most(500), cells[0]) is None


def test_a_peer_that_fails_or_dies_or_takes_too_long_is_told(tmp_path, monkeypatch) -> None:
    table = table_of("classes")
    unknown = replace(BY_NAME["constant"], name="unknown", asked="nothing of that name")
    dies = replace(BY_NAME["constant"], name="dies", environment=Environment("dies", "no_such_script"))
    cells = planned(table, [unknown, dies, BY_NAME["constant"]], (1.0,), 1)
    board = Board(tmp_path)
    board.run(table, cells, 1)
    reasons = [result.failed for cell in cells if (result := board.result(table, cell))]
    assert reasons == ["KeyError: 'nothing of that name'", "its process ended", ""]
    slow = Board(tmp_path / "slow", longest=0.0)
    slow.run(table, cells[2:], 1)
    late = slow.result(table, cells[2])
    assert late is not None
    assert late.failed == "took longer than 0 seconds"


def test_an_environment_that_cannot_be_made_says_so_and_the_others_are_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    make = environments.venv.create  # the pip that is there already: to unpack another takes as long as all else
    monkeypatch.setattr(
        environments.venv, "create", lambda folder, clear, **_: make(folder, clear=clear, system_site_packages=True)
    )
    missing = Environment("missing", "own", ("no-such-package-of-privfit==1",))
    cells = planned(
        table := table_of("numbers"),
        [replace(BY_NAME["constant"], name="missing", environment=missing), BY_NAME["constant"]],
        (1.0,),
        1,
    )
    told: list[str] = []
    board = Board(tmp_path)
    board.run(table, cells, 1, told.append)
    assert "missing is not measured: no-such-package-of-privfit==1 could not be installed" in told[0]
    assert "Run the command again" in told[0]
    assert [board.result(table, cell) is None for cell in cells] == [True, False]
    with pytest.raises(NoEnvironment, match="--no-install"):
        interpreter(missing, tmp_path / "environments", make=False)


# -- scores ----------------------------------------------------------------------------------------


def test_scores_are_scikit_learns() -> None:
    generator = seeded_generator(0)
    truth, chances = generator.integers(0, 2, 300).astype(float), generator.uniform(size=300)
    found = scores("classes", chances, truth)
    assert found["error"] == pytest.approx(np.mean((chances > 0.5) != truth))
    assert found["auc"] == pytest.approx(roc_auc_score(truth, chances))
    assert found["log_loss"] == pytest.approx(log_loss(truth, chances))
    assert scores("numbers", chances, truth)["r2"] == pytest.approx(r2_score(truth, chances))
    assert np.isfinite(scores("classes", np.zeros(300), truth)["log_loss"])


def test_a_difference_counts_when_equal_methods_would_rarely_have_one_as_large() -> None:
    first, second = np.array([0.2, 0.21, 0.19, 0.22]), np.array([0.3, 0.29, 0.31, 0.33])
    found = Difference.of(first, second, more_is_better=False)
    assert found.mean == pytest.approx(0.1025)
    gains = second - first
    by_hand = gains.mean() / np.sqrt((1 / 4 + 0.2 / 0.8) * gains.var(ddof=1))
    assert found.p_value == pytest.approx(2 * student.sf(by_hand, 3))
    assert found.verdict == "ahead"
    assert Difference.of(first, second, more_is_better=True).verdict == "behind"
    assert Difference.of(first, first, more_is_better=True).verdict == "level"
    assert Difference.of(first[:1], second[:1], more_is_better=True).verdict == "level"
    assert Difference.of([0.2, 0.4, 0.1], [0.3, 0.2, 0.2], more_is_better=True).verdict == "level"


def test_the_worst_is_at_the_bad_end() -> None:
    assert Spread.of([0.1, 0.3], more_is_better=True).worst == 0.1
    assert Spread.of([0.1, 0.3], more_is_better=False).worst == 0.3


# -- methods as printed ----------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (4.0, 1e-6)])
def test_the_gaussian_shift_has_the_stated_delta(epsilon: float, delta: float) -> None:
    mu = gaussian_shift(epsilon, delta)
    loss = seeded_generator(1).normal(mu**2 / 2, mu, 4_000_000)  # of the Gaussian mechanism
    assert np.mean(np.maximum(0.0, 1.0 - np.exp(epsilon - loss))) == pytest.approx(delta, rel=0.6, abs=2e-6)
    assert gaussian_shift(2 * epsilon, delta) > mu


def test_boosted_adassp_comes_near_least_squares_with_many_rows() -> None:
    generator = seeded_generator(2)
    rows = generator.uniform(-0.5, 0.5, (40_000, 3))
    target = np.clip(rows @ [0.5, -0.3, 0.1] + generator.normal(0, 0.05, 40_000), -1, 1)
    far, near = (BoostedAdaSSP(epsilon, 1e-6, seeded_generator(3)).fit(rows, target) for epsilon in (0.02, 5.0))
    np.testing.assert_allclose(near, [0.5, -0.3, 0.1], atol=0.02)
    assert np.abs(far - near).max() > 0.02


def test_tukey_em_finds_a_point_in_the_middle_or_abstains() -> None:
    generator = seeded_generator(4)
    rows = np.column_stack([np.ones(40_000), generator.uniform(-1, 1, 40_000)])
    target = rows @ [0.2, 0.5] + generator.normal(0, 0.1, 40_000)
    np.testing.assert_allclose(TukeyEM(1.0, 1e-6, seeded_generator(0)).fit(rows, target), [0.2, 0.5], atol=0.02)
    with pytest.raises(Abstained, match="need more than"):
        TukeyEM(0.01, 1e-6, seeded_generator(0)).fit(rows, target)
    few = type("Few", (TukeyEM,), {"fits": 8})(0.1, 1e-6, seeded_generator(0))
    with pytest.raises(Abstained, match="safe point"):
        few.fit(rows, target)


def test_points_of_a_depth_are_uniform_there() -> None:
    """Depth 2 of five models: a box without its inner box, whose corners have their share of the area."""
    models = np.column_stack([[0.0, 1.0, 2.0, 6.0, 10.0, 11.0], [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]])
    tukey = TukeyEM(1.0, 1e-6, seeded_generator(5))
    points = np.array([tukey._of_depth(models, 2) for _ in range(20_000)])
    low, high, inner_low, inner_high = models[1], models[4], models[2], models[3]
    assert (points >= low).all()
    assert (points <= high).all()
    inside = ((points > inner_low) & (points < inner_high)).all(axis=1)
    assert not inside.any()
    area, inner = np.prod(high - low), np.prod(inner_high - inner_low)
    left = np.mean(points[:, 0] < inner_low[0])
    assert left == pytest.approx((inner_low[0] - low[0]) * (high - low)[1] / (area - inner), abs=0.015)
    below = np.mean((points[:, 0] > inner_low[0]) & (points[:, 0] < inner_high[0]) & (points[:, 1] < inner_low[1]))
    share = (inner_high - inner_low)[0] * (inner_low - low)[1] / (area - inner)
    assert below == pytest.approx(share, abs=0.015)
    np.testing.assert_allclose(np.exp(log_volumes(models)), [44.0, 27.0, 4.0])


# -- the page --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.12345, ".1235"),
        (-0.02, "-.0200"),
        (-1.5, "-1.5000"),
        (-10.3116, "-10.3"),
        (50.04, "50.0"),
        (12_345.6, "12,346"),
    ],
)
def test_numbers_on_the_page(value: float, shown: str) -> None:
    assert shortened(value) == shown


def results_of(method: Method, errors: list[float], epsilon: float = 1.0) -> list[Result]:
    return [
        Result(Cell("t", "classes", method, epsilon, split), {"error": error, "auc": 0.8, "log_loss": 0.5})
        for split, error in enumerate(errors)
    ]


def test_the_page_says_where_somebody_else_is_ahead(tmp_path) -> None:
    ours, theirs = results_of(BY_NAME[OURS], [0.2, 0.21, 0.2]), results_of(BY_NAME["dp-xgboost"], [0.1, 0.12, 0.1])
    other = results_of(BY_NAME["DP-EBM classes"], [0.1, 0.1, 0.1])  # with a delta, of which privfit is not measured
    plain = results_of(BY_NAME["boosting"], [0.05, 0.05, 0.05], 0.0)
    failed = [replace(theirs[0], cell=replace(theirs[0].cell, split=3), scores={}, failed="its process ended")]
    lines = standing([*plain, *theirs, *failed, *other, *ours])
    assert [(line.method.name, measure) for line, measure in ahead_of_us(lines)] == [("dp-xgboost", "error")]
    page = board_page(lines, "privfit bench board", ["t: 3 rows."], tmp_path).read_text(encoding="utf-8")
    assert "| t | wrong classes | 1 | dp-xgboost | 0.09667 |" in page
    assert "▲ (1 of 4 no answer)" in page
    assert "dp-xgboost on t: its process ended" in page
    assert (tmp_path / "figures" / "board-classes.png").stat().st_size > 5_000
    nobody = board_page(standing([*ours, *plain]), "privfit bench board", [], tmp_path).read_text(encoding="utf-8")
    assert "Nowhere: in none of 0 comparisons" in nobody


def test_methods_with_a_delta_are_compared_with_ours_with_a_delta() -> None:
    found = standing(
        [
            *results_of(BY_NAME[OURS], [0.1, 0.1]),
            *results_of(BY_NAME[OURS_WITH_DELTA], [0.4, 0.4]),
            *results_of(BY_NAME["DP-EBM classes"], [0.3, 0.3]),
        ]
    )
    assert found[-1].differences["error"].mean == pytest.approx(-0.1)
    assert json.loads(json.dumps(found[-1].to_dict()))["differences"]["error"]["verdict"] == "behind"
    assert OWN.here
