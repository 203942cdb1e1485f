"""How readable the code is, in numbers: lengths of functions and files, parameters, and how much is typed.

    python tools/house.py [--check] [--list] [folder ...]

Reads the syntax tree only, so it takes a second and imports nothing of the package. The folder is src/privfit unless
others are named. `--check` exits with 1 when a limit is exceeded (CONTRIBUTING.md has them), `--list` names the places.

What is counted:

- A function is any `def`, methods and nested functions included; lambdas and comprehensions are not. Its length is the
  lines from `def` to its end without its docstring: the signature counts, decorators do not.
- A declaration may be longer than the limit: a function that has no statement but its docstring, one statement, or
  stores of its arguments (`self.alpha = alpha`).
- Arguments are all parameters but `self` and `cls`. An annotation is `Any` if it is that name, alone or in a union;
  annotations of arguments, results, attributes and variables count.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
Function = ast.FunctionDef | ast.AsyncFunctionDef

MEDIAN_LINES = 7
FUNCTION_LINES = 60
PARAMETERS = 8
FILE_LINES = 400
ANY_SHARE = 0.03


@dataclass(frozen=True)
class Source:
    """A file and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> Source:
        text = path.read_text(encoding="utf-8")
        return cls(path, text, ast.parse(text))

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def place(self, line: int) -> str:
        """The path and a line, as a terminal links it."""
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{line}"


@dataclass(frozen=True)
class Measure:
    """A number, its limit if it has one, and the places that make it."""

    name: str
    value: float
    limit: float | None = None
    places: tuple[str, ...] = ()
    percent: bool = False

    @property
    def exceeded(self) -> bool:
        return self.limit is not None and self.value > self.limit

    def shown(self, number: float | None) -> str:
        if number is None:
            return ""
        return f"{number:.2%}" if self.percent else f"{number:g}"


def statements(function: Function) -> list[ast.stmt]:
    """The statements of a function without its docstring."""
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return whole
    docstring = function.body[0]
    return whole - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def is_declaration(function: Function) -> bool:
    """Whether a function declares rather than does: nothing, one statement, or stores of its arguments."""
    body = statements(function)
    return len(body) <= 1 or all(_stores_argument(statement) for statement in body)


def _stores_argument(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign | ast.AnnAssign)
        and isinstance(statement.value, ast.Name)
        and all(isinstance(target, ast.Attribute) for target in _targets(statement))
    )


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def parameters(function: Function) -> list[ast.arg]:
    """All parameters but `self` and `cls`."""
    listed = function.args
    extra = [argument for argument in (listed.vararg, listed.kwarg) if argument is not None]
    every = [*listed.posonlyargs, *listed.args, *listed.kwonlyargs, *extra]
    return [argument for argument in every if argument.arg not in ("self", "cls")]


def annotations_of(source: Source) -> Iterator[ast.expr]:
    """Annotations of arguments, results, attributes and variables."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, Function) and node.returns is not None:
            yield node.returns


def is_any(annotation: ast.expr) -> bool:
    """Whether an annotation says nothing: `Any`, alone or in a union."""
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left) or is_any(annotation.right)
    return getattr(annotation, "id", getattr(annotation, "attr", "")) == "Any"


def measures(sources: list[Source]) -> list[Measure]:
    """All numbers, in the order of the table."""
    functions = [(source, function) for source in sources for function in source.functions]
    lengths = [length(function) for _, function in functions]
    return [
        Measure("files", len(sources)),
        Measure("lines", sum(source.lines for source in sources)),
        Measure("functions", len(functions)),
        Measure("median lines of a function", median(lengths) if lengths else 0, MEDIAN_LINES),
        _long_functions(functions),
        _many_parameters(functions),
        _long_files(sources),
        _untyped(functions),
        _any_share(sources),
    ]


def _long_functions(functions: list[tuple[Source, Function]]) -> Measure:
    places = tuple(
        f"{source.place(function.lineno)} {function.name}: {length(function)} lines"
        for source, function in functions
        if length(function) > FUNCTION_LINES and not is_declaration(function)
    )
    return Measure(f"functions above {FUNCTION_LINES} lines", len(places), 0, places)


def _many_parameters(functions: list[tuple[Source, Function]]) -> Measure:
    places = tuple(
        f"{source.place(function.lineno)} {function.name}: {len(parameters(function))} parameters"
        for source, function in functions
        if len(parameters(function)) > PARAMETERS
    )
    return Measure(f"functions with more than {PARAMETERS} parameters", len(places), None, places)


def _long_files(sources: list[Source]) -> Measure:
    places = tuple(f"{source.place(1)} {source.lines} lines" for source in sources if source.lines > FILE_LINES)
    return Measure(f"files above {FILE_LINES} lines", len(places), 0, places)


def _untyped(functions: list[tuple[Source, Function]]) -> Measure:
    every = [(source, function, argument) for source, function in functions for argument in parameters(function)]
    places = tuple(
        f"{source.place(argument.lineno)} {function.name}: {argument.arg}"
        for source, function, argument in every
        if argument.annotation is None
    )
    return Measure("arguments without a type", len(places) / max(len(every), 1), 0, places, percent=True)


def _any_share(sources: list[Source]) -> Measure:
    every = [(source, annotation) for source in sources for annotation in annotations_of(source)]
    places = tuple(source.place(annotation.lineno) for source, annotation in every if is_any(annotation))
    return Measure("annotations that are Any", len(places) / max(len(every), 1), ANY_SHARE, places, percent=True)


def print_table(found: list[Measure]) -> None:
    """One line per measure, with its limit and whether it holds."""
    width = max(len(measure.name) for measure in found)
    print(f"{'':{width}}  {'now':>7}  {'limit':>6}")
    for measure in found:
        mark = "  exceeded" if measure.exceeded else ""
        print(f"{measure.name:{width}}  {measure.shown(measure.value):>7}  {measure.shown(measure.limit):>6}{mark}")


def print_places(found: list[Measure]) -> None:
    """Where the numbers come from."""
    for measure in found:
        if measure.places:
            print(f"\n{measure.name}:", *measure.places, sep="\n  ")


def main(given: list[str] | None = None) -> int:
    """The table, and 1 if a limit is exceeded and `--check` was given."""
    parser = argparse.ArgumentParser(description="How readable the code is, in numbers.")
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "src" / "privfit"])
    parser.add_argument("--check", action="store_true", help="fail when a limit is exceeded")
    parser.add_argument("--list", action="store_true", help="name the places")
    asked = parser.parse_args(given)
    sources = [Source.read(path.resolve()) for folder in asked.folders for path in sorted(folder.rglob("*.py"))]
    found = measures(sources)
    print_table(found)
    if asked.list:
        print_places(found)
    return int(asked.check and any(measure.exceeded for measure in found))


if __name__ == "__main__":
    sys.exit(main())
