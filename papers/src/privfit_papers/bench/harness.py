"""Run the cells of papers on all cores, keep every finished one, and go on where an earlier run was stopped.

Noise is seeded and test rows are looked at: nothing here is a private release.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from threadpoolctl import threadpool_limits

from privfit_papers.bench.grid import Cell, Figure, Paper
from privfit_papers.bench.papers import paper_named
from privfit_papers.bench.results import Key, Log, Results, Value
from privfit_papers.bench.sources import Source


@dataclass(frozen=True)
class Work:
    """A cell of a paper, and from where its table comes."""

    paper: str
    cell: Cell
    origin: str

    @property
    def key(self) -> Key:
        """Under which its results are kept."""
        experiment, table, part, repetition = self.cell.key
        return (self.paper, experiment, table, self.origin, part, repetition)


@dataclass(frozen=True)
class Step:
    """How far a run is: cells finished and all, and the share of the expected work that is done."""

    finished: int
    cells: int
    share: float
    last: str


@dataclass(frozen=True)
class Failure:
    """A cell that could not be measured, and why. It is tried again by the next run."""

    work: Work
    reason: str


def planned(paper: Paper, figures: Sequence[Figure], source: Source, *, quick: bool) -> list[Work]:
    """All cells that the figures need. Loads each table once, so that it is in the cache before workers want it."""
    wanted = {figure.experiment for figure in figures}
    cells = [cell for experiment in paper.experiments if experiment.name in wanted for cell in experiment.cells(quick)]
    if len({cell.key for cell in cells}) < len(cells):
        raise ValueError(f"Two cells of {paper.name} have the same name. Give each its own part or repetition.")
    origins = {name: loaded(paper.name, name, source).origin for name in dict.fromkeys(cell.table for cell in cells)}
    return [Work(paper.name, cell, origins[cell.table]) for cell in cells]


def run(
    works: Sequence[Work],
    source: Source,
    log: Log,
    *,
    workers: int | None = None,
    on_step: Callable[[Step], None] = lambda step: None,
) -> list[Failure]:
    """Measure all cells that the log does not have yet, the longest first, and return those that failed."""
    log.mend()
    done = log.finished()
    left = sorted((work for work in works if work.key not in done), key=lambda work: -work.cell.cost)
    total = sum(work.cell.cost for work in works) or 1.0
    spent = total - sum(work.cell.cost for work in left)
    finished = len(works) - len(left)
    on_step(Step(finished, len(works), spent / total, ""))
    failures = []
    with _measured(left, source, workers or cores()) as measurements:
        for work, values in measurements:
            if isinstance(values, str):
                failures.append(Failure(work, values))
            else:
                log.append(work.key, values)
            finished, spent = finished + 1, spent + work.cell.cost
            on_step(Step(finished, len(works), spent / total, "/".join((work.paper, *map(str, work.cell.key)))))
    return failures


def figure_results(figure: Figure, works: Sequence[Work], done: Mapping[Key, Sequence[Value]]) -> Results:
    """What is known for a figure, from the cells of this plan only."""
    values = [value for work in works if work.cell.experiment == figure.experiment for value in done.get(work.key, ())]
    return Results([*values, *figure.derived(values)], figure.measure, figure.middle)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=16)
def loaded(paper: str, table: str, source: Source) -> Any:
    """A paper's table, loaded once a process."""
    return paper_named(paper).tables[table](source)


def measured(work: Work, source: Source) -> list[Value]:
    """Measure one cell, here."""
    experiment = paper_named(work.paper).experiment(work.cell.experiment)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return list(experiment.measure(work.cell, loaded(work.paper, work.cell.table, source)))


@contextmanager
def _measured(
    works: Sequence[Work], source: Source, workers: int
) -> Iterator[Iterator[tuple[Work, list[Value] | str]]]:
    """Values of each cell as they come, or why there are none. Whoever leaves early ends the workers too."""
    if not works:
        yield iter(())
        return
    context = get_context("spawn")
    still_there, held = context.Pipe(duplex=False)  # closed when this process lets go of it, or dies
    pool = ProcessPoolExecutor(
        min(workers, len(works)), mp_context=context, initializer=_end_with_parent, initargs=(still_there,)
    )
    try:
        offline = replace(source, download=False)  # workers see the files that were there when the cells were planned
        tasks = {pool.submit(measured, work, offline): work for work in works}
        yield ((tasks[task], _values_or_reason(task)) for task in as_completed(tasks))
        pool.shutdown()
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)


def _values_or_reason(task: Future[list[Value]]) -> list[Value] | str:
    reason = task.exception()
    return task.result() if reason is None else f"{type(reason).__name__}: {reason}"


def _end_with_parent(still_there: Connection) -> None:
    """A worker ends with the run: it would wait for work for ever if its parent was killed.

    Ctrl-C is for the parent alone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=lambda: (wait([still_there]), os._exit(1)), daemon=True).start()
