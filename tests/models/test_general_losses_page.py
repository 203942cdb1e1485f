"""The page on losses of one's own: its examples run, and the numbers beside them are what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "general-losses.md"


def test_the_examples_run_in_order_and_find_what_they_say() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S))
    names: dict = {"print": lambda *values: None}
    exec(compile(code, PAGE.name, "exec"), names)
    assert names["model"].coef_ == pytest.approx([0.8, -0.5, 0.3], abs=0.2)
    assert names["high"].coef_[0] == pytest.approx(2.0, abs=0.4)
    assert names["high"].intercept_ == pytest.approx(5.56, abs=0.3)
    assert names["by_parts"].approximation_error([-1, 1]) == pytest.approx(0.0049, abs=1e-4)
    errors = [names["pf"].losses.poisson(degree, interval=2).approximation_error([0, 12]) for degree in (2, 3, 4)]
    assert errors == pytest.approx([0.55, 0.12, 0.023], rel=0.05)
