"""Walls that imports do not show: randomness is made in privacy/ only, and privfit does without privfit-papers."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "privfit"
PAPERS = ROOT / "papers" / "src" / "privfit_papers"
OUTSIDE = [
    path
    for path in (*sorted(SOURCES.rglob("*.py")), *sorted(PAPERS.rglob("*.py")))
    if not path.is_relative_to(SOURCES / "privacy")
]
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


def test_no_randomness_is_made_outside_privacy() -> None:
    found = {str(path.relative_to(ROOT)): makers_in(path.read_text()) for path in OUTSIDE}
    assert {path: makers for path, makers in found.items() if makers} == {}


# -- one order of steps ----------------------------------------------------------------------------

BASE = "mechanisms/base.py"
MAY_CHARGE = (BASE, "privacy/ledger/")
FILES = {str(path.relative_to(SOURCES).as_posix()): path.read_text() for path in sorted(SOURCES.rglob("*.py"))}


def charges_in(text: str) -> list[int]:
    """The lines that charge a ledger."""
    return sorted(
        node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute) and node.attr == "charge"
    )


def releases_in(text: str) -> list[str]:
    """The classes with a method, or an attribute, `release` of their own."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            own = [
                *(item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)),
                *(
                    getattr(target, "id", "")
                    for item in node.body
                    if isinstance(item, ast.Assign | ast.AnnAssign)
                    for target in (item.targets if isinstance(item, ast.Assign) else [item.target])
                ),
            ]
            found += [node.name] if "release" in own else []
    return found


def test_ledgers_are_charged_in_one_place() -> None:
    offenders = [
        f"{name}:{line}" for name, text in FILES.items() if not name.startswith(MAY_CHARGE) for line in charges_in(text)
    ]
    assert not offenders, "\n".join(offenders)
    assert len(charges_in(FILES[BASE])) == 1


def test_no_mechanism_overrides_the_order_of_a_release() -> None:
    offenders = [f"{name}: {found}" for name, text in FILES.items() if name != BASE for found in releases_in(text)]
    assert not offenders, "\n".join(offenders)
    assert releases_in(FILES[BASE]) == ["Mechanism"]


@pytest.mark.parametrize(
    "text",
    ["ledger.charge(event)", "self._account.charge(event)", "pay = ledger.charge\npay(event)"],
)
def test_the_wall_sees_every_charge(text: str) -> None:
    assert charges_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "class A(Mechanism):\n    def release(self): ...",
        "class A:\n    release = other",
        "class A:\n    release: Any = other",
        "def f():\n    class A(B):\n        async def release(self): ...",
    ],
)
def test_the_wall_sees_every_release(text: str) -> None:
    assert releases_in(text) == ["A"]


@pytest.mark.parametrize(
    "text",
    [
        "import numpy as np\nnp.random.laplace()",
        "from numpy.random import default_rng",
        "import secrets",
        "import os\nos.urandom(3)",
    ],
)
def test_the_wall_sees_what_climbs_over_it(text) -> None:
    assert makers_in(text)


LOADERS = ("import_module", "__import__", "find_spec", "run_module")


def imports_of_the_papers(text: str) -> set[str]:
    """Modules of privfit_papers that are imported, also inside of functions and by name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LOADERS:
            found |= {value.value for value in node.args if isinstance(value, ast.Constant)}
    return {name for name in found if str(name).split(".")[0] == "privfit_papers"}


def test_nothing_in_the_wheel_of_privfit_imports_the_papers() -> None:
    files = {path.relative_to(SOURCES): path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    assert len(files) > 100
    assert {str(path): found for path, text in files.items() if (found := imports_of_the_papers(text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import privfit_papers",
        "def late():\n    from privfit_papers.bench import data",
        "import importlib\nimportlib.import_module('privfit_papers.cli')",
    ],
)
def test_an_import_of_the_papers_would_be_found(text: str) -> None:
    assert imports_of_the_papers(text)


def test_the_wheel_of_privfit_is_made_of_its_own_package_alone() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/privfit"]}
    assert {path.name for path in SOURCES.iterdir()}.isdisjoint({"bench", "papers", "experiments"})
