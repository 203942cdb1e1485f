"""Random Fourier features: a public map behind which a linear model is one with a Gaussian (RBF) kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import seeded_generator
from privfit.schema import RowNorms

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FourierFeatures:
    """Pairs cos(f'x), sin(f'x) for random frequencies f, whose inner products approach exp(-gamma |x - x'|^2) as there
    are more of them.

    Rahimi and Recht 2007; Rubinstein, Bartlett, Huang and Taft 2012 use them to fit private support vector machines.
    The frequencies come from a public seed and know nothing of the data. A pair has length one, and all are divided by
    the root of their number, so that every row has length one.
    """

    columns: int
    pairs: int
    gamma: float
    seed: int = 0

    @property
    def n_columns(self) -> int:
        """How many features there are."""
        return 2 * self.pairs

    @property
    def norms(self) -> RowNorms:
        """|cos| + |sin| is at most sqrt(2); their squares add up to one."""
        return RowNorms(math.sqrt(2 * self.pairs), 1.0, 1 / math.sqrt(self.pairs), self.n_columns)

    @cached_property
    def frequencies(self) -> Floats:
        """One column of frequencies per pair: public numbers."""
        return math.sqrt(2 * self.gamma) * seeded_generator(self.seed).normal(size=(self.columns, self.pairs))

    def __call__(self, turned: Floats) -> Floats:
        """The features of rows whose products with the frequencies are these, one row each."""
        return np.concatenate([np.cos(turned), np.sin(turned)], axis=1) / math.sqrt(self.pairs)
