"""Principal components and naive Bayes beside diffprivlib's, on the same rows with the same public bounds, in numbers
only, because that is what it takes.

Components: the variance along the first k of them over the largest that k directions can have, on all rows. Classes:
the share of right answers and the area under the ROC curve on a fifth of the rows. Mean and worst of the runs. Files
come from the folder that PRIVFIT_DATA names; without it, generated tables alone are measured.

    python papers/experiments/components_and_classes.py [--runs 10] [--peer FOLDER] [--only Adult ...]

The peer gets an environment of its own in FOLDER. Its bounds hold for every row, so that its rows are clipped at the
largest length that they allow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import privfit as pf
from privfit_papers.bench.speed import peer_environment

Floats = NDArray[np.float64]
EPSILONS = (0.1, 0.4, 1.0, 4.0)
PEER_SCRIPT = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import PCA, GaussianNB
warnings.simplefilter("ignore")
for line in sys.stdin:
    asked = json.loads(line)
    X, d = np.load(asked["X"]), asked["columns"]
    bounds = (-np.ones(d), np.ones(d))
    if asked["what"] == "components":
        model = PCA(n_components=asked["k"], epsilon=asked["epsilon"], data_norm=2 * np.sqrt(d), bounds=bounds,
                    random_state=asked["seed"])
        print(json.dumps(model.fit(X.copy()).components_.tolist()), flush=True)
    else:
        model = GaussianNB(epsilon=asked["epsilon"], bounds=bounds, random_state=asked["seed"])
        model.fit(X, np.load(asked["y"]))
        print(json.dumps(model.predict_proba(np.load(asked["fresh"]))[:, 1].tolist()), flush=True)
"""


def scaled(values: Floats, low: Floats, high: Floats) -> Floats:
    """Numbers in [-1, 1] by public bounds."""
    clipped = np.clip(values, low, high)
    return np.asarray(2 * (clipped - low) / (high - low) - 1)


def generated(columns: int, seed: int = 0, rows: int = 20_000) -> tuple[Floats, NDArray[np.int64]]:
    """Three directions of variance in many columns, and a class that goes with the first two."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(rows, 3)) * [1.0, 0.7, 0.4]
    X = np.clip(0.2 * latent @ rng.normal(size=(3, columns)) + rng.normal(0, 0.15, (rows, columns)), -1, 1)
    return X, (latent[:, 0] - latent[:, 1] + rng.normal(0, 0.5, rows) > 0.8).astype(np.int64)


def tables(folder: Path | None) -> Iterator[tuple[str, Floats, NDArray[np.int64] | None, tuple[int, ...]]]:
    """A name, rows in [-1, 1], classes and the numbers of components."""
    yield "generated, 6 columns", *generated(6), (1, 2)
    yield "generated, 20 columns", *generated(20), (2, 4)
    if folder is None:
        return
    adult = pd.read_csv(folder / "adult.data.gz", header=None, skipinitialspace=True)
    low, high = np.array([17, 0, 1, 0, 0, 1.0]), np.array([90, 1.5e6, 16, 1e5, 5e3, 99.0])
    rows = scaled(adult[[0, 2, 4, 10, 11, 12]].to_numpy(dtype=np.float64), low, high)
    yield "Adult, 6 columns", rows, (adult[14] == ">50K").to_numpy().astype(np.int64), (2, 4)
    bank = pd.read_csv(folder / "bank-full.csv.gz", sep=";")
    names = ["age", "balance", "day", "duration", "campaign", "pdays", "previous"]
    low, high = np.array([18, -1e4, 1, 0, 1, -1, 0.0]), np.array([100, 1.1e5, 31, 5e3, 70, 900, 300.0])
    rows = scaled(bank[names].to_numpy(dtype=np.float64), low, high)
    yield "Bank, 7 columns", rows, (bank["y"] == "yes").to_numpy().astype(np.int64), (2, 4)
    life = pd.read_csv(folder / "lifesci_ds1.10.csv.gz", header=None).to_numpy(dtype=np.float64)[:, :10]
    yield "Lifesci, 10 columns", scaled(life, np.floor(life.min(0)), np.ceil(life.max(0))), None, (2, 4)


class Peer:
    """diffprivlib in a process and an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [str(peer_environment(folder)), "-c", PEER_SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **asked: object) -> Floats:
        """Fit, and return components or probabilities."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return np.array(json.loads(self._process.stdout.readline()), dtype=np.float64)


def captured(rows: Floats, components: Floats) -> float:
    """The variance along orthonormal components over the largest possible."""
    covariance = np.cov(rows.T)
    largest = np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum()
    return float(np.trace(components @ covariance @ components.T) / largest)


def told(name: str, figures: dict[str, list[float]]) -> None:
    """Print a line: mean (worst) of each method."""
    line = "   ".join(f"{who} {np.mean(found):.3f} ({min(found):.3f})" for who, found in figures.items())
    print(f"{name}: {line}", flush=True)


def components(name: str, rows: Floats, k: int, runs: int, ask: Callable[..., Floats] | None) -> None:
    """One line per epsilon."""
    schema = pf.Schema.box(-1, 1)
    for epsilon in EPSILONS:
        figures: dict[str, list[float]] = {"privfit": []}
        for seed in range(runs):
            model = pf.PCA(k, epsilon, schema=schema, random_state=seed).fit(rows)
            figures["privfit"].append(captured(rows, model.components_))
            if ask is not None:
                found = ask(what="components", k=k, epsilon=epsilon, seed=seed)
                figures.setdefault("diffprivlib", []).append(captured(rows, found))
        told(f"components, {name}, k = {k}, epsilon {epsilon}", figures)


def classes(
    name: str, fit: tuple[Floats, NDArray[np.int64]], fresh: tuple[Floats, NDArray[np.int64]], runs: int,
    ask: Callable[..., Floats] | None,
) -> None:  # fmt: skip
    """Two lines per epsilon."""
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    for epsilon in EPSILONS:
        right: dict[str, list[float]] = {}
        area: dict[str, list[float]] = {}
        for seed in range(runs):
            found = {
                who: pf.GaussianNB(epsilon, schema=schema, numeric=numeric, random_state=seed)
                .fit(*fit)
                .predict_proba(fresh[0])[:, 1]
                for who, numeric in (("privfit", "auto"), ("privfit, slopes", "slope"))
            }
            if ask is not None:
                found["diffprivlib"] = ask(what="classes", epsilon=epsilon, seed=seed)
            for who, probability in found.items():
                usable = np.nan_to_num(probability, nan=0.5)
                right.setdefault(who, []).append(float(np.mean((usable > 0.5) == fresh[1])))
                area.setdefault(who, []).append(float(roc_auc_score(fresh[1], usable)))
        told(f"right answers, {name}, epsilon {epsilon}", right)
        told(f"area under the curve, {name}, epsilon {epsilon}", area)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the names of tables")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(os.environ["PRIVFIT_DATA"]) if "PRIVFIT_DATA" in os.environ else None
    peer = None if given.peer is None else Peer(given.peer)
    with tempfile.TemporaryDirectory() as where:
        X, y, fresh = (Path(where) / name for name in ("X.npy", "y.npy", "fresh.npy"))
        for name, rows, labels, numbers in tables(folder):
            if not name.startswith(tuple(given.only)):
                continue

            def ask(rows: Floats = rows, **asked: object) -> Floats:
                assert peer is not None
                return peer.ask(X=str(X), y=str(y), fresh=str(fresh), columns=rows.shape[1], **asked)

            np.save(X, rows)
            for k in numbers:
                components(name, rows, k, given.runs, ask if peer else None)
            if labels is None:
                continue
            test = np.random.default_rng(0).random(len(rows)) < 0.2
            np.save(X, rows[~test])
            np.save(y, labels[~test])
            np.save(fresh, rows[test])
            classes(name, (rows[~test], labels[~test]), (rows[test], labels[test]), given.runs, ask if peer else None)


if __name__ == "__main__":
    main()
