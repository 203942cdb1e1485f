"""Saved models: JSON with coefficients or centres, schema, report and version.

Loading one runs no code from the file, and ends in a model or in a ModelFileError.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privfit.losses import ConvexLoss, PolynomialLoss
from privfit.models import model_files
from privfit.models.model_files import ModelFileError
from privfit.models.report import JSONObject, Report
from privfit.models.trial import try_out
from privfit.rows import point_geometry
from privfit.schema import AUTO_KNOTS, Schema
from privfit.version import VERSION

if TYPE_CHECKING:
    from privfit.models.private import AnyModel

_MOST_KNOTS = 64
"""Knots that a file may ask for: models have 8, and memory goes with them."""
_NUMERIC, _GAPS = ("slope", "bins", "splines"), ("refused", "slope", "spline")
_PARAMETERS = (
    "epsilon",
    "delta",
    "adjacency",
    "fit_intercept",
    "numeric",
    "rows_per_person",
    "expected_rows",
    "alpha",
    "alphas",
    "l1_ratio",
    "kernel",
    "gamma",
    "n_components",
    "row_norm",
    "interactions",
    "intervals",
    "monotone",
    "bands",
    "quantile",
    "max_weight",
    "class_weight",
    "width",
    "penalty",
    "loss",
    "n_clusters",
    "scale",
    "priors",
    "n_jobs",
    "max_memory",
)


def save(model: AnyModel, path: Path) -> None:
    """Write a fitted model."""
    known = model.get_params(deep=False)
    document = {
        "privfit": VERSION,
        "model": type(model).__name__,
        "parameters": {
            name: _plain(_pairs(getattr(model, name)) if name == "class_weight" else getattr(model, name))
            for name in _PARAMETERS
            if name in known and not _is_function(getattr(model, name))
        },
        "schema": model.schema_.to_toml(),
        **_learned(model),
        "features": list(model._geometry.feature_names),
        "names": list(getattr(model, "feature_names_in_", [])),
        "strict_names": model._strict_names,
        "by_position": model._by_position,
        "report": model.report_.to_dict(),
        "facts": model._facts(),
    }
    model_files.write(path, document, _plain)


def _learned(model: AnyModel) -> JSONObject:
    """What a model predicts from, unless that is among its facts."""
    if hasattr(model, "cluster_centers_"):
        return _centres_of(model)
    return _weights_of(model) if hasattr(model, "coef_") else {}


def _weights_of(model: AnyModel) -> JSONObject:
    """What a linear model predicts from."""
    return {
        "encoding": {
            "numeric": model._numeric_used,
            "intercept": model._geometry.intercept,
            "anchored": any(
                block.anchored or (block.kind == "levels" and block.width == 2) for block in model._geometry.blocks
            ),
            "knots": model._knots_used,
            "gaps": "slope" if model._geometry.count("slope-or-missing") else "spline",
            "whole": model._geometry.blocks != () and not any(block.kind == "sign" for block in model._geometry.blocks),
            "paper": any(block.kind in ("share", "indicators") for block in model._geometry.blocks),
        },
        "intercept": np.ravel(model.intercept_).tolist(),
        "coef": np.ravel(model.coef_).tolist(),
    }


def _centres_of(model: AnyModel) -> JSONObject:
    """What clusters predict from."""
    return {"centres": model.cluster_centers_.tolist()}


def load(path: str | Path, kinds: dict[str, type[AnyModel]]) -> AnyModel:
    """The model in a file; `kinds` are the classes that may be in it, by name."""
    path = Path(path)
    try:
        model = _restore(model_files.read(path), kinds)
        try_out(model)
    except ModelFileError:
        raise
    except FileNotFoundError as error:
        raise ModelFileError(
            f"There is no model file {path.name!r}. Give the path that `save` or `privfit fit -o` wrote."
        ) from error
    except Exception as error:  # a file can hold anything
        raise model_files.no_model(path) from error
    return model


def _restore(document: JSONObject, kinds: dict[str, type[AnyModel]]) -> AnyModel:
    schema = Schema.from_toml(document["schema"])
    given = document["parameters"]
    if not set(_PARAMETERS).issuperset(given):
        raise ModelFileError("A model file has parameters that no file of privfit has. Fit again.")
    if isinstance(pairs := given.get("class_weight"), list):
        given["class_weight"] = dict(pairs)
    model = kinds[document["model"]](schema=schema, **given)
    model._check_choices()
    model.schema_ = schema
    if "centres" in document:
        model._geometry = point_geometry(schema)
        model._restore_centres(np.array(document["centres"], dtype=np.float64))
    elif "coef" in document:
        _restore_weights(model, schema, document)
    model.report_ = Report.from_dict(document["report"])
    model._restore_facts(document.get("facts", {}))
    model.n_features_in_ = len(schema.features)
    model._strict_names, model._by_position = bool(document["strict_names"]), bool(document.get("by_position", False))
    _restore_names(model, document)
    return model


def _restore_names(model: AnyModel, document: JSONObject) -> None:
    """Take back the names of the table's columns, which are the schema's, where it had any."""
    listed = [column.name for column in model.schema_.features]
    if document["names"] not in ([], listed) or document["features"] != list(model._geometry.feature_names):
        raise ModelFileError("The names of columns in a model file are not those of its schema. Fit again.")
    if document["names"]:
        model.feature_names_in_ = np.array(listed, dtype=object)


def _restore_weights(model: AnyModel, schema: Schema, document: JSONObject) -> None:
    encoding = document["encoding"]
    knots = encoding.get("knots", AUTO_KNOTS)
    numeric, gaps = encoding["numeric"], encoding.get("gaps", "refused")
    if not isinstance(knots, int) or not 2 <= knots <= _MOST_KNOTS or numeric not in _NUMERIC or gaps not in _GAPS:
        raise ModelFileError("A model file has columns that are encoded as no model does it. Fit again.")
    model._geometry = schema.geometry(
        numeric=numeric,
        paper=encoding["paper"],
        intercept=encoding.get("intercept", True),
        several=True,
        knots=knots,
        anchored="features" if encoding.get("anchored") else "no",
        whole=encoding.get("whole", False),
        gaps=gaps,
    )
    model._numeric_used, model._knots_used = numeric, knots
    intercept = np.array(document["intercept"], dtype=np.float64)
    model._restore(np.array(document["coef"], dtype=np.float64), intercept)
    if np.ravel(model.intercept_).shape != intercept.shape:
        raise ModelFileError("A model file has intercepts that its schema has no classes for. Fit again.")


def _is_function(value: object) -> bool:
    """Whether a parameter is made of functions, which no file can hold."""
    return isinstance(value, ConvexLoss | PolynomialLoss)


def _pairs(given: object) -> object:
    """A dict as pairs, because names are texts in JSON and levels need not be."""
    return [list(pair) for pair in given.items()] if isinstance(given, dict) else given


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(entry) for entry in value]
    item = getattr(value, "item", None)
    return item() if callable(item) else value
