"""The harness: cells are measured once, kept at once, and a killed run goes on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.tests.support import tiny_paper
from privfit_papers.bench import harness
from privfit_papers.bench.claims import below, falls, judged, not_testable, within
from privfit_papers.bench.grid import Cell
from privfit_papers.bench.harness import Work
from privfit_papers.bench.results import COLUMNS, Log, Results, Value
from privfit_papers.bench.sources import Source

KEY = ("tiny", "errors", "made-up", "generated", "ours", 0)
VALUES = [Value("left", "ours", 0.1, 1.5), Value("left", "ours", 1.0, 0.25, "seconds")]
ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from privfit_papers.bench.papers import MODULES
MODULES["tiny"] = "papers.tests.support.tiny_paper"
from privfit.cli import app
if __name__ == "__main__":
    app(sys.argv[1:], standalone_mode=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "new" / "results.csv")


def test_what_is_appended_is_read_again(log: Log) -> None:
    log.append(KEY, VALUES)
    log.append((*KEY[:5], 1), VALUES[:1])
    assert log.finished() == {KEY: VALUES, (*KEY[:5], 1): VALUES[:1]}
    assert log.path.read_text().splitlines()[0] == ",".join(COLUMNS)


def test_a_cell_whose_writing_was_cut_off_counts_as_not_measured_wherever_it_was_cut(log: Log) -> None:
    log.append(KEY, VALUES)
    whole = log.path.stat().st_size
    later = (*KEY[:5], 1)
    log.append(later, VALUES)
    text = log.path.read_bytes()
    for end in range(whole, len(text)):
        log.path.write_bytes(text[:end])
        log.mend()
        assert log.finished() == {KEY: VALUES}, end
        log.append(later, VALUES)
        assert log.finished() == {KEY: VALUES, later: VALUES}, end


def test_torn_cells_are_taken_out_so_that_other_programs_read_every_value_once(log: Log) -> None:
    log.append(KEY, VALUES)
    later = (*KEY[:5], 1)
    log.append(later, VALUES)
    text = log.path.read_text()
    log.path.write_text(text[: text.rindex("\n", 0, -1) + 5])
    log.mend()
    log.append(later, VALUES)
    assert log.path.read_text() == text


@pytest.mark.parametrize("damage", ["abc", "", "\0\0", "\ufffd"])
def test_a_line_that_cannot_be_read_makes_its_cell_unmeasured(log: Log, damage: str) -> None:
    log.append(KEY, VALUES)
    log.append((*KEY[:5], 1), VALUES)
    log.path.write_text(log.path.read_text().replace("1.5\n", damage + "\n", 1))
    assert list(log.finished()) == [(*KEY[:5], 1)]
    log.mend()
    assert list(log.finished()) == [(*KEY[:5], 1)]


@pytest.mark.parametrize("content", [b"hello,world\n1,2\n", bytes(range(1, 256)) * 9, b"paper,experiment\n"])
def test_a_file_that_is_something_else_is_left_alone(log: Log, content: bytes) -> None:
    log.path.parent.mkdir(parents=True)
    log.path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a file of results"):
        log.mend()
    assert log.path.read_bytes() == content


def test_two_runs_do_not_write_to_one_folder(log: Log) -> None:
    with log.alone(), pytest.raises(ValueError, match="Another run"), Log(log.path).alone():
        pass
    with log.alone():
        log.append(KEY, VALUES)
    assert log.finished() == {KEY: VALUES}


def test_a_cell_that_measured_nothing_is_an_error(log: Log) -> None:
    with pytest.raises(ValueError, match="measured nothing"):
        log.append(KEY, [])


def test_of_a_cell_measured_twice_the_last_counts(log: Log) -> None:
    log.append(KEY, VALUES)
    log.append(KEY, VALUES[:1])
    assert log.finished() == {KEY: VALUES[:1]}


def test_seeds_are_shared_by_parts_and_differ_by_repetition_table_and_purpose() -> None:
    cell = Cell("errors", "adult", "ours", 0)
    assert cell.seed() == Cell("errors", "adult", "theirs", 0, cost=7.0).seed()
    others = [Cell("errors", "adult", "ours", 1).seed(), Cell("errors", "bank", "ours", 0).seed(), cell.seed("noise")]
    assert len({cell.seed(), *others}) == 4


def test_a_cell_gives_the_same_values_every_time() -> None:
    cell = tiny_paper.PAPER.experiments[0].cells(True)[0]
    table = tiny_paper.PAPER.tables["made-up"](None)
    assert list(tiny_paper.PAPER.experiments[0].measure(cell, table)) == list(
        tiny_paper.PAPER.experiments[0].measure(cell, table)
    )


def test_results_are_looked_up_by_panel_method_place_and_measure() -> None:
    results = Results(
        [Value("a", "m", 1.0, value) for value in (1.0, 2.0, 6.0)] + [Value("a", "m", 1.0, 9.0, "seconds")]
    )
    assert results.middle("a", "m", 1.0) == 3.0
    assert results.middle("a", "m", 1.0, "seconds") == 9.0
    assert np.isnan(results.middle("a", "m", 2.0))
    low, high = results.band("a", "m", 1.0)
    assert 1.0 < low < 2.0 < high < 6.0


def _line(method: str, *errors: float) -> list[Value]:
    return [Value("a", method, float(x), error) for x, error in enumerate(errors)]


def test_claims_count_points_and_name_the_worst() -> None:
    results = Results(_line("low", 1, 2, 5) + _line("high", 2, 3, 4))
    verdict = below("low", "high")(results)
    assert verdict.outcome == "held in part"
    assert "2 of 3" in verdict.number
    assert "a, 2: low 5, high 4" in verdict.number
    assert below("high", "low")(results).outcome == "not held"
    assert below("low", "missing")(results).outcome == "cannot be tested"
    assert falls("high")(results).outcome == "not held"
    assert falls("high", rises=True)(results).outcome == "held"
    assert within("low", "high", 1.25)(results).outcome == "held"
    assert within("high", "low", 1.25)(results).outcome == "not held"
    assert not_testable("no such file")(results).number == "no such file"


def test_the_default_is_compared_with_private_lines_only() -> None:
    figure = tiny_paper.PAPER.figures[0]
    results = Results([Value("left", "ours", 1.0, 1.0), Value("left", "theirs", 1.0, 2.0)])
    assert [verdict.outcome for _, verdict in judged(figure, results)] == ["not held", "held"]


def test_a_table_from_elsewhere_makes_other_cells() -> None:
    cell = Cell("errors", "made-up", "ours", 0)
    assert Work("tiny", cell, "folder").key != Work("tiny", cell, "generated").key


def _command(out: Path, script: Path, jobs: int) -> list[str]:
    script.write_text(SCRIPT)
    return [
        sys.executable,
        str(script),
        "reproduce",
        "tiny",
        "--full",
        "--out",
        str(out),
        "--jobs",
        str(jobs),
        "--offline",
        "--json",
    ]


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not there to look for workers with")
def test_a_run_that_was_killed_or_interrupted_goes_on_and_loses_no_finished_cell(tmp_path: Path) -> None:
    """kill -9, then Ctrl-C, then the end: every cell is in the file once, with the values of a run that nobody
    stopped. Ctrl-C goes to the main process: it keeps what is finished, says so, and its workers end with it.
    """
    log = Log(tmp_path / "out" / "results.csv")
    killed = _started(tmp_path)
    _wait_for(2, log, killed)
    killed.kill()
    killed.wait()
    kept = dict(log.finished())
    assert len(kept) >= 2

    interrupted = _started(tmp_path)
    _wait_for(8, log, interrupted)
    workers = _children(interrupted.pid)
    interrupted.send_signal(signal.SIGINT)
    _, told = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert "What was finished is kept" in told
    assert "Traceback" not in told
    assert workers
    assert not [worker for worker in workers if _is_running(worker)]
    assert kept.items() <= log.finished().items()
    assert len(log.finished()) >= 8

    last = _started(tmp_path, jobs=1)
    _, told = last.communicate(timeout=300)
    assert last.returncode == 0, told
    cells = list(tiny_paper.PAPER.experiments[0].cells(False))
    assert len(log.finished()) == len(cells) == 16
    assert len(log.path.read_text().splitlines()) == 1 + 16 * len(tiny_paper.EPSILONS)
    table = tiny_paper.PAPER.tables["made-up"](None)
    for cell in cells:
        assert log.finished()[Work("tiny", cell, "generated").key] == list(
            tiny_paper.PAPER.experiments[0].measure(cell, table)
        )
    assert (tmp_path / "out" / "figures" / "tiny-1.png").stat().st_size > 5_000
    assert "<svg" in (tmp_path / "out" / "figures" / "tiny-1.svg").read_text()
    page = (tmp_path / "out" / "tiny.md").read_text()
    assert "✘ not held" in page
    assert "✔ held" in page


def _started(folder: Path, jobs: int = 2) -> subprocess.Popen[str]:
    return subprocess.Popen(
        _command(folder / "out", folder / "tiny_command.py", jobs),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for(cells: int, log: Log, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while len(log.finished()) < cells and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)


def _children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=True)
    return [int(line) for line in found.stdout.split()]


def _is_running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_two_cells_of_one_name_are_an_error() -> None:
    twice = replace(tiny_paper.PAPER.experiments[0], cells=lambda quick: [Cell("errors", "made-up", "ours", 0)] * 2)
    paper = replace(tiny_paper.PAPER, experiments=(twice,))
    with pytest.raises(ValueError, match="same name"):
        harness.planned(paper, paper.figures, Source(download=False), quick=True)
