"""Results of experiments: one CSV file that grows by a cell at a time, and what is read from it.

A cell's lines are written in one call and flushed to the disk. Each says which of how many lines of its cell it is, so
that a cell whose writing was cut off is seen and measured again.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Key = tuple[str, str, str, str, str, int]
"""Paper, experiment, table, origin of the table, part, repetition."""

COLUMNS = (
    "paper",
    "experiment",
    "table",
    "origin",
    "part",
    "repetition",
    "line",
    "lines",
    "panel",
    "method",
    "x",
    "measure",
    "value",
)


@dataclass(frozen=True)
class Value:
    """One number: which panel, line and place of a figure, what was measured, and how much it was."""

    panel: str
    method: str
    x: float
    value: float
    measure: str = "error"


class Log:
    """The CSV file of all results. Only one process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this is open no other run writes here; one that wants to is refused.

        A run that was killed is in nobody's way.
        """
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"Another run writes to {self.path.parent}. Wait for it, or name another folder with --out."
                ) from None
            yield

    def append(self, key: Key, values: Sequence[Value]) -> None:
        """Add a finished cell, on the disk when this returns."""
        if not values:
            raise ValueError(
                f"The cell {'/'.join(map(str, key))} measured nothing. Every cell needs at least one value."
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self.path.is_file() or self.path.stat().st_size == 0:
            writer.writerow(COLUMNS)
        for line, one in enumerate(values, start=1):
            writer.writerow(
                [
                    *key,
                    line,
                    len(values),
                    one.panel,
                    one.method,
                    repr(float(one.x)),
                    one.measure,
                    repr(float(one.value)),
                ]
            )
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, text.getvalue().encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def mend(self) -> None:
        """Make the file fit to go on with: cut off a last line that was not finished, and take out cells that were not.

        A file that is something else is left alone, with an error.
        """
        if not self.path.is_file() or self.path.stat().st_size == 0:
            return
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        if lines[0].strip() != ",".join(COLUMNS):
            raise ValueError(
                f"{self.path} is not a file of results of this version. Name another folder with --out, or begin anew "
                "with --fresh, which deletes it."
            )
        finished = set(self.finished())
        kept = [lines[0], *(line for line in lines[1:] if line.endswith("\n") and _key_of(line) in finished)]
        if kept != lines:
            mended = self.path.with_suffix(".mended")
            mended.write_text("".join(kept), encoding="utf-8")
            os.replace(mended, self.path)

    def finished(self) -> dict[Key, list[Value]]:
        """All complete cells. Of one that was measured twice, the last. Lines that cannot be read do not count."""
        found: dict[Key, list[Value]] = {}
        wanted: dict[Key, int] = {}
        for row in self._rows():
            with suppress(ValueError, TypeError, KeyError):
                key = (
                    row["paper"],
                    row["experiment"],
                    row["table"],
                    row["origin"],
                    row["part"],
                    int(row["repetition"]),
                )
                value = Value(row["panel"], row["method"], float(row["x"]), float(row["value"]), row["measure"])
                if row["line"] == "1":
                    found[key], wanted[key] = [], int(row["lines"])
                found[key].append(value)
        return {key: values for key, values in found.items() if len(values) == wanted[key]}

    def _rows(self) -> Iterator[dict[str, str]]:
        if not self.path.is_file():
            return
        with self.path.open(newline="", encoding="utf-8", errors="replace") as file:
            yield from csv.DictReader(line.replace("\0", "") for line in file)


def _key_of(line: str) -> Key | None:
    """The cell that a line belongs to, if it can be read."""
    with suppress(ValueError, StopIteration):
        paper, experiment, table, origin, part, repetition, *_ = next(csv.reader([line]))
        return (paper, experiment, table, origin, part, int(repetition))
    return None


class Results:
    """Values of one experiment, looked up by panel, method, x and measure; one number a repetition (or more, where a
    cell measured several).
    """

    def __init__(self, values: Iterable[Value], measure: str = "error", middle: str = "mean") -> None:
        self.measure = measure
        self._middle = middle
        gathered: dict[tuple[str, str, str], dict[float, list[float]]] = {}
        for one in values:
            gathered.setdefault((one.measure, one.panel, one.method), {}).setdefault(one.x, []).append(one.value)
        self._values: Mapping[tuple[str, str, str], Mapping[float, list[float]]] = gathered

    def __bool__(self) -> bool:
        return bool(self._values)

    def panels(self) -> list[str]:
        """Panels that have results, in the order they came."""
        return list(dict.fromkeys(panel for _, panel, _ in self._values))

    def methods(self, panel: str, measure: str | None = None) -> list[str]:
        """Methods that have results there."""
        return [method for name, of, method in self._values if of == panel and name == (measure or self.measure)]

    def xs(self, panel: str, method: str, measure: str | None = None) -> list[float]:
        """Places that were measured, in order."""
        return sorted(self._values.get((measure or self.measure, panel, method), {}))

    def values(self, panel: str, method: str, x: float, measure: str | None = None) -> NDArray[np.float64]:
        """All values there: empty where nothing was measured."""
        return np.array(self._values.get((measure or self.measure, panel, method), {}).get(x, []))

    def middle(self, panel: str, method: str, x: float, measure: str | None = None) -> float:
        """The mean (or the median, where the figure has medians) over repetitions."""
        found = self.values(panel, method, x, measure)
        if not len(found):
            return float("nan")
        return float(np.median(found) if self._middle == "median" else np.mean(found))

    def deviation(self, panel: str, method: str, x: float, measure: str | None = None) -> float:
        """The standard deviation over repetitions."""
        return float(np.std(self.values(panel, method, x, measure)))

    def band(self, panel: str, method: str, x: float, measure: str | None = None) -> tuple[float, float]:
        """The 10% and 90% quantiles over repetitions."""
        low, high = np.quantile(self.values(panel, method, x, measure), [0.1, 0.9]).tolist()
        return low, high
