"""A generated table of people with a known model of income, and its public schema."""

from __future__ import annotations

import numpy as np
import polars as pl

import privfit as pf


def people(n: int, low: float = -20, high: float = 150, seed: int = 0) -> tuple[pl.DataFrame, pf.Schema]:
    """Incomes around 60 with an error of 8; `low` and `high` are the public bounds of the target."""
    rng = np.random.default_rng(seed)
    age, hours = rng.uniform(18, 80, n), rng.normal(40, 10, n).clip(0, 80)
    region, member = rng.choice(["n", "e", "s", "w"], n, p=[0.4, 0.3, 0.2, 0.1]), rng.choice(["no", "yes"], n)
    income = (
        20
        + 0.4 * age
        + 0.5 * hours
        + 10 * (region == "w")
        - 5 * (region == "e")
        + 6 * (member == "yes")
        + rng.normal(0, 8, n)
    )
    frame = pl.DataFrame({"age": age, "hours": hours, "region": region, "member": member, "income": income})
    features = [
        pf.Numeric("age", 18, 80),
        pf.Numeric("hours", 0, 80),
        pf.Category("region", ["n", "e", "s", "w"]),
        pf.Category("member", ["no", "yes"]),
    ]
    return frame, pf.Schema(features, target=pf.Numeric("income", low, high))
