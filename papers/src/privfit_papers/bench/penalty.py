"""Penalties as Dandekar, Basu and Bressan write them, and what they are called in scikit-learn.

Their equation 4 adds  size * (alpha |w|_2^2 + (1 - alpha) |w|_1)  to the sum of squared errors: alpha weighs the L2
term. scikit-learn's elastic net minimises  |y - Xw|^2 / (2 n) + a r |w|_1 + a (1 - r) / 2 |w|_2^2.  Times 2 n that is
theirs with

    a = size (1 + alpha) / (2 n)        r = (1 - alpha) / (1 + alpha)

so that r falls from 1 (lasso, alpha = 0) to 0 (ridge, alpha = 1) as 1 - alpha does, but equals it only at the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import PrivacyError

Floats = NDArray[np.float64]

ALPHAS = {"linear": 1.0, "ridge": 1.0, "lasso": 0.0, "elastic net": 0.5}
"""How the paper's four models weigh the L2 term; "linear" has a penalty of size zero.

Its elastic net's weight is not printed.
"""
SIZES = tuple(10.0**power for power in range(-6, 1))
"""Sizes that are tried, for every row of the table. Those of the paper are not printed."""


@dataclass(frozen=True)
class Penalty:
    """size * (alpha |w|_2^2 + (1 - alpha) |w|_1)  beside a sum of squared errors."""

    size: float
    alpha: float

    @property
    def ridge(self) -> float:
        """What multiplies the squared L2 norm."""
        return self.size * self.alpha

    @property
    def lasso(self) -> float:
        """What multiplies the L1 norm."""
        return self.size * (1 - self.alpha)

    def in_sklearn(self, n_rows: float) -> dict[str, float]:
        """`alpha` and `l1_ratio` of scikit-learn's elastic net for a table of `n_rows` rows, or of rows that weigh as
        much.
        """
        return {"alpha": self.size * (1 + self.alpha) / (2 * n_rows), "l1_ratio": (1 - self.alpha) / (1 + self.alpha)}


def penalties(model: str, n_rows: float) -> list[Penalty]:
    """The penalties that are tried for one of the four models."""
    if model == "linear":
        return [Penalty(0.0, ALPHAS[model])]
    return [Penalty(size * n_rows, ALPHAS[model]) for size in SIZES]


def least_test_error(tried: Iterable[Penalty], error: Callable[[Penalty], float]) -> Penalty:
    """The penalty whose fit has the least error on the test rows, which is how the paper chooses it.

    This is NOT private.
    """
    return min(tried, key=error)


def refuse_ledger(what: str, ledger: object) -> None:
    """Comparisons that look at test errors or scale by the data must never pass for a paid release."""
    if ledger is not None:
        raise PrivacyError(
            f"A ledger was given to {what}, which is not private: its penalty is chosen by the error on un-noised test "
            "rows. "
            "A ledger takes private fits only. Leave it out here, or fit pf.LinearRegression(..., ledger=ledger) "
            "instead."
        )
