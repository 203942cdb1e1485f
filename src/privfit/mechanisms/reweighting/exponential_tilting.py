"""Weights by exponential tilting: noisy shares of levels are released, and public rows are weighed until they have
them.

Ji and Elkan (2013) ask how private and public rows differ and noise the answer, which is far from the sums over rows
that it rests on. The shares themselves have small sensitivity; what is done with them afterwards costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.perturbation.base import GAUSSIAN_MARGIN
from privfit.mechanisms.reweighting.base import Pairs, ReweightingProblem
from privfit.mechanisms.reweighting.level_shares import LevelShares, TiltingFit
from privfit.privacy import Draws, Event, PrivacyError
from privfit.privacy.budget import Adjacency
from privfit.rows import Rows
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIR_NOISE = 0.1
"""Pairs of levels are released where the noise on them is at most this share of the rows that a pair has on average:
more pairs fit more of how columns go together, and add noise to single levels; `privfit bench weights` shows it."""
MOST_PAIRS = 1 << 16
"""The most products of levels that "auto" releases: the public table gets a column for each."""
MOST_PAIRED_COLUMNS = 1 << 12
"""The most levels whose products are summed: a matrix of 2^24 integers."""


@dataclass(frozen=True)
class SumsAndProducts:
    """The sums of encoded columns in the last column; before it, if asked for, those of all their products."""

    together: bool
    step: int = 1
    target_units: int = 1
    largest: int = 1

    def __call__(self, encoded: Floats) -> Floats:
        sums = encoded.sum(axis=1, keepdims=True)
        return np.hstack([encoded @ encoded.T, sums]) if self.together else sums


@dataclass(frozen=True)
class LevelSums:
    """The sums over all rows, and how many rows there are."""

    sums: Integers
    n_rows: int


@dataclass(frozen=True)
class TiltingPlan(ReleasePlan):
    """What is released, and its price.

    Sums of single columns are multiplied by `weight` before noise; `with_count` says whether the number of rows is
    among the values.
    """

    pairs: Pairs
    weight: int
    with_count: bool

    def values(self, data: LevelSums) -> Integers:
        """The integers that are noised."""
        blocks = self.facts.geometry.blocks
        parts = [np.array([data.n_rows] * self.with_count, dtype=np.int64), data.sums[:, -1]]
        parts = [self.weight * part for part in parts]
        parts += [
            data.sums[blocks[a].start : blocks[a].stop, blocks[b].start : blocks[b].stop].ravel() for a, b in self.pairs
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class ExponentialTilting(Mechanism[ReweightingProblem, TiltingPlan, LevelSums, LevelShares]):
    """Release noisy sums of levels, and of pairs of levels where noise is small enough for them; then weigh public rows
    so that they agree.

    Parameters
    ----------
    pairs : "auto" (a public rule), "all", "none", or pairs of column names.
    spread : how far the logarithm of a level's weight is expected from zero. Levels dominated by noise are
        shrunk towards where the public table has them.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where Gaussian noise is less, replace-one or add-remove, for persons
    with at most `rows_per_person` rows; docs/proofs/weights.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    pairs: str | tuple[tuple[str, str], ...] = "auto"
    spread: float = 0.3

    name = "tilting"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        number = isinstance(self.spread, int | float) and not isinstance(self.spread, bool)
        if not number or not 0 < self.spread < math.inf:
            raise PrivacyError(
                f"spread={self.spread!r} was given; it is a positive number, the usual size of a level's log-weight. "
                "Use 0.3."
            )
        named = isinstance(self.pairs, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.pairs)
        if self.pairs not in ("auto", "all", "none") and not named:
            raise PrivacyError(
                f"pairs={self.pairs!r} was given; it is 'auto', 'all', 'none' or pairs of column names, chosen without "
                "looking at private rows. "
                "Write pairs=[('age', 'income')]."
            )

    def geometry(
        self, schema: Schema, problem: ReweightingProblem | None = None, numeric: Numbers = "bins"
    ) -> Geometry:
        """How rows are encoded: levels, numbers in bins; two levels as one sign."""
        return schema.geometry(numeric="bins", intercept=False, target=False)

    # -- the plan, from public facts ---------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: ReweightingProblem | None = None) -> TiltingPlan:
        """The sums of levels, and those of pairs of levels where they are wanted and noise is small enough for them."""
        geometry, n_rows = facts.geometry, facts.n_rows
        singles = _planned(facts, ())
        wanted = self._wanted(geometry)
        if not wanted or (self.pairs == "auto" and n_rows is None):
            return singles
        both = _planned(facts, wanted)
        rows_of_a_pair = (n_rows or 0) / float(np.mean(_sizes(geometry, wanted)))
        if self.pairs == "auto" and both.event.noise_sd > PAIR_NOISE * rows_of_a_pair:
            return singles
        return both

    def _wanted(self, geometry: Geometry) -> Pairs:
        """The pairs that are summed, and released if there is little noise on them."""
        if isinstance(self.pairs, tuple):
            chosen = _named_pairs(geometry, self.pairs)
        else:
            chosen = () if self.pairs == "none" else tuple(combinations(range(geometry.n_blocks), 2))
        if self.pairs == "auto" and (
            sum(_sizes(geometry, chosen)) > MOST_PAIRS or geometry.n_columns > MOST_PAIRED_COLUMNS
        ):
            return ()
        if chosen and geometry.n_columns > MOST_PAIRED_COLUMNS:
            raise PrivacyError(
                f"pairs={self.pairs!r} was given for columns with {geometry.n_columns} levels in all; pairs are summed "
                f"for at most {MOST_PAIRED_COLUMNS}. "
                "Join levels in the schema, or leave out pairs. Nothing was charged."
            )
        return chosen

    # -- the release -------------------------------------------------------------------------------

    def read(self, rows: Rows, plan: TiltingPlan, problem: ReweightingProblem, draws: Draws) -> LevelSums:
        """Sum the rows, pairs too wherever they may be released: of a stream the number of rows decides about that."""
        sums = rows.sum(SumsAndProducts(bool(self._wanted(rows.geometry))))
        return LevelSums(sums, rows.n_rows)

    def draw(self, data: LevelSums, plan: TiltingPlan, draws: Draws) -> LevelShares:
        """One draw of noise on all sums, and means made of them."""
        return _means(draws.add(plan.values(data)), plan)

    def solve(self, release: Release[LevelShares], geometry: Geometry, problem: ReweightingProblem) -> TiltingFit:
        """Weigh the public rows: post-processing of the release."""
        return TiltingFit.of(release.value, problem, self.spread)


# -- the price -------------------------------------------------------------------------------------


def _planned(facts: PublicFacts, pairs: Pairs) -> TiltingPlan:
    """The release of all levels and these pairs."""
    geometry, parameters = facts.geometry, facts.parameters
    with_count = parameters.adjacency == "add-remove" and geometry.count("levels") == 0
    weight = max(1, round(len(pairs) / geometry.n_blocks))
    own: dict[str, Any] = {
        "adjacency": parameters.adjacency,
        "rows_per_person": int(parameters.rows_per_person),
        "n_values": int(with_count) + geometry.n_columns + sum(_sizes(geometry, pairs)),
    }
    changed = l1_sensitivity(geometry, pairs, weight, with_count, parameters.adjacency)
    event = Event.laplace("exponential tilting", parameters.budget, sensitivity=changed, **own)
    if parameters.budget.delta > 0:
        changed = l2_sensitivity(geometry, pairs, weight, with_count, parameters.adjacency)
        normal = Event.gaussian("exponential tilting", parameters.budget, sensitivity=changed, **own)
        event = normal if normal.noise_sd < GAUSSIAN_MARGIN * event.noise_sd else event
    return TiltingPlan(event, facts, pairs, weight, with_count)


def l1_sensitivity(geometry: Geometry, pairs: Pairs, weight: int, with_count: bool, adjacency: Adjacency) -> int:
    """How far one row can change all values together, in L1.

    Guarantee: docs/proofs/weights.md, Lemma 2.
    """
    if adjacency == "add-remove":
        return weight * (geometry.n_blocks + with_count) + len(pairs)
    signs = geometry.count("sign")
    plain = 2 * (weight * geometry.n_blocks + len(pairs))
    if len(pairs) < math.comb(geometry.n_blocks, 2) or not pairs:
        return plain
    levels = geometry.n_blocks - signs
    turned = max(weight * some + some * (signs - some) for some in range(signs + 1))
    return 2 * (weight * levels + math.comb(levels, 2) + levels * signs + turned)


def l2_sensitivity(geometry: Geometry, pairs: Pairs, weight: int, with_count: bool, adjacency: Adjacency) -> int:
    """How far one row can change all values together, in L2, rounded up.

    Guarantee: docs/proofs/weights.md, Lemma 2.
    """
    if adjacency == "add-remove":
        return _root(weight**2 * (geometry.n_blocks + with_count) + len(pairs))
    signs = geometry.count("sign")
    return _root(weight**2 * (2 * (geometry.n_blocks - signs) + 4 * signs) + 4 * len(pairs))


def _root(square: int) -> int:
    """The square root, rounded up."""
    return math.isqrt(square - 1) + 1


# -- from noisy sums to shares ---------------------------------------------------------------------


def _means(noisy: Integers, plan: TiltingPlan) -> LevelShares:
    """Means from noisy sums: the levels of every block are made to add up to the number of rows, which is estimated
    from them where it is not public.
    """
    geometry = plan.facts.geometry
    known = plan.facts.n_rows if plan.facts.parameters.adjacency == "replace-one" else None
    first, own = int(plan.with_count), geometry.n_columns
    singles = noisy[first : first + own] / plan.weight
    levels = [block for block in geometry.blocks if block.kind == "levels"]
    if known is None:
        totals = [(singles[block.start : block.stop].sum(), 1 / block.width) for block in levels] or [
            (noisy[0] / plan.weight, 1.0)
        ]
        rows = max(float(np.average([total for total, _ in totals], weights=[trust for _, trust in totals])), 1.0)
    else:
        rows = float(known)
    for block in levels:
        part = slice(block.start, block.stop)
        singles[part] += (rows - singles[part].sum()) / block.width
    sd = plan.event.noise_sd
    deviations = np.concatenate([np.full(own, sd / plan.weight), np.full(len(noisy) - first - own, sd)])
    means = np.concatenate([singles, noisy[first + own :]]) / rows
    return LevelShares(means, deviations / rows, rows, plan.pairs)


def _sizes(geometry: Geometry, pairs: Pairs) -> list[int]:
    """How many products each pair has."""
    return [geometry.blocks[a].width * geometry.blocks[b].width for a, b in pairs]


def _named_pairs(geometry: Geometry, names: Sequence[tuple[str, str]]) -> Pairs:
    places = {block.column.name: place for place, block in enumerate(geometry.blocks)}
    for pair in names:
        if pair[0] not in places or pair[1] not in places or pair[0] == pair[1]:
            raise PrivacyError(
                f"pairs has {pair!r}; a pair is two different columns that both tables have: {sorted(places)}. Correct "
                "the names."
            )
    return tuple(sorted({(min(places[a], places[b]), max(places[a], places[b])) for a, b in names}))
