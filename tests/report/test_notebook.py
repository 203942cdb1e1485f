"""What notebooks show: whole tables with captions, every text escaped, no scripts; and a notebook that is run."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import privfit as pf
from privfit.models import ESTIMATORS

HOSTILE = '<script>alert(1)</script>"|`\x1b[2J\u202e'
ALLOWED = {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary"}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (2_000, 1))


class Page(HTMLParser):
    """Tags with their attributes, and all text; a tag that is not closed in order is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", list[str]()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def schema(target: Any = None) -> pf.Schema:
    return pf.Schema([pf.Numeric(HOSTILE, -1, 1)], target=pf.Numeric("y", -1, 1) if target is None else target)


def fitted(**more: Any) -> pf.LinearRegression:
    return pf.LinearRegression(epsilon=0.5, schema=schema(), **more).fit(X, X[:, 0] / 2)


def charged_by_others() -> pf.Ledger:
    ledger = pf.Ledger(epsilon=2.0)
    ledger.charge(0.25, mechanism=HOSTILE, note="a secret study", dataset="secret.csv")
    return ledger


CLASSES = pf.Category("y", ["<no>", "yes"])
SHOWN = {
    "a model": lambda: fitted(),
    "a model without privacy": lambda: fitted(random_state=1),
    "a model with intervals": lambda: fitted(intervals=True),
    "a model, not fitted": lambda: pf.Ridge(schema=schema()),
    "a model that cannot be fitted so": lambda: pf.Ridge(schema=HOSTILE),
    "centres": lambda: pf.KMeans(2, epsilon=1.0, schema=pf.Schema([pf.Numeric(HOSTILE, -1, 1)])).fit(X),
    "a schema": lambda: schema(CLASSES),
    "a box": lambda: pf.Schema.box(0, 1),
    "a report": lambda: fitted().report_,
    "a ledger": charged_by_others,
    "a ledger without a limit": lambda: pf.Ledger(epsilon=float("inf")),
    "an evaluation": lambda: pf.evaluate(fitted(), np.column_stack([X, X / 2]), epsilon=1.0),
    "an evaluation of classes": lambda: pf.evaluate(
        pf.LogisticRegression(1.0, schema=schema(CLASSES)).fit(X, np.where(X[:, 0] > 0, "yes", "<no>")),
        X,
        np.where(X[:, 0] > 0, "yes", "<no>"),
        epsilon=1.0,
    ),
    "a plan": lambda: pf.plan(schema(), 2_000, model="linear", epsilon=(0.5, 1.0), repetitions=1, costs=False),
    "a description": lambda: pf.describe(X, pf.Schema([pf.Numeric(HOSTILE, -1, 1)]), epsilon=1.0),
}

WITH_HOSTILE_TEXT = (
    *("a model", "a model without privacy", "a model with intervals", "a model that cannot be fitted so"),
    *("a schema", "a ledger", "a description"),
)


@pytest.mark.parametrize("name", SHOWN)
def test_a_fragment_has_tables_and_no_code(name: str) -> None:
    thing = SHOWN[name]()
    page = Page(thing._repr_html_())
    names = [tag for tag, _ in page.tags]
    assert set(names) <= ALLOWED
    assert all(set(attrs) <= {"style", "scope"} for _, attrs in page.tags)
    assert names.count("caption") == names.count("table") >= 1
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    assert "secret" not in page.text
    assert ("<script>alert(1)" in page.text) == (name in WITH_HOSTILE_TEXT)


def test_numbers_of_a_model_and_its_promise_are_shown() -> None:
    model = fitted(intervals=True)
    text = Page(model._repr_html_()).text
    assert f"{model.coef_[0]:.6g}" in text
    assert f"{model.coef_interval_[0][0]:.6g}" in text
    assert "one person's row changes" in text
    assert "NOT private" not in text
    assert "NOT private" in Page(fitted(random_state=1)._repr_html_()).text


def test_a_ledger_says_what_is_spent_and_left() -> None:
    text = Page(charged_by_others()._repr_html_()).text
    assert "budget2" in text
    assert "spent0.25" in text
    assert "left1.75" in text


def test_long_tables_are_cut_and_say_so() -> None:
    wide = pf.Schema([pf.Numeric(f"x{place}", 0, 1) for place in range(60)])
    text = Page(wide._repr_html_()).text
    assert "10 more are not shown" in text
    assert "x49" in text
    assert "x50" not in text
    levels = pf.Schema([pf.Category("c", list(range(100)))])
    assert "and 80 more" in Page(levels._repr_html_()).text


@pytest.mark.parametrize("estimator", [*ESTIMATORS, pf.KMeans, pf.PCA, pf.GaussianNB, pf.SelectPrivate])
def test_every_estimator_is_shown_by_us_and_not_by_a_script(estimator: Any) -> None:
    model = estimator(epsilon=0.123)
    page = Page(model._repr_html_())
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert "epsilon0.123" in page.text
    assert model._repr_mimebundle_() == {"text/plain": repr(model), "text/html": model._repr_html_()}


def test_plain_text_can_be_asked_for() -> None:
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted(), "_repr_html_")
        assert list(fitted()._repr_mimebundle_()) == ["text/plain"]


def test_a_pipeline_keeps_the_diagram_of_scikit_learn() -> None:
    page = make_pipeline(FunctionTransformer(), fitted())._repr_html_()
    assert "LinearRegression" in page
    assert "sk-" in page


NOTEBOOK = [
    """
import numpy as np, privfit as pf
from privfit.rows import progress as shown_progress
shown_progress.EVERY = 0.0
X = np.random.default_rng(0).uniform(-1, 1, (3_000, 1))
schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
ledger = pf.Ledger(epsilon=2.0)
schema
""",
    """
with pf.progress("Fitting", total=3_000):
    model = pf.LinearRegression(epsilon=0.5, schema=schema, ledger=ledger).fit(X, X[:, 0] / 2)
model
""",
    """
with pf.progress("Planning") as step:
    plan = pf.plan(schema, 3_000, model="linear", epsilon=(0.5,), repetitions=1, costs=False, progress=step)
plan
""",
    "ledger",
    "pf.evaluate(model, np.column_stack([X, X / 2]), epsilon=0.5, ledger=ledger)",
    "model.report_",
    "model.plot()",
]


@pytest.fixture(scope="module")
def run_notebook(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[str]]:
    """The outputs of the cells of a notebook that a kernel has run, and every update of what it displayed."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    updates: list[str] = []
    cells = [nbformat.v4.new_code_cell(code.strip()) for code in NOTEBOOK]
    client = nbclient.NotebookClient(
        nbformat.v4.new_notebook(cells=cells),
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}},
    )
    process = client.process_message

    def noted(message: Any, cell: Any, cell_index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            updates.append(message["content"]["data"].get("text/html", ""))
        return process(message, cell, cell_index)

    client.process_message = noted
    return [cell.outputs for cell in client.execute().cells], updates


def shown_by(outputs: list[Any]) -> str:
    """What a cell shows as HTML."""
    return "".join(one["data"].get("text/html", "") for one in outputs if "data" in one)


def test_a_notebook_shows_tables_and_pictures(run_notebook: tuple[list[Any], list[str]]) -> None:
    cells, _ = run_notebook
    captions = ["Schema", "Coefficients", "expected R^2", "Ledger", "Evaluation", "Privacy report", "<img alt="]
    for caption, outputs in zip(captions, cells, strict=True):
        assert caption in shown_by(outputs), caption
        assert "<script" not in shown_by(outputs)


def test_progress_moves_and_leaves_nothing_behind(run_notebook: tuple[list[Any], list[str]]) -> None:
    cells, updates = run_notebook
    bars = [one for one in updates if "<progress" in one]
    assert any('aria-label="Fitting" value="1.00"' in one for one in bars)
    assert len({one for one in bars if "Planning" in one and "value=" in one}) > 1
    assert not any("3,000" in one or "3000" in one for one in bars)
    assert not any("<progress" in shown_by(outputs) for outputs in cells)


def test_progress_outside_of_notebooks_and_terminals_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with pf.progress() as step:
        fitted()
        step(1, 2)
    assert capfd.readouterr() == ("", "")
