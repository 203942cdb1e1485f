"""Polynomials for losses: known coefficients, known errors, the paper's decomposition, and refusals."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import iv

from privfit.losses import SQUARED, Part, PolynomialLoss, huber, logistic, poisson, squared
from tests.support.beats import assert_told_in_order

CLASSES = np.array([-1.0, 1.0])
SCALED = np.linspace(-1, 1, 101)


# -- logistic --------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_taylor_of_the_logistic_loss_has_the_known_coefficients(degree: int) -> None:
    known = np.array([[math.log(2)] * 2, [0.5, -0.5], [1 / 8] * 2, [0.0] * 2, [-1 / 192] * 2])
    found = logistic(degree, method="taylor").coefficients(CLASSES)
    np.testing.assert_allclose(found, known[: degree + 1], atol=1e-7)


def test_the_error_of_taylor_on_the_unit_interval_is_the_tight_one() -> None:
    """The paper prints 0.015 for |z| <= 1; the remainder has one sign and stays within 0.0049."""
    assert logistic(interval=1, method="taylor").approximation_error(CLASSES) == pytest.approx(0.00489, abs=1e-5)


@pytest.mark.parametrize(
    ("interval", "curvature"),
    [(1, 0.1201), (2, 0.1082), (3, 0.0944), (4, 0.0817), (5, 0.0709), (6, 0.0621), (8, 0.0492)],
)
def test_the_chebyshev_curvature_of_the_logistic_loss(interval: float, curvature: float) -> None:
    assert logistic(interval=interval).coefficients(CLASSES)[2] == pytest.approx([curvature] * 2, abs=6e-5)


@pytest.mark.parametrize(("interval", "by_chebyshev", "by_taylor"), [(4, 0.069, 0.675), (6, 0.19, 2.19)])
def test_chebyshev_is_far_closer_than_taylor_on_wide_intervals(
    interval: float, by_chebyshev: float, by_taylor: float
) -> None:
    assert logistic(interval=interval).approximation_error(CLASSES) == pytest.approx(by_chebyshev, abs=1e-3)
    assert logistic(interval=interval, method="taylor").approximation_error(CLASSES) == pytest.approx(
        by_taylor, abs=1e-2
    )


def test_the_paper_s_decomposition_gives_the_same_expansion() -> None:
    """Section 5.1: f_1 = log(1 + e^g) of g = z, and f_2 = -g of g = y z with y in {0, 1}; each has its own point."""
    loss = PolynomialLoss.from_parts(
        [Part(lambda g: np.logaddexp(0, g)), Part(lambda g: -g, slope=lambda y: (1 + y) / 2, at=2.5)],
        interval=1,
        link="logistic",
    )
    np.testing.assert_allclose(
        loss.coefficients(CLASSES), logistic(interval=1, method="taylor").coefficients(CLASSES), atol=1e-8
    )
    assert loss.approximation_error(CLASSES) == pytest.approx(0.00489, abs=1e-5)


def test_parts_are_expanded_at_their_own_points() -> None:
    """e^(y + 2z) at g = 1 is e (1 + (y + 2z - 1) + (y + 2z - 1)^2 / 2)."""
    y, z = np.array([-0.5, 0.2, 2.0]), 0.37
    given = Part(np.exp, shift=lambda y: y, slope=2.0, at=1.0, derivatives=(math.e,) * 3)
    found = Part(np.exp, shift=lambda y: y, slope=2.0, at=1.0)
    for part in (given, found):
        coefficients = PolynomialLoss.from_parts([part], interval=2).coefficients(y)
        inner = y + 2 * z - 1
        np.testing.assert_allclose(z ** np.arange(3) @ coefficients, math.e * (1 + inner + inner**2 / 2), rtol=1e-8)


def test_parts_can_be_mixed() -> None:
    mixed = PolynomialLoss.from_parts(
        [Part(lambda g: np.logaddexp(0, g), method="chebyshev"), Part(lambda g: -g / 2, slope=lambda y: 1 + y)]
    )
    np.testing.assert_allclose(mixed.coefficients(CLASSES)[1:], logistic().coefficients(CLASSES)[1:], atol=1e-8)


# -- other losses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [1.0, 2.0, 3.0])
def test_the_chebyshev_series_of_the_poisson_loss_is_that_of_the_exponential(interval: float) -> None:
    """e^(Lx) has the series I_0 + 2 sum I_k T_k with Bessel's functions at L."""
    y = np.array([0.0, 1.0, 7.0])
    zeroth, first, second = poisson(2, interval).coefficients(y)
    np.testing.assert_allclose(second, 4 * iv(2, interval) / interval**2, rtol=1e-12)
    np.testing.assert_allclose(first, 2 * iv(1, interval) / interval - y, rtol=1e-12)
    np.testing.assert_allclose(zeroth, iv(0, interval) - 2 * iv(2, interval), rtol=1e-12)


def test_taylor_of_the_poisson_loss() -> None:
    y = np.array([0.0, 3.0])
    known = [[1, 1], 1 - y, [1 / 2] * 2, [1 / 6] * 2, [1 / 24] * 2]
    np.testing.assert_allclose(poisson(4, method="taylor").coefficients(y), known, atol=1e-7)


@pytest.mark.parametrize(
    "make", [lambda degree: poisson(degree), lambda degree: logistic(degree), lambda degree: huber(1.0, degree, 5.0)]
)
def test_more_degrees_follow_more_closely(make) -> None:
    errors = [make(degree).approximation_error([-1.0, 1.0]) for degree in (2, 4)]
    assert errors[1] < 0.7 * errors[0]


def test_the_huber_loss_curves_upward_and_pulls_no_harder_than_its_threshold() -> None:
    y = 5 * SCALED
    _, first, second = huber(1.0).on_target(-5, 5).coefficients(y)
    assert (second > 0).all()
    assert np.abs(first).max() <= 1.0
    assert second[0] < 0.1 * second.max(), "what lies far out hardly matters"
    np.testing.assert_allclose(first, -first[::-1], atol=1e-12)


def test_the_smooth_huber_loss_has_the_derivatives_that_are_found_from_its_values() -> None:
    y = np.linspace(-3, 3, 13)
    given = huber(1.5, 4, (-3, 3), "taylor")
    found = PolynomialLoss.fit(given.parts[0].f, degree=4, interval=(-3, 3), method="taylor")
    np.testing.assert_allclose(given.coefficients(y), found.coefficients(y), atol=1e-5)


def test_least_squares_is_a_polynomial_already() -> None:
    y = 100_000 + 100_000 * SCALED
    loss = squared().on_target(0, 200_000)
    np.testing.assert_allclose(loss.coefficients(y), [y**2, -2 * y, np.ones(101)], rtol=1e-9, atol=1e-3)
    assert loss.approximation_error(y) == 0.0


@given(
    st.lists(st.floats(-5, 5), min_size=3, max_size=5),
    st.floats(-3, 3),
    st.floats(0.5, 4),
    st.sampled_from(["chebyshev", "taylor"]),
)
def test_a_polynomial_is_its_own_approximation(powers: list[float], middle: float, half: float, method) -> None:
    def f(z, y):
        return sum((power + y) * z**j for j, power in enumerate(powers))

    loss = PolynomialLoss.fit(f, degree=len(powers) - 1, interval=(middle - half, middle + half), method=method)
    size = sum((abs(power) + 1) * (abs(middle) + half) ** j for j, power in enumerate(powers))
    np.testing.assert_allclose(loss.coefficients([1.0], middle, half).sum(), f(middle + half, 1.0), atol=1e-6 * size)
    assert loss.approximation_error([1.0, -0.5]) <= 1e-6 * size


@pytest.mark.parametrize("loss", [logistic(), logistic(4, 6), poisson(3), huber(0.7, 4, 2.0)])
def test_the_error_on_the_grid_is_the_error(loss: PolynomialLoss) -> None:
    """A grid four hundred times as fine finds hardly more."""
    y = 0.31
    low, high = loss.bounds
    z = np.linspace(low, high, 800_001)
    finest = np.abs(loss.parts[0].value(z, y) - np.polynomial.polynomial.polyval(z, loss.coefficients([y])[:, 0])).max()
    assert loss.approximation_error([y]) == pytest.approx(finest, rel=1e-3)


# -- losses that moments can fit -------------------------------------------------------------------


def test_losses_that_are_quadratic_in_the_scaled_target_are_found_out() -> None:
    plain = squared().on_target(-1, 1).as_quadratic(SCALED, SCALED)
    assert plain is not None
    assert (plain.curvature, plain.slope, plain.offset) == pytest.approx((SQUARED.curvature, SQUARED.slope, 0.0))
    counts = poisson(2).as_quadratic(SCALED, 10 + 10 * SCALED)
    assert counts is not None
    assert counts.slope == pytest.approx(10)
    truncated = logistic(method="taylor").as_quadratic(CLASSES, CLASSES)
    assert truncated is not None
    assert (truncated.curvature, truncated.slope, truncated.offset) == pytest.approx((1 / 8, 1 / 2, 0))
    third = logistic(3).as_quadratic(CLASSES, CLASSES)
    assert third is not None, "its third coefficient is zero"


def test_losses_that_are_not_are_left_alone() -> None:
    assert logistic(4).as_quadratic(CLASSES, CLASSES) is None
    assert poisson(3).as_quadratic(SCALED, 10 + 10 * SCALED) is None
    assert huber(1.0, interval=2).as_quadratic(SCALED, SCALED) is None
    assert PolynomialLoss.fit(lambda z, y: z**2 - y**2 * z).as_quadratic(SCALED, SCALED) is None, (
        "its slope is no line in the target"
    )


def test_a_loss_survives_copies_and_ready_made_ones_survive_a_pickle() -> None:
    for loss in (squared(), logistic(4), poisson(3), huber(2.0), huber(2.0, 2, 3.0, "taylor")):
        again = pickle.loads(pickle.dumps(loss)).on_target(-1, 1)
        np.testing.assert_array_equal(again.coefficients(CLASSES), loss.on_target(-1, 1).coefficients(CLASSES))
    loss = PolynomialLoss.fit(lambda z, y: (z - y) ** 4, degree=4)
    assert copy.deepcopy(loss) == loss
    assert "degree=4" in repr(loss)
    assert " at 0x" not in repr(loss)


# -- refusals --------------------------------------------------------------------------------------


def f(z, y):
    return (z - y) ** 2


REFUSALS = [
    (lambda: PolynomialLoss.fit(f, degree=5), ["degree=5", "2, 3 or 4", "Use 2"]),
    (lambda: PolynomialLoss.fit(f, degree=True), ["degree=True", "2, 3 or 4", "Use 2"]),
    (lambda: PolynomialLoss.fit(f, interval=-1), ["interval=-1", "positive number", "Write where"]),
    (lambda: PolynomialLoss.fit(f, interval=(2, 1)), ["interval=(2, 1)", "a pair (low, high)", "Write where"]),
    (lambda: PolynomialLoss.fit(f, interval=math.nan), ["interval=nan", "positive number", "Write where"]),
    (lambda: PolynomialLoss.fit(f, method="spline"), ["method='spline'", "'chebyshev' or 'taylor'", "Use 'chebyshev'"]),
    (lambda: PolynomialLoss.fit(f, link="probit"), ["link='probit'", "one of", "Use 'identity'"]),
    (lambda: PolynomialLoss.fit("squares"), ["f='squares'", "a function", "Write"]),
    (lambda: PolynomialLoss.fit(f, method="taylor", at=math.inf), ["at=inf", "finite number", "Leave it out"]),
    (
        lambda: PolynomialLoss.fit(f, method="taylor", derivatives=[f]),
        ["1 derivatives", "it needs 3", "leave them out"],
    ),
    (lambda: PolynomialLoss.from_parts([]), ["no parts", "nothing to minimise", "at least one"]),
    (lambda: PolynomialLoss.from_parts([f]), ["part of type function", "pf.Part", "Write one"]),
    (lambda: huber(0.0), ["threshold=0.0", "positive number", "Use"]),
    (lambda: huber(1.0, method="taylor"), ["method='taylor' and interval='target'", "needs a point", "as a pair"]),
    (lambda: squared().bounds, ["interval='target'", "depend on the target", "on_target"]),
    (
        lambda: PolynomialLoss.fit(lambda z, y: np.abs(z), method="taylor").coefficients([0.0]),
        ["at 0", "smooth function", "derivatives=["],
    ),
    (
        lambda: PolynomialLoss.fit(lambda z, y: np.log(z - y)).coefficients([0.0]),
        ["[-4, 4]", "finite", "Choose an interval"],
    ),
    (
        lambda: PolynomialLoss.fit(lambda z, y: np.ones(7)).coefficients([0.0]),
        ["shape (7,)", "broadcast", "without loops"],
    ),
]


@pytest.mark.parametrize(("act", "beats"), REFUSALS)
def test_a_loss_that_means_nothing_is_refused_in_three_beats(act, beats) -> None:
    with pytest.raises(ValueError) as refusal:
        act()
    assert_told_in_order(str(refusal.value), beats)
