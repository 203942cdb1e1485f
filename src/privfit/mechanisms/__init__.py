"""Mechanisms: from rows to one release, with noise chosen from public facts alone."""

from privfit.mechanisms.adassp import BOOSTED_ROUNDS, AdaSSP
from privfit.mechanisms.aggregate import BlockAnswers, BlockFit, SampleAndAggregate
from privfit.mechanisms.block_fits import AggregatedCentres, AggregatedWeights
from privfit.mechanisms.breeding import Breeding
from privfit.mechanisms.cell_means import AutomaticClusterer, Cells, Lloyd
from privfit.mechanisms.clustering import ADAPTED_CLUSTERERS, NAMED_CLUSTERERS, Clusterer, ClusterFit, Clusters, clusterer
from privfit.mechanisms.functional import FunctionalMechanism, LinearFit, Objective
from privfit.mechanisms.gene_centres import GeneticCentres
from privfit.mechanisms.genetic import PrivGene
from privfit.mechanisms.grids import Grid, Hybrid
from privfit.mechanisms.intervals import Bootstrap, bootstrap
from privfit.mechanisms.minima import PairTable, Risk, RiskFit
from privfit.mechanisms.pairs import PairedPerturbation
from privfit.mechanisms.perturbation import ObjectivePerturbation, OutputPerturbation, Perturbation
from privfit.mechanisms.polynomial import PolynomialFit, PolynomialMechanism
from privfit.mechanisms.release import Release
from privfit.mechanisms.search import GeneticMechanism, Search
from privfit.mechanisms.selection import PenaltySelection
from privfit.mechanisms.tuning import TunedPerturbation

__all__ = [
    "ADAPTED_CLUSTERERS",
    "BOOSTED_ROUNDS",
    "NAMED_CLUSTERERS",
    "AdaSSP",
    "AggregatedCentres",
    "AggregatedWeights",
    "AutomaticClusterer",
    "BlockAnswers",
    "BlockFit",
    "Bootstrap",
    "Breeding",
    "Cells",
    "ClusterFit",
    "Clusterer",
    "Clusters",
    "FunctionalMechanism",
    "GeneticCentres",
    "GeneticMechanism",
    "Grid",
    "Hybrid",
    "LinearFit",
    "Lloyd",
    "Objective",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PairTable",
    "PairedPerturbation",
    "PenaltySelection",
    "Perturbation",
    "PolynomialFit",
    "PolynomialMechanism",
    "PrivGene",
    "Release",
    "Risk",
    "RiskFit",
    "SampleAndAggregate",
    "Search",
    "TunedPerturbation",
    "bootstrap",
    "clusterer",
]
