"""How far one row can move the distinct moments, in three norms. Functions of the geometry alone, in exact arithmetic.

Throughout: k blocks of levels, s signs, q slopes (m = s + q numbers), c = 1 for an intercept, and w the weight of the
target's products. A slope whose missing values have a coefficient of their own (o of them) is a slope in both rows, or
present in one and missing in the other: then it moves as a level does, and its square by 1 more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from privfit.privacy import Adjacency
from privfit.schema import Geometry

Shape = tuple[int, int, int, int]
"""c, k, s and q."""


def distinct_sensitivity(geometry: Geometry, target_weight: Fraction, adjacency: Adjacency) -> Fraction:
    """The L1 sensitivity of the distinct products, the target's weighted by `target_weight`, in units of 1.

    add-remove     [1 if the number of rows is released] + k(k+1)/2 + k m + c m + m(m-1)/2 + q + w (c + k + m)
    replace-one    k(k+1) + 2k(m + w) + max over f in 0..m of [2f(m+c-f) + 2w max(f, m+c-f)], and q/4 more when k = 1,
                   and q more when k = 0, or ((c + m + w)^2 + q) / 2 if that is less

    With o slopes that may be missing: the largest over i in 0..o of that for k + i levels and q + o - i slopes, plus
    c i.

    Shares and indicators (the paper's encoding) have no structure to use: twice the add-remove norm bounds both.

    Guarantee: docs/proofs/moments.md, Theorem 1 (add-remove), Theorem 2 (replace-one) and Theorem 7 (missing).
    """
    w = _weight(geometry, target_weight)
    if _unstructured(geometry):
        norm = _row_norm(geometry, w)
        return norm if adjacency == "add-remove" else 2 * norm
    if adjacency == "add-remove":
        return _row_norm(geometry, w)
    return max(_replaced_l1(shape, w) + lost for shape, lost in _shapes(geometry))


def _replaced_l1(shape: Shape, w: Fraction) -> Fraction:
    """The L1 sensitivity under replace-one."""
    c, k, s, q = shape
    m = s + q
    corner = max(2 * f * (m + c - f) + 2 * w * max(f, m + c - f) for f in range(m + 1))
    bound = k * (k + 1) + 2 * k * (m + w) + corner
    if k == 1:
        return bound + Fraction(q, 4)
    if k == 0:
        return min(bound + q, ((c + m + w) ** 2 + q) / 2) if q else bound
    return bound


def squared_l2_sensitivity(geometry: Geometry, target_weight: Fraction, adjacency: Adjacency) -> Fraction:
    """The square of the L2 sensitivity of the distinct products, in units of 1.

    add-remove     the L1 formula with w^2 in place of w: every product is 1 in size at a corner
    replace-one    q + 2 max over e in 0..k, f in 0..m, target kept or flipped (o = 1, -1), with h = m - 2f, of
                   (k(k+1) - e(e+1))/2 + k m - e h + c(m - h) + (m^2 - h^2)/2 + w^2 (c + k + m - o (c + e + h))

    With slopes that may be missing, as for L1.

    Guarantee: docs/proofs/moments.md, Theorems 4 and 7.
    """
    square = _weight(geometry, target_weight) ** 2
    if _unstructured(geometry):
        return (1 if adjacency == "add-remove" else 4) * _row_norm(geometry, square)
    if adjacency == "add-remove":
        return _row_norm(geometry, square)
    return max(_replaced_l2(shape, square) + lost for shape, lost in _shapes(geometry))


def _replaced_l2(shape: Shape, square: Fraction) -> Fraction:
    """The squared L2 sensitivity under replace-one."""
    c, k, s, q = shape
    m = s + q
    best = Fraction(0)
    for f in range(m + 1):
        h = m - 2 * f
        for kept in (1, -1):
            best = max(
                best,
                *(_corner_distance(c, k, m, e, h, square, kept) for e in _likely_kept_levels(k, -h - kept * square)),
            )
    return q + 2 * best


def _corner_distance(c: int, k: int, m: int, e: int, h: int, square: Fraction, kept: int) -> Fraction:
    """Half the squared distance of two corner rows: e levels stay, the numbers' products sum to h, the target is kept
    or flipped.
    """
    levels = Fraction(k * (k + 1) - e * (e + 1), 2) + k * m - e * h
    numbers = c * (m - h) + Fraction(m * m - h * h, 2)
    return levels + numbers + square * (c + k + m - kept * (c + e + h))


def _likely_kept_levels(k: int, linear: Fraction) -> set[int]:
    """The integers next to where the concave  -e(e+1)/2 + linear e  is largest, within 0..k."""
    around = linear - Fraction(1, 2)
    return {min(max(e, 0), k) for e in (math.floor(around), math.ceil(around))}


def linf_sensitivities(geometry: Geometry, target_weight: Fraction, adjacency: Adjacency) -> tuple[Fraction, Fraction]:
    """The most that a single released value can move, in units of 1: one about features alone, and one about the
    target.

    Guarantee: docs/proofs/moments.md, Theorem 5.
    """
    c, k, s, q = _shape(geometry)
    w = _weight(geometry, target_weight)
    if adjacency == "add-remove":
        return Fraction(1), w
    m = s + q
    flips = (
        _unstructured(geometry) or m > 1 or (m == 1 and c + k > 0)
    )  # a number's product with anything else can change its sign
    return Fraction(2 if flips else 1), 2 * w


def _shape(geometry: Geometry) -> Shape:
    """c, k, s and q, where slopes that may be missing are slopes."""
    slopes = geometry.count("slope") + geometry.count("slope-or-missing")
    return int(geometry.intercept), geometry.count("levels"), geometry.count("sign"), slopes


def _shapes(geometry: Geometry) -> Iterator[tuple[Shape, int]]:
    """c, k, s and q where i slopes are missing in one of two rows, for every i, and how much more their squares move:
    the square of a level is its product with the intercept, that of a slope is not.
    """
    c, k, s, q = _shape(geometry)
    for missing in range(geometry.count("slope-or-missing") + 1):
        yield (c, k + missing, s, q - missing), c * missing


def _unstructured(geometry: Geometry) -> bool:
    return bool(geometry.count("share") or geometry.count("indicators"))


def _weight(geometry: Geometry, target_weight: Fraction) -> Fraction:
    return target_weight if geometry.target is not None else Fraction(0)


def _row_norm(geometry: Geometry, w: Fraction) -> Fraction:
    """The largest sum of a row's own distinct products, the target's weighted by w."""
    if _unstructured(geometry):
        blocks = geometry.intercept + geometry.n_blocks
        return Fraction(blocks * (blocks + 1), 2) + w * blocks
    c, k, s, q = _shape(geometry)
    m = s + q
    counted = int(c or s > 0)
    return counted + Fraction(k * (k + 1), 2) + k * m + c * m + Fraction(m * (m - 1), 2) + q + w * (c + k + m)
