"""How near private log hazard ratios come to Cox's regression without privacy, on the same rows; the same of its
alternatives; how often intervals hold; and shares of epsilon.

    python papers/experiments/cox.py                 # generated tables, beside alternatives
    python papers/experiments/cox.py --coverage      # each coefficient's own interval
    python papers/experiments/cox.py --shares        # other shares of epsilon
    python papers/experiments/cox.py --public        # lifelines' tables, read from its wheel (--wheel lifelines-*.whl)

Columns are normal and cut at 3, or skewed, correlated or of levels; times are Weibull, and about half of the people are
censored. Errors are those of coef_ times the standard deviation of its column.
"""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import privfit as pf
from privfit.mechanisms.perturbation import cox

Floats = NDArray[np.float64]
HORIZON = 5.0
TIME = pf.Numeric("time", 0, HORIZON)


@dataclass(frozen=True)
class Table:
    """Columns, times and whether they are those of events; the truth; and the schema of the columns."""

    X: Floats
    times: Floats
    events: NDArray[np.bool_]
    effects: Floats
    schema: pf.Schema

    @property
    def whole(self) -> Floats:
        return np.column_stack([self.X, self.times, self.events])


def drawn(kind: str, rows: int, seed: int, effects: Floats) -> Table:
    """A table of this kind, with hazards that are proportional."""
    rng, width = np.random.default_rng(seed), len(effects)
    X = rng.normal(size=(rows, width))
    if kind == "correlated":
        X[:, 1] = 0.9 * X[:, 0] + np.sqrt(1 - 0.81) * X[:, 1]
    if kind == "skewed":
        X = (rng.exponential(size=(rows, width)) - 1).clip(-1, 3)
    if kind == "two levels":
        X = np.where(rng.random((rows, width)) < 0.3, 1.0, -1.0)
    X = X.clip(-3, 3)
    lives = 2.5 * rng.weibull(1.2, rows) * np.exp(-(X @ effects) / 1.2)
    watched = rng.uniform(0, 6, rows)
    if kind == "informed":
        watched = np.minimum(watched, rng.exponential(6 * np.exp(-0.5 * X[:, 0])))
    times = np.minimum(np.minimum(lives, watched), HORIZON)
    schema = pf.Schema([pf.Numeric(f"x{place}", -3, 3) for place in range(width)])
    return Table(X, times, (lives <= watched) & (lives < HORIZON), effects, schema)


def partial_likelihood(X: Floats, times: Floats, events: NDArray[np.bool_], steps: int = 15) -> Floats:
    """Cox's fit without privacy, by Newton's steps; ties as Breslow takes them where times are grouped."""
    order = np.argsort(-times, kind="stable")
    X, times, events = X[order], times[order], events[order]
    last = np.searchsorted(-times, -times, side="right") - 1  # everybody who is there at that time
    found = np.zeros(X.shape[1])
    for _ in range(steps):
        risks = np.exp(X @ found)
        there, means = np.cumsum(risks)[last], np.cumsum(X * risks[:, None], axis=0)[last]
        means = means[events] / there[events][:, None]
        first = np.searchsorted(-times, -times, side="left")
        weights = risks * np.cumsum(np.where(events, 1 / there, 0.0)[::-1])[::-1][first]
        hessian = (X * weights[:, None]).T @ X - means.T @ means
        step = np.linalg.solve(hessian, (X[events] - means).sum(axis=0))
        found += np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return found


def concordance(table: Table, coef: Floats, sample: int = 6_000) -> float:
    """Of Harrell, among a sample of the rows."""
    keep = np.random.default_rng(0).permutation(len(table.times))[:sample]
    times, events, scores = table.times[keep], table.events[keep], (table.X @ coef)[keep]
    pairs = (times[:, None] < times[None, :]) & events[:, None]
    above = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return float(above[pairs].mean())


# -- alternatives ------------------------------------------------------------------------------------


def stopped(table: Table, epsilon: float, seed: int) -> Floats:
    """pf.CoxRegression."""
    model = pf.CoxRegression(epsilon, schema=table.schema, time=TIME, event="event", random_state=seed)
    return np.asarray(model.fit(table.whole).coef_)


def person_periods(table: Table, epsilon: float, seed: int) -> Floats:
    """A logistic regression of the event in each of 10 periods that a person begins: 10 rows a person."""
    edges = np.linspace(0, HORIZON, 11)
    frames = []
    for place in range(10):
        there = table.times > edges[place]
        happened = table.events & (table.times <= edges[place + 1])
        period = np.eye(10)[np.full(int(there.sum()), place)][:, 1:]
        frames.append(np.column_stack([table.X[there], period, happened[there]]))
    rows = np.vstack(frames)
    width = table.X.shape[1]
    columns = [*table.schema.features, *(pf.Numeric(f"p{place}", 0, 1) for place in range(9))]
    schema = pf.Schema(columns, pf.Category("y", [0, 1]))
    model = pf.LogisticRegression(epsilon, schema=schema, rows_per_person=10, numeric="slope", random_state=seed)
    return np.asarray(model.fit(rows[:, :-1], rows[:, -1].astype(int)).coef_[0, :width])


def disjoint_pairs(table: Table, epsilon: float, seed: int) -> Floats:
    """A logistic regression of who of a random pair is first, where that is known: a person is in one pair."""
    order = np.random.default_rng(seed).permutation(len(table.times))
    one, other = order[: len(order) // 2], order[len(order) // 2 : 2 * (len(order) // 2)]
    first = np.where(table.times[one] <= table.times[other], one, other)
    known = table.events[first]
    apart = ((table.X[one] - table.X[other]) / 2)[known]  # within the same bounds
    schema = pf.Schema(table.schema.features, pf.Category("y", [0, 1]))
    model = pf.LogisticRegression(
        epsilon, schema=schema, numeric="slope", fit_intercept=False, random_state=seed, adjacency="add-remove",
        expected_rows=len(apart),
    )  # fmt: skip
    return np.asarray(model.fit(apart, (first == one)[known].astype(int)).coef_[0] / 2)


def risk_set_sums(table: Table, epsilon: float, seed: int, bins: int = 6, steps: int = 4) -> Floats:
    """Newton's steps on the score of the partial likelihood in a few bins, from noisy sums over those at risk.

    Sums of 1, x and the upper triangle of x x', weighed by e^score cut at 1, over who is at risk in each bin; and of x
    over the events. A person is in up to 6 risk sets.
    """
    rng, edges = np.random.default_rng(seed), np.linspace(0, HORIZON, bins + 1)
    X, found = table.X / 3, np.zeros(table.X.shape[1])
    width = X.shape[1]
    upper = np.triu_indices(width)
    each = epsilon / (steps + 1)
    there = [table.times > edges[place] for place in range(bins)]
    inside = [table.events & mask & (table.times <= edges[place + 1]) for place, mask in enumerate(there)]
    counts = np.array([mask.sum() for mask in inside]) + rng.laplace(0, 2 * (1 + width) / each, bins)
    of_events = sum(X[mask].sum(axis=0) for mask in inside) + rng.laplace(0, 2 * (1 + width) / each, width)
    scale = 2 * bins * (1 + width + len(upper[0])) / each
    for _ in range(steps):
        scores = X @ found
        weights = np.exp(np.minimum(scores - np.abs(found).sum(), 0))
        slope, hessian = of_events.copy(), 1e-3 * len(X) * np.eye(width)
        for mask, number in zip(there, counts, strict=True):
            own = X[mask] * weights[mask][:, None]
            total = max(weights[mask].sum() + rng.laplace(0, scale), 1.0)
            mean = (own.sum(axis=0) + rng.laplace(0, scale, width)) / total
            second = np.zeros((width, width))
            second[upper] = (own.T @ X[mask])[upper] + rng.laplace(0, scale, len(upper[0]))
            second = (second + np.triu(second, 1).T) / total
            slope -= max(number, 0.0) * mean
            hessian += max(number, 0.0) * (second - np.outer(mean, mean))
        values, vectors = np.linalg.eigh(hessian)
        step = vectors @ ((vectors.T @ slope) / np.maximum(values, 0.01 * len(X)))
        found = np.clip(found + np.clip(step, -1, 1), -6, 6)
    return found / 3


WAYS: dict[str, Callable[[Table, float, int], Floats]] = {
    "stopped hazard": stopped,
    "risk-set sums": risk_set_sums,
    "disjoint pairs": disjoint_pairs,
    "person-periods": person_periods,
}


# -- what is printed ---------------------------------------------------------------------------------


def line(kind: str, rows: int, effects: Floats, epsilon: float, way: str, runs: int) -> str:
    """Errors beside Cox's fit on the same rows: their root mean square and its spread over runs, and the worst."""
    errors, ranks = [], []
    for seed in range(runs):
        table = drawn(kind, rows, 1_000 + seed, effects)
        plain = partial_likelihood(table.X, table.times, table.events)
        found = WAYS[way](table, epsilon, seed)
        errors.append((found - plain) * table.X.std(axis=0))
        ranks.append(concordance(table, found) - concordance(table, plain))
    each = np.sqrt((np.array(errors) ** 2).mean(axis=1))
    worst = np.abs(errors).max()
    return (
        f"| {kind} | {rows:,} | {len(effects)} | {epsilon:g} | {way} | {each.mean():.4f} | {each.std():.4f} | "
        f"{worst:.4f} | {np.mean(ranks):+.4f} | {np.min(ranks):+.4f} |"
    )


HEAD = (
    "| columns | rows | number | epsilon | way | error | spread | worst coefficient | concordance | worst |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def generated(runs: int) -> None:
    """Tables of several kinds, sizes and epsilons; alternatives on the smaller ones."""
    print(HEAD)
    for kind in ("normal", "correlated", "skewed", "two levels", "informed"):
        print(line(kind, 50_000, np.linspace(0.5, -0.5, 10), 1.0, "stopped hazard", runs), flush=True)
    for rows, width, epsilon in ((5_000, 5, 0.1), (5_000, 5, 1.0), (20_000, 10, 0.1), (20_000, 10, 1.0)):
        for way in WAYS:
            print(line("normal", rows, np.linspace(0.4, -0.4, width), epsilon, way, runs), flush=True)


def coverage(runs: int) -> None:
    """How often each coefficient's own 90% interval holds the truth, where it is identified."""
    effects = np.array([0.5, -0.4, 0.2, 0.0])
    print("| columns | rows | epsilon | least identified | covered, each | half-width | noise | band |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, rows, epsilon in (
        ("normal", 5_000, 1.0),
        ("normal", 5_000, 2.0),
        ("normal", 50_000, 0.2),
        ("normal", 50_000, 1.0),
        ("correlated", 50_000, 1.0),
        ("correlated", 50_000, 4.0),
        ("skewed", 50_000, 1.0),
    ):
        held, known, wide, noise, band = [], [], [], [], []
        for seed in range(runs):
            table = drawn(kind, rows, 5_000 + seed, effects)
            model = pf.CoxRegression(
                epsilon, schema=table.schema, time=TIME, event="event", intervals=True, random_state=seed
            ).fit(table.whole)
            low, high = model.coef_interval_.T
            known.append(np.isfinite(high))
            held.append((low <= effects) & (effects <= high))
            wide.append(np.where(np.isfinite(high), (high - low) / 2, np.nan))
            noise.append([one["noise_share"] or 1.0 for one in model.summary().to_dict()["lines"]])
            truth = np.exp(-np.exp((table.X @ effects).mean()) * (model.times_ / 2.5) ** 1.2)
            below, above = model.baseline_band_.T
            clear = np.isfinite(model.baseline_survival_)
            band.append(bool(((below <= truth) & (truth <= above))[clear].all()))
        there = np.array(known)
        own = [float(np.array(held)[there[:, place], place].mean()) for place in range(4) if there[:, place].any()]
        print(
            f"| {kind} | {rows:,} | {epsilon:g} | {there.mean(axis=0).min():.0%} | {min(own, default=np.nan):.0%} to "
            f"{max(own, default=np.nan):.0%} | {np.nanmedian(wide):.4f} | {np.median(noise):.0%} | "
            f"{np.mean(band):.0%} |",
            flush=True,
        )


def shares(runs: int) -> None:
    """Other shares for times and for the spread."""
    print("| rows | epsilon | times | spread | error | worst |\n|---|---|---|---|---|---|")
    usual = cox.FOR_TIMES, cox.FOR_SPREAD
    for rows, width, epsilon in ((5_000, 5, 1.0), (50_000, 10, 0.2)):
        for times, spread in ((4, 4), (8, 4), (15, 4), (8, 2), (8, 8), (8, 15)):
            cox.FOR_TIMES, cox.FOR_SPREAD = (type(usual[0])(part, 100) for part in (times, spread))
            cells = line("normal", rows, np.linspace(0.4, -0.4, width), epsilon, "stopped hazard", runs).split("|")
            print(f"| {rows:,} | {epsilon:g} | {times}% | {spread}% |{cells[6]}|{cells[8]}|", flush=True)
    cox.FOR_TIMES, cox.FOR_SPREAD = usual


PUBLIC: dict[str, tuple[str, str, float, dict[str, tuple[float, float]]]] = {
    "rossi.csv": ("week", "arrest", 52, {"fin": (0, 1), "age": (16, 45), "race": (0, 1), "prio": (0, 20)}),
    "gbsg2.csv": ("time", "cens", 2500, {"age": (20, 80), "tsize": (0, 120), "pnodes": (0, 50)}),
    "kidney_transplant.csv": ("time", "death", 3000, {"age": (0, 80), "black_male": (0, 1), "white_male": (0, 1)}),
    "ACTG175.csv": ("days", "cens", 1200, {"age": (12, 70), "cd40": (0, 1200), "symptom": (0, 1), "treat": (0, 1)}),
}  # fmt: skip
"""Files of lifelines' datasets: time, event, a round bound of times, and bounds of columns."""


def public(wheel: str, runs: int) -> None:
    """Tables that a wheel of lifelines holds: as they are, and their rows ten times, as a larger study would have."""
    print("| table | rows | epsilon | error | spread | worst coefficient | concordance, plain | private | worst |")
    print("|---|---|---|---|---|---|---|---|---|")
    with zipfile.ZipFile(wheel) as files:
        names = {name.rsplit("/", 1)[-1]: name for name in files.namelist()}
        for name, (time, event, most, bounds) in PUBLIC.items():
            if name not in names:
                print(f"| {name} | not in this wheel |")
                continue
            frame = pd.read_csv(files.open(names[name]))
            frame = frame[[*bounds, time, event]].dropna()
            X = np.column_stack([frame[one].to_numpy(float).clip(*ends) for one, ends in bounds.items()])
            schema = pf.Schema([pf.Numeric(one, *ends) for one, ends in bounds.items()])
            times, happened = np.minimum(frame[time].to_numpy(float), most), frame[event].to_numpy() == 1
            one = Table(X, times, happened & (times < most), np.zeros(X.shape[1]), schema)
            _public_lines(name, one, pf.Numeric("time", 0, most), runs)


def _public_lines(name: str, one: Table, time: pf.Numeric, runs: int) -> None:
    plain = partial_likelihood(one.X, one.times, one.events)
    for many, epsilon in ((1, 1.0), (1, 4.0), (10, 1.0), (50, 1.0)):
        rows, errors, ranks = np.tile(one.whole, (many, 1)), [], []
        for seed in range(runs):
            model = pf.CoxRegression(epsilon, schema=one.schema, time=time, event="event", random_state=seed)
            found = np.asarray(model.fit(rows).coef_)
            errors.append((found - plain) * one.X.std(axis=0))
            ranks.append(concordance(one, found))
        each, own = np.sqrt((np.array(errors) ** 2).mean(axis=1)), concordance(one, plain)
        print(
            f"| {name} x {many} | {len(rows):,} | {epsilon:g} | {each.mean():.3f} | {each.std():.3f} | "
            f"{np.abs(errors).max():.3f} | {own:.3f} | {np.mean(ranks):.3f} | {np.min(ranks):.3f} |",
            flush=True,
        )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=8)
    for name in ("coverage", "shares", "public"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--wheel", default="lifelines.whl")
    given = parser.parse_args()
    if given.coverage:
        coverage(max(given.runs, 60) if given.runs == 8 else given.runs)
    elif given.shares:
        shares(given.runs)
    elif given.public:
        public(given.wheel, given.runs)
    else:
        generated(given.runs)


if __name__ == "__main__":
    main()
