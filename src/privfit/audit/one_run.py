"""Canaries: a lower bound on epsilon from a single run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import binom

from privfit.privacy import Budget, PrivacyError, SecureNoise

HALVINGS = 60
"""Of a bracket of epsilons: a float has hardly more digits."""
MOST = 50.0
"""The largest epsilon that is looked for: no number of canaries in memory can refute it."""


@dataclass(frozen=True)
class OneRunResult:
    """What canaries found in one run.

    Parameters
    ----------
    epsilon : float
        The epsilon that was claimed.
    lower_bound : float
        The true epsilon is below this one with probability at most 1 - `confidence`.
    correct : int
        Number of right guesses.
    guesses : int
        Number of guesses.
    confidence : float
        The probability with which the bound holds.

    See Also
    --------
    one_run : The attack that returns it.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.audit.one_run(lambda present: present, lambda shown: shown, 1_000, epsilon=1.0).violated
    True
    """

    epsilon: float
    lower_bound: float
    correct: int
    guesses: int
    confidence: float

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, at this confidence.

        Returns
        -------
        bool
            True if the lower bound is above the claim.
        """
        return self.lower_bound > self.epsilon


def one_run(
    fit: Callable[[NDArray[np.bool_]], Any],
    score: Callable[[Any], ArrayLike],
    canaries: int,
    epsilon: float,
    guesses: int | None = None,
    confidence: float = 0.999,
) -> OneRunResult:
    """Attack a claim of pure differential privacy in a single run, by rows whose presence is guessed.

    Every canary is present with probability one half. After one run those with the highest scores are guessed to be
    present, and those with the lowest to be absent.

    Parameters
    ----------
    fit : callable
        Takes an array of truth values, one per canary; fits on a table in which exactly these canaries are present,
        each in rows of its own, and returns what is released.
    score : callable
        Takes what `fit` returned, and returns a number per canary: larger where it is likelier to be present.
    canaries : int
        Number of canaries.
    epsilon : float
        The epsilon that is claimed, without a delta, for tables that differ in the presence of one canary.
    guesses : int or None, default=None
        Number of canaries to guess, half of them on each side; None: all of them.
    confidence : float, default=0.999
        The probability with which the lower bound holds.

    Returns
    -------
    OneRunResult
        The lower bound on epsilon, and whether it is above the claim.

    Raises
    ------
    PrivacyError
        If there is not a score for every canary, or a number has no meaning.

    See Also
    --------
    black_box : Many runs on two tables.

    Notes
    -----
    Guarantee: if releases are epsilon-DP, the lower bound exceeds epsilon with probability at most 1 - `confidence`,
    whatever `score` is; docs/proofs/one-run.md, Theorem 1.

    References
    ----------
    .. [1] T. Steinke, M. Nasr and M. Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> noise = pf.privacy.SeededNoise(1)
    >>> def noisy(present):
    ...     return noise.laplace(present.astype(np.int64), 1.0)  # epsilon is 1
    >>> result = pf.audit.one_run(noisy, lambda counts: counts, 2000, epsilon=1.0)
    >>> result.violated, result.guesses
    (False, 2000)
    """
    Budget(epsilon)
    guessed = canaries if guesses is None else guesses
    if not 0 < guessed <= canaries or not 0 < confidence < 1:
        raise PrivacyError(
            f"canaries={canaries}, guesses={guesses} and confidence={confidence} were given; there is at least one "
            "guess, no more than canaries, and a confidence between 0 and 1. Use canaries=1000 and guesses=None."
        )
    chosen = SecureNoise().below(np.full(canaries, 2, dtype=np.int64)).astype(bool)
    shown = np.asarray(score(fit(chosen.copy())), dtype=np.float64)
    if shown.shape != (canaries,):
        raise PrivacyError(
            f"The score has the shape {shown.shape}; there are {canaries} canaries. Return one number for each."
        )
    order = np.argsort(np.nan_to_num(shown), kind="stable")
    absent, present = order[: guessed // 2], order[canaries - (guessed - guessed // 2) :]
    correct = int((~chosen[absent]).sum() + chosen[present].sum())
    bound = epsilon_of_guesses(correct, guessed, 1 - confidence)
    return OneRunResult(epsilon, bound, correct, guessed, confidence)


def epsilon_of_guesses(correct: int, guesses: int, error: float) -> float:
    """The least epsilon with which so many right guesses have a probability above `error`.

    Guarantee: docs/proofs/one-run.md, Theorem 1.
    """

    def likely(epsilon: float) -> bool:
        return bool(binom.sf(correct - 1, guesses, expit(epsilon)) > error)

    if likely(0.0):
        return 0.0
    low, high = 0.0, MOST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if likely(middle) else (middle, high)
    return low
