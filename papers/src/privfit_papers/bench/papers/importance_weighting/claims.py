"""Checks of what Ji and Elkan (Machine Learning 2013) say of their experiments; names of lines and measures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from privfit_papers.bench.claims import UNTESTED, Check
from privfit_papers.bench.grid import Outcome, Verdict
from privfit_papers.bench.papers.importance_weighting.fits import SAME, SKEWED, SQUARED, UNIFORM
from privfit_papers.bench.results import Results, Value

EPSILON, RIDGE = 0.1, 0.1
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

PRINTED, REPAIRED, OBJECTIVE = "importance weighting", "importance weighting, repaired", "noise in the objective"
TILTING, NO_NOISE = "tilting", "importance weighting, no noise"
TRUTH, UNWEIGHTED, OWN = "truth", "public rows without weights", "private rows"
LAPLACE, SVM_NOISE, WELL_SPECIFIED = "noise on every value", "noise on the SVM", "tilting with pairs, hardly any noise"
AS_MANY = "as many private rows as tilted ones are worth"

SHARE, TRADE_OFF = "share", "trade-off"
ESTIMATE, OFF, DISTANCE, NORM, WORTH = "estimate", "off", "distance", "norm", "effective share"
DIRECT, PERTURBED, TRIMMED, DEVIATION = "direct deviation", "perturbed", "trimmed", "deviation"

CLOSE = 0.05
"""An estimate this near is close: a third of the way from 0.15 to 0.3."""
CLEARLY = 0.9
PAPER_SHARES, PAPER_NORM, PAPER_DISTANCE, PAPER_ERROR, PAPER_NOISE = (0.15, 0.3), 7.17, 0.8, 1.5, 4.8
OWN_DEVIATION, DIRECT_DEVIATION, ROW_DEVIATION, TRIMMED_DEVIATION = 0.003, 0.0007, 2.34, 0.002


def _held(good: int, of: int) -> Outcome:
    return "held" if good == of else "held in part" if 2 * good > of else "not held"


# -- estimates -------------------------------------------------------------------------------------


def shares(results: Results) -> Verdict:
    """Both printed shares, to two digits."""
    x = results.xs(SHARE, TRUTH)[0]
    found = results.middle(SHARE, UNWEIGHTED, x), results.middle(SHARE, TRUTH, x)
    good = sum(abs(one - paper) < 0.01 for one, paper in zip(found, PAPER_SHARES, strict=True))
    return Verdict(
        "held" if good == 2 else "held in part" if good else "not held", f"{found[0]:.3f} and {found[1]:.3f}"
    )


def mostly_close(results: Results) -> Verdict:
    """More than half of the medians are close to the truth."""
    xs = results.xs(SHARE, PRINTED)
    truth = results.middle(SHARE, TRUTH, xs[0])
    good = [x for x in xs if abs(results.middle(SHARE, PRINTED, x) - truth) <= CLOSE]
    ours = sum(abs(results.middle(SHARE, TILTING, x) - truth) <= CLOSE for x in xs)
    single = np.mean([abs(value - truth) <= CLOSE for x in xs for value in results.values(SHARE, PRINTED, x)])
    text = (
        f"medians are within {CLOSE:g} at {len(good)} of {len(xs)} places, single estimates in {single:.0%} (tilting: "
        f"{ours} places)"
    )
    return Verdict("held" if 2 * len(good) > len(xs) else "not held", text)


def deviation_falls(results: Results) -> Verdict:
    """The deviation falls from every place to the next."""
    found = [results.deviation(SHARE, PRINTED, x) for x in results.xs(SHARE, PRINTED)]
    good = sum(later < earlier for earlier, later in itertools.pairwise(found))
    return Verdict(
        _held(good, len(found) - 1), f"from {found[0]:.4f} to {found[-1]:.4f}, down at {good} of {len(found) - 1} steps"
    )


def bias_grows(results: Results) -> Verdict:
    """Without noise, which would hide it, the bias grows at every step; with noise, the last estimate is that of public
    rows.
    """
    xs = results.xs(SHARE, NO_NOISE)
    truth, unweighted = results.middle(SHARE, TRUTH, xs[0]), results.middle(SHARE, UNWEIGHTED, xs[0])
    off = [abs(float(np.mean(results.values(SHARE, NO_NOISE, x))) - truth) for x in xs]
    grows = all(later > earlier for earlier, later in itertools.pairwise(off))
    last = results.middle(SHARE, PRINTED, xs[-1])
    good = grows + (abs(last - unweighted) < 0.01)
    text = (
        f"{off[0]:.3f} to {off[-1]:.3f} without noise; the last estimate is {last:.3f}, public rows have "
        f"{unweighted:.3f}"
    )
    return Verdict("held" if good == 2 else "held in part" if good else "not held", text)


def own_deviation(results: Results) -> Verdict:
    """The deviation of the private share over bootstraps follows from the number of rows: it is binomial."""
    found, truth = results.values(SHARE, OWN, EPSILON), results.middle(SHARE, TRUTH, results.xs(SHARE, TRUTH)[0])
    rows = round(float(np.sqrt(2)) / EPSILON / results.middle(SHARE, OWN, EPSILON, DIRECT))
    exact = float(np.sqrt(truth * (1 - truth) / rows))
    return Verdict(
        "held" if exact < OWN_DEVIATION else "not held",
        f"{exact:.5f} by the formula for {rows:,} rows, {np.std(found):.5f} over bootstraps",
    )


def direct_count(results: Results) -> Verdict:
    """Laplace noise on one count."""
    found = results.middle(SHARE, OWN, EPSILON, DIRECT)
    return Verdict("held" if abs(found - DIRECT_DEVIATION) < 5e-5 else "not held", f"{found:.5f}")


def perturbed_rows(results: Results) -> Verdict:
    """The deviation of a mean over rows that all have noise."""
    found = results.values(SHARE, LAPLACE, EPSILON, PERTURBED)
    return Verdict(
        "held" if np.std(found) > 1 else "not held",
        f"{np.std(found):.2f} over {len(found)} draws (11 columns in place of 12)",
    )


def trimmed_rows(results: Results) -> Verdict:
    """Trimmed to [0, 1], noisy values say nothing.

    A value that is 0 or 1 with equal probability has a deviation of a half, not a quarter.
    """
    found = results.values(SHARE, LAPLACE, EPSILON, TRIMMED)
    half, still = abs(np.mean(found) - 0.5) < 0.01, np.std(found) < 1.5 * TRIMMED_DEVIATION
    text = (
        f"{np.mean(found):.3f}, which varies by {np.std(found):.4f}; by the formula 0.5 / sqrt(N), twice what is "
        "printed"
    )
    return Verdict("held" if half and still else "held in part" if half else "not held", text)


def mean_stays(results: Results) -> Verdict:
    """Mean estimates move by less than their own deviation as epsilon changes, and by less than what is close."""
    xs = results.xs(SHARE, PRINTED)
    still = float(np.mean(results.values(SHARE, NO_NOISE, xs[0])))
    moved = {x: float(np.mean(results.values(SHARE, PRINTED, x))) - still for x in xs}
    good = sum(abs(move) <= CLOSE for move in moved.values())
    worst = max(moved, key=lambda x: abs(moved[x]))
    return Verdict(
        _held(good, len(xs)),
        f"within {CLOSE:g} of the mean without noise at {good} of {len(xs)} epsilons; {moved[worst]:+.3f} at {worst:g}",
    )


def objective_is_similar(results: Results) -> Verdict:
    """Errors of the two ways to add noise are within a factor of one and a half."""
    xs = results.xs(SHARE, PRINTED)
    ratios = [
        float(np.mean(results.values(SHARE, OBJECTIVE, x, OFF)) / np.mean(results.values(SHARE, PRINTED, x, OFF)))
        for x in xs
    ]
    repaired = [
        float(np.mean(results.values(SHARE, OBJECTIVE, x, OFF)) / np.mean(results.values(SHARE, REPAIRED, x, OFF)))
        for x in xs
    ]
    good = sum(2 / 3 <= ratio <= 1.5 for ratio in ratios)
    text = (
        f"its errors are {min(ratios):.2f} to {max(ratios):.2f} times those of importance weighting, "
        f"{min(repaired):.2f} to {max(repaired):.2f} times those of the repaired one"
    )
    return Verdict(_held(good, len(xs)), text)


# -- bias and deviation ----------------------------------------------------------------------------


def biases_and_deviations(values: Sequence[Value]) -> list[Value]:
    """Figure 4: of every method and lambda, the deviation of estimates, placed at the size of their bias.

    The bias is that of Theorem 3, without noise: its mean over bootstraps. Tilting, which has no lambda, is placed at
    what its estimates are off on average.
    """
    results = Results(values, ESTIMATE)
    points = []
    for method in (PRINTED, REPAIRED, TILTING):
        for x in results.xs(SHARE, method)[: 1 if method == TILTING else None]:
            bias = abs(
                results.middle(SHARE, TILTING if method == TILTING else NO_NOISE, x) - results.middle(SHARE, TRUTH, x)
            )
            points.append(Value(TRADE_OFF, method, bias, results.deviation(SHARE, method, x), DEVIATION))
    return points


def trade_off(results: Results) -> Verdict:
    """From every lambda to the next the deviation falls and the bias grows."""
    xs = results.xs(SHARE, PRINTED, ESTIMATE)
    truth = results.middle(SHARE, TRUTH, xs[0], ESTIMATE)
    deviations = [results.deviation(SHARE, PRINTED, x, ESTIMATE) for x in xs]
    biases = [abs(results.middle(SHARE, PRINTED, x, ESTIMATE) - truth) for x in xs]
    falls = sum(later < earlier for earlier, later in itertools.pairwise(deviations))
    grows = sum(later > earlier for earlier, later in itertools.pairwise(biases))
    steps = len(xs) - 1
    text = (
        f"the deviation falls at {falls} of {steps} steps ({deviations[0]:.3f} to {deviations[-1]:.4f}), the bias "
        f"grows at {grows} ({biases[0]:.3f} to {biases[-1]:.3f})"
    )
    return Verdict(_held(falls + grows, 2 * steps), text)


def tilting_trades_better(results: Results) -> Verdict:
    """Tilting's one point is to the left of all points of the paper's method, and below those that are not far more
    biased.
    """
    (bias,) = results.xs(TRADE_OFF, TILTING)
    deviation = results.middle(TRADE_OFF, TILTING, bias)
    others = [
        (x, results.middle(TRADE_OFF, method, x))
        for method in (PRINTED, REPAIRED)
        for x in results.xs(TRADE_OFF, method)
    ]
    good = sum(bias < x and (deviation < y or x > 2 * bias) for x, y in others)
    return Verdict(
        _held(good, len(others)),
        f"bias {bias:.4f}, deviation {deviation:.4f}; the least bias of the others is {min(others)[0]:.4f}, with a "
        f"deviation of {min(others)[1]:.4f}",
    )


# -- SVMs ------------------------------------------------------------------------------------------


def norm(results: Results) -> Verdict:
    """The norm of the SVM on private rows, in every reading."""
    found = {
        panel: results.middle(panel, OWN, EPSILON, NORM) for panel in results.panels() if results.xs(panel, OWN, NORM)
    }
    good = any(abs(one - PAPER_NORM) < 0.1 for one in found.values())
    return Verdict("held" if good else "not held", ", ".join(f"{one:.2f} ({panel})" for panel, one in found.items()))


def around_one(results: Results) -> Verdict:
    """Medians from epsilon 0.1 on are between a half and one and a half."""
    found = [results.middle(SQUARED, PRINTED, x) for x in results.xs(SQUARED, PRINTED) if x >= EPSILON]
    return Verdict(
        _held(sum(0.5 <= one <= 1.5 for one in found), len(found)),
        f"medians from {min(found):.2f} to {max(found):.2f} for epsilon of 0.1 and more",
    )


def distances_vary_less(results: Results) -> Verdict:
    """The deviation of distances is smaller at the largest epsilon than at the smallest, in every reading."""
    texts, good = [], 0
    panels = [panel for panel in results.panels() if results.xs(panel, PRINTED)]
    for panel in panels:
        xs = results.xs(panel, PRINTED)
        first, last = results.deviation(panel, PRINTED, xs[0]), results.deviation(panel, PRINTED, xs[-1])
        good += last < first
        texts.append(f"{panel}: {first:.3f} to {last:.3f}")
    return Verdict(_held(good, len(panels)), "; ".join(texts))


def above(results: Results) -> Verdict:
    """No single distance is below 0.8."""
    least = {x: float(results.values(SQUARED, PRINTED, x).min()) for x in results.xs(SQUARED, PRINTED)}
    good = sum(one >= PAPER_DISTANCE for one in least.values())
    return Verdict(
        _held(good, len(least)),
        f"the least is {min(least.values()):.2f}; medians are {results.middle(SQUARED, PRINTED, min(least)):.2f} to "
        f"{results.middle(SQUARED, PRINTED, max(least)):.2f}",
    )


def below_svm_noise(results: Results) -> Verdict:
    """The distance at epsilon 0.1, and the length of the noise for our number of columns and rows."""
    found, noise = results.middle(SQUARED, PRINTED, EPSILON), results.middle(SQUARED, SVM_NOISE, EPSILON)
    ours = results.middle(SQUARED, TILTING, EPSILON)
    good = found < PAPER_ERROR, found < noise
    return Verdict(
        "held" if all(good) else "held in part" if any(good) else "not held",
        f"{found:.2f} (tilting {ours:.2f}) against {noise:.1f}",
    )


def better_specified(results: Results) -> Verdict:
    """Tilting that also has the shares of pairs of levels is nearer than the paper's weights without noise."""
    texts, good = [], 0
    panels = [panel for panel in results.panels() if results.xs(panel, WELL_SPECIFIED)]
    for panel in panels:
        plain = results.middle(panel, NO_NOISE, EPSILON)
        better = results.middle(panel, WELL_SPECIFIED, results.xs(panel, WELL_SPECIFIED)[0])
        good += 0 < better < plain
        texts.append(f"{panel}: {plain:.2f}, with shares of pairs {better:.2f}")
    return Verdict(_held(good, len(panels)), "; ".join(texts)) if panels else UNTESTED


# -- extreme cases ---------------------------------------------------------------------------------


def best_where_same(measure: str) -> Check:
    """Errors are least with the private rows as public ones."""
    return lambda results: _cases(results, measure, lambda errors: errors[SAME] <= min(errors.values()))


def uniform_is_worst(measure: str) -> Check:
    """Errors are largest with uniform public rows."""
    return lambda results: _cases(results, measure, lambda errors: errors[UNIFORM] >= max(errors.values()))


def not_much_worse(measure: str) -> Check:
    """Errors with skewed public rows are less than one and a half times those with the private rows."""
    return lambda results: _cases(results, measure, lambda errors: errors[SKEWED] <= 1.5 * errors[SAME])


def _cases(results: Results, measure: str, right: Callable[[dict[str, float]], bool]) -> Verdict:
    """A check of the printed method's errors in the three cases; tilting's are shown too."""
    errors, ours = (
        {case: results.middle(case, method, EPSILON, measure) for case in (SAME, SKEWED, UNIFORM)}
        for method in (PRINTED, TILTING)
    )
    texts = [", ".join(f"{one:.3f} ({case})" for case, one in found.items()) for found in (errors, ours)]
    return Verdict("held" if right(errors) else "not held", f"{texts[0]}; tilting: {texts[1]}")


def equal_weights(results: Results) -> Verdict:
    """Effective rows of all rows, without noise."""
    found = {case: results.middle(case, NO_NOISE, EPSILON, WORTH) for case in (SAME, SKEWED, UNIFORM)}
    return Verdict(
        "held" if found[SAME] > 0.95 else "not held",
        ", ".join(f"worth {one:.0%} of the rows ({case})" for case, one in found.items()),
    )


def useful(results: Results) -> Verdict:
    """Median distances are clearly below the norm of the private SVM, which is the distance of coefficients that are
    all zero.
    """
    length = results.middle(SAME, OWN, EPSILON, NORM)
    found = {case: results.middle(case, PRINTED, EPSILON) for case in (SAME, SKEWED, UNIFORM)}
    good = sum(one < CLEARLY * length for one in found.values())
    return Verdict(
        _held(good, 3), f"norm {length:.2f}; " + ", ".join(f"{one:.2f} ({case})" for case, one in found.items())
    )
