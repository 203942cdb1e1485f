"""scikit-learn's own checks of every estimator, and no use of its private modules."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from privfit.models import ESTIMATORS

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("src", "papers/src") for path in sorted((ROOT / folder).rglob("*.py"))]

# -- scikit-learn's own checks ---------------------------------------------------------------------

REPEATED = (
    "weights are rounded to steps, noise is for the largest one, and ridge and threshold go by the public number of "
    "rows, which is another where rows are repeated: tests/models/test_sample_weight.py has equal ridges"
)
REPEATED_ROWS = {
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
}
WEIGHED = [one for one in ESTIMATORS if "sample_weight" in inspect.signature(one.fit).parameters]
EXCEPTIONS: dict[type, dict[str, str]] = dict.fromkeys(WEIGHED, REPEATED_ROWS)
"""Checks that an estimator may fail, by name, with the reason; all others pass."""


def checked(epsilon: float) -> pytest.MarkDecorator:
    return parametrize_with_checks(
        [estimator(epsilon=epsilon, schema="public") for estimator in ESTIMATORS],
        expected_failed_checks=lambda estimator: EXCEPTIONS.get(type(estimator), {}),
    )


@checked(epsilon=1e6)
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@checked(epsilon=1.0)
def test_every_check_of_scikit_learn_passes_with_much_noise(estimator: Any, check: Any) -> None:
    check(estimator)


# -- public modules only ---------------------------------------------------------------------------


def private_uses(source: str) -> list[str]:
    """Every way in which a source reaches into a private part of scikit-learn: imports and dotted names."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == "sklearn"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            found += [dotted] if dotted.split(".")[0] == "sklearn" else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("sklearn."):
            found.append(node.value)
    return [name for name in found if any(part.startswith("_") for part in name.split("."))]


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.linear_model import _base",
        "import sklearn.linear_model._logistic as logistic",
        "import sklearn\nsklearn.utils._tags",
        "importlib.import_module('sklearn.utils._mask')",
    ],
)
def test_a_private_module_of_scikit_learn_would_be_found(source: str) -> None:
    assert private_uses(source)


def test_only_public_modules_of_scikit_learn_are_used() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    assert sum("sklearn" in source for source in sources.values()) >= 3
    assert {
        str(path.relative_to(ROOT)): uses for path, source in sources.items() if (uses := private_uses(source))
    } == {}
