"""Private k-means: what its mechanisms share, and the names by which they are asked for (grids.py, cell_means.py, gene_centres.py, block_fits.py).

All of them release sums over the rows nearest to public centres, stage after stage; the next centres are made from what was released. How many stages there are, of what size, and what each may cost
follows from public facts, so the noise is asked for in the same order and shape whatever the rows are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.stages import Facts, Plan, Stage
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.rows import Points, Rows, on_lattice, point_geometry
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

USUAL_ROWS = 20_000
"""Steers rules where the number of rows is private and no guess was given."""
MOST_CLUSTERS = 1000
HOPELESS, MANY_COLUMNS = 100.0, 5
HOPELESS_PER_CLUSTER = 10.0
LEAST_WIDTH = 0.02


@dataclass(frozen=True)
class Clusters:
    """What is sought: so many centres."""

    n_clusters: int


@dataclass(frozen=True)
class ClusterFit:
    """Centres in [-1, 1], one row each, and lines for the report."""

    centres: Floats
    notes: tuple[str, ...] = ()


# -- what all share ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clusterer:
    """What the mechanisms of k-means share: check, read, charge, then draw stage by stage.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/clustering.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name: ClassVar[str] = ""

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""

    def geometry(self, schema: Schema, objective: Clusters) -> Geometry:
        """How rows are read: one number in [-1, 1] per column."""
        k: Any = objective.n_clusters
        if isinstance(k, bool) or not hasattr(k, "__index__") or not 1 <= int(k) <= MOST_CLUSTERS:
            raise PrivacyError(f"n_clusters={k!r} was given; it is a whole number from 1 to {MOST_CLUSTERS}. Write n_clusters=8.")
        return point_geometry(schema)

    def reasons_not_private(self, objective: Clusters) -> tuple[str, ...]:
        """Why its releases are not private, if they are not; a ledger is then refused."""
        return ()

    def plan(self, facts: Facts) -> Plan:
        """The stages and their shares, from public facts."""
        raise NotImplementedError

    def _centres(self, points: Points, plan: Plan, noise: Noise) -> Floats:
        """Draw the stages of the plan, each once, and make centres of them."""
        raise NotImplementedError

    def chosen(self, facts: Facts) -> Clusterer:
        """The mechanism that does the work: this one, unless it is a rule."""
        return self

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Clusters) -> Release[ClusterFit]:
        """Read the rows, charge the ledger, then draw stage by stage."""
        check_ledger(ledger, noise)
        points = Points(rows)
        if terms.adjacency == "replace-one" and rows.known_rows is None:
            points.read()
        public = rows.known_rows if terms.adjacency == "replace-one" else terms.expected_rows
        facts = Facts(len(rows.geometry.blocks), int(objective.n_clusters), int(public or USUAL_ROWS), terms)
        mechanism = self.chosen(facts)
        plan = mechanism.plan(facts)  # public facts only up to here
        if ledger is not None:
            ledger.check(plan.event)
        points.read()
        points.check_sums(plan.unit)
        if ledger is not None:
            ledger.charge(plan.event, dataset=rows.label)  # durable before any draw
        centres = mechanism._centres(points, plan, noise)
        return Release(ClusterFit(centres, notes_of(plan)), plan.event, noise.private)

    def solve(self, release: Release[ClusterFit], geometry: Geometry, objective: Clusters) -> ClusterFit:
        """The centres are what was released."""
        return release.value


def notes_of(plan: Plan) -> tuple[str, ...]:
    """Lines for the report: what epsilon was spent on, and whether that can be enough."""
    notes = [f"the parts of the release share epsilon: {plan.shares}"]
    facts = plan.facts
    many = facts.signal < HOPELESS and facts.columns >= MANY_COLUMNS
    if many or facts.signal < HOPELESS_PER_CLUSTER * facts.clusters:
        enough_for = f"{facts.columns} columns" if many else f"{facts.clusters} cluster{'s' * (facts.clusters != 1)}"
        notes.append(
            f"rows times epsilon are {facts.signal:.3g} times what one person can move, too few for {enough_for}: the centres are mostly noise. "
            "Use more rows, a larger epsilon, fewer columns or fewer clusters"
        )
    return tuple(notes)


def block_stage(name: str, blocks: int, facts: Facts, share: Fraction) -> Stage:
    """Block sums: a count and one sum per column in a cube for every block, of which a row touches one."""
    return Stage(name, "linf", (facts.columns + 1,) * blocks, share)


def block_sums(points: Points, plan: Plan, stage: Stage, noise: Noise, centres: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Noisy numbers of the points nearest to every centre, and noisy sums of how far they are from it, each cut at a width.

    Guarantee: docs/proofs/clustering.md, Lemma 2.
    """
    widths = np.broadcast_to(widths, centres.shape)
    drawn = plan.drawn(noise, stage, points.blocks(on_lattice(centres), widths, plan.unit))
    return drawn[:, 0], drawn[:, 1:] * widths


NAMED_CLUSTERERS: dict[str, Clusterer] = {}
"""What `pf.KMeans(mechanism=...)` knows by name. A mechanism that is added here can be asked for."""
ADAPTED_CLUSTERERS: dict[type, Callable[[Any], Clusterer]] = {}
"""How an instance of another class becomes a mechanism of k-means, by its class."""


def clusterer(given: Any) -> Clusterer:
    """The mechanism of that name, or the one given; checked."""
    found: Clusterer | None = None
    if isinstance(given, str):
        found = NAMED_CLUSTERERS.get(given)
    elif isinstance(given, Clusterer):
        found = given
    elif type(given) in ADAPTED_CLUSTERERS:
        found = ADAPTED_CLUSTERERS[type(given)](given)
    if found is None:
        shown = repr(given) if isinstance(given, str) else type(given).__name__
        raise PrivacyError(
            f"mechanism={shown} was given; k-means has {', '.join(map(repr, sorted(NAMED_CLUSTERERS)))}. Use 'auto' if in doubt."
        )
    found.check()
    return found
