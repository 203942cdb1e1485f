"""What kernel="rbf" needs to see what a kernel is for: how numbers enter, and the width of the kernel.

    python papers/experiments/kernels.py             some minutes of two cores
    python papers/experiments/kernels.py --quick     seconds: two shapes, few rows, to see that it runs

Eight shapes that no linear model separates (30,000 rows in [-1, 1], 10,000 more to test on) and, where there is a
folder with real data, Adult and Bank. Printed, in Markdown: the share of right classes in percent, by setting and
epsilon; gamma is c over the number of columns in the schema. Noise is seeded.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import privfit as pf
from privfit.privacy import seeded_generator
from privfit_papers.bench import classes as real
from privfit_papers.bench.data import NoData, data_folder

SHAPES = (
    "circles",
    "moons",
    "xor",
    "xor among 6 columns",
    "ball in 5",
    "checkerboard",
    "three rings",
    "products among 8",
)
REAL = ("adult", "bank")
EPSILONS = (0.5, 2.0)
TEST_ROWS = 10_000
SETTINGS: dict[str, dict[str, Any]] = {
    "no kernel": {"kernel": "linear"},
    "splines, c = 1": {"numeric": "splines", "gamma": 1.0},
    **{f"numbers as they are, c = {c:g}": {"gamma": c} for c in (1.0, 2.0, 4.0, 8.0, 16.0)},
    "the rule in use": {},
}


def shape(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and their classes."""
    generator = seeded_generator(1)
    angle = generator.uniform(0, 2 * np.pi, n)
    around = np.column_stack([np.cos(angle), np.sin(angle)])
    match kind:
        case "circles":
            y = generator.integers(0, 2, n)
            return around * np.where(y, 0.3, 0.6)[:, None] + generator.normal(0, 0.06, (n, 2)), y
        case "moons":
            y = generator.integers(0, 2, n)
            half = np.column_stack([np.cos(angle / 2), np.sin(angle / 2)])
            points = np.where(y[:, None] == 1, [1.0, 0.5] - half, half) - [0.5, 0.25]
            return points / 2.2 + generator.normal(0, 0.07, (n, 2)), y
        case "three rings":
            y = generator.integers(0, 3, n)
            return around * (0.3 + 0.3 * y + generator.normal(0, 0.05, n))[:, None], y
    columns = {"xor": 2, "xor among 6 columns": 6, "ball in 5": 5, "checkerboard": 2, "products among 8": 8}[kind]
    x = generator.uniform(-1, 1, (n, columns))
    match kind:
        case "ball in 5":
            return x, ((x**2).sum(axis=1) > 5 / 3).astype(int)
        case "checkerboard":
            return x, (np.floor(2 * x).sum(axis=1) % 2).astype(int)
        case "products among 8":
            return x, (3 * (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3]) + generator.logistic(0, 0.3, n) > 0).astype(int)
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


def measured(job: tuple[str, int]) -> tuple[str, dict[tuple[str, float], float]]:
    """The share of right classes, by setting and epsilon."""
    kind, rows = job
    warnings.simplefilter("ignore")
    if kind in REAL:
        frame, schema = getattr(real, kind)(data_folder())
        frame = frame.sample(fraction=1.0, shuffle=True, seed=1)
        target = schema.target.name
        (x, y), (x_test, y_test) = (
            (part.drop(target), part[target].to_numpy()) for part in (frame[:rows], frame[rows : rows + TEST_ROWS])
        )
    else:
        points, labels = shape(kind, rows + TEST_ROWS)
        points = np.clip(points, -1, 1)
        schema = pf.Schema.box(-1, 1, target=sorted(set(labels.tolist())))
        x, y, x_test, y_test = points[:rows], labels[:rows], points[rows:], labels[rows:]
    columns = x.shape[1]
    found = {}
    for name, given in SETTINGS.items():
        settings = {"kernel": "rbf", **given}
        if "gamma" in settings:
            settings["gamma"] = settings["gamma"] / columns
        for epsilon in EPSILONS:
            scores = [
                pf.LinearSVC(epsilon, schema=schema, random_state=seed, **settings).fit(x, y).score(x_test, y_test)
                for seed in (0, 1)
            ]
            found[name, epsilon] = 100 * float(np.mean(scores))
    return kind, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two shapes, few rows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    kinds = list(SHAPES[:3:2]) if given.quick else [*SHAPES, *REAL]
    try:
        data_folder()
    except NoData:
        kinds = [kind for kind in kinds if kind not in REAL]
    with ProcessPoolExecutor(given.jobs) as pool:
        results = dict(pool.map(measured, [(kind, 2_000 if given.quick else 30_000) for kind in kinds]))
    shapes = [kind for kind in kinds if kind in SHAPES]
    print("| setting | epsilon | " + " | ".join([*kinds, "all shapes"]) + " |")
    print("|---" * (len(kinds) + 3) + "|")
    for name in SETTINGS:
        for epsilon in EPSILONS:
            cells = [results[kind][name, epsilon] for kind in kinds] + [
                float(np.mean([results[kind][name, epsilon] for kind in shapes]))
            ]
            print(f"| {name} | {epsilon} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
