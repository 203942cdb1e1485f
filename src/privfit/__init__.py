"""privfit: models fitted on sensitive tables under differential privacy.

A person who knows scikit-learn and has a table with people in it gets a regression or a classifier that can be
released, with a guarantee that is proved, calibrated from public facts, and paid for from a budget that cannot be
overdrawn.
"""

from privfit import baselines, learning, losses
from privfit.losses import ConvexLoss, Part, PolynomialLoss, QuadraticLoss
from privfit.mechanisms import (
    AdaSSP,
    Crossover,
    FunctionalMechanism,
    Generation,
    Mutate,
    ObjectivePerturbation,
    ObjectiveRegression,
    OutputPerturbation,
    PrivGene,
    SampleAndAggregate,
    TunedPerturbation,
)
from privfit.models import (
    ERM,
    AdditiveClassifier,
    AdditiveRegressor,
    Aggregate,
    ElasticNet,
    FunctionalClassifier,
    FunctionalRegressor,
    GeneticSearch,
    KMeans,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    ModelFileError,
    Report,
    Ridge,
    load_model,
)
from privfit.privacy import BudgetExceeded, Ledger, LedgerError, PrivacyError, PrivacyWarning
from privfit.publish import ImportanceWeights
from privfit.schema import Category, Numeric, Schema, SchemaError
from privfit.statistics import RowFitness, TableFitness
from privfit.summaries import (
    BoughtBounds,
    Figure,
    Figures,
    TableDescription,
    bounds,
    count,
    crosstab,
    describe,
    histogram,
    mean,
    quantile,
)
from privfit.tables import DataError
from privfit.version import VERSION as __version__

__all__ = [
    "ERM",
    "AdaSSP",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Aggregate",
    "BoughtBounds",
    "BudgetExceeded",
    "Category",
    "ConvexLoss",
    "Crossover",
    "DataError",
    "ElasticNet",
    "Figure",
    "Figures",
    "FunctionalClassifier",
    "FunctionalMechanism",
    "FunctionalRegressor",
    "Generation",
    "GeneticSearch",
    "ImportanceWeights",
    "KMeans",
    "Lasso",
    "Ledger",
    "LedgerError",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "ModelFileError",
    "Mutate",
    "Numeric",
    "ObjectivePerturbation",
    "ObjectiveRegression",
    "OutputPerturbation",
    "Part",
    "PolynomialLoss",
    "PrivGene",
    "PrivacyError",
    "PrivacyWarning",
    "QuadraticLoss",
    "Report",
    "Ridge",
    "RowFitness",
    "SampleAndAggregate",
    "Schema",
    "SchemaError",
    "TableDescription",
    "TableFitness",
    "TunedPerturbation",
    "__version__",
    "baselines",
    "bounds",
    "count",
    "crosstab",
    "describe",
    "histogram",
    "learning",
    "load_model",
    "losses",
    "mean",
    "quantile",
]
