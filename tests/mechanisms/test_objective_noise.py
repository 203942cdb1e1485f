"""The random linear term: its parts cost what is claimed, no less noise would do, and the least is chosen."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.objective import objective_noise
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise, Price
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.privacy import PrivacyError, SeededNoise
from privfit.privacy.parts import KNorm
from privfit.rows import CachedDesign, Rows
from privfit.schema import RowNorms
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.lengths import length
from tests.support.objective_noise import (
    CLASSES,
    MIXED,
    corner_rows,
    corner_slopes,
    drawn,
    gradients_of,
    planned,
    schema_of,
)

schemas = st.tuples(st.integers(0, 3), st.integers(0, 8), st.lists(st.integers(3, 20), max_size=4)).filter(
    lambda s: s[0] + s[1] + len(s[2])
)


ESTIMATED = 0.02
"""Groups are chosen by an estimate of their noise."""


# -- pure noise ------------------------------------------------------------------------------------


@given(schemas, st.sampled_from([1, 3, 5]), st.floats(0.05, 8), st.integers(1, 3), st.booleans())
@settings(max_examples=60)
def test_the_parts_of_mixed_noise_share_epsilon_and_cover_every_column_once(
    shape: tuple, classes: int, epsilon: float, people: int, replaced: bool
) -> None:
    gradients = gradients_of(schema_of(*shape), classes=classes, people=people, replaced=replaced)
    if not gradients.norms.blocks:
        return
    tilt = objective_noise("mixed", gradients, Price(epsilon, 0.0), None)
    assert sorted(itertools.chain.from_iterable(part.columns for part in tilt.groups)) == list(
        range(gradients.norms.columns)
    )
    spent = sum(part.sensitivity / part.scale for part in tilt.groups)
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon)


@pytest.mark.parametrize("kind", ["laplace", "linf", "l2", "mixed"])
@pytest.mark.parametrize("classes", [1, 3, 5])
@pytest.mark.parametrize("log_determinant", [None, 0.05])
def test_no_row_changes_a_group_by_more_than_its_sensitivity(
    kind: str, classes: int, log_determinant: float | None
) -> None:
    """Gradients of rows at the corners, in the norm of each part, against what the noise is made for."""
    gradients = gradients_of(MIXED, classes=classes, replaced=False)
    tilt = objective_noise(kind, gradients, Price(0.5, 0.0), log_determinant)
    rng = np.random.default_rng(classes)
    longest = np.zeros(len(tilt.groups))
    for row in corner_rows(gradients.norms, rng, 40):
        for slopes in corner_slopes(gradients, rng):
            pull = np.outer(row, slopes)
            for place, part in enumerate(tilt.groups):
                own = pull[list(part.columns)].ravel()
                longest[place] = max(longest[place], length(part.kind, own, part.blocks))
    reaches = np.array([part.sensitivity for part in tilt.groups])
    assert (longest <= reaches * (1 + 1e-12)).all()
    assert longest == pytest.approx(reaches)  # and some row moves it as far
    assert sum(part.sensitivity / part.scale for part in tilt.groups) == pytest.approx(0.5 - (log_determinant or 0))


def test_blocks_of_every_real_row_add_up_to_exactly_one() -> None:
    """Octahedra and tied normal noise rely on it: levels, bins, knots, on a logarithm too, clipped values and absent
    ones.
    """
    schema = pf.Schema(
        [
            pf.Numeric("x", 0.1, 7.3),
            pf.Numeric("wide", 1e-3, 1e6, fill=5.0),
            pf.Category("c", list("abc"), other=True),
            pf.Numeric("b", 0, 1, bins=5, fill="missing"),
        ],
        target=CLASSES,
    )
    geometry = pf.ObjectivePerturbation().geometry(schema, ERMProblem(LOGISTIC), "splines")
    blocks = RowNorms.of(geometry).blocks
    assert len(blocks) == 4
    rng = np.random.default_rng(0)
    for i in range(60):
        row = {
            "x": [rng.uniform(-1, 9)],
            "wide": [10 ** rng.uniform(-5, 8) if i % 5 else None],
            "c": [rng.choice(list("abcz"))],
        }
        frame = pl.DataFrame(
            {**row, "b": [rng.uniform(-0.5, 1.5) if i % 7 else None], "y": ["a"]},
            schema_overrides={"wide": pl.Float64, "b": pl.Float64},
        )
        kept = CachedDesign(Rows(open_table(frame), schema, geometry))
        encoded = kept.gradient(np.zeros((geometry.n_columns, 1)), lambda z, y: np.ones_like(z), 1.0)[:, 0]
        assert encoded.min() >= 0
        assert [encoded[start:stop].sum() for start, stop in blocks] == [1.0] * 4


def test_levels_without_a_column_for_the_last_one_are_no_blocks() -> None:
    with pytest.raises(TypeError, match="do not add up to one"):
        RowNorms.of(MIXED.geometry(paper=True))


@given(schemas.filter(lambda s: bool(s[2]) and s[0] + s[1] + len(s[2]) > 1), st.integers(0, 10**6))
@settings(max_examples=40)
def test_no_other_shares_of_epsilon_would_make_less_mixed_noise(shape: tuple, seed: int) -> None:
    gradients = gradients_of(schema_of(*shape))
    tilt = objective_noise("mixed", gradients, Price(1.0, 0.0), None)
    shares = np.array([part.sensitivity / part.scale for part in tilt.groups])
    other = shares * np.exp(np.random.default_rng(seed).normal(0, 0.3, len(shares)))
    other /= other.sum()
    parts = tuple(replace(part, scale=part.sensitivity / share) for part, share in zip(tilt.groups, other, strict=True))
    assert replace(tilt, groups=parts).sd >= tilt.sd * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["laplace", "linf", "l2", "mixed", "gaussian"])
@pytest.mark.parametrize("classes", [1, 3])
def test_drawn_noise_has_the_size_that_kinds_are_compared_by(kind: str, classes: int) -> None:
    gradients = gradients_of(MIXED, classes=classes)
    tilt = objective_noise(kind, gradients, Price(1.0, 1e-6), None)
    noise = SeededNoise(7)
    draws = np.stack([drawn(tilt, noise) for _ in range(1500)])
    assert draws.shape == (1500, gradients.norms.columns, classes)
    assert math.sqrt(np.mean(draws**2)) == pytest.approx(tilt.sd, rel=0.06)
    for group, part in zip(tilt.groups, tilt.parts(), strict=True):  # every column has the noise of its own group
        own = draws[:, list(group.columns)]
        assert math.sqrt(np.mean(own**2)) == pytest.approx(part.sd, rel=0.1)
    assert abs(np.mean(draws)) < 0.1 * tilt.sd


def lattice_price(tilt: ObjectiveNoise) -> Fraction:
    """What a step more in every value costs, at the scales that are drawn with; balls are drawn as real numbers."""
    price = Fraction(0)
    for group, part in zip(tilt.groups, tilt.parts(), strict=True):
        if group.kind == "blocks":  # all values but one of a block, and the sum, are rounded; the last is what is left
            price += (2 * max(group.blocks) - 1) / Fraction(part.scale)
        elif group.kind != "l2":
            steps = round(length(group.kind, np.ones(len(group.columns) * tilt.classes), group.blocks))
            price += steps / Fraction(part.scale)
    return price


@given(schemas, st.floats(0.05, 5), st.sampled_from(["laplace", "linf", "l2", "mixed"]), st.sampled_from([1, 4]))
@settings(max_examples=60)
def test_the_lattice_is_paid_for(shape: tuple, epsilon: float, kind: str, classes: int) -> None:
    """Every move is longer by what rounding can add, in exact fractions, and the claim still holds."""
    gradients = gradients_of(schema_of(*shape), classes=classes)
    if kind == "mixed" and not gradients.norms.blocks:
        return
    tilt = objective_noise(kind, gradients, Price(epsilon, 0.0), None)
    spent, parts = lattice_price(tilt), tilt.parts()
    for group, part in zip(tilt.groups, parts, strict=True):
        spent += Fraction(group.sensitivity) * part.unit / Fraction(part.scale)
        assert part.sensitivity >= Fraction(group.sensitivity) * part.unit
    assert spent <= Fraction(epsilon)
    assert spent > Fraction(epsilon) * Fraction(999, 1000)
    assert tilt.values == gradients.norms.columns * classes == sum(part.size for part in parts)


# -- which noise is chosen -------------------------------------------------------------------------


def test_a_cube_is_chosen_for_numbers_and_signs() -> None:
    assert planned(schema_of(2, 0, [])).noise.kind == "linf"
    assert planned(schema_of(0, 30, [])).noise.kind == "linf"


def test_mixed_noise_is_chosen_for_categories_of_different_widths_and_for_numbers_beside_them() -> None:
    assert planned(schema_of(0, 0, [3, 20])).noise.kind == "mixed"
    assert planned(schema_of(3, 5, [4, 4])).noise.kind == "mixed"
    assert [part.kind for part in planned(schema_of(3, 5, [20])).noise.groups] == ["linf", "laplace"]
    assert [part.blocks for part in planned(schema_of(3, 5, [4, 4])).noise.groups] == [(1,) * 8 + (4, 4)]
    assert [part.kind for part in planned(schema_of(3, 5, [20, 20])).noise.groups] == ["linf", "blocks"]
    assert [part.blocks for part in planned(schema_of(0, 1, [3, 3, 12, 13])).noise.groups] == [(1, 3, 3), (12, 13)]


@given(schemas.filter(lambda s: bool(s[2])), st.sampled_from([1, 3]), st.integers(0, 10**6))
@settings(max_examples=40)
def test_no_other_groups_of_blocks_would_make_less_mixed_noise(shape: tuple, classes: int, seed: int) -> None:
    """Blocks dealt to groups at random, with the best shares of epsilon; one group; and each block alone."""
    gradients = gradients_of(schema_of(*shape), classes=classes)
    norms, rng = gradients.norms, np.random.default_rng(seed)
    blocks = [tuple(range(*ends)) for ends in norms.blocks]
    blocks += [(column,) for column in norms.singles] if classes == 1 else []
    of_singles = (
        gradients.slope_norm["linf"] * group_sd([1] * len(norms.singles) * classes)
        if norms.singles and classes > 1
        else 0.0
    )
    least = objective_noise("mixed", gradients, Price(1.0, 0.0), None).sd
    for groups in [rng.integers(0, 4, len(blocks)), np.zeros(len(blocks), int), np.arange(len(blocks))]:
        costs = [len(norms.singles) * of_singles**2]
        for which in set(groups.tolist()):
            widths = [len(block) * classes for block, group in zip(blocks, groups, strict=True) if group == which]
            costs.append(sum(widths) / classes * (gradients.slope_norm["l1"] * group_sd(widths)) ** 2)
        total = sum(cost ** (1 / 3) for cost in costs) ** 3
        neighbours = gradients.sensitivity["linf"] / gradients.gradient_norm["linf"]
        assert least <= neighbours * math.sqrt(total / norms.columns) * (1 + ESTIMATED)


def group_sd(widths: list[int]) -> float:
    """The size of noise of scale 1 on blocks with one draw: L-infinity, Laplace or block-norm noise."""
    if max(widths) == 1:
        return math.sqrt((len(widths) + 1) * (len(widths) + 2) / 3)
    return math.sqrt(2) if len(widths) == 1 else KNorm(norm="blocks", size=sum(widths), blocks=tuple(widths)).unit_sd


@pytest.mark.parametrize(
    ("narrow", "wide"), [([10] * 100, [20_000]), ([5] * 200, [5_000] * 3), ([10] * 300, [20_000] * 2)]
)
def test_a_very_wide_category_has_noise_of_its_own_and_leaves_room_for_the_rest(
    narrow: list[int], wide: list[int]
) -> None:
    """Scales far apart on one lattice: both fit 64 bits, and all noise is less than with a share of epsilon for every
    block.
    """
    plan = planned(schema_of(0, 0, narrow + wide))
    assert plan.noise.kind == "mixed"
    assert [part.kind for part in plan.noise.groups] == ["blocks"] * math.ceil(sum(narrow) / 2000) + ["laplace"] * len(
        wide
    )
    assert plan.noise.lattice_cost < 1e-3
    gradients = plan.gradients
    each = gradients.sensitivity["l1"] / len(narrow + wide)
    alone = (
        each
        * math.sqrt(sum((2 * width) ** (1 / 3) for width in narrow + wide) ** 3 / gradients.norms.columns)
        / (1 - FOR_CERTIFICATE)
    )
    assert plan.sd < 0.95 * alone


@given(schemas, st.floats(0.01, 20), st.sampled_from(["laplace", "linf", "l2", "mixed"]), st.sampled_from([1, 3]))
@settings(max_examples=60)
def test_what_the_lattice_costs_is_counted_in_the_ridge_without_cost(
    shape: tuple, epsilon: float, kind: str, classes: int
) -> None:
    """All steps over the scales that are drawn with, in exact fractions."""
    gradients = gradients_of(schema_of(*shape), classes=classes)
    if kind == "mixed" and not gradients.norms.blocks:
        return
    tilt = objective_noise(kind, gradients, Price(epsilon, 0.0), None)
    assert lattice_price(tilt) <= Fraction(tilt.lattice_cost) * (1 + Fraction(1, 10**9))
    assert tilt.lattice_cost < 1e-4 * epsilon


@pytest.mark.parametrize("unit", [1e-150, 1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e9])
def test_losses_in_tiny_and_huge_units_are_planned_or_refused_in_a_sentence(unit: float, epsilon: float) -> None:
    steep = ConvexLoss(
        lambda z, y: unit * np.tanh(z), lambda z, y: unit * np.ones_like(z), unit, unit, name="a loss in other units"
    )
    outcome = "planned"
    try:
        assert planned(MIXED, steep, epsilon=epsilon).sd > 0
    except PrivacyError:
        outcome = "refused"
    assert outcome == "planned" or unit > 1 or epsilon != 1


def test_every_column_has_the_deviation_of_its_block() -> None:
    """Narrow blocks have more noise than wide ones of the same part."""
    tilt = objective_noise("mixed", gradients_of(schema_of(0, 1, [3, 3, 12, 13])), Price(1.0))
    noise = SeededNoise(8)
    draws = np.stack([drawn(tilt, noise)[:, 0] for _ in range(4000)])
    covariance = tilt.covariance()
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(np.diag(covariance)), rtol=0.12)
    np.testing.assert_allclose(
        np.corrcoef(draws.T) * np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))),
        covariance,
        atol=0.12 * covariance.max(),
    )
    assert tilt.largest_variance() == pytest.approx(np.linalg.norm(covariance, 2))
    assert len(set(tilt.sds.round(9).tolist())) == 4


def test_laplace_noise_is_chosen_where_mixed_noise_is_the_same() -> None:
    assert planned(schema_of(0, 0, [6])).noise.kind == "laplace"


def test_normal_noise_is_chosen_with_a_delta_where_rows_have_many_columns() -> None:
    wide = schema_of(0, 30, [5] * 30)
    assert planned(wide, delta=1e-6).noise.kind == "gaussian"
    assert planned(wide).noise.kind == "mixed"
    assert planned(schema_of(1, 0, []), delta=1e-12, fit_intercept=False).noise.kind != "gaussian"


@given(schemas, st.sampled_from([0.0, 1e-9, 1e-3]), st.floats(0.1, 4), st.sampled_from([1, 3, 4]))
@settings(max_examples=40)
def test_noise_is_never_larger_than_plain_laplace_noise(
    shape: tuple, delta: float, epsilon: float, classes: int
) -> None:
    schema = schema_of(*shape)
    chosen = planned(schema, classes=classes, epsilon=epsilon, delta=delta)
    plain = planned(schema, classes=classes, epsilon=epsilon, delta=delta, noise="laplace")
    assert chosen.sd <= plain.sd * (1 + 1e-12)
    assert chosen.event.delta in (0.0, delta)


def test_a_delta_is_spent_only_where_it_saves_noise() -> None:
    for shape in [(1, 0, []), (3, 2, [4]), (0, 30, []), (0, 0, [8] * 14)]:
        pure, either = planned(schema_of(*shape)), planned(schema_of(*shape), delta=1e-6)
        assert either.sd <= pure.sd * (1 + 1e-12)
        assert either.event.delta == 0.0 or either.sd < 0.97 * pure.sd


def test_normal_noise_without_a_delta_is_refused() -> None:
    with pytest.raises(PrivacyError) as refused:
        planned(MIXED, noise="gaussian")
    assert_told_in_order(str(refused.value), ["noise='gaussian' was given with delta=0", "it needs", "Give one"])
