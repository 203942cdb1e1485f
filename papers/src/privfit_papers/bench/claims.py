"""Checks that many claims share: one method below others, a line that falls, two lines that touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from privfit_papers.bench.grid import Figure, Verdict
from privfit_papers.bench.results import Results

Check = Callable[[Results], Verdict]
UNTESTED = Verdict("cannot be tested", "nothing was measured")
TIE = 1e-3
"""Lines of privfit's own default and of another method that differ by less than this share are level."""


def below(
    lower: str | Sequence[str],
    upper: str | Sequence[str],
    *,
    panels: Sequence[str] = (),
    measure: str | None = None,
    slack: float = 0.0,
) -> Check:
    """Every one of `lower` is below every one of `upper`, at every place of every panel (or those named) where both
    were measured.

    A share of `slack` more counts as below.
    """
    lowers, uppers = _names(lower), _names(upper)

    def check(results: Results) -> Verdict:
        good, bad = 0, []
        for panel in panels or results.panels():
            for low, high, x in _pairs(results, panel, lowers, uppers, measure):
                first, second = results.middle(panel, low, x, measure), results.middle(panel, high, x, measure)
                if first <= second + slack * abs(second):
                    good += 1
                else:
                    bad.append(
                        (
                            first / second if second > 0 else first - second,
                            f"{panel}, {x:g}: {low} {first:.4g}, {high} {second:.4g}",
                        )
                    )
        if not good and not bad:
            return UNTESTED
        text = f"at {good} of {good + len(bad)} points"
        if bad:
            text += f"; the worst of the others is {max(bad)[1]}"
        return Verdict("held" if not bad else "held in part" if good > len(bad) else "not held", text)

    return check


def falls(
    method: str | Sequence[str], *, panels: Sequence[str] = (), measure: str | None = None, rises: bool = False
) -> Check:
    """A line ends lower than it began (higher, where it `rises`), in every panel."""

    def check(results: Results) -> Verdict:
        good, bad, texts = 0, 0, []
        for panel in panels or results.panels():
            for name in _names(method):
                xs = results.xs(panel, name, measure)
                if len(xs) < 2:
                    continue
                first, last = results.middle(panel, name, xs[0], measure), results.middle(panel, name, xs[-1], measure)
                right = last > first if rises else last < first
                good, bad = good + right, bad + (not right)
                texts.append(f"{panel}, {name}: {first:.3g} to {last:.3g}")
        if not texts:
            return UNTESTED
        return Verdict(
            "held" if not bad else "held in part" if good > bad else "not held",
            "; ".join(texts[:4]) + ("; ..." if len(texts) > 4 else ""),
        )

    return check


def within(
    method: str, reference: str, factor: float, *, panels: Sequence[str] = (), measure: str | None = None
) -> Check:
    """A line is at most `factor` times another everywhere."""

    def check(results: Results) -> Verdict:
        ratios = [
            (
                results.middle(panel, method, x, measure) / results.middle(panel, reference, x, measure),
                f"{panel}, {x:g}",
            )
            for panel in panels or results.panels()
            for _, _, x in _pairs(results, panel, [method], [reference], measure)
        ]
        if not ratios:
            return UNTESTED
        good = sum(ratio <= factor for ratio, _ in ratios)
        worst, place = max(ratios)
        best = min(ratios)[0]
        outcome = "held" if good == len(ratios) else "held in part" if 2 * good > len(ratios) else "not held"
        return Verdict(outcome, f"{best:.3g} to {worst:.3g} times {reference} (the most at {place})")  # type: ignore[arg-type]

    return check


def tallied(found: Iterable[tuple[bool, str]]) -> Verdict:
    """Held everywhere, in most places, or not; with what was found, the failures first."""
    pairs = sorted(found, key=lambda pair: pair[0])
    if not pairs:
        return UNTESTED
    good = sum(held for held, _ in pairs)
    shown = "; ".join(text for _, text in pairs[:4]) + ("; ..." if len(pairs) > 4 else "")
    return Verdict(
        "held" if good == len(pairs) else "held in part" if 2 * good > len(pairs) else "not held",
        f"{good} of {len(pairs)}: {shown}",
    )


def not_testable(why: str) -> Check:
    """A claim that our data or machine cannot decide."""
    return lambda results: Verdict("cannot be tested", why)


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _pairs(
    results: Results, panel: str, lowers: Sequence[str], uppers: Sequence[str], measure: str | None
) -> Iterator[tuple[str, str, float]]:
    """Pairs of methods and the places where both were measured."""
    for low in lowers:
        for high in uppers:
            shared = set(results.xs(panel, low, measure)) & set(results.xs(panel, high, measure))
            yield from ((low, high, x) for x in sorted(shared))


def judged(figure: Figure, results: Results) -> list[tuple[str, Verdict]]:
    """Every claim of a figure with what became of it; last, whether privfit's default is the lowest private line."""
    verdicts = [
        (claim.text, replace(claim.check(results) if results else UNTESTED, printed=claim.printed))
        for claim in figure.claims
    ]
    if figure.default is not None:
        others = [
            method.name for method in figure.methods if method.kind != "reference" and method.name != figure.default
        ]
        found = below(figure.default, others, slack=TIE)(results)
        verdicts.append((f"privfit's own: {figure.default} is the lowest private line", found))
    return verdicts
