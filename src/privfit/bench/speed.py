"""How long a fit takes, as ratios to bare arithmetic, to bare reading and to the closest peer, all in one run.

Absolute seconds mean nothing on a shared machine: every comparison alternates the two sides and compares their best times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.models import LinearRegression
from privfit.privacy import Ledger, seeded_generator
from privfit.schema import Numeric, Schema

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
    model = LinearRegression(schema=Schema.box(-1, 1, target=(-1, 1)), ledger=_ledger())

    def bare() -> object:
        clipped = np.clip(X, -1, 1)
        return clipped.T @ clipped

    ours, other = _alternate(lambda: model.fit(X, y), bare, repeats)
    return Ratio(f"memory, {rows:,} x {COLUMNS}", "numpy clip, X'X", ours, other, wanted=3.0)


def wide(rows: int, repeats: int) -> Ratio:
    """A fit on an array with many columns against the bare product of the array with itself."""
    X, y = generated(rows, columns=WIDE)
    model = LinearRegression(schema=Schema.box(-1, 1, target=(-1, 1)), ledger=_ledger())
    ours, other = _alternate(lambda: model.fit(X, y), lambda: X.T @ X, repeats)
    return Ratio(f"memory, {rows:,} x {WIDE}", "numpy X'X", ours, other, wanted=1.5)


def against_peer(rows: int, repeats: int, environment: Path) -> Ratio:
    """A fit on an array against the closest peer's, in an environment of its own."""
    X, y = generated(rows)
    model = LinearRegression(schema=Schema.box(-1, 1, target=(-1, 1)), ledger=_ledger())
    python = peer_environment(environment)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("X.npy", "y.npy")]
        np.save(paths[0], X)
        np.save(paths[1], y)
        command = [str(python), "-c", _PEER_SCRIPT, *paths, str(repeats)]
        peer = [float(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]
    ours = min(_seconds(lambda: model.fit(X, y)) for _ in range(repeats + 1))
    return Ratio(f"memory, {rows:,} x {COLUMNS}", "diffprivlib 0.6.6", ours, min(peer), wanted=0.25)


def peer_environment(folder: Path) -> Path:
    """A virtual environment with the peer and the scikit-learn it works with, made once."""
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEER], check=True, capture_output=True
        )
        (folder / "ready").touch()
    return python


def from_parquet(rows: int, repeats: int, folder: Path) -> Ratio:
    """A fit from a Parquet file against reading its columns with polars, each in a fresh process that reports its peak memory."""
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
    with pq.ParquetWriter(unfinished, pa.schema([(name, pa.float64()) for name in [*names, "y"]]), compression="zstd") as writer:
        for seed, start in enumerate(range(0, rows, part)):
            X, y = generated(min(part, rows - start), seed)
            writer.write_table(pa.table({**{name: X[:, i] for i, name in enumerate(names)}, "y": y}))
    unfinished.rename(path)


def _measured(side: str, path: Path) -> dict[str, float]:
    """Time one side in a process of its own (imports and a small warm-up apart) and ask for its peak memory."""
    result = subprocess.run([sys.executable, "-m", "privfit.bench.speed", side, str(path)], check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(result.stdout)
    return answer


def _fit_file(path: Path) -> None:
    names = [f"x{i}" for i in range(COLUMNS)]
    schema = Schema([Numeric(name, -1, 1) for name in names], target=Numeric("y", -1, 1))
    LinearRegression(schema=schema, ledger=_ledger()).fit(path)


def _read_file(path: Path) -> None:
    rows = sum(frame.height for frame in pl.scan_parquet(path).collect_batches(maintain_order=False))
    assert rows > 0


def _one_side(side: str, path: Path) -> None:
    import resource

    X, y = generated(1000)
    LinearRegression(schema=Schema.box(-1, 1, target=(-1, 1)), ledger=_ledger()).fit(X, y)
    seconds = _seconds(lambda: _fit_file(path) if side == "fit" else _read_file(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(json.dumps({"seconds": seconds, "gigabytes": peak}))


def _ledger() -> Ledger:
    """A ledger that pays for every repetition: charging it is part of what is timed."""
    return Ledger(epsilon=1000.0)


def _alternate(ours: Callable[[], object], other: Callable[[], object], repeats: int) -> tuple[float, float]:
    times = [(_seconds(ours), _seconds(other)) for _ in range(repeats + 1)][1:]
    return min(time[0] for time in times), min(time[1] for time in times)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    _one_side(sys.argv[1], Path(sys.argv[2]))
