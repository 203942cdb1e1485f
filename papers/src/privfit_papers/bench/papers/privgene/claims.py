"""Checks that the PrivGene paper's claims need beyond the common ones: differences in points of 100, places where a
claim applies, growing gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from privfit_papers.bench.claims import UNTESTED, Check, tallied
from privfit_papers.bench.grid import Verdict
from privfit_papers.bench.results import Results, Value

Names = str | Sequence[str]


def limited(check: Check, least: float = 0.0, most: float = math.inf) -> Check:
    """A check of the places from `least` to `most` only."""

    def limited_check(results: Results) -> Verdict:
        kept = [
            Value(panel, method, x, float(value), results.measure)
            for panel in results.panels()
            for method in results.methods(panel)
            for x in results.xs(panel, method)
            if least <= x <= most
            for value in results.values(panel, method, x)
        ]
        return check(Results(kept, results.measure))

    return limited_check


def ahead(lower: str, upper: str, points: float, *, panel: str, anywhere: bool = False) -> Check:
    """The one line ends by so many points of 100 below the other, or is so far below it at some place; in part, where
    it is below it by less.
    """

    def check(results: Results) -> Verdict:
        gaps = _gaps(results, panel, lower, upper)
        if not gaps:
            return UNTESTED
        x, gap = max(gaps, key=lambda pair: pair[1]) if anywhere else gaps[-1]
        outcome = "held" if gap >= points / 100 else "held in part" if gap > 0 else "not held"
        return Verdict(outcome, f"{100 * gap:.1f} points at {x:g}")  # type: ignore[arg-type]

    return check


def gap_grows(lower: str, upper: str, *, panels: Sequence[str], backwards: bool = False) -> Check:
    """The one line is farther below the other in the last third of the places than in the first; or the other way
    round.
    """

    def one(results: Results, panel: str) -> tuple[bool, str] | None:
        gaps = [gap for _, gap in _gaps(results, panel, lower, upper)]
        third = max(1, len(gaps) // 3)
        if len(gaps) < 2:
            return None
        first, last = sum(gaps[:third]) / third, sum(gaps[-third:]) / third
        return (first > last if backwards else last > first), f"{panel}: {first:.3g} to {last:.3g}"

    return _by_panel(one, panels)


def close(methods: Names, reference: str, points: float, *, panels: Sequence[str] = (), last: bool = False) -> Check:
    """Lines are at most so many points of 100 above or below another, everywhere or at the last place."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in panels or results.panels():
            for method in _names(methods):
                gaps = _gaps(results, panel, method, reference)[-1 if last else 0 :]
                if gaps:
                    x, gap = max(gaps, key=lambda pair: abs(pair[1]))
                    found.append((abs(gap) <= points / 100, f"{panel}, {method}: {-100 * gap:+.1f} points at {x:g}"))
        return tallied(found)

    return check


def near(methods: Names, level: float, points: float, *, panels: Sequence[str] = ()) -> Check:
    """The mean of a line over all places is within so many points of 100 of a level."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in panels or results.panels():
            for method in _names(methods):
                values = _middles(results, panel, method)
                if values:
                    mean = sum(values) / len(values)
                    found.append((abs(mean - level) <= points / 100, f"{panel}, {method}: {100 * mean:.1f}%"))
        return tallied(found)

    return check


def steady(method: str, points: float, *, panels: Sequence[str] = ()) -> Check:
    """A line moves by at most so many points of 100."""

    def one(results: Results, panel: str) -> tuple[bool, str] | None:
        values = _middles(results, panel, method)
        if not values:
            return None
        moved = max(values) - min(values)
        return moved <= points / 100, f"{panel}: {100 * moved:.1f} points"

    return _by_panel(one, panels)


def times(upper: str, lower: str, factor: float, x: float) -> Check:
    """At a place, the one line is at least `factor` times the other."""

    def one(results: Results, panel: str) -> tuple[bool, str] | None:
        ratio = results.middle(panel, upper, x) / results.middle(panel, lower, x)
        return None if math.isnan(ratio) else (ratio >= factor, f"{panel}: {ratio:.3g} times")

    return _by_panel(one)


def moves_more_than(methods: Names, factor: float) -> Check:
    """From one end of the axis to the other, lines change by more than a factor."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in results.panels():
            for method in _names(methods):
                values = _middles(results, panel, method)
                if len(values) > 1:
                    change = max(values[0] / values[-1], values[-1] / values[0])
                    found.append((change > factor, f"{panel}, {method}: times {change:.3g}"))
        return tallied(found)

    return check


def worse_by_more(method: str, reference: str, worse: str, better: Sequence[str]) -> Check:
    """What a line is above a reference, averaged over the places, is more in one panel than in others."""

    def above(results: Results, panel: str) -> float:
        gaps = _gaps(results, panel, reference, method)
        return sum(gap for _, gap in gaps) / len(gaps) if gaps else math.nan

    def check(results: Results) -> Verdict:
        here = above(results, worse)
        found = [(panel, above(results, panel)) for panel in better]
        texts = [
            (here > other, f"{worse}: {100 * here:.1f} points, {panel}: {100 * other:.1f}") for panel, other in found
        ]
        return tallied([pair for pair in texts if "nan" not in pair[1]])

    return check


def least_inside(results: Results) -> Verdict:
    """A line is lowest neither at its first place nor at its last."""
    found = []
    for panel in results.panels():
        for method in results.methods(panel):
            xs = results.xs(panel, method)
            if len(xs) > 2:
                best = min(xs, key=lambda x: results.middle(panel, method, x))
                found.append((best not in (xs[0], xs[-1]), f"{panel}, {method}: {_listed(results, panel, method, xs)}"))
    return tallied(found)


def nearly_least(x: float, factor: float) -> Check:
    """At a place a line is at most `factor` times its least."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in results.panels():
            for method in results.methods(panel):
                ratio = results.middle(panel, method, x) / min(_middles(results, panel, method))
                if not math.isnan(ratio):
                    found.append((ratio <= factor, f"{panel}, {method}: {ratio:.3g} times its least"))
        return tallied(found)

    return check


# -- details ---------------------------------------------------------------------------------------


def _by_panel(one: Callable[[Results, str], tuple[bool, str] | None], panels: Sequence[str] = ()) -> Check:
    def check(results: Results) -> Verdict:
        found = (one(results, panel) for panel in panels or results.panels())
        return tallied([pair for pair in found if pair is not None])

    return check


def _gaps(results: Results, panel: str, lower: str, upper: str) -> list[tuple[float, float]]:
    """By how much the one line is below the other, at every place that both have."""
    shared = sorted(set(results.xs(panel, lower)) & set(results.xs(panel, upper)))
    return [(x, results.middle(panel, upper, x) - results.middle(panel, lower, x)) for x in shared]


def _middles(results: Results, panel: str, method: str) -> list[float]:
    return [results.middle(panel, method, x) for x in results.xs(panel, method)]


def _listed(results: Results, panel: str, method: str, xs: Sequence[float]) -> str:
    return ", ".join(f"{results.middle(panel, method, x):.3g} at {x:g}" for x in xs)


def _names(given: Names) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
