"""Writes the pages of the API before Sphinx reads them: one for each public class and function, and a list in groups.

What is public is what the modules below export, so a new name has its page without being listed anywhere. Its group
follows from where it is defined.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sphinx.application import Sphinx

MODULES = (
    "privfit",
    "privfit.baselines",
    "privfit.losses",
    "privfit.publish",
    "privfit.learning",
    "privfit.audit",
    "privfit.datasets",
)
GROUPS = {
    "schema": "Schema: what is public",
    "regression": "Regression",
    "classification": "Classification",
    "models": "Clusters, searches and other models",
    "summaries": "Bounds, and describing a table",
    "publish": "Publishing a table",
    "privacy": "Budget",
    "planning": "Planning and evaluation",
    "mechanisms": "Mechanisms",
    "losses": "Losses",
    "learning": "What privacy can cost, before a fit",
    "audit": "Audit",
    "baselines": "Baselines and methods as printed",
    "datasets": "Generated tables",
    "errors": "Errors and warnings",
}
OTHERS = "BaseEstimator, TransformerMixin, ndarray, float, dict, tuple, object"
"""Parents whose methods are not described here."""
PLAIN = re.compile(r"`[^`]*`|(?P<mark>\||(?<=\w)_(?=[\W]|$))")
"""What reStructuredText would take for a mark, outside of code: a bar, and an underscore at the end of a word."""
SAME = {"statistics": "models", "evaluation": "planning", "rows": "planning", "tables": "errors"}
"""Packages whose public names stand in the group of another one."""


def public() -> dict[str, Any]:
    """Every public class and function, once, by the shortest name that users write."""
    found: dict[str, Any] = {}
    for module in map(importlib.import_module, MODULES):
        for key in sorted(getattr(module, "__all__", vars(module))):
            thing = getattr(module, key)
            ours = str(getattr(thing, "__module__", "")).startswith("privfit")
            shown = not key.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing))
            if ours and shown and not any(thing is known for known in found.values()):
                found[f"{module.__name__}.{key}"] = thing
    return found


def group(name: str, thing: Any) -> str:
    """The key of the group that a public name stands in."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return "errors"
    package = thing.__module__.split(".")[1]
    if name.count(".") == 2 and name.split(".")[1] in GROUPS:
        return name.split(".")[1]
    if inspect.isclass(thing) and issubclass(thing, ClassifierMixin) is not issubclass(thing, RegressorMixin):
        return "classification" if issubclass(thing, ClassifierMixin) else "regression"
    package = SAME.get(package, package)
    return package if package in GROUPS else "models"


def page(name: str, thing: Any) -> str:
    """The page of one name."""
    title = name.removeprefix("privfit.")
    kind = "exception" if group(name, thing) == "errors" else "class" if inspect.isclass(thing) else "function"
    members = f"   :members:\n   :inherited-members: {OTHERS}\n" if kind == "class" else ""
    return f"{title}\n{'=' * len(title)}\n\n.. currentmodule:: privfit\n\n.. auto{kind}:: {name}\n{members}"


def first_sentence(thing: Any) -> str:
    """The summary of a docstring."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def index(names: dict[str, Any]) -> str:
    """The list of all names, in groups."""
    lines = ["API", "===", "", "Every public class and function: ``import privfit as pf``.", ""]
    for key, title in GROUPS.items():
        listed = [name for name, thing in names.items() if group(name, thing) == key]
        if not listed:
            continue
        lines += [title, "-" * len(title), "", ".. list-table::", "   :widths: 35 65", "   :class: api", ""]
        for name in listed:
            short = name.removeprefix("privfit.")
            lines += [f"   * - :doc:`{short} <{name}>`", f"     - {first_sentence(names[name])}"]
        lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in listed), ""]
    return "\n".join(lines)


def write_pages(app: Sphinx) -> None:
    """Write what changed, and remove pages of names that are gone."""
    folder = Path(app.srcdir) / "api"
    names = public()
    pages = {name: page(name, thing) for name, thing in names.items()} | {"index": index(names)}
    if folder.exists() and any(path.stem not in pages for path in folder.iterdir()):
        shutil.rmtree(folder)
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def skip(app: Sphinx, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out members that other packages write, such as scikit-learn's routing of metadata."""
    written = inspect.unwrap(member.fget if isinstance(member, property) and member.fget else member)
    module = str(getattr(written, "__module__", None) or "privfit")
    return None if module.startswith("privfit") and type(member).__name__ != "RequestMethod" else True


def escape(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text but for code and sections: |w|, coef_'x."""
    code = False
    for place, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line))
        entry = re.match(r"\w+(, \w+)* :", line)
        kept = entry.end() if entry else 0
        if not code:
            lines[place] = line[:kept] + PLAIN.sub(lambda one: f"\\{one[0]}" if one["mark"] else one[0], line[kept:])


def find(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """A name in See Also that stands for `privfit.name`."""
    for module in MODULES:
        target = f"{module}.{node['reftarget']}"
        if node.get("refdomain") == "py" and target in env.domains["py"].objects:
            builder, source = app.builder, node.get("refdoc", "")
            return env.domains["py"].resolve_xref(env, source, builder, "obj", target, node, content)
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", escape, priority=100)
    app.connect("missing-reference", find)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
