"""What a run shows: numbers, printed text and errors; and the statistics by which two tables can be distinguished."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_TEXTS = 50
"""Texts of which each is a statistic, the most frequent ones: bounds the search. Chosen, not measured."""
NO_BIT = 2000.0
"""Stands for the exponent of the lowest bit of zero: above that of all floats."""
BINS = 10
"""Cells of a coordinate in the learned ratio; more learn finer laws from more runs. Chosen, not measured."""


@dataclass(frozen=True)
class Run:
    """What one call shows to whoever made it."""

    numbers: Floats
    text: str
    error: str


def run_once(fit: Callable[[object], object], table: object) -> Run:
    """Call it, and keep what it returns, prints, warns of and raises."""
    printed = io.StringIO()
    made: object = None
    error = ""
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            made = fit(table)
        except Exception as raised:  # any error of any callable is an output
            error = f"{type(raised).__name__}: {raised}"
    numbers: list[float] = []
    texts = [printed.getvalue(), *(str(one.message) for one in caught)]
    _flatten(made, numbers, texts)
    return Run(np.array(numbers, dtype=np.float64), "\n".join(text for text in texts if text), error)


def _flatten(made: object, numbers: list[float], texts: list[str]) -> None:
    """The numbers and the texts of a result: of containers, arrays and fitted models, whatever is inside."""
    if made is None:
        return
    if isinstance(made, bool | int | float | np.generic | np.ndarray):
        values = np.ravel(np.asarray(made))
        if values.dtype.kind in "biuf":
            numbers.extend(values.astype(np.float64).tolist())
        else:
            texts.append(str(values.tolist()))
    elif isinstance(made, Mapping):
        texts.append(",".join(map(str, made)))
        _flatten(list(made.values()), numbers, texts)
    elif isinstance(made, list | tuple):
        for item in made:
            _flatten(item, numbers, texts)
    elif isinstance(made, str):
        texts.append(made)
    elif fitted := {name: value for name, value in sorted(vars(made).items()) if _is_result(name)}:
        _flatten(fitted, numbers, texts)


def _is_result(name: str) -> bool:
    """Whether an attribute is a fitted one, as scikit-learn names them; a report restates what others hold."""
    return name.endswith("_") and not name.startswith("_") and name not in ("report_", "schema_")


@dataclass(frozen=True)
class Statistic:
    """A score of runs; its event is that the score is above a threshold."""

    name: str
    score: Callable[[list[Run]], Floats]


def statistics_of(left: list[Run], right: list[Run]) -> list[Statistic]:
    """Statistics for runs like these: errors, texts, every coordinate, and a likelihood ratio learned from them."""
    every = [*left, *right]
    found = [
        Statistic("raises", lambda runs: np.array([float(bool(run.error)) for run in runs])),
        Statistic("number of values", lambda runs: np.array([float(run.numbers.size) for run in runs])),
    ]
    found += [_equal("error", text) for text in _frequent(run.error for run in every)]
    found += [_equal("text", text) for text in _frequent(run.text for run in every)]
    width = max(run.numbers.size for run in every)
    found += [_coordinate(place) for place in range(width)]
    found += [_lowest_bit(place) for place in range(width)]
    if width:
        found.append(_learned(matrix(left, width), matrix(right, width)))
    return found


def matrix(runs: list[Run], width: int) -> Floats:
    """Runs by coordinates; what is missing or no number lies below all numbers."""
    found = np.full((len(runs), width), -np.inf)
    for row, run in zip(found, runs, strict=True):
        own = run.numbers[:width]
        row[: own.size] = np.where(np.isnan(own), -np.inf, own)
    return found


def _frequent(texts: Iterable[str]) -> list[str]:
    counted = Counter(texts)
    return [text for text, _ in counted.most_common(MOST_TEXTS)] if len(counted) > 1 else []


def _equal(field: str, text: str) -> Statistic:
    shown = " ".join(text.split())[:40]
    return Statistic(
        f"{field} is {shown!r}", lambda runs: np.array([float(getattr(run, field) == text) for run in runs])
    )


def _coordinate(place: int) -> Statistic:
    return Statistic(f"coordinate {place}", lambda runs: matrix(runs, place + 1)[:, place])


def _lowest_bit(place: int) -> Statistic:
    """The exponent of the last bit of a number that is set: which lattice it lies on."""

    def score(runs: list[Run]) -> Floats:
        values = matrix(runs, place + 1)[:, place]
        fractions, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
        mantissas = np.abs(fractions * 2.0**53).astype(np.int64)
        lowest = np.log2(np.maximum(mantissas & -mantissas, 1).astype(np.float64)) + exponents - 53
        return np.asarray(np.where(mantissas > 0, lowest, NO_BIT), dtype=np.float64)

    return Statistic(f"lowest bit of coordinate {place}", score)


def _learned(left: Floats, right: Floats) -> Statistic:
    """The sum over coordinates of the logarithm of a ratio of histograms, with one run added to every cell."""
    both = np.concatenate([left, right])
    edges = [np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1], method="lower")) for column in both.T]
    ratios = []
    for own, one, other in zip(edges, left.T, right.T, strict=True):
        counts = [np.bincount(np.searchsorted(own, column), minlength=len(own) + 1) + 1.0 for column in (one, other)]
        ratios.append(np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum()))

    def score(runs: list[Run]) -> Floats:
        columns = matrix(runs, len(edges)).T
        own = [r[np.searchsorted(e, c)] for r, e, c in zip(ratios, edges, columns, strict=True)]
        return np.asarray(np.sum(own, axis=0), dtype=np.float64)

    return Statistic("learned likelihood ratio", score)
