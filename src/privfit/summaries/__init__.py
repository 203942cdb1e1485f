"""Figures about a table, one function each: bounds, and what describes it.

Read release.py first: the order of every function, from what a user gives to an answer with its report. Each function
states a problem for a mechanism of mechanisms/summaries and says how the answer looks: bought.py (bounds), columns.py
(count, mean, quantile, histogram, crosstab), figures.py (numbers with intervals).
"""

from privfit.summaries.bought import BoughtBounds, bounds
from privfit.summaries.columns import count, crosstab, histogram, mean, quantile
from privfit.summaries.figures import Figure, Figures

__all__ = [
    "FUNCTIONS",
    "BoughtBounds",
    "Figure",
    "Figures",
    "bounds",
    "count",
    "crosstab",
    "histogram",
    "mean",
    "quantile",
]

FUNCTIONS = (bounds, count, mean, quantile, histogram, crosstab)
"""Every function that releases something: the conformance suite runs them because they are listed here."""
