"""Public feature maps in front of a linear model: random Fourier features of a kernel, rows of bounded norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from privfit.features import FourierFeatures, ShortenedRows
from privfit.mechanisms.base import Numbers
from privfit.models.named import ERMMechanism
from privfit.privacy import PrivacyError
from privfit.schema import Numeric, Schema

if TYPE_CHECKING:
    from privfit.models.perturbed import AnyPerturbedModel

USUAL_COMPONENTS = 200
"""Fourier features of a kernel: more of them follow the kernel more closely, and have noise on more weights. The
experiment below was made with this number."""
PUBLIC_SEED = 20081208
"""Frequencies are drawn from this seed, which anybody may know: they do not depend on rows."""
USUAL_GAMMA, LEVELS_WEIGH = 4.0, 3
"""gamma="auto" is 4 over the number of columns, a category counting as three: two levels are at a squared distance of
2, two numbers between -1 and 1 at one of 2/3 on average. A larger gamma follows the rows more closely, and needs more
of them. Chosen on generated data: python papers/experiments/kernels.py."""
MOST_GAMMA = 1e6
"""Above this a kernel separates all rows; frequencies stay far from the largest floats."""
MOST_COMPONENTS = 10_000
"""Limits memory: the design has so many columns of floats."""
SHORTEST, LONGEST, MOST_NORM = 1e-3, 1e6, 1e300
"""Norms relative to the bounds of the columns: shorter rows would be lost in the lattice on which rows are rounded,
longer ones are cut, because no row within the bounds is so long; and no norm is near the largest float."""


def fourier_features(model: AnyPerturbedModel, schema: Schema, numeric: Numbers, knots: int) -> FourierFeatures:
    """The random Fourier features of `kernel="rbf"`."""
    anchored: Literal["no", "all"] = "no" if model.fit_intercept else "all"
    width = schema.geometry(numeric=numeric, intercept=False, several=True, knots=knots, anchored=anchored).n_columns
    weighed = sum(
        1 if isinstance(column, Numeric) and column.bins is None else LEVELS_WEIGH for column in schema.features
    )
    gamma = USUAL_GAMMA / weighed if model.gamma == "auto" else model.gamma
    _check_positive("gamma", gamma, MOST_GAMMA, whole=False)
    _check_positive("n_components", model.n_components, MOST_COMPONENTS, whole=True)
    return FourierFeatures(width, max(1, int(model.n_components) // 2), float(gamma), PUBLIC_SEED)


def _check_positive(name: str, value: object, most: float, whole: bool) -> None:
    kinds = int | np.integer if whole else int | np.integer | float | np.floating
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= most:
        raise PrivacyError(
            f"{name}={value!r} was given; it is a positive {'integer' if whole else 'number'} up to {most:g}, chosen "
            "without looking at the rows. Leave it out if in doubt."
        )


def short_rows(model: AnyPerturbedModel, mechanism: ERMMechanism, schema: Schema) -> ShortenedRows:
    """Rows of norm at most `row_norm`, in the units of the table: all columns have one bound, on both sides of zero, so
    that norms mean the same in encoded rows.
    """
    norm = model.row_norm
    if (
        isinstance(norm, bool)
        or not isinstance(norm, int | float | np.integer | np.floating)
        or not 0 < norm < np.inf
        or norm > MOST_NORM
    ):
        raise PrivacyError(
            f"row_norm={norm!r} was given; it is a positive number, the norm that no row exceeds. Leave it out if in "
            "doubt."
        )
    if model.kernel != "linear" or model.numeric not in ("auto", "slope") or mechanism.solves != "erm":
        raise PrivacyError(
            f"row_norm={norm!r} was given with a kernel, bins, splines or another mechanism; it is for linear models "
            "by objective or output perturbation. Leave one of them out."
        )
    bound = _common_bound(norm, schema)
    if norm < SHORTEST * bound:
        raise PrivacyError(
            f"row_norm={norm!r} was given with bounds of {bound:g}, beside which such rows can hardly be distinguished "
            "from zero. Give bounds near row_norm: no number of a row can exceed it."
        )
    return ShortenedRows(len(schema.features), min(float(norm), LONGEST * bound) / bound, bool(model.fit_intercept))


def _common_bound(norm: float, schema: Schema) -> float:
    """The bound that all columns have, on both sides of zero."""
    bounds = {
        (column.low, column.high) if isinstance(column, Numeric) and column.bins is None else None
        for column in schema.features
    }
    common = next(iter(bounds))
    if len(bounds) > 1 or common is None or common[0] != -common[1]:
        raise PrivacyError(
            f"row_norm={norm!r} was given with a schema whose columns are not all numbers with the same bounds on both "
            "sides of zero. Give such a schema, for example pf.Schema.box(-1, 1, ...), or leave row_norm out."
        )
    return common[1]
