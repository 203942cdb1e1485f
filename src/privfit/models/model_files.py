"""Files of saved models: JSON with a format and a checksum, and one kind of error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from privfit.models.report import JSONObject

FORMAT = 2
"""The format that is written. 1, which had no checksum, is read too."""


class ModelFileError(ValueError):
    """A file that is not a model saved by privfit, or one that was changed or cut off.

    See Also
    --------
    load_model : Reads a saved model.
    """


def write(path: Path, document: JSONObject, plain: Callable[[object], object]) -> None:
    """Write a document with its format and checksum; `plain` makes JSON of what is none."""
    kept = json.loads(json.dumps({"format": FORMAT} | document, default=plain))
    path.write_text(json.dumps({"checksum": checksum(kept), **kept}, indent=1) + "\n", encoding="utf-8")


def checksum(document: JSONObject) -> str:
    """SHA-256 of all but the checksum, written in one way: names in order, no spaces, ASCII.

    It finds damage, and edits by hand. It is not a signature: whoever forges a model can compute it.
    """
    rest = {name: value for name, value in document.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def read(path: Path) -> JSONObject:
    """The document in a file, of a format that is known and as it was written."""
    document: JSONObject = json.loads(path.read_bytes().decode("utf-8"))
    known = document["format"]
    if isinstance(known, bool) or not isinstance(known, int) or not 1 <= known <= FORMAT:
        raise ModelFileError(
            f"The model file {path.name!r} has a format that this privfit does not know; it reads 1 to {FORMAT}. "
            "Install a later privfit, or save the model with this one."
        )
    if (known > 1 or "checksum" in document) and document.get("checksum") != checksum(document):
        raise ModelFileError(
            f"The model file {path.name!r} was changed after it was saved, or is damaged: its checksum is not that of "
            "its content. Take the file as it was saved, or fit again."
        )
    return document


def no_model(path: Path) -> ModelFileError:
    """The refusal of a file that is no saved model, whatever it is."""
    return ModelFileError(
        f"The file {path.name!r} is not a model saved by privfit. Give the path that `save` or `privfit fit -o` wrote."
    )
