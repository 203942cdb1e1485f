"""Importances per input column, and scikit-learn's selectors around private models: they work, or refuse before
anything is spent.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import RFE, SelectFromModel

import privfit as pf
from privfit.models import ESTIMATORS
from privfit.rows import Interactions, linear_scores
from privfit.tables import open_table
from tests.conformance.cases import _rows, frame, schema_for, variants

GETTER = "feature_importances_"
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (8_000, 5))
SIGNAL = 2 * X[:, 1] - 1.5 * X[:, 3]
CLASSES = np.where(RNG.uniform(size=len(X)) < 1 / (1 + np.exp(-3 * SIGNAL)), "yes", "no")
NUMBERS = SIGNAL / 4
WANTED = [False, True, False, True, False]
SLOPES = [(pf.LinearRegression, NUMBERS), (pf.Ridge, NUMBERS)]
SPLINES = [(pf.LogisticRegression, CLASSES), (pf.LinearSVC, CLASSES), (pf.ERM, CLASSES)]


@pytest.fixture(autouse=True)
def no_warnings() -> None:
    warnings.simplefilter("ignore", pf.PrivacyWarning)


def box(y: np.ndarray) -> pf.Schema:
    return pf.Schema.box(-1, 1, target=["no", "yes"] if y is CLASSES else (-1, 1))


def model_for(kind: type, y: np.ndarray, **parameters: Any) -> Any:
    return kind(epsilon=1.0, schema=box(y), ledger=pf.Ledger(epsilon=10.0), **parameters)


def charges(selector: Any) -> int:
    return len(selector.estimator.ledger.entries())


# -- what they are ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_linear_model_has_one_per_input_column_before_and_after_saving(estimator: type, tmp_path) -> None:
    for variant in variants(estimator):
        model = estimator(epsilon=1.0, schema=schema_for(estimator), random_state=0, **variant).fit(
            frame(_rows(estimator, 60))
        )
        if variant.get("kernel", "linear") != "linear":
            assert not hasattr(model, GETTER)
            continue
        assert model.feature_importances_.shape == (model.n_features_in_,)
        assert (model.feature_importances_ >= 0).all()
        model.save(tmp_path / "model.json")
        np.testing.assert_allclose(
            pf.load_model(tmp_path / "model.json").feature_importances_, model.feature_importances_, rtol=1e-12
        )
    assert not hasattr(estimator(), GETTER)


@pytest.mark.parametrize("numeric", ["slope", "bins", "splines"])
def test_it_is_the_spread_of_a_columns_part_over_even_values(numeric: str) -> None:
    """Measured: rows that vary in one column alone, evenly over its bounds or levels, and the standard deviation of
    their scores.
    """
    features = [pf.Numeric("a", 0, 50), pf.Category("two", ["u", "v"]), pf.Category("three", ["x", "y", "z"])]
    schema = pf.Schema(features, target=pf.Category("goal", ["no", "yes"]))
    rows = pd.DataFrame(
        {"a": RNG.uniform(0, 50, 900), "two": RNG.choice(["u", "v"], 900), "three": RNG.choice(["x", "y", "z"], 900)}
    )
    rows["goal"] = np.where(rows["a"] > 20, "yes", "no")
    model = pf.LogisticRegression(2.0, schema=schema, numeric=numeric, interactions=0, random_state=0).fit(rows)
    even = {"a": np.linspace(0, 50, 60_001), "two": np.array(["u", "v"]), "three": np.array(["x", "y", "z"])}
    for name, importance in zip(even, model.feature_importances_, strict=True):
        varied = pd.DataFrame({"a": 1.0, "two": "u", "three": "x"}, index=range(len(even[name]))).assign(
            **{name: even[name]}
        )
        assert importance == pytest.approx(np.std(model.decision_function(varied)), rel=1e-3)


def test_units_of_the_table_do_not_matter() -> None:
    small = pf.LinearRegression(1.0, schema=box(NUMBERS), random_state=0).fit(X, NUMBERS)
    scaled = pf.Schema([pf.Numeric(f"x{i}", -(10.0**i), 10.0**i) for i in range(5)], target=pf.Numeric("target", -1, 1))
    large = pf.LinearRegression(1.0, schema=scaled, random_state=0).fit(X * 10.0 ** np.arange(5), NUMBERS)
    np.testing.assert_allclose(large.feature_importances_, small.feature_importances_, rtol=1e-6)


def test_a_table_for_a_pair_gives_half_of_its_variance_to_each_and_one_for_a_number_all_of_it() -> None:
    model = pf.LogisticRegression(3.0, schema=box(CLASSES), interactions=2, numeric="splines", random_state=0).fit(
        X, CLASSES
    )
    names = len(model._geometry.feature_names)
    plain = np.zeros(5)
    coef = model.coef_[0, :names]
    for column in range(5):
        varied = np.zeros((40_001, 5))
        varied[:, column] = np.linspace(-1, 1, 40_001)
        plain[column] = np.var(linear_scores(open_table(varied), model.schema_, model._geometry, coef, 0.0))
    first = names
    for pair in model._pairs:
        cells = Interactions(model._geometry).n_cells(pair)
        plain[list(set(pair))] += np.var(model.coef_[0, first : first + cells]) / len(set(pair))
        first += cells
    assert first == model.coef_.shape[1]
    np.testing.assert_allclose(model.feature_importances_, np.sqrt(plain), rtol=1e-3)


def test_several_classes_count_by_their_mean_square() -> None:
    goal = np.array(["a", "b", "c"])[np.digitize(X[:, 2], [-0.3, 0.3])]
    model = pf.LogisticRegression(
        5.0, schema=pf.Schema.box(-1, 1, target=["a", "b", "c"]), numeric="slope", random_state=0
    ).fit(X, goal)
    np.testing.assert_allclose(model.feature_importances_, np.sqrt(np.mean(model.coef_**2, axis=0) / 3), rtol=1e-9)
    assert np.argmax(model.feature_importances_) == 2


# -- selectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "y"), SLOPES + SPLINES)
def test_selectors_find_the_columns_that_count_and_charge_every_fit(kind: type, y: np.ndarray) -> None:
    once = SelectFromModel(model_for(kind, y), importance_getter=GETTER).fit(X, y)
    assert once.get_support().tolist() == WANTED
    assert once.transform(X).shape == (len(X), 2)
    assert charges(once) == 1
    often = RFE(model_for(kind, y), n_features_to_select=2, importance_getter=GETTER).fit(X, y)
    assert often.support_.tolist() == WANTED
    assert charges(often) == 4


@pytest.mark.parametrize(("kind", "y"), SLOPES)
def test_auto_is_right_where_every_column_has_one_coefficient(kind: type, y: np.ndarray) -> None:
    assert SelectFromModel(model_for(kind, y)).fit(X, y).get_support().tolist() == WANTED
    assert RFE(model_for(kind, y), n_features_to_select=2).fit(X, y).support_.tolist() == WANTED


@pytest.mark.parametrize("selector", [SelectFromModel, RFE])
@pytest.mark.parametrize(("kind", "y"), SPLINES)
def test_auto_is_refused_before_spending_where_it_would_read_knots(selector: type, kind: type, y: np.ndarray) -> None:
    made = selector(model_for(kind, y))
    with pytest.raises(pf.PrivacyError, match=r"importance_getter='feature_importances_'\)\. Nothing was charged"):
        made.fit(X, y)
    assert charges(made) == 0


def test_auto_is_refused_where_a_later_fit_with_fewer_columns_would_bend() -> None:
    few = X[:120], CLASSES[:120]  # 120 x 1 / 5 is below 30 and 120 x 1 / 2 above: slopes first, splines later
    made = RFE(model_for(pf.LogisticRegression, CLASSES), n_features_to_select=1)
    with pytest.raises(pf.PrivacyError, match="importance_getter"):
        made.fit(*few)
    assert charges(made) == 0
    straight = RFE(model_for(pf.LogisticRegression, CLASSES, numeric="slope"), n_features_to_select=2).fit(X, CLASSES)
    assert straight.support_.tolist() == WANTED


@pytest.mark.parametrize("getter", ["auto", GETTER])
@pytest.mark.parametrize("selector", [SelectFromModel, RFE])
def test_a_kernel_is_refused_before_spending(selector: type, getter: str) -> None:
    made = selector(model_for(pf.LogisticRegression, CLASSES, kernel="rbf", n_components=4), importance_getter=getter)
    with pytest.raises(pf.PrivacyError, match="has no importances"):
        made.fit(X, CLASSES)
    assert charges(made) == 0


def _first_mean(rows: np.ndarray) -> float:
    return float(rows[:, 0].mean())


WITHOUT_IMPORTANCES = {
    "KMeans": lambda ledger: pf.KMeans(2, schema=pf.Schema.box(-1, 1), ledger=ledger),
    "Aggregate": lambda ledger: pf.Aggregate(
        _first_mean, low=-1, high=1, n_outputs=1, schema=box(NUMBERS), ledger=ledger
    ),
    "Majority": lambda ledger: pf.baselines.Majority(schema=box(CLASSES), ledger=ledger),
    "DPME": lambda ledger: pf.baselines.DPME(cells=2, schema=box(CLASSES), ledger=ledger),
}


@pytest.mark.parametrize("getter", ["auto", "coef_", GETTER])
@pytest.mark.parametrize("selector", [SelectFromModel, RFE])
@pytest.mark.parametrize("name", WITHOUT_IMPORTANCES)
def test_a_model_without_importances_is_refused_before_spending(name: str, selector: type, getter: str) -> None:
    made = selector(WITHOUT_IMPORTANCES[name](pf.Ledger(epsilon=9.0)), importance_getter=getter)
    with pytest.raises(
        pf.PrivacyError, match=rf"was given a {name} .*has no importances.*Use a linear model.*Nothing was charged"
    ):
        made.fit(X, NUMBERS if name == "Aggregate" else CLASSES)
    assert charges(made) == 0


@pytest.mark.parametrize("getter", ["cluster_centers_", lambda model: model.cluster_centers_])
def test_clusters_are_selected_by_their_centres(getter: Any) -> None:
    def kmeans() -> pf.KMeans:
        return pf.KMeans(2, schema=pf.Schema.box(-1, 1), ledger=pf.Ledger(epsilon=9.0))

    once = SelectFromModel(kmeans(), importance_getter=getter).fit(X)
    assert once.get_support().shape == (5,)
    assert charges(once) == 1
    often = RFE(kmeans(), n_features_to_select=3, importance_getter=getter).fit(X, NUMBERS)
    assert often.support_.sum() == 3
    assert charges(often) == 3


@pytest.mark.parametrize("getter", ["coef_", "feature_importance", "intercept_"])
@pytest.mark.parametrize("selector", [SelectFromModel, RFE])
def test_an_attribute_that_does_not_count_columns_is_refused_before_spending(selector: type, getter: str) -> None:
    """coef_ of splines, as with "auto"; a name that is not spelt right; one that is about something else."""
    made = selector(model_for(pf.LogisticRegression, CLASSES), importance_getter=getter)
    with pytest.raises(
        pf.PrivacyError, match=rf"importance_getter='{getter}'.*'feature_importances_'\)\. Nothing was charged"
    ):
        made.fit(X, CLASSES)
    assert charges(made) == 0


def test_a_model_that_is_never_charged_is_for_scikit_learn_to_judge() -> None:
    model = pf.baselines.NoPrivacy("linear", schema=box(NUMBERS))
    assert SelectFromModel(model, importance_getter="model_.coef_").fit(X, NUMBERS).get_support().tolist() == WANTED


def test_recursive_elimination_with_a_schema_that_lists_columns_is_refused_before_spending() -> None:
    named = pf.Schema([pf.Numeric(name, -1, 1) for name in "abcde"], target=pf.Numeric("target", -1, 1))
    for given in (X, pd.DataFrame(X, columns=list("abcde"))):
        made = RFE(pf.LinearRegression(schema=named, ledger=pf.Ledger(epsilon=9.0)), importance_getter=GETTER)
        with pytest.raises(pf.PrivacyError, match=r"pf\.Schema\.box"):
            made.fit(given, NUMBERS)
        assert charges(made) == 0


def test_a_frame_with_categories_is_selected_from_by_name() -> None:
    rows = pd.DataFrame(X, columns=list("abcde")).assign(g=np.where(X[:, 0] > 0, "u", "v"))
    columns = [*(pf.Numeric(name, -1, 1) for name in "abcde"), pf.Category("g", ["u", "v"])]
    schema = pf.Schema(columns, target=pf.Category("ill", ["no", "yes"]))
    ledger = pf.Ledger(epsilon=1.0)
    selector = SelectFromModel(pf.LogisticRegression(1.0, schema=schema, ledger=ledger), importance_getter=GETTER).fit(
        rows, CLASSES
    )
    assert list(selector.get_feature_names_out()) == ["b", "d"]
    assert list(selector.set_output(transform="pandas").transform(rows)) == ["b", "d"]
    assert len(ledger.entries()) == 1


def test_a_fitted_model_is_selected_from_for_nothing() -> None:
    model = model_for(pf.LogisticRegression, CLASSES).fit(X, CLASSES)
    selector = SelectFromModel(model, prefit=True, importance_getter=GETTER).fit(X, CLASSES)
    assert selector.get_support().tolist() == WANTED
    assert len(model.ledger.entries()) == 1


def test_a_selector_around_another_model_is_none_of_our_business() -> None:
    """A private model that is fitted inside another estimator's fit may be encoded as it likes."""
    from sklearn.linear_model import LogisticRegression

    class Inside(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            model_for(pf.LogisticRegression, CLASSES).fit(X, y)
            return super().fit(X, y, sample_weight)

    assert SelectFromModel(Inside()).fit(X, CLASSES).get_support().tolist() == WANTED
