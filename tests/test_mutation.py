"""Mutants are made, run in a process of their own, and killed by a test that looks; the file stays as it is."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests import mutation

TEXT = "def size(a, b):\n    return max(a + b, 0) if a < b and b != 3 else 1.5\n"


def test_every_operator_constant_and_name_has_a_mutant_and_is_put_back() -> None:
    tree = ast.parse(TEXT)
    before = ast.dump(tree)
    told = [(one, ast.unparse(tree)) for one in mutation.mutants(tree)]
    assert ast.dump(tree) == before
    assert len({text for _, text in told}) == len(told) == 8
    assert ("line 2: Lt to LtE", TEXT.replace("a < b", "a <= b").strip()) in told
    assert ("line 2: max to min", TEXT.replace("max", "min").strip()) in told


def test_a_mutant_takes_the_place_of_its_module_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mutated_here.py"
    path.write_text(TEXT, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    places = {told: place for place, told in enumerate(mutation.mutants(ast.parse(TEXT)))}
    finder = mutation.MutantFinder(path, places["line 2: Add to Sub"])
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert __import__("mutated_here").size(1, 2) == 0
    assert path.read_text(encoding="utf-8") == TEXT
    assert finder.find_spec("tests.mutation", None) is None
    del sys.modules["mutated_here"]


def test_survivors_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "survives", lambda path, place, tests: place in (None, 1))
    file = mutation.ROOT / "src" / "privfit" / "audit" / "confidence.py"
    assert mutation.main([str(file), "tests/audit"]) == 1
    assert mutation.main([str(file), "tests/audit", "--sample", "0"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].endswith("survives")
    assert told[-1].endswith("0 tried, 0 survive")


def test_tests_that_fail_without_a_change_kill_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    file = mutation.ROOT / "src" / "privfit" / "audit" / "confidence.py"
    with pytest.raises(SystemExit):
        mutation.main([str(file), "tests/test_that_is_not_there.py"])
    assert "must pass" in capsys.readouterr().err


def test_a_mutant_is_what_tests_import_and_they_kill_it() -> None:
    """The configuration of pytest names a class of the package, which must not be imported before its mutant."""
    file = mutation.ROOT / "src" / "privfit" / "statistics" / "sensitivity.py"
    told = list(mutation.mutants(ast.parse(file.read_text(encoding="utf-8"))))
    place = next(number for number, text in enumerate(told) if text.endswith("ceil to floor"))
    assert not mutation.survives(file, place, ["tests/statistics/test_moments_norms.py"])
    assert mutation.survives(file, None, ["tests/statistics/test_moments_norms.py"])
