"""The methods of the PrivGene paper for k-means: the mean squared distance to the nearest centre, with columns between
-1 and 1.

Noise is seeded and distances are measured on the rows themselves: nothing here is a private release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from privfit.mechanisms import PrivGene
from privfit.mechanisms.aggregation.block_fits import AggregatedCentres
from privfit.models import KMeans
from privfit_papers.bench.clusters import without_privacy
from privfit_papers.bench.papers.privgene.gupt import GuptOnce
from privfit_papers.bench.papers.privgene.tables import PointTable

GENES, GENES_PRINTED, GUPT, CUT_GUPT, NO_PRIVACY = (
    "PrivGene",
    "PrivGene as printed",
    "GUPT",
    "GUPT, cut at the bounds",
    "NoPrivacy",
)
OURS, OURS_GENETIC = "privfit", "privfit, genetic"
PARENTS = 10
"""How many candidates beget the next in the paper where the exponential mechanism selects them."""

Found = tuple[str, float, float]


def measured(table: PointTable, k: int, epsilons: Sequence[float], seed: Callable[..., int]) -> Iterator[Found]:
    """Every method and epsilon: the method, the epsilon, and the distance."""
    least = without_privacy(table.scaled, k)
    blocks = AggregatedCentres(GuptOnce())
    for epsilon in epsilons:
        methods: dict[str, Any] = {
            GENES: PrivGene("exponential", moves="genes", parents=PARENTS, start="scattered", elitism=False),
            GENES_PRINTED: PrivGene(calibration="paper", parents=PARENTS, elitism=False),
            GUPT: blocks,
            CUT_GUPT: "sample-and-aggregate",
            OURS: "auto",
            OURS_GENETIC: "genetic",
        }
        for method, mechanism in methods.items():
            model = KMeans(k, epsilon, schema=table.schema, mechanism=mechanism, random_state=seed(method, epsilon))
            yield method, epsilon, -model.fit(table.rows).score(table.rows) / len(table.rows)
        yield NO_PRIVACY, epsilon, least
