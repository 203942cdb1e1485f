"""Rows as cells of pairs of columns and of fine steps: sums are those of a loop over rows, whatever their order,
batches, pieces or part.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.mechanisms.perturbation import interaction_terms as pairs
from privfit.mechanisms.perturbation.interaction_terms import (
    UNIT,
    IntegerGradients,
    integer_weights,
    menu_of,
    score_bits,
)
from privfit.rows import CachedDesign, DesignSubset
from privfit.tables import DataError
from tests.support.pairs import SHIFT, VALUES, cells_of, interactions_of, kept_of, measured, weights_of

LOSS = tempered_logistic(0.5, 1.0)


def test_sums_are_those_of_a_loop_over_rows_whatever_their_order_and_batches() -> None:
    rng = np.random.default_rng(5)
    regions, sexes, classes = ["n", "s", "w"], ["f", "m"], ["no", "yes"]
    rows = [
        (
            float(rng.uniform(-5, 80)),
            regions[rng.integers(3)],
            sexes[rng.integers(2)],
            float(rng.exponential(900)),
            classes[rng.integers(2)],
        )
        for _ in range(700)
    ]
    weights, slopes, menu = weights_of(3, 1.0), IntegerGradients(LOSS, 2), menu_of(interactions_of())
    _, sums, curvatures = measured(rows, weights, slopes)
    alone = [measured([row], weights, slopes) for row in rows]
    for place in range(len(menu)):
        assert np.array_equal(sums[place], sum(own[1][place] for own in alone))
        assert np.array_equal(curvatures[place], sum(own[2][place] for own in alone))
    for other in (rows[::-1], rows[350:] + rows[:350]):
        assert all(np.array_equal(a, b) for a, b in zip(measured(other, weights, slopes)[1], sums, strict=True))
    small = kept_of(rows, batch_rows=7).cells(integer_weights(weights, score_bits(len(weights))))
    assert all(np.array_equal(a, b) for a, b in zip(small.sums(menu, slopes.slopes, SHIFT), sums, strict=True))


def test_counts_are_the_same_where_they_are_made_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(*VALUES[i % 4], ("no", "yes")[i % 3 % 2]) for i in range(200)]
    cells, menu, slopes = cells_of(rows, weights_of(1, 1.0)), menu_of(interactions_of()), IntegerGradients(LOGISTIC, 1)
    together = cells.sums_and_counts(menu, slopes.slopes, SHIFT)
    monkeypatch.setattr("privfit.rows.interactions.MOST_COUNTED", 0)
    for one, other in zip(together, cells.sums_and_counts(menu, slopes.slopes, SHIFT), strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])


def test_a_table_moves_the_scores_of_its_cells_only() -> None:
    rows = [(*VALUES[0], "no"), (*VALUES[1], "yes")]
    cells, pair = cells_of(rows, weights_of(0, 0.0)), (1, 2)
    slopes = IntegerGradients(LOGISTIC, 1)
    assert interactions_of().n_cells(pair) == 3 * 2
    before = cells.sums([pair], slopes.slopes, SHIFT)[0]
    table = np.zeros(6, dtype=np.int64)
    table[0 * 2 + 0] = 3 << (SHIFT + pairs.STEP_BITS)  # region n, sex f: the first row
    cells.add(pair, table)
    after = cells.sums([pair], slopes.slopes, SHIFT)[0]
    assert after[1 * 2 + 1] == before[1 * 2 + 1] == pytest.approx(-UNIT / 2, rel=0.01)
    assert before[0] == pytest.approx(UNIT / 2, rel=0.01)
    assert after[0] == pytest.approx(UNIT / (1 + math.exp(-3)), rel=0.01)


@pytest.mark.parametrize("weight", [1e300, -math.inf, math.nan, 4096.0, 1e-12])
def test_any_weights_are_held_to_whole_numbers_whose_sums_are_exact(weight: float) -> None:
    columns = 200
    bits = score_bits(columns)
    whole = integer_weights(np.full((columns, 1), weight), bits)
    assert np.array_equal(whole, np.rint(whole))
    assert np.abs(whole).max() * columns <= 2.0**36


def test_a_table_that_grew_between_readings_tells_no_numbers() -> None:
    kept = kept_of([(*VALUES[0], "no")] * 30)
    part = DesignSubset(kept, np.ones(20, dtype=bool))
    with pytest.raises(DataError, match="another number of rows"):
        part.cells(integer_weights(weights_of(0, 0.0), 8))


@pytest.mark.parametrize("batch_rows", [7, 1300, 1 << 16])
def test_a_part_of_the_rows_has_the_cells_that_these_rows_have_alone(batch_rows: int) -> None:
    rng = np.random.default_rng(1)
    ages, gains = rng.uniform(-5, 80, 4000), rng.exponential(900, 4000)
    rows = [(float(ages[i]), "nsw"[i % 3], "fm"[i % 2], float(gains[i]), ("no", "yes")[i % 5 % 2]) for i in range(4000)]
    mine = rng.uniform(size=4000) < 0.3
    menu, slopes, weights = menu_of(interactions_of()), IntegerGradients(LOGISTIC, 1), weights_of(4, 1.0)
    whole = integer_weights(weights, score_bits(len(weights)))
    kept = kept_of(rows, batch_rows)
    assert (len(kept._chunks[0].fine) > 100) == (batch_rows == 7)  # in pieces
    part = DesignSubset(kept, mine).cells(whole).sums(menu, slopes.slopes, SHIFT)
    alone = (
        kept_of([row for row, own in zip(rows, mine, strict=True) if own]).cells(whole).sums(menu, slopes.slopes, SHIFT)
    )
    assert all(np.array_equal(one, other) for one, other in zip(part, alone, strict=True))


def test_tables_that_do_not_fit_in_memory_have_the_same_cells() -> None:
    rows = [(*VALUES[i % 4], ("no", "yes")[i % 3 % 2]) for i in range(90)]
    menu, slopes, weights = menu_of(interactions_of()), IntegerGradients(LOGISTIC, 1), weights_of(4, 1.0)
    kept = kept_of(rows)
    read_again = CachedDesign(kept._rows, most_bytes=1, fine=True)
    assert read_again._chunks is None
    whole = integer_weights(weights, score_bits(len(weights)))
    for one, other in zip(
        kept.cells(whole).sums(menu, slopes.slopes, SHIFT),
        read_again.cells(whole).sums(menu, slopes.slopes, SHIFT),
        strict=True,
    ):
        assert np.array_equal(one, other)
    assert kept._chunks[0].nbytes > CachedDesign(kept._rows)._chunks[0].nbytes  # fine cells are counted
