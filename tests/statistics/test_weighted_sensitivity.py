"""Brute force against docs/proofs/polynomial.md: no row moves the weighted monomials further than claimed."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.privacy import Adjacency, Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.schema import Category, Geometry, Numeric, Schema, SchemaError
from privfit.statistics import WEIGHT_LEVELS, TargetLattice, WeightedMonomials, distinct_sensitivity
from privfit.statistics.monomials import distinct_monomials, n_distinct, products_of, replaced_numbers, row_counts
from privfit.statistics.weighted import LARGEST_VALUE
from privfit.tables import open_table

SHAPES = [
    (0, 0, 1),
    (0, 0, 2),
    (0, 0, 3),
    (0, 1, 1),
    (0, 2, 0),
    (0, 3, 1),
    (1, 0, 0),
    (1, 0, 1),
    (1, 1, 1),
    (2, 0, 0),
    (2, 1, 0),
    (2, 0, 1),
    (1, 0, 2),
]
CASES = [(*shape, intercept, degree) for shape in SHAPES for intercept in (True, False) for degree in (1, 2, 3, 4)]


def schema_of(k: int, s: int, q: int, classes: bool = False) -> Schema:
    features = [Category(f"c{i}", ["a", "b", "c"]) for i in range(k)]
    features += [Category(f"s{i}", [0, 1]) for i in range(s)]
    features += [Numeric(f"q{i}", -1, 1) for i in range(q)]
    return Schema(features, target=Category("y", [0, 1]) if classes else Numeric("y", -1, 1))


def coefficients(kind: str, degree: int, t: np.ndarray) -> np.ndarray:
    """Coefficients of degree 1, 2, ... as functions of the scaled target."""
    wave = [np.sin(3 * t) + 0.2, 0.3 + t**2, np.cos(2 * t), 0.5 - np.abs(t)]
    line = [0.4 - t, *[np.full(len(t), size) for size in (1.0, 0.3, -0.2)]]
    return np.array((wave if kind == "wave" else line)[:degree])


def statistic_of(
    k: int,
    s: int,
    q: int,
    intercept: bool,
    degree: int,
    kind: str = "wave",
    classes: bool = False,
    weighed: bool = False,
) -> WeightedMonomials:
    geometry = schema_of(k, s, q, classes).geometry(intercept=intercept)
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    return WeightedMonomials.of(geometry, lattice, coefficients(kind, degree, lattice.scaled), weighed)


def encoded_rows(statistic: WeightedMonomials, rng: np.random.Generator, extra: int = 40) -> np.ndarray:
    """Every corner with the targets at which a weighting is largest, and rows from inside, as integers; one column
    per row.
    """
    geometry, step = statistic.geometry, statistic.step
    choices: list[list[tuple[float, ...]]] = [[(1.0,)]] if geometry.intercept else []
    for block in geometry.blocks:
        one_hot = [tuple(float(i == j) for j in range(3)) for i in range(3)]
        choices.append({"levels": one_hot, "sign": [(-1.0,), (1.0,)], "slope": [(-1.0,), (0.0,), (1.0,)]}[block.kind])
    features = [np.concatenate(row) for row in itertools.product(*choices)]
    inside = []
    for _ in range(extra):
        row = features[rng.integers(len(features))].copy()
        for block in geometry.blocks:
            if block.kind == "slope":
                row[block.start] = rng.uniform(-1, 1)
        inside.append(row)
    points = statistic.lattice.points
    totals = sum(
        np.abs(weighting.table / weighting.top) * units
        for weighting, units in zip(statistic.weightings, statistic.units, strict=True)
    )
    sizes = np.array([weighting.table for weighting in statistic.weightings])
    places = [
        0,
        len(points) - 1,
        int(np.argmax(totals)),
        *np.argmax(sizes, axis=1).tolist(),
        *np.argmin(sizes, axis=1).tolist(),
    ]
    worst = sorted({int(points[place]) for place in places})
    rows = [np.append(np.rint(row * step), target) for row in features for target in worst]
    rows += [np.append(np.rint(row * step), rng.choice(points)) for row in inside]
    return np.array(rows).T


def contributions(statistic: WeightedMonomials, rows: np.ndarray) -> np.ndarray:
    return np.array([statistic(rows[:, [i]]) for i in range(rows.shape[1])]).astype(np.int64)


@pytest.mark.parametrize("kind", ["wave", "line"])
@pytest.mark.parametrize(("k", "s", "q", "intercept", "degree"), CASES)
def test_no_row_moves_the_values_further_than_claimed(
    k: int, s: int, q: int, intercept: bool, degree: int, kind: str
) -> None:
    statistic = statistic_of(k, s, q, intercept, degree, kind)
    rows = encoded_rows(statistic, np.random.default_rng(k * 100 + s * 10 + q))
    own = contributions(statistic, rows)
    added = np.abs(own).sum(axis=1).max()
    claimed = statistic.sensitivity("add-remove")
    assert added <= claimed
    assert added == claimed or kind == "wave", "at a corner the bound is reached"
    assert added >= 0.9 * claimed
    replaced = own[:, statistic.released("replace-one")]
    moved = max(int(np.abs(replaced - row).sum(axis=1).max()) for row in replaced)
    assert moved <= statistic.sensitivity("replace-one") <= 2 * claimed
    assert moved >= 0.5 * statistic.sensitivity("replace-one")


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", ["wave", "line"])
@pytest.mark.parametrize(("k", "s", "q", "intercept", "degree"), CASES)
def test_no_row_and_no_weight_moves_the_values_further_than_paid_for(
    k: int, s: int, q: int, intercept: bool, degree: int, kind: str, adjacency: Adjacency
) -> None:
    """Theorem 4: a row may change with its weight, which may be 0; as the plan is, for 2 m rows under replace-one."""
    parameters = PrivacyParameters(Budget(1.0), adjacency).for_rows_left_out(50)
    statistic = statistic_of(k, s, q, intercept, degree, kind, weighed=True)
    rng = np.random.default_rng(k * 100 + s * 10 + q)
    rows = encoded_rows(statistic, rng)
    weights = [np.full(rows.shape[1], float(weight)) for weight in (0, WEIGHT_LEVELS)]
    weights.append(rng.integers(0, WEIGHT_LEVELS + 1, rows.shape[1]).astype(float))
    own = np.concatenate([contributions(statistic, np.vstack([rows, line])) for line in weights])
    assert np.abs(own).max() <= LARGEST_VALUE
    assert not own[: rows.shape[1]].any(), "a row of weight 0 is no row"
    paid = statistic.row_sensitivity(parameters) * int(parameters.rows_per_person)
    if adjacency == "add-remove":
        moved = int(np.abs(own).sum(axis=1).max())
    else:
        moved = max(int(np.abs(own - row).sum(axis=1).max()) for row in own)
    assert moved <= paid
    assert moved >= (0.9 if adjacency == "add-remove" else 0.45) * paid


def test_the_bound_with_weights_is_reached_so_that_a_smaller_one_is_caught() -> None:
    statistic = statistic_of(1, 1, 1, True, 3, "line", weighed=True)
    rows = encoded_rows(statistic, np.random.default_rng(0))
    own = contributions(statistic, np.vstack([rows, np.full(rows.shape[1], float(WEIGHT_LEVELS))]))
    parameters = PrivacyParameters(Budget(1.0), "add-remove")
    assert int(np.abs(own).sum(axis=1).max()) == statistic.row_sensitivity(parameters)
    moved = max(int(np.abs(own - row).sum(axis=1).max()) for row in own)
    assert moved > statistic.row_sensitivity(PrivacyParameters(Budget(1.0)).for_rows_left_out(50))  # one, not two


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("degree", [2, 3, 4])
def test_two_classes_as_target(intercept: bool, degree: int) -> None:
    statistic = statistic_of(1, 1, 1, intercept, degree, "line", classes=True)
    assert statistic.target_units == 1
    own = contributions(statistic, encoded_rows(statistic, np.random.default_rng(0)))
    assert np.abs(own).sum(axis=1).max() == statistic.sensitivity("add-remove")
    replaced = own[:, statistic.released("replace-one")]
    assert max(int(np.abs(replaced - row).sum(axis=1).max()) for row in replaced) <= statistic.sensitivity(
        "replace-one"
    )


@pytest.mark.parametrize(("k", "s", "q", "intercept", "degree"), [case for case in CASES if case[-1] > 1])
def test_every_product_that_is_a_function_of_its_own_is_there_once(
    k: int, s: int, q: int, intercept: bool, degree: int
) -> None:
    """Found out from numbers: products of columns on random rows, the zero and the equal ones struck out."""
    statistic = statistic_of(k, s, q, intercept, degree)
    rng = np.random.default_rng(0)
    rows = [[1.0] * 200] if intercept else []
    for block in statistic.geometry.blocks:
        if block.kind == "levels":
            rows += list(np.eye(3)[rng.integers(3, size=200)].T)
        else:
            rows.append(rng.choice([-1.0, 1.0], 200) if block.kind == "sign" else rng.uniform(-1, 1, 200))
    columns = np.array(rows)
    for weighting, kept in zip(statistic.weightings, statistic._kept, strict=True):
        chosen = itertools.combinations_with_replacement(range(len(columns)), weighting.degree)
        products = np.array([columns[list(columns_)].prod(axis=0) for columns_ in chosen])
        distinct = np.unique(np.round(products[np.abs(products).max(axis=1) > 0], 9), axis=0)
        assert len(kept) == len(distinct)


@pytest.mark.parametrize(("k", "s", "q", "intercept", "degree"), CASES)
def test_products_equal_the_monomials_they_are_said_to_equal(
    k: int, s: int, q: int, intercept: bool, degree: int
) -> None:
    geometry = schema_of(k, s, q).geometry(intercept=intercept)
    rows = (
        encoded_rows(statistic_of(k, s, q, intercept, degree), np.random.default_rng(1))
        / statistic_of(k, s, q, intercept, degree).step
    )
    found = list(products_of(geometry, degree))
    for columns, _, monomial in found:
        np.testing.assert_allclose(rows[list(columns)].prod(axis=0), rows[list(monomial)].prod(axis=0), atol=1e-12)
    everything = rows[:-1].sum(axis=0) ** degree
    np.testing.assert_allclose(
        sum(orders * rows[list(columns)].prod(axis=0) for columns, orders, _ in found), everything, atol=1e-9
    )
    assert sum(1 for _ in distinct_monomials(geometry, degree)) == n_distinct(geometry, degree)


@pytest.mark.parametrize("shape", [(k, s, q) for k in range(3) for s in range(3) for q in range(3) if k + s + q])
def test_a_loss_of_degree_two_has_the_sensitivity_of_moments(shape: tuple[int, int, int]) -> None:
    """docs/proofs/moments.md, Theorem 1: the same values, counted in another way."""
    statistic = statistic_of(*shape, True, 2, "line")
    features, target = statistic.units
    assert statistic.sensitivity("add-remove") == features * distinct_sensitivity(
        statistic.geometry, Fraction(target, features), "add-remove"
    )
    assert len(statistic.released("replace-one")) == statistic.geometry.n_products


def test_a_constant_and_a_line_are_released_once_for_all_degrees() -> None:
    """Coefficients of degree 2, 3 and 4 that do not depend on the target share values, and lend them to degree 1."""
    statistic = statistic_of(0, 0, 3, True, 4, "line")
    assert [weighting.degree for weighting in statistic.weightings] == [4, 1]
    assert len(statistic.values) == 35 + 4
    assert len(statistic_of(0, 0, 3, True, 4, "wave").weightings) == 4


@pytest.mark.parametrize("q", [1, 2, 3, 6])
def test_replacing_numbers_costs_about_half_of_two_rows(q: int) -> None:
    """Lemma 2: numbers of one sign's weighting move by their count, not by twice their count."""
    geometry = schema_of(0, 0, q).geometry(intercept=True)
    counts = row_counts(geometry, 4)
    assert replaced_numbers(geometry, 4, counts) == sum(counts.numbers)


@given(
    st.lists(st.tuples(*[st.floats(-3, 3)] * 3, st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=2),
    st.sampled_from(["replace-one", "add-remove"]),
    st.booleans(),
    st.sampled_from([2, 3, 4]),
    st.sampled_from(["wave", "line"]),
)
@settings(max_examples=150, deadline=None)
def test_released_integers_never_move_more_than_the_integer_sensitivity(
    pair, adjacency, intercept, degree, kind
) -> None:
    """The same property on the integers that are really released, clipping and rounding included."""
    schema = Schema(
        [Numeric("a", -1, 1), Numeric("b", -2, 0.5), Category("e", [0, 1, 2]), Category("f", [0, 1])],
        target=Numeric("y", -1, 2),
    )
    geometry = schema.geometry(intercept=intercept)
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    statistic = WeightedMonomials.of(geometry, lattice, coefficients(kind, degree, lattice.scaled))

    def released(rows: list) -> np.ndarray:
        array = np.array([(a, b, e, f, y) for a, b, y, e, f in rows], dtype=float)
        return Rows(open_table(array), schema, geometry).sum(statistic)[statistic.released(adjacency)]

    other = [(0.3, -0.2, 0.7, 1, 0)]
    left = released([*other, pair[0]])
    right = released([*other, pair[1]] if adjacency == "replace-one" else other)
    assert int(np.abs(left - right).sum()) <= statistic.sensitivity(adjacency)


def test_sums_are_exact_and_do_not_depend_on_blocks_of_rows() -> None:
    rng = np.random.default_rng(3)
    schema = schema_of(1, 1, 2)
    geometry = schema.geometry()
    statistic = statistic_of(1, 1, 2, True, 4)
    table = np.column_stack([rng.integers(0, 3, 700), rng.integers(0, 2, 700), rng.uniform(-1, 1, (700, 3))]).astype(
        object
    )
    table[:, 0] = np.array(["a", "b", "c"])[table[:, 0].astype(int)]
    whole = Rows(open_table(table), schema, geometry).sum(statistic)
    parts = [Rows(open_table(table[i : i + 1]), schema, geometry).sum(statistic) for i in range(700)]
    np.testing.assert_array_equal(whole, np.sum(parts, axis=0))
    np.testing.assert_array_equal(whole, Rows(open_table(table[::-1]), schema, geometry, batch_rows=37).sum(statistic))


def any_coefficients(rng: np.random.Generator, degree: int, t: np.ndarray) -> np.ndarray:
    """Functions of the target of all sorts: constants, lines, cusps, waves, jumps and nothing at all; of sizes far
    apart.
    """
    made = [
        np.full(len(t), rng.normal()),
        rng.normal() + rng.normal() * t,
        np.abs(t) ** rng.uniform(0.2, 3),
        np.sin(rng.uniform(1, 9) * t + rng.normal()),
        np.where(t > rng.uniform(-1, 1), 1.0, 0.0),
        np.zeros(len(t)),
    ]
    return np.array(
        [made[rng.integers(6)] * 10 ** rng.uniform(-3, 3) for _ in range(degree - 1)] + [made[rng.integers(2)]]
    )


@pytest.mark.parametrize("seed", range(30))
def test_no_function_of_the_target_moves_the_values_further_than_claimed(seed: int) -> None:
    """Corners, rows from inside, and a climb from the worst pair; what is public is the same in every row."""
    rng = np.random.default_rng(seed)
    shape, intercept, degree = SHAPES[rng.integers(len(SHAPES))], bool(rng.integers(2)), int(rng.integers(2, 5))
    geometry = schema_of(*shape, classes=bool(rng.integers(2))).geometry(intercept=intercept)
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    statistic = WeightedMonomials.of(geometry, lattice, any_coefficients(rng, degree, lattice.scaled))
    rows = encoded_rows(statistic, rng)[:, :400]
    own = contributions(statistic, rows)
    assert np.abs(own).sum(axis=1).max() <= statistic.sensitivity("add-remove")
    released, claimed = statistic.released("replace-one"), statistic.sensitivity("replace-one")
    public = np.delete(own, released, axis=1)
    assert (public == public[0]).all()
    apart = [np.abs(own[:, released] - row).sum(axis=1) for row in own[:, released]]
    first = max(range(len(apart)), key=lambda i: apart[i].max())
    assert apart[first].max() <= claimed
    pair = rows[:, [first, int(np.argmax(apart[first]))]]
    reached = 0
    for _ in range(60):
        changed = pair.copy()
        places = [(block.start, block.stop) for block in geometry.blocks] + [(len(rows) - 1, len(rows))]
        start, stop = places[rng.integers(len(places))]
        changed[start:stop, rng.integers(2)] = rows[start:stop, rng.integers(rows.shape[1])]
        one, other = contributions(statistic, changed)[:, released]
        moved = int(np.abs(one - other).sum())
        assert moved <= claimed
        if moved >= reached:
            reached, pair = moved, changed


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_whole_chunks_of_the_largest_rows_are_summed_exactly(degree: int) -> None:
    """As many rows as a chunk holds, all next to one corner: integers of Python are the judge."""
    statistic = statistic_of(0, 1, 2, True, degree, "line")
    step, units = statistic.step, statistic.target_units
    kinds = np.array([[step, step, step, step, units], [step, -step, step, 1 - step, -units]], dtype=np.float64).T
    times = (12_000, 4_384)
    total = statistic(np.repeat(kinds, times, axis=1)).astype(np.int64)
    for (r, monomial), found in zip(statistic.values, total.tolist(), strict=True):
        weighting = statistic.weightings[r]
        expected = 0
        for row, count in zip(kinds.T.astype(int).tolist(), times, strict=True):
            value = int(weighting.table[row[-1] + units]) * step ** (weighting.degree - len(monomial))
            for column in monomial:
                value *= row[column]
            expected += count * value
        assert found == expected
    assert np.abs(total).max() > 1 << 51


def test_one_row_can_add_what_float64_and_int64_hold() -> None:
    for degree in (1, 2, 3, 4):
        for kind in ("wave", "line"):
            statistic = statistic_of(1, 1, 2, True, degree, kind)
            assert statistic.largest <= 1 << 39
            assert min(weighting.top for weighting in statistic.weightings if not weighting.is_constant) >= 100


def test_too_many_products_are_refused_in_a_sentence() -> None:
    schema = Schema([Numeric(f"x{i}", -1, 1) for i in range(60)], target=Numeric("y", -1, 1))
    geometry: Geometry = schema.geometry()
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    with pytest.raises(
        SchemaError,
        match=r"61 encoded columns.*degree 4 needs 635376.*at most 200000.*lower degree.*Nothing was charged",
    ):
        WeightedMonomials.of(geometry, lattice, coefficients("line", 4, lattice.scaled))


def test_the_paper_s_encoding_is_refused() -> None:
    geometry = schema_of(1, 0, 1).geometry(paper=True, intercept=False)
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    with pytest.raises(ValueError, match=r"the paper's encoding.*slopes, signs and levels.*paper=False"):
        WeightedMonomials.of(geometry, lattice, coefficients("line", 2, lattice.scaled))
