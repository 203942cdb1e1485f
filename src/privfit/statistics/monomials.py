"""Monomials of encoded columns: which products are functions of their own, and how many of them one row can make other
than zero.

The square of a level is the level, the square of a sign is one, and two levels of one block never meet. The intercept,
if there is one, is a column of ones: a product with it is a product of fewer columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from privfit.schema import Block, Geometry

Monomial = tuple[int, ...]
"""Encoded columns that are multiplied, in rising order; a slope can stand in it more than once, a sign or a level once.
"""


def distinct_monomials(geometry: Geometry, degree: int) -> Iterator[Monomial]:
    """Every product of at most `degree` columns that is a function of its own, the shortest first, beginning with the
    constant ().
    """
    after = _after(geometry)
    slopes = frozenset(block.start for block in geometry.blocks if block.kind == "slope")
    layer: list[Monomial] = [()]
    yield ()
    for _ in range(degree):
        layer = _longer(layer, after, int(geometry.intercept), slopes)
        yield from layer


def products_of(geometry: Geometry, degree: int) -> Iterator[tuple[Monomial, int, Monomial]]:
    """Every product of exactly `degree` columns that is not zero: its columns, in how many orders they come, and the
    monomial that it equals.
    """
    after = _after(geometry)
    layer: list[Monomial] = [()]
    for _ in range(degree):
        layer = _longer(layer, after, 0, frozenset(range(len(after))))
    kinds = [*["constant"] * geometry.intercept, *(block.kind for block in geometry.blocks for _ in range(block.width))]
    for columns in layer:
        powers = [(column, len(list(same))) for column, same in groupby(columns)]
        orders = math.factorial(degree) // math.prod(math.factorial(power) for _, power in powers)
        kept = [
            [column] * {"constant": 0, "levels": 1, "sign": power % 2, "slope": power}[kinds[column]]
            for column, power in powers
        ]
        yield columns, orders, tuple(chain.from_iterable(kept))


def _longer(layer: list[Monomial], after: list[int], first: int, repeatable: frozenset[int]) -> list[Monomial]:
    """Monomials with one more column: the last one again, if it can be, or one of a later block."""
    return [
        (*monomial, column)
        for monomial in layer
        for column in (
            *(repeatable.intersection(monomial[-1:])),
            *range(after[monomial[-1]] if monomial else first, len(after)),
        )
    ]


def _after(geometry: Geometry) -> list[int]:
    """For every encoded column the first one of the next block: two levels of one block never meet."""
    return [*[1] * geometry.intercept, *(block.stop for block in geometry.blocks for _ in range(block.width))]


def occurs(geometry: Geometry, monomial: Monomial, degree: int) -> bool:
    """Whether some product of exactly `degree` columns, with the intercept one of them if there is one, equals this
    monomial in every row.
    """
    spare = degree - len(monomial)
    if spare <= 0 or geometry.intercept:
        return spare >= 0
    has_level = any(
        block.kind == "levels" and block.start <= column < block.stop
        for block in geometry.blocks
        for column in monomial
    )
    return has_level or (spare % 2 == 0 and geometry.count("sign") > 0)


@dataclass(frozen=True)
class RowCounts:
    """How many monomials of a weighting can be other than zero in one row: those of numbers alone, by their length, and
    those with a level.
    """

    numbers: tuple[int, ...]
    with_levels: int


def row_counts(geometry: Geometry, degree: int) -> RowCounts:
    """The counts of monomials that equal products of exactly `degree` columns: a row has one level of every block."""
    numbers = _lengths([block for block in geometry.blocks if block.kind != "levels"], degree)
    signs = geometry.count("sign") > 0
    kept = [
        geometry.intercept or length == degree or (signs and (degree - length) % 2 == 0) for length in range(degree + 1)
    ]
    return RowCounts(
        tuple(number * keep for number, keep in zip(numbers, kept, strict=True)),
        sum(_lengths(geometry.blocks, degree)) - sum(numbers),
    )


def replaced_numbers(geometry: Geometry, degree: int, counts: RowCounts) -> int:
    """How far a replaced row moves the monomials of numbers alone, if their weighting has one sign and a top of 1.

    Guarantee: docs/proofs/polynomial.md, Lemma 2 and Theorem 2.
    """
    columns = int(geometry.intercept) + geometry.n_blocks - geometry.count("levels")
    even = degree - 1 if degree % 2 and geometry.intercept else degree
    if even % 2 or columns == 0:
        return 2 * sum(counts.numbers)
    return math.comb(columns + even - 1, even) + 2 * sum(counts.numbers[even + 1 :])


def _lengths(blocks: Sequence[Block], degree: int, all_levels: bool = False) -> list[int]:
    """How many distinct monomials there are of each length up to `degree`, with one level of every block, or with all
    of them.
    """
    counts = [1] + [0] * degree
    for block in blocks:
        longest = degree if block.kind == "slope" else 1
        own = [1] + [block.width if all_levels else 1] * longest
        counts = [
            sum(counts[length - k] * own[k] for k in range(min(length, longest) + 1)) for length in range(degree + 1)
        ]
    return counts


def n_distinct(geometry: Geometry, degree: int) -> int:
    """How many distinct monomials of at most `degree` columns there are, without listing them."""
    return sum(_lengths(geometry.blocks, degree, all_levels=True))
