"""Forecast against measured loss: pf.plan with public samples of 500 rows, beside fits on the real tables.

    PRIVFIT_DATA=folder python papers/experiments/planning.py [--splits 8] [--samples 6] [--alone]

For Adult, Bank (logistic) and the 1980 census (linear) at epsilon 0.1, 0.4 and 1.6: what each mechanism loses against
the fit without noise. Measured: the mean over random 80/20 splits of the real table, with its standard error. Forecast:
the mean over plans, each from a public sample of its own, with the spread between them; no row of a sample is in a
split. `--alone`: one plan from the schema alone. The reference is the same on both sides.

At the end, over the cells of table and epsilon: how many have the default's mean forecast within 15% of the measured
loss, how many plans have it, and the same where the measured loss is above three of its standard errors; and in how
many the mechanisms come in the measured order, on average and plan by plan.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
import polars as pl

import privfit as pf
from privfit.planning.simulation import NO_NOISE, Repetition, Settings, without_noise
from privfit.privacy import seeded_generator
from privfit_papers.bench.classes import adult, bank
from privfit_papers.bench.data import census_1980, data_folder

EPSILONS = (0.1, 0.4, 1.6)
SAMPLE = 500
CLOSE = 0.15
MECHANISMS = {"logistic": ("auto", "output", "functional"), "linear": ("auto", "functional", "adassp")}
TABLES = {"Adult": (adult, "logistic"), "Bank": (bank, "logistic"), "1980 census": (census_1980, "linear")}


@dataclass
class Counts:
    """Of all cells so far."""

    near: list[bool] = field(default_factory=list)
    near_plans: list[bool] = field(default_factory=list)
    known: list[bool] = field(default_factory=list)
    ranked: list[bool] = field(default_factory=list)
    ranked_plans: list[bool] = field(default_factory=list)

    def add(self, told: np.ndarray, real: np.ndarray, error: float) -> None:
        """One cell: losses that plans forecast (a line each) and losses measured, the default first."""
        order = np.argsort(real).tolist()
        self.near.append(bool(abs(told[:, 0].mean() - real[0]) <= CLOSE * abs(real[0])))
        self.near_plans += (np.abs(told[:, 0] - real[0]) <= CLOSE * abs(real[0])).tolist()
        self.known.append(bool(real[0] > 3 * error))
        self.ranked.append(np.argsort(told.mean(axis=0)).tolist() == order)
        self.ranked_plans += [np.argsort(one).tolist() == order for one in told]

    def __str__(self) -> str:
        known = [near for near, known in zip(self.near, self.known, strict=True) if known]
        return (
            f"default within 15%: {sum(self.near)} of {len(self.near)} cells on average, "
            f"{np.mean(self.near_plans):.0%} of plans; of cells whose loss is above three standard errors "
            f"{sum(known)} of {len(known)}\n"
            f"mechanisms in the measured order: {sum(self.ranked)} of {len(self.ranked)} cells on average, "
            f"{np.mean(self.ranked_plans):.0%} of plans"
        )


def measured(table: pl.DataFrame, schema: pf.Schema, model: str, splits: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Scores without noise by split; losses by split, mechanism and epsilon; rows of a fit."""
    cut, base, lost = int(0.8 * table.height), [], []
    settings = Settings(model, cut, cut, 1, {})
    for seed in range(splits):
        mixed = table[seeded_generator(100 + seed).permutation(table.height)]
        split = Repetition(mixed[:cut], mixed[cut:], 1000 + seed)
        base.append(split.score(without_noise(settings), schema, "auto", NO_NOISE))
        scores = [[split.score(settings, schema, name, epsilon) for epsilon in EPSILONS] for name in MECHANISMS[model]]
        lost.append(base[-1] - np.array(scores))
    return np.array(base), np.array(lost), cut


def forecast(
    schema: pf.Schema, rows: int, model: str, public: pl.DataFrame | None, repetitions: int, seed: int
) -> tuple[float, np.ndarray]:
    """The score without noise, and losses by mechanism and epsilon."""
    names = MECHANISMS[model]
    plan = pf.plan(
        schema,
        rows,
        model=model,
        epsilon=EPSILONS,
        public=public,
        mechanisms=names,
        repetitions=repetitions,
        costs=False,
        random_state=seed,
    )
    return plan.reference, np.array([[plan.reference - one.score for one in plan.curve(name)] for name in names])


def main() -> None:
    """Print a line per cell, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(TABLES))
    for option, usual in (("--splits", 8), ("--samples", 6), ("--repetitions", 4)):
        parser.add_argument(option, type=int, default=usual)
    parser.add_argument("--alone", action="store_true")
    given, counts = parser.parse_args(), Counts()
    for name in given.tables.split(","):
        load, model = TABLES[name]
        frame, schema = load(data_folder())
        frame = frame[seeded_generator(1).permutation(frame.height)]
        public = [frame[SAMPLE * place :][:SAMPLE] for place in range(given.samples)]
        base, lost, rows = measured(frame[SAMPLE * given.samples :], schema, model, given.splits)
        real, errors = lost.mean(axis=0), lost.std(axis=0, ddof=1) / np.sqrt(len(lost))
        samples = [None] if given.alone else public
        plans = [forecast(schema, rows, model, one, given.repetitions, seed) for seed, one in enumerate(samples)]
        references, told = np.array([one[0] for one in plans]), np.array([one[1] for one in plans])
        print(f"{name}: without noise forecast {references.mean():.4f}, measured {base.mean():.4f}")
        for place, epsilon in enumerate(EPSILONS):
            counts.add(told[:, :, place], real[:, place], errors[0, place])
            cells = [
                f"{mechanism} {told[:, at, place].mean():.4f} (sd {told[:, at, place].std():.4f}) / "
                f"{real[at, place]:.4f} (se {errors[at, place]:.4f})"
                for at, mechanism in enumerate(MECHANISMS[model])
            ]
            print(f"  epsilon {epsilon:g}, lost, forecast / measured: {', '.join(cells)}", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
