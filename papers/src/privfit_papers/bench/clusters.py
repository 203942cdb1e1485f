"""k-means side by side: the mean squared distance of rows to their nearest centre, with columns scaled to [-1, 1], mean
and deviation over runs.

Noise is seeded and distances are measured on the rows themselves, so nothing here is a private release.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.models import KMeans
from privfit.privacy import seeded_generator
from privfit.schema import Numeric, Schema
from privfit_papers.bench.data import NoData

Floats = NDArray[np.float64]
Make = Callable[[int, float, Schema, int], KMeans]
"""An unfitted k-means from a number of clusters, an epsilon, a schema and a seed."""

EPSILONS = (0.1, 0.5, 1.0)
FIRST_SEED = 1_000_000
RESTARTS = 20
NO_PRIVACY, PEER = "scikit-learn, not private", "diffprivlib"
GENERATED_ROWS, GENERATED_COLUMNS, GENERATED_CLUSTERS = 20_000, 4, 6

_PEER_SCRIPT = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import KMeans
warnings.simplefilter("ignore")
for line in sys.stdin:
    asked = json.loads(line)
    X = np.load(asked.pop("X"))
    model = KMeans(bounds=(-1.0, 1.0), **asked).fit(X)
    print(json.dumps(model.cluster_centers_.tolist()), flush=True)
"""


def _maker(**parameters: Any) -> Make:
    def make(k: int, epsilon: float, schema: Schema, seed: int) -> KMeans:
        return KMeans(k, epsilon, schema=schema, random_state=seed, **parameters)

    return make


METHODS: Mapping[str, Make] = {
    "privfit": _maker(),
    "hybrid": _maker(mechanism="hybrid"),
    "grid": _maker(mechanism="grid"),
    "cells": _maker(mechanism="cells"),
    "DPLloyd": _maker(mechanism="lloyd"),
}
"""The default, and every mechanism by itself. "DPLloyd" is the improved one of Su et al. (2016)."""


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointTable:
    """Rows of numbers, the public bounds that they are scaled by, and how many clusters are sought."""

    name: str
    rows: Floats
    schema: Schema
    clusters: tuple[int, ...]

    @property
    def scaled(self) -> Floats:
        """The rows in [-1, 1]."""
        low, high = (np.array([getattr(column, side) for column in self.schema.features]) for side in ("low", "high"))
        return np.asarray(2 * (self.rows - low) / (high - low) - 1)


def lifesci(folder: Path) -> PointTable:
    """Lifesci, 26,733 rows of 10 numbers; its last column, a label, is left out.

    Bounds are read off the file: fine for a benchmark, never for a release.
    """
    return _from_file("Lifesci", folder / "lifesci_ds1.10.csv.gz", 10, (3, 5))


def house(folder: Path) -> PointTable:
    """The distinct colours of the House picture, 33,925 rows of 3 numbers: a stand-in for the Image table of the
    PrivGene paper. Bounds are read off the file.
    """
    return _from_file("House", folder / "house-8bit-colours.csv.gz", 3, (10, 15))


def generated_mixture(rows: int = GENERATED_ROWS, seed: int = 0) -> PointTable:
    """Six round clusters of different sizes and widths in four columns, with bounds that are known before."""
    generator = seeded_generator(seed)
    centres = generator.uniform(-0.7, 0.7, (GENERATED_CLUSTERS, GENERATED_COLUMNS))
    widths = generator.uniform(0.05, 0.15, GENERATED_CLUSTERS)
    own = generator.choice(GENERATED_CLUSTERS, rows, p=generator.dirichlet(np.full(GENERATED_CLUSTERS, 5.0)))
    points = np.clip(centres[own] + widths[own, None] * generator.standard_normal((rows, GENERATED_COLUMNS)), -1, 1)
    return PointTable(
        "generated mixture", 50 * (points + 1), Schema.box(0, 100, GENERATED_COLUMNS), (GENERATED_CLUSTERS,)
    )


TABLES: Mapping[str, Callable[[Path], PointTable]] = {"lifesci": lifesci, "house": house}


def _from_file(name: str, path: Path, columns: int, clusters: tuple[int, ...]) -> PointTable:
    if not path.is_file():
        raise NoData(f"The folder has no {path.name}. Put it there, or name a folder that has it with --data.")
    rows = pl.read_csv(path, has_header=False).to_numpy().astype(np.float64)[:, :columns]
    bounds = [Numeric(f"x{i}", float(column.min()), float(column.max())) for i, column in enumerate(rows.T)]
    return PointTable(name, rows, Schema(bounds), clusters)


# -- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """The mean squared distance to the nearest centre, mean and standard deviation over runs.

    Without an epsilon there was no noise.
    """

    table: str
    clusters: int
    method: str
    epsilon: float | None
    runs: int
    distance: float
    deviation: float

    @classmethod
    def of(cls, table: str, clusters: int, method: str, epsilon: float | None, distances: Sequence[float]) -> Spread:
        """The spread of distances, one a run."""
        return cls(
            table, clusters, method, epsilon, len(distances), float(np.mean(distances)), float(np.std(distances))
        )

    def to_dict(self) -> dict[str, float | str | int | None]:
        """As plain values."""
        return asdict(self)


def mean_distance(points: Floats, centres: Floats) -> float:
    """The mean squared distance of points to their nearest centre."""
    least = np.full(len(points), np.inf)
    for centre in centres:
        np.minimum(least, ((points - centre) ** 2).sum(axis=1), out=least)
    return float(least.mean())


def without_privacy(points: Floats, k: int) -> float:
    """What scikit-learn reaches without noise."""
    from sklearn.cluster import KMeans as Plain

    return mean_distance(points, Plain(k, n_init=RESTARTS, random_state=0).fit(points).cluster_centers_)


def cluster_spreads(
    table: PointTable,
    k: int,
    methods: Mapping[str, Make] = METHODS,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 20,
    peer: PeerClusters | None = None,
) -> list[Spread]:
    """The distances of every method and epsilon over `runs` seeds, beside those without noise.

    Run i has the same seed for every method and epsilon.
    """
    points, spreads = table.scaled, []
    for name, make in methods.items():
        for epsilon in epsilons:
            models = (make(k, epsilon, table.schema, FIRST_SEED + run).fit(table.rows) for run in range(runs))
            found = [-model.score(table.rows) / len(points) for model in models]
            spreads.append(Spread.of(table.name, k, name, epsilon, found))
    if peer is not None:
        spreads += peer_spreads(table.name, points, k, epsilons, runs, peer)
    return [*spreads, Spread.of(table.name, k, NO_PRIVACY, None, [without_privacy(points, k)])]


# -- the peer --------------------------------------------------------------------------------------


class PeerClusters:
    """The closest peer's k-means, in a process and an environment of its own."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-c", _PEER_SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> PeerClusters:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # no more questions: it ends

    def centres(self, points: Path, **parameters: float) -> Floats:
        """Fit on a saved array in [-1, 1]."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # then there is no answer either
            print(json.dumps({"X": str(points), **parameters}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(
                "The peer's process ended without an answer. Remove its environment and let it be made again."
            )
        return np.array(json.loads(answer), dtype=np.float64)


def peer_spreads(
    name: str, points: Floats, k: int, epsilons: Sequence[float], runs: int, peer: PeerClusters
) -> list[Spread]:
    """diffprivlib's k-means on the same scaled rows. It spends more than the epsilon it is given."""
    spreads = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, points)
        for epsilon in epsilons:
            found = [
                peer.centres(path, n_clusters=k, epsilon=epsilon, random_state=FIRST_SEED + run) for run in range(runs)
            ]
            spreads.append(Spread.of(name, k, PEER, epsilon, [mean_distance(points, centres) for centres in found]))
    return spreads
