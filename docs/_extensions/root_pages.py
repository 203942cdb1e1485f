"""Pages of the site that are files beside docs/: the text is theirs, and links lead to where pages are here."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import join, normpath, relpath
from typing import Any

from sphinx.application import Sphinx

PAGES = {
    "project/architecture": "ARCHITECTURE.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/changelog": "CHANGELOG.md",
    "project/security": "SECURITY.md",
}
HOMES = {f"../{file}": f"{page}.md" for page, file in PAGES.items()}
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def take(app: Sphinx, name: str, source: list[str]) -> None:
    """The text of a page, and links to those files."""
    written_in = name
    if name in PAGES:
        path = Path(app.srcdir).parent / PAGES[name]
        app.env.note_dependency(str(path))
        source[0] = path.read_text(encoding="utf-8")
        written_in = f"../{PAGES[name]}"

    def here(link: re.Match[str]) -> str:
        target = normpath(join(written_in, "..", link[1]))
        return f"]({relpath(HOMES.get(target, target), join(name, '..'))}"

    if Path(app.env.doc2path(name)).suffix == ".md":
        source[0] = LINK.sub(here, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx, after the code of pages was run."""
    app.connect("source-read", take, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
