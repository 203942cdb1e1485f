"""A release has one version: in the package, in the changelog and in the citation."""

from __future__ import annotations

import re
from pathlib import Path

from privfit.version import VERSION

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
RELEASE = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def cited(key: str) -> str:
    """A value of the citation's own, not of the papers that it refers to."""
    found = re.findall(rf'^{key}: "?([^"\n]+)"?$', CITATION, re.MULTILINE)
    assert len(found) == 1
    return found[0]


def sections() -> dict[str, str]:
    """The text of every release in the changelog, newest first."""
    heads = list(RELEASE.finditer(CHANGELOG))
    ends = [head.start() for head in heads[1:]] + [len(CHANGELOG)]
    return {head["version"]: CHANGELOG[head.end() : end] for head, end in zip(heads, ends, strict=True)}


def test_the_version_has_a_section_with_the_date_of_the_citation() -> None:
    dates = {head["version"]: head["date"] for head in RELEASE.finditer(CHANGELOG)}
    assert dates[VERSION] == cited("date-released")
    assert cited("version") == VERSION


def test_what_is_not_released_yet_stands_on_top_and_the_version_next() -> None:
    assert list(sections())[:2] == ["Unreleased", VERSION]


def test_every_release_has_a_privacy_section_and_known_headings() -> None:
    for version, text in sections().items():
        headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
        assert "Privacy" in headings, version
        assert headings == sorted(set(headings), key=["Added", "Changed", "Fixed", "Privacy"].index), version


def test_every_heading_of_the_changelog_is_of_a_release() -> None:
    assert len(re.findall(r"^## ", CHANGELOG, re.MULTILINE)) == len(sections())
