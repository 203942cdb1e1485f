"""The examples of the pages on selecting columns, holdouts and private search run, in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
@pytest.mark.parametrize("page", ["selecting-columns.md", "holdout.md", "private-search.md"])
def test_the_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S))
    exec(compile(code, page, "exec"), {"print": lambda *values: None})
