"""What perturbed objectives do where nobody says: how numbers enter, how large the ridge is, how classes share a row.

From public facts alone.

The constants were chosen on generated tables: python papers/experiments/classifiers.py.
"""

from __future__ import annotations

import math

from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.base import Numbers
from privfit.privacy import PrivacyParameters
from privfit.schema import AUTO_KNOTS
from privfit.statistics import Coupling, Gradients

FOR_CERTIFICATE = 0.005
STRAIGHT_BELOW = 200.0
SOFTMAX_FROM = 3
RIDGE_FACTOR = 5.0
LEAST_RIDGE = 0.02
QUIET = 0.02
USUAL_ROWS = 20_000
ONE_PAIR_FROM, TWO_PAIRS_FROM = 20_000, 40_000
WORTH_BESIDE_GAUSSIAN = 2


def automatic_numbers(parameters: PrivacyParameters, columns: int, n_rows: int | None) -> tuple[Numbers, int]:
    """How numbers enter where nobody says, and between how many knots: a column may bend where enough rows speak for it
    at this epsilon. Chosen on generated data.
    """
    if n_rows is None:
        return "splines", AUTO_KNOTS
    density = n_rows * parameters.budget.epsilon / (columns * parameters.rows_per_person)
    return ("slope" if density < STRAIGHT_BELOW else "splines"), AUTO_KNOTS


def automatic_pairs(parameters: PrivacyParameters, n_rows: int | None, gaussian: bool = False) -> int:
    """How many pairs of columns get a table of their own where nobody says: none where the number of rows is not known,
    or too small at this epsilon. Beside Gaussian noise they cost less.
    """
    signal = 0.0 if n_rows is None else n_rows * parameters.budget.epsilon / parameters.rows_per_person
    if gaussian:
        signal *= WORTH_BESIDE_GAUSSIAN
    return (signal >= ONE_PAIR_FROM) + (signal >= TWO_PAIRS_FROM)


def automatic_ridge(gradients: Gradients, sd: float, n_rows: int | None) -> float:
    """The ridge that "auto" stands for: more where noise is larger, or weights more, and rows fewer.

    Form and factor were chosen on generated data.

    With rows of k blocks it is 5 s sqrt(k d / (n epsilon)), where s is the scale of Laplace noise, d the number of
    weights and n that of rows.
    """
    scale = sd / math.sqrt(2.0)
    noise = scale / gradients.sensitivity("l1")  # about one over epsilon
    ratio = gradients.values * noise / (n_rows or USUAL_ROWS)
    least = LEAST_RIDGE * 4 * gradients.sharpest * gradients.norms.l2**2
    return max(RIDGE_FACTOR * scale * gradients.norms.l2 * math.sqrt(ratio), least)


def automatic_output_ridge(gradients: Gradients, epsilon: float, n_rows: int | None) -> float:
    """The ridge that "auto" stands for when the output is perturbed.

    Noise of length d S / (ridge epsilon), S the sensitivity of the gradient, costs about its square times the curvature
    of the loss over all rows; the ridge costs about half of itself. The sum is least where the cube of the ridge is as
    below.
    """
    rows = n_rows or USUAL_ROWS
    noise = gradients.values * gradients.sensitivity("l2") / epsilon
    usual = usual_curvature(gradients.loss, gradients.coupling)
    curvature = usual * rows * gradients.norms.l2**2 / gradients.norms.columns
    return float((2 * curvature * noise**2) ** (1 / 3))


def usual_curvature(loss: ConvexLoss, coupling: Coupling) -> float:
    """A row's usual curvature, guessed from the largest one and the largest slope: a tenth for the logistic loss.

    It grows
    as the loss does when that is measured in other units."""
    assert loss.most_slope is not None
    return 0.1 if coupling == "softmax" else math.sqrt(0.4 * loss.sharpest * 0.1 * loss.most_slope)


def coupling_for(loss: ConvexLoss, classes: int) -> Coupling:
    """How several classes share a row: by softmax for the logistic loss, each against the rest for others.

    Chosen on generated data: python papers/experiments/classes.py.
    """
    if classes == 1:
        return "one"
    return "softmax" if loss == LOGISTIC and classes >= SOFTMAX_FROM else "one-vs-rest"
