"""Figures about a table, one function each: bounds, and what describes it.

Read release.py first: the order of every function, from what a user gives to an answer with its report. Each function
states a problem for a mechanism of mechanisms/summaries and says how the answer looks.
"""

from privfit.summaries.bought import BoughtBounds, bounds

__all__ = ["FUNCTIONS", "BoughtBounds", "bounds"]

FUNCTIONS = (bounds,)
"""Every function that releases something: the conformance suite runs them because they are listed here."""
