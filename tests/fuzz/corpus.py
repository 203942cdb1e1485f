"""The committed inputs: read, run, and kept small."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from types import FrameType
from typing import Any

TARGETS = ("schemas", "models", "ledgers", "tables", "commands")
CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 36_000
"""Of the inputs of one target: all five are below 200 kB."""
SOURCES = str(Path(__file__).parents[2] / "src")


def run(name: str, content: bytes) -> None:
    """Run one input of a target, in bounded time and memory. Privfit is imported here, after a fuzzer is ready."""
    rules, target = (importlib.import_module(f"tests.fuzz.{part}") for part in ("rules", name))
    with rules.bounded():
        target.run(content)


def inputs(name: str) -> list[bytes]:
    """The committed inputs of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def merge(name: str, work: Path) -> tuple[int, int]:
    """Keep the smallest inputs that together reach every step between lines of the sources that any input reaches, as
    far as there is room. How many there are then, and how many steps.
    """
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    candidates = sorted(
        {*inputs(name), *(path.read_bytes() for path in work.glob("*") if path.is_file())},
        key=lambda one: (len(one), one),
    )
    if not candidates:
        raise SystemExit(f"There are no inputs of {name} in {work} or {folder}: fuzz first.")
    run(name, candidates[0])  # what is done once is not counted
    reached: set[Any] = set()
    chosen, size = [], 0
    for content in candidates:
        new = steps_of(name, content) - reached
        if new and size + len(content) <= MOST_BYTES:
            chosen.append(content)
            reached |= new
            size += len(content)
    for path in folder.glob("*"):
        path.unlink()
    for content in chosen:
        (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
    return len(chosen), len(reached)


def steps_of(name: str, content: bytes) -> set[Any]:
    """Pairs of lines of privfit's sources that follow each other when this input is run."""
    steps: set[Any] = set()
    last: dict[FrameType, int] = {}

    def line(frame: FrameType, event: str, argument: object) -> Any:
        steps.add((frame.f_code, last.get(frame, 0), frame.f_lineno))
        if event == "return":
            last.pop(frame, None)
        else:
            last[frame] = frame.f_lineno
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        return line if frame.f_code.co_filename.startswith(SOURCES) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        run(name, content)
    finally:
        sys.settrace(before)
    return steps
