"""scikit-learn's selectors of columns around a private model: what would fail after the charge is refused before it.

RFE and SelectFromModel fit first and read importances afterwards, so that a mistake in their parameters would cost a
fit. They pass nothing of themselves to `fit`; `inputs.calling_selector` finds them among its callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privfit.mechanisms.base import AnyMechanism
from privfit.models.inputs import Input
from privfit.privacy import PrivacyError
from privfit.schema import Geometry

if TYPE_CHECKING:
    from sklearn.feature_selection import RFE, SelectFromModel

    from privfit.models.private import AnyModel


def check_selector(
    selector: RFE | SelectFromModel, model: AnyModel, mechanism: AnyMechanism, geometry: Geometry, given: Input
) -> None:
    """Refuse a selector that would fail after the fit: it would read something else than one number per column, or fit
    again with columns that the schema does not have.
    """
    name, ours = type(selector).__name__, type(model).__name__
    _check_getter(selector.importance_getter, name, model)
    several = len(geometry.feature_names) != len(geometry.blocks) or (
        model._curved_later(mechanism) and _fits_again(selector)
    )
    if selector.importance_getter in ("auto", "coef_") and several:
        raise PrivacyError(
            f"{name} was given a {ours} with importance_getter={selector.importance_getter!r}, which reads coef_. That "
            "has an entry for every level and knot, and not one per column. "
            f"Write {name}(..., importance_getter='feature_importances_'). Nothing was charged."
        )
    if _fits_again(selector) and not (given.by_position or given.strict_names):
        raise PrivacyError(
            f"{name} was given a {ours} whose schema lists its columns; it fits again and again with fewer of them, as "
            "arrays without names, which such a schema refuses. Use a schema for any number of columns, "
            "pf.Schema.box(low, high, target=...), or SelectFromModel, which fits once. Nothing was charged."
        )


def _fits_again(selector: RFE | SelectFromModel) -> bool:
    """Whether it is an RFE, which fits with fewer and fewer columns."""
    from sklearn.feature_selection import RFE  # here, because it takes long to load; the caller has it already

    return isinstance(selector, RFE)


def _check_getter(getter: object, name: str, model: AnyModel) -> None:
    """Refuse the name of an attribute that this model will not have, or that is no importance of columns."""
    readable = model._importance_names
    if not isinstance(getter, str) or getter in readable or (getter == "auto" and "coef_" in readable):
        return
    given = f"{name} was given a {type(model).__name__}"
    if "coef_" in readable:
        raise PrivacyError(
            f"{given} with importance_getter={getter!r}, which does not say how much each column counts. "
            f"Write {name}(..., importance_getter='feature_importances_'). Nothing was charged."
        )
    if getattr(model, "kernel", "linear") != "linear":
        raise PrivacyError(
            f"{given} with a kernel, which has no importances: its features mix all columns. Use kernel='linear'. "
            "Nothing was charged."
        )
    raise PrivacyError(
        f"{given} with importance_getter={getter!r}; it has no importances, as it has no coefficients. Use a linear "
        "model, such as pf.LinearRegression, or give a function as importance_getter, from the fitted model to one "
        "number per column. Nothing was charged."
    )
