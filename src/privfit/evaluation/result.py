"""What an evaluation says: figures with intervals, curves, a confusion matrix, and the report of what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privfit.models.report import Report
from privfit.privacy import PrivacyError
from privfit.report.notebook import folded, fragment, table
from privfit.summaries.figures import Figure, Figures

KNOWN = {
    "accuracy": "a classifier",
    "balanced_accuracy": "a classifier",
    "confusion": "a classifier",
    "auc": "a classifier of two classes with scores",
    "roc": "a classifier of two classes with scores",
    "calibration": "a classifier with probabilities",
    "log_loss": "a classifier of two classes with probabilities",
    "brier": "a classifier of two classes with probabilities",
    "r2": "a regression",
    "rmse": "a regression",
    "mae": "a regression",
    "pinball_loss": "a regression of a quantile",
    "share_below": "a regression of a quantile",
    "mean_squared_distance": "clusters",
    "explained_variance_ratio": "principal components",
    "concordance": "a survival model",
}
"""Every figure and curve, and the models that have it."""


class Curve(dict[str, Figures]):
    """Several lines of numbers of the same length, by name: `curve["observed"]`, or `curve.observed`.

    Examples
    --------
    >>> import privfit as pf
    >>> from privfit.evaluation import Curve
    >>> Curve(observed=pf.Figures([0.1, 0.9], [[0.0, 0.2], [0.8, 1.0]])).observed.tolist()
    [0.1, 0.9]
    """

    def __getattr__(self, name: str) -> Figures:
        if name in self:
            return self[name]
        raise AttributeError(f"This curve has {', '.join(self)}, and no {name!r}.")


class Evaluation:
    """How good a model is: numbers with intervals, from one release.

    `evaluation.accuracy` acts as a float and has an `interval`; which figures there are depends on the model. A figure
    that the noise leaves open is NaN. It prints as a table.

    Parameters
    ----------
    model : str
        The class of the model.
    figures : dict of str to Figure
        The figures.
    curves : dict of str to Curve or Figures
        Curves, and the confusion matrix.
    report : Report
        What was guaranteed and what was drawn.
    confusion_at : callable or None, default=None
        The confusion matrix for a threshold.

    Attributes
    ----------
    accuracy, balanced_accuracy, auc, log_loss, brier : Figure
        Of classifiers, as far as the model allows.
    r2, rmse, mae : Figure
        Of regressions.
    pinball_loss, share_below : Figure
        Of regressions of a quantile: their loss, and the share of rows at or below their prediction.
    mean_squared_distance : Figure
        Of clusters.
    explained_variance_ratio : Figure
        Of principal components.
    concordance : Figure
        Of survival models.
    confusion : Figures
        Rows by true class (first axis) and predicted class; `labels` has the classes.
    roc, calibration : Curve
        Lines of figures by name.
    report : Report
        What was guaranteed and what was drawn.

    See Also
    --------
    evaluate : Makes one.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.LogisticRegression(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> found = pf.evaluate(model, X, y, epsilon=1.0)
    >>> low, high = found.accuracy.interval
    >>> bool(0.85 < low <= found.accuracy <= high)
    True
    >>> found.confusion.labels
    (('no', 'yes'), ('no', 'yes'))
    """

    def __init__(
        self,
        model: str,
        figures: Mapping[str, Figure],
        curves: Mapping[str, Any],
        report: Report,
        confusion_at: Callable[[float], Figures] | None = None,
    ) -> None:
        self.model, self.figures, self.curves, self.report = model, dict(figures), dict(curves), report
        self._confusion_at = confusion_at

    def __getattr__(self, name: str) -> Any:
        for held in (self.__dict__.get("figures", {}), self.__dict__.get("curves", {})):
            if name in held:
                return held[name]
        if name not in KNOWN:
            raise AttributeError(f"An evaluation has no {name!r}.")
        raise AttributeError(
            f"{name} was asked of an evaluation of a {self.model}, and {KNOWN[name]} has it. This one has "
            f"{', '.join((*self.figures, *self.curves))}."
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures, *self.curves]

    def confusion_at(self, threshold: float) -> Figures:
        """Return the confusion matrix of two classes for another threshold of the score.

        Parameters
        ----------
        threshold : float
            Rows with a higher score count as predicted to be of the second class. The nearest edge of the public grid
            of scores is taken, `roc.thresholds`.

        Returns
        -------
        Figures
            Rows by true and predicted class.
        """
        if self._confusion_at is None:
            raise AttributeError(
                f"confusion_at was asked of an evaluation of a {self.model}; a classifier of two classes with scores "
                "has it. Use confusion."
            )
        if not isinstance(threshold, int | float | np.number) or not 0.0 <= threshold <= 1.0:
            raise PrivacyError(f"threshold={threshold!r} was given; it is a number from 0 to 1. Write 0.5.")
        return self._confusion_at(float(threshold))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON; what is not known is None.

        Returns
        -------
        dict
            Figures with their intervals, curves, and the report.
        """
        figures = {
            name: {"value": _plain(float(one)), "interval": [_plain(end) for end in one.interval]}
            for name, one in self.figures.items()
        }
        curves = {name: _curve_to_dict(one) for name, one in self.curves.items()}
        return {"model": self.model, "figures": figures, **curves, "report": self.report.to_dict()}

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the figures and curves. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from privfit.report.evaluation import draw_evaluation

        return draw_evaluation(self.to_dict(), path)

    def _lines(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("figure", "value", "90% interval")]
        for name, one in self.figures.items():
            low, high = one.interval
            value = "not known" if math.isnan(one) else f"{one:,.4g}"
            rows.append((name, value, f"{low:,.4g} to {high:,.4g}"))
        return rows

    def _confusion_lines(self) -> list[tuple[str, ...]]:
        table = self.curves.get("confusion")
        if table is None:
            return []
        true, predicted = table.labels
        lines = [("true class", *(f"predicted {label}" for label in predicted))]
        return lines + [
            (str(label), *(f"{count:,.0f}" for count in own)) for label, own in zip(true, table, strict=True)
        ]

    def __str__(self) -> str:
        tables = [_aligned(lines) for lines in (self._lines(), self._confusion_lines()) if lines]
        return "\n\n".join(tables)

    def __repr__(self) -> str:
        return f"<Evaluation of a {self.model}: {', '.join((*self.figures, *self.curves))}>"

    def _repr_html_(self) -> str:
        (head, *figures), confusion = self._lines(), self._confusion_lines()
        parts = [table(f"Evaluation of a {self.model}", head, figures)]
        if confusion:
            parts.append(table("Confusion matrix", confusion[0], confusion[1:]))
        return fragment(*parts, folded("Privacy report", self.report._repr_html_()))


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain_list(values: Any) -> Any:
    return [_plain_list(value) for value in values] if isinstance(values, list) else _plain(values)


def _curve_to_dict(curve: Curve | Figures) -> dict[str, Any]:
    if isinstance(curve, Figures):
        assert curve.interval is not None
        labels = [[str(label) for label in own] for own in curve.labels]
        values, ends = np.asarray(curve).tolist(), curve.interval.tolist()
        return {"values": _plain_list(values), "interval": _plain_list(ends), "labels": labels}
    return {name: _curve_to_dict(own) for name, own in curve.items()}


def _aligned(lines: list[tuple[str, ...]]) -> str:
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
