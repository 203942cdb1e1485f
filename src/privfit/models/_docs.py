"""Docstrings put together: a parameter or attribute is described once, where it is introduced.

The docstring of an estimator describes what is its own. `documented` adds the rest, in numpydoc form: every parameter
of the signature, in its order and with its default, and every attribute. An entry comes from the nearest class in the
order of inheritance that has one, as a method would, and at last from SHARED. A function takes what it does not
describe from the docstring of its module.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

SHARED = """What every private estimator takes and keeps.

Parameters
----------
epsilon : float
    Privacy budget of one fit. A smaller epsilon means more privacy and more noise.
delta : float
    Probability with which the guarantee may fail; 0 asks for pure epsilon-DP. With a delta above 0, Gaussian noise is
    used where its standard deviation is smaller, as it usually is with many columns.
schema : Schema, str, Path or None
    Public facts about the table: a `pf.Schema`, or the path of a TOML file that has one. Every private fit needs it.
    "public" declares the table itself public: bounds, levels and classes are then read from its rows, the report says
    that the fit is not private, and a ledger is refused.
adjacency : {'replace-one', 'add-remove'}
    Which tables are neighbours. Under "replace-one" the rows of one person change and the number of rows is public.
    Under "add-remove" one person is in the table or not, and the number of rows is private.
fit_intercept : bool
    Whether to fit an intercept.
numeric : {'auto', 'slope', 'bins'}
    Encoding of numeric columns that have no bins of their own: one slope, or one indicator per bin. "auto" is "slope"
    here.
rows_per_person : int
    Largest number of rows that one person can have. The guarantee is given to persons, not to rows. With
    `Schema(person=...)` further rows of a person are left out; otherwise it is taken on trust that there are none.
expected_rows : int or None
    Public guess of the number of rows, for choices that depend on it where the true number is private ("add-remove").
ledger : Ledger or None
    Budget that is charged before any noise is drawn. Without one, a ledger without a limit keeps the running total of
    the process.
random_state : int, Generator, RandomState or None
    None draws secret noise. A seed makes the noise repeatable and the result NOT private; it is meant for tests and
    experiments.
n_jobs : int or None
    Number of threads that encode and sum rows. None and -1 use all cores of the process, -2 all but one. It is public
    and changes no bit of the fit. Threads of an engine that reads the table are that engine's own.
max_memory : int, str or None
    Memory that the fit may take beside the table itself, in bytes or as a text such as "500MB" or "8GB"; None is 1 GB.
    600 MB of it are for libraries and batches in work. A fit in several passes keeps its encoded rows in the rest, and
    in a temporary file where they need more (docs/how-large.md). It is public and changes no bit of the fit.

Attributes
----------
report_ : Report
    What was guaranteed, what was drawn, and what was taken as public.
schema_ : Schema
    The schema that was used.
n_features_in_ : int
    Number of input columns.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the input columns; only where the table has names.
"""

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+) : (.*)\n((?:[ ].*\n|\n(?=[ ]))*)", re.MULTILINE)


def documented(subject: Documented) -> Documented:
    """Complete the docstring of an estimator or a function; without docstrings (python -OO) do nothing."""
    if subject.__doc__ is None:
        return subject
    summary, own = _sections(subject.__doc__)
    taken = tuple(_sources(subject))
    parameters = _nearest(taken, "Parameters")
    attributes = _nearest(taken, "Attributes") if isinstance(subject, type) else {}
    complete = {
        "Parameters": [
            _described(name, *parameters[name], default)
            for name, default in _defaults(subject).items()
            if name in parameters
        ],
        "Attributes": [_described(name, *entry) for name, entry in attributes.items()],
        **{title: [body] for title, body in own.items() if title not in ("Parameters", "Attributes")},
    }
    sections = (_section(title, "".join(body)) for title, body in complete.items() if body)
    subject.__doc__ = "\n\n".join((summary, *sections)) + "\n"
    return subject


def _sources(subject: Callable[..., Any]) -> Iterator[str]:
    """The docstrings that entries are taken from, nearest first."""
    if not isinstance(subject, type):
        yield from filter(None, (subject.__doc__, sys.modules[subject.__module__].__doc__))
        return
    ours = __name__.partition(".")[0]
    for base in subject.__mro__:
        if base.__doc__ and base.__module__.partition(".")[0] == ours:
            yield base.__doc__
    yield SHARED


@cache
def _sections(docstring: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the sections by title."""
    summary, *rest = _TITLE.split(inspect.cleandoc(docstring) + "\n")
    return summary.strip("\n"), dict(zip(rest[::2], rest[1::2], strict=True))


def _nearest(docstrings: tuple[str, ...], title: str) -> dict[str, tuple[str, str]]:
    """The type and the description of every name under a title, from the first docstring that has it."""
    found: dict[str, tuple[str, str]] = {}
    for docstring in docstrings:
        for name, entry in _entries(docstring, title).items():
            found.setdefault(name, entry)
    return found


@cache
def _entries(docstring: str, title: str) -> dict[str, tuple[str, str]]:
    """The type, without a default, and the description of every name under a title of one docstring."""
    listed = _ENTRY.findall(_sections(docstring)[1].get(title, ""))
    return {name: (kind.partition(", default=")[0], description) for name, kind, description in listed}


def _defaults(subject: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of the signature in their order, with their defaults; Parameter.empty where there is none."""
    return {parameter.name: parameter.default for parameter in inspect.signature(subject).parameters.values()}


def _section(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body.strip()}"


def _described(name: str, kind: str, description: str, default: Any = inspect.Parameter.empty) -> str:
    """One entry in numpydoc form."""
    told = "" if default is inspect.Parameter.empty else f", default={default!r}"
    return f"{name} : {kind}{told}\n{description}"
