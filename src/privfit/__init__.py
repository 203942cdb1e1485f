"""privfit: models fitted on sensitive tables under differential privacy.

A person who knows scikit-learn and has a table with people in it gets a regression or a classifier that can be released, with a
guarantee that is proved, calibrated from public facts, and paid for from a budget that cannot be overdrawn.
"""

from privfit.losses import QuadraticLoss
from privfit.mechanisms import FunctionalMechanism
from privfit.models import LinearRegression, LogisticRegression, ModelFileError, Report, load_model
from privfit.privacy import BudgetExceeded, Ledger, LedgerError, PrivacyError, PrivacyWarning
from privfit.schema import Category, Numeric, Schema, SchemaError
from privfit.tables import DataError
from privfit.version import VERSION as __version__

__all__ = [
    "BudgetExceeded",
    "Category",
    "DataError",
    "FunctionalMechanism",
    "Ledger",
    "LedgerError",
    "LinearRegression",
    "LogisticRegression",
    "ModelFileError",
    "Numeric",
    "PrivacyError",
    "PrivacyWarning",
    "QuadraticLoss",
    "Report",
    "Schema",
    "SchemaError",
    "__version__",
    "load_model",
]
