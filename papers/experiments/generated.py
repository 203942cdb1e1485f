"""Generated tables of two classes, or of a number, on which defaults are chosen: see classifiers.py and terms.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Numeric, Schema

KINDS = ("categories", "smooth numbers", "jumping numbers", "two-level columns", "mixture", "few straight numbers")
TEST_ROWS = 20_000
PAIRS_SEED = 1_000_000
NUMBERS_SEED = 2_000_000


@dataclass(frozen=True)
class Table:
    kind: str
    train: pl.DataFrame
    test: pl.DataFrame
    schema: Schema

    @property
    def columns(self) -> int:
        return len(self.schema.features)


def make_table(seed: int, most_rows: int = 100_000, pairs: bool = False, number: bool = False) -> Table:
    """The table of this seed.

    Columns are correlated by one hidden factor; half of the tables have 5 to 25 percent in the second class. With
    `pairs`, two pairs of columns interact. With `number`, the target is one (`numbers_of`).
    """
    generator = seeded_generator(seed)
    kind = KINDS[seed % len(KINDS)]
    n = int(np.exp(generator.uniform(np.log(5_000), np.log(100_000)))) if most_rows >= 5_000 else most_rows
    few = kind == "few straight numbers"
    k = int(generator.integers(1, 5)) if few else round(float(np.exp(generator.uniform(np.log(4), np.log(40)))))
    rows = n + TEST_ROWS
    hidden = generator.standard_normal(rows)
    data: dict[str, np.ndarray] = {}
    features: list[Column] = []
    signal = np.zeros(rows)
    latents = []
    for i in range(k):
        shared = generator.uniform(0, 0.7)
        latent = shared * hidden + np.sqrt(1 - shared**2) * generator.standard_normal(rows)
        latents.append(latent)
        values, column, effect = make_column(f"x{i}", kind, latent, generator)
        data[f"x{i}"] = values
        features.append(column)
        signal += effect * generator.exponential()
    if pairs:
        signal = unit(signal) + pair_effects(latents, seeded_generator(PAIRS_SEED + seed))
    if number:
        y, target = numbers_of(unit(signal), seeded_generator(NUMBERS_SEED + seed))
        frame = pl.DataFrame({**data, "y": y})
        return Table(kind, frame[:n], frame[n:], Schema(features, target=target))
    signal *= generator.uniform(0.7, 2.5) / signal.std()
    share = 0.5 if seed // len(KINDS) % 2 == 0 else generator.uniform(0.05, 0.25)
    y = generator.uniform(size=rows) < expit(signal + shift_to(share, signal))
    frame = pl.DataFrame({**data, "y": np.where(y, "yes", "no")})
    return Table(kind, frame[:n], frame[n:], Schema(features, target=Category("y", ["no", "yes"])))


def numbers_of(signal: np.ndarray, generator: Any) -> tuple[np.ndarray, Numeric]:
    """A target of which the signal explains 5% to 60%. Errors are normal or, of every other table, skewed and larger
    where the target is high; bounds are 3 to 20 standard deviations from a middle that is off by up to one and a half.
    """
    explained, errors = generator.uniform(0.05, 0.6), generator.standard_normal(len(signal))
    if generator.uniform() < 0.5:
        errors = unit(np.exp(generator.uniform(0.5, 1.1) * errors)) * np.exp(0.3 * signal)
    middle, half = generator.normal(0, 0.75), np.exp(generator.uniform(np.log(3), np.log(20)))
    y = np.sqrt(explained) * signal + np.sqrt(1 - explained) * unit(errors)
    return np.clip(y, middle - half, middle + half), Numeric("y", middle - half, middle + half)


def pair_effects(latents: list[np.ndarray], generator: Any) -> np.ndarray:
    """The effect of two pairs of columns: by which quarter of each a row is in, with a standard deviation of 0.3 to 0.6
    each. None for a single column.
    """
    total = np.zeros(len(latents[0]))
    for _ in range(2 if len(latents) > 1 else 0):
        one, other = generator.choice(len(latents), 2, replace=False)
        cells = [np.minimum((4 * ndtr(latents[i])).astype(int), 3) for i in (one, other)]
        total += generator.uniform(0.3, 0.6) * unit(generator.standard_normal((4, 4))[cells[0], cells[1]])
    return total


def make_column(name: str, kind: str, latent: np.ndarray, generator: Any) -> tuple[np.ndarray, Column, np.ndarray]:
    """Values, what is public about them, and their effect on the log-odds with a standard deviation of one."""
    chances = {"categories": (1, 0, 0), "two-level columns": (0.15, 0.7, 0.15), "mixture": (0.4, 0.2, 0.4)}.get(
        kind, (0, 0, 1)
    )
    what = generator.choice(3, p=chances)
    if what == 0:
        levels = int(generator.integers(3, 21))
        shares = 1 / np.arange(1, levels + 1) ** generator.uniform(0.5, 1.5)
        codes = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], ndtr(latent))
        return codes, Category(name, list(range(levels))), unit(generator.standard_normal(levels)[codes])
    if what == 1:
        codes = (ndtr(latent) < generator.uniform(0.03, 0.5)).astype(np.int64)
        return codes, Category(name, [0, 1]), unit(codes.astype(float)) * generator.choice([-1, 1])
    values, column = make_number(name, kind, latent, generator)
    jumps = kind == "jumping numbers" or (kind == "mixture" and generator.uniform() < 0.5)
    if kind == "few straight numbers":
        effect = values * generator.choice([-1, 1])
    elif jumps:
        places = np.sort(generator.uniform(0.05, 0.95, 3))
        effect = generator.standard_normal(4)[np.searchsorted(places, ndtr(latent))]
    else:
        middle = generator.uniform(-1.5, 1.5)
        effect = [latent, np.tanh(2 * (latent - middle)), -((latent - middle) ** 2)][
            generator.integers(3)
        ] * generator.choice([-1, 1])
    return values, column, unit(effect)


def make_number(name: str, kind: str, latent: np.ndarray, generator: Any) -> tuple[np.ndarray, Numeric]:
    """Uniform between its bounds, or log-normal with bounds that are wide (as of incomes) or narrow (as of counts)."""
    what = generator.integers(3)
    if what == 0 or kind == "few straight numbers":
        return 10 * ndtr(latent), Numeric(name, 0, 10)
    spread = generator.uniform(0.7, 1.4)
    if what == 1:
        return 1000 * np.exp(spread * latent), Numeric(name, 0, 100_000)
    return np.exp(spread * latent), Numeric(name, 0, float(np.ceil(np.exp(3 * spread))))


def unit(effect: np.ndarray) -> np.ndarray:
    return np.asarray((effect - effect.mean()) / max(float(effect.std()), 1e-9))


def shift_to(share: float, signal: np.ndarray) -> float:
    low, high = -30.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(signal + middle).mean() < share else (low, middle)
    return low
