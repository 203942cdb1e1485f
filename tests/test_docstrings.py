"""Docstrings of public objects: in numpydoc form, with the defaults of the code, and with examples that run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numpydoc import validate as validation

from privfit.models._docs import documented

ROOT = Path(__file__).parents[1]
MODULES = (
    "privfit",
    "privfit.baselines",
    "privfit.losses",
    "privfit.publish",
    "privfit.learning",
    "privfit.audit",
    "privfit.datasets",
)
CHECKS_OFF = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]["checks"]) - {
    "all"
}
OF_EXPORTS = {"EX01", "SA01"}
"""Off for methods, properties and exceptions; an exported class or function has examples and cross-references."""


def is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] == "privfit"


def exports() -> Iterator[tuple[str, Any]]:
    """Every exported class and function, once, by the name that users write."""
    seen: set[int] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        listed = getattr(module, "__all__", None) or [
            key for key, thing in vars(module).items() if not key.startswith("_") and thing_is_of(thing, name)
        ]
        for key in sorted(listed):
            thing = getattr(module, key)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and id(thing) not in seen:
                seen.add(id(thing))
                address = f"{name}.{key}"
                yield (f"{address}.{key}" if address in sys.modules else address), thing


def thing_is_of(thing: Any, module: str) -> bool:
    return inspect.isfunction(thing) and thing.__module__ == module


def introduced(owner: type, name: str) -> type:
    """The class whose docstring of a method counts: its own, and for mechanisms the one that introduces the method.

    What `plan`, `read` and `draw` take and return is described once, in Mechanism.
    """
    defining = [base for base in owner.__mro__ if name in vars(base)]
    return defining[-1] if owner.__module__.startswith("privfit.mechanisms") else defining[0]


def members() -> Iterator[str]:
    """Every public method and property of an exported class that is written here, once."""
    seen: set[tuple[type, str]] = set()
    for owner_name, owner in EXPORTS.items():
        if not inspect.isclass(owner):
            continue
        for name in dir(owner):
            member = inspect.getattr_static(owner, name)
            described = hasattr(member, "__doc__") and (callable(member) or hasattr(member, "__get__"))
            base = introduced(owner, name) if described else object
            if name.startswith("_") or not is_ours(base) or type(member).__name__ == "RequestMethod":
                continue
            if (base, name) not in seen:
                seen.add((base, name))
                yield (
                    f"{owner_name}.{name}"
                    if base in (owner, object)
                    else f"{base.__module__}.{base.__qualname__}.{name}"
                )


EXPORTS = dict(exports())
MEMBERS = sorted(set(members()))


def faults(name: str, off: set[str]) -> list[str]:
    return [f"{code}: {text}" for code, text in validation.validate(name)["errors"] if code not in off]


def test_there_is_something_to_validate() -> None:
    assert len(EXPORTS) > 60
    assert len(MEMBERS) > 100


@pytest.mark.parametrize("name", EXPORTS)
def test_an_exported_object_has_a_complete_docstring(name: str) -> None:
    is_exception = inspect.isclass(EXPORTS[name]) and issubclass(EXPORTS[name], BaseException)
    off = CHECKS_OFF - (OF_EXPORTS - {"EX01"} if is_exception else OF_EXPORTS)
    assert not faults(name, off), name


@pytest.mark.parametrize("name", MEMBERS)
def test_a_public_method_or_property_has_a_complete_docstring(name: str) -> None:
    assert not faults(name, CHECKS_OFF), name


@pytest.mark.parametrize("name", [*EXPORTS, *MEMBERS])
def test_documented_defaults_are_those_of_the_code(name: str) -> None:
    thing = validation.Validator._load_obj(name)
    if isinstance(thing, property) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return
    parameters = inspect.signature(thing).parameters
    told = dict(re.findall(r"^(\w+) : .*, default=(.*)$", _parameters(inspect.getdoc(thing) or ""), flags=re.M))
    assert {key: ast.literal_eval(value) for key, value in told.items()} == {
        key: parameters[key].default for key in told
    }
    optional = {key for key, parameter in parameters.items() if parameter.default is not parameter.empty}
    described = set(re.findall(r"^(\w+) : .*(?:, default=|, optional$)", inspect.getdoc(thing) or "", flags=re.M))
    assert optional <= described, f"{name} does not say the defaults of {sorted(optional - described)}"


def _parameters(docstring: str) -> str:
    _, _, rest = docstring.partition("Parameters\n----------\n")
    return re.split(r"\n\w[\w ]*\n---", rest)[0]


@pytest.mark.parametrize("name", [name for name, thing in EXPORTS.items() if ">>> " in (thing.__doc__ or "")])
@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
def test_examples_run(name: str) -> None:
    text = inspect.getdoc(EXPORTS[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, None, None)
    told: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert outcome.attempted > 0
    assert not outcome.failed, "".join(told)


# -- how docstrings are put together -----------------------------------------------------------------


class Parent:
    """A parent.

    Parameters
    ----------
    width : float
        How wide it is.

    Attributes
    ----------
    area_ : float
        How large it is.
    """

    def __init__(self, width: float = 2.0, epsilon: float = 1.0) -> None:
        self.width, self.epsilon = width, epsilon


Parent.__module__ = "privfit.pretended"  # bases of other packages are not read


class Child(Parent):
    """A child.

    Parameters
    ----------
    height : int
        How high it is.

        Even two paragraphs.

    Notes
    -----
    A note.
    """

    def __init__(self, height: int, width: float = 3.0, *, epsilon: float = 1.0) -> None:
        super().__init__(width, epsilon)
        self.height = height


Child.__module__ = "privfit.pretended"


def test_a_docstring_has_its_own_entries_and_the_inherited_ones_in_the_order_of_the_signature() -> None:
    text = documented(Child).__doc__
    assert text is not None
    assert text.startswith("A child.\n\nParameters\n----------\nheight : int\n    How high it is.\n\n    Even two")
    assert "width : float, default=3.0\n    How wide it is.\nepsilon : float, default=1.0\n    Privacy budget" in text
    assert "\n\nAttributes\n----------\narea_ : float\n    How large it is.\nreport_ : Report\n" in text
    assert text.endswith("\n\nNotes\n-----\nA note.\n")


def test_putting_together_twice_changes_nothing() -> None:
    once = documented(Child).__doc__
    assert documented(Child).__doc__ == once


def test_a_class_without_a_docstring_as_under_python_oo_stays_without() -> None:
    assert documented(type("Bare", (Child,), {"__module__": "privfit.pretended"})).__doc__ is None
