"""What the geometry claims of every row, checked against every row: all rows of small schemas are encoded here by hand
and enumerated.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.schema import CONSTANT, ZERO, Category, Column, Geometry, Numeric, Schema

SLOPES = (-1.0, -0.6, 0.0, 0.3, 1.0)
SHARES = (0.0, 0.3, 1.0)


def one_hot(width: int, *, drop_last: bool = False) -> list[tuple[float, ...]]:
    rows = [tuple(float(i == j) for i in range(width)) for j in range(width)]
    return [row[:-1] for row in rows] if drop_last else rows


def n_levels(column: Column, bins: int | None) -> int | None:
    """How many levels a column has, or None for a number without bins."""
    if isinstance(column, Category):
        return len(column.levels)
    count = column.bins if column.bins is not None else bins
    return None if count is None else int(count) + (column.fill == "missing")


def encodings(column: Column, *, paper: bool = False, bins: int | None = None) -> list[tuple[float, ...]]:
    """Every encoded value that a column can have (for a number: enough of them to tell any two polynomials of degree
    two apart).
    """
    count = n_levels(column, bins)
    if count is None:
        return [(value,) for value in (SHARES if paper else SLOPES)]
    if paper:
        return one_hot(count, drop_last=True)
    return [(-1.0,), (1.0,)] if count == 2 else one_hot(count)


def all_rows(
    schema: Schema, *, intercept: bool, target: bool = False, paper: bool = False, bins: int | None = None
) -> np.ndarray:
    """Every encoded row, one per line: intercept, features, target."""
    parts = [encodings(column, paper=paper, bins=bins) for column in schema.features]
    if target and schema.target is not None:
        parts.append(encodings(schema.target))
    rows = [sum(choice, (1.0,) if intercept else ()) for choice in product(*parts)]
    return np.array(rows)


KINDS = [
    lambda name: Numeric(name, -3, 7),
    lambda name: Numeric(name, 100, 101, fill=100.5),
    lambda name: Numeric(name, 0, 9, bins=2),
    lambda name: Numeric(name, 0, 9, bins=3),
    lambda name: Numeric(name, 0, 9, bins=2, fill="missing"),
    lambda name: Category(name, ["a", "b"]),
    lambda name: Category(name, [1, 2, 3]),
    lambda name: Category(name, [1, 2, 3], other=True),
]
TARGETS = [None, Numeric("y", 0, 5), Category("y", ["no", "yes"])]


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    return Schema([kind(f"c{i}") for i, kind in enumerate(kinds)], draw(st.sampled_from(TARGETS)))


def products_of(rows: np.ndarray) -> np.ndarray:
    """The product of every two columns, row by row: entry [i, j] is a vector over rows."""
    return np.einsum("ri,rj->ijr", rows, rows)


@given(schemas(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_products_are_numbered_alike_exactly_if_they_are_alike_in_every_row(schema: Schema, intercept: bool) -> None:
    geometry = schema.geometry(intercept=intercept)
    values = products_of(all_rows(schema, intercept=intercept, target=True))
    table = geometry.products
    assert table.shape == values.shape[:2]
    assert (table == table.T).all()
    numbers: dict[bytes, int] = {}
    for i, j in product(range(len(table)), repeat=2):
        if i == j >= geometry.n_columns:
            assert table[i, j] == ZERO  # the square of the target is no part of the table
            continue
        vector = values[i, j]
        assert (table[i, j] == ZERO) == (not vector.any()), (i, j)
        assert (table[i, j] == CONSTANT) == bool((vector == 1).all()), (i, j)
        if table[i, j] >= 0:
            assert numbers.setdefault(vector.tobytes(), table[i, j]) == table[i, j], (
                i,
                j,
            )  # alike in every row, so numbered alike
    assert len(set(numbers.values())) == len(numbers)  # numbered alike, so alike in every row
    assert sorted(numbers.values()) == list(range(geometry.n_products))


@given(schemas(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_products_of_the_papers_encoding_claim_nothing_that_a_row_contradicts(schema: Schema, intercept: bool) -> None:
    geometry = schema.geometry(intercept=intercept, paper=True)
    values = products_of(all_rows(schema, intercept=intercept, target=True, paper=True))
    table = geometry.products
    assert table.shape == values.shape[:2]
    for i, j in product(range(len(table)), repeat=2):
        if i == j >= geometry.n_columns:
            continue
        same = np.argwhere(table == table[i, j])
        assert table[i, j] != ZERO or not values[i, j].any()
        assert table[i, j] != CONSTANT or (values[i, j] == 1).all()
        if table[i, j] >= 0:
            assert all((values[a, b] == values[i, j]).all() for a, b in same)


@given(schemas(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_products_of_features_are_numbered_before_those_with_the_target(schema: Schema, intercept: bool) -> None:
    geometry = schema.geometry(intercept=intercept)
    d = geometry.n_columns
    features = geometry.products[:d, :d]
    alone = schema.geometry(intercept=intercept, target=False)
    assert (features == alone.products).all()
    if geometry.target is not None:
        assert geometry.products[:d, d].tolist() == list(range(alone.n_products, alone.n_products + d))


@given(schemas(), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_norms_are_the_largest_of_any_row(schema: Schema, intercept: bool, paper: bool) -> None:
    geometry = schema.geometry(intercept=intercept, paper=paper)
    rows = np.abs(all_rows(schema, intercept=intercept, paper=paper))
    assert geometry.n_columns == rows.shape[1]
    assert geometry.l1 == rows.sum(axis=1).max()
    assert geometry.l2 == pytest.approx(np.sqrt((rows**2).sum(axis=1)).max())
    assert geometry.l2**2 <= geometry.l1 + 1e-9
    assert geometry.linf == rows.max()


@given(schemas(), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_blocks_tile_the_columns_in_the_order_of_the_schema(schema: Schema, intercept: bool, paper: bool) -> None:
    geometry = schema.geometry(intercept=intercept, paper=paper)
    assert geometry.n_blocks == len(schema.features)
    assert [block.column for block in geometry.blocks] == list(schema.features)
    starts = [int(intercept), *(block.stop for block in geometry.blocks)]
    assert starts[:-1] == [block.start for block in geometry.blocks]
    assert starts[-1] == geometry.n_columns
    if geometry.target is not None:
        assert (geometry.target.start, geometry.target.width) == (geometry.n_columns, 1)
    for block in geometry.blocks:
        assert block.width == len(encodings(block.column, paper=paper)[0])
        assert len(block.labels) == (n_levels(block.column, None) or 1)
    assert geometry.feature_names == tuple(label for block in geometry.blocks for label in block.labels)
    kinds = ("slope", "sign", "levels", "share", "indicators")
    assert sum(geometry.count(kind) for kind in kinds) == geometry.n_blocks
    assert {block.kind for block in geometry.blocks} <= (
        {"share", "indicators"} if paper else {"slope", "sign", "levels"}
    )


def test_numbers_without_bins_become_eight_levels_in_the_numeric_style_bins() -> None:
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1, bins=3), Category("c", [1, 2])], Numeric("y", 0, 1))
    geometry = schema.geometry(numeric="bins")
    values = products_of(all_rows(schema, intercept=True, target=True, bins=8))
    assert geometry.n_columns == values.shape[0] - 1
    assert [block.kind for block in geometry.blocks] == ["levels", "levels", "sign"]
    assert geometry.target is not None
    assert geometry.target.kind == "slope"  # the style is for features
    assert ((geometry.products == ZERO)[:-1, :-1] == ~values.any(axis=2)[:-1, :-1]).all()


def test_a_category_as_wide_as_it_likes_counts_once_in_every_norm() -> None:
    schema = Schema([Category("c", list(range(100))), Category("d", list(range(50)))])
    for intercept in (False, True):
        geometry = schema.geometry(intercept=intercept)
        assert geometry.n_columns == 150 + intercept
        assert (geometry.l1, geometry.l2) == (2 + intercept, math.sqrt(2 + intercept))


@pytest.mark.parametrize(("low", "high"), [(-3, 7), (100, 101), (1e9, 1e9 + 1), (-1e308, 7e307), (0, 1e-280)])
def test_bounds_lie_one_unit_from_the_centre_or_at_the_ends_of_a_share(low: float, high: float) -> None:
    slope = Schema([Numeric("a", low, high)]).geometry().blocks[0]
    assert (low - slope.center) / slope.unit == pytest.approx(-1)
    assert (high - slope.center) / slope.unit == pytest.approx(1)
    share = Schema([Numeric("a", low, high)]).geometry(paper=True).blocks[0]
    assert (low - share.center) / share.unit == 0
    assert (high - share.center) / share.unit == pytest.approx(1)


def test_levels_have_no_centre() -> None:
    for column in (Category("c", [1, 2, 3]), Numeric("a", 0, 1, bins=3)):
        block = Schema([column]).geometry().blocks[0]
        for fact in ("center", "unit"):
            with pytest.raises(TypeError, match="holds levels"):
                getattr(block, fact)


def test_a_geometry_comes_from_the_schema_alone_and_is_a_value() -> None:
    schema = Schema([Numeric("a", 0, 1), Category("c", [1, 2, 3])], Numeric("y", 0, 1))
    assert schema.geometry() == schema.geometry()
    assert hash(schema.geometry()) == hash(schema.geometry())
    assert (
        len(
            {
                schema.geometry(),
                schema.geometry(intercept=False),
                schema.geometry(target=False),
                schema.geometry(paper=True),
            }
        )
        == 4
    )
    with pytest.raises(AttributeError):
        schema.geometry().intercept = False  # type: ignore[misc]
    assert isinstance(schema.geometry(), Geometry)
