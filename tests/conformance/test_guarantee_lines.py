"""Every `Guarantee:` line points at a proof that exists, and says for which tables it holds."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = [
    (path.relative_to(ROOT), note)
    for folder in ("src", "papers/src")
    for path in sorted((ROOT / folder).rglob("*.py"))
    for guarantee in re.findall(r"Guarantee:.*?(?:\n\n|\"\"\")", path.read_text(), flags=re.S)
    for note in re.findall(r"docs/proofs/[\w-]+\.md", guarantee) or ["none"]
]


def test_there_are_guarantees() -> None:
    assert len(LINES) >= 8


def test_the_proof_of_a_guarantee_exists_and_is_listed() -> None:
    listed = (ROOT / "docs/proofs/README.md").read_text()
    for path, note in LINES:
        assert (ROOT / note).is_file(), f"{path} names {note}"
        assert Path(note).name in listed, f"{path} names {note}, which docs/proofs/README.md does not list"


STATEMENT = r"(Lemma|Theorem|Proposition)"
NAMED = [
    (path.relative_to(ROOT), note, kind, number)
    for folder in ("src", "papers/src")
    for path in sorted((ROOT / folder).rglob("*.py"))
    for guarantee in re.findall(r"Guarantee:.*?(?:\n\n|\"\"\")", path.read_text(), flags=re.S)
    for note, said in re.findall(r"docs/proofs/([\w-]+\.md)([^.;]*)", " ".join(guarantee.split()))
    for kind, first, last in re.findall(STATEMENT + r"s? (\d+)(?: (?:to|and) (\d+))?", said)
    for number in range(int(first), int(last or first) + 1)
]


def test_guarantees_name_lemmas_and_theorems() -> None:
    assert len(NAMED) >= 100


def test_the_lemma_that_a_guarantee_names_exists() -> None:
    texts = {note: (ROOT / "docs/proofs" / note).read_text() for _, note, _, _ in NAMED}
    for path, note, kind, number in NAMED:
        stated = re.search(rf"^(?:#+ |\*\*){kind} {number}\b", texts[note], flags=re.M)
        assert stated, f"{path} names {kind} {number} of {note}"


PROMISES = [
    (path.relative_to(ROOT), guarantee)
    for room in ("mechanisms", "models", "publish", "baselines")
    for path in sorted((ROOT / "src/privfit" / room).rglob("*.py"))
    for guarantee in re.findall(r"Guarantee:.*?(?:\n\n|\"\"\")", path.read_text(), flags=re.S)
    if "-DP" in guarantee
]


def test_a_promise_states_its_domain() -> None:
    """A table without rows, with refused cells or with more rows than planned for is refused before the charge: no
    promise covers it.
    """
    for path, guarantee in PROMISES:
        assert "Domain: at least one row, no refused cell, no more rows than stated" in guarantee, path
