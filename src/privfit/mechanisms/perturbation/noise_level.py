"""How loud the noise of a perturbed fit is beside all that its rows can say, from public facts alone."""

from __future__ import annotations

from privfit.features import RowNorms
from privfit.mechanisms.perturbation.defaults import usual_curvature
from privfit.mechanisms.perturbation.problem import ERMFit
from privfit.privacy import Event

DROWNED = 0.3
"""A classifier is called drowned above this relative noise.

A larger limit misses more fits that are useless, a smaller one
calls more good ones drowned: 93% and 6% of them are called so at 0.3, on Adult all and none: python
papers/experiments/drowned.py."""


def relative_noise(fit: ERMFit, event: Event, norms: RowNorms, *, on_minimum: bool) -> float | None:
    """The noise on the score of a row, over what all rows together can say about it; None where the number of rows is
    not public.

    Where noise is large, so is the ridge, and weights are about minus (gradient at zero + noise) / ridge: the ridge
    cancels. Noise b with standard deviation s per weight moves the score of a row x by b'x, which has a standard
    deviation of s |x|. Each of n rows moves it by at most g |x|^2, g being the largest slope of the loss; but rows
    agree in few columns and have both classes, and what is left is nearer to g a row, whatever the number of columns
    (found on generated tables). Hence s |x| / (n g).

    Noise on the minimum is that on the gradient divided by the Hessian, so it is multiplied by ridge and usual
    curvature first.
    """
    slope = fit.loss.most_slope
    if fit.n_rows is None or not slope:
        return None
    sd = event.usual_sd
    if on_minimum:
        sd *= fit.ridge + fit.n_rows * usual_curvature(fit.loss, fit.coupling) * norms.l2**2 / norms.columns
    return sd * norms.l2 / (fit.n_rows * slope)
