"""Documents about a release: structure, escaping, and nothing from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import privfit as pf
from privfit.models.release import Known, estimates_of, release_facts
from privfit.report.document import sections

HOSTILE = '<script>alert(1)</script>"|`'


class Page(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def fitted(seed: int | None = None, ledger: pf.Ledger | None = None) -> pf.LinearRegression:
    schema = pf.Schema([pf.Numeric(HOSTILE, -1, 1)], target=pf.Numeric("y", -1, 1))
    X = np.linspace(-1, 1, 500)
    model = pf.LinearRegression(epsilon=0.5, schema=schema, random_state=seed, ledger=ledger)
    return model.fit(X.reshape(-1, 1), X / 2)


def test_a_page_is_whole_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    model = fitted()
    text = model.report_.to_html(tmp_path / "release.html", schema=model.schema_)
    assert (tmp_path / "release.html").read_text(encoding="utf-8") == text
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    assert names.count("h1") == 1
    assert names.count("h2") == 9
    assert not {"script", "img", "link", "iframe", "object", "form", "a"} & set(names)
    assert not [attrs for _, attrs in page.tags if {"src", "href", "style", "onload"} & set(attrs)]
    policy = next(attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "exp(0.5)" in page.text
    assert HOSTILE in page.text  # as text, not as a tag


def test_a_fit_with_a_seed_has_no_promise() -> None:
    report = fitted(seed=1).report_
    assert "NOT private" in Page(report.to_html()).text
    assert "exp(" not in report.to_html()
    assert "epsilon: 0.5" not in report.to_registry()


def test_markdown_and_yaml_escape_texts() -> None:
    model = fitted()
    assert "<script>" not in model.report_.to_markdown(schema=model.schema_)
    assert "epsilon: 0.5" in model.report_.to_registry()


def test_a_ledger_shows_prices_and_no_notes(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "people.db", epsilon=2.0)
    ledger.charge(0.25, note="a secret study")
    model = fitted(ledger=ledger)
    text = model.report_.to_html(ledger=ledger)
    assert "have spent epsilon 0.75" in text
    assert "secret" not in text
    with pytest.raises(pf.LedgerError):
        model.report_.to_html(ledger=pf.Ledger(epsilon=1.0))
    with pytest.raises(pf.LedgerError, match="without a ledger"):
        fitted().report_.to_html(ledger=ledger)


def test_an_evaluation_an_audit_and_the_publisher_are_in_the_page() -> None:
    model = fitted()
    X = np.linspace(-1, 1, 500).reshape(-1, 1)
    found = pf.evaluate(model, X, X[:, 0] / 2, epsilon=70.0)
    lines = [pf.audit.Finding("LinearRegression", "default", "replay", 0.5, 0.49, 120, "holds")]
    audit = pf.audit.AuditResult((*lines, pf.audit.Finding("Ridge", "default", "order", None, None, 9, "violated")))
    text = Page(model.report_.to_html(evaluation=found, audit=audit, publisher="City Hospital")).text
    assert "City Hospital" in text
    assert f"r2: {found.r2:.4g}" in text
    assert "Evaluated on private rows, with epsilon 70" in text
    assert "2 attacks were made" in text
    assert "1 of them on LinearRegression. 1 refuted a claim" in text
    seeded = pf.evaluate(model, X, X[:, 0] / 2, epsilon=0.7, random_state=1)
    assert "NOT private" in model.report_.to_markdown(evaluation=seeded)
    with pytest.raises(ValueError, match="of a Ridge"):
        pf.Ridge(1.0, schema=model.schema_).fit(X, X[:, 0]).report_.to_html(evaluation=found)


@pytest.mark.parametrize(("numeric", "explained"), [("splines", True), ("slope", False)])
def test_names_of_coefficients_that_are_points_of_a_curve_are_explained(numeric: str, explained: bool) -> None:
    X = np.linspace(-1, 1, 500).reshape(-1, 1)
    schema = pf.Schema([pf.Numeric("age", -1, 1, fill=0.5)], target=pf.Category("ill", ["no", "yes"]))
    model = pf.LogisticRegression(epsilon=1, schema=schema, random_state=0, numeric=numeric, interactions=0)
    model.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    facts = release_facts(model.report_.to_dict(), Known(schema=schema, estimates=estimates_of(model)))
    text = " ".join(paragraph for section in sections(facts) for paragraph in section.paragraphs)
    assert ("age_at_-1 is the height of the curve of age at -1;" in text) is explained
    assert ("is the height" in text) is explained
