"""The examples of docs/engines.md run, in their order."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "engines.md"


def examples() -> list[str]:
    """The examples of the page."""
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [name for name in ("duckdb", "narwhals", "fsspec", "dask") if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    blocks = [block for block in examples() if "pyspark" not in block]  # tests/tables/test_clusters.py runs that one
    assert len(blocks) >= 10
    known: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), known)
