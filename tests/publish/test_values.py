"""LaplacePublisher: every value with noise for the distance of two records, attacked by replay; trimming; the figures
of Ji and Elkan.
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.mechanisms.histograms.noisy_values import UNIT, NoisyValues, diameter, on_lattice
from privfit.models import private
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise, ReplayingNoise

LaplacePublisher = pf.baselines.LaplacePublisher
SCHEMA = pf.Schema(
    [pf.Numeric("x", 100, 101), pf.Category("s", ["f", "m"]), pf.Category("l", [0, 1, 2])],
    target=pf.Numeric("y", -1, 1, bins=2),
)
CORNERS = list(itertools.product((100.0, 100.3, 101.0, 1e9), ("f", "m"), (0, 2), (-1.0, 1.0)))
REST = [(100.5, "f", 1, 0.5), (100.1, "m", 2, -0.2)]


def frame_of(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["x", "s", "l", "y"], orient="row")


def fitted(monkeypatch, rows, noise, **parameters):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LaplacePublisher(**{"schema": SCHEMA, "ledger": ledger, **parameters}).fit(frame_of(rows))
    return model, ledger, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_the_distance_of_two_records_by_brute_force(calibration) -> None:
    geometry = NoisyValues(calibration=calibration).geometry(SCHEMA)
    blocks = (*geometry.blocks, geometry.target)
    places = list(itertools.product((100.0, 100.3, 101.0), (0, 1), (0, 1, 2), (0, 1)))
    rows = [
        np.concatenate(
            [on_lattice(block, np.array([float(value)]))[0] for block, value in zip(blocks, place, strict=True)]
        )
        for place in places
    ]
    most = max(int(np.abs(a - b).sum()) for a, b in itertools.product(rows, repeat=2))
    assert most == diameter(geometry) * UNIT == {"tight": 5, "paper": 7}[calibration] * UNIT
    assert all(row.min() >= 0 and row.max() <= UNIT for row in rows)


@pytest.mark.parametrize(
    "variant", [{}, {"trim": True}, {"calibration": "paper"}, {"rows_per_person": 2, "epsilon": 0.2}], ids=str
)
def test_noise_replayed_on_a_neighbouring_table(monkeypatch, variant) -> None:
    """Any two of the tables are neighbours. The noisy values of one of them are replayed on all others, and what is
    noised is compared pair by pair.
    """
    first = RecordingNoise(seed=1)
    left, ledger, told = fitted(monkeypatch, [*REST, CORNERS[0]], first, **variant)
    (entry,), (call,) = ledger.entries(), first.calls
    noised = [call.values]
    for corner in CORNERS[1:]:
        second = ReplayingNoise(first.calls)
        right, right_ledger, told_too = fitted(monkeypatch, [*REST, corner], second, **variant)
        (entry_too,), (call_too,) = right_ledger.entries(), second.calls
        assert (call.kind, call.values.shape, call.scale) == (call_too.kind, call_too.values.shape, call_too.scale)
        assert left.to_frame().equals(right.to_frame())
        assert told == told_too
        assert str(left.report_) == str(right.report_)
        assert entry.event == entry_too.event
        noised.append(call_too.values)
    people = variant.get("rows_per_person", 1)
    most = max(people * int(np.abs(a - b).sum()) for a, b in itertools.combinations(noised, 2))
    assert most == entry.event.sensitivity
    assert most / call.scale <= entry.event.epsilon * (1 + 1e-12)


def test_the_order_of_rows_tells_nothing(monkeypatch) -> None:
    """What is published is a function of the set of noisy rows: the same whichever row comes first, with noise that
    goes along.
    """
    first = RecordingNoise(seed=2)
    rows = [*REST, CORNERS[0]]
    left, _, _ = fitted(monkeypatch, rows, first)
    call = first.calls[0]
    turned = type(call)(call.kind, call.values, call.scale, np.concatenate(np.split(call.output, 3)[::-1]))
    right, _, _ = fitted(monkeypatch, rows[::-1], ReplayingNoise([turned]))
    assert left.to_frame().equals(right.to_frame())


def test_values_are_in_their_own_units_and_levels_are_numbers(monkeypatch) -> None:
    class Silent(RecordingNoise):
        def _answer(self, kind, values, scale):
            return values

    model, _, _ = fitted(monkeypatch, [(100.25, "m", 2, 0.9), (1e9, "f", 0, -7.0)], Silent())
    frame = model.to_frame()
    assert frame.columns == ["x", "s_m", "l_0", "l_1", "l_2", "y_[0, 1]", "weight"]
    np.testing.assert_allclose(frame.to_numpy(), [[100.25, 1, 0, 0, 1, 1, 1], [101.0, 0, 1, 0, 0, 0, 1]])
    paper, _, _ = fitted(monkeypatch, [(100.25, "m", 2, 0.9)], Silent(), calibration="paper")
    assert {"s_f", "s_m"} <= set(paper.columns_)


def test_twelve_one_hot_groups_at_a_tenth_have_the_noise_of_the_paper() -> None:
    """Ji and Elkan, section 7: S = 24, so Laplace noise of scale 240; a mean over 21,000 rows has a deviation of 2.34,
    and trimming draws it to the middle.
    """
    rng = np.random.default_rng(0)
    n = 21_000
    schema = pf.Schema([pf.Category(f"c{i}", [0, 1, 2]) for i in range(12)])
    rows = rng.choice(3, (n, 12), p=[0.8, 0.1, 0.1]).astype(float)
    plain = LaplacePublisher(0.1, schema=schema, calibration="paper", random_state=0).fit(rows)
    trimmed = LaplacePublisher(0.1, schema=schema, calibration="paper", trim=True, random_state=0).fit(rows)
    assert plain.report_.noise_scale == 240.0
    means = np.array([values.mean() for values in plain.columns_.values()])
    truth = np.tile([0.8, 0.1, 0.1], 12)
    deviation = math.sqrt(2 * 240**2 / n)
    assert deviation == pytest.approx(2.34, abs=0.01)
    assert np.std(means - truth) == pytest.approx(deviation, rel=0.4)
    cut = np.array([values.mean() for values in trimmed.columns_.values()])
    assert np.abs(cut - 0.5).max() < 0.02
    assert all(values.min() >= 0 and values.max() <= 1 for values in trimmed.columns_.values())


def test_the_number_of_rows_is_told_so_it_has_to_be_public() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError) as refusal:
        LaplacePublisher(schema=SCHEMA, adjacency="add-remove", ledger=ledger).fit(frame_of(REST))
    assert_told_in_order(str(refusal.value), ["add-remove", "reveals how many", "replace-one", "Nothing was charged"])
    assert float(ledger.spent) == 0.0


def test_the_ledger_is_charged_before_noise_and_not_for_bad_rows() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = LaplacePublisher(0.7, schema=SCHEMA, ledger=ledger)
    with pytest.raises(pf.DataError):
        model.fit(frame_of([(float("nan"), "m", 2, 0.9)]))
    assert float(ledger.spent) == 0.0
    assert model.fit(frame_of(REST)).report_.private
    assert float(ledger.spent) == 0.7
    with pytest.raises(pf.BudgetExceeded):
        model.fit(frame_of(REST))


@pytest.mark.parametrize("parameters", [{"trim": 1}, {"calibration": "loose"}], ids=str)
def test_parameters_that_mean_nothing_are_refused(parameters) -> None:
    with pytest.raises(pf.PrivacyError):
        LaplacePublisher(schema=SCHEMA, **parameters).fit(frame_of(REST))


def test_names_that_would_be_given_twice_are_refused() -> None:
    schema = pf.Schema([pf.Category("a", ["b", "c"]), pf.Numeric("a_c", 0, 1)])
    with pytest.raises(pf.SchemaError, match="Rename"):
        LaplacePublisher(schema=schema).fit(pl.DataFrame({"a": ["b"], "a_c": [0.5]}))
