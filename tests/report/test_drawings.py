"""Pictures of models, ledgers, plans and evaluations: they show the numbers that were released, and say so in words."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import privfit as pf
from privfit.models import ESTIMATORS, LOADABLE

matplotlib = pytest.importorskip("matplotlib")
from privfit.report.drawing import COLOURS  # noqa: E402

RNG = np.random.default_rng(0)
N = 4_000
AGE, WARD = RNG.uniform(20, 90, N), RNG.choice(["a$b_", "<b>"], N)
COST = 100.0 * AGE + np.where(WARD == "<b>", 2_000.0, 0.0)
TABLE = {"age": AGE, "ward": WARD, "cost": COST, "ill": np.where(AGE > 60, "yes", "no")}
AGE_COLUMN, WARD_COLUMN = pf.Numeric("age", 20, 90), pf.Category("ward", ["a$b_", "<b>"])
COSTS = pf.Schema([AGE_COLUMN, WARD_COLUMN], target=pf.Numeric("cost", 0, 12_000))
ILL = pf.Schema([AGE_COLUMN, WARD_COLUMN], target=pf.Category("ill", ["no", "yes"]))


def table():
    import polars as pl

    return pl.DataFrame(TABLE)


def texts(figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def test_every_model_that_can_be_saved_can_be_drawn() -> None:
    assert [
        one.__name__ for one in LOADABLE.values() if not hasattr(one, "plot") and "baselines" not in one.__module__
    ] == []
    assert all("plot" in dir(estimator) for estimator in ESTIMATORS)


def test_coefficients_are_drawn_over_the_public_range_with_intervals(tmp_path) -> None:
    model = pf.LinearRegression(5.0, schema=COSTS, intervals=True).fit(table())
    figure = model.plot(tmp_path / "model.png")
    (panel,) = figure.axes
    dots = {tuple(line.get_xydata()[0]) for line in panel.lines if len(line.get_xdata()) == 1}
    expected = {(value, place) for place, value in enumerate(model.coef_ * [70.0, 1.0, 1.0])}
    np.testing.assert_allclose(sorted(dots), sorted(expected))
    spans = [
        sorted(line.get_xdata()) for line in panel.lines if len(line.get_xdata()) == 2 and set(line.get_ydata()) == {0}
    ]
    np.testing.assert_allclose(spans[0], model.coef_interval_[0] * 70.0)
    assert (tmp_path / "model.png").read_bytes().startswith(b"\x89PNG")
    assert "age: 20 to 90" in figure.alt
    assert f"{model.coef_[0] * 70:.3g}" in figure.alt


def test_names_are_drawn_as_they_are_and_escaped_in_pages() -> None:
    figure = pf.LinearRegression(5.0, schema=COSTS).fit(table()).plot()
    assert "ward: a$b_" in texts(figure)
    page = figure._repr_html_()
    assert page.startswith('<img alt="Coefficients: ')
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_a_loaded_model_has_the_same_picture(tmp_path) -> None:
    model = pf.LogisticRegression(5.0, schema=ILL).fit(table())
    model.save(tmp_path / "model.json")
    assert pf.load_model(tmp_path / "model.json").plot().alt == model.plot().alt


def test_levels_and_the_heat_map_of_a_pair_show_the_coefficients() -> None:
    rows = np.column_stack([RNG.choice(["l", "r"], N), RNG.choice(["x", "y", "z"], N)])
    alike = np.where((rows[:, 0] == "l") == (rows[:, 1] == "x"), "yes", "no")
    sides = [pf.Category("side", ["l", "r"]), pf.Category("letter", ["x", "y", "z"])]
    schema = pf.Schema(sides, target=pf.Category("alike", ["no", "yes"]))
    model = pf.AdditiveClassifier(50.0, schema=schema, interactions=1).fit(rows, alike)
    figure = model.plot()
    (image,) = (image for panel in figure.axes for image in panel.images)
    np.testing.assert_allclose(np.ravel(image.get_array()), model.coef_[0, 5:])
    dots = [line.get_ydata() for line in figure.axes[1].lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(dots[0], model.shapes_["letter"].values)
    assert "side by letter" in figure.alt


def test_a_number_by_itself_is_drawn_with_all_that_it_adds() -> None:
    rows = RNG.uniform(-1, 1, (200_000, 1))
    model = pf.LogisticRegression(20.0, schema=pf.Schema.box(-1, 1, target=["far", "near"]))
    model.fit(rows, np.where(np.abs(rows[:, 0]) < 0.31, "near", "far"))
    assert model._pairs == ((0, 0),)
    line = max(model.plot().axes[0].lines, key=lambda one: len(one.get_xdata()))
    grid = np.asarray(line.get_xdata())
    scores = model.decision_function(grid.reshape(-1, 1))
    np.testing.assert_allclose(line.get_ydata() - np.mean(line.get_ydata()), scores - scores.mean(), atol=0.05)


def test_many_classes_have_a_curve_each_above_their_mean() -> None:
    schema = pf.Schema([AGE_COLUMN], target=pf.Category("group", ["old", "some", "young"]))
    group = np.where(AGE < 40, "young", np.where(AGE > 70, "old", "some"))
    model = pf.LogisticRegression(20.0, schema=schema, numeric="slope").fit(AGE.reshape(-1, 1), group)
    values = [panel.lines[-1].get_xdata()[0] for panel in model.plot().axes]
    np.testing.assert_allclose(values, 70 * (model.coef_[:, 0] - model.coef_[:, 0].mean()))


def test_centres_are_drawn_between_their_bounds() -> None:
    schema = pf.Schema([AGE_COLUMN, pf.Numeric("cost", 0, 12_000)])
    model = pf.KMeans(2, epsilon=5.0, schema=schema).fit(np.column_stack([AGE, COST]))
    lines = model.plot().axes[0].lines
    found = [line.get_ydata() for line in lines]
    np.testing.assert_allclose(found, (model.cluster_centers_ - [20, 0]) / [70, 12_000])
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 2


def test_components_and_classes_are_drawn() -> None:
    components = pf.PCA(1, epsilon=5.0, schema=pf.Schema([AGE_COLUMN, pf.Numeric("cost", 0, 12_000)]), scale="bounds")
    components.fit(np.column_stack([AGE, COST]))
    (image,) = components.plot().axes[0].images
    np.testing.assert_allclose(image.get_array(), components.components_)
    bayes = pf.GaussianNB(epsilon=5.0, schema=ILL, numeric="slope").fit(table())
    assert f"yes {bayes.theta_[1, 0]:.3g}" in bayes.plot().alt


def test_a_kernel_has_no_picture() -> None:
    model = pf.LogisticRegression(1.0, schema=ILL, kernel="rbf", n_components=10).fit(table())
    with pytest.raises(AttributeError, match="kernel='linear'"):
        model.plot()


def test_a_ledger_shows_the_running_total_and_the_budget() -> None:
    ledger = pf.Ledger(epsilon=2.0)
    for epsilon in (0.5, 0.25, 1.0):
        ledger.charge(epsilon, mechanism="elsewhere")
    figure = ledger.plot()
    dots = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert dots.get_ydata().tolist() == [0.5, 0.75, 1.75]
    assert dots.get_xdata().tolist() == [1, 2, 3]
    assert figure.alt == "Epsilon spent after each entry: 1.75 of 2 in the end."
    assert "no limit" in pf.Ledger(epsilon=float("inf")).plot().alt


def test_a_ledger_of_days_is_drawn_by_time_and_a_long_one_by_some_entries(monkeypatch) -> None:
    from privfit.privacy.ledger import reading
    from privfit.report.ledger import draw_ledger

    days = [(f"2026-01-{day:02}T10:00:00+00:00", 0.1 * day) for day in range(1, 4)]
    facts = {"name": "people.db", "epsilon": 1.0, "n_entries": 3, "numbers": [1, 2, 3], "entries": days}
    assert "time" in draw_ledger(facts).axes[0].get_xlabel()
    monkeypatch.setattr(reading, "MOST_DRAWN", 4)
    ledger = pf.Ledger(epsilon=10.0)
    for _ in range(9):
        ledger.charge(1.0)
    assert [entry.id for entry, _ in ledger._running_totals()] == [3, 6, 9]


def test_releases_on_different_parts_do_not_add_up_in_the_picture() -> None:
    ledger = pf.Ledger(epsilon=2.0)
    parts = pf.holdout(table(), ledger=ledger, schema=COSTS)
    pf.LinearRegression(1.0, schema=COSTS, ledger=ledger).fit(parts.fit)
    pf.mean(parts.evaluate, COSTS.target, epsilon=0.5, ledger=ledger)
    assert f"{ledger.spent:.3g} of 2" in ledger.plot().alt
    assert ledger.spent < 1.5


def test_scores_and_errors_have_panels_of_their_own() -> None:
    model = pf.LinearRegression(5.0, schema=COSTS).fit(table())
    figure = pf.evaluate(model, table(), epsilon=5.0).plot()
    assert [panel.get_title() for panel in figure.axes] == ["scores, with 90% intervals", "errors, with 90% intervals"]
    assert "r2" in figure.alt


def luminance(colour: str) -> float:
    """Relative luminance as the Web Content Accessibility Guidelines define it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


MATRICES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""What colours look like to people without one kind of cone: Machado, Oliveira and Fernandes, 2009, severity 1."""


@pytest.mark.parametrize("kind", MATRICES)
def test_colours_can_be_told_apart_without_one_kind_of_cone(kind) -> None:
    seen = []
    for colour in COLOURS:
        rgb = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen.append(np.clip(np.array(MATRICES[kind]) @ linear, 0, 1) ** (1 / 2.2))
    gaps = [np.linalg.norm(a - b) for place, a in enumerate(seen) for b in seen[:place]]
    assert min(gaps) > 0.1


def test_the_first_colours_have_contrast_on_paper() -> None:
    assert all(1.05 / (luminance(colour) + 0.05) >= 3 for colour in COLOURS[:3])


def test_without_matplotlib_it_says_what_to_install(monkeypatch) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"privfit\[plots\]"):
        ledger.plot()


def test_signatures_are_alike() -> None:
    for thing in (*LOADABLE.values(), pf.Ledger, pf.Plan, pf.Evaluation):
        if hasattr(thing, "plot"):
            assert list(inspect.signature(thing.plot).parameters) == ["self", "path"]
