"""The words of the field (docs/glossary.md): private metaphors do not come back in prose, docstrings or messages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = {
    r"octahedr\w+": "K-norm noise with a block norm",
    r"cubes?": "L-infinity noise",
    r"balls?": "L2 noise, or a ball where that is meant",
    r"tilt(?:s|ed)?": "objective noise",
    r"coins?": "random bits, or a Bernoulli trial",
    r"chances?": "probability, or sampling error",
    r"whole[\s-]+numbers?": "integer",
    r"pull(?:s|ed)?": "gradient, or shrunk",
    r"ben(?:d|ds|t)": "curvature, or non-linear",
    r"tapers?": "self-bounded curvature",
    r"(?:steepest|sharpest)": "Lipschitz constant, smoothness",
    r"(?:dealt|crossed|hats)": "partition, interactions, linear B-splines",
    r"(?:tells?|told|telling)": "shows, reveals, reported, distinguished",
    r"speaks?": "strong effect, represents",
    r"drown(?:s|ed)?": "dominated by noise",
    r"unshrunk": "debiased",
    r"(?:rooms?|houses?)": "package, library",
}
ALLOWED = (
    r"pull requests?",
    r"cube (?:root )?of",
    r"Balle\b",
    r"House\b",
    r"(?:money and a|Lifesci,|lifesci or) house",
    r"households?|Priv-house-serv",
    r"house type",
    r"room (?:for|in)|has room",
    r"exponential(?:ly)? tilt\w+|tilted ones",
    r"(?:unit|L-infinity|L1|k equal|the|The|a|A|its|ball in \d) balls?\b|ball (?:of|in \d)|in the ball|\bball :",
    r"(?:steepest|taper)(?:=| :| \()",
    r"--only steepest",
    r"\"drowned\"",
    r"taper at least 1",
)
"""Ordinary or mathematical meanings, names of data sets and people, and public parameters."""
WORDS = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)
EXCEPTIONS = re.compile("|".join(ALLOWED))
CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|\{[^{}]*\}|\]\([^)]*\)|^ {4}.*?$", re.DOTALL | re.MULTILINE)
NAMES = re.compile(r"[rbfRBF]*(?P<quote>\"\"\"|'''|\"|')[\w.-]*(?P=quote)")
"""Strings of one word: keys, values of parameters and what ledgers and models hold."""
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "papers/src").rglob("*.py"))]


def banned_words(text: str) -> list[str]:
    return WORDS.findall(EXCEPTIONS.sub(" ", text))


def prose_of(page: str) -> str:
    """A page without code and addresses of links."""
    return CODE.sub(" ", page)


def texts_of(source: str) -> Iterator[str]:
    """Comments, docstrings and messages, without names in backticks and what is put into a message."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and not NAMES.fullmatch(token.string)):
            yield re.sub(r"``[^`]*``|`[^`]*`|\{[^{}]*\}|>>>.*", " ", token.string)
        elif tokenize.tok_name[token.type] == "FSTRING_MIDDLE":  # from Python 3.12 on
            yield token.string


def found_in(paths: Iterable[Path], faults: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """The faults of every file that has some. (A test for each of a thousand files takes longer than what it does.)"""
    found = {str(path.relative_to(ROOT)): faults(path.read_text(encoding="utf-8")) for path in paths}
    return {path: own for path, own in found.items() if own}


def test_pages_have_the_words_of_the_field() -> None:
    assert found_in(PAGES, lambda page: banned_words(prose_of(page))) == {}


def test_sources_have_the_words_of_the_field() -> None:
    assert found_in(SOURCES, lambda source: [word for text in texts_of(source) for word in banned_words(text)]) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Noise is drawn in a cube.", ["cube"]),
        ("the cube of the ridge", []),
        ("Rows with heads, by coins.", ["coins"]),
        ("before a pull request", []),
        ("a row that pulls", ["pulls"]),
        ("whole\nnumbers", ["whole\nnumbers"]),
        ("Told by `steepest=`", ["Told"]),
    ],
)
def test_what_counts_as_a_banned_word(text: str, found: list[str]) -> None:
    assert banned_words(prose_of(text)) == found


# -- constants ---------------------------------------------------------------------------------------


def bare_constants(source: str) -> list[str]:
    """Numeric constants of a module that neither a docstring nor a comment explains."""
    body, lines = ast.parse(source).body, source.splitlines()
    return [
        ast.unparse(node.targets[0])
        for node, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(node, ast.Assign)
        and _is_numeric(node)
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
        and not any("#" in line for line in lines[max(0, node.lineno - 2) : node.lineno])
    ]


def _is_numeric(node: ast.Assign) -> bool:
    names = [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
    values = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
    numbers = any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return all(name.isupper() for name in names) and numbers and not any(isinstance(value, str) for value in values)


def test_every_constant_says_what_it_is_for() -> None:
    assert found_in((path for path in SOURCES if path.is_relative_to(ROOT / "src")), bare_constants) == {}


def test_a_bare_constant_is_found() -> None:
    assert bare_constants('LIMIT = 5\nOTHER = 6\n"""Why."""\nTHIRD = 7  # why\nNAMES = ("a", 1)\n') == ["LIMIT"]
