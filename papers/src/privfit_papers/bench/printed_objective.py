"""What objective perturbation as Chaudhuri and Monteleoni print it (NIPS 2008, Algorithm 2) really loses.

pf.ObjectivePerturbation(ridge=..., calibration="paper") is that algorithm. It is NOT private, and for comparison only.
It minimises  ridge/2 |w|^2 + b'w / n + mean of log(1 + exp(-y w'x))  for a random b of density proportional to
exp(-epsilon |b| / 2). The density of its output w is that of the b that leads to w, times how much b changes with w:
ridge * n plus the curvatures of all rows. The printed proof leaves the second factor out. One row changes it from r to
as much as r + 1/4, r = ridge * n, which is much where r is small: `largest_loss` computes how much.

privfit's own rule (calibration="tight") pays for that factor. From r = 2 / epsilon on there is nothing to pay, and the
printed noise is enough: a record of slope p has a curvature of at most p (1 - p), log(1 + p (1 - p) / r) <= (1 - p) / r
<= (1 - p) epsilon / 2, which is what its slope leaves of its half of epsilon.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfit.losses import ConvexLoss

Floats = NDArray[np.float64]

RECORDS = np.linspace(-1.0, 1.0, 41)[:, None]
OUTPUTS = np.concatenate([-np.geomspace(1e-3, 1e6, 600)[::-1], [0.0], np.geomspace(1e-3, 1e6, 600)])[:, None]
"""One column: every record, and outputs of every size."""
SMALL = 1e-8
"""A gradient of this length per row is none."""
MOST_STEPS = 500
CHUNK_ROWS = 1000
LARGEST_GRADIENT_MARGIN = 1.2784645
"""Where the logistic slope times the margin is largest: what a record can do at most to lengthen weights."""
FARTHEST = 300.0


def perturbed_minima(
    signed: Floats, loss: ConvexLoss, ridge: float, noises: Floats, start: Floats | None = None
) -> Floats:
    """The minima of  sum of the loss of the margins + ridge/2 |w|^2 + b'w,  one for every column b of `noises`, by
    Newton's method for all of them together.

    `signed` are rows times their labels; the loss is logistic, tempered or not. Its curvature changes by at most its
    self-bound times the step, relative to itself; steps of length log(1 + t) for a Newton step of length t (in that
    unit) then always lead down (Sun and Tran-Dinh, Mathematical Programming 2019).
    """
    tally = _Tally(signed, loss)
    weights = np.zeros_like(noises) if start is None else np.repeat(start[:, None], noises.shape[1], axis=1)
    left = np.arange(noises.shape[1])
    for _ in range(MOST_STEPS):
        totals, hessians = tally(weights[:, left])
        gradients = totals + ridge * weights[:, left] + noises[:, left]
        far = np.sqrt((gradients**2).sum(axis=0)) > SMALL * len(signed)
        left, gradients = left[far], gradients[:, far]
        if not len(left):
            return weights
        steps = np.linalg.solve(hessians[far] + ridge * np.eye(len(weights)), gradients.T[:, :, None])[:, :, 0].T
        lengths = np.maximum(tally.change * np.sqrt((steps**2).sum(axis=0)), 1e-300)
        weights[:, left] -= steps * np.log1p(lengths) / lengths
    raise ArithmeticError(
        f"{len(left)} of {noises.shape[1]} perturbed objectives were not minimised in {MOST_STEPS} steps."
    )


class _Tally:
    """Gradients and second derivatives of a sum over rows, for many weights at once."""

    def __init__(self, signed: Floats, loss: ConvexLoss) -> None:
        assert loss.taper is not None
        assert loss.most_slope is not None
        self._slope, self._cap, self._taper = loss.slope, loss.most_slope, loss.taper
        self._first, self._second = np.triu_indices(signed.shape[1])
        chunks = [signed[i : i + CHUNK_ROWS] for i in range(0, len(signed), CHUNK_ROWS)]
        self._chunks = [(chunk, chunk[:, self._first] * chunk[:, self._second]) for chunk in chunks]
        self.change = self._taper * float(np.sqrt((signed**2).sum(axis=1)).max(initial=0.0))

    def __call__(self, weights: Floats) -> tuple[Floats, Floats]:
        """A column and a matrix per column of weights."""
        totals, upper = np.zeros_like(weights), np.zeros((len(self._first), weights.shape[1]))
        for rows, products in self._chunks:
            slopes = self._slope(rows @ weights, 1.0)
            totals += rows.T @ slopes
            upper += products.T @ np.minimum(
                -slopes * (1 + slopes), self._taper * (self._cap + slopes)
            )  # the curvatures of such losses
        hessians = np.empty((weights.shape[1], len(weights), len(weights)))
        hessians[:, self._first, self._second] = hessians[:, self._second, self._first] = upper.T
        return totals, hessians


def largest_loss(
    loss: ConvexLoss,
    scale: float,
    ridge: float,
    records: Floats = RECORDS,
    outputs: Floats = OUTPUTS,
    others: Floats | None = None,
    counts: Floats | None = None,
) -> float:
    """The largest loss of privacy of a perturbed objective over these pairs of records and these outputs: its true
    epsilon is no less.

    Noise has density proportional to exp(-|b| / scale), and the ridge belongs to the sum. A record with features x and
    label y is the row x * y, no longer than 1; `others` are records that both tables share, each as often as `counts`
    says. The density of the output w is that of  b(w) = -(ridge w + sum of gradients)  times the determinant of b'(w),
    without any approximation. Tables of more columns lose as much: let all other columns be zero.
    """
    columns = outputs.shape[1]
    shared = np.zeros((0, columns)) if others is None else others
    margins = shared @ outputs.T
    times = np.ones((len(shared), 1)) if counts is None else counts[:, None]
    totals = ridge * outputs + (times * loss.slope(margins, 1.0)).T @ shared
    hessians = ridge * np.eye(columns) + np.einsum(
        "rw,ri,rj->wij", times * loss.curvature(margins, 1.0), shared, shared
    )
    inverses = np.linalg.inv(hessians)
    margins = records @ outputs.T
    volumes = np.log1p(loss.curvature(margins, 1.0) * np.einsum("ri,wij,rj->rw", records, inverses, records))
    lengths = np.sqrt(((totals + loss.slope(margins, 1.0)[:, :, None] * records[:, None, :]) ** 2).sum(axis=2))
    return float(np.ptp(volumes - lengths / scale, axis=0).max())


def two_column_loss(loss: ConvexLoss, scale: float, ridge: float, rows: int | None = None) -> float:
    """The largest loss on tables of two columns that come close to the worst there is; of no more than so many rows, if
    given.

    Many short records move the minimum far along the first column, up to where the ridge balances them. There a record
    along the second column that leans slightly backwards has the largest slope, and one the other way may have any
    slope and curvature as large as it likes.
    """
    largest_gradient = -LARGEST_GRADIENT_MARGIN * float(loss.slope(LARGEST_GRADIENT_MARGIN, 1.0))
    length = FARTHEST if rows is None else min(FARTHEST, math.sqrt(largest_gradient * (rows - 1) / ridge))
    others = np.array([[LARGEST_GRADIENT_MARGIN / length, 0.0]])
    counts = np.floor(np.array([ridge * length**2 / largest_gradient]))
    side = np.linspace(0.0, 20.0, 41) / ridge
    lean = np.concatenate([-np.geomspace(1e-3, 1.5, 80), [0.0], np.geomspace(1e-3, 1.5, 80)])
    half = np.column_stack([np.sin(lean), np.cos(lean)])
    outputs = np.column_stack([np.full(len(side), length), side])
    return largest_loss(loss, scale, ridge, np.concatenate([half, -half]), outputs, others, counts)
