"""Mutation testing: one change of one operator or constant at a time, and the tests that must notice it.

    python -m tests.mutation src/privfit/statistics/ranges.py tests/mechanisms/test_bounds.py [--sample 40] [--seed 0]

Every mutant is a process of its own, in which the module is compiled with the change; no file is written. The mutants
that no test kills are printed with their lines.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[1]
CHOSEN = "PRIVFIT_MUTANT"
"""The environment variable that names a file and the number of its mutant."""
UNWARNED = ("-o", "filterwarnings=")
"""pytest imports what filters of warnings name before any plugin: the package would be there before its mutant."""
LIMIT = 600
"""Seconds after which a mutant counts as killed: its tests would not end."""
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}


def mutants(tree: ast.Module) -> Iterator[str]:
    """Change the tree in one place after another; what was changed, and where. The tree is as before afterwards."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare):
            for place, own in enumerate(node.ops):
                if type(own) in SWAPPED:
                    node.ops[place] = SWAPPED[type(own)]()  # type: ignore[call-overload]
                    yield f"line {line}: {type(own).__name__} to {SWAPPED[type(own)].__name__}"
                    node.ops[place] = own
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
            before = node.op
            node.op = SWAPPED[type(before)]()  # type: ignore[assignment]
            yield f"line {line}: {type(before).__name__} to {SWAPPED[type(before)].__name__}"
            node.op = before
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            value = node.value
            node.value = not value if isinstance(value, bool) else value + 1
            yield f"line {line}: {value!r} to {node.value!r}"
            node.value = value
        elif isinstance(node, ast.Name | ast.Attribute):
            field = "id" if isinstance(node, ast.Name) else "attr"
            if (told := getattr(node, field)) in NAMES:
                setattr(node, field, NAMES[told])
                yield f"line {line}: {told} to {NAMES[told]}"
                setattr(node, field, told)


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Compiles one file with one change."""

    chosen = 0

    def get_code(self, fullname: str) -> CodeType:
        """The code of the mutant; nothing of it is kept on disk."""
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        for place, _ in enumerate(mutants(tree)):
            if place == self.chosen:
                return compile(tree, self.path, "exec")
        raise ImportError(f"{self.path} has no mutant {self.chosen}")


class MutantFinder(importlib.abc.MetaPathFinder):
    """Finds the module of one file, and leaves all others to Python."""

    def __init__(self, path: Path, chosen: int) -> None:
        self.path, self.chosen = path, chosen

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of the mutant, where this is its module."""
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found is None or found.origin is None or Path(found.origin) != self.path:
            return None
        loader = MutantLoader(name, found.origin)
        loader.chosen = self.chosen
        found.loader = loader
        return found


if CHOSEN in os.environ:  # as a plugin of pytest, before anything of the package is imported
    _file, _, _number = os.environ[CHOSEN].rpartition(":")
    sys.meta_path.insert(0, MutantFinder(Path(_file), int(_number)))


def survives(path: Path, place: int | None, tests: Sequence[str]) -> bool:
    """Whether all tests pass although the module is changed, or, without a place, as it is."""
    run = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tests.mutation", "-p", "no:cacheprovider", *UNWARNED]
    given = dict(os.environ) if place is None else {**os.environ, CHOSEN: f"{path}:{place}"}
    try:
        done = subprocess.run(
            [*run, "-m", "not slow", *tests], cwd=ROOT, env=given, capture_output=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(words: Sequence[str] | None = None) -> int:
    """Try mutants of a file, and print those that survive; their number."""
    parser = argparse.ArgumentParser(description="Mutants of one file, and the tests that must notice them.")
    parser.add_argument("file", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--sample", type=int, help="try so many of them, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    path = given.file.resolve()
    told = list(mutants(ast.parse(path.read_text(encoding="utf-8"))))
    tried = range(len(told))
    if given.sample is not None:
        tried = sorted(random.Random(given.seed).sample(tried, min(given.sample, len(told))))
    if tried and not survives(path, None, given.tests):
        parser.error(f"without a change, {' '.join(given.tests)} must pass: a test that fails kills everything")
    alive = []
    for place in tried:
        if survives(path, place, given.tests):
            alive.append(place)
            print(f"{given.file} {place}, {told[place]}: survives", flush=True)
    print(f"{given.file}: {len(told)} mutants, {len(tried)} tried, {len(alive)} survive")
    return len(alive)


if __name__ == "__main__":
    raise SystemExit(bool(main()))
