"""Description measured: how far quantiles and means are off, how often intervals hold what they are about, and the
quantiles of the closest peer on the same tables.

Noise is seeded and errors are measured on rows as they are, so nothing here is a private release.
"""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from privfit.schema import Numeric, Schema
from privfit.summaries import Figure, describe, quantile

Floats = NDArray[np.float64]

ROWS, EPSILON, HIGH = 10_000, 0.1, 1_000_000.0
QUANTILES = (0.5, 0.9)
SHAPES: dict[str, Any] = {
    "log-normal, 0.5": stats.lognorm(0.5, scale=30_000),
    "log-normal, 0.75": stats.lognorm(0.75, scale=30_000),
    "log-normal, 1": stats.lognorm(1.0, scale=30_000),
    "gamma": stats.gamma(2, scale=15_000),
    "exponential": stats.expon(scale=30_000),
    "Pareto, 2.5": stats.pareto(2.5, scale=15_000),
}
"""Incomes of skewed populations."""
_PEER_SCRIPT = """
import json, sys, warnings
import numpy as np
from diffprivlib.tools import quantile
warnings.simplefilter("ignore")
for line in sys.stdin:
    asked = json.loads(line)
    values = np.array(asked["values"])
    bounds = (0, asked["high"])
    found = quantile(values, asked["quantile"], epsilon=asked["epsilon"], bounds=bounds, random_state=asked["seed"])
    print(float(found), flush=True)
"""


@dataclass(frozen=True)
class Accuracy:
    """One figure of one population: the median and the mean of relative errors, how often its 90% interval held what it
    is about (None where there is none), and the median width of the interval over the figure."""

    what: str
    shape: str
    figure: str
    median_error: float
    mean_error: float
    covered: float | None = None
    width: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def incomes(shape: str, seed: int, rows: int = ROWS) -> Floats:
    """A table of incomes, clipped to the bound that is known."""
    drawn: Floats = SHAPES[shape].rvs(rows, random_state=seed)
    return np.clip(drawn, 0.0, HIGH)


def described(shape: str, runs: int, rows: int = ROWS, epsilon: float = EPSILON) -> Iterator[Accuracy]:
    """All figures of `describe` for a table with one column."""
    schema = Schema([Numeric("income", 0, HIGH)])

    def ask(values: Floats, seed: int) -> dict[str, Figure]:
        return describe(pl.DataFrame({"income": values}), schema, epsilon=epsilon, random_state=seed)["income"]

    yield from _measured("describe", shape, runs, rows, ask)


def asked(
    shape: str, share: float, runs: int, rows: int = ROWS, epsilon: float = EPSILON, intervals: bool = True
) -> Iterator[Accuracy]:
    """One quantile by itself."""

    def ask(values: Floats, seed: int) -> dict[str, Figure]:
        column = Numeric("income", 0, HIGH)
        found = quantile(values[:, None], column, share, epsilon=epsilon, intervals=intervals, random_state=seed)
        assert isinstance(found, Figure)
        return {_name(share): found}

    yield from _measured("quantile" if intervals else "no interval", shape, runs, rows, ask)


def _measured(
    what: str, shape: str, runs: int, rows: int, ask: Callable[[Floats, int], dict[str, Figure]]
) -> Iterator[Accuracy]:
    errors: dict[str, list[tuple[float, bool, float]]] = {}
    for seed in range(runs):
        values = incomes(shape, seed, rows)
        for name, found in ask(values, zlib.crc32(f"{shape} {seed}".encode())).items():
            low, high = found.interval
            truth, own = _truth(name, shape), _own(name, values)
            errors.setdefault(name, []).append((abs(found / own - 1), low <= truth <= high, (high - low) / own))
    for name, each in errors.items():
        off, held, width = np.array(each, dtype=np.float64).T
        yield Accuracy(
            what, shape, name, float(np.median(off)), float(off.mean()), float(held.mean()), float(np.median(width))
        )


def peer_quantiles(
    python: Path, shape: str, share: float, runs: int, rows: int = ROWS, epsilon: float = EPSILON
) -> Accuracy:
    """diffprivlib's quantile on the same tables, in its own environment."""
    with subprocess.Popen(
        [str(python), "-c", _PEER_SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        off = []
        for seed in range(runs):
            values = incomes(shape, seed, rows)
            given = {"values": values.tolist(), "quantile": share, "epsilon": epsilon, "high": HIGH}
            given["seed"] = zlib.crc32(f"{shape} {seed}".encode())
            process.stdin.write(json.dumps(given) + "\n")
            process.stdin.flush()
            off.append(abs(float(process.stdout.readline()) / _own(_name(share), values) - 1))
        process.stdin.close()
    return Accuracy("diffprivlib 0.6.6", shape, _name(share), float(np.median(off)), float(np.mean(off)))


def _name(share: float) -> str:
    return "median" if share == 0.5 else f"{100 * share:g}%"


def _share(name: str) -> float:
    return 0.5 if name == "median" else float(name.rstrip("%")) / 100


@cache
def _truth(name: str, shape: str) -> float:
    """What an interval is about: the population that the table is a sample of, clipped to the bound."""
    if name == "mean":
        shares = (np.arange(2_000_000) + 0.5) / 2_000_000
        return float(np.clip(SHAPES[shape].ppf(shares), 0.0, HIGH).mean())
    return float(SHAPES[shape].ppf(_share(name)))


def _own(name: str, values: Floats) -> float:
    return float(values.mean()) if name == "mean" else float(np.quantile(values, _share(name)))


def compared(runs: int, python: Path | None, shapes: Sequence[str] = tuple(SHAPES)) -> Iterator[Accuracy]:
    """Everything: describe, single quantiles and, where it is there, the peer."""
    for shape in shapes:
        yield from described(shape, runs)
        for share in QUANTILES:
            yield from asked(shape, share, runs)
            yield from asked(shape, share, runs, intervals=False)
            if python is not None:
                yield peer_quantiles(python, shape, share, runs)
