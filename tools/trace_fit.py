"""How much code one private fit runs through: functions, files, changes of file, and frames down to the sampler.

    python tools/trace_fit.py [--list]

A LogisticRegression and a LinearRegression are fitted from a Parquet file of 5,000 generated rows (two numbers, one
category of three levels) with a ledger and noise as in a release, once to warm up and once under `sys.setprofile`.
scikit-learn's own logistic regression, on the same rows in memory, stands beside them. `--list` names the functions in
the order in which they are first entered.

What is counted, between entering `fit` and leaving it:

- functions: distinct `def`s in files of the package, methods, properties and nested functions included. Lambdas,
  comprehensions and generator expressions are read as a part of the function around them and do not count; functions
  that dataclasses generate have no file and do not count.
- files: those with such a function.
- changes: functions in the order of their first call, as a reader follows them; how often the next one is in another
  file. (A function that is called again is known already and counts no more.)
- before: functions that are first entered before the first draw.
- frames: the most frames of the package from `fit`, itself included, down to the call of a sampler: the outermost frame
  in privacy/noise.py or privacy/samplers/ when OpenDP or the operating system's entropy is used. The sampler does not
  count.

What is done to a chunk of rows does not count: it is the same function many times over, in threads of their own, or by
the thread that calls `fit` where there is a single chunk or a single core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import opendp
import polars as pl
import sklearn
from sklearn.linear_model import LogisticRegression

import privfit as pf

ROWS = 5_000
LEVELS = ["a", "b", "c"]
FEATURES: list[pf.Numeric | pf.Category] = [
    pf.Numeric("age", 17, 90),
    pf.Numeric("hours", 0, 99),
    pf.Category("sector", LEVELS),
]
OURS = Path(pf.__file__).parent
SAMPLERS = (str(OURS / "privacy" / "noise.py"), str(OURS / "privacy" / "samplers"))
THEIRS = Path(sklearn.__file__).parent
WORK = "in_order"
"""The function of rows/workers.py that has pieces of a table worked on."""
OPENDP = str(Path(opendp.__file__).parent)


@dataclass
class Trace:
    """What was entered of one package, in order, and how deep its samplers are called."""

    package: Path
    entered: dict[CodeType, None] = field(default_factory=dict)
    before_draw: int | None = None
    frames: int = 0
    chunks: int = 0
    """How deep this is in work on a chunk of rows."""

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        """The hook of `sys.setprofile`."""
        if event.startswith("c_") and frame.f_code.co_name == WORK and getattr(called, "__name__", "") == "run":
            self.chunks += 1 if event == "c_call" else -1
        elif self.chunks:
            return
        elif event == "call":
            self._enter(frame)
        elif event == "c_call" and getattr(called, "__name__", "") == "urandom":
            self._draw(frame)

    def _enter(self, frame: FrameType) -> None:
        code = frame.f_code
        if self.owns(code) and not code.co_name.startswith("<"):
            self.entered.setdefault(code)
        elif code.co_filename.startswith(OPENDP):
            self._draw(frame)

    def _draw(self, frame: FrameType) -> None:
        ours = [code for code in callers(frame) if self.owns(code)]
        depth = next((place for place, code in enumerate(ours) if code.co_filename.startswith(SAMPLERS)), None)
        if depth is None:  # entropy for something else: the ledger's nonces
            return
        self.frames = max(self.frames, depth)
        if self.before_draw is None:
            self.before_draw = len(self.entered)

    def owns(self, code: CodeType) -> bool:
        """Whether code is in a file of the package."""
        return code.co_filename.startswith(f"{self.package}/")

    @property
    def files(self) -> list[str]:
        """The file of every function, in the order of the first calls."""
        return [code.co_filename for code in self.entered]

    @property
    def changes(self) -> int:
        """How often the next new function is in another file."""
        return sum(left != right for left, right in zip(self.files, self.files[1:], strict=False))

    def places(self) -> list[str]:
        """File and name of every function, in the order of the first calls."""
        return [f"  {Path(code.co_filename).relative_to(self.package)} {code.co_qualname}" for code in self.entered]

    def row(self) -> list[int | None]:
        """Functions, files, changes, functions before the first draw, frames."""
        return [len(self.entered), len(set(self.files)), self.changes, self.before_draw, self.frames or None]


def callers(frame: FrameType) -> list[CodeType]:
    """The code of a frame and of all that called it, outermost first."""
    found: list[CodeType] = []
    above: FrameType | None = frame
    while above is not None:
        found.append(above.f_code)
        above = above.f_back
    return found[::-1]


def traced(fit: Callable[[], object], package: Path) -> Trace:
    """A trace of one call."""
    trace = Trace(package)
    sys.setprofile(trace)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return trace


def table() -> pl.DataFrame:
    """Generated people: two numbers, a category, a numeric and a binary target."""
    rng = np.random.default_rng(0)
    age, hours, sector = rng.uniform(17, 90, ROWS), rng.uniform(0, 99, ROWS), rng.choice(LEVELS, ROWS)
    income = 100 * ((age - 50) / 20 + (hours - 50) / 30 + (sector == "a"))
    ill = np.where(income + 100 * rng.logistic(size=ROWS) > 0, "yes", "no")
    return pl.DataFrame({"age": age, "hours": hours, "sector": sector, "income": income, "ill": ill})


def fits(people: pl.DataFrame, folder: Path) -> Iterator[tuple[str, Trace]]:
    """A trace of each of our estimators, and of scikit-learn's."""
    people.write_parquet(folder / "people.parquet")
    ledger = pf.Ledger(folder / "people.db", epsilon=10.0)
    targets: dict[type[pf.LogisticRegression | pf.LinearRegression], pf.Numeric | pf.Category] = {
        pf.LogisticRegression: pf.Category("ill", ["no", "yes"]),
        pf.LinearRegression: pf.Numeric("income", -500, 500),
    }
    for estimator, target in targets.items():
        schema = pf.Schema(FEATURES, target=target)
        estimator(1.0, schema=schema, ledger=ledger).fit(folder / "people.parquet")
        model = estimator(1.0, schema=schema, ledger=ledger)
        yield estimator.__name__, traced(partial(model.fit, folder / "people.parquet"), OURS)
    columns = np.column_stack([people["age"], people["hours"], *(people["sector"] == level for level in LEVELS)])
    answers = people["ill"].to_numpy()
    LogisticRegression(max_iter=1_000).fit(columns, answers)
    other = LogisticRegression(max_iter=1_000)
    yield "scikit-learn's LogisticRegression", traced(partial(other.fit, columns, answers), THEIRS)


def print_row(name: str, cells: list[Any]) -> None:
    """One line of the table."""
    print(f"{name:34}" + "".join(f"{'' if cell is None else cell:>11}" for cell in cells))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How much code one private fit runs through.")
    parser.add_argument("--list", action="store_true", help="name the functions, in order")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print_row("", ["functions", "files", "changes", "before", "frames"])
    with tempfile.TemporaryDirectory() as folder:
        for name, trace in fits(table(), Path(folder)):
            print_row(name, trace.row())
            if asked.list:
                print(*trace.places(), sep="\n")


if __name__ == "__main__":
    main()
