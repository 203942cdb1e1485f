"""How good a released model is on private rows: figures with intervals, from one release.

Read evaluate.py first: from a model and a table to a release and its figures. subject.py says what a kind of model
fills in; predictor.py what is computed of each row. two_classes.py has figures of two classes, from cells.py (noisy
counts) and score_grid.py (where rows lie within cells); many_classes.py, regressions.py and clusters.py have the other
kinds. result.py is what a user gets.
"""

from privfit.evaluation.evaluate import evaluate
from privfit.evaluation.result import Curve, Evaluation

__all__ = ["FUNCTIONS", "Curve", "Evaluation", "evaluate"]

FUNCTIONS = (evaluate,)
"""Every function that releases something: the conformance suite runs them because they are listed here."""
