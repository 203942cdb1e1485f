"""The page of a release in a real browser: on a desk, on a phone, on paper, and as assistive technology reads it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit as pf

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python")

HOSTILE = "</td></table><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'|`\x1b[2J\u202e"
PHONE, DESK = 360, 1280
A4 = (595, 842)
"""Width and height in points."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything in it: intervals, a long schema, an evaluation, an audit, and texts of somebody hostile,
    as far as a ledger, a schema and a publisher take them."""
    path = tmp_path_factory.mktemp("release") / "release.html"
    names = [HOSTILE, "age_of_the_person_in_years_at_admission", *(f"x{place}" for place in range(6))]
    levels = pf.Category("ward", [HOSTILE, "b"])
    schema = pf.Schema([levels, *(pf.Numeric(name, -1, 1) for name in names[1:])], target=pf.Numeric(HOSTILE, -1, 1))
    ledger = pf.Ledger(epsilon=5.0)
    for _ in range(12):
        ledger.describing(model=HOSTILE, target=HOSTILE).charge(0.01, mechanism=HOSTILE, note=HOSTILE, dataset=HOSTILE)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(["b", HOSTILE], 2_000).astype(object), *rng.uniform(-1, 1, (7, 2_000))])
    y = rng.uniform(-1, 1, 2_000)
    model = pf.LinearRegression(1.0, schema=schema, ledger=ledger, intervals=True).fit(X, y)
    found = pf.evaluate(model, X, y, epsilon=1.0, ledger=ledger)
    line = pf.audit.Finding("LinearRegression", HOSTILE, "replay", 1.0, 0.5, 100, "holds", HOSTILE)
    model.report_.to_html(
        path,
        schema=schema,
        ledger=ledger,
        evaluation=found,
        audit=pf.audit.AuditResult((line,)),
        publisher=HOSTILE,
    )
    return path


@pytest.fixture
def opened(browser: Any, release: Path) -> Iterator[Any]:
    """Opens the page at a width; whatever the browser complains of is an error."""
    complaints: list[str] = []

    def at(width: int) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.extend([request.url] * (not request.url.startswith("file:"))))
        page.goto(release.as_uri())
        return page

    yield at
    assert complaints == []


def test_no_text_of_others_becomes_code(opened: Any) -> None:
    page = opened(DESK)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('script, img').length") == 0
    assert page.inner_text("body").count("<script>window.hacked=1") > 12
    assert "\u202e" not in page.content()


def test_the_policy_would_stop_a_script(browser: Any, release: Path) -> None:
    page = browser.new_page()
    page.goto(release.as_uri())
    stopped = page.evaluate(
        """() => new Promise(done => {
            document.addEventListener('securitypolicyviolation', one => done(one.effectiveDirective));
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 1';
            document.body.append(script);
        })"""
    )
    assert stopped.startswith("script-src")
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_it_is_readable_at_the_width_of_a_phone_and_of_a_desk(opened: Any, width: int) -> None:
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 15
    broken = page.evaluate(
        """() => [...document.querySelectorAll('th, td')].filter(cell => {
            const words = cell.textContent.split(/\\s+/);
            if (Math.max(...words.map(word => word.length)) > 18) return false;
            const range = document.createRange(), text = cell.firstChild;
            let at = 0;
            return text && words.some(word => {
                at = text.data.indexOf(word, at);
                range.setStart(text, at); range.setEnd(text, at += word.length);
                return range.getClientRects().length > 1 && !word.includes('-');
            });
        }).map(cell => cell.textContent)"""
    )
    assert broken == []


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_axe_finds_nothing(opened: Any, width: int) -> None:
    page = opened(width)
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10
    assert [(one["id"], one["impact"]) for one in found["violations"]] == []


def test_axe_would_find_a_table_without_contrast(opened: Any) -> None:
    page = opened(DESK)
    page.evaluate("for (const one of document.querySelectorAll('td')) one.style.color = '#ccc'")
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert ("color-contrast", "serious") in [(one["id"], one["impact"]) for one in found["violations"]]


def test_it_prints_on_a4(opened: Any) -> None:
    printed = opened(DESK).pdf(prefer_css_page_size=True)
    sizes = {tuple(map(float, box)) for box in re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", printed)}
    assert {(round(wide), round(high)) for wide, high in sizes} == {A4}
    assert 2 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") <= 12
