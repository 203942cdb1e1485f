"""How far every row is on its own side of a linear predictor, kept up to date as the predictor moves in one column at a
time.

All margins are integer multiples of a lattice step, and a loss is a look-up, so that scores are exact. What a move of
one column gains is a count over rows; only that column is touched.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import CachedDesign
from privfit.rows.fixed_point import Predictors
from privfit.rows.layout import STEPS_PER_KNOT, Member
from privfit.rows.workers import Chunk, Sums, added, in_order, one_blas_thread

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DOWN, UP = 0, 1
"""The two directions in which a level moves."""
CANDIDATES_AT_ONCE = 40
"""Candidates whose margins are held in memory together: it trades memory for passes."""


class LatticeLoss(Protocol):
    """A loss of margins on a lattice."""

    @property
    def reach(self) -> int:
        """The largest margin it knows."""
        ...

    @property
    def values(self) -> Floats:
        """The loss at every margin from -reach to reach."""
        ...


class MarginRows:
    """Rows of categories and splines, with two classes.

    Hands out what moves would gain, summed over all rows; never a row.
    """

    def __init__(self, kept: CachedDesign, loss: LatticeLoss) -> None:
        self._kept, self._loss = kept, loss
        self._layout = kept._layout
        if len(self._layout.number_columns):
            raise TypeError("Margins are kept for categories and splines; a slope moves every row by another amount.")
        self._members = [(group, member) for group, members in enumerate(self._layout.groups) for member in members]
        self._members.sort(key=lambda pair: pair[1].block.start)
        self.weights: Integers = np.zeros(kept.n_columns, dtype=np.int64)
        self._margins: list[Integers] | None = None
        if kept._chunks is not None:
            self._margins = [np.zeros(len(chunk.target), dtype=np.int64) for chunk in kept._chunks]

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to workers: the loss and where columns are, and no row."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_margins")}

    def gains(self, step: int) -> list[tuple[Integers, Integers | None]]:
        """For every column, in the order of the schema, what its levels gain by moving down or up by `step`: of each
        level alone, and of two neighbouring knots together.
        """
        table = None if self._margins is not None else self._layout.look_up(self.weights[:, None].astype(np.float64))
        shifts = [self._mixed(member, step) for _, member in self._members]

        if table is not None:
            return self._by_column(self._kept.total(partial(self._gained_by, table, step, shifts)))

        def task(numbered: tuple[int, Chunk]) -> list[Integers]:
            place, chunk = numbered
            assert self._margins is not None
            return _whole(self._gained(chunk, self._margins[place], step, shifts))

        threads = self._kept._rows.threads
        with one_blas_thread():
            chunks = enumerate(self._kept._every_chunk())
            return self._by_column(reduce(added, in_order(threads, task, chunks, 4 * threads)))

    def _gained_by(self, table: Floats, step: int, shifts: list[Floats | None], _: int, chunk: Chunk) -> Sums:
        """The same for rows whose margins are not kept: here, or on a worker."""
        scores = self._layout.indicators(chunk) @ table[:, 0]
        margins = np.asarray(np.rint(scores * chunk.target), dtype=np.int64)
        return list(_whole(self._gained(chunk, margins, step, shifts)))

    def move(self, column: int, signs: tuple[int | None, ...], step: int) -> None:
        """Move the levels of one column: DOWN, UP, or None for a level that stays."""
        group, member = self._members[column]
        moved = np.array([0 if sign is None else (2 * sign - 1) * step for sign in signs], dtype=np.int64)
        self.weights[member.block.start : member.block.stop] += moved
        if self._margins is None:
            return
        by_level = moved if member.basis is None else np.rint(member.basis @ moved.astype(np.float64))
        by_code = self._joined(member, by_level)
        assert self._kept._chunks is not None
        for margin, chunk in zip(self._margins, self._kept._chunks, strict=True):
            margin += (by_code.take(self._codes(chunk, group)) * chunk.target).astype(np.int64)

    # -- details -----------------------------------------------------------------------------------

    def _codes(self, chunk: Chunk, group: int) -> NDArray[np.intp]:
        """The codes of rows in a group, counted from the group's own first."""
        return np.subtract(chunk.codes[:, group], self._layout.firsts[group], dtype=np.intp)

    def _gained(self, chunk: Chunk, margins: Integers, step: int, shifts: list[Floats | None]) -> list[Floats]:
        values, second = self._loss.values, chunk.target > 0
        at = margins + self._loss.reach
        here = values.take(at)
        rise, fall = here - values.take(at + step), here - values.take(at - step)
        up, down = np.where(second, rise, fall), np.where(second, fall, rise)
        sizes = self._layout.sizes
        found = [np.asarray(self._layout.indicators(chunk).T @ np.stack([down, up], axis=1))]
        for (group, _), shift in zip(self._members, shifts, strict=True):
            if shift is None:
                continue
            code = self._codes(chunk, group)
            off = (shift.take(code) * chunk.target).astype(np.int64)
            first_up, first_down = here - values.take(at + off), here - values.take(at - off)
            found.append(
                np.stack([np.bincount(code, moved, minlength=sizes[group]) for moved in (first_down, first_up)], axis=1)
            )
        return found

    def _by_column(self, total: list[Integers]) -> list[tuple[Integers, Integers | None]]:
        firsts = self._layout.firsts
        mixed = iter(total[1:])
        found: list[tuple[Integers, Integers | None]] = []
        for group, member in self._members:
            same = _levels(total[0][firsts[group] : firsts[group + 1]], member)
            if not _bends(member):
                found.append((same, None))
                continue
            unlike = _levels(next(mixed), member)
            links = np.zeros((member.block.width - 1, 2, 2), dtype=np.int64)
            segment = np.minimum(np.arange(member.levels) // STEPS_PER_KNOT, member.block.width - 2)
            np.add.at(links[:, DOWN, DOWN], segment, same[:, DOWN])
            np.add.at(links[:, UP, UP], segment, same[:, UP])
            np.add.at(links[:, DOWN, UP], segment, unlike[:, DOWN])
            np.add.at(links[:, UP, DOWN], segment, unlike[:, UP])
            found.append((np.zeros((member.block.width, 2), dtype=np.int64), links))
        return found

    def _mixed(self, member: Member, step: int) -> Floats | None:
        """By code, how far a row moves whose left knot moves up and whose right one down; None where rows have one
        level each.
        """
        if not _bends(member):
            return None
        places = np.arange(member.levels)
        right = places - STEPS_PER_KNOT * np.minimum(places // STEPS_PER_KNOT, member.block.width - 2)  # in eighths
        return self._joined(member, (STEPS_PER_KNOT - 2 * right) * (step / STEPS_PER_KNOT))

    def _joined(self, member: Member, by_level: Floats | Integers) -> Floats:
        """Values by a member's level as values by the code of its group."""
        group = next(members for members in self._layout.groups if member in members)
        size = group[-1].stride * group[-1].levels
        return np.asarray(by_level[np.arange(size) // member.stride % member.levels], dtype=np.float64)


def _bends(member: Member) -> bool:
    return member.block.kind == "spline" and member.block.width > 1


def _levels(sums: Integers, member: Member) -> Integers:
    """Sums by the codes of a group as sums by the levels of a member: (levels, 2)."""
    apart = sums.reshape(-1, member.levels, member.stride, 2).sum(axis=(0, 2))
    return np.asarray(apart, dtype=np.int64)


def _whole(sums: list[Floats]) -> list[Integers]:
    """Sums of integers, exact over a chunk, as such."""
    return [np.asarray(np.rint(one), dtype=np.int64) for one in sums]


def losses_of(kept: CachedDesign, loss: LatticeLoss, candidates: Integers) -> Integers:
    """The loss of every candidate over all rows; candidates are weights in lattice steps, (columns, candidates).

    Exact: also numbers are integer multiples of 2^-16.
    """
    few = range(0, candidates.shape[1], CANDIDATES_AT_ONCE)
    return np.concatenate(
        [_losses_of_few(kept, loss, candidates[:, start : start + CANDIDATES_AT_ONCE]) for start in few]
    )


def _losses_of_few(kept: CachedDesign, loss: LatticeLoss, candidates: Integers) -> Integers:
    predictors = kept._predictors(candidates.astype(np.float64))
    values = loss.values.astype(np.int64)  # large losses of many rows would leave what floats hold
    losses: Integers = kept.total(partial(_chunk_losses, predictors, values, loss.reach))[0]
    return losses


def _chunk_losses(predictors: Predictors, values: Integers, reach: int, _: int, chunk: Chunk) -> Sums:
    margins = np.rint(predictors(chunk) * chunk.target[:, None]).astype(np.int64)
    return [values.take(np.clip(margins, -reach, reach) + reach).sum(axis=0)]
