"""Frames of Dask and Spark: what is lost, late, twice there or other than before changes no sum, or ends the fit."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privfit as pf
from privfit.rows import count_rows
from privfit.tables import DataError, open_table
from privfit.tables.partitioned import Answer, Merge, PartitionedTable, Persisted, Seen
from tests.support.chains import told_by
from tests.support.clusters import dask_client, dask_frame, spark_frame, spark_session

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
ROWS = 4000
SCHEMA = pf.Schema([pf.Numeric("age", 0, 100), pf.Category("city", ["a", "b", "c"])], pf.Category("ill", ["no", "yes"]))
NUMBERS = pf.Schema([pf.Numeric("age", 0, 100), pf.Numeric("wage", 0, 10)])
CLUSTERS: dict[str, Callable[[pa.Table], Any]] = {"dask": dask_frame, "spark": spark_frame}


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(3)
    age = rng.uniform(0, 100, rows)
    return pa.table(
        {
            "age": age,
            "city": rng.choice(["a", "b", "c"], rows).tolist(),
            "wage": rng.uniform(0, 10, rows),
            "ill": np.where(age + rng.normal(0, 30, rows) > 50, "yes", "no").tolist(),
        }
    )


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    return CLUSTERS[request.param]


def one_pass(table: Any) -> bytes:
    schema = pf.Schema([pf.Numeric("wage", 0, 10), pf.Category("city", ["a", "b", "c"])], pf.Numeric("age", 0, 100))
    return pf.LinearRegression(1.0, schema=schema, random_state=1).fit(table).coef_.tobytes()


def several_passes(table: Any) -> bytes:
    return pf.LogisticRegression(1.0, schema=SCHEMA, random_state=1).fit(table).coef_.tobytes()


def clusters(table: Any) -> bytes:
    return pf.KMeans(3, epsilon=1.0, schema=NUMBERS, random_state=1).fit(table).cluster_centers_.tobytes()


FITS = {"one pass": one_pass, "several passes": several_passes, "clusters": clusters}


def once(path: Path) -> Callable[[], None]:
    """Ends the process that calls it, the first time that it is called in any."""
    driver = os.getpid()

    def kill() -> None:
        if os.getpid() == driver:
            raise AssertionError("rows were looked at where the fit runs")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return kill


def killing(monkeypatch: pytest.MonkeyPatch, kill: Callable[[], None], after: int) -> list[int]:
    """Let a worker die in the pass of this number, in the middle of a partition."""
    passes = [0]

    def deadly(work: Callable[[int, Iterator[Any]], Any]) -> Callable[[int, Iterator[Any]], Any]:
        passes[0] += 1
        if passes[0] != after:
            return work

        def wrapped(number: int, parts: Iterator[Any]) -> Any:
            def dying() -> Iterator[Any]:
                for part in parts:
                    kill()
                    yield part

            return work(number, dying())

        return wrapped

    run, again = PartitionedTable.run, Persisted.run
    monkeypatch.setattr(
        PartitionedTable, "run", lambda self, c, p, rows, work, add: run(self, c, p, rows, deadly(work), add)
    )
    monkeypatch.setattr(Persisted, "run", lambda self, look, add: again(self, deadly(look), add))
    return passes


@pytest.mark.parametrize(("fit", "after"), [("one pass", 1), ("several passes", 5), ("clusters", 3)])
def test_a_worker_that_is_killed_in_the_middle_changes_nothing(
    cluster: Callable[[pa.Table], Any], fit: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = FITS[fit](pl.from_arrow(people()))
    passes = killing(monkeypatch, once(tmp_path / "killed"), after)
    assert FITS[fit](cluster(people())) == expected
    assert (tmp_path / "killed").exists(), passes


def in_thirds(column: str) -> pf.Category:
    return pf.Category(column, ["a", "b", "c"])


AGE, WAGE, ILL = pf.Numeric("age", 0, 100), pf.Numeric("wage", 0, 10), pf.Category("ill", ["no", "yes"])
KEEPS_ROWS_THERE: dict[str, Callable[[Any], Any]] = {
    "lasso that selects": lambda table: (
        pf.Lasso(1.0, alpha="select", schema=pf.Schema([WAGE, in_thirds("city")], AGE), random_state=1).fit(table).coef_
    ),
    "regression by objective": lambda table: (
        pf.LinearRegression(
            1.0, mechanism="objective", schema=pf.Schema([WAGE, in_thirds("city")], AGE), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "three classes": lambda table: (
        pf.LogisticRegression(1.0, schema=pf.Schema([AGE, WAGE], in_thirds("city")), random_state=1).fit(table).coef_
    ),
    "interactions": lambda table: (
        pf.LogisticRegression(
            8.0, interactions=2, schema=pf.Schema([AGE, WAGE, in_thirds("city")], ILL), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "tuned": lambda table: (
        pf.LogisticRegression(
            1.0, mechanism=pf.TunedPerturbation(), schema=pf.Schema([AGE, in_thirds("city")], ILL), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "kernel": lambda table: (
        pf.LinearSVC(1.0, kernel="rbf", schema=pf.Schema([AGE, WAGE], ILL), random_state=1).fit(table).coef_
    ),
    "genetic, three classes": lambda table: (
        pf.LogisticRegression(
            1.0, mechanism="genetic", schema=pf.Schema([AGE, WAGE], in_thirds("city")), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "genetic search": lambda table: (
        pf.GeneticSearch(
            pf.RowFitness(lambda rows, w: -np.abs(rows[:, :1] - w.T), spread=lambda w: float(np.ptp(w))),
            low=[0.0],
            high=[100.0],
            rounds=4,
            schema=pf.Schema([AGE]),
            random_state=1,
        )
        .fit(table)
        .best_
    ),
    "genetic clusters": lambda table: (
        pf.KMeans(2, mechanism=pf.PrivGene(), epsilon=1.0, schema=NUMBERS, random_state=1).fit(table).cluster_centers_
    ),
    "aggregate": lambda table: (
        pf.Aggregate(np.median, low=0, high=100, epsilon=2.0, schema=pf.Schema([AGE]), random_state=1)
        .fit(table)
        .estimate_
    ),
    "aggregate of fits": lambda table: (
        pf.LogisticRegression(
            4.0, mechanism="sample-and-aggregate", schema=pf.Schema([AGE, in_thirds("city")], ILL), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "histogram": lambda table: (
        pf.baselines.DPME(1.0, schema=pf.Schema([AGE, WAGE], ILL), random_state=1).fit(table).weights_
    ),
    "filter": lambda table: (
        pf.LogisticRegression(
            1.0, schema=pf.Schema([AGE, in_thirds("city")], ILL, where={"wage": (2, 8)}), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "filter that nobody meets": lambda table: (
        pf.LogisticRegression(
            1.0, schema=pf.Schema([AGE, in_thirds("city")], ILL, where={"wage": (11, 12)}), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "filter that nobody meets, one pass": lambda table: (
        pf.LinearRegression(
            1.0, schema=pf.Schema([AGE, in_thirds("city")], WAGE, where={"wage": (11, 12)}), random_state=1
        )
        .fit(table)
        .coef_
    ),
    "filter, one pass": lambda table: (
        pf.LinearRegression(
            1.0, schema=pf.Schema([AGE, in_thirds("city")], WAGE, where={"wage": (2, 8)}), random_state=1
        )
        .fit(table)
        .coef_
    ),
}


@pytest.fixture
def nothing_comes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, encoded or not, are read on workers alone."""

    def refused(self: Any, *arguments: Any) -> Any:
        raise AssertionError("rows came to the process of the fit")

    monkeypatch.setattr(PartitionedTable, "read", refused)
    monkeypatch.setattr(Persisted, "chunks", refused)


@pytest.mark.parametrize("fit", KEEPS_ROWS_THERE)
@pytest.mark.parametrize("engine", ["dask", pytest.param("spark", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("nothing_comes_here")
def test_every_mechanism_gives_the_same_bits_and_no_row_comes_here(engine: str, fit: str) -> None:
    run = KEEPS_ROWS_THERE[fit]
    assert run(CLUSTERS[engine](people())).tobytes() == run(pl.from_arrow(people())).tobytes()


def test_an_answer_that_comes_twice_counts_once_and_sets_that_overlap_are_refused() -> None:
    merge = Merge(lambda one, other: one + other, "frame")
    one, other = Answer({0: Seen(5)}, 10), Answer({1: Seen(6)}, 20)
    both = merge([one, other, one])
    assert (both.made, both.seen, both.refusals) == (30, {0: Seen(5), 1: Seen(6)}, {})
    assert merge([both, Answer({2: Seen(0)})]).made == 30
    assert merge([both, one]).refusals


class Answers(PartitionedTable):
    """Partitions that say how many rows they have, another number in every pass."""

    label = "frame"

    def __init__(self, *passes: dict[int, int]) -> None:
        self._passes = iter(passes)

    def everywhere(self, positions: Any, task: Any, merge: Any) -> Any:
        return merge([Answer({number: Seen(rows)}, 1) for number, rows in next(self._passes).items()])

    def kept(self, positions: Any, task: Any) -> Any:
        raise NotImplementedError

    def each(self, positions: Any, task: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("second", [{0: 5}, {0: 5, 1: 7}, {0: 5, 1: 6, 2: 0}, {0: 6, 1: 5}, {1: 6}])
def test_a_partition_that_is_missing_or_has_other_rows_than_before_is_refused(second: dict[int, int]) -> None:
    table = Answers({0: 5, 1: 6}, {0: 5, 1: 6}, second)
    for _ in range(2):
        assert table.run([], [], 1, lambda number, batches: 1, lambda one, other: one + other) == 2
    with pytest.raises(DataError, match=r"another number of rows.*Nothing was charged"):
        table.run([], [], 1, lambda number, batches: 1, lambda one, other: one + other)


@pytest.mark.parametrize("first", [{0: 5, 2: 6}, {1: 6}])
def test_partitions_are_numbered_without_gaps(first: dict[int, int]) -> None:
    with pytest.raises(DataError, match="another number of rows"):
        Answers(first).run([], [], 1, lambda number, batches: 1, lambda one, other: one + other)


def test_footers_are_compared_with_what_was_read() -> None:
    table = Answers({0: 5, 1: 6})
    table.promised = 12
    with pytest.raises(DataError, match="another number of rows"):
        table.run([], [], 1, lambda number, batches: 1, lambda one, other: one + other)


def forgetful(tmp_path: Path, change: Callable[[Any], Any]) -> Any:
    """A frame of Dask whose partitions are others when they are made a second time."""
    dask_client()
    import dask.dataframe as dd

    parts = [people().slice(start, 1000).to_pandas() for start in range(0, ROWS, 1000)]

    def made(number: int) -> Any:
        try:
            (tmp_path / f"made {number}").touch(exist_ok=False)
        except FileExistsError:
            (tmp_path / f"again {number}").touch()
            return change(parts[number])
        return parts[number]

    return dd.from_map(made, range(len(parts)), meta=parts[0].iloc[:0])


@pytest.mark.parametrize(
    "change", [lambda part: part.iloc[::-1], lambda part: part.iloc[1:], lambda part: part.assign(age=part.age + 1)]
)
def test_a_partition_that_is_lost_and_comes_back_as_another_ends_the_fit_and_the_charge_stands(
    change: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may die with a copy of a partition that another one has: then nothing is lost, and it dies again."""
    for turn in range(10):
        folder, ledger = tmp_path / str(turn), pf.Ledger(epsilon=2.0)
        folder.mkdir()
        with monkeypatch.context() as patched:
            killing(patched, once(folder / "killed"), after=3)
            told = ""
            try:
                pf.KMeans(3, epsilon=1.0, schema=NUMBERS, ledger=ledger).fit(forgetful(folder, change))
            except DataError as error:
                told = str(error)
        assert ledger.spent.epsilon == 1.0
        if list(folder.glob("again *")) or told:
            break
    assert "not what it was at first. The charge stands" in told


def test_a_frame_that_has_other_rows_in_the_second_pass_ends_the_fit_before_the_charge(tmp_path: Path) -> None:
    frame, ledger = forgetful(tmp_path, lambda part: part.iloc[1:]), pf.Ledger(epsilon=2.0)
    table = open_table(frame)
    assert count_rows(table, NUMBERS.columns) == ROWS
    with pytest.raises(DataError, match="another number of rows"):
        pf.KMeans(3, epsilon=1.0, schema=NUMBERS, ledger=ledger).fit(table)
    assert ledger.spent.epsilon == 0


# -- Spark -----------------------------------------------------------------------------------------


def claims_more_rows(path: Path) -> None:
    """Let the footer of a Parquet file of 100 rows count 120, of which 20 are nowhere."""
    held = path.read_bytes()
    start = len(held) - 8 - int.from_bytes(held[-8:-4], "little")
    hundred, more = b"\x16\xc8\x01\x19", b"\x16\xf0\x01\x19"  # the footer's first number
    assert hundred in held[start:]
    path.write_bytes(held[:start] + held[start:].replace(hundred, more, 1))


def test_spark_s_silent_losses_are_refused(tmp_path: Path) -> None:
    """In one test, because one session takes seconds to start."""
    session = spark_session()
    pq.write_table(people(100), tmp_path / "people.parquet")
    frame = session.read.parquet(str(tmp_path / "people.parquet"))
    assert open_table(frame).n_rows == 100
    assert open_table(frame.select("age", "wage")).n_rows == 100
    assert open_table(frame.where("age > 50")).n_rows is None
    with pytest.raises(DataError, match="ignoreMissingFiles on, which leaves out rows"):
        open_table(session.read.option("ignoreMissingFiles", "true").parquet(str(tmp_path / "people.parquet")))
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(DataError, match="ignoreCorruptFiles on, which leaves out rows"):
        open_table(frame)
    session.conf.unset("spark.sql.files.ignoreCorruptFiles")

    claims_more_rows(tmp_path / "people.parquet")
    frame, ledger = session.read.parquet(str(tmp_path / "people.parquet")), pf.Ledger(epsilon=2.0)
    assert frame.where("age >= 0").count() == 100
    with pytest.raises(DataError, match=r"another number of rows.*Nothing was charged"):
        pf.KMeans(3, epsilon=1.0, schema=NUMBERS, ledger=ledger).fit(frame)
    assert ledger.spent.epsilon == 0


def test_no_error_of_a_cluster_quotes_a_cell(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither what is raised nor what workers print: what privfit sends there raises nothing."""
    session = spark_session()
    wrong = people(50).set_column(1, "city", pa.array(["SECRET77"] * 50))
    for frame in (dask_frame(wrong), spark_frame(wrong)):
        with pytest.raises(DataError, match="'city' contains a level that its schema does not list") as caught:
            several_passes(frame)
        assert "SECRET77" not in told_by(caught.value)
    assert "SECRET77" not in "".join(capfd.readouterr())
    cast = spark_frame(wrong).selectExpr("age", "cast(city as double) as wage")
    meta = people(1).to_pandas()[["age", "wage"]]
    mapped = dask_frame(wrong).map_partitions(
        lambda part: part.assign(wage=part.city.astype(float))[["age", "wage"]], meta=meta
    )
    for frame in (cast, mapped):
        with pytest.raises(DataError, match="cannot be read as the schema says") as caught:
            clusters(frame)
        assert "SECRET77" not in told_by(caught.value)
    assert session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "10000"


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark_session()
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        if any(mark in block for mark in ("people = ", "people.partition_by", "pyspark")):
            placed = block.replace('parquet("data")', f"parquet({str(tmp_path / 'data')!r})")  # Java is elsewhere
            exec(compile(placed, PAGE.name, "exec"), known)
    model, frame = known["model"], known["frame"]
    assert type(frame).__module__.startswith("pyspark")
    assert len(model.predict(frame)) == frame.count()  # type: ignore[attr-defined]


def test_doctor_checks_spark_and_says_which_java_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    spark_session()
    from privfit.cli.doctor import ENGINES, examined

    engine = next(one for one in ENGINES if one.name == "Spark frames")
    assert examined(engine).state == "works"
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = examined(engine)
    assert (found.state, found.detail) == ("missing", "Java: apt-get install default-jre-headless")
