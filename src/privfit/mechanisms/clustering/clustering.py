"""Private k-means: what its mechanisms share.

Most of them release sums over the rows nearest to public centres, query by query; the next centres are made from what
was released. How many queries there are, of what size, and what each may cost follows from public facts, so the noise
is asked for in the same order and shape whatever the rows are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import USUAL_ROWS, Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.clustering.schedule import ClusteringFacts, Query, QuerySchedule
from privfit.privacy import Draws, PrivacyError
from privfit.rows import Points, Rows, on_lattice, point_geometry
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]
PlanT = TypeVar("PlanT", bound=ReleasePlan)
Data = TypeVar("Data")

MOST_CLUSTERS = 1000
"""More clusters have too few rows each at any budget in use; sums and noise grow with it."""
HOPELESS, MANY_COLUMNS = 100.0, 5
"""Rows times epsilon below which, from so many columns on, a fit says that its centres are mostly noise."""
HOPELESS_PER_CLUSTER = 10.0
"""The same for every cluster, with any number of columns."""
LEAST_WIDTH = 0.02
"""The least width at which distances from a centre are cut, as a share of half a column's range."""


@dataclass(frozen=True)
class Clusters:
    """What is sought: so many centres."""

    n_clusters: int


@dataclass(frozen=True)
class ClusterFit:
    """Centres in [-1, 1], one row each, and lines for the report."""

    centres: Floats
    notes: tuple[str, ...] = ()


class Clusterer(Mechanism[Clusters, PlanT, Data, ClusterFit]):
    """A mechanism of k-means."""

    def geometry(self, schema: Schema, problem: Clusters, numeric: Numbers = "slope") -> Geometry:
        """How rows are read: one number in [-1, 1] per column."""
        k: Any = problem.n_clusters
        if isinstance(k, bool) or not hasattr(k, "__index__") or not 1 <= int(k) <= MOST_CLUSTERS:
            raise PrivacyError(
                f"n_clusters={k!r} was given; it is an integer from 1 to {MOST_CLUSTERS}. Write n_clusters=8."
            )
        return point_geometry(schema)


@dataclass(frozen=True)
class ClusteringPlan(ReleasePlan):
    """The queries of a fit and their noise."""

    schedule: QuerySchedule


@dataclass(frozen=True)
class ScheduledClusterer(Clusterer[ClusteringPlan, Points]):
    """A mechanism of k-means that releases sums, query by query.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/clustering.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name: ClassVar[str] = ""

    @abstractmethod
    def schedule(self, facts: ClusteringFacts) -> QuerySchedule:
        """The queries and their shares, from public facts."""

    @abstractmethod
    def centres(self, points: Points, schedule: QuerySchedule, draws: Draws) -> Floats:
        """Draw the queries of the schedule, each once, and make centres of them."""

    def plan(self, facts: PublicFacts, problem: Clusters) -> ClusteringPlan:
        """The queries and their noise."""
        rows = int(facts.n_rows or USUAL_ROWS)
        known = ClusteringFacts(len(facts.geometry.blocks), int(problem.n_clusters), rows, facts.parameters)
        schedule = self.schedule(known)
        return ClusteringPlan(schedule.event, facts, schedule)

    def read(self, rows: Rows, plan: ClusteringPlan, problem: Clusters, draws: Draws) -> Points:
        """Read the rows once, and keep them where they fit."""
        points = Points(rows)
        points.read()
        points.check_sums(plan.schedule.unit)
        return points

    def draw(self, data: Points, plan: ClusteringPlan, draws: Draws) -> ClusterFit:
        """Query by query."""
        return ClusterFit(self.centres(data, plan.schedule, draws), notes_of(plan.schedule))


def notes_of(schedule: QuerySchedule) -> tuple[str, ...]:
    """Lines for the report: what epsilon was spent on, and whether that can be enough."""
    notes = [f"the parts of the release share epsilon: {schedule.shares}"]
    facts = schedule.facts
    many = facts.signal < HOPELESS and facts.columns >= MANY_COLUMNS
    if many or facts.signal < HOPELESS_PER_CLUSTER * facts.clusters:
        enough_for = f"{facts.columns} columns" if many else f"{facts.clusters} cluster{'s' * (facts.clusters != 1)}"
        notes.append(
            f"rows times epsilon are {facts.signal:.3g} times what one person can move, too few for {enough_for}: the "
            "centres are mostly noise. "
            "Use more rows, a larger epsilon, fewer columns or fewer clusters"
        )
    return tuple(notes)


def block_query(name: str, blocks: int, facts: ClusteringFacts, share: Fraction) -> Query:
    """Block sums: a count and one sum per column with L-infinity noise for every block, of which a row touches one."""
    return Query(name, "linf", (facts.columns + 1,) * blocks, share)


def block_sums(
    points: Points, schedule: QuerySchedule, draws: Draws, centres: Floats, widths: Floats
) -> tuple[Floats, Floats]:
    """Noisy numbers of the points nearest to every centre, and noisy sums of how far they are from it, each cut at a
    width.

    Guarantee: docs/proofs/clustering.md, Lemma 2.
    """
    widths = np.broadcast_to(widths, centres.shape)
    drawn = schedule.drawn(draws, points.blocks(on_lattice(centres), widths, schedule.unit))
    return drawn[:, 0], drawn[:, 1:] * widths
