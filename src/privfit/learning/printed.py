"""Bounds as Chaudhuri and Monteleoni print them (2008), to compare with ours.

Parameters
----------
columns : int
    Number of encoded columns, the intercept included.
epsilon : float
    Privacy budget of the fit.
ridge : float
    R, in sum form: the paper's lambda is ridge / rows.
reference_norm : float
    Norm |w0| of the weights that the model is compared with: a public guess; w0 itself need not be known.
rows : int
    Number of rows.
method : {'objective', 'output'}
    Objective or output perturbation.
confidence : float
    Probability with which the bound holds.
"""

from __future__ import annotations

import math

from privfit.learning.setting import (
    Method,
    Setting,
    positive,
    sure,
    whole,
)
from privfit.models._docs import documented


@documented
def printed_noise_norm(columns: int, epsilon: float, *, confidence: float = 0.95) -> float:
    """Return Lemma 5 as printed: a bound of the norm of b in the paper's Algorithm 2.

    It is correct, and exact for one column only.

    Parameters
    ----------
    confidence : float
        Probability with which the bound holds.

    Returns
    -------
    float
        The bound.

    See Also
    --------
    noise_norm : The exact quantile.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.printed_noise_norm(10, 1.0), 1)
    106.0
    """
    setting = Setting(columns, epsilon, confidence=sure(confidence))
    return 2 * setting.columns * math.log(setting.columns / (1 - confidence)) / setting.epsilon


@documented
def printed_regularised_excess(
    rows: int, columns: int, epsilon: float, ridge: float, *, method: Method = "objective", confidence: float = 0.95
) -> float:
    """Return Lemma 3 ("output") or Lemma 4 ("objective") as printed.

    For the logistic loss, norm 1 and replace-one. Algorithm 2 as printed is not private.

    Parameters
    ----------
    confidence : float
        Probability with which the bound holds.

    Returns
    -------
    float
        The bound.

    See Also
    --------
    regularised_excess : The bound that is proved.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.printed_regularised_excess(20_000, 10, 1.0, 100.0), 4)
    0.0112
    """
    Setting(columns, epsilon, method)
    mean_ridge = positive("ridge", ridge) / whole("rows", rows)
    squared = (printed_noise_norm(columns, epsilon, confidence=confidence) / rows) ** 2
    return squared * (1 + mean_ridge) / (2 * mean_ridge**2) if method == "output" else 2 * squared / mean_ridge


@documented
def printed_rows_needed(
    excess: float,
    columns: int,
    epsilon: float,
    *,
    reference_norm: float,
    constant: float,
    method: Method = "objective",
    confidence: float = 0.95,
) -> float:
    """Return Theorem 4 ("objective") or Theorem 5 ("output") as printed.

    No constant makes it true.

    Parameters
    ----------
    excess : float
        The excess loss to reach.
    constant : float
        The constant that the paper leaves open.
    confidence : float
        Probability with which the bound holds.

    Returns
    -------
    float
        The number of rows.

    See Also
    --------
    rows_needed : The bound that is proved.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.printed_rows_needed(0.1, 10, 1.0, reference_norm=1.0, constant=1.0))
    530
    """
    Setting(columns, epsilon, method)
    wanted, reference = positive("excess", excess), positive("reference_norm", reference_norm)
    noise = printed_noise_norm(columns, epsilon, confidence=confidence) / 2
    needs = [(reference / wanted) ** 2, noise * reference / wanted]
    if method == "output":
        needs.append(noise * reference**2 / wanted**1.5)
    return positive("constant", constant) * max(needs)
