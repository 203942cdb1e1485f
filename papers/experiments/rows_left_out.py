"""What it costs to leave rows out: accuracy with dropped targets, time and memory with persons.

    python papers/experiments/rows_left_out.py accuracy
    python papers/experiments/rows_left_out.py persons --rows 10000000 --persons 3000000

`accuracy`: R2 (or the share of classes that are right) on complete test rows of the generated census, of fits whose
target is missing in 39% of rows and dropped, over that of fits on the complete rows alone. `persons`: each fit in a
process of its own; seconds, processor seconds and peak of memory of a linear regression from a Parquet file, without
and with a person column.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import privfit as pf
from privfit.datasets.census import census_schema, generated_census, with_high_income
from privfit.privacy import seeded_generator

MISSING = 0.39
RUNS = 20


def accuracy(rows: int, epsilon: float) -> None:
    """The mean and the spread over runs, and the worst run."""
    heads = f"{'complete rows':>16} {'dropped':>16} {'ratio of means':>15} {'worst run':>10}"
    print(f"{'model':<22} {'adjacency':<12} {heads}")
    for name, model, target in (
        ("LinearRegression", pf.LinearRegression, "income"),
        ("LogisticRegression", pf.LogisticRegression, "high_income"),
    ):
        for adjacency in ("replace-one", "add-remove"):
            scores = np.array([_scores(model, target, adjacency, rows, epsilon, run) for run in range(RUNS)])
            told = [f"{mean:.4f} +- {sd:.4f}" for mean, sd in zip(scores.mean(axis=0), scores.std(axis=0), strict=True)]
            ratio = scores[:, 1].mean() / scores[:, 0].mean()
            worst = (scores[:, 1] / scores[:, 0]).min()
            print(f"{name:<22} {adjacency:<12} {told[0]:>16} {told[1]:>16} {ratio:>15.3f} {worst:>10.3f}")


def _scores(model: type, target: str, adjacency: str, rows: int, epsilon: float, run: int) -> tuple[float, float]:
    people = generated_census(2 * rows, seed=run)
    people = people if target == "income" else with_high_income(people)
    schema = census_schema(target)  # type: ignore[arg-type]
    train, test = people.head(rows), people.tail(rows)
    gone = pl.Series(seeded_generator(run).random(rows) < MISSING)
    holes = train.with_columns(pl.when(~gone).then(pl.col(target)).alias(target))
    dropping = pf.Schema(schema.features, replace(schema.target, fill="drop"))
    given = {"epsilon": epsilon, "adjacency": adjacency, "random_state": run}
    complete = model(schema=schema, **given).fit(train.filter(~gone))
    dropped = model(schema=dropping, **given).fit(holes)
    known, answers = test.drop(target), test[target].to_numpy()
    return complete.score(known, answers), dropped.score(known, answers)


def persons(rows: int, number: int, runs: int) -> None:
    """Fits from one file, in turn without and with persons."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        _people(rows, number).write_parquet(path)
        for _ in range(runs):
            for person in ("", "person"):
                command = [sys.executable, __file__, "one", str(path), "--person", person]
                print(subprocess.run(command, capture_output=True, text=True, check=True).stdout, end="")


def _people(rows: int, number: int) -> pl.DataFrame:
    rng = seeded_generator(0)
    columns: dict[str, object] = {"person": rng.integers(0, number, rows)}
    columns |= {f"x{place}": rng.uniform(0, 100, rows).astype(np.float32) for place in range(10)}
    columns |= {f"c{place}": pl.Series(list("abcde")).gather(rng.integers(0, 5, rows)) for place in range(3)}
    columns["y"] = np.asarray(columns["x0"]) + rng.normal(0, 20, rows)
    return pl.DataFrame(columns)


def one(path: str, person: str) -> None:
    """One fit, and what it took."""
    features = [pf.Numeric(f"x{place}", 0, 100) for place in range(10)]
    features += [pf.Category(f"c{place}", list("abcde")) for place in range(3)]
    schema = pf.Schema(features, pf.Numeric("y", 0, 200), person=person or None)
    start, processor = time.perf_counter(), time.process_time()
    pf.LinearRegression(1.0, schema=schema, rows_per_person=3, mechanism="functional").fit(path)
    wall, used = time.perf_counter() - start, time.process_time() - processor
    lines = Path("/proc/self/status").read_text().splitlines()  # what its parent held counts in getrusage
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    print(f"{person or 'without':<8} {wall:6.2f} s, {used:6.2f} s of processors, peak {peak:5.0f} MB")


def main() -> None:
    """The measurement that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("accuracy", "persons", "one"))
    parser.add_argument("path", nargs="?", default="")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--persons", type=int, default=6_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--person", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "accuracy":
        accuracy(given.rows, given.epsilon)
    elif given.what == "persons":
        persons(given.rows, given.persons, given.runs)
    else:
        one(given.path, given.person)


if __name__ == "__main__":
    main()
