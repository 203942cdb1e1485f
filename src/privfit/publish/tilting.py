"""Weights by exponential tilting: noisy shares of levels are released, and public rows are weighed until they have them.

Ji and Elkan (2013) ask how private and public rows differ and noise the answer, which is far from the sums over rows that it rests on. The shares themselves have small
sensitivity; what is done with them afterwards costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp

from privfit.mechanisms.density import Contrast
from privfit.mechanisms.minima import public_rows
from privfit.mechanisms.release import Release, check_ledger
from privfit.privacy import Event, Ledger, Noise, PrivacyError, Terms
from privfit.privacy.adjacency import Adjacency
from privfit.rows import PublicRows, Rows
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Pairs = tuple[tuple[int, int], ...]

CLEAR = 0.1
MOST_PAIRS = 1 << 16
MOST_COLUMNS = 1 << 12
PAIR_SPREAD = 0.5
CLEARLY = 0.97
PRECISION = 1e-9
MOST_STEPS = 2000


@dataclass(frozen=True)
class Sums:
    """The sums of encoded columns in the last column; before it, if asked for, those of all their products."""

    together: bool
    step: int = 1
    target_units: int = 1
    largest: int = 1

    def __call__(self, encoded: Floats) -> Floats:
        sums = encoded.sum(axis=1, keepdims=True)
        return np.hstack([encoded @ encoded.T, sums]) if self.together else sums


@dataclass(frozen=True)
class MomentPlan:
    """What is released, and its price. Sums of single columns are multiplied by `weight` before noise; `counted` says whether the number of rows is among the values."""

    pairs: Pairs
    weight: int
    counted: bool
    event: Event


@dataclass(frozen=True)
class Moments:
    """Noisy means of encoded columns, those of pairs last; the standard deviation of the noise on each; and the number of rows that they are means over."""

    means: Floats
    deviations: Floats
    rows: float
    pairs: Pairs


@dataclass(frozen=True)
class Tilt:
    """Weights of public rows are proportional to exp(design @ beta). `ridge` is what was laid on every entry of beta."""

    beta: Floats
    ridge: Floats
    moments: Moments
    design: Any


@dataclass(frozen=True)
class ExponentialTilting:
    """Release noisy sums of levels, and of pairs of levels where noise is small enough for them; then weigh public rows so that they agree.

    Parameters
    ----------
    pairs : "auto" (a public rule), "all", "none", or pairs of column names.
    spread : how far the logarithm of a level's weight is expected from zero. Levels that are drowned in noise are pulled to where the public table has them.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where Gaussian noise is less, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/weights.md, Theorem 2.
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
                f"spread={self.spread!r} was given; it is a positive number, the usual size of a level's log-weight. Use 0.3."
            )
        named = isinstance(self.pairs, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.pairs)
        if self.pairs not in ("auto", "all", "none") and not named:
            raise PrivacyError(
                f"pairs={self.pairs!r} was given; it is 'auto', 'all', 'none' or pairs of column names, chosen without looking at private rows. "
                "Write pairs=[('age', 'income')]."
            )

    def geometry(self, schema: Schema, objective: Contrast | None = None) -> Geometry:
        """How rows are encoded: levels, numbers in bins; two levels as one sign."""
        return schema.geometry(numeric="bins", intercept=False, target=False)

    # -- the plan, from public facts ------------------------------------------------------------------------------

    def plan(self, geometry: Geometry, terms: Terms, n_rows: int | None) -> MomentPlan:
        """What is released. `n_rows` is None where it is private and not guessed."""
        singles = self._planned(geometry, terms, ())
        wanted = self._wanted(geometry)
        if not wanted or (self.pairs == "auto" and n_rows is None):
            return singles
        both = self._planned(geometry, terms, wanted)
        if self.pairs == "auto" and both.event.noise_sd > CLEAR * (n_rows or 0) / float(np.mean(_sizes(geometry, wanted))):
            return singles
        return both

    def _wanted(self, geometry: Geometry) -> Pairs:
        """The pairs that are summed, and released if there is little noise on them."""
        if isinstance(self.pairs, tuple):
            chosen = _named_pairs(geometry, self.pairs)
        else:
            chosen = () if self.pairs == "none" else tuple(combinations(range(geometry.n_blocks), 2))
        if self.pairs == "auto" and (sum(_sizes(geometry, chosen)) > MOST_PAIRS or geometry.n_columns > MOST_COLUMNS):
            return ()
        if chosen and geometry.n_columns > MOST_COLUMNS:
            raise PrivacyError(
                f"pairs={self.pairs!r} was given for columns with {geometry.n_columns} levels in all; pairs are summed for at most {MOST_COLUMNS}. "
                "Join levels in the schema, or leave out pairs. Nothing was charged."
            )
        return chosen

    def _planned(self, geometry: Geometry, terms: Terms, pairs: Pairs) -> MomentPlan:
        counted = terms.adjacency == "add-remove" and geometry.count("levels") == 0
        weight = max(1, round(len(pairs) / geometry.n_blocks))
        values = int(counted) + geometry.n_columns + sum(_sizes(geometry, pairs))
        facts: dict[str, Any] = {"adjacency": terms.adjacency, "rows_per_person": int(terms.rows_per_person), "n_values": values}
        reach = moved(geometry, pairs, weight, counted, terms.adjacency)
        event = Event.laplace("exponential tilting", terms.budget, sensitivity=reach, **facts)
        if terms.budget.delta > 0:
            length = moved_l2(geometry, pairs, weight, counted, terms.adjacency)
            normal = Event.gaussian("exponential tilting", terms.budget, sensitivity=length, **facts)
            event = normal if normal.noise_sd < CLEARLY * event.noise_sd else event
        return MomentPlan(pairs, weight, counted, event)

    # -- the release ----------------------------------------------------------------------------------------------

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Contrast) -> Release[Moments]:
        """Sum the rows, charge the ledger, and draw once."""
        check_ledger(ledger, noise)
        if ledger is not None:  # before a long reading
            ledger.check(self._planned(rows.geometry, terms, ()).event)
        sums = rows.sum(Sums(bool(self._wanted(rows.geometry))))
        plan = self.plan(rows.geometry, terms, public_rows(rows.n_rows, terms))  # public facts only
        values = self._values(sums, rows.n_rows, rows.geometry, plan)
        if ledger is not None:
            ledger.charge(plan.event, dataset=rows.label)  # durable before any draw
        draw = noise.gaussian if plan.event.noise == "gaussian" else noise.laplace
        known = rows.n_rows if terms.adjacency == "replace-one" else None
        return Release(_means(draw(values, plan.event.scale), rows.geometry, plan, known), plan.event, noise.private)

    def _values(self, sums: Integers, count: int, geometry: Geometry, plan: MomentPlan) -> Integers:
        blocks = geometry.blocks
        parts = [np.array([count] * plan.counted, dtype=np.int64), sums[:, -1]]
        parts = [plan.weight * part for part in parts]
        parts += [sums[blocks[a].start : blocks[a].stop, blocks[b].start : blocks[b].stop].ravel() for a, b in plan.pairs]
        return np.concatenate(parts)

    def solve(self, release: Release[Moments], geometry: Geometry, objective: Contrast) -> Tilt:
        """Weigh the public rows: post-processing of the release."""
        return self.tilted(release.value, objective.public)

    def tilted(self, moments: Moments, public: PublicRows) -> Tilt:
        """The weights with these means, as near to equal weights as the noise asks for."""
        design = public.design
        if moments.pairs:
            design = sparse.hstack([design, public.products(moments.pairs)], format="csr")
        even = np.full(public.n_rows, 1 / public.n_rows)
        spreads = np.where(np.arange(design.shape[1]) < public.design.shape[1], self.spread, PAIR_SPREAD * self.spread)
        variances = weighted_variances(design, even)
        seen = np.maximum(variances, 1 / public.n_rows)
        wobble = moments.deviations**2 + seen / max(moments.rows, 1.0)
        ridge = wobble / (spreads**2 * seen)
        return Tilt(solve_tilt(design, np.where(variances > 0, moments.means, 0.0), ridge, variances > 0), ridge, moments, design)


# -- how far one row moves the sums --------------------------------------------------------------------------------------


def moved(geometry: Geometry, pairs: Pairs, weight: int, counted: bool, adjacency: Adjacency) -> int:
    """How far one row can move all values together, in L1.

    Guarantee: docs/proofs/weights.md, Lemma 2.
    """
    if adjacency == "add-remove":
        return weight * (geometry.n_blocks + counted) + len(pairs)
    signs = geometry.count("sign")
    plain = 2 * (weight * geometry.n_blocks + len(pairs))
    if len(pairs) < math.comb(geometry.n_blocks, 2) or not pairs:
        return plain
    levels = geometry.n_blocks - signs
    turned = max(weight * some + some * (signs - some) for some in range(signs + 1))
    return 2 * (weight * levels + math.comb(levels, 2) + levels * signs + turned)


def moved_l2(geometry: Geometry, pairs: Pairs, weight: int, counted: bool, adjacency: Adjacency) -> int:
    """How far one row can move all values together, in L2, rounded up.

    Guarantee: docs/proofs/weights.md, Lemma 2.
    """
    if adjacency == "add-remove":
        return _root(weight**2 * (geometry.n_blocks + counted) + len(pairs))
    signs = geometry.count("sign")
    return _root(weight**2 * (2 * (geometry.n_blocks - signs) + 4 * signs) + 4 * len(pairs))


def _root(square: int) -> int:
    """The square root, rounded up."""
    return math.isqrt(square - 1) + 1


# -- from noisy sums to weights --------------------------------------------------------------------------------------------


def _means(noisy: Integers, geometry: Geometry, plan: MomentPlan, known: int | None) -> Moments:
    """Means from noisy sums: the levels of every block are made to add up to the number of rows, which is estimated from them where it is not known."""
    first, own = int(plan.counted), geometry.n_columns
    singles = noisy[first : first + own] / plan.weight
    levels = [block for block in geometry.blocks if block.kind == "levels"]
    if known is None:
        totals = [(singles[block.start : block.stop].sum(), 1 / block.width) for block in levels] or [(noisy[0] / plan.weight, 1.0)]
        rows = max(float(np.average([total for total, _ in totals], weights=[trust for _, trust in totals])), 1.0)
    else:
        rows = float(known)
    for block in levels:
        part = slice(block.start, block.stop)
        singles[part] += (rows - singles[part].sum()) / block.width
    sd = plan.event.noise_sd
    deviations = np.concatenate([np.full(own, sd / plan.weight), np.full(len(noisy) - first - own, sd)])
    means = np.concatenate([singles, noisy[first + own :]]) / rows
    return Moments(means, deviations / rows, rows, plan.pairs)


def noise_covariance(moments: Moments, geometry: Geometry) -> Floats:
    """The covariance of the noise on means, with the part taken out that levels which add up to one cannot have."""
    spread = np.diag(moments.deviations**2)
    for block in geometry.blocks:
        if block.kind == "levels":
            part = slice(block.start, block.stop)
            spread[part, part] -= moments.deviations[block.start] ** 2 / block.width
    return spread


def solve_tilt(design: Any, means: Floats, ridge: Floats, free: NDArray[np.bool_]) -> Floats:
    """The beta that minimises log(mean(exp(design @ beta))) - beta'means + ridge'beta^2 / 2; zero where it is not free.

    Its gradient is the difference of the weighted means and the wanted ones, plus ridge times beta: without a ridge the means agree.
    """
    size = design.shape[0]
    even = np.full(size, 1 / size)
    scale = np.where(free, 1 / np.sqrt(weighted_variances(design, even) + ridge + 1e-12), 0.0)

    def objective(scaled: Floats) -> tuple[float, Floats]:
        beta = scale * scaled
        scores = design @ beta
        top = float(logsumexp(scores))
        found = design.T @ np.exp(scores - top)
        value = top - math.log(size) - beta @ means + (ridge * beta**2).sum() / 2
        return float(value), np.asarray(scale * (found - means + ridge * beta), dtype=np.float64)

    found = minimize(
        objective,
        np.zeros(design.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "gtol": PRECISION, "ftol": 1e-15, "maxcor": 30},
    )
    return np.asarray(scale * found.x, dtype=np.float64)


def weighted_variances(design: Any, shares: Floats) -> Floats:
    """The variance of every column under shares that add up to one."""
    means = design.T @ shares
    return np.maximum(np.asarray(design.multiply(design).T @ shares - means**2, dtype=np.float64), 0.0)


def _sizes(geometry: Geometry, pairs: Pairs) -> list[int]:
    """How many products each pair has."""
    return [geometry.blocks[a].width * geometry.blocks[b].width for a, b in pairs]


def _named_pairs(geometry: Geometry, names: Sequence[tuple[str, str]]) -> Pairs:
    places = {block.column.name: place for place, block in enumerate(geometry.blocks)}
    for pair in names:
        if pair[0] not in places or pair[1] not in places or pair[0] == pair[1]:
            raise PrivacyError(
                f"pairs has {pair!r}; a pair is two different columns that both tables have: {sorted(places)}. Correct the names."
            )
    return tuple(sorted({(min(places[a], places[b]), max(places[a], places[b])) for a, b in names}))
