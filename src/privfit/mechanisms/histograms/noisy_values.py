"""Every value of a table with noise of its own: the simplest way to publish, and the noisiest.

The baseline of Ji and Elkan, Machine Learning 93 (2013), section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.rows import PlainRows, Rows
from privfit.schema import Block, Geometry, Schema, SchemaError, make_block

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

UNIT = 1 << 16
"""The integer that stands for 1."""
CALIBRATIONS = ("tight", "paper")


@dataclass(frozen=True)
class NoisyValues(Mechanism[None, ReleasePlan, Integers, Integers]):
    """Numbers in [0, 1] by their bounds and levels as 0 and 1, each with Laplace noise for the largest L1 distance of
    two records.

    A category is one value per level. With "tight", one of two levels is one value alone, and two records are 1 apart
    in it; with "paper" it is two values, and they are 2 apart.

    Guarantee: epsilon-DP, replace-one, for persons with at most `rows_per_person` rows, and of every row by itself
    (local); docs/proofs/histograms.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    trim: bool = False
    calibration: Literal["tight", "paper"] = "tight"

    name = "Laplace publishing"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.trim, bool | np.bool_):
            raise PrivacyError(
                f"trim={self.trim!r} was given to LaplacePublisher; it is True or False. Leave it out for values that "
                "average to the truth."
            )
        if self.calibration not in CALIBRATIONS:
            raise PrivacyError(
                f"calibration={self.calibration!r} was given to LaplacePublisher; it is one of {CALIBRATIONS}. Use "
                "'tight' unless you compare with the paper."
            )

    def geometry(self, schema: Schema, problem: None = None, numeric: Numbers = "slope") -> Geometry:
        """One value per number, one per level of a category; two levels as the calibration says."""
        blocks: list[Block] = []
        for column in schema.columns:
            blocks.append(make_block(column, blocks[-1].stop if blocks else 0, whole=self.calibration == "paper"))
        names = [label for block in blocks for label in block.labels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(
                f"The schema gives the name {twice[0]!r} to two published columns: a column, or a column and a level. "
                "Rename one. Nothing was charged."
            )
        return (
            Geometry(tuple(blocks), False) if schema.target is None else Geometry(tuple(blocks[:-1]), False, blocks[-1])
        )

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """Refuse rows that are left out: what is published has a row for every row that is used."""
        raise PrivacyError(
            "A schema that leaves rows out (person, where, or a target with fill='drop') was given to "
            "LaplacePublisher, which publishes one row per row and so would reveal how many are used. Leave rows out "
            "before publishing if their number is public, or use DPME. Nothing was charged."
        )

    def plan(self, facts: PublicFacts, problem: None = None) -> ReleasePlan:
        """Noise on every value of every row: the number of rows is revealed, so it has to be public."""
        parameters = facts.parameters
        if parameters.adjacency != "replace-one" or facts.n_rows is None:
            raise PrivacyError(
                f"adjacency={parameters.adjacency!r} was given to LaplacePublisher, which publishes one row per row "
                "and so reveals how many there are. "
                "Use adjacency='replace-one', where their number is public, or DPME. Nothing was charged."
            )
        event = Event.laplace(
            self.name,
            parameters.budget,
            sensitivity=diameter(facts.geometry) * UNIT,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            unit=UNIT,
            n_values=max(facts.n_rows, 1) * sum(block.width for block in all_blocks(facts.geometry)),
        )
        return ReleasePlan(event, facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> Integers:
        """Every value of every row as an integer."""
        plain, blocks = PlainRows(rows), all_blocks(rows.geometry)
        plain.read()
        return plain.every_row(
            lambda table: np.column_stack([on_lattice(block, table[:, i]) for i, block in enumerate(blocks)])
        ).astype(np.int64)

    def draw(self, data: Integers, plan: ReleasePlan, draws: Draws) -> Integers:
        """Noise on every value. Rows are then sorted by what comes out: a table may come sorted by what it holds, and
        noisy values reveal their own order only.
        """
        noisy = draws.add_in_pieces(data.ravel()).reshape(data.shape)
        return noisy[np.lexsort(noisy.T[::-1])]

    def solve(self, release: Release[Integers], geometry: Geometry, problem: None) -> dict[str, Floats]:
        """Values in their own units, trimmed to their bounds if asked for."""
        shares = release.value / UNIT
        if self.trim:
            shares = np.clip(shares, 0.0, 1.0)
        found: dict[str, Floats] = {}
        for block in all_blocks(geometry):
            own = shares[:, block.start : block.stop]
            if block.kind == "slope":
                low, high = block.column.low, block.column.high  # type: ignore[union-attr]
                found[block.column.name] = low + (high - low) * own[:, 0]
            else:
                labels = block.labels[1:] if block.kind == "sign" else block.labels
                found |= {label: own[:, place] for place, label in enumerate(labels)}
        return found


def diameter(geometry: Geometry) -> int:
    """The largest L1 distance of two records: 1 in a number or in a single 0 or 1, 2 in a 1 among zeros.

    Guarantee: holds for every two records of this geometry; docs/proofs/histograms.md, Theorem 3.
    """
    return sum(2 if block.kind == "levels" else 1 for block in all_blocks(geometry))


def on_lattice(block: Block, values: Floats) -> Integers:
    """A column of values, numbers within their bounds or places of levels, as integers from 0 to UNIT: one per encoded
    column.
    """
    if block.kind == "slope":
        low, high = block.column.low, block.column.high  # type: ignore[union-attr]
        shares = (values / 2 - low / 2) / (high / 2 - low / 2)
        return np.asarray(np.rint(np.clip(shares, 0.0, 1.0) * UNIT)[:, None], dtype=np.int64)
    levels = values.astype(np.int64)
    if block.kind == "sign":
        return np.asarray(UNIT * levels[:, None], dtype=np.int64)
    return np.asarray(UNIT * (levels[:, None] == np.arange(block.width)), dtype=np.int64)


def all_blocks(geometry: Geometry) -> tuple[Block, ...]:
    """The blocks of all columns, the target last."""
    return geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target)
