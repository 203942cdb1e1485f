"""Model files that somebody changed and gave a fitting checksum again: what is found then is not the checksum."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privfit.models.model_files import checksum


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the document of a saved model in place, and its checksum with it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    if "checksum" in document:
        document["checksum"] = checksum(document)
    path.write_text(json.dumps(document), encoding="utf-8")
