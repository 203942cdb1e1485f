"""Attacks on one case: black box, record and replay, worst rows, order and type, and the ledger."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from privfit.audit.black_box import black_box
from privfit.audit.cases import Case, UnkeptLedger, spacious_ledger
from privfit.audit.density import Minimisation, loss_of_fit, watched_minima
from privfit.audit.recording import Call, RecordingNoise, noise_from
from privfit.audit.replay import Replay, Seen, compared, exceeds, watched_fit
from privfit.audit.rows import Neighbours, Row, RowMaker
from privfit.audit.table import Finding
from privfit.privacy import Adjacency, BudgetExceeded, Ledger


@dataclass(frozen=True)
class Effort:
    """How much an audit tries."""

    runs: int
    """Black-box runs on each table."""
    steps: int
    """Steps of the search for worse rows, for each adjacency."""
    every_setting: bool
    """Whether settings beside the defaults have black-box runs and all pairs as well."""
    of_a_name: int = 0
    """Black-box runs of all cases of a name together, at least."""

    def runs_of(self, case: Case) -> int:
        """Black-box runs of a case on each table."""
        return max(self.runs, math.ceil(self.of_a_name * case.share / 2))


QUICK = Effort(runs=60, steps=1, every_setting=False)
"""Black-box runs of a quick audit find gross violations alone; with 40 no outcome could refute epsilon 1. Trades power
for time: chosen, not measured."""
FULL = Effort(runs=60, steps=20, every_setting=True, of_a_name=20_000)
"""The longest audit that ends within an hour on two cores. Chosen, not measured."""


@dataclass(frozen=True)
class Fitted:
    """A fit, that of a neighbour with the same noisy values, and the perturbed objectives that both minimised."""

    one: Seen
    other: Seen
    minima: list[Minimisation]


class PairFits:
    """Fits of a case to pairs of neighbours, each pair once, however many attacks look at it."""

    def __init__(self, case: Case) -> None:
        self.case, self.rows = case, case.rows
        self._ledgers = {adjacency: spacious_ledger() for adjacency in case.adjacencies}
        self._found: dict[Neighbours, Fitted] = {}

    def of(self, pair: Neighbours) -> Fitted:
        """One table, and its neighbour with the same noisy values."""
        if pair not in self._found:
            with watched_minima() as minima:
                first = self._seen(pair, pair.left)
                self._found[pair] = Fitted(first, self._seen(pair, pair.right, first.noise.calls), minima)
        return self._found[pair]

    def _seen(self, pair: Neighbours, own: tuple[Row, ...], calls: list[Call] | None = None) -> Seen:
        ledger = self._ledgers[pair.adjacency]
        model = self.case.make(pair.adjacency, ledger, self.case.epsilon)
        return watched_fit(model, self.case.frame(self.rows, pair, own), ledger, calls)


def attack_black_box(case: Case, pair: Neighbours, runs: int) -> Finding:
    """Whole fits with secret noise on two tables, distinguished by what they show."""
    ledger, rows = spacious_ledger(kind=UnkeptLedger), case.rows
    result = black_box(
        lambda table: case.make(pair.adjacency, ledger, case.epsilon).fit(table),
        case.frame(rows, pair, pair.left),
        case.frame(rows, pair, pair.right),
        case.epsilon,
        case.delta,
        runs,
    )
    told = result.statistic if result.violated else ""
    return case.finding("black box", (case.epsilon, result.lower_bound), result.runs, told)


def attack_replay(case: Case, pairs: list[Neighbours], steps: int, fits: PairFits | None = None) -> Iterator[Finding]:
    """Built-in neighbours, then hill climbing from the worst of them; one line for each, over both adjacencies."""
    rows, own_fits = case.rows, fits or PairFits(case)

    def replay(pair: Neighbours) -> Replay:
        fit = own_fits.of(pair)
        return compared(fit.one, fit.other, exact=not case.thresholded, declared=not case.fits_inside)

    tried = [(replay(pair), pair) for pair in pairs]
    yield _worst(case, "replay", tried)
    climbed: list[tuple[Replay, Neighbours]] = []
    for adjacency in case.adjacencies if steps else ():
        best, pair = max(((one, own) for one, own in tried if own.adjacency == adjacency), key=lambda one: one[0].ratio)
        for _ in range(steps):
            next_pair = _moved(rows, pair)
            found = replay(next_pair)
            climbed.append((found, next_pair))
            if found.ratio >= best.ratio:
                best, pair = found, next_pair
    if climbed:
        yield _worst(case, "worst rows", climbed)


def attack_density(case: Case, pairs: list[Neighbours], steps: int, fits: PairFits | None = None) -> Iterator[Finding]:
    """The exact law of the weights of a perturbed objective, and of what is bought beside them; nothing where no
    objective is perturbed. Built-in neighbours, then hill climbing from the worst.
    """
    rows, own_fits = case.rows, fits or PairFits(case)

    def attacked(pair: Neighbours) -> Replay | None:
        fit = own_fits.of(pair)
        return loss_of_fit(fit.one, fit.other, fit.minima)

    lonely = [pair for pair in rows.lonely(case.rows_of_a_person) if pair.adjacency in case.adjacencies]
    tried = [(found, pair) for pair in pairs if (found := attacked(pair)) is not None]
    tried += [(found, pair) for pair in (lonely if tried else ()) if (found := attacked(pair)) is not None]
    for _ in range(steps if tried else 0):
        best = max(tried, key=lambda own: own[0].ratio)
        if (found := attacked(next_pair := _moved(rows, best[1]))) is not None:
            tried.append((found, next_pair))
    if tried:
        yield _worst(case, "density", tried)


def _moved(rows: RowMaker, pair: Neighbours) -> Neighbours:
    """The pair with another value in one row of the person."""
    side = "left" if pair.left and rows.below(2) else "right"
    own = list(pair.left if side == "left" else pair.right)
    place = rows.below(len(own))
    own[place] = rows.mutated(own[place])
    return replace(pair, left=tuple(own)) if side == "left" else replace(pair, right=tuple(own))


def _worst(case: Case, attack: str, tried: list[tuple[Replay, Neighbours]]) -> Finding:
    replay, pair = max(tried, key=lambda one: (bool(one[0].faults), one[0].ratio))
    faults = "; ".join((pair.name, *(replay.faults or ("moves too far",)))) if exceeds(replay) else ""
    return case.finding(attack, (replay.claimed, replay.found), len(tried), faults)


# -- order, engines and types ------------------------------------------------------------------------


def attack_order(case: Case, pair: Neighbours) -> Finding:
    """The same bits under one seed: for permuted rows, other batches, other engines and narrower types."""
    rows, own = case.rows, len(pair.left)
    plain = (*pair.crowd, *pair.left)
    place = len(pair.crowd)
    turned = (*pair.crowd[::-1], *pair.left)
    frames: list[tuple[str, Any]] = [
        ("as they are", rows.frame(plain, own=own)),
        ("permuted", rows.frame(turned, own=own)),
        ("rotated, in batches of 3", rows.frame((*pair.crowd[5:], *pair.crowd[:5], *plain[place:]), 3, own)),
        ("in batches of 1", rows.frame(plain, 1, own)),
    ]
    if case.by_position:
        del frames[1:3]
    found, ledger = dict[bytes, str](), spacious_ledger(kind=UnkeptLedger)
    with tempfile.TemporaryDirectory() as folder:
        for told, table in (*frames, *_elsewhere(frames[0][1], Path(folder))):
            found.setdefault(_shown(case, pair, table, ledger), told)
    others = [told for told in found.values() if told != "as they are"]
    runs = len(frames) + len(ENGINES)
    return case.finding("order", (None, None), runs, f"bits depend on: {', '.join(others)}" if others else "")


def _shown(case: Case, pair: Neighbours, table: object, ledger: Ledger) -> bytes:
    """The bits of a seeded fit; those of its error, where it has one."""
    with noise_from(RecordingNoise(7)):
        try:
            return shown_bits(case.make(pair.adjacency, ledger, case.epsilon).fit(table))
        except Exception as error:
            return f"{type(error).__name__}: {error}".encode()


ENGINES = ("lazy", "Arrow", "a stream of batches of 3", "Parquet", "two files", "narrow types")


def _elsewhere(table: pl.DataFrame, folder: Path) -> Iterator[tuple[str, Any]]:
    """The same rows for other engines, and in narrower types where these hold the same numbers."""
    yield "lazy", table.lazy()
    arrow = table.to_arrow()
    yield "Arrow", arrow
    yield "a stream of batches of 3", pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(3))
    table.write_parquet(folder / "table.parquet")
    yield "Parquet", folder / "table.parquet"
    (files := folder / "files").mkdir()
    table[:5].write_parquet(files / "1.parquet")
    table[5:].write_parquet(files / "2.parquet")
    yield "two files", files
    texts = [pl.col(name).cast(pl.Categorical) for name, kind in table.schema.items() if kind == pl.String]
    narrow = [
        pl.col(name).cast(pl.Float32)
        for name, kind in table.schema.items()
        if kind == pl.Float64 and table[name].cast(pl.Float32).cast(pl.Float64).equals(table[name])
    ]
    yield "narrow types", table.with_columns(*texts, *narrow)


def shown_bits(model: object) -> bytes:
    """The bits of all numbers among fitted attributes."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    arrays = [np.asarray(value) for _, value in sorted(fitted.items()) if isinstance(value, np.ndarray | float | int)]
    texts = [repr(value) for name, value in sorted(fitted.items()) if name in ("answer_", "columns_")]
    return b"".join(np.ravel(array).tobytes() for array in arrays) + "".join(texts).encode()


# -- the ledger --------------------------------------------------------------------------------------


def attack_ledger(case: Case, pair: Neighbours) -> Finding:
    """An entry before the first draw, at the price that was asked; nothing drawn where the budget is too small."""
    table, faults = case.frame(case.rows, pair, pair.left), []
    ledger = spacious_ledger()
    seen = watched_fit(case.make(pair.adjacency, ledger, case.epsilon), table, ledger, watches=True)
    if not seen.noise.watched or min(seen.noise.watched) < 1:
        faults.append("noise is drawn before the charge")
    if [event.epsilon for event in seen.events] != [case.epsilon] and not any(event.rho for event in seen.events):
        faults.append(f"charged {[event.epsilon for event in seen.events]}")
    faults += _refusal(case, pair.adjacency, table)
    return case.finding("ledger", (None, None), 2, "; ".join(faults))


def _refusal(case: Case, adjacency: Adjacency, table: object) -> list[str]:
    """What is wrong with a refusal by a budget that is half of the price."""
    small, noise = spacious_ledger(case.epsilon / 2, case.delta), RecordingNoise(3)  # a larger delta lowers the price
    faults = []
    try:
        with noise_from(noise):
            case.make(adjacency, small, case.epsilon).fit(table)
        faults.append("a budget that is too small is not refused")
    except BudgetExceeded:
        pass
    return [*faults, "a refusal draws or charges"] if noise.calls or small.n_entries else faults
