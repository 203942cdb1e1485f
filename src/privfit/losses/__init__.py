"""Losses: what a model minimises, and the constants that calibration needs of it."""

from privfit.losses.quadratic import SQUARED, QuadraticLoss, truncated_logistic

__all__ = ["SQUARED", "QuadraticLoss", "truncated_logistic"]
