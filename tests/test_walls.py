"""Walls that imports do not show: randomness is made in privacy/ only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "privfit"
OUTSIDE = [path for path in sorted(SOURCES.rglob("*.py")) if "privacy" not in path.relative_to(SOURCES).parts]
MAKERS = {"default_rng", "RandomState", "Generator", "SystemRandom", "randbelow", "urandom"}


def makers_in(text: str) -> set[str]:
    """Names that make or draw randomness: numpy's random module, the standard library's, the operating system's."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and (
            node.attr in MAKERS or (node.attr == "random" and getattr(node.value, "id", "") in ("np", "numpy"))
        ):
            found.add(node.attr)
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            found |= {name for name in names if name in MAKERS | {"random", "secrets", "numpy.random"}}
    return found


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_randomness_is_made_outside_privacy(path) -> None:
    assert makers_in(path.read_text()) == set()


@pytest.mark.parametrize(
    "text",
    ["import numpy as np\nnp.random.laplace()", "from numpy.random import default_rng", "import secrets", "import os\nos.urandom(3)"],
)
def test_the_wall_sees_what_climbs_over_it(text) -> None:
    assert makers_in(text)
