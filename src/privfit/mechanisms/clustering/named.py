"""The mechanisms of k-means by name: all that `pf.KMeans(mechanism=...)` takes."""

from __future__ import annotations

from typing import Any

from privfit.mechanisms.aggregation.block_fits import AggregatedCentres
from privfit.mechanisms.aggregation.sample_aggregate import SampleAndAggregate
from privfit.mechanisms.clustering.cell_means import AutomaticClusterer, CellClusterer, LloydClusterer
from privfit.mechanisms.clustering.clustering import Clusterer
from privfit.mechanisms.clustering.grid import GridClusterer, HybridClusterer
from privfit.mechanisms.genetic.centres import GeneticCentres
from privfit.mechanisms.genetic.privgene import PrivGene
from privfit.privacy import PrivacyError

AnyClusterer = Clusterer[Any, Any]

NAMED_CLUSTERERS: dict[str, AnyClusterer] = {
    "auto": AutomaticClusterer(),
    "hybrid": HybridClusterer(),
    "grid": GridClusterer(),
    "cells": CellClusterer(),
    "lloyd": LloydClusterer(),
    "genetic": GeneticCentres(),
    "sample-and-aggregate": AggregatedCentres(),
}


def clusterer(given: Any) -> AnyClusterer:
    """The mechanism of that name, or the one given; checked.

    Mechanisms for any table become those of k-means.
    """
    found: AnyClusterer | None = None
    if isinstance(given, str):
        found = NAMED_CLUSTERERS.get(given)
    elif isinstance(given, Clusterer):
        found = given
    elif isinstance(given, PrivGene):
        found = GeneticCentres.of(given)
    elif isinstance(given, SampleAndAggregate):
        found = AggregatedCentres(given)
    if found is None:
        shown = repr(given) if isinstance(given, str) else type(given).__name__
        raise PrivacyError(
            f"mechanism={shown} was given; k-means has {', '.join(map(repr, sorted(NAMED_CLUSTERERS)))}. Use 'auto' if "
            "in doubt."
        )
    found.check()
    return found
