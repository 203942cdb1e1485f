"""How far one row and its weight move weighted moments: brute force over rows and weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import privfit as pf
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Encoder, RowWeights
from privfit.statistics import WEIGHT_LEVELS, WEIGHTED_STEP, WeightedMoments

BOUND = 3.0
WEIGHTS = (0.0, 1.1, 3.0, 50.0)
NUMBER, OTHER = pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)
LEVELS = pf.Category("c", ["u", "v", "w"])
CASES = [(NUMBER,), (NUMBER, OTHER), (LEVELS,), (NUMBER, LEVELS)]
ORDERS = {"l1": 1, "l2": 2}


def statistic(features: tuple) -> tuple[WeightedMoments, np.ndarray]:
    """The statistic, and what every row on a grid with every weight adds to it, one line each."""
    schema = pf.Schema(features, pf.Numeric("y", -1, 1))
    moments = WeightedMoments(schema.geometry(), WEIGHTED_STEP, WEIGHTED_STEP, 0, True, BOUND)
    encoder = Encoder(moments.geometry, moments.step, moments.target_units, RowWeights(NUMBER, BOUND, WEIGHT_LEVELS))
    cells = [(0, 1, 2) if column is LEVELS else (-1.0, 0.3, 1.0) for column in features]
    added = []
    for *row, weight in product(*cells, (-1.0, 0.0, 1.0), WEIGHTS):
        batch = [
            np.array([cell], dtype=np.int32 if place < len(features) and features[place] is LEVELS else np.float64)
            for place, cell in enumerate((*row, weight))
        ]
        added.append(moments.distinct(moments(encoder.encode(batch)).astype(np.int64), 1, "add-remove"))
    return moments, np.array(added, dtype=np.float64)


def parameters(adjacency: str) -> PrivacyParameters:
    return PrivacyParameters(Budget(1.0), adjacency).for_rows_left_out(None)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("features", CASES, ids=lambda features: "".join(column.name for column in features))
def test_no_row_and_weight_moves_more_than_the_sensitivity(features, adjacency, norm) -> None:
    moments, added = statistic(features)
    planned = parameters(adjacency)
    bound = moments.row_sensitivity(planned, norm) * planned.rows_per_person
    changes = added if adjacency == "add-remove" else (added[:, None] - added[None]).reshape(-1, added.shape[1])
    if norm == "linf":
        sizes = moments.parts("add-remove")
        parts = np.split(np.abs(changes), np.cumsum(sizes)[:-1], axis=1)
        found = sum(part.max(axis=1) for part in parts).max()
    else:
        found = np.linalg.norm(changes, ord=ORDERS[norm], axis=1).max()
    assert found <= bound
    assert found > 0.7 * bound  # a bound for rows that count half as much would fail


def test_the_sum_of_weights_is_released_under_replace_one() -> None:
    """Two tables that differ in a weight alone differ in a released value: its noise must cover that."""
    moments, added = statistic((NUMBER,))
    assert len(added[0]) == moments.n_values("add-remove") == moments.n_values("replace-one") + 1
    with pytest.raises(AssertionError):
        moments.row_sensitivity(PrivacyParameters(Budget(1.0), "replace-one"))
