"""The random linear term: its parts cost what is claimed and no less noise would do, and normal noise keeps its delta, recomputed and integrated."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss, robust, smooth_hinge, tempered_logistic
from privfit.mechanisms.minima import Plan, Risk
from privfit.mechanisms.rules import FOR_CERTIFICATE, coupling_for
from privfit.mechanisms.tilts import FLAT_CORNERS, Tilt, candidates, free_ridge, make_tilt, objective_delta
from privfit.privacy import Budget, PrivacyError, SeededNoise, Terms
from privfit.privacy.octahedra import octahedra_sd
from privfit.statistics import Gradients, RowNorms
from tests.support.beats import assert_told_in_order
from tests.support.lengths import length

LOGCOSH = ConvexLoss(
    slope=lambda z, y: np.tanh(z - y),
    curvature=lambda z, y: 1 - np.tanh(z - y) ** 2,
    most_slope=1.0,
    most_curvature=1.0,
    name="log-cosh loss",
)
CLASSES = pf.Category("y", ["a", "b"])
MIXED = pf.Schema(
    [pf.Numeric("n", 0, 9), pf.Category("s", [0, 1]), pf.Category("c", list(range(5))), pf.Category("d", list(range(12)))], target=CLASSES
)
schemas = st.tuples(st.integers(0, 3), st.integers(0, 8), st.lists(st.integers(3, 20), max_size=4)).filter(
    lambda s: s[0] + s[1] + len(s[2])
)


def schema_of(numbers: int, signs: int, widths: list[int]) -> pf.Schema:
    columns = [pf.Numeric(f"n{i}", -1, 1) for i in range(numbers)] + [pf.Category(f"s{i}", [0, 1]) for i in range(signs)]
    return pf.Schema([*columns, *(pf.Category(f"c{i}", list(range(width))) for i, width in enumerate(widths))], target=CLASSES)


def gradients_of(schema: pf.Schema, loss: ConvexLoss = LOGISTIC, classes: int = 1, people: int = 1, replaced: bool = True) -> Gradients:
    geometry = pf.ObjectivePerturbation().geometry(schema, "slope", Risk(loss))
    return Gradients(RowNorms.of(geometry), loss, classes, coupling_for(loss, classes), people, replaced)


def planned(
    schema: pf.Schema,
    loss: ConvexLoss = LOGISTIC,
    *,
    classes: int = 1,
    people: int = 1,
    adjacency: str = "replace-one",
    epsilon: float = 1.0,
    delta: float = 0.0,
    fit_intercept: bool = True,
    rows: int = 1000,
    **settings_: object,
) -> Plan:
    mechanism = pf.ObjectivePerturbation(**settings_)  # type: ignore[arg-type]
    risk = Risk(loss, fit_intercept, classes, coupling_for(loss, classes))
    geometry = mechanism.geometry(schema, "slope", risk)
    terms = Terms(Budget(epsilon, delta), adjacency, people)  # type: ignore[arg-type]
    return mechanism.plan(geometry, terms, risk, rows if adjacency == "replace-one" else None)


# -- pure noise --------------------------------------------------------------------------------------------------------------------


@given(schemas, st.sampled_from([1, 3, 5]), st.floats(0.05, 8), st.integers(1, 3), st.booleans())
@settings(max_examples=60)
def test_the_parts_of_mixed_noise_share_epsilon_and_cover_every_column_once(
    shape: tuple, classes: int, epsilon: float, people: int, replaced: bool
) -> None:
    gradients = gradients_of(schema_of(*shape), classes=classes, people=people, replaced=replaced)
    if not gradients.norms.blocks:
        assert "mixed" not in candidates(gradients, 0.0)
        return
    tilt = make_tilt("mixed", gradients, epsilon, 0.0, None)
    assert sorted(itertools.chain.from_iterable(part.columns for part in tilt.parts)) == list(range(gradients.norms.columns))
    spent = sum(part.reach / part.scale for part in tilt.parts)
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon)


@pytest.mark.parametrize("kind", ["laplace", "linf", "l2", "mixed"])
@pytest.mark.parametrize("classes", [1, 3, 5])
@pytest.mark.parametrize("bend_cost", [None, 0.05])
def test_no_row_moves_a_part_further_than_its_reach(kind: str, classes: int, bend_cost: float | None) -> None:
    """Gradients of rows at the corners, in the norm of each part, against what the noise is made for."""
    gradients = gradients_of(MIXED, classes=classes, replaced=False)
    tilt = make_tilt(kind, gradients, 0.5, 0.0, bend_cost)
    rng = np.random.default_rng(classes)
    longest = np.zeros(len(tilt.parts))
    for row in corner_rows(gradients.norms, rng, 40):
        for slopes in corner_slopes(gradients, rng):
            pull = np.outer(row, slopes)
            for place, part in enumerate(tilt.parts):
                own = pull[list(part.columns)].ravel()
                longest[place] = max(longest[place], length(part.noise, own, part.widths))
    reaches = np.array([part.reach for part in tilt.parts])
    assert (longest <= reaches * (1 + 1e-12)).all()
    assert longest == pytest.approx(reaches)  # and some row moves it as far
    assert sum(part.reach / part.scale for part in tilt.parts) == pytest.approx(0.5 - (bend_cost or 0))


def corner_rows(norms: RowNorms, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Rows as long as rows can be: signs in single columns, one level per block."""
    rows = []
    for _ in range(count):
        row = np.zeros(norms.columns)
        row[list(norms.singles)] = rng.choice([-1.0, 1.0], len(norms.singles))
        for start, stop in norms.blocks:
            row[rng.integers(start, stop)] = 1.0
        rows.append(row)
    return rows


def corner_slopes(gradients: Gradients, rng: np.random.Generator) -> list[np.ndarray]:
    """The corners of what slopes a row can have."""
    most, classes = gradients.most_slope, gradients.classes
    if gradients.coupling == "one":
        return [np.array([most])]
    if gradients.coupling == "one-vs-rest":
        return [most * rng.choice([-1.0, 1.0], classes) for _ in range(4)]
    return [np.eye(classes)[1] - np.eye(classes)[0], np.eye(classes)[0] - np.eye(classes)[-1]]


@given(schemas.filter(lambda s: bool(s[2]) and s[0] + s[1] + len(s[2]) > 1), st.integers(0, 10**6))
@settings(max_examples=40)
def test_no_other_shares_of_epsilon_would_make_less_mixed_noise(shape: tuple, seed: int) -> None:
    gradients = gradients_of(schema_of(*shape))
    tilt = make_tilt("mixed", gradients, 1.0, 0.0, None)
    shares = np.array([part.reach / part.scale for part in tilt.parts])
    other = shares * np.exp(np.random.default_rng(seed).normal(0, 0.3, len(shares)))
    other /= other.sum()
    parts = tuple(replace(part, scale=part.reach / share) for part, share in zip(tilt.parts, other, strict=True))
    assert replace(tilt, parts=parts).sd >= tilt.sd * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["laplace", "linf", "l2", "mixed", "gaussian"])
@pytest.mark.parametrize("classes", [1, 3])
def test_drawn_noise_has_the_size_that_kinds_are_compared_by(kind: str, classes: int) -> None:
    gradients = gradients_of(MIXED, classes=classes)
    tilt = make_tilt(kind, gradients, 1.0, 1e-6, None)
    event = tilt.event("objective perturbation", Terms(Budget(1.0, 1e-6)))
    noise = SeededNoise(7)
    draws = np.stack([tilt.drawn(noise, event) for _ in range(1500)])
    assert draws.shape == (1500, gradients.norms.columns, classes)
    assert math.sqrt(np.mean(draws**2)) == pytest.approx(tilt.sd, rel=0.06)
    for i, part in enumerate(tilt.parts):  # every column has the noise of its own part
        own = draws[:, list(part.columns)]
        sd = event.part_sd(i)
        assert math.sqrt(np.mean(own**2)) == pytest.approx(sd, rel=0.1)
    assert abs(np.mean(draws)) < 0.1 * tilt.sd


@given(schemas, st.floats(0.05, 5), st.sampled_from(["laplace", "linf", "l2", "mixed"]), st.sampled_from([1, 4]))
@settings(max_examples=60)
def test_the_lattice_is_paid_for(shape: tuple, epsilon: float, kind: str, classes: int) -> None:
    """Every move is longer by what rounding can add, in exact fractions, and the claim still holds."""
    gradients = gradients_of(schema_of(*shape), classes=classes)
    if kind not in candidates(gradients, 0.0):
        return
    tilt = make_tilt(kind, gradients, epsilon, 0.0, None)
    event = tilt.event("objective perturbation", Terms(Budget(epsilon)))
    spent = Fraction(0)
    for part, scale in zip(tilt.parts, event.scales or (event.scale,), strict=True):
        a_step_each = np.ones(len(part.columns) * classes)
        longer = 0 if part.noise == "l2" else round(length(part.noise, a_step_each, part.widths))
        spent += (Fraction(part.reach) * event.unit + longer) / Fraction(scale)
    assert spent <= Fraction(epsilon)
    assert spent > Fraction(epsilon) * Fraction(999, 1000)
    assert event.n_values == gradients.norms.columns * classes == sum(event.parts or (event.n_values,))


# -- which noise is chosen ---------------------------------------------------------------------------------------------------------


def test_a_cube_is_chosen_for_numbers_and_signs() -> None:
    assert planned(schema_of(2, 0, [])).tilt.kind == "linf"
    assert planned(schema_of(0, 30, [])).tilt.kind == "linf"


def test_mixed_noise_is_chosen_for_categories_of_different_widths_and_for_numbers_beside_them() -> None:
    assert planned(schema_of(0, 0, [3, 20])).tilt.kind == "mixed"
    assert planned(schema_of(3, 5, [4, 4])).tilt.kind == "mixed"
    assert [part.noise for part in planned(schema_of(3, 5, [20])).tilt.parts] == ["linf", "laplace"]
    assert [part.noise for part in planned(schema_of(3, 5, [4, 4])).tilt.parts] == ["linf", "octahedra"]
    assert [part.widths for part in planned(schema_of(0, 1, [3, 3, 12, 13])).tilt.parts] == [(1, 3, 3), (12, 13)]


@given(schemas.filter(lambda s: bool(s[2])), st.sampled_from([1, 3]), st.integers(0, 10**6))
@settings(max_examples=40)
def test_no_other_groups_of_blocks_would_make_less_mixed_noise(shape: tuple, classes: int, seed: int) -> None:
    """Blocks dealt to groups at random, with the best shares of epsilon; one group; and each block alone."""
    gradients = gradients_of(schema_of(*shape), classes=classes)
    norms, rng = gradients.norms, np.random.default_rng(seed)
    blocks = [tuple(range(*ends)) for ends in norms.blocks]
    blocks += [(column,) for column in norms.singles] if classes == 1 else []
    of_singles = gradients.of_slopes("linf") * octahedra_sd([1] * len(norms.singles) * classes) if norms.singles and classes > 1 else 0.0
    least = make_tilt("mixed", gradients, 1.0, 0.0, None).sd
    for groups in [rng.integers(0, 4, len(blocks)), np.zeros(len(blocks), int), np.arange(len(blocks))]:
        costs = [len(norms.singles) * of_singles**2]
        for which in set(groups.tolist()):
            widths = [len(block) * classes for block, group in zip(blocks, groups, strict=True) if group == which]
            costs.append(sum(widths) / classes * (gradients.of_slopes("l1") * octahedra_sd(widths)) ** 2)
        total = sum(cost ** (1 / 3) for cost in costs) ** 3
        neighbours = gradients.sensitivity("linf") / gradients.of_one_row("linf")
        assert least <= neighbours * math.sqrt(total / norms.columns) * (1 + 1e-9)


@pytest.mark.parametrize(("narrow", "wide"), [([10] * 100, [20_000]), ([5] * 200, [5_000] * 3), ([10] * 300, [20_000] * 2)])
def test_a_very_wide_category_has_noise_of_its_own_and_leaves_room_for_the_rest(narrow: list[int], wide: list[int]) -> None:
    """Scales far apart on one lattice: both fit 64 bits, and all noise is less than with a share of epsilon for every block."""
    plan = planned(schema_of(0, 0, narrow + wide))
    assert plan.tilt.kind == "mixed"
    assert [part.noise for part in plan.tilt.parts] == ["octahedra"] + ["laplace"] * len(wide)
    assert plan.tilt.coarseness < 1e-3
    gradients = plan.gradients
    each = gradients.sensitivity("l1") / len(narrow + wide)
    alone = each * math.sqrt(sum((2 * width) ** (1 / 3) for width in narrow + wide) ** 3 / gradients.norms.columns) / (1 - FOR_CERTIFICATE)
    assert plan.sd < 0.95 * alone


@given(schemas, st.floats(0.01, 20), st.sampled_from(["laplace", "linf", "l2", "mixed"]), st.sampled_from([1, 3]))
@settings(max_examples=60)
def test_what_the_lattice_costs_is_counted_in_the_free_ridge(shape: tuple, epsilon: float, kind: str, classes: int) -> None:
    """All steps over the scales that are drawn with, in exact fractions."""
    gradients = gradients_of(schema_of(*shape), classes=classes)
    if kind not in candidates(gradients, 0.0):
        return
    tilt = make_tilt(kind, gradients, epsilon, 0.0, None)
    event = tilt.event("objective perturbation", Terms(Budget(epsilon)))
    steps = Fraction(0)
    for part, scale in zip(tilt.parts, event.scales or (event.scale,), strict=True):
        a_step_each = np.ones(len(part.columns) * classes)
        steps += (0 if part.noise == "l2" else round(length(part.noise, a_step_each, part.widths))) / Fraction(scale)
    assert steps <= Fraction(tilt.coarseness) * (1 + Fraction(1, 10**9))
    assert tilt.coarseness < 1e-4 * epsilon


@pytest.mark.parametrize("unit", [1e-150, 1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e9])
def test_losses_in_tiny_and_huge_units_are_planned_or_refused_in_a_sentence(unit: float, epsilon: float) -> None:
    steep = ConvexLoss(lambda z, y: unit * np.tanh(z), lambda z, y: unit * np.ones_like(z), unit, unit, name="a loss in other units")
    outcome = "planned"
    try:
        assert planned(MIXED, steep, epsilon=epsilon).sd > 0
    except PrivacyError:
        outcome = "refused"
    assert outcome == "planned" or unit > 1 or epsilon != 1


def test_every_column_has_the_deviation_of_its_block() -> None:
    """Narrow blocks have more noise than wide ones of the same part."""
    tilt = make_tilt("mixed", gradients_of(schema_of(0, 1, [3, 3, 12, 13])), 1.0, 0.0, None)
    event = tilt.event("objective perturbation", Terms(Budget(1.0)))
    noise = SeededNoise(8)
    draws = np.stack([tilt.drawn(noise, event)[:, 0] for _ in range(4000)])
    np.testing.assert_allclose(draws.std(axis=0), tilt.sds, rtol=0.12)
    assert len(set(tilt.sds.round(9).tolist())) == 4


def test_laplace_noise_is_chosen_where_mixed_noise_is_the_same() -> None:
    assert planned(schema_of(0, 0, [6])).tilt.kind == "laplace"


def test_normal_noise_is_chosen_with_a_delta_where_rows_have_many_columns() -> None:
    wide = schema_of(0, 12, [5] * 12)
    assert planned(wide, delta=1e-6).tilt.kind == "gaussian"
    assert planned(wide).tilt.kind == "mixed"
    assert planned(schema_of(1, 0, []), delta=1e-12, fit_intercept=False).tilt.kind != "gaussian"


@given(schemas, st.sampled_from([0.0, 1e-9, 1e-3]), st.floats(0.1, 4), st.sampled_from([1, 3, 4]))
@settings(max_examples=40)
def test_noise_is_never_larger_than_plain_laplace_noise(shape: tuple, delta: float, epsilon: float, classes: int) -> None:
    schema = schema_of(*shape)
    chosen = planned(schema, classes=classes, epsilon=epsilon, delta=delta)
    plain = planned(schema, classes=classes, epsilon=epsilon, delta=delta, noise="laplace")
    assert chosen.sd <= plain.sd * (1 + 1e-12)
    assert chosen.event.delta in (0.0, delta)


def test_a_delta_is_spent_only_where_it_saves_noise() -> None:
    for shape in [(1, 0, []), (3, 2, [4]), (0, 30, []), (0, 0, [8] * 14)]:
        pure, either = planned(schema_of(*shape)), planned(schema_of(*shape), delta=1e-6)
        assert either.sd <= pure.sd * (1 + 1e-12)
        assert either.event.delta == 0.0 or either.sd < 0.98 * pure.sd


def test_normal_noise_without_a_delta_is_refused() -> None:
    with pytest.raises(PrivacyError) as refused:
        planned(MIXED, noise="gaussian")
    assert_told_in_order(str(refused.value), ["noise='gaussian' was given with delta=0", "it needs", "Give one"])


# -- normal noise keeps its delta --------------------------------------------------------------------------------------------------


def hidden(epsilon: float, shift: float) -> float:
    """The delta of a normal number that hides a shift, written once more."""
    if shift == 0:
        return max(0.0, 1 - math.exp(epsilon))
    first, second = log_ndtr(shift / 2 - epsilon / shift), epsilon + log_ndtr(-shift / 2 - epsilon / shift)
    return float(math.exp(first) - math.exp(second))


def steepest_pull(plan: Plan, scale_of: np.ndarray) -> float:
    """The largest gradient of a row, every column measured by the standard deviation on it; by trying corners."""
    rng = np.random.default_rng(0)
    gradients = plan.gradients
    rows = [np.abs(row) for row in corner_rows(gradients.norms, rng, 60)]
    return max(float(np.linalg.norm(np.outer(row / scale_of, s))) for row in rows for s in corner_slopes(gradients, rng))


def stated_delta(plan: Plan, people: int, entering: int, epsilon: float) -> float:
    """Theorem 3 for this plan, from its ridge, its scales and the loss alone."""
    gradients, tilt = plan.gradients, plan.tilt
    assert isinstance(tilt, Tilt)
    scale_of = np.empty(gradients.norms.columns)
    for part, scale in zip(tilt.parts, plan.event.scales or (plan.event.scale,), strict=True):
        scale_of[list(part.columns)] = scale / plan.event.unit
    r = steepest_pull(plan, scale_of)
    loss, classes = gradients.loss, gradients.classes
    flat = math.inf
    if loss.taper and loss.one_sided and classes == 1:
        flat = loss.taper * loss.most_slope * gradients.norms.l2**2 / plan.ridge
    if people * flat <= epsilon * FLAT_CORNERS * (1 + 1e-9):
        cost = 0.0
    else:
        flat = 0.0
        directions, bend = (classes - 1, 1 / classes) if gradients.coupling == "softmax" else (classes, gradients.loss.most_curvature)
        cost = people * directions * math.log(1 + bend * gradients.norms.l2**2 / plan.ridge)
    if not loss.one_sided:
        return 2 ** (classes * (people + entering)) * hidden(epsilon - cost, (people + entering) * r)
    corners = {"one": 1, "softmax": classes - 1, "one-vs-rest": 2**classes - 1}[gradients.coupling]
    return sum(
        math.comb(people, i) * math.comb(entering, j) * corners ** (i + j) * hidden(epsilon - cost - (people - i) * flat, (i + j) * r)
        for i in range(people + 1)
        for j in range(entering + 1)
    )


NORMAL = [
    ("logistic", LOGISTIC, 1, {}),
    ("the plain logistic", LOGISTIC, 1, {"steepest": 1.0}),
    ("smooth hinge", smooth_hinge(), 1, {}),
    ("smooth hinge, small ridge", smooth_hinge(), 1, {"ridge": 0.01}),
    ("Huber, both signs", robust(0.4).scaled(0.0, 1.0), 1, {}),
    ("log-cosh, both signs", LOGCOSH, 1, {}),
    ("one-vs-rest", LOGISTIC, 3, {}),
    ("one-vs-rest, hinge", smooth_hinge(), 4, {}),
    ("softmax", LOGISTIC, 5, {}),
]


@pytest.mark.parametrize(("loss", "classes", "given_"), [case[1:] for case in NORMAL], ids=[case[0] for case in NORMAL])
@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_normal_noise_keeps_its_delta_by_the_theorem_recomputed(
    loss: ConvexLoss, classes: int, given_: dict, people: int, adjacency: str
) -> None:
    for epsilon, delta in [(0.3, 1e-6), (3.0, 1e-9)]:
        plan = planned(
            MIXED, loss, classes=classes, people=people, adjacency=adjacency, epsilon=epsilon, delta=delta, noise="gaussian", **given_
        )
        found = stated_delta(plan, people, people if adjacency == "replace-one" else 0, epsilon * (1 - FOR_CERTIFICATE))
        assert found <= delta
        assert found > delta / 3  # and not much more noise than that


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("replaced", [True, False])
def test_more_noise_or_fewer_rows_a_person_never_make_delta_larger(people: int, replaced: bool) -> None:
    gradients = gradients_of(MIXED, people=people, replaced=replaced)
    more = gradients_of(MIXED, people=people + 1, replaced=replaced)
    found = [objective_delta(gradients, 1.0, shift, 0.1) for shift in (0.05, 0.1, 0.2, 0.4)]
    assert found == sorted(found)
    assert all(objective_delta(more, 1.0, shift, 0.1) > objective_delta(gradients, 1.0, shift, 0.1) for shift in (0.1, 0.2, 0.4))
    assert objective_delta(gradients, 1.0, 0.2, 0.2) >= objective_delta(gradients, 1.0, 0.2, 0.0)


def test_a_two_sided_loss_with_a_taper_pays_for_rows_without_slope() -> None:
    """What bends then is largest in the middle of the slopes, and no corner: the middle has to count as one, or curvature has to be paid for."""
    tapered = replace(LOGCOSH, taper=2.0)
    plan = planned(MIXED, tapered, delta=1e-6, noise="gaussian")
    epsilon = 1 - FOR_CERTIFICATE
    gradients = plan.gradients
    r = 1 / max_ratio(plan)
    flat = 2.0 * gradients.norms.l2**2 / plan.ridge
    with_middle = 2 * hidden(epsilon - flat, r) + 4 * hidden(epsilon, 2 * r)
    all_paid = 4 * hidden(epsilon - math.log1p(gradients.norms.l2**2 / plan.ridge), 2 * r)
    assert min(with_middle, all_paid) <= 1e-6


def max_ratio(plan: Plan) -> float:
    scale_of = np.empty(plan.gradients.norms.columns)
    for part, scale in zip(plan.tilt.parts, plan.event.scales or (plan.event.scale,), strict=True):
        scale_of[list(part.columns)] = scale / plan.event.unit
    return 1 / steepest_pull(plan, scale_of)


# -- and by integration: the density of a perturbed minimum in one dimension ----------------------------------------------------------


LINE = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
TABLES: list[tuple[list, list, list]] = [  # rows (x, y) that stay, that leave, that enter
    ([], [(1.0, 1.0)], [(1.0, -1.0)]),
    ([], [(1.0, 1.0)], [(-1.0, 1.0)]),
    ([(1.0, 1.0)] * 3 + [(0.5, -1.0)] * 2, [(1.0, 1.0)], [(1.0, -1.0)]),
    ([(1.0, 1.0), (-1.0, -1.0)], [(1.0, 1.0)], [(0.0, -1.0)]),
    ([(1.0, 1.0), (-0.3, 1.0)] * 4, [(0.0, 1.0)], [(1.0, 1.0)]),
    ([(1.0, 1.0)] * 30, [(-1.0, 1.0)], [(1.0, 1.0)]),
]


QUADRATURE = 1e-5


def densities(plan: Plan, stay: list, leave: list, enter: list, points: int = 60_001) -> tuple[np.ndarray, np.ndarray, float]:
    """Densities of the minimum on a grid of weights, for both tables: h(-J'(w)) J''(w), by Lemma 3."""
    loss, ridge, sd = plan.gradients.loss, plan.ridge, plan.event.scale / plan.event.unit
    reach = (14 * sd + len(stay + leave) * plan.gradients.most_slope) / ridge
    w = np.linspace(-reach, reach, points)

    def density(rows: list) -> np.ndarray:
        slope, bend = ridge * w, np.full(points, ridge)
        for x, y in rows:
            slope = slope + x * loss.slope(x * w, y)
            bend = bend + x * x * loss.curvature(x * w, y)
        return np.exp(-0.5 * (slope / sd) ** 2) * bend / (sd * math.sqrt(2 * math.pi))

    return density(stay + leave), density(stay + enter), float(w[1] - w[0])


def hockey_stick(plan: Plan, stay: list, leave: list, enter: list, epsilon: float) -> float:
    left, right, step = densities(plan, stay, leave, enter)
    assert left.sum() * step == pytest.approx(1, abs=1e-3)  # the grid holds it all
    one = np.maximum(left - math.exp(epsilon) * right, 0).sum() * step
    other = np.maximum(right - math.exp(epsilon) * left, 0).sum() * step
    return float(max(one, other))


ON_A_LINE = [
    ("logistic", LOGISTIC, {}),
    ("the plain logistic", LOGISTIC, {"steepest": 1.0}),
    ("tempered sharply", tempered_logistic(0.3, 20.0), {}),
    ("smooth hinge", smooth_hinge(), {"ridge": 1.0}),
    ("Huber, both signs", robust(0.4).scaled(0.0, 1.0), {}),
    ("log-cosh, both signs", LOGCOSH, {}),
    ("log-cosh with a taper", replace(LOGCOSH, taper=2.0), {}),
]


def one_dimension(loss: ConvexLoss, adjacency: str, people: int, epsilon: float, **settings_: object) -> Plan:
    schema = pf.Schema(LINE.features, target=CLASSES if loss.one_sided else LINE.target)
    return planned(
        schema, loss, fit_intercept=False, adjacency=adjacency, people=people, epsilon=epsilon, delta=1e-2, noise="gaussian", **settings_
    )


@pytest.mark.parametrize(("loss", "given_"), [case[1:] for case in ON_A_LINE], ids=[case[0] for case in ON_A_LINE])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 2])
def test_the_integrated_delta_of_a_perturbed_minimum_is_at_most_the_claimed_one(
    loss: ConvexLoss, given_: dict, adjacency: str, people: int
) -> None:
    for epsilon in (0.5, 2.0):
        plan = one_dimension(loss, adjacency, people, epsilon, **given_)
        found = [
            hockey_stick(plan, stay, leave * people, enter * people if adjacency == "replace-one" else [], epsilon * (1 - FOR_CERTIFICATE))
            for stay, leave, enter in TABLES
        ]
        assert 0 < max(found) <= 1e-2 * (1 + QUADRATURE)


def test_the_integral_comes_close_to_the_claim_and_catches_less_noise() -> None:
    """Otherwise the test above would say nothing."""
    plan = one_dimension(LOGISTIC, "add-remove", 1, 1.0)
    pair = ([], [(1.0, 1.0)], [])
    epsilon = 1 - FOR_CERTIFICATE
    assert hockey_stick(plan, *pair, epsilon) > 1e-3
    less = replace(plan, event=replace(plan.event, scale=plan.event.scale / 1.6))
    assert hockey_stick(less, *pair, epsilon) > 1e-2


def test_a_ridge_far_below_the_free_one_breaks_the_claim_of_normal_noise() -> None:
    plan = one_dimension(LOGISTIC, "add-remove", 1, 1.0)
    pair = ([], [(1.0, 1.0)], [])
    assert plan.ridge >= free_ridge("gaussian", plan.gradients, 1 - FOR_CERTIFICATE) * (1 - 1e-9)
    assert hockey_stick(plan, *pair, 1 - FOR_CERTIFICATE) <= 1e-2
    assert hockey_stick(replace(plan, ridge=plan.ridge / 100), *pair, 1 - FOR_CERTIFICATE) > 1e-2


@pytest.mark.parametrize("classes", [3, 5])
def test_the_sampled_delta_of_several_classes_is_at_most_the_claimed_one(classes: int) -> None:
    """One column and several classes: minima for many tilts, and how much likelier each is on one table than on the other."""
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=CLASSES)
    epsilon, delta = 1.0, 1e-2
    plan = planned(schema, classes=classes, fit_intercept=False, epsilon=epsilon, delta=delta, noise="gaussian")
    sd = plan.event.scale / plan.event.unit
    tilts = np.random.default_rng(1).normal(0, sd, (20_000, classes))
    losses = privacy_losses(plan, tilts, [(1.0, 0)], [(1.0, 1)], sd)
    lost = np.maximum(0, -np.expm1(epsilon * (1 - FOR_CERTIFICATE) - losses))
    assert lost.mean() <= delta
    bared = privacy_losses(plan, tilts / 6, [(1.0, 0)], [(1.0, 1)], sd / 6)  # and far less noise would not do
    assert np.maximum(0, -np.expm1(epsilon - bared)).mean() > delta


def privacy_losses(plan: Plan, tilts: np.ndarray, leave: list, enter: list, sd: float) -> np.ndarray:
    """log p(w) - log p'(w) at the minimum w of the first table with each tilt, by Newton's method and Lemma 3."""
    w = np.zeros_like(tilts)
    for _ in range(200):
        slope, bend = _pull_and_bend(plan, w, leave)
        step = np.linalg.solve(bend, (slope + tilts)[:, :, None])[:, :, 0]
        w = w - np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-10:
            break
    slope, bend = _pull_and_bend(plan, w, leave)
    assert np.abs(slope + tilts).max() < 1e-6
    other, bend_other = _pull_and_bend(plan, w, enter)
    return ((other**2).sum(1) - (slope**2).sum(1)) / (2 * sd**2) + np.linalg.slogdet(bend)[1] - np.linalg.slogdet(bend_other)[1]


def _pull_and_bend(plan: Plan, w: np.ndarray, rows: list) -> tuple[np.ndarray, np.ndarray]:
    loss, classes = plan.gradients.loss, w.shape[1]
    slope, bend = plan.ridge * w, np.tile(plan.ridge * np.eye(classes), (len(w), 1, 1))
    for x, label in rows:
        if plan.gradients.coupling == "softmax":
            chances = np.exp(x * w - (x * w).max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            slope = slope + x * (chances - np.eye(classes)[label])
            bend = bend + x * x * (chances[:, :, None] * np.eye(classes) - chances[:, :, None] * chances[:, None, :])
        else:
            sides = 2 * np.eye(classes)[label] - 1
            slope = slope + x * loss.slope(x * w, sides)
            bend = bend + x * x * loss.curvature(x * w, sides)[:, :, None] * np.eye(classes)
    return slope, bend
