"""pf.evaluate on all small tables and their neighbours: what is noised, and versions of it that protect too little."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.evaluation import two_classes
from privfit.evaluation.predictor import Predictor
from privfit.evaluation.regressions import Regression
from privfit.evaluation.two_classes import TwoClasses
from privfit.mechanisms.summaries import cells, residuals
from privfit.mechanisms.summaries.questions import Share
from privfit.summaries import release
from tests.support.functions import fitted
from tests.support.noise import Call, RecordingNoise, ReplayingNoise

EPSILON = 0.6
LEDGER = pf.Ledger(epsilon=1e5)
Row = tuple[Any, ...]
FEATURES = (pf.Numeric("size", -3, 3, fill=0.5), pf.Numeric("speed", 0, 1e6), pf.Category("job", ["cook", "smith"]))
TWO, THREE = pf.Category("ill", ["no", "yes"]), pf.Category("kind", ["a", "b", "c"])
COST = pf.Numeric("cost", 0, 100)
NORMS = {
    "laplace": lambda moved: sum(map(abs, moved)),
    "linf": lambda moved: max(map(abs, moved)),
    "permute-and-flip": lambda moved: max(moved) - min(moved),
}
MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "probabilities": (pf.LogisticRegression, TWO, {"numeric": "splines"}),
    "scores": (pf.LinearSVC, TWO, {}),
    "classes": (pf.LogisticRegression, THREE, {}),
    "numbers": (pf.LinearRegression, COST, {"mechanism": "functional"}),
    "quantiles": (pf.QuantileRegressor, COST, {"quantile": 0.8}),
    "clusters": (pf.KMeans, None, {"n_clusters": 2}),
    "components": (pf.PCA, None, {"n_components": 1}),
}
"""Estimators, their targets and parameters."""


def rows_of(target: Any) -> tuple[Row, ...]:
    """Rows that differ in what is predicted, in their class, and in both."""
    if target is None:
        return tuple((size, speed) for size, speed in product((-2.0, None), (5.0, 1e6)))
    own = target.levels if isinstance(target, pf.Category) else (target.low, target.high)
    return tuple((size, 50.0, job, last) for (size, job), last in product(((-2.0, "cook"), (3.0, "smith")), own))


def table_of(rows: tuple[Row, ...], target: Any) -> pl.DataFrame:
    names = ["size", "speed", "job", target.name] if target is not None else ["size", "speed"]
    return pl.DataFrame(dict(zip(names, zip(*rows, strict=True), strict=True)), strict=False)


def calls(model: Any, rows: tuple[Row, ...], adjacency: str, people: int, noise: RecordingNoise) -> list[Call]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "noise_source", lambda random_state: noise)
        pf.evaluate(
            model,
            table_of(rows, model.schema_.target),
            epsilon=EPSILON,
            ledger=LEDGER,
            adjacency=adjacency,
            rows_per_person=people,
            expected_rows=3 if adjacency == "add-remove" else None,
        )
    return noise.calls


def pairs(rows: tuple[Row, ...], adjacency: str, people: int) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """A person's rows are others, or are not there; one other row is the same."""
    rest = rows[-1]
    for place, own in enumerate(combinations_with_replacement(rows, people)):
        if adjacency == "add-remove":
            yield (*own, rest), (rest,)
        else:
            others = list(combinations_with_replacement(rows, people))[place + 1 :: 1 if people == 1 else 3]
            yield from (((*own, rest), (*new, rest)) for new in others)


def spent(model: Any, left: tuple[Row, ...], right: tuple[Row, ...], adjacency: str, people: int) -> float:
    """What one pair of tables costs."""
    first = calls(model, left, adjacency, people, RecordingNoise(1))
    second = calls(model, right, adjacency, people, ReplayingNoise(first))
    loss = 0.0
    for one, other in zip(first, second, strict=True):
        assert (one.kind, one.scale, one.values.shape) == (other.kind, other.scale, other.values.shape)
        moved = (one.values.astype(object) - other.values.astype(object)).ravel().tolist()
        loss += NORMS[one.kind](moved) / one.scale
    return loss


def largest(model: Any, adjacency: str, people: int) -> float:
    """The most that a person costs."""
    own = pairs(rows_of(model.schema_.target), adjacency, people)
    return max(spent(model, left, right, adjacency, people) for left, right in own)


def model_named(name: str) -> Any:
    estimator, target, options = MODELS[name]
    return fitted(estimator, target, **options)


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", MODELS)
def test_a_person_costs_no_more_than_paid_for(name: str, adjacency: str, people: int) -> None:
    assert largest(model_named(name), adjacency, people) <= EPSILON * (1 + 1e-12)


@pytest.mark.parametrize("name", ["probabilities", "scores"])
def test_what_is_paid_for_is_used(name: str) -> None:
    assert max(largest(model_named(name), adjacency, 1) for adjacency in ("replace-one", "add-remove")) > 0.9 * EPSILON


def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Any, share: Share) -> Any:
        return share.laplace(self.block(0).width, 1)

    monkeypatch.setattr(cells.Cells, "_noise", half)
    assert largest(model_named("probabilities"), "replace-one", 1) > EPSILON


def test_sums_that_a_row_can_move_further_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = residuals.clipped_sums
    monkeypatch.setattr(residuals, "clipped_sums", lambda *given: [3 * one for one in honest(*given)])
    assert largest(model_named("numbers"), "replace-one", 1) > EPSILON


@pytest.mark.parametrize("sided", [False, True])
@pytest.mark.parametrize("reach", [(1.0, 2.0), (0.1, 1e6), (3e-3, 1e-3)])
def test_one_row_adds_to_each_sum_an_integer_of_a_range_of_one_step(reach: tuple[float, float], sided: bool) -> None:
    grids = Regression(Predictor.of(model_named("numbers"))).problem
    own = (grids.residuals, grids.target)
    found = []
    for places in product((0, 500, len(own[0].values) // 2, -500, -1), repeat=2):
        counts = [np.zeros(len(grid.values), dtype=np.int64) for grid in own]
        for place, count in zip(places, counts, strict=True):
            count[place] = 1
        found.append(residuals.clipped_sums(own, counts, reach, sided))
    assert np.ptp(np.array(found), axis=0).max() <= residuals.STEP
    assert np.ptp(np.array(found), axis=0).min() > 0.9 * residuals.STEP


def test_predictions_that_depend_on_other_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores measured from the mean of a batch move all rows when one is replaced."""
    honest = TwoClasses.compute

    def centred(self: TwoClasses, batch: Any) -> Any:
        scores = self.predictor.predicted(batch, self.score)
        moved = self.grid.cells_of(scores - scores.mean() + 0.5)
        (own,) = honest(self, batch)
        return [(own // self.grid.cells * self.grid.cells + moved).astype(np.int32)]

    monkeypatch.setattr(two_classes.TwoClasses, "compute", centred)
    rest = tuple((size, 50.0, "cook", "no") for size in np.linspace(-1, 1, 11).tolist())
    model, (own, *_, new) = model_named("probabilities"), rows_of(TWO)
    assert spent(model, (own, *rest), (new, *rest), "replace-one", 1) > EPSILON


def leaving_out() -> tuple[Any, pl.DataFrame]:
    """A model whose schema has persons, a filter, and a target that drops rows; and rows for it."""
    dropping = pf.Category("ill", ["no", "yes"], fill="drop")
    schema = pf.Schema(FEATURES[:2], dropping, person="id", where={"size": (-2.5, None)})
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "size": rng.uniform(-3, 3, 60),
            "speed": rng.uniform(0, 1e5, 60),
            "id": rng.integers(0, 30, 60),
            "ill": [None if place % 5 == 0 else "yes" if place % 2 else "no" for place in range(60)],
        }
    )
    return pf.LogisticRegression(epsilon=2.0, schema=schema, random_state=0, rows_per_person=2).fit(table), table


def test_rows_left_out_cost_what_replacing_a_person_costs() -> None:
    """A person whose rows are all left out in one table and used in the other."""
    model, table = leaving_out()
    ledger = pf.Ledger(epsilon=1.0)
    pf.evaluate(model, table, epsilon=EPSILON, ledger=ledger, rows_per_person=2)
    (entry,) = ledger.entries()
    assert (entry.event.adjacency, entry.event.rows_per_person) == ("replace-one", 2)
    assert entry.event.parts[0].sensitivity == 4  # one for each of two rows that leave and two that enter
    for changed in ({"size": -2.9}, {"ill": None}, {"ill": "no", "size": 2.0}, {"speed": 1e9}):
        other = table.with_columns(
            [
                pl.when(pl.col("id") == 3).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
                for name, value in changed.items()
            ]
        )
        first, second = (kept_calls(model, one, noise) for one, noise in _replayed(table, other))
        moved = (first[0].values - second[0].values).ravel()
        assert np.abs(moved).sum() <= 4
        assert first[0].scale == second[0].scale


def _replayed(table: pl.DataFrame, other: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, RecordingNoise]]:
    noise = RecordingNoise(1)
    yield table, noise
    yield other, ReplayingNoise(noise.calls)


def kept_calls(model: Any, table: pl.DataFrame, noise: RecordingNoise) -> list[Call]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "noise_source", lambda random_state: noise)
        pf.evaluate(model, table, epsilon=EPSILON, ledger=pf.Ledger(epsilon=1.0), rows_per_person=2)
    return [call for call in noise.calls if call.kind in NORMS]


def test_questions_share_all_of_epsilon() -> None:
    for name in MODELS:
        ledger = pf.Ledger(epsilon=1.0)
        model = model_named(name)
        pf.evaluate(model, table_of(rows_of(model.schema_.target), model.schema_.target), epsilon=0.5, ledger=ledger)
        assert sum(part.epsilon for part in ledger.entries()[0].event.parts) == pytest.approx(0.5)


def test_how_many_rows_a_person_has_shows_in_nothing() -> None:
    """With a person column the number of persons is public, and that of rows is not."""
    columns, target = [pf.Numeric("size", -1, 1)], pf.Category("ill", ["no", "yes"])
    schema = pf.Schema(columns, target, person="who")
    sizes = np.linspace(-1, 1, 300)
    table = pl.DataFrame({"size": sizes, "ill": np.where(sizes > 0, "yes", "no"), "who": np.arange(300)})
    model = pf.LogisticRegression(1.0, schema=schema).fit(table)
    events = []
    for rows in (table, pl.concat([table, *[table[-1:]] * 3000])):
        ledger = pf.Ledger(epsilon=1.0)
        pf.evaluate(model, rows, epsilon=1.0, ledger=ledger)
        events.append(ledger.entries()[0].event)
    assert events[0] == events[1]
