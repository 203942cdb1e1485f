"""The summary of a linear model: coefficients, their intervals, and how much of their uncertainty is noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HIDDEN = "not identified at this epsilon"
CAVEAT = (
    "Intervals count the sampling of rows, the noise of the mechanism and what is not known of the shrinkage. There "
    "are no p-values: those of a table without noise do not hold for one with it, and choosing among released "
    "coefficients by them would need an allowance for the choice."
)
MOSTLY_NOISE = 0.5
"""From this share of the variance on, a line says that most of the uncertainty is noise: more than half. A convention,
not measured."""


@dataclass(frozen=True)
class CoefficientTable:
    """Coefficients of a fitted model with their intervals, one line each.

    It prints as a table. A coefficient that is not identified has no interval: noise has hidden what distinguishes its
    column from others, and the penalty decides its value.

    Parameters
    ----------
    title : str
        The model and its target.
    names : tuple of str
        What the lines are about; the last is the intercept.
    coefficients : ndarray of shape (n_lines,)
        The coefficients.
    intervals : ndarray of shape (n_lines, 2)
        The ends of their intervals, infinite where a coefficient is not identified.
    noise_share : ndarray of shape (n_lines,)
        The share of the variance that the mechanism adds: noise and what it hides. NaN where it is not known.
    confidence : float
        The probability with which an interval covers the coefficient of the population.
    ratio : str, default=''
        What the exponential of a coefficient is called, if it has a name: "odds ratio", "rate ratio".
    notes : tuple of str, default=()
        What else is worth knowing.

    See Also
    --------
    LogisticRegression : `model.summary()` makes one, of odds ratios.
    PoissonRegressor : One of rate ratios.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 1))
    >>> y = np.where(rng.uniform(size=20_000) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    >>> schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    >>> table = pf.LogisticRegression(epsilon=1.0, intervals=True, schema=schema).fit(X, y).summary()
    >>> table.names
    ('x0', 'intercept')
    >>> bool(table.intervals[0, 0] < table.coefficients[0] < table.intervals[0, 1])  # they cover the 2 in 90%
    True
    """

    title: str
    names: tuple[str, ...]
    coefficients: Floats
    intervals: Floats
    noise_share: Floats
    confidence: float
    ratio: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values, ready for JSON.

        Returns
        -------
        dict
            The title, one entry per line, and the notes.
        """
        lines = [
            {
                "name": name,
                "coefficient": float(value),
                "interval": None if math.isinf(high) else [float(low), float(high)],
                "noise_share": None if math.isnan(share) else float(share),
            }
            for name, value, (low, high), share in self._values()
        ]
        return {"title": self.title, "confidence": self.confidence, "lines": lines, "notes": [*self.notes, CAVEAT]}

    def _values(self) -> list[tuple[str, float, tuple[float, float], float]]:
        """Each line's name, coefficient, interval and share of noise."""
        ends = [(float(low), float(high)) for low, high in self.intervals]
        return list(zip(self.names, self.coefficients.tolist(), ends, self.noise_share.tolist(), strict=True))

    def _lines(self) -> list[tuple[str, ...]]:
        told = f"{100 * self.confidence:g}% interval"
        head = ("", "coefficient", told, *([self.ratio, told] if self.ratio else []), "noise", "")
        return [head, *(self._line(*own) for own in self._values())]

    def _line(self, name: str, value: float, ends: tuple[float, float], share: float) -> tuple[str, ...]:
        """One coefficient in words."""
        known, cells = math.isfinite(ends[1]), [name, f"{value:.4g}", _interval(ends)]
        if self.ratio:
            constant = name == "intercept"
            with np.errstate(over="ignore"):
                both = float(np.exp(ends[0])), float(np.exp(ends[1]))
                cells += ["", ""] if constant else [f"{np.exp(value):.4g}", _interval(both) if known else "-"]
        note = "mostly noise" if share > MOSTLY_NOISE else ""
        cells += ["-" if math.isnan(share) or not known else f"{share:.0%}", note if known else HIDDEN]
        return tuple(cells)

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
        shown = [
            f"{line[0]:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(line[1:-1], widths[1:-1], strict=True))
            + f"  {line[-1]}"
            for line in lines
        ]
        return "\n".join([self.title, "", *(line.rstrip() for line in shown), "", *self.notes, CAVEAT])

    def _repr_html_(self) -> str:
        head, *lines = self._lines()
        heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
        notes = "".join(f"<p>{escape(note)}</p>" for note in (*self.notes, CAVEAT))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{escape(self.title)}</p>{table}{notes}"


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.4g} to {ends[1]:.4g}" if math.isfinite(ends[1]) else "-"
