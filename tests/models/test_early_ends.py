"""Whatever ends a source early ends every kind of fit, before the ledger is charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

import privfit as pf
from privfit.baselines import Majority, PrivateERM, PrivateSVM
from privfit.models import ESTIMATORS
from privfit.publish.filter_priority import FilterPriority
from privfit.publish.histograms import DPME
from privfit.publish.values import LaplacePublisher
from privfit.rows import on_progress
from tests.support.chains import assert_ours
from tests.support.early_ends import CHANGES, PANICS, WORST, file, once, panicking

FEATURES = [pf.Numeric("x", 0, 1), pf.Numeric("m", 1900, 2100)]


def schema(classes: bool) -> pf.Schema:
    return pf.Schema(FEATURES, pf.Category("kind", ["a", "b"]) if classes else pf.Numeric("goal", 0, 1))


def of(model: type, **settings: Any) -> Callable[[pf.Ledger], Any]:
    return lambda ledger: model(schema=schema(is_classifier(model())), ledger=ledger, **settings)


def distance(rows: np.ndarray, w: np.ndarray) -> np.ndarray:
    return -np.abs(rows[:, :1] - w.T)


FITS: dict[str, Callable[[pf.Ledger], Any]] = {
    **{model.__name__: of(model) for model in (*ESTIMATORS, Majority, PrivateERM, PrivateSVM)},
    "LinearRegression, boosted": of(pf.LinearRegression, mechanism="boosted-adassp", delta=1e-6),
    "LogisticRegression, functional": of(pf.LogisticRegression, mechanism="functional"),
    "KMeans": lambda ledger: pf.KMeans(2, schema=pf.Schema(FEATURES), ledger=ledger),
    "GeneticSearch": lambda ledger: pf.GeneticSearch(
        pf.RowFitness(distance, spread=lambda w: float(np.ptp(w))),
        low=0,
        high=1,
        n_parameters=1,
        schema=pf.Schema(FEATURES),
        ledger=ledger,
    ),
    "Aggregate": lambda ledger: pf.Aggregate(
        lambda rows: rows.mean(axis=0)[:1], low=0, high=1, n_outputs=1, schema=pf.Schema(FEATURES), ledger=ledger
    ),
    "ImportanceWeights": lambda ledger: pf.ImportanceWeights(schema=schema(False), ledger=ledger),
    **{
        model.__name__: lambda ledger, model=model: model(schema=schema(True), ledger=ledger)
        for model in (DPME, LaplacePublisher, FilterPriority)
    },
}


@pytest.fixture
def ledger(tmp_path: Path) -> pf.Ledger:
    return pf.Ledger(tmp_path / "ledger.db", epsilon=10.0, delta=1e-3)


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_a_query_that_panics_charges_nothing(ledger: pf.Ledger, fit: Callable[[pf.Ledger], Any]) -> None:
    model = fit(ledger)
    with pytest.raises(
        pf.DataError, match=r"'polars query' cannot be read as the schema says \(PanicException\)"
    ) as caught:
        model.fit(panicking(PANICS["truncate"]))
    assert_ours(caught.value, str(WORST))
    assert ledger.entries() == []
    assert not hasattr(model, "report_")


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
@pytest.mark.parametrize(("change", "ending"), [("cut", ".csv"), ("replaced", ".parquet")])
def test_a_file_that_changes_while_it_is_read_charges_nothing(
    ledger: pf.Ledger, tmp_path: Path, fit: Callable[[pf.Ledger], Any], change: str, ending: str
) -> None:
    path = file(tmp_path, ending)
    with (
        on_progress(once(CHANGES[change], path)),
        pytest.raises(pf.DataError, match=r"'people\.\w+' (was cut, replaced or written to|cannot be read)") as caught,
    ):
        fit(ledger).fit(path)
    assert_ours(caught.value, str(WORST))
    assert ledger.entries() == []
