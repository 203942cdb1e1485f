"""Losses: what a model minimises, and the constants that calibration needs of it."""

from privfit.losses.amounts import PROPORTION, capped_mean
from privfit.losses.bounded import hinge, robust, smooth_hinge, tapered_huber
from privfit.losses.convex import LOGISTIC, ConvexLoss, is_ready_made, tempered_logistic
from privfit.losses.pinball import smooth_pinball
from privfit.losses.polynomial import LINKS, PolynomialLoss
from privfit.losses.quadratic import SQUARED, QuadraticLoss, truncated_logistic
from privfit.losses.ready import huber, logistic, poisson, squared
from privfit.losses.terms import Part

__all__ = [
    "LINKS",
    "LOGISTIC",
    "PROPORTION",
    "SQUARED",
    "ConvexLoss",
    "Part",
    "PolynomialLoss",
    "QuadraticLoss",
    "capped_mean",
    "hinge",
    "huber",
    "is_ready_made",
    "logistic",
    "poisson",
    "robust",
    "smooth_hinge",
    "smooth_pinball",
    "squared",
    "tapered_huber",
    "tempered_logistic",
    "truncated_logistic",
]
