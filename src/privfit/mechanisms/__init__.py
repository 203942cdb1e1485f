"""Mechanisms: from rows to one release, with noise chosen from public facts alone."""

from privfit.mechanisms.aggregation.block_fits import AggregatedCentres, AggregatedWeights
from privfit.mechanisms.aggregation.block_plan import BlockAnswers, BlockFit
from privfit.mechanisms.aggregation.sample_aggregate import SampleAndAggregate
from privfit.mechanisms.base import Release
from privfit.mechanisms.choice import BestOf
from privfit.mechanisms.clustering.cell_means import AutomaticClusterer, CellClusterer, LloydClusterer
from privfit.mechanisms.clustering.clustering import Clusterer, ClusterFit, Clusters
from privfit.mechanisms.clustering.grid import GridClusterer, HybridClusterer
from privfit.mechanisms.clustering.named import NAMED_CLUSTERERS, AnyClusterer, clusterer
from privfit.mechanisms.functional.adassp import BOOSTED_ROUNDS, AdaSSP
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.intervals import Bootstrap, bootstrap
from privfit.mechanisms.functional.penalty_selection import PenaltySelection
from privfit.mechanisms.functional.polynomial import PolynomialFit, PolynomialMechanism
from privfit.mechanisms.functional.problem import LinearFit, QuadraticProblem
from privfit.mechanisms.functional.second_moments import Covariances, SecondMoments
from privfit.mechanisms.genetic.breeding import Breeding
from privfit.mechanisms.genetic.centres import GeneticCentres
from privfit.mechanisms.genetic.operators import Crossover, Generation, Mutate
from privfit.mechanisms.genetic.privgene import PrivGene
from privfit.mechanisms.genetic.search import GeneticMechanism, Search
from privfit.mechanisms.histograms.class_sums import NaiveBayes
from privfit.mechanisms.histograms.open_levels import OpenLevels
from privfit.mechanisms.perturbation.balanced import BalancedPerturbation
from privfit.mechanisms.perturbation.base import Perturbation
from privfit.mechanisms.perturbation.cox import HazardProblem, ObjectiveHazards
from privfit.mechanisms.perturbation.hazard_fit import HazardFit
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.output import OutputPerturbation
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem, PairTable
from privfit.mechanisms.perturbation.regression import ObjectiveRegression
from privfit.mechanisms.perturbation.regression_fit import RegressionFit
from privfit.mechanisms.perturbation.regression_intervals import RegressionIntervals
from privfit.mechanisms.perturbation.tuning import TunedPerturbation
from privfit.mechanisms.perturbation.with_intervals import WithIntervals
from privfit.mechanisms.summaries.bounds import SelectedBounds
from privfit.mechanisms.summaries.column_selection import ColumnChoice, ColumnSelection
from privfit.mechanisms.summaries.crosstab import CrossCounts
from privfit.mechanisms.summaries.itemsets import ItemsetSearch
from privfit.mechanisms.summaries.questions import Summary
from privfit.mechanisms.summaries.residuals import ResidualSums
from privfit.mechanisms.summaries.survival import SurvivalCounts

__all__ = [
    "BOOSTED_ROUNDS",
    "NAMED_CLUSTERERS",
    "AdaSSP",
    "AggregatedCentres",
    "AggregatedWeights",
    "AnyClusterer",
    "AutomaticClusterer",
    "BalancedPerturbation",
    "BestOf",
    "BlockAnswers",
    "BlockFit",
    "Bootstrap",
    "Breeding",
    "CellClusterer",
    "ClusterFit",
    "Clusterer",
    "Clusters",
    "ColumnChoice",
    "ColumnSelection",
    "Covariances",
    "CrossCounts",
    "Crossover",
    "ERMFit",
    "ERMProblem",
    "FunctionalMechanism",
    "Generation",
    "GeneticCentres",
    "GeneticMechanism",
    "GridClusterer",
    "HazardFit",
    "HazardProblem",
    "HybridClusterer",
    "ItemsetSearch",
    "LinearFit",
    "LloydClusterer",
    "Mutate",
    "NaiveBayes",
    "ObjectiveHazards",
    "ObjectivePerturbation",
    "ObjectiveRegression",
    "OpenLevels",
    "OutputPerturbation",
    "PairTable",
    "PenaltySelection",
    "Perturbation",
    "PolynomialFit",
    "PolynomialMechanism",
    "PrivGene",
    "QuadraticProblem",
    "RegressionFit",
    "RegressionIntervals",
    "Release",
    "ResidualSums",
    "SampleAndAggregate",
    "Search",
    "SecondMoments",
    "SelectedBounds",
    "Summary",
    "SurvivalCounts",
    "TunedPerturbation",
    "WithIntervals",
    "bootstrap",
    "clusterer",
]
