"""Tables of the board: numbers within their bounds, levels by their places, and random splits of them in files that
peers can read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from privfit.datasets.census import census_schema, generated_census
from privfit.privacy import seeded_generator
from privfit.schema import Category, Numeric, Schema
from privfit.schema import Column as SchemaColumn
from privfit_papers.bench import classes, cps, data
from privfit_papers.bench.board.cells import TRAIN_SHARE
from privfit_papers.bench.board.peers.serve import Column, Floats

DEMO, DEMO_PEOPLE = "demo", 50_000


@dataclass(frozen=True)
class BoardTable:
    """A table as all peers see it. Targets are 0 or 1 for classes, else numbers from `bounds`.

    `left_out` is how many rows had values that are missing or not in the schema.
    """

    name: str
    columns: tuple[Column, ...]
    bounds: tuple[float, float] | None
    rows: Floats
    target: Floats
    left_out: int = 0

    @property
    def task(self) -> str:
        """What is predicted: classes or numbers."""
        return "numbers" if self.bounds else "classes"

    @classmethod
    def of(cls, name: str, frame: pl.DataFrame, schema: Schema) -> BoardTable:
        """From a frame and its schema, without the rows that the schema does not cover."""
        assert schema.target is not None
        target = schema.target
        if isinstance(target, Category):
            if len(target.levels) != 2:
                raise ValueError(
                    f"The target {target.name!r} has {len(target.levels)} classes, and the board compares methods for "
                    "two. Give a schema with a target of two levels, or with a number."
                )
            target = Category(target.name, sorted(target.levels, key=str))
        codes = np.column_stack([_codes(frame, column) for column in (*schema.features, target)])
        whole = np.asarray(np.isfinite(codes).all(axis=1))
        bounds = (target.low, target.high) if isinstance(target, Numeric) else None
        columns = tuple(map(_column, schema.features))
        return cls(name, columns, bounds, codes[whole, :-1], codes[whole, -1], int(len(whole) - whole.sum()))

    def at_most(self, rows: int | None) -> BoardTable:
        """With so many of its rows, chosen at random once and for all."""
        if rows is None or rows >= len(self.rows):
            return self
        kept = np.sort(seeded_generator(0).permutation(len(self.rows))[:rows])
        return BoardTable(self.name, self.columns, self.bounds, self.rows[kept], self.target[kept], self.left_out)

    def save_split(self, number: int, folder: Path) -> None:
        """Four fifths to fit on, one to test on, as files. The same split for the same number."""
        unfinished = folder.with_name(folder.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        order, cut = seeded_generator(number).permutation(len(self.rows)), int(TRAIN_SHARE * len(self.rows))
        parts = {"train": self.rows[order[:cut]], "target": self.target[order[:cut]]}
        parts |= {"test": self.rows[order[cut:]], "truth": self.target[order[cut:]]}
        for name, part in parts.items():
            np.save(unfinished / f"{name}.npy", part)
        facts = {"columns": [asdict(column) for column in self.columns], "bounds": self.bounds}
        (unfinished / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)


def _column(column: SchemaColumn) -> Column:
    if isinstance(column, Category):
        return Column(column.name, levels=len(column.levels))
    return Column(column.name, column.low, column.high)


def _codes(frame: pl.DataFrame, column: SchemaColumn) -> Floats:
    """One number a row: within bounds, or the place of the level; not a number for everything else."""
    values = frame.get_column(column.name)
    if isinstance(column, Category):
        places = {str(level): float(place) for place, level in enumerate(column.levels)}
        known = values.cast(pl.String).replace_strict(places, default=None, return_dtype=pl.Float64)
        return known.fill_null(float("nan")).to_numpy()
    numbers = values.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    return np.asarray(np.clip(numbers, column.low, column.high))


def _demo(folder: Path) -> tuple[pl.DataFrame, Schema]:
    return generated_census(DEMO_PEOPLE, seed=0), census_schema()


READERS: Mapping[str, Callable[[Path], tuple[pl.DataFrame, Schema]]] = {
    "adult": classes.adult,
    "bank": classes.bank,
    "brazil": classes.brazil,
    "census": data.census_1980,
    "cps": cps.cps_wages,
    DEMO: _demo,
}
"""The tables by name, from the folder with real data. "demo" is generated."""


def from_csv(path: Path, schema: Path) -> BoardTable:
    """Any table of one's own. It is read without privacy."""
    return BoardTable.of(path.stem, pl.read_csv(path, infer_schema_length=None), Schema.load(schema))
