"""`n_jobs` and `max_memory`: on every estimator, refused where they mean nothing, and never seen in a fit."""

from __future__ import annotations

import inspect
import os
import threading

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import privfit as pf
from privfit.models import ESTIMATORS
from privfit.rows import Rows, memory_bytes, one_blas_thread, thread_count
from privfit.rows.workers import USUAL_MEMORY, WORKING_MEMORY, kept_bytes

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-1, 1, (4000, 3))
Y = X @ [0.3, -0.2, 0.1]
CLASSES = (Y > 0).astype(int)
NUMBER, LABEL = pf.Schema.box(-1, 1, target=(-1, 1)), pf.Schema.box(-1, 1, target=[0, 1])


def test_every_estimator_takes_both_by_keyword() -> None:
    for estimator in ESTIMATORS:
        parameters = inspect.signature(estimator).parameters
        for name in ("n_jobs", "max_memory"):
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, (estimator, name)
            assert parameters[name].default is None
            assert f"{name} : " in (estimator.__doc__ or "")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, None),
        (1000, 1000),
        (np.int64(5), 5),
        (2.5e9, 2_500_000_000),
        ("500MB", 500_000_000),
        (" 1.5 gb ", 1_500_000_000),
        ("2GiB", 1 << 31),
        ("7", 7),
    ],
)
def test_memory_is_a_number_of_bytes_or_a_text(given, wanted) -> None:
    assert memory_bytes(given) == wanted


@pytest.mark.parametrize("given", [0, -1, "much", "5 XB", "", True, [1], float("nan"), float("inf"), "MB"])
def test_other_limits_of_memory_are_refused_before_a_table_is_opened(given) -> None:
    with pytest.raises(
        pf.PrivacyError, match=r"max_memory=.* was given; it is a number of bytes.*Use None if in doubt"
    ):
        pf.LinearRegression(schema=NUMBER, max_memory=given).fit("no such file.parquet")


@pytest.mark.parametrize("given", [0, 1.5, "two", True])
def test_other_numbers_of_threads_are_refused_before_a_table_is_opened(given) -> None:
    with pytest.raises(pf.PrivacyError, match=r"n_jobs=.* was given; it is a number of threads.*Use None if in doubt"):
        pf.LogisticRegression(schema=LABEL, n_jobs=given).fit("no such file.parquet")


def test_threads_are_counted_as_scikit_learn_does() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert thread_count(None) == thread_count(-1) == cores
    assert thread_count(-2) == max(1, cores - 1)
    assert thread_count(-1000) == 1
    assert thread_count(7) == 7


def test_what_is_kept_leaves_room_for_libraries_and_batches() -> None:
    assert kept_bytes(None) == USUAL_MEMORY - WORKING_MEMORY
    assert kept_bytes(5_000_000_000) == 5_000_000_000 - WORKING_MEMORY
    assert kept_bytes(1) == 0


MODELS = {
    "linear": (pf.LinearRegression(schema=NUMBER, random_state=1), Y),
    "logistic": (pf.LogisticRegression(schema=LABEL, random_state=1), CLASSES),
    "svm": (pf.LinearSVC(schema=LABEL, random_state=1, mechanism="output"), CLASSES),
    "genetic": (pf.LogisticRegression(schema=LABEL, random_state=1, mechanism="genetic"), CLASSES),
    "kmeans": (pf.KMeans(3, schema=pf.Schema.box(-1, 1), random_state=1), None),
}


def fitted(model, y):
    model.fit(X, y)
    return model.cluster_centers_ if hasattr(model, "cluster_centers_") else model.coef_


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("settings", [{"n_jobs": 1}, {"n_jobs": 3}, {"max_memory": 1, "n_jobs": -1}], ids=str)
def test_neither_changes_a_bit_of_a_fit(name, settings) -> None:
    model, y = MODELS[name]
    changed = clone(model).set_params(**settings)
    np.testing.assert_array_equal(fitted(changed, y), fitted(clone(model), y))
    assert {key: changed.get_params()[key] for key in settings} == settings


@pytest.mark.parametrize("name", ["logistic", "genetic", "kmeans"])
def test_a_stream_that_does_not_fit_in_memory_is_fitted_all_the_same(name) -> None:
    model, y = MODELS[name]
    names = [f"x{i}" for i in range(3)]
    schema = pf.Schema(
        [pf.Numeric(column, -1, 1) for column in names], target=None if y is None else pf.Category("y", [0, 1])
    )
    table = pa.table({**{column: X[:, i] for i, column in enumerate(names)}, **({} if y is None else {"y": y})})
    one, other = (clone(model).set_params(schema=schema, max_memory=most, expected_rows=4000) for most in (None, 1))
    one.fit(table.to_reader(max_chunksize=900))
    other.fit(table.to_reader(max_chunksize=900))
    kept = "cluster_centers_" if y is None else "coef_"
    np.testing.assert_array_equal(getattr(one, kept), getattr(other, kept))


def test_rows_are_summed_by_so_many_threads_and_linear_algebra_by_one(monkeypatch) -> None:
    seen, pools = set(), set()
    pieces = Rows._total

    def total(self, kernel, piece_sum):
        def noted(encoded, first):
            seen.add(threading.get_ident())
            pools.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
            return piece_sum(encoded, first)

        return pieces(self, kernel, noted)

    monkeypatch.setattr(Rows, "_total", total)
    pf.LinearRegression(mechanism="functional", schema=NUMBER, random_state=0, n_jobs=1).fit(
        np.tile(X, (20, 1)), np.tile(Y, 20)
    )
    assert len(seen) == 1
    assert pools == {1}


def test_both_are_saved_with_a_model(tmp_path) -> None:
    model = pf.LinearRegression(schema=NUMBER, random_state=0, n_jobs=2, max_memory="2GB").fit(X, Y)
    model.save(tmp_path / "model.json")
    again = pf.load_model(tmp_path / "model.json")
    assert (again.n_jobs, again.max_memory) == (2, "2GB")


def test_a_full_disk_ends_a_fit_before_the_charge(monkeypatch) -> None:
    monkeypatch.setattr("privfit.tables.array_file.tempfile.TemporaryFile", lambda **_: open("/dev/full", "wb+", 0))  # noqa: SIM115
    for name in ("logistic", "svm", "genetic", "kmeans"):
        model, y = MODELS[name]
        ledger = pf.Ledger(epsilon=5.0)
        with pytest.raises(pf.DataError, match=r"could not be written.*Nothing was charged\.$"):
            clone(model).set_params(random_state=None, ledger=ledger, max_memory=1).fit(X, y)
        assert ledger.spent.epsilon == 0
        assert list(ledger.entries()) == []


def test_no_thread_takes_back_a_limit_of_blas_that_another_relies_on() -> None:
    """The first to leave restores nothing; the last restores what there was."""

    def threads() -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        if before != {2}:
            pytest.skip("this BLAS has no two threads to limit")
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        with one_blas_thread():
            assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before
