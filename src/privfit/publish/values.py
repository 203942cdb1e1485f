"""Every value of a table with noise of its own: the simplest way to publish, and the noisiest. The baseline of Ji and Elkan, Machine Learning 93 (2013), section 7."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.release import Release, check_ledger
from privfit.models.inputs import Input
from privfit.privacy import Event, Ledger, Noise, PrivacyError, Terms
from privfit.publish.passing import laplace
from privfit.publish.publisher import Publisher, refuse_weight
from privfit.rows import PlainRows, Rows
from privfit.schema import Block, Geometry, Schema, SchemaError, make_block

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

UNIT = 1 << 16
"""The whole number that stands for 1."""
CALIBRATIONS = ("tight", "paper")


@dataclass(frozen=True)
class NoisyValues:
    """Numbers in [0, 1] by their bounds and levels as 0 and 1, each with Laplace noise for the largest L1 distance of two records.

    A category is one value per level. With "tight", one of two levels is one value alone, and two records are 1 apart in it; with "paper" it is two values, and they are 2 apart.

    Guarantee: epsilon-DP, replace-one, for persons with at most `rows_per_person` rows, and of every row by itself (local); docs/proofs/histograms.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    trim: bool = False
    calibration: Literal["tight", "paper"] = "tight"

    name = "Laplace publishing"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.trim, bool | np.bool_):
            raise PrivacyError(
                f"trim={self.trim!r} was given to LaplacePublisher; it is True or False. Leave it out for values that average to the truth."
            )
        if self.calibration not in CALIBRATIONS:
            raise PrivacyError(
                f"calibration={self.calibration!r} was given to LaplacePublisher; it is one of {CALIBRATIONS}. Use 'tight' unless you compare with the paper."
            )

    def geometry(self, schema: Schema) -> Geometry:
        """One value per number, one per level of a category; two levels as the calibration says."""
        blocks: list[Block] = []
        for column in schema.columns:
            blocks.append(make_block(column, blocks[-1].stop if blocks else 0, whole=self.calibration == "paper"))
        names = [label for block in blocks for label in block.labels]
        refuse_weight(names)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(
                f"The schema gives the name {twice[0]!r} to two published columns: a column, or a column and a level. Rename one. Nothing was charged."
            )
        return Geometry(tuple(blocks), False) if schema.target is None else Geometry(tuple(blocks[:-1]), False, blocks[-1])

    def event(self, geometry: Geometry, terms: Terms, n_rows: int) -> Event:
        """The price and the noise, from public facts alone: the number of rows among them."""
        return Event.laplace(
            self.name,
            terms.budget,
            sensitivity=diameter(geometry) * UNIT,
            adjacency=terms.adjacency,
            rows_per_person=int(terms.rows_per_person),
            unit=UNIT,
            n_values=n_rows * sum(block.width for block in _blocks(geometry)),
        )

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: None) -> Release[Integers]:
        """Read all rows, charge the ledger, add noise to every value, and sort what comes out."""
        check_ledger(ledger, noise)
        if terms.adjacency != "replace-one":
            raise PrivacyError(
                f"adjacency={terms.adjacency!r} was given to LaplacePublisher, which publishes one row per row and so tells how many there are. "
                "Use adjacency='replace-one', where their number is public, or DPME. Nothing was charged."
            )
        blocks = _blocks(rows.geometry)
        if ledger is not None:
            ledger.check(self.event(rows.geometry, terms, rows.known_rows or 1))
        plain = PlainRows(rows)
        plain.read()
        event = self.event(rows.geometry, terms, plain.n_rows)
        values = plain.every_row(lambda table: np.column_stack([on_lattice(block, table[:, i]) for i, block in enumerate(blocks)])).astype(
            np.int64
        )
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        noisy = laplace(noise, values.ravel(), event.scale).reshape(values.shape)
        order = np.lexsort(noisy.T[::-1])  # a table may come sorted by what it holds; noisy values tell their own order only
        return Release(noisy[order], event, noise.private)

    def solve(self, release: Release[Integers], geometry: Geometry, objective: None) -> dict[str, Floats]:
        """Values in their own units, trimmed to their bounds if asked for."""
        shares = release.value / UNIT
        if self.trim:
            shares = np.clip(shares, 0.0, 1.0)
        found: dict[str, Floats] = {}
        for block in _blocks(geometry):
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
    return sum(2 if block.kind == "levels" else 1 for block in _blocks(geometry))


def on_lattice(block: Block, values: Floats) -> Integers:
    """A column of values, numbers within their bounds or places of levels, as whole numbers from 0 to UNIT: one per encoded column."""
    if block.kind == "slope":
        low, high = block.column.low, block.column.high  # type: ignore[union-attr]
        shares = (values / 2 - low / 2) / (high / 2 - low / 2)
        return np.asarray(np.rint(np.clip(shares, 0.0, 1.0) * UNIT)[:, None], dtype=np.int64)
    levels = values.astype(np.int64)
    if block.kind == "sign":
        return np.asarray(UNIT * levels[:, None], dtype=np.int64)
    return np.asarray(UNIT * (levels[:, None] == np.arange(block.width)), dtype=np.int64)


def _blocks(geometry: Geometry) -> tuple[Block, ...]:
    return geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target)


class LaplacePublisher(Publisher):
    """Publish a private table row by row, with noise on every value: a baseline that each person could run alone, without trust in who holds the table, and far too much noise for most uses.

    Numbers keep their units, a category becomes numbers around 0 and 1: one per level, named as in get_feature_names_out of the models (one of the two for two levels). The noise on each value is Laplace noise of scale
    S / epsilon, S the largest L1 distance of two records, numbers in [0, 1]: it grows with the number of columns.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier. All noise needs epsilon alone; a `delta` is not spent.
    schema : the public facts about the table. A target, if there is one, is a column like the others.
    trim : cut published values at their bounds. Each looks possible then, but means are drawn to the middle of the bounds.
    calibration : "tight", or "paper", which publishes both of two levels and counts them as 2.
    adjacency : "replace-one". There is one published row per row, so their number is told, and "add-remove" is refused.
    rows_per_person, ledger, random_state : as in LogisticRegression. expected_rows is not needed.

    Attributes
    ----------
    columns_ : the published values, one array per encoded column, by name; rows are sorted by what is published.
    weights_ : all 1.
    report_, schema_ : as in LogisticRegression.

    Guarantee: epsilon-DP, replace-one, for persons with at most `rows_per_person` rows; each row by itself is epsilon-DP too (local). docs/proofs/histograms.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> table = pf.baselines.LaplacePublisher(epsilon=1.0, schema=pf.Schema.box(-1, 1)).fit(rows)
    >>> bool(abs(table.columns_["x0"].mean()) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        trim: bool = False,
        calibration: str = "tight",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.trim = trim
        self.calibration = calibration
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> NoisyValues:
        mechanism = NoisyValues(self.trim, self.calibration)  # type: ignore[arg-type]
        mechanism.check()
        return mechanism

    def _encoded(self, mechanism: NoisyValues, given: Input, terms: Terms) -> tuple[None, Geometry]:
        return None, mechanism.geometry(given.schema)

    def _keep(self, fit: dict[str, Floats], mechanism: Any) -> None:
        self.columns_ = dict(fit)
        self.weights_ = np.ones(len(next(iter(fit.values()))))

    def _described(self, mechanism: Any, fit: Any) -> tuple[dict[str, Any], list[str]]:
        return {}, [f"two records are at most {diameter(self._geometry)} apart, numbers in [0, 1]; each row is also protected by itself"]
