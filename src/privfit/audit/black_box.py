"""The black-box attack: call something on two neighbouring tables, many times, and bound epsilon from below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.audit.confidence import epsilon_at_least
from privfit.audit.outputs import Run, Statistic, run_once, statistics_of
from privfit.privacy import Budget, PrivacyError

LEAST_RUNS = 40
"""Runs on each table below which no event can be chosen and tested: chosen, not measured."""
CHOOSING_ERROR = 0.01
"""Error probability of the bounds by which an event is chosen, which promises nothing: a small one prefers frequent
events, a large one rare ones that are there by luck. With 0.2, 10,000 runs of `privfit audit --full -m histogram` chose
a text that came up 43 and 11 times, and showed 0.06; with 0.01 they show 0.8."""
THRESHOLDS = 33
"""Thresholds of a score that are tried, at its quantiles: more cost time alone. Chosen, not measured."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlackBoxResult:
    """What a black-box attack found.

    Parameters
    ----------
    epsilon : float
        The epsilon that was claimed.
    delta : float
        The delta that was claimed.
    lower_bound : float
        The true epsilon at this delta is below this one with probability at most 1 - `confidence`.
    runs : int
        Number of calls on both tables together.
    confidence : float
        The probability with which the bound holds.
    statistic : str
        The event by which the tables were distinguished.

    See Also
    --------
    black_box : The attack that returns it.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.audit.black_box(lambda table: table[0], [0.0], [1.0], epsilon=1.0, runs=200).violated
    True
    """

    epsilon: float
    delta: float
    lower_bound: float
    runs: int
    confidence: float
    statistic: str

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, at this confidence.

        Returns
        -------
        bool
            True if the lower bound is above the claim. False proves nothing: another attack may find more.
        """
        return self.lower_bound > self.epsilon


@dataclass(frozen=True)
class _Event:
    """A score above a threshold, with a sign, and the table on which it is likelier."""

    statistic: Statistic
    sign: float
    threshold: float
    from_left: bool

    @property
    def name(self) -> str:
        return f"{self.statistic.name} {'>' if self.sign > 0 else '<'} {self.sign * self.threshold:.6g}"

    def count(self, runs: list[Run]) -> int:
        return int((self.sign * self.statistic.score(runs) > self.threshold).sum())


def black_box(
    fit: Callable[[object], object],
    left: object,
    right: object,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 1000,
    confidence: float = 0.999,
) -> BlackBoxResult:
    """Attack a claim of (epsilon, delta)-differential privacy by calling `fit` on two neighbouring tables.

    A quarter of the runs learns statistics, a quarter chooses an event (a statistic above or below a threshold), and
    the other half tests that one event with exact Clopper-Pearson bounds; so the confidence holds however many events
    were tried. Statistics are every number that is returned, a learned likelihood ratio, errors and printed text.

    Parameters
    ----------
    fit : callable
        Anything that takes a table. Numbers, arrays, texts, containers and fitted models are understood as results;
        what is printed, warned of or raised counts as well.
    left : object
        A table.
    right : object
        A neighbouring table: all rows of one person replaced, added or removed, as the claim says.
    epsilon : float
        The epsilon that is claimed.
    delta : float, default=0.0
        The delta that is claimed.
    runs : int, default=1000
        Number of calls on each table.
    confidence : float, default=0.999
        The probability with which the lower bound holds.

    Returns
    -------
    BlackBoxResult
        The lower bound on epsilon, and whether it is above the claim.

    Raises
    ------
    PrivacyError
        If there are too few runs, or epsilon, delta or confidence has no meaning.

    See Also
    --------
    mechanisms : Attacks on all estimators of this library.

    Examples
    --------
    >>> import privfit as pf
    >>> result = pf.audit.black_box(lambda table: sum(table), [1.0, 2.0], [1.0, 0.0], epsilon=0.5, runs=200)
    >>> result.violated, result.runs
    (True, 400)
    """
    Budget(epsilon, delta)  # or refuses them
    if runs < LEAST_RUNS or not 0 < confidence < 1:
        raise PrivacyError(
            f"runs={runs} and confidence={confidence} were given; an attack needs at least {LEAST_RUNS} runs and a "
            "confidence between 0 and 1. Use runs=1000 and confidence=0.999."
        )
    pairs = [(run_once(fit, left), run_once(fit, right)) for _ in range(runs)]
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    quarter, half = runs // 4, runs // 2
    event = max(
        (
            _best(statistic, one[quarter:half], other[quarter:half], delta)
            for statistic in statistics_of(one[:quarter], other[:quarter])
        ),
        key=lambda found: found[0],
    )[1]
    tables = (one[half:], other[half:]) if event.from_left else (other[half:], one[half:])
    hits, alarms = (event.count(table) for table in tables)
    bound = float(epsilon_at_least(hits, alarms, runs - half, delta, 1 - confidence))
    return BlackBoxResult(epsilon, delta, bound, 2 * runs, confidence, event.name)


def _best(statistic: Statistic, left: list[Run], right: list[Run], delta: float) -> tuple[float, _Event]:
    """The event of a statistic that distinguishes these runs best, and by how much."""
    one, other = statistic.score(left), statistic.score(right)
    values = np.unique(np.concatenate([one, other]))
    places = np.unique(np.linspace(0, len(values) - 1, THRESHOLDS).astype(int))
    found: list[tuple[float, _Event]] = []
    for sign in (1.0, -1.0):
        thresholds = sign * values[places]
        hits, alarms = ((sign * scores[:, None] > thresholds).sum(axis=0) for scores in (one, other))
        for from_left, counts in ((True, (hits, alarms)), (False, (alarms, hits))):
            bounds = epsilon_at_least(*counts, len(left), delta, CHOOSING_ERROR)
            best = int(np.argmax(bounds))
            found.append((float(bounds[best]), _Event(statistic, sign, float(thresholds[best]), from_left)))
    return max(found, key=lambda one: one[0])
