"""scikit-learn's selectors of columns around a private model: what would fail after the charge is refused before it.

RFE and SelectFromModel fit first and look at importances afterwards, so that a mistake in how they are set would cost a
fit. They hand nothing of themselves to `fit`; the only way to know of them in time is to look at who calls.
"""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.feature_selection import RFE, SelectFromModel

from privfit.privacy import PrivacyError
from privfit.schema import Geometry

CALLERS = 12
"""How many calls up a selector is looked for. It stands four above; the rest is room for wrappers of `fit`."""


def check_selector(model: Any, geometry: Geometry, readable: tuple[str, ...], may_bend: bool, open_box: bool) -> None:
    """Refuse a selector that calls this fit and would fail after it: it would read something else than one number per
    column, or fit again with columns that the schema does not have.

    `readable` names the fitted attributes that say how much each column counts. `may_bend` says that numbers may enter
    as splines in a later fit with fewer columns, if not in this one.
    """
    selector = _calling_selector(model)
    if selector is None:
        return
    name, ours = type(selector).__name__, type(model).__name__
    _check_getter(selector.importance_getter, readable, name, model)
    several = len(geometry.feature_names) != len(geometry.blocks) or (may_bend and isinstance(selector, RFE))
    if selector.importance_getter in ("auto", "coef_") and several:
        raise PrivacyError(
            f"{name} was given a {ours} with importance_getter={selector.importance_getter!r}, which reads coef_. That "
            "has an entry for every "
            f"level and knot, and not one per column. Write {name}(..., importance_getter='feature_importances_'). "
            "Nothing was charged."
        )
    if isinstance(selector, RFE) and not open_box:
        raise PrivacyError(
            f"{name} was given a {ours} whose schema lists its columns; it fits again and again with fewer of them, as "
            "arrays "
            "without names, which such a schema refuses. Use a schema for any number of columns, "
            "pf.Schema.box(low, high, target=...), or SelectFromModel, which fits once. Nothing was charged."
        )


def _check_getter(getter: Any, readable: tuple[str, ...], name: str, model: Any) -> None:
    """Refuse the name of an attribute that this model will not have, or that does not count columns."""
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
        "model, such as "
        "pf.LinearRegression, or give a function as importance_getter, from the fitted model to one number per column. "
        "Nothing was charged."
    )


def _calling_selector(model: Any) -> Any:
    """The selector that calls this fit for a model of this kind, or None."""
    frame = inspect.currentframe()
    for _ in range(CALLERS):
        if frame is None:
            return None
        caller = frame.f_locals.get("self")
        if isinstance(caller, RFE | SelectFromModel) and isinstance(caller.estimator, type(model)):
            return caller
        frame = frame.f_back
    return None
