"""Looks at the built site in Chromium: what a screen reader, a colour-blind reader, a phone and a train without network
find.

    make docs && python tools/look.py                       # the main pages, on a desk and on a phone
    python tools/look.py --all --pictures pictures          # every page; its pictures into a folder

Of every page: complaints of the browser, requests to other places, pictures that do not load or have no text in their
place, and what axe-core calls serious (contrast is among it); at the width of a phone also text that lies outside the
screen. Exit code 1 means that something was found. Needs playwright, axe-playwright-python and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
MAIN = (
    "index",
    "start",
    "howto/index",
    "howto/pictures",
    "howto/explore",
    "explanation/index",
    "explanation/promise",
    "explanation/mechanisms",
    "explanation/compared",
    "reference/commands",
    "api/index",
    "api/privfit.LogisticRegression",
    "gallery/index",
    "gallery/plot_shapes",
    "tutorials/plot_1_readmission",
    "guide",
    "sharp-edges",
    "reproduction/gallery",
    "proofs/README",
)
WIDTHS = {"desk": 1280, "phone": 390}
LONGEST = 300_000
"""Milliseconds for a step of the browser; a busy machine needs more than playwright's 30 seconds."""
PICTURES = """[...document.images].filter(one => !one.complete || !one.naturalWidth || !one.alt.trim() ||
    one.alt.trim() === one.src.split('/').pop()).map(one => one.src.split('/').pop())"""
LOADED = "document.readyState === 'complete' && [...document.images].every(one => one.complete)"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SERIOUS = ("serious", "critical")


def findings(browser: Any, name: str, axe: str, pictures: Path | None) -> Iterator[str]:
    """What is wrong with a page, in words."""
    for place, width in WIDTHS.items():
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(LONGEST)
        heard: list[str] = []
        page.on("console", lambda one, heard=heard: heard.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one, heard=heard: heard.append(str(one)))
        page.on("request", lambda one, heard=heard: heard.extend([one.url] * one.url.startswith("http")))
        page.goto((SITE / f"{name}.html").as_uri())
        page.evaluate("for (const one of document.images) one.loading = 'eager'")
        page.wait_for_function(LOADED)  # on some pages the network is never called idle
        yield from (f"{place}: the browser says {one}" for one in heard)
        yield from (f"{place}: picture {one} does not load or has no text" for one in page.evaluate(PICTURES))
        if place == "phone" and (wider := page.evaluate(WIDER)) > 0:
            yield f"{place}: {wider} pixels lie outside the screen"
        page.evaluate(axe)
        for one in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
            if one["impact"] in SERIOUS:
                first = one["nodes"][0]["html"][:120]
                yield f"{place}: {one['impact']} {one['id']}, {len(one['nodes'])} times: {first}"
        if pictures is not None:
            path = pictures / f"{name.replace('/', '-')}-{place}.png"
            page.screenshot(path=path, full_page=place == "desk")
        page.close()


def main(given: list[str] | None = None) -> int:
    """Look at pages; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Look at the built site in Chromium.")
    parser.add_argument("pages", nargs="*", help="without .html; the main pages if none is named")
    parser.add_argument("--all", action="store_true", help="every page")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of pages")
    asked = parser.parse_args(given)
    import axe_playwright_python
    from playwright.sync_api import sync_playwright

    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    every = [str(path.relative_to(SITE).with_suffix("")) for path in sorted(SITE.rglob("*.html"))]
    every = [name for name in every if not name.startswith("_static/")]  # parts of the theme, no pages
    names = every if asked.all else asked.pages or [name for name in MAIN if name in every]
    if asked.pictures:
        asked.pictures.mkdir(parents=True, exist_ok=True)
    found = 0
    with sync_playwright() as started:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in names:
            for one in findings(browser, name, axe, asked.pictures):
                found += 1
                print(f"{name}, {one}", flush=True)
    print(f"{len(names)} pages, {found} findings")
    return int(found > 0 or not names)


if __name__ == "__main__":
    sys.exit(main())
