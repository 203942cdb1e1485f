"""How well a private linear model can be learned, before anything is spent.

Bounds of the excess loss for a number of rows, and of the number of rows for an excess. The model: a row (x, y) costs
loss(x'w, y), convex in x'w. With sum-form ridge R a fit minimises the sum of the losses plus R/2 |w|^2.

- "output": the minimiser, plus noise of density exp(-|noise| R epsilon / S); Algorithm 1 of Chaudhuri and Monteleoni
  (2008).
- "objective": the minimiser of that sum plus b'w, with b of density exp(-|b| e1 / S); their Algorithm 2, made private:
  e1 = epsilon - log(1 + H / R), and a ridge below `ridge_floor` is raised to it.

Here S is the sensitivity of the gradient, 2 * slope * norm (replace-one) or slope * norm (add-remove), and
H = curvature * norm^2 bounds the Hessian of a row.

Every function here is arithmetic on public numbers: no row is read and no noise is drawn.

Parameters
----------
rows : int
    Number of rows.
columns : int
    Number of encoded columns, the intercept included; it is then penalised and part of `norm`.
epsilon : float
    Privacy budget of the fit. A solver that spends some of it elsewhere leaves that much less.
ridge : float
    R, in sum form: the paper's lambda is ridge / rows.
reference_norm : float
    Norm |w0| of the weights that the model is compared with: a public guess; w0 itself need not be known.
method : {'objective', 'output'}
    Objective or output perturbation.
confidence : float or None
    Probability with which the bound holds; None bounds the expected value instead.
slope : float
    Lipschitz constant of the loss in x'w; 1 is that of the logistic loss. Huber's loss with threshold t has t.
curvature : float
    Bound of the second derivative of the loss in x'w; 1/4 is that of the logistic loss. Huber's loss has 1.
norm : float
    Bound of the L2 norm of a row.
adjacency : {'replace-one', 'add-remove'}
    Which tables are neighbours.
noise_share : float
    For "objective", the least share of epsilon that is left for the noise; it sets `ridge_floor`.

Notes
-----
What a function does not describe it takes from here.

Guarantee: docs/proofs/learning.md.
"""

from __future__ import annotations

from privfit.learning.setting import (
    MOST_ROWS,
    Method,
    Setting,
    noise_quantile,
    positive,
    whole,
)
from privfit.models._docs import documented
from privfit.privacy.budget import Adjacency


@documented
def noise_norm(
    columns: int,
    epsilon: float,
    ridge: float,
    *,
    method: Method = "objective",
    confidence: float | None = 0.95,
    slope: float = 1.0,
    curvature: float = 0.25,
    norm: float = 1.0,
    adjacency: Adjacency = "replace-one",
    noise_share: float = 0.8,
) -> float:
    """Bound the norm of the noise: of b in the objective, or of what is added to the output.

    An exact quantile, or the mean.

    Returns
    -------
    float
        The bound.

    See Also
    --------
    printed_noise_norm : Lemma 5 of the paper.
    regularised_excess : What the noise does to the objective.

    Notes
    -----
    Guarantee: docs/proofs/learning.md, Lemma 3; Lemma 5 of the paper is `printed_noise_norm`.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.noise_norm(10, 1.0, 100.0), 1)
    31.5
    """
    setting = Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    used = setting.used(positive("ridge", ridge))
    unit = setting.columns if confidence is None else noise_quantile(setting.columns, 1 - confidence)
    return unit * setting.shift(used) * (used if method == "objective" else 1.0)


@documented
def ridge_floor(epsilon: float, *, curvature: float = 0.25, norm: float = 1.0, noise_share: float = 0.8) -> float:
    """Return the smallest ridge of objective perturbation.

    With it, `noise_share` of epsilon is left for the noise. It does not depend on the number of rows.

    Parameters
    ----------
    noise_share : float
        Share of epsilon that is left for the noise.

    Returns
    -------
    float
        The ridge, in sum form.

    See Also
    --------
    best_ridge : The ridge with the least bound of the excess loss.

    Notes
    -----
    Guarantee: docs/proofs/learning.md, Lemma 2.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.ridge_floor(1.0), 3)
    1.129
    """
    return Setting(1, epsilon, curvature=curvature, norm=norm, noise_share=noise_share).floor


@documented
def regularised_excess(
    rows: int,
    columns: int,
    epsilon: float,
    ridge: float,
    *,
    method: Method = "objective",
    confidence: float | None = 0.95,
    slope: float = 1.0,
    curvature: float = 0.25,
    norm: float = 1.0,
    adjacency: Adjacency = "replace-one",
    noise_share: float = 0.8,
) -> float:
    """Bound how far the noise raises the regularised mean loss above its minimum, for any table.

    The loss is the mean over the fitted table plus ridge / (2 rows) |w|^2; the probability is that of the noise alone.
    Both terms are taken with the ridge that is used, which for "objective" is at least `ridge_floor`.

    Returns
    -------
    float
        The bound.

    See Also
    --------
    excess_loss : The loss on new rows.
    printed_regularised_excess : Lemmas 3 and 4 of the paper.

    Notes
    -----
    Guarantee: docs/proofs/learning.md, Theorem 1; it replaces Lemmas 3 and 4 of the paper, which are
    `printed_regularised_excess`.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.regularised_excess(20_000, 10, 1.0, 100.0), 4)
    0.0002
    """
    setting = Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    return setting.regularised(whole("rows", rows), setting.used(positive("ridge", ridge)))


@documented
def excess_loss(
    rows: int,
    columns: int,
    epsilon: float,
    ridge: float | None = None,
    *,
    reference_norm: float,
    method: Method = "objective",
    confidence: float | None = 0.95,
    slope: float = 1.0,
    curvature: float = 0.25,
    norm: float = 1.0,
    adjacency: Adjacency = "replace-one",
    noise_share: float = 0.8,
) -> float:
    """Bound the loss on new rows above that of any weights of norm `reference_norm`.

    Rows are independent draws from one population, and so are new rows. Compare with slope * norm * reference_norm: a
    bound above that says no more than the weights 0 would.

    Parameters
    ----------
    ridge : float or None
        R, in sum form: the paper's lambda is ridge / rows. None takes `best_ridge`.

    Returns
    -------
    float
        The bound.

    See Also
    --------
    rows_needed : The number of rows for an excess.
    best_ridge : The ridge that is used by default.

    Notes
    -----
    Guarantee: docs/proofs/learning.md, Theorem 2 (confidence=None) and Theorem 3; they replace Theorems 4 and 5 of the
    paper.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.excess_loss(20_000, 10, 1.0, reference_norm=1.0, confidence=None), 3)
    0.007
    """
    setting = Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    count, reference = whole("rows", rows), positive("reference_norm", reference_norm)
    chosen = setting.best(count, reference) if ridge is None else positive("ridge", ridge)
    return setting.excess(count, setting.used(chosen), reference)


@documented
def best_ridge(
    rows: int,
    columns: int,
    epsilon: float,
    *,
    reference_norm: float,
    method: Method = "objective",
    confidence: float | None = 0.95,
    slope: float = 1.0,
    curvature: float = 0.25,
    norm: float = 1.0,
    adjacency: Adjacency = "replace-one",
    noise_share: float = 0.8,
) -> float:
    """Return the sum-form ridge for which `excess_loss` is smallest.

    It may be used for a private fit if `rows` is public: under add-remove, give a guess and not the count.

    Returns
    -------
    float
        The ridge, in sum form.

    See Also
    --------
    ridge_floor : The smallest ridge of objective perturbation.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> round(learning.best_ridge(20_000, 10, 1.0, reference_norm=1.0))
    973
    """
    setting = Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    return setting.best(whole("rows", rows), positive("reference_norm", reference_norm))


@documented
def rows_needed(
    excess: float,
    columns: int,
    epsilon: float,
    *,
    reference_norm: float,
    method: Method = "objective",
    confidence: float | None = 0.95,
    slope: float = 1.0,
    curvature: float = 0.25,
    norm: float = 1.0,
    adjacency: Adjacency = "replace-one",
    noise_share: float = 0.8,
) -> int:
    """Return the fewest rows for which `excess_loss`, with the best ridge, is at most `excess`.

    More rows than that suffice too.

    Parameters
    ----------
    excess : float
        The excess loss to reach.

    Returns
    -------
    int
        The number of rows.

    See Also
    --------
    excess_loss : The excess for a number of rows.
    printed_rows_needed : Theorems 4 and 5 of the paper.

    Notes
    -----
    Guarantee: docs/proofs/learning.md, Theorems 2 and 3, and their corollary.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.

    Examples
    --------
    >>> from privfit import learning
    >>> learning.rows_needed(0.1, 10, 1.0, reference_norm=1.0, confidence=None)
    118
    """
    setting = Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    wanted, reference = positive("excess", excess), positive("reference_norm", reference_norm)

    def enough(rows: int) -> bool:
        return setting.excess(rows, setting.best(rows, reference), reference) <= wanted

    few, many = 0, 1
    while not enough(many):
        few, many = many, 2 * many
        if many > MOST_ROWS:
            raise ValueError(
                f"excess={excess!r} was given; with these settings it needs more than {MOST_ROWS} rows. Accept a "
                "larger excess or spend more."
            )
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
