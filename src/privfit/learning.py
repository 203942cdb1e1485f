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

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Literal, get_args

import numpy as np
from scipy import special
from scipy.optimize import minimize_scalar

from privfit.models._docs import documented
from privfit.privacy.parameters import Adjacency, checked_adjacency, number

Method = Literal["objective", "output"]

MOST_ROWS = 1 << 60
GRID = 64

_CURES = {
    "rows": "Give the number of rows that the table has or will have, such as 10_000.",
    "columns": "Give the number of encoded columns, the intercept among them.",
    "epsilon": "Smaller is more private; 1.0 is a common start.",
    "ridge": "Give the sum-form ridge (rows times the paper's lambda), or ask best_ridge for one.",
    "reference_norm": "Give the length of the weights to compare with, such as 5.0; a guess will do.",
    "slope": "Use the loss's steepest slope: 1.0 for the logistic loss.",
    "curvature": "Use the loss's largest second derivative: 0.25 for the logistic loss.",
    "norm": "Use the length that rows are clipped to, such as 1.0.",
    "excess": "Give the loss above the reference's that you can accept, such as 0.05.",
    "constant": "The paper leaves it open; 16 is a start for a comparison.",
}


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
    setting = _Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    used = setting.used(_positive("ridge", ridge))
    unit = setting.columns if confidence is None else _length(setting.columns, 1 - confidence)
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
    return _Setting(1, epsilon, curvature=curvature, norm=norm, noise_share=noise_share).floor


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
    setting = _Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    return setting.regularised(_whole("rows", rows), setting.used(_positive("ridge", ridge)))


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
    setting = _Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    count, reference = _whole("rows", rows), _positive("reference_norm", reference_norm)
    chosen = setting.best(count, reference) if ridge is None else _positive("ridge", ridge)
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
    setting = _Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    return setting.best(_whole("rows", rows), _positive("reference_norm", reference_norm))


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
    setting = _Setting(columns, epsilon, method, confidence, slope, curvature, norm, adjacency, noise_share)
    wanted, reference = _positive("excess", excess), _positive("reference_norm", reference_norm)

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


# -- as printed, to compare with -------------------------------------------------------------------


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
    setting = _Setting(columns, epsilon, confidence=_sure(confidence))
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
    _Setting(columns, epsilon, method)
    mean_ridge = _positive("ridge", ridge) / _whole("rows", rows)
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
    _Setting(columns, epsilon, method)
    wanted, reference = _positive("excess", excess), _positive("reference_norm", reference_norm)
    noise = printed_noise_norm(columns, epsilon, confidence=confidence) / 2
    needs = [(reference / wanted) ** 2, noise * reference / wanted]
    if method == "output":
        needs.append(noise * reference**2 / wanted**1.5)
    return _positive("constant", constant) * max(needs)


# -- the bounds ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Setting:
    """All that is public about a fit but its rows and its ridge. Names are those of the module's docstring."""

    columns: int
    epsilon: float
    method: Method = "objective"
    confidence: float | None = None
    slope: float = 1.0
    curvature: float = 0.25
    norm: float = 1.0
    adjacency: Adjacency = "replace-one"
    noise_share: float = 0.8

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            name: _positive(name, getattr(self, name)) for name in ("epsilon", "slope", "curvature", "norm")
        }
        checked["columns"] = _whole("columns", self.columns)
        if self.method not in get_args(Method):
            raise ValueError(
                f"method={self.method!r} was given; it is 'objective' (noise in what is minimised) or 'output' (noise "
                "on the minimiser). "
                "Choose one of the two."
            )
        if self.confidence is not None:
            _sure(self.confidence)
        if not 0 < number(self.noise_share) < 1:
            raise ValueError(
                f"noise_share={self.noise_share!r} was given; it is between 0 and 1, without the ends. 0.8 is a good "
                "start."
            )
        checked_adjacency(self.adjacency)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def gradient(self) -> float:
        """No row's loss is steeper in w."""
        return self.slope * self.norm

    @property
    def bend(self) -> float:
        """No row's loss curves more in w."""
        return self.curvature * self.norm**2

    @property
    def floor(self) -> float:
        """bend / (e^((1 - share) epsilon) - 1), written so that a large epsilon does not overflow."""
        spent = (1 - self.noise_share) * self.epsilon
        return self.bend * math.exp(-spent) / -math.expm1(-spent)

    def used(self, ridge: float) -> float:
        """The ridge that the mechanism uses when it is given this one."""
        return max(ridge, self.floor) if self.method == "objective" else ridge

    def shift(self, ridge: float) -> float:
        """The scale of the noise in units of w: |noise| / scale, or |b| / (ridge * scale), has a Gamma law of shape
        `columns`.
        """
        left = self.epsilon - math.log1p(self.bend / ridge) if self.method == "objective" else self.epsilon
        return (2 if self.adjacency == "replace-one" else 1) * self.gradient / (ridge * left)

    def regularised(self, rows: int, ridge: float) -> float:
        """Theorem 1."""
        scale, d = self.shift(ridge), self.columns
        if self.confidence is None:
            penalty = ridge * d * (d + 1) * scale**2 / (2 * rows)
            return (
                penalty if self.method == "objective" else penalty + self._rounded(self.norm * math.sqrt(d + 1) * scale)
            )
        failure = 1 - self.confidence
        longest = (scale * _length(d, failure)) ** 2 / 2
        if self.method == "objective":
            return ridge / rows * longest
        turned = (scale * _length(d, failure / 2)) ** 2 / 2
        return min(
            (self.bend + ridge / rows) * longest, (self.bend * _alignment(d, failure / 2) + ridge / rows) * turned
        )

    def excess(self, rows: int, ridge: float, reference: float) -> float:
        """Theorem 2 or 3."""
        return (
            self._mean_excess(rows, ridge, reference)
            if self.confidence is None
            else self._likely_excess(rows, ridge, reference)
        )

    def _mean_excess(self, rows: int, ridge: float, reference: float) -> float:
        scale, d = self.shift(ridge), self.columns
        noise = self._rounded(self.norm * math.sqrt(d + 1) * scale)
        if self.method == "objective":
            noise = min(noise, (d + 1) * scale**2 / 2 / (1 / self.bend + 2 * (rows + 1) / (ridge * d)))
        return self.gradient**2 / ridge + ridge * reference**2 / (4 * (rows + 1)) + noise

    def _likely_excess(self, rows: int, ridge: float, reference: float) -> float:
        assert self.confidence is not None
        failure = (1 - self.confidence) / 3
        length = self.shift(ridge) * _length(self.columns, failure)
        alignment = _alignment(self.columns, failure)
        reach = length * math.sqrt(alignment)
        sample = self._sample(failure) / ridge
        if self.method == "output":
            lost = math.sqrt(sample) + reach * math.sqrt((ridge / rows + self.bend) / 2)
            return lost * lost + ridge / rows * reference**2 / 2
        noise = length**2 / 2 / (1 / (self.bend * alignment) + rows / ridge)
        return sample + ridge / rows * (reference + reach) ** 2 / 2 + noise

    def _rounded(self, distance: float) -> float:
        """Huber's function: how far a loss can rise on average over both signs of a step in x'w of this length."""
        corner = self.slope / self.curvature
        return self.curvature * distance**2 / 2 if distance <= corner else self.slope * (distance - corner / 2)

    def best(self, rows: int, reference: float) -> float:
        """The least of a grid, then of its neighbourhood.

        Noise falls with the ridge, so the best lies above the best without noise.
        """
        sample, weight = self.gradient**2, 1 / (4 * (rows + 1))
        if self.confidence is not None:
            sample, weight = self._sample((1 - self.confidence) / 3), 1 / (2 * rows)
        penalty = weight * reference**2
        low = self.used(math.sqrt(sample / penalty))
        high = max(low * 1.01, self.excess(rows, low, reference) / penalty)
        return _lowest(lambda ridge: self.excess(rows, ridge, reference), low, high)

    def _sample(self, failure: float) -> float:
        """What the accident of which rows were drawn costs, times the ridge, but for this probability.
        docs/proofs/learning.md, Lemma 7.
        """
        return (self.gradient * (2 + math.sqrt(2 * math.log(1 / failure)))) ** 2


def _lowest(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f is least between two positive numbers, as far as a grid of their logarithms tells."""
    places = np.linspace(math.log(low), math.log(high), GRID)
    heights = [f(math.exp(place)) for place in places]
    at = int(np.argmin(heights))
    around = (places[max(at - 1, 0)], places[min(at + 1, GRID - 1)])
    found = minimize_scalar(lambda place: f(math.exp(place)), bounds=around, method="bounded", options={"xatol": 1e-7})
    candidates = [low, high, math.exp(places[at]), math.exp(float(found.x))]
    return min((ridge for ridge in candidates if low <= ridge <= high), key=f)


@lru_cache(maxsize=256)
def _length(columns: int, failure: float) -> float:
    """The length that noise of scale 1 exceeds with this probability."""
    return float(special.gammainccinv(columns, failure))


@lru_cache(maxsize=256)
def _alignment(columns: int, failure: float) -> float:
    """The mean, over the worst `failure` of all directions, of the square of a direction's first coordinate.
    docs/proofs/learning.md, Lemma 4.

    t + E max(square - t, 0) / failure bounds it for every t, so that an error in the quantile t is on the safe side.
    """
    if columns == 1:
        return 1.0
    rest = (columns - 1) / 2
    t = float(special.betainccinv(0.5, rest, failure))
    above = float(special.betaincc(1.5, rest, t)) / columns - t * float(special.betaincc(0.5, rest, t))
    return min(1.0, t + above / failure)


# -- what may be given -----------------------------------------------------------------------------


def _positive(name: str, value: object) -> float:
    if not 0 < number(value) < math.inf:
        raise ValueError(f"{name}={value!r} was given; {name} is a positive finite number. {_CURES[name]}")
    return number(value)


def _whole(name: str, value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} was given; {name} is a whole number from 1 on. {_CURES[name]}")
    return int(value)


def _sure(confidence: object) -> float:
    if not 0 < number(confidence) < 1:
        raise ValueError(
            f"confidence={confidence!r} was given; it is between 0 and 1, without the ends, such as 0.95. "
            "Give one; where the expected value is on offer, None asks for it."
        )
    return number(confidence)
