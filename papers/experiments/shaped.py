"""Generated tables of two classes on which tables for pairs of columns, and for numbers in fine steps, are tried.

Those of generated.py have two pairs of four by four cells. These have more of what real tables have: numbers that are 0
for most rows and have few large values, values with an effect of their own, many interactions, deep ones, smooth ones,
and rare classes. See noisy_cells.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from generated import TEST_ROWS, Table, make_table, shift_to, unit
from scipy.special import expit, ndtr

from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Numeric, Schema

SHAPES = ("mostly zero", "special values", "many levels", "trees", "rare class", "smooth pairs", "sum", "few pairs")
FIRST_SEED, FIRST_OF_FEW_PAIRS = 7_000_000, 300
ODD_COLUMNS = 4


def shaped_table(shape: str, seed: int) -> Table:
    """The table of this seed: 20,000 to 60,000 rows and as many to test on as others, 6 to 18 columns."""
    if shape == "few pairs":
        return make_table(FIRST_OF_FEW_PAIRS + seed, pairs=True)
    generator = seeded_generator(FIRST_SEED + 1000 * SHAPES.index(shape) + seed)
    n = int(np.exp(generator.uniform(np.log(20_000), np.log(60_000))))
    rows, k = n + TEST_ROWS, int(generator.integers(6, 19))
    hidden, latents = generator.standard_normal(rows), []
    data: dict[str, np.ndarray] = {}
    features: list[Column] = []
    signal = np.zeros(rows)
    for i in range(k):
        shared = generator.uniform(0, 0.7)
        latents.append(shared * hidden + np.sqrt(1 - shared**2) * generator.standard_normal(rows))
        odd = i < ODD_COLUMNS and shape in ("mostly zero", "special values")
        make = {"mostly zero": mostly_zero, "special values": special_values}[shape] if odd else usual
        data[f"x{i}"], column, effect = make(f"x{i}", latents[-1], generator)
        features.append(column)
        signal += effect
    signal = unit(unit(signal) + together(shape, latents, generator)) * generator.uniform(1.2, 3.0)
    share = generator.uniform(0.04, 0.15) if shape == "rare class" else generator.uniform(0.1, 0.5)
    y = generator.uniform(size=rows) < expit(signal + shift_to(share, signal))
    frame = pl.DataFrame({**data, "y": np.where(y, "yes", "no")})
    return Table(shape, frame[:n], frame[n:], Schema(features, target=Category("y", ["no", "yes"])))


def usual(name: str, latent: np.ndarray, generator: Any) -> tuple[np.ndarray, Column, np.ndarray]:
    """A category, a number that rises to a limit, or a skewed number with a best value."""
    what, weight = generator.integers(3), generator.exponential()
    if what == 0:
        levels = int(generator.integers(2, 15))
        shares = 1 / np.arange(1, levels + 1) ** generator.uniform(0, 1.2)
        codes = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], ndtr(latent))
        return codes, Category(name, list(range(levels))), weight * unit(generator.standard_normal(levels)[codes])
    if what == 1:
        effect = np.tanh(2 * (latent - generator.uniform(-1, 1)))
        return 10 * ndtr(latent), Numeric(name, 0, 10), weight * unit(effect)
    spread, best = generator.uniform(0.5, 1.2), generator.uniform(-1, 1)
    values = np.minimum(np.exp(spread * latent), np.exp(3 * spread))
    return values, Numeric(name, 0, float(np.ceil(np.exp(3 * spread)))), weight * unit(-((latent - best) ** 2))


def above_zero(latent: np.ndarray, least: float, most: float, generator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which few rows are not 0, and where these are in their own distribution."""
    share, ranks = generator.uniform(least, most), ndtr(latent)
    return ranks > 1 - share, np.clip((ranks - 1 + share) / share, 0, 1 - 1e-9)


def mostly_zero(name: str, latent: np.ndarray, generator: Any) -> tuple[np.ndarray, Column, np.ndarray]:
    """Of 2 to 12 percent of the rows one of 20 to 150 amounts, some of them frequent. Effects jump at three of them."""
    present, places = above_zero(latent, 0.02, 0.12, generator)
    if generator.uniform() < 0.5:
        places = generator.uniform(size=len(latent))
    amounts = np.sort(np.round(np.exp(generator.normal(8, 1, int(generator.integers(20, 150))))))
    often = generator.exponential(size=len(amounts)) ** 2
    own = amounts[np.searchsorted(np.cumsum(often / often.sum())[:-1], places)]
    jumps = np.sort(generator.uniform(np.log(amounts[0]), np.log(amounts[-1]), 3))
    effects = 2 * generator.standard_normal(4)[np.searchsorted(jumps, np.log(own))]
    high = float(generator.choice([1.05, 2, 4]) * np.ceil(amounts[-1]))
    return np.where(present, own, 0.0), Numeric(name, 0, high), np.where(present, effects, 0.0)


def special_values(name: str, latent: np.ndarray, generator: Any) -> tuple[np.ndarray, Column, np.ndarray]:
    """Of 3 to 20 percent of the rows one of twelve values with an effect each, or any other without one."""
    present, places = above_zero(latent, 0.03, 0.2, generator)
    special = np.sort(generator.choice(5000, 12, replace=False)) + 50.0
    which = (12 * places).astype(int)
    other = generator.uniform(size=len(latent)) < 0.3
    own = np.where(other, np.minimum(np.exp(generator.normal(6, 1, len(latent))), 5060), special[which])
    effects = np.where(other, 0.0, 2 * generator.standard_normal(12)[which])
    high = float(generator.choice([5060, 9999, 20_000]))
    return np.where(present, own, 0.0), Numeric(name, 0, high), np.where(present, effects, 0.0)


def together(shape: str, latents: list[np.ndarray], generator: Any) -> np.ndarray:
    """What columns do together."""
    total = np.zeros(len(latents[0]))
    pairs, cells = {"many levels": (5, 8), "rare class": (2, 5), "special values": (2, 5), "smooth pairs": (4, 0)}.get(
        shape, (0, 0)
    )
    for _ in range(pairs):
        one, other = (latents[i] for i in generator.choice(len(latents), 2, replace=False))
        if cells:
            codes = [np.minimum((cells * ndtr(latent)).astype(int), cells - 1) for latent in (one, other)]
            total += generator.uniform(0.2, 0.6) * unit(generator.standard_normal((cells, cells))[codes[0], codes[1]])
        else:
            total += generator.uniform(0.2, 0.5) * unit(one * other)
    for _ in range(30 if shape == "trees" else 0):
        leaf = np.zeros(len(total), dtype=int)
        for _ in range(3):
            leaf = 2 * leaf + (latents[int(len(latents) * generator.uniform() ** 2)] > generator.normal(0, 0.7))
        total += 0.25 * unit(generator.standard_normal(8)[leaf])
    return total
