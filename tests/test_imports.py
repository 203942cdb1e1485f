"""What `import privfit` does not load: each of these takes long, and few programs need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "opendp",
    "duckdb",
    "matplotlib",
    "typer",
    "dash",
    "dask",
    "pyspark",
    "sklearn.feature_selection",
    "sklearn.cluster",
    "sklearn.linear_model",
    "sklearn.svm",
)


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    listed = subprocess.run(
        [sys.executable, "-c", "import sys, privfit; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


def test_the_list_is_that_of_an_import(loaded: set[str]) -> None:
    assert {"privfit.models.logistic", "numpy"} <= loaded


@pytest.mark.parametrize("name", HEAVY)
def test_importing_privfit_does_not_load(name: str, loaded: set[str]) -> None:
    assert name not in loaded
