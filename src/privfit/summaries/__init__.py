"""Figures about a table, one function each: bounds, and what describes it.

Read release.py first: the order of every function, from what a user gives to an answer with its report. Each function
states a problem for a mechanism of mechanisms/summaries and says how the answer looks: bought.py (bounds),
bought_levels.py (levels), columns.py (count, mean, quantile, histogram, crosstab), description.py (describe),
itemsets.py (frequent_itemsets), survival.py (kaplan_meier), figures.py (numbers with intervals). asked_columns.py has
the columns and the rows that a question is about.
"""

from privfit.summaries.bought import BoughtBounds, bounds
from privfit.summaries.bought_levels import BoughtLevels, levels
from privfit.summaries.columns import count, crosstab, histogram, mean, quantile
from privfit.summaries.description import TableDescription, describe
from privfit.summaries.figures import Figure, Figures
from privfit.summaries.itemsets import FrequentItemsets, frequent_itemsets
from privfit.summaries.survival import SurvivalCurves, kaplan_meier

__all__ = [
    "FUNCTIONS",
    "BoughtBounds",
    "BoughtLevels",
    "Figure",
    "Figures",
    "FrequentItemsets",
    "SurvivalCurves",
    "TableDescription",
    "bounds",
    "count",
    "crosstab",
    "describe",
    "frequent_itemsets",
    "histogram",
    "kaplan_meier",
    "levels",
    "mean",
    "quantile",
]

FUNCTIONS = (bounds, count, mean, quantile, histogram, crosstab, describe, levels, frequent_itemsets, kaplan_meier)
"""Every function that releases something: the conformance suite runs them because they are listed here."""
