"""Frames of Spark: partitions come to Python workers as Arrow record batches, beside the executors that hold them.

A pass over the frame is one `mapInArrow`. What is read many times is encoded by one, and kept by Spark as an RDD, in
memory and on disk; of executors that are lost it is made anew.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as arrow_fs
import pyarrow.parquet as pq

from privfit.tables.arrow_columns import record_batches
from privfit.tables.errors import DataError
from privfit.tables.partitioned import Answer, Block, KeptBlocks, Merge, PartitionedTable, PartTask, Pass
from privfit.tables.table import Batch

Made = TypeVar("Made")
ArrowBatches = Iterator[pa.RecordBatch]

BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_ROWS = 1 << 18
"""Rows of an Arrow batch: with the 10,000 that Spark takes by itself, a pass takes almost twice as long."""
LOSING = ("ignoreCorruptFiles", "ignoreMissingFiles")
"""Settings by which Spark leaves out rows without a word."""
PLAIN = ("HadoopFsRelation", "ParquetFileFormat", "InMemoryFileIndex")
"""The classes by which Spark scans plain Parquet files."""
FOOTERS_AT_ONCE = 16
"""Footers that are read at the same time."""
FEW_ANSWERS = 64
"""Answers that are merged where the fit runs; more of them are merged by workers first."""
BEYOND_ASCII = re.compile("=[^/]*%[89A-Fa-f][0-9A-Fa-f][^/]*/")
"""A value in the name of a folder, of which a byte beyond ASCII is spelt after %."""
_setting = Lock()


def is_spark(table: Any) -> bool:
    """Whether this is a frame of Spark, found out without importing it."""
    kind = type(table)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


class SparkTable(PartitionedTable):
    """A frame of Spark, read by its own plan."""

    label = "Spark frame"

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "_jdf"):
            raise DataError(
                "A frame of Spark Connect was given, whose workers keep nothing for a client between passes. Give a "
                "frame of a classic session, or the Parquet files themselves. Nothing was charged."
            )
        plan = _plan(frame)
        _refuse_losses(frame, plan)
        _refuse_misread_folders(plan)
        self._frame = frame
        self.names = tuple(frame.columns)
        self.n_rows = self.promised = _promised(frame)

    def everywhere(self, positions: Sequence[int], task: PartTask[Answer[Made]], merge: Merge[Made]) -> Answer[Made]:
        with _large_batches(self._frame.sparkSession):
            bodies = self._bodies(positions, task)
            if bodies.rdd.getNumPartitions() <= FEW_ANSWERS:
                return merge(pickle.loads(row.body) for row in bodies.collect())
            return _merged(bodies.rdd.map(_answer_of), merge)

    def kept(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> KeptBlocks:
        with _large_batches(self._frame.sparkSession):
            return SparkBlocks(self._bodies(positions, task).rdd.map(_body_of))

    def each(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> Iterator[Block]:
        with _large_batches(self._frame.sparkSession):
            rows = self._bodies(positions, task).toLocalIterator()
        for row in rows:
            yield pickle.loads(row.body)

    def _bodies(self, positions: Sequence[int], task: PartTask[Any]) -> Any:
        """What a task makes of every partition: a frame with one column of pickled objects."""

        def work(batches: ArrowBatches) -> ArrowBatches:
            for made in _on_partition(task, batches):
                yield pa.record_batch([pa.array([pickle.dumps(made, protocol=5)], pa.binary())], names=["body"])

        chosen = list(dict.fromkeys(positions))
        placed = self._frame.toDF(*map(str, range(len(self.names or ()))))  # names may hold dots, and be there twice
        places = [chosen.index(position) for position in positions]
        task = replace(task, places=places)
        return placed.select(*map(str, chosen)).mapInArrow(work, "body binary")


class SparkBlocks(KeptBlocks):
    """Blocks that Spark keeps, in memory while they fit and on disk: pickled, one a record."""

    def __init__(self, bodies: Any) -> None:
        from pyspark import StorageLevel

        self._bodies = bodies.persist(StorageLevel.MEMORY_AND_DISK)

    def everywhere(self, task: Pass[Made], merge: Merge[Made]) -> Answer[Made]:
        def look(bodies: Iterable[bytes]) -> Iterator[Answer[Made]]:
            yield task(map(pickle.loads, bodies))

        return _merged(self._bodies.mapPartitions(look), merge)

    def each(self) -> Iterator[Block]:
        yield from map(pickle.loads, self._bodies.toLocalIterator())

    def forget(self) -> None:
        self._bodies.unpersist()


def _merged(answers: Any, merge: Merge[Made]) -> Answer[Made]:
    """The answers of all partitions: many are merged by workers first."""
    if answers.getNumPartitions() <= FEW_ANSWERS:
        return merge(answers.collect())
    found: Answer[Made] = answers.treeReduce(lambda one, other: merge([one, other]))
    return found


@contextmanager
def _large_batches(session: Any) -> Iterator[None]:
    """Large Arrow batches for the jobs that are started meanwhile; the session's own setting afterwards."""
    with _setting:
        before = session.conf.get(BATCH_SETTING)
        session.conf.set(BATCH_SETTING, str(BATCH_ROWS))
        try:
            yield
        finally:
            session.conf.set(BATCH_SETTING, before)


def _plan(frame: Any) -> Any:
    """The optimised plan of a frame down to its sources, also where Spark has cached it."""
    query = frame._jdf.queryExecution()
    return query.sparkSession().sessionState().optimizer().execute(query.analyzed())


def _refuse_losses(frame: Any, plan: Any) -> None:
    """Refuse settings by which files that cannot be read are left out: of the session, and of the frame's sources."""
    conf = frame.sparkSession.conf
    found = [name for name in LOSING for prefix in ("spark.sql.files.", "spark.files.") if _is_on(conf, prefix + name)]
    leaves = plan.collectLeaves()
    told = " ".join(_options(leaves.apply(place)) for place in range(leaves.size())).lower()
    found += [name for name in LOSING if f"{name.lower()} -> true" in told]
    if found:
        raise DataError(
            f"A Spark frame was given with {found[0]} on, which leaves out rows without a word. Turn it off. Nothing "
            "was charged."
        )


def _refuse_misread_folders(plan: Any) -> None:
    """Refuse columns that come from names of folders which Spark reads otherwise than whoever wrote them.

    Spark writes letters beyond ASCII as they are. pyarrow, polars and DuckDB write their bytes as `S%C3%A3o`, of which
    Spark makes a letter each: `SÃ£o`, another level.
    """
    handed_out, leaves = _handed_out(plan), plan.collectLeaves()
    for leaf in map(leaves.apply, range(leaves.size())):
        if handed_out & _of_folders(leaf) and _is_beyond_ascii(leaf.relation()):
            raise DataError(
                "A Spark frame was given over folders whose names hold letters beyond ASCII as bytes after %, of which "
                "Spark makes other letters than were written. Give the path of the folder instead of the frame, or "
                "correct the column: decode(encode(column, 'ISO-8859-1'), 'UTF-8'). Nothing was charged."
            )


def _handed_out(plan: Any) -> set[int]:
    """The numbers of the attributes that a plan hands out as they are, by whatever name."""
    columns = plan.projectList() if plan.getClass().getSimpleName() == "Project" else plan.output()
    found = set()
    for one in map(columns.apply, range(columns.size())):
        source = one.child() if one.getClass().getSimpleName() == "Alias" else one
        if source.getClass().getSimpleName() == "AttributeReference":
            found.add(int(source.exprId().id()))
    return found


def _of_folders(leaf: Any) -> set[int]:
    """The numbers of the attributes of a source that are named in folders."""
    if leaf.getClass().getSimpleName() != "LogicalRelation" or not _options(leaf):
        return set()
    names, columns = set(leaf.relation().partitionSchema().fieldNames()), leaf.output()
    return {int(one.exprId().id()) for one in map(columns.apply, range(columns.size())) if one.name() in names}


def _is_beyond_ascii(relation: Any) -> bool:
    return any(BEYOND_ASCII.search(unquote(file)) for file in relation.inputFiles())


def _promised(frame: Any) -> int | None:
    """How many rows the footers of Parquet files say that a frame has, where its plan scans these files and nothing
    else: Spark reads a file whose footer counts more rows than are there without a word.
    """
    with suppress(Exception):  # files that only Spark can open promise nothing
        plan = frame._jdf.queryExecution().optimizedPlan()
        while plan.getClass().getSimpleName() == "Project":
            plan = plan.child()
        if _is_parquet(plan):
            with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
                return sum(pool.map(_footer, frame.inputFiles()))
    return None


def _is_parquet(plan: Any) -> bool:
    """Whether this scans plain Parquet files. Delta and Iceberg have files of the same kind, and rows of them that do
    not count; their classes have other names.
    """
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return False
    relation = plan.relation()
    kinds = relation.getClass(), relation.fileFormat().getClass(), relation.location().getClass()
    return tuple(kind.getSimpleName() for kind in kinds) == PLAIN


def _footer(address: str) -> int:
    files, path = arrow_fs.FileSystem.from_uri(address)
    return int(pq.read_metadata(path, filesystem=files).num_rows)


def _is_on(conf: Any, name: str) -> bool:
    return str(conf.get(name, "false")).lower() == "true"


def _options(leaf: Any) -> str:
    """The options that a source was opened with, where it has any."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return ""
    relation = leaf.relation()
    return str(relation.options().toString()) if "HadoopFsRelation" in relation.getClass().getName() else ""


# -- on workers ------------------------------------------------------------------------------------


def _answer_of(row: Any) -> Any:
    return pickle.loads(row.body)


def _body_of(row: Any) -> bytes:
    return bytes(row.body)


def _on_partition(task: PartTask[Any], batches: ArrowBatches) -> Iterable[Any]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    made = task.task(context.partitionId(), _batches(task, batches))
    return made if isinstance(made, Iterator) else [made]


def _batches(task: PartTask[Any], batches: ArrowBatches) -> Iterator[Batch]:
    yield from record_batches(batches, task.columns, task.places, task.rows)
