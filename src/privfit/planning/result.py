"""A plan: expected scores by mechanism and epsilon, and what follows from them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from privfit.planning.costs import Change
from privfit.report.notebook import fragment, paragraph, table

WIDTH = 80
"""Columns of a terminal that the text fits."""
NEAR = 0.9
"""The recommendation is the least epsilon that keeps this share of what the largest one keeps. Chosen, not measured."""


@dataclass(frozen=True)
class Forecast:
    """The expected score of one mechanism at one epsilon.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism, as `mechanism=` takes it.
    epsilon : float
        The epsilon.
    score : float
        Mean score over repetitions.
    deviation : float
        Standard deviation over repetitions.
    """

    mechanism: str
    epsilon: float
    score: float
    deviation: float


def forecast(mechanism: str, epsilon: float, scores: Sequence[float]) -> Forecast:
    """The mean and the standard deviation of the scores of repetitions."""
    spread = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return Forecast(mechanism, epsilon, float(np.mean(scores)), spread)


@dataclass(frozen=True)
class Plan:
    """What a fit is expected to give, by mechanism and epsilon. It prints as a table with a recommendation.

    Parameters
    ----------
    model : str
        The planned model.
    n_rows : int
        Number of rows of the private table, as stated.
    simulated_rows : int
        Rows of each generated table.
    repetitions : int
        Number of generated tables.
    source : str
        What tables were generated from: "schema", "public sample" or "public summary".
    measure : str
        What a score is.
    reference : float
        Mean score without noise.
    forecasts : tuple of Forecast
        One for each mechanism and epsilon.
    costs : tuple of Change
        What the default mechanism gains by one change of a public fact, the most first.
    costs_epsilon : float
        The epsilon of these gains.
    refused : dict of str to str
        Mechanisms that cannot fit this model on this schema, and why.

    See Also
    --------
    plan : Makes one.

    Examples
    --------
    >>> import privfit as pf
    >>> schema = pf.Schema([pf.Numeric("age", 0, 120)], target=pf.Numeric("income", 0, 100_000))
    >>> plan = pf.plan(schema, 2000, model="linear", epsilon=(1.0,), repetitions=2)
    >>> sorted(forecast.mechanism for forecast in plan.forecasts)
    ['adassp', 'auto', 'boosted-adassp', 'functional', 'objective']
    """

    model: str
    n_rows: int
    simulated_rows: int
    repetitions: int
    source: str
    measure: str
    reference: float
    forecasts: tuple[Forecast, ...]
    costs: tuple[Change, ...]
    costs_epsilon: float
    refused: dict[str, str]

    @property
    def epsilons(self) -> list[float]:
        """The planned epsilons, ascending."""
        return sorted({one.epsilon for one in self.forecasts})

    def curve(self, mechanism: str = "auto") -> list[Forecast]:
        """Return the forecasts of one mechanism by ascending epsilon.

        Parameters
        ----------
        mechanism : str, default='auto'
            Its name.

        Returns
        -------
        list of Forecast
            One for each epsilon.
        """
        return sorted((one for one in self.forecasts if one.mechanism == mechanism), key=lambda one: one.epsilon)

    def best(self, epsilon: float) -> Forecast:
        """Return the forecast to go by at an epsilon: the highest score, or the default within its spread of that.

        Parameters
        ----------
        epsilon : float
            One of the planned epsilons.

        Returns
        -------
        Forecast
            The best one; the default mechanism where no other is better by more than its standard deviation.
        """
        own = [one for one in self.forecasts if one.epsilon == epsilon]
        top = max(own, key=lambda one: one.score)
        return next((one for one in own if one.mechanism == "auto" and top.score - one.score <= one.deviation), top)

    def epsilon_for(self, score: float, mechanism: str = "auto") -> float | None:
        """Return the least epsilon at which a score is expected.

        Between planned epsilons the score is a line in the logarithm of epsilon.

        Parameters
        ----------
        score : float
            The score that is wanted.
        mechanism : str, default='auto'
            Name of the mechanism.

        Returns
        -------
        float or None
            The epsilon; None where no planned epsilon reaches the score.
        """
        curve = self.curve(mechanism)
        if curve and curve[0].score >= score:
            return curve[0].epsilon
        for low, high in pairwise(curve):
            if high.score >= score:
                share = (score - low.score) / (high.score - low.score)
                return math.exp(math.log(low.epsilon) + share * math.log(high.epsilon / low.epsilon))
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, ready for JSON.

        Returns
        -------
        dict
            All fields, and the recommendation.
        """
        return asdict(self) | {"recommendation": self.recommendation}

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw scores against epsilon, a line per mechanism. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from privfit.report.planning import draw_plan

        return draw_plan(self.to_dict(), path)

    @property
    def recommendation(self) -> str:
        """What to do, in words."""
        bests = [self.best(epsilon) for epsilon in self.epsilons]
        worst, top = bests[0], bests[-1]
        wanted = worst.score + NEAR * (top.score - worst.score)
        chosen = next(one for one in bests if one.score >= wanted)
        lost = self.reference - chosen.score
        text = (
            f"Epsilon {chosen.epsilon:g} with mechanism={chosen.mechanism!r} is expected to reach {chosen.score:.3f}, "
            f"{max(lost, 0.0):.3f} below the fit without noise; larger epsilons up to {top.epsilon:g} add little."
            if chosen is not top
            else f"The score still rises at epsilon {top.epsilon:g}: {top.score:.3f} with "
            f"mechanism={top.mechanism!r}, against {self.reference:.3f} without noise."
        )
        return f"{text} {self._dearest()}".strip()

    def _dearest(self) -> str:
        if not self.costs:
            return ""
        first = self.costs[0]
        if not first.matters:
            return f"No single change of the schema gains more than its spread at epsilon {self.costs_epsilon:g}."
        return f"What costs most at epsilon {self.costs_epsilon:g}: {first.what} would gain {first.gain:.3f}."

    def __str__(self) -> str:
        names = list(dict.fromkeys(one.mechanism for one in self.forecasts))
        size = max(len("without noise"), *map(len, names))
        per_line = max(1, (WIDTH - size) // 15)
        lines = [f"{self.model}, {self.n_rows:,} rows, from the {self.source}: {self.measure}"]
        for start in range(0, len(self.epsilons), per_line):
            lines += ["", *self._block(names, self.epsilons[start : start + per_line], size)]
        lines += [f"{'without noise':<{size}}  {self.reference:.3f}", "", *textwrap.wrap(self.recommendation, WIDTH)]
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        names = dict.fromkeys(one.mechanism for one in self.forecasts)
        found = {(one.mechanism, one.epsilon): _cell(one) for one in self.forecasts}
        lines = [(name, *(found.get((name, epsilon), "") for epsilon in self.epsilons)) for name in names]
        lines.append(("without noise", *[f"{self.reference:.3f}"] * len(self.epsilons)))
        caption = f"{self.model}, {self.n_rows:,} rows, from the {self.source}: expected {self.measure}"
        head = ("mechanism", *(f"epsilon {epsilon:g}" for epsilon in self.epsilons))
        told = " ".join(self._told())
        return fragment(table(caption, head, lines), paragraph(self.recommendation), paragraph(told))

    def _block(self, names: list[str], epsilons: list[float], size: int) -> list[str]:
        found = {(one.mechanism, one.epsilon): one for one in self.forecasts}
        head = f"{'epsilon':<{size}}" + "".join(f"{epsilon:>15g}" for epsilon in epsilons)
        return [head] + [
            f"{name:<{size}}"
            + "".join(f"{_cell(found[name, epsilon]):>15}" for epsilon in epsilons if (name, epsilon) in found)
            for name in names
        ]

    def _notes(self) -> list[str]:
        return ["", *(line for note in self._told() for line in textwrap.wrap(note, WIDTH))]

    def _told(self) -> list[str]:
        """How the forecasts were made, a sentence each."""
        notes = [f"Means and standard deviations over {self.repetitions} generated tables; nothing was spent."]
        if self.source == "schema":
            notes.append("Strength of effects is assumed, not known: a public sample makes the forecast better.")
        if self.simulated_rows < self.n_rows:
            notes.append(
                f"Tables have {self.simulated_rows:,} rows, and epsilon is larger by {self.n_rows:,} over that: noise "
                "depends on rows times epsilon."
            )
        return notes + [f"mechanism={name!r} is left out: it cannot fit this." for name in self.refused]


def _cell(forecast: Forecast) -> str:
    return f"{forecast.score:.3f} ({min(forecast.deviation, 9.999):.3f})"
