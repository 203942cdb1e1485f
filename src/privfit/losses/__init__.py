"""Losses: what a model minimises, and the constants that calibration needs of it."""

from privfit.losses.polynomial import LINKS, Part, PolynomialLoss
from privfit.losses.quadratic import SQUARED, QuadraticLoss, truncated_logistic
from privfit.losses.ready import huber, logistic, poisson, squared

__all__ = [
    "LINKS",
    "SQUARED",
    "Part",
    "PolynomialLoss",
    "QuadraticLoss",
    "huber",
    "logistic",
    "poisson",
    "squared",
    "truncated_logistic",
]
