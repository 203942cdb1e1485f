"""What a model says about a row depends on that row alone, to the bit: on no row beside it, and not on its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.evaluation.predictor import Predictor
from privfit.tables import Batch

RNG = np.random.default_rng(0)
ROWS = 5003
FEATURES = [
    pf.Numeric("size", -3, 3),
    pf.Numeric("wage", 0, 5e6),
    pf.Numeric("age", 0, 100, bins=5),
    pf.Category("job", ["cook", "smith", "clerk"]),
]
TABLE = pl.DataFrame(
    {
        "size": RNG.normal(size=ROWS),
        "shift": RNG.normal(size=ROWS),
        "wage": RNG.lognormal(8, 3, ROWS),
        "age": RNG.uniform(0, 100, ROWS),
        "job": RNG.choice(["cook", "smith", "clerk"], ROWS),
        "ill": RNG.choice(["no", "yes"], ROWS),
        "kind": RNG.choice(["a", "b", "c"], ROWS),
        "cost": RNG.uniform(0, 10, ROWS),
    }
)
ILL, KIND, COST = pf.Category("ill", ["no", "yes"]), pf.Category("kind", ["a", "b", "c"]), pf.Numeric("cost", 0, 10)
NUMBERS = FEATURES[:2]
MODELS: dict[str, tuple[Any, Any]] = {
    "splines": (pf.LogisticRegression(epsilon=3.0, numeric="splines"), pf.Schema(FEATURES, ILL)),
    "slopes": (pf.LogisticRegression(epsilon=3.0, numeric="slope"), pf.Schema(FEATURES, ILL)),
    "pairs": (pf.LogisticRegression(epsilon=3.0, interactions=1), pf.Schema(FEATURES, ILL)),
    "kernel": (pf.LogisticRegression(epsilon=3.0, kernel="rbf", n_components=30), pf.Schema(FEATURES, ILL)),
    "short rows": (
        pf.LogisticRegression(epsilon=3.0, row_norm=1.0),
        pf.Schema([FEATURES[0], pf.Numeric("shift", -3, 3)], ILL),
    ),
    "classes": (pf.LogisticRegression(epsilon=3.0), pf.Schema(FEATURES, KIND)),
    "naive Bayes": (pf.GaussianNB(epsilon=3.0), pf.Schema(FEATURES, KIND)),
    "vectors": (pf.LinearSVC(epsilon=3.0), pf.Schema(FEATURES, ILL)),
    "numbers": (pf.LinearRegression(epsilon=3.0), pf.Schema(FEATURES, COST)),
    "curves": (pf.AdditiveRegressor(epsilon=3.0), pf.Schema(FEATURES, COST)),
    "components": (pf.PCA(n_components=2, epsilon=3.0), pf.Schema(FEATURES)),
    "clusters": (pf.KMeans(n_clusters=3, epsilon=3.0), pf.Schema(NUMBERS)),
}


def said(model: Any, table: Any) -> np.ndarray:
    """All that a model says of rows, side by side."""
    asked = ("predict_proba", "decision_function", "transform", "squared_distances")
    parts = [getattr(model, name)(table) for name in asked if hasattr(model, name)]
    parts += [] if parts else [model.predict(table)]
    return np.column_stack(parts)


@pytest.mark.parametrize("name", MODELS)
def test_a_row_is_predicted_alike_wherever_it_stands(name: str) -> None:
    estimator, schema = MODELS[name]
    model = estimator.set_params(schema=schema, random_state=0).fit(TABLE)
    predictor = Predictor.of(model)
    columns = predictor.schema.features

    def predicted(places: np.ndarray) -> np.ndarray:
        taken = TABLE[places]
        batch: Batch = [
            taken[column.name].to_numpy()
            if isinstance(column, pf.Numeric)
            else np.array([column.levels.index(level) for level in taken[column.name]], dtype=np.int32)
            for column in columns
        ]
        return np.asarray(predictor.predicted(batch, said))

    whole = predicted(np.arange(ROWS))
    np.testing.assert_allclose(whole, said(model, TABLE.select([column.name for column in columns])), rtol=1e-9)
    shuffled = RNG.permutation(ROWS)
    np.testing.assert_array_equal(predicted(shuffled), whole[shuffled])
    for length in (1, 2, 3, 7, 64, 4097):
        few = RNG.choice(ROWS, length, replace=False)
        np.testing.assert_array_equal(predicted(few), whole[few])


def test_a_product_of_matrices_is_not_alike_wherever_a_row_stands() -> None:
    """The reason for going column by column: the attack above can fail."""
    design, coef = RNG.normal(size=(5003, 37)), RNG.normal(size=37)
    whole = design @ coef
    apart = [(design[i : i + length] @ coef)[-1] - whole[i + length - 1] for length in (1, 2, 3, 5) for i in range(900)]
    own = sum(column * one for column, one in zip(design.T, coef, strict=True))
    assert not np.array_equal(own, whole) or any(apart)
