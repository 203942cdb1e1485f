"""Measure the cells of the board: one file for each, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from privfit_papers.bench.board import peers
from privfit_papers.bench.board.cells import Cell, Result
from privfit_papers.bench.board.environments import NoEnvironment, interpreter
from privfit_papers.bench.board.methods import Environment, Method
from privfit_papers.bench.board.scores import scores
from privfit_papers.bench.board.tables import BoardTable

FORMAT = 1
"""Of the files of cells: others are measured again."""
_START = "import runpy, sys; sys.path.append({root!r}); runpy.run_module('peers.{script}', run_name='__main__')"


def planned(table: BoardTable, methods: Sequence[Method], epsilons: Sequence[float], splits: int) -> list[Cell]:
    """All cells of a table, split by split and peer by peer."""
    return [
        Cell(table.name, table.task, method, epsilon, split)
        for split in range(splits)
        for method in methods
        if table.task in method.tasks
        for epsilon in (epsilons if method.promise != "none" else (0.0,))
    ]


@dataclass(frozen=True)
class Board:
    """A folder of results, environments and splits.

    Parameters
    ----------
    folder : where all of it is.
    longest : seconds that one fit may take.
    install : whether environments that are not there are made.
    """

    folder: Path
    longest: float = 900.0
    install: bool = True

    def result(self, table: BoardTable, cell: Cell) -> Result | None:
        """What is known of a cell."""
        with suppress(OSError, json.JSONDecodeError):
            told = json.loads((self.folder / "cells" / cell.path).read_text(encoding="utf-8"))
            if told["of"] == _of(table, cell):
                return Result(cell, told["scores"], told["seconds"], told["failed"])
        return None

    def run(
        self, table: BoardTable, cells: Sequence[Cell], workers: int, say: Callable[[str], None] = lambda told: None
    ) -> None:
        """Measure all cells that have no result yet. A peer whose environment cannot be made is left out, aloud."""
        left = [cell for cell in cells if self.result(table, cell) is None]
        pythons = self._interpreters(left, say)
        left = [cell for cell in left if cell.method.environment in pythons]
        for split, of_split in groupby(left, key=lambda cell: cell.split):
            own = self.folder / "splits" / table.name
            table.save_split(split, own)
            with ThreadPoolExecutor(workers) as pool:
                tasks = [
                    pool.submit(self._measure, table, list(some), own, pythons[environment], say)
                    for environment, some in _by_environment(list(of_split))
                ]
                for task in tasks:
                    task.result()

    def _interpreters(self, cells: Sequence[Cell], say: Callable[[str], None]) -> dict[Environment, Path]:
        found = {}
        for environment in dict.fromkeys(cell.method.environment for cell in cells):
            try:
                found[environment] = interpreter(environment, self.folder / "environments", self.install)
            except NoEnvironment as error:
                say(str(error))
        return found

    def _measure(
        self, table: BoardTable, cells: list[Cell], split: Path, python: Path, say: Callable[[str], None]
    ) -> None:
        """Fits of one peer on one split, in one process as long as that lives."""
        truth = np.load(split / "truth.npy")
        answer = split / f"{cells[0].method.environment.name}.npy"
        with Peer(python, cells[0].method.environment, split) as peer:
            for cell in cells:
                told = peer.fit({**cell.ask, "answer": str(answer)}, self.longest)
                found = {} if "failed" in told else scores(table.task, np.load(answer), truth)
                self._keep(table, Result(cell, found, told.get("seconds", 0.0), told.get("failed", "")))
                say(f"{cell.table}, split {cell.split}: {cell.method.name}, epsilon {cell.epsilon:g}")

    def _keep(self, table: BoardTable, result: Result) -> None:
        path = self.folder / "cells" / result.cell.path
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {
            "of": _of(table, result.cell),
            "scores": dict(result.scores),
            "seconds": result.seconds,
            "failed": result.failed,
        }
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(told, indent=1), encoding="utf-8")
        unfinished.rename(path)


class Peer:
    """A peer's script in its own environment and process, which ends when it is let go, or takes too long."""

    def __init__(self, python: Path, environment: Environment, split: Path) -> None:
        start = _START.format(root=str(Path(peers.__file__).parents[1]), script=environment.script)
        self._command = [str(python), "-c", start, str(split)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process is not None:
            self._process.communicate()  # no more questions: it ends

    def fit(self, ask: Mapping[str, Any], longest: float) -> dict[str, Any]:
        """What it answers; `failed` and why, where it has no answer."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        clock = threading.Timer(longest, process.kill)
        clock.start()
        with suppress(BrokenPipeError):  # then there is no answer either
            print(json.dumps(ask), file=process.stdin, flush=True)
        line, late = process.stdout.readline(), not clock.is_alive()
        clock.cancel()
        if line:
            told: dict[str, Any] = json.loads(line)
            return told
        self._process = None
        process.wait()
        return {"failed": f"took longer than {longest:g} seconds" if late else "its process ended"}

    def _started(self) -> subprocess.Popen[str]:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | threads,
        )


def _of(table: BoardTable, cell: Cell) -> dict[str, Any]:
    """What a result belongs to: where this changes it is measured again."""
    environment = asdict(cell.method.environment)
    return {
        "format": FORMAT,
        "rows": len(table.rows),
        "ask": cell.ask,
        "packages": list(environment["packages"]),
    }


def _by_environment(cells: Sequence[Cell]) -> Iterator[tuple[Environment, Iterator[Cell]]]:
    return groupby(
        sorted(cells, key=lambda cell: cell.method.environment.name), key=lambda cell: cell.method.environment
    )
