"""How long a fit takes, as ratios to bare arithmetic, to bare reading and to the closest peer, all in one run.

Absolute seconds mean nothing on a shared machine: every comparison alternates the two sides and compares their best
times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from privfit.mechanisms import ObjectivePerturbation
from privfit.mechanisms.base import PublicFacts
from privfit.models import LinearRegression, LogisticRegression
from privfit.models.perturbed import automatic_numbers, table_units
from privfit.privacy import Budget, Ledger, PrivacyParameters, seeded_generator
from privfit.rows import linear_scores
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.tables import open_table
from privfit_papers.bench.classes import adult
from privfit_papers.bench.data import NoData, data_folder
from privfit_papers.bench.memory import peak_gigabytes

COLUMNS = 14
WIDE = 500
PEER = ("diffprivlib==0.6.6", "scikit-learn==1.7.2")
_PEER_SCRIPT = """
import sys, time, warnings
import numpy as np
from diffprivlib.models import LinearRegression
warnings.simplefilter("ignore")
X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, y)
    print(time.perf_counter() - start, flush=True)
"""

_PEER_CLASSIFIER = """
import json, sys, time, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
for line in sys.stdin:
    asked = json.loads(line)
    X, y = np.load(asked.pop("X")), np.load(asked.pop("y"))
    start = time.perf_counter()
    model = LogisticRegression(**asked).fit(X, y)
    seconds = time.perf_counter() - start
    intercept = float(np.ravel(model.intercept_)[0])
    print(json.dumps({"seconds": seconds, "coef": model.coef_[0].tolist(), "intercept": intercept}), flush=True)
"""
SOLVERS = ("lbfgs", "newton-cholesky")
TOLERANCES = tuple(10.0**-power for power in range(4, 13))
STALLED = 1.01
"""scikit-learn's lbfgs gives up where its objective no longer falls in floats, which is long before gradients are."""
ADULT_ROWS = 48_842
ADULT_WIDTHS = (9, 16, 7, 15, 6, 5, 2, 42)
"""How many levels the categories of UCI Adult have, unknown ones included; beside them are six numbers."""


@dataclass(frozen=True)
class Ratio:
    """One comparison: the best time of ours, of the other side, and ours divided by the other's."""

    what: str
    against: str
    ours: float
    other: float
    wanted: float
    peak_gigabytes: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.other

    def to_dict(self) -> dict[str, float | str | None]:
        """As plain values."""
        return {**asdict(self), "ratio": self.ratio}


def generated(rows: int, seed: int = 0, columns: int = COLUMNS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Uniform columns, some of them out of bounds, and a target that depends on them."""
    generator = seeded_generator(seed)
    X = generator.uniform(-1.1, 1.1, (rows, columns))
    y = np.clip(X @ np.linspace(-0.2, 0.2, columns) + 0.2 * generator.standard_normal(rows), -1, 1)
    return X, y


def in_memory(rows: int, repeats: int) -> Ratio:
    """A fit on an array against clipping it and multiplying it with itself."""
    X, y = generated(rows)
    model = LinearRegression(mechanism="functional", schema=Schema.box(-1, 1, target=(-1, 1)), ledger=bench_ledger())

    def bare() -> object:
        clipped = np.clip(X, -1, 1)
        return clipped.T @ clipped

    ours, other = alternate(repeats, lambda: model.fit(X, y), bare)
    return Ratio(f"memory, {rows:,} x {COLUMNS}", "numpy clip, X'X", ours, other, wanted=3.0)


def wide(rows: int, repeats: int) -> Ratio:
    """A fit on an array with many columns against the bare product of the array with itself."""
    X, y = generated(rows, columns=WIDE)
    model = LinearRegression(mechanism="functional", schema=Schema.box(-1, 1, target=(-1, 1)), ledger=bench_ledger())
    ours, other = alternate(repeats, lambda: model.fit(X, y), lambda: X.T @ X)
    return Ratio(f"memory, {rows:,} x {WIDE}", "numpy X'X", ours, other, wanted=1.5)


def against_peer(rows: int, repeats: int, environment: Path) -> Ratio:
    """A fit on an array against the closest peer's, in an environment of its own."""
    X, y = generated(rows)
    model = LinearRegression(mechanism="functional", schema=Schema.box(-1, 1, target=(-1, 1)), ledger=bench_ledger())
    python = peer_environment(environment)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("X.npy", "y.npy")]
        np.save(paths[0], X)
        np.save(paths[1], y)
        command = [str(python), "-c", _PEER_SCRIPT, *paths, str(repeats)]
        peer = [
            float(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        ]
    ours = min(_seconds(lambda: model.fit(X, y)) for _ in range(repeats + 1))
    return Ratio(f"memory, {rows:,} x {COLUMNS}", "diffprivlib 0.6.6", ours, min(peer), wanted=0.25)


def peer_environment(folder: Path) -> Path:
    """A virtual environment with the peer and the scikit-learn it works with, made once."""
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEER],
            check=True,
            capture_output=True,
        )
        (folder / "ready").touch()
    return python


# -- classifiers -----------------------------------------------------------------------------------


def against_sklearn(repeats: int, folder: Path | None = None, rows: int = ADULT_ROWS) -> list[Ratio]:
    """A private fit of Adult, from the frame, against scikit-learn's on encoded rows: one ratio per solver; the better
    one counts.

    scikit-learn has the same rows, columns and ridge, and the loosest tolerance (a power of ten) at which its gradient
    is no longer than what ours is certified to be; where it gives up before, that is noted. It minimises the logistic
    loss without noise; ours is the tempered one with its random term, and reads and encodes the frame.
    """
    what, (frame, schema) = adult_or_alike(folder, rows)
    model = LogisticRegression(schema=schema, ledger=bench_ledger())
    geometry, ridge, tolerance = planned(model, schema, frame.height)
    X = encoded_rows(frame, schema, geometry)
    assert isinstance(schema.target, Category)
    y = (frame.get_column(schema.target.name) == schema.target.levels[1]).to_numpy()
    others = [as_precise(solver, X, y, ridge, tolerance) for solver in SOLVERS]
    ours, *theirs = alternate(
        repeats, lambda: model.fit(frame), *(lambda other=other: other.fit(X, y) for other, _ in others)
    )
    names = [
        f"sklearn {solver}{_as_told(length / tolerance)}" for solver, (_, length) in zip(SOLVERS, others, strict=True)
    ]
    return [Ratio(what, name, ours, other, wanted=1.5) for name, other in zip(names, theirs, strict=True)]


def _as_told(times: float) -> str:
    return "" if times <= 1 else f" (gradient {times:.2g} x ours)"


def planned(model: LogisticRegression, schema: Schema, n_rows: int) -> tuple[Geometry, float, float]:
    """How the default encodes so many rows of this schema, its ridge, and the norm that its gradient is brought to; all
    from public facts.
    """
    mechanism, terms = model._chosen_mechanism(), PrivacyParameters(Budget(model.epsilon, model.delta))
    numeric, knots = automatic_numbers(terms, len(schema.features), n_rows)
    risk = model._problem(mechanism, schema, numeric, knots)
    geometry = mechanism.geometry(schema, risk, numeric)
    assert isinstance(mechanism, ObjectivePerturbation)
    plan = mechanism.plan(PublicFacts(geometry, terms, n_rows), risk)
    return geometry, plan.ridge, plan.precision.slack / 2


def encoded_rows(frame: pl.DataFrame, schema: Schema, geometry: Geometry) -> NDArray[np.float64]:
    """Rows as a fit encodes them, one column per weight: what a model predicts whose weights are a single one.

    For rows that are public.
    """
    shown = [table_units(weights, geometry, True) for weights in np.eye(geometry.n_columns)]
    coef, intercept = np.array([coef for coef, _ in shown]).T, np.array([constant for _, constant in shown])
    return linear_scores(open_table(frame), schema, geometry, coef, intercept)


def gradient_norm(X: NDArray[np.float64], y: NDArray[np.bool_], weights: NDArray[np.float64], ridge: float) -> float:
    """The length of the gradient of the logistic loss over all rows, plus half the ridge times the squared weights."""
    return float(np.linalg.norm(X.T @ (expit(X @ weights) - y) + ridge * weights))


def as_precise(
    solver: str, X: NDArray[np.float64], y: NDArray[np.bool_], ridge: float, tolerance: float
) -> tuple[Any, float]:
    """scikit-learn's model with the loosest tolerance at which its gradient is no longer than this, or stays as it is
    from there on; and how long it is.
    """
    from sklearn.linear_model import (
        LogisticRegression as Sklearn,
    )  # here, so that it does not count as memory of a fit from a file

    tried: list[tuple[Any, float]] = []
    for tol in TOLERANCES:
        model = Sklearn(C=1 / ridge, fit_intercept=False, solver=solver, tol=tol, max_iter=10_000).fit(X, y)
        tried.append((model, gradient_norm(X, y, model.coef_[0], ridge)))
        if tried[-1][1] <= tolerance:
            return tried[-1]
    shortest = min(length for _, length in tried)
    return next(one for one in tried if one[1] <= STALLED * shortest)


def adult_or_alike(folder: Path | None, rows: int) -> tuple[str, tuple[pl.DataFrame, Schema]]:
    try:
        frame, schema = adult(data_folder(folder))
        return f"Adult, {frame.height:,} x {len(schema.features)}", (frame, schema)
    except NoData:
        frame, schema = like_adult(rows)
        return f"Adult's shape, {rows:,} x {len(schema.features)}", (frame, schema)


def like_adult(rows: int, seed: int = 0) -> tuple[pl.DataFrame, Schema]:
    """A generated table with as many numbers and levels as UCI Adult, and two classes that depend on them."""
    generator = seeded_generator(seed)
    numbers = {f"number{i}": generator.uniform(0, 100, rows) for i in range(6)}
    codes = {
        f"levels{i}": (width * generator.uniform(size=rows) ** 2).astype(np.int64)
        for i, width in enumerate(ADULT_WIDTHS)
    }
    score = sum((values / 50 - 1 for values in numbers.values()), np.full(rows, -1.0))
    score = score + sum(
        generator.standard_normal(width)[code] / 2 for width, code in zip(ADULT_WIDTHS, codes.values(), strict=True)
    )
    rich = generator.uniform(size=rows) < expit(score)
    schema = Schema(
        [
            *(Numeric(name, 0, 100) for name in numbers),
            *(Category(name, list(range(width))) for name, width in zip(codes, ADULT_WIDTHS, strict=True)),
        ],
        target=Category("rich", [0, 1]),
    )
    return pl.DataFrame({**numbers, **codes, "rich": rich.astype(np.int64)}), schema


class PeerClassifier:
    """The closest peer's logistic regression, in a process and an environment of its own. Takes turns with ours."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-c", _PEER_CLASSIFIER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> PeerClassifier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # no more questions: it ends

    def fit(self, X: Path, y: Path, **parameters: float | bool) -> dict[str, Any]:
        """Fit on saved arrays: the seconds that it took, `coef` and `intercept`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # then there is no answer either
            print(json.dumps({"X": str(X), "y": str(y), **parameters}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(
                "The peer's process ended without an answer. Remove its environment and let it be made again."
            )
        told: dict[str, Any] = json.loads(answer)
        return told


def classifier_against_peer(rows: int, repeats: int, environment: Path) -> Ratio:
    """A private logistic regression on an array against the closest peer's.

    Ours is non-linear in every column, by its default; the peer's does not.
    """
    X, y = generated(rows)
    labels = (y > 0).astype(np.int64)
    model = LogisticRegression(schema=Schema.box(-1, 1, target=[0, 1]), ledger=bench_ledger())
    with tempfile.TemporaryDirectory() as folder, PeerClassifier(peer_environment(environment)) as peer:
        paths = Path(folder) / "X.npy", Path(folder) / "y.npy"
        np.save(paths[0], X)
        np.save(paths[1], labels)
        ours, other = _best(
            repeats,
            lambda: _seconds(lambda: model.fit(X, labels)),
            lambda: float(peer.fit(*paths, epsilon=1.0, data_norm=COLUMNS**0.5)["seconds"]),
        )
    return Ratio(f"classes, {rows:,} x {COLUMNS}", "diffprivlib 0.6.6", ours, other, wanted=0.5)


# -- files -----------------------------------------------------------------------------------------


def from_parquet(rows: int, repeats: int, folder: Path) -> Ratio:
    """A fit from a Parquet file against reading its columns with polars, each in a fresh process that reports its peak
    memory.
    """
    path = folder / f"speed-{rows}.parquet"
    if not path.is_file():
        write_parquet(path, rows)
    _measured("read", path)  # the file is in the page cache from here on, for both sides
    runs = [(_measured("fit", path), _measured("read", path)) for _ in range(repeats)]
    ours, other = min(fit["seconds"] for fit, _ in runs), min(read["seconds"] for _, read in runs)
    peak = max(fit["gigabytes"] for fit, _ in runs)
    return Ratio(f"Parquet, {rows:,} x {COLUMNS}", "polars reading it", ours, other, wanted=1.5, peak_gigabytes=peak)


def write_parquet(path: Path, rows: int, part: int = 1_000_000) -> None:
    """A generated table of this many rows, written part by part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    unfinished = path.with_suffix(".part")
    names = [f"x{i}" for i in range(COLUMNS)]
    with pq.ParquetWriter(
        unfinished, pa.schema([(name, pa.float64()) for name in [*names, "y"]]), compression="zstd"
    ) as writer:
        for seed, start in enumerate(range(0, rows, part)):
            X, y = generated(min(part, rows - start), seed)
            writer.write_table(pa.table({**{name: X[:, i] for i, name in enumerate(names)}, "y": y}))
    unfinished.rename(path)


def _measured(side: str, path: Path) -> dict[str, float]:
    """Time one side in a process of its own (imports and a small warm-up apart) and ask for its peak memory."""
    result = subprocess.run(
        [sys.executable, "-m", "privfit_papers.bench.speed", side, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    answer: dict[str, float] = json.loads(result.stdout)
    return answer


def _fit_file(path: Path) -> None:
    names = [f"x{i}" for i in range(COLUMNS)]
    schema = Schema([Numeric(name, -1, 1) for name in names], target=Numeric("y", -1, 1))
    LinearRegression(mechanism="functional", schema=schema, ledger=bench_ledger()).fit(path)


def _read_file(path: Path) -> None:
    rows = sum(frame.height for frame in pl.scan_parquet(path).collect_batches(maintain_order=False))
    assert rows > 0


def _one_side(side: str, path: Path) -> None:
    X, y = generated(1000)
    LinearRegression(mechanism="functional", schema=Schema.box(-1, 1, target=(-1, 1)), ledger=bench_ledger()).fit(X, y)
    seconds = _seconds(lambda: _fit_file(path) if side == "fit" else _read_file(path))
    print(json.dumps({"seconds": seconds, "gigabytes": peak_gigabytes()}))


def bench_ledger() -> Ledger:
    """A ledger that pays for every repetition: charging it is part of what is timed."""
    return Ledger(epsilon=1000.0)


def alternate(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """The best time of every side, which take turns; the first turn warms up."""
    return _best(repeats, *(lambda side=side: _seconds(side) for side in sides))


def _best(repeats: int, *sides: Callable[[], float]) -> list[float]:
    """The same for sides that measure their own times."""
    turns = [[side() for side in sides] for _ in range(repeats + 1)][1:]
    return [min(times) for times in zip(*turns, strict=True)]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    _one_side(sys.argv[1], Path(sys.argv[2]))
