"""Checks that the functional-mechanism paper's claims need beyond the common ones: how lines change from one end of the
axis to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from privfit_papers.bench.claims import Check, tallied
from privfit_papers.bench.grid import Verdict
from privfit_papers.bench.results import Results


def ratio_changes(
    methods: Sequence[str],
    reference: str,
    *,
    grows: bool,
    panels: Sequence[str],
    measure: str | None = None,
    differences: bool = False,
) -> Check:
    """What lines are above a reference, as a ratio (or a difference), is more at the last place than at the first; or
    less, unless it `grows`.
    """

    def check(results: Results) -> Verdict:
        found = []
        for panel in panels:
            for method in methods:
                shared = sorted(set(results.xs(panel, method, measure)) & set(results.xs(panel, reference, measure)))
                if len(shared) < 2:
                    continue
                first, last = (
                    _above(results, panel, method, reference, x, measure, differences) for x in (shared[0], shared[-1])
                )
                found.append(((last > first) == grows, f"{panel}, {method}: {first:.3g} to {last:.3g}"))
        return tallied(found)

    return check


def _above(
    results: Results, panel: str, method: str, reference: str, x: float, measure: str | None, differences: bool
) -> float:
    upper, lower = results.middle(panel, method, x, measure), results.middle(panel, reference, x, measure)
    return upper - lower if differences else upper / lower


def stays(
    methods: Sequence[str], factor: float, *, panels: Sequence[str], measure: str | None = None, start: float = 0.0
) -> Check:
    """The largest value of a line is at most `factor` times its smallest, from a place on."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in panels:
            for method in methods:
                values = [
                    results.middle(panel, method, x, measure) for x in results.xs(panel, method, measure) if x >= start
                ]
                if len(values) > 1:
                    spread = max(values) / min(values)
                    found.append((spread <= factor, f"{panel}, {method}: times {spread:.3g}"))
        return tallied(found)

    return check


def less_steep(
    lower: Sequence[str], upper: Sequence[str], *, panels: Sequence[str], measure: str | None = None
) -> Check:
    """From one end of the axis to the other, the one lines change by smaller factors than the others."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in panels:
            for calm in lower:
                for steep in upper:
                    factors = [_change(results, panel, name, measure) for name in (calm, steep)]
                    if None not in factors:
                        first, second = (float(factor or 0) for factor in factors)
                        found.append(
                            (first <= second, f"{panel}: {calm} times {first:.3g}, {steep} times {second:.3g}")
                        )
        return tallied(found)

    return check


def _change(results: Results, panel: str, method: str, measure: str | None) -> float | None:
    """By which factor a line rises or falls from end to end; None without two ends."""
    xs = results.xs(panel, method, measure)
    if len(xs) < 2:
        return None
    first, last = (results.middle(panel, method, x, measure) for x in (xs[0], xs[-1]))
    return max(first, last) / min(first, last)


def both(*checks: Check) -> Check:
    """All of several checks."""

    def check(results: Results) -> Verdict:
        verdicts = [one(results) for one in checks]
        outcomes = {verdict.outcome for verdict in verdicts}
        text = "; ".join(verdict.number for verdict in verdicts)
        if "cannot be tested" in outcomes:
            return Verdict("cannot be tested", text)
        return Verdict(next(iter(outcomes)) if len(outcomes) == 1 else "held in part", text)

    return check


def beside(check: Check, repaired: Check) -> Check:
    """The outcome of a claim as printed and, in its number, what becomes of it with tightly calibrated noise."""

    def told(results: Results) -> Verdict:
        printed, tight = check(results), repaired(results)
        return Verdict(
            printed.outcome, f"{printed.number}. With tight calibration (privfit): {tight.outcome}, {tight.number}"
        )

    return told


def ends_within(methods: Sequence[str], references: Sequence[str], factor: float, *, panels: Sequence[str]) -> Check:
    """At the last place of the axis, lines are at most `factor` times other lines."""

    def check(results: Results) -> Verdict:
        found = []
        for panel in panels:
            for method in methods:
                for reference in references:
                    shared = set(results.xs(panel, method)) & set(results.xs(panel, reference))
                    if shared:
                        ratio = _above(results, panel, method, reference, max(shared), None, False)
                        found.append((ratio <= factor, f"{panel}: {method} is {ratio:.3g} times {reference}"))
        return tallied(found)

    return check
