"""DPME: noise on every cell, attacked by replay on neighbouring tables; its rule, its refusals, and its use."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import privfit as pf
from privfit.mechanisms.histograms.noisy_histogram import MOST_LISTED_CELLS, histogram_event
from privfit.models import private
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.publish.histograms import cells_per_axis
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise, ReplayingNoise

DPME = pf.baselines.DPME
SCHEMA = pf.Schema([pf.Numeric("x", 0, 1), pf.Category("c", [0, 1, 2])], target=pf.Numeric("y", -1, 1))
REST = [(0.1, 0, 0.5), (0.1, 0, 0.5), (0.9, 2, -0.7), (0.4, 1, 0.0)]
CORNERS = list(itertools.product((0.0, 1.0, 9.0), (0, 2), (-1.0, 1.0)))
PAIRS = {
    "replace-one": [([*REST, a], [*REST, b]) for a, b in itertools.combinations(CORNERS, 2)],
    "add-remove": [([*REST, a], REST) for a in CORNERS],
}


class Silent(SeededNoise):
    """Adds nothing, and passes for secret."""

    private = True

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return values.copy()


def fitted(monkeypatch, rows, noise, **parameters):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0)
    options = {"schema": SCHEMA, "cells": 3, "ledger": ledger, **parameters}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DPME(**options).fit(np.array(rows, dtype=np.float64))
    return model, ledger, [str(warning.message) for warning in caught]


# -- privacy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [{}, {"signed": True}, {"rows_per_person": 3, "epsilon": 0.3}], ids=str)
@pytest.mark.parametrize("adjacency", PAIRS)
def test_noise_replayed_on_a_neighbouring_table(monkeypatch, adjacency, variant) -> None:
    most = 0.0
    for left_rows, right_rows in PAIRS[adjacency]:
        first = RecordingNoise(seed=1)
        left, ledger, told = fitted(monkeypatch, left_rows, first, adjacency=adjacency, **variant)
        second = ReplayingNoise(first.calls)
        right, right_ledger, told_too = fitted(monkeypatch, right_rows, second, adjacency=adjacency, **variant)
        assert [(call.kind, call.values.shape, call.scale) for call in first.calls] == [
            (call.kind, call.values.shape, call.scale) for call in second.calls
        ]
        np.testing.assert_array_equal(left.weights_, right.weights_)
        for name in left.columns_:
            np.testing.assert_array_equal(left.columns_[name], right.columns_[name])
        assert told == told_too
        assert str(left.report_) == str(right.report_)
        (entry,), (entry_too,) = ledger.entries(), right_ledger.entries()
        assert entry.event == entry_too.event
        (call,), (call_too,) = first.calls, second.calls
        moved = variant.get("rows_per_person", 1) * int(np.abs(call.values - call_too.values).sum())
        assert moved <= entry.event.sensitivity
        assert moved / call.scale <= entry.event.epsilon * (1 + 1e-12)
        most = max(most, moved / entry.event.sensitivity)
    assert most == 1.0, "the sensitivity is larger than it needs to be"


@pytest.mark.parametrize(("adjacency", "moves"), [("replace-one", 2), ("add-remove", 1)])
@pytest.mark.parametrize("people", [1, 2])
def test_sensitivity_by_brute_force(adjacency, moves, people) -> None:
    """All persons with so many rows, on tables of nothing else: L1 distances of counts, as large as claimed and never
    larger.
    """
    geometry = cell_geometry(SCHEMA, 2)
    rows_of = list(itertools.combinations_with_replacement(CORNERS, people))

    def counts(rows) -> np.ndarray:
        if not rows:
            return np.zeros(CellGrid(geometry).n_cells, dtype=int)
        cells = count_cells(Rows(open_table(np.array(rows)), SCHEMA, geometry))
        return np.array([cells.get(place, 0) for place in range(CellGrid(geometry).n_cells)])

    all_counts = [counts(rows) for rows in rows_of]
    others = all_counts if adjacency == "replace-one" else [counts(())]
    most = max(int(np.abs(a - b).sum()) for a in all_counts for b in others)
    event = histogram_event("DPME", CellGrid(geometry), PrivacyParameters(Budget(1.0), adjacency, people))
    assert most == event.sensitivity == moves * people
    assert event.scale == moves * people


def test_noise_is_half_as_large_where_a_row_is_there_or_not() -> None:
    rows = np.array(REST)
    scales = {
        adjacency: DPME(schema=SCHEMA, cells=2, adjacency=adjacency, random_state=0).fit(rows).report_.noise_scale
        for adjacency in PAIRS
    }
    assert scales == {"replace-one": 2.0, "add-remove": 1.0}


def test_the_ledger_is_charged_once_and_not_for_refusals() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = DPME(0.6, schema=SCHEMA, cells=2, ledger=ledger)
    with pytest.raises(pf.DataError):
        model.fit(np.array([[np.nan, 0, 0]]))
    assert float(ledger.spent) == 0.0
    model.fit(np.array(REST))
    assert float(ledger.spent) == 0.6
    before = dict(model.__dict__)
    with pytest.raises(pf.BudgetExceeded):
        clone(model).fit(np.array(REST))
    with pytest.raises(pf.BudgetExceeded):
        model.fit(np.array(REST))
    assert model.__dict__ == before
    with pytest.raises(pf.PrivacyError, match="not private"):
        DPME(schema=SCHEMA, cells=2, ledger=ledger, random_state=0).fit(np.array(REST))


# -- what comes out --------------------------------------------------------------------------------


def test_without_noise_it_is_the_histogram(monkeypatch) -> None:
    model, _, _ = fitted(monkeypatch, [*REST, (9.0, 2, -5.0)], Silent(0))
    frame = model.to_frame().sort("x", "c")
    assert frame.columns == ["x", "c", "y", "weight"]
    np.testing.assert_allclose(frame.to_numpy(), [[1 / 6, 0, 2 / 3, 2], [0.5, 1, 0, 1], [5 / 6, 2, -2 / 3, 2]])


def test_negative_counts_are_left_out_or_kept() -> None:
    rows = np.array(REST * 50)
    positive = DPME(schema=SCHEMA, cells=4, random_state=3).fit(rows)
    signed = DPME(schema=SCHEMA, cells=4, signed=True, random_state=3).fit(rows)
    assert (positive.weights_ > 0).all()
    assert (signed.weights_ < 0).any()
    np.testing.assert_array_equal(signed.weights_[signed.weights_ > 0], positive.weights_)


def test_signed_counts_average_to_the_truth() -> None:
    rows = np.array(REST * 20)
    totals = [
        DPME(schema=SCHEMA, cells=4, signed=True, random_state=seed).fit(rows).weights_.sum() for seed in range(200)
    ]
    spread = math.sqrt(48 * 8 / 200)  # 48 cells of variance 8, about
    assert abs(np.mean(totals) - len(rows)) < 5 * spread
    biased = [DPME(schema=SCHEMA, cells=4, random_state=seed).fit(rows).weights_.sum() for seed in range(200)]
    assert np.mean(biased) > len(rows) + 5 * spread


def test_a_regression_on_it_is_close_with_a_large_epsilon() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 20_000)
    frame = pl.DataFrame({"x": x, "c": rng.integers(0, 3, len(x)), "y": np.clip(0.8 * x - 0.3, -1, 1)})
    table = DPME(50.0, schema=SCHEMA, cells=10, random_state=0).fit(frame).to_frame()
    line = LinearRegression().fit(
        table[["x"]].to_numpy(), table["y"].to_numpy(), sample_weight=table["weight"].to_numpy()
    )
    assert abs(line.coef_[0] - 0.8) < 0.1
    drawn = DPME(50.0, schema=SCHEMA, cells=10, random_state=0).fit(frame).draw(1000, 0)
    assert drawn.shape == (1000, 3)


def test_secret_noise_is_drawn_without_a_seed() -> None:
    rows = np.array(REST)
    first, second = (DPME(0.1, schema=SCHEMA, cells=9, ledger=pf.Ledger(epsilon=1.0)).fit(rows) for _ in range(2))
    assert first.report_.private
    assert first.weights_.tolist() != second.weights_.tolist()


# -- cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "cells"),
    [(50_000, 5, 15), (50_000, 13, 3), (10, 40, 2), (1, 1, 2), (2, 1, 2), (10**9, 1, 365_000)],
)
def test_leis_rule(rows, columns, cells) -> None:
    found = cells_per_axis(rows, columns)
    assert found == cells or (cells > 1000 and 0.1 < found / cells < 10)
    if rows > 2 and found > 2:
        side = (math.sqrt(math.log(rows)) / rows) ** (2 / (2 + columns))
        assert found <= 1 / side < found + 1


def test_leis_rule_is_the_default_and_knows_public_rows_only() -> None:
    rows = np.array(REST * 100)
    assert DPME(schema=SCHEMA, random_state=0).fit(rows).cells_ == cells_per_axis(400, 3)
    guessed = DPME(schema=SCHEMA, adjacency="add-remove", expected_rows=100_000, random_state=0)
    assert guessed.fit(rows).cells_ == guessed.fit(rows[:50]).cells_ == cells_per_axis(100_000, 3)
    with pytest.raises(pf.PrivacyError) as refusal:
        DPME(schema=SCHEMA, adjacency="add-remove").fit(rows)
    assert_told_in_order(
        str(refusal.value), ["cells='auto'", "number of rows", "expected_rows=", "Nothing was charged"]
    )
    binned = pf.Schema([pf.Numeric("x", 0, 1, bins=4), pf.Category("c", [0, 1, 2])])
    assert CellGrid(DPME(schema=binned, adjacency="add-remove", random_state=0).fit(rows[:, :2])._geometry).sizes == (
        4,
        3,
    )


def test_too_many_cells_are_refused_before_anything_is_read_or_charged() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.SchemaError) as refusal:
        DPME(schema=pf.Schema.box(0, 1), cells=10, ledger=ledger).fit(np.full((5, 8), np.nan))
    assert_told_in_order(
        str(refusal.value),
        [
            "100,000,000 cells",
            f"{MOST_LISTED_CELLS:,}",
            "fewer columns",
            "cells=",
            "FilterPriority",
            "Nothing was charged",
        ],
    )
    assert float(ledger.spent) == 0.0


@pytest.mark.parametrize(
    "parameters",
    [
        {"cells": 1},
        {"cells": 2.5},
        {"cells": True},
        {"cells": "many"},
        {"cells": 1 << 21},
        {"signed": "yes"},
        {"epsilon": 0},
    ],
    ids=str,
)
def test_parameters_that_mean_nothing_are_refused(parameters) -> None:
    ledger = pf.Ledger(epsilon=10.0)
    with pytest.raises(pf.PrivacyError):
        DPME(**{"schema": SCHEMA, "ledger": ledger, **parameters}).fit(np.array(REST))
    assert float(ledger.spent) == 0.0
