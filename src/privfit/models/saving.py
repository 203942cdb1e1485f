"""Saved models: JSON with coefficients or centres, schema, report and version.

Loading one runs no code from the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privfit.losses import ConvexLoss, PolynomialLoss
from privfit.models.report import JSONObject, Report
from privfit.rows import point_geometry
from privfit.schema import AUTO_KNOTS, Schema
from privfit.version import VERSION

if TYPE_CHECKING:
    from privfit.models.private import AnyModel

_FORMAT = 1
"""The version of saved files; older ones stay readable."""
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


class ModelFileError(ValueError):
    """A file that is not a model saved by privfit.

    See Also
    --------
    load_model : Reads a saved model.
    """


def save(model: AnyModel, path: Path) -> None:
    """Write a fitted model."""
    known = model.get_params(deep=False)
    document = {
        "format": _FORMAT,
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
    path.write_text(json.dumps(document, indent=1, default=_plain) + "\n", encoding="utf-8")


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
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != _FORMAT:
            raise ModelFileError(
                f"The model file {path.name!r} has format {document['format']!r}; this privfit reads {_FORMAT}. Save "
                "it again with this version."
            )
        return _restore(document, kinds)
    except FileNotFoundError as error:
        raise ModelFileError(
            f"There is no model file {path.name!r}. Give the path that `save` or `privfit fit -o` wrote."
        ) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"The file {path.name!r} is not a model saved by privfit. Give the path that `save` or `privfit fit -o` "
            "wrote."
        ) from error


def _restore(document: JSONObject, kinds: dict[str, type[AnyModel]]) -> AnyModel:
    schema = Schema.from_toml(document["schema"])
    given = document["parameters"]
    if isinstance(pairs := given.get("class_weight"), list):
        given["class_weight"] = dict(pairs)
    model = kinds[document["model"]](schema=schema, **given)
    model.schema_ = schema
    if "centres" in document:
        model._geometry = point_geometry(schema)
        model._restore_centres(np.array(document["centres"], dtype=np.float64))
    elif "coef" in document:
        _restore_weights(model, schema, document)
    model.report_ = Report.from_dict(document["report"])
    if document.get("facts"):
        model._restore_facts(document["facts"])
    model.n_features_in_ = len(schema.features)
    model._strict_names, model._by_position = bool(document["strict_names"]), bool(document.get("by_position", False))
    if document["names"]:
        model.feature_names_in_ = np.array(document["names"], dtype=object)
    return model


def _restore_weights(model: AnyModel, schema: Schema, document: JSONObject) -> None:
    encoding = document["encoding"]
    knots = encoding.get("knots", AUTO_KNOTS)
    model._geometry = schema.geometry(
        numeric=encoding["numeric"],
        paper=encoding["paper"],
        intercept=encoding.get("intercept", True),
        several=True,
        knots=knots,
        anchored="features" if encoding.get("anchored") else "no",
        whole=encoding.get("whole", False),
        gaps=encoding.get("gaps", "refused"),
    )
    model._numeric_used, model._knots_used = encoding["numeric"], knots
    model._restore(np.array(document["coef"], dtype=np.float64), np.array(document["intercept"], dtype=np.float64))


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
