"""The site: `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS.parent / "tools")]

import privfit  # noqa: E402

os.environ["MPLBACKEND"] = "agg"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers start whatever python3 is on the path
os.environ["PYTHONWARNINGS"] = "ignore"  # of examples, in processes of their own: fits without a ledger warn

project = "privfit"
author = "The privfit authors"
copyright = "the privfit authors, Apache-2.0"
version = release = privfit.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "page_runs",
    "root_pages",
]
root_doc = "index"
exclude_patterns = ["_build"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "code"
smartquotes = False
nitpicky = True
toc_object_entries_show_parents = "hide"  # fit() beside the page of a class, and not its name again, cut off

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../tutorials", "../examples"],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"/(plot|spark)_" if which("java") else "/plot_",
    "image_scrapers": ("pictures.scraper",),
    "ignore_repr_types": r"Drawing",
    "within_subsection_order": "FileNameSortKey",
    "parallel": True,
    "backreferences_dir": None,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 30,
    "write_computation_times": False,
    "default_thumb_file": str(DOCS / "_static" / "privfit.svg"),
}
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "privfit"
html_static_path = ["_static"]
html_css_files = ["privfit.css"]
html_js_files = ["names.js"]
html_sidebars = {"start": []}  # its section is itself: an empty column otherwise
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "logo": {"text": "privfit"},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight pre"
