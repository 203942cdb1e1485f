"""Bad input of any kind: a clear error or the documented clip; nothing charged, nothing changed, no cell quoted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError

import privfit as pf
from privfit.models.base import PrivateLinearModel
from tests.support.chains import told_by

TOKEN, NUMBER = "SECRET77", 7313.5791
MODELS = [pf.LinearRegression, pf.LogisticRegression]
ROWS = 6


def is_regressor(model: type) -> bool:
    return model is pf.LinearRegression


def box(model: type, **options: Any) -> pf.Schema:
    return pf.Schema.box(-1, 1, target=(0, 10) if is_regressor(model) else ["no", "yes"], **options)


def people(model: type) -> pf.Schema:
    target = pf.Numeric("goal", 0, 10) if is_regressor(model) else pf.Category("goal", ["no", "yes"])
    return pf.Schema(
        [pf.Numeric("age", 0, 100), pf.Category("city", ["Oslo", "Rome"]), pf.Category("code", [1, 2, 3])], target
    )


def array(rows: int = ROWS, width: int = 3) -> np.ndarray:
    return np.linspace(-1, 1, rows * width).reshape(rows, width)


def goal(model: type, rows: int = ROWS) -> list[Any]:
    return (
        [1.0, 9.0, 3.0, 4.0, 8.0, 2.0][:rows] if is_regressor(model) else ["no", "yes", "no", "no", "yes", "yes"][:rows]
    )


def frame(model: type) -> pd.DataFrame:
    columns = {"age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0], "city": ["Oslo", "Rome"] * 3, "code": [1, 2, 3, 1, 2, 3]}
    return pd.DataFrame(columns | {"goal": goal(model)})


def with_cell(table: Any, row: int, column: str, value: Any) -> Any:
    changed = table.astype({column: object})
    changed.loc[row, column] = value
    return changed


@dataclass
class Case:
    """One refused fit: what is given to which estimator, and what the error says."""

    says: str
    X: Callable[[type, Path], Any] = lambda model, path: array()
    y: Callable[[type], Any] | None = None
    schema: Callable[[type], Any] = box


def given(**columns: Any) -> Callable[[type, Path], Any]:
    return lambda model, path: frame(model).assign(**columns)


def on_array(X: Any) -> Callable[[type, Path], Any]:
    return lambda model, path: X() if callable(X) else X


def in_file(name: str, content: bytes) -> Callable[[type, Path], Any]:
    def make(model: type, path: Path) -> Path:
        (path / name).write_bytes(content)
        return path / name

    return make


def no_y(model: type) -> None:
    return None


def holding(value: Any, dtype: Any = None) -> np.ndarray:
    table = array().astype(dtype or object)
    table[2, 1] = value
    return table


ARRAYS = {
    "NaN": Case(r"'x1' contains NaN or missing values", on_array(holding(np.nan, float))),
    "None": Case(r"'x1' contains NaN or missing values", on_array(holding(None))),
    "pd.NA": Case(r"'x1' contains NaN or missing values", on_array(holding(pd.NA))),
    "a text": Case(r"'x1' holds texts, and the schema says it holds numbers", on_array(holding(TOKEN))),
    "texts that are numbers": Case(
        r"'x0' holds texts, and the schema says it holds numbers", on_array(array().astype(str))
    ),
    "lists with a text": Case(r"'x1' holds texts", on_array(holding(TOKEN).tolist())),
    "bytes": Case(r"'x0' holds texts", on_array(array().astype("S8"))),
    "dates": Case(
        r"'x0' holds values of type datetime64", on_array(np.full((ROWS, 3), "2020-01-01", dtype="datetime64[D]"))
    ),
    "complex": Case(r"'x0' holds values of type complex128", on_array(array() + NUMBER * 1j)),
    "complex objects": Case(r"'x1' holds values that are not numbers", on_array(holding(np.complex64(1 + 2j)))),
    "a list in a cell": Case(r"'x1' holds values that are not numbers", on_array(lambda: holding([NUMBER]))),
    "a huge integer": Case(r"'x1' holds values that are not numbers of ordinary size", on_array(holding(10**400))),
    "a signalling NaN": Case(r"'x1' holds values that are not numbers", on_array(holding(Decimal("sNaN")))),
    "one dimension": Case(r"1 dimension.*a table has two.*Reshape your data", on_array(np.full(ROWS, NUMBER))),
    "three dimensions": Case(
        r"3 dimension.*a table has two.*Reshape your data", on_array(np.full((ROWS, 2, 2), NUMBER))
    ),
    "a number": Case(r"0 dimension.*a float", on_array(NUMBER)),
    "nothing": Case(r"0 dimension.*a NoneType.*a table has two", on_array(None)),
    "a dict": Case(r"0 dimension.*a dict.*a table has two", on_array({"a": [NUMBER]})),
    "a set": Case(r"0 dimension.*a set.*a table has two", on_array({NUMBER})),
    "a generator": Case(r"0 dimension.*a generator", on_array(lambda: (row for row in array()))),
    "records": Case(r"1 dimension.*a list", on_array([{"a": NUMBER}] * ROWS)),
    "an empty list": Case(r"1 dimension", on_array([])),
    "a list of unequal rows": Case(r"'array' cannot be read", on_array([[NUMBER, 1.0], [2.0]])),
    "a pandas series": Case(r"1 dimension.*a Series", on_array(pd.Series([NUMBER] * ROWS))),
    "a polars series": Case(r"1 dimension.*a Series", on_array(pl.Series([NUMBER] * ROWS))),
    "sparse rows that are complex": Case(
        r"sparse matrix that holds no real numbers", on_array(scipy.sparse.csr_matrix(array() * 1j))
    ),
    "a sparse vector": Case(r"sparse array with 1 dim.*a table has two", on_array(scipy.sparse.coo_array(array()[0]))),
    "a mask": Case(r"masked array.*X.filled\(np.nan\)", on_array(np.ma.array(array(), mask=array() > 0))),
    "no rows": Case(r"no rows \(0 sample.*minimum of 1", on_array(np.empty((0, 3))), lambda model: []),
    "no columns": Case(r"0 feature\(s\), and a minimum of 1", on_array(np.empty((ROWS, 0)))),
    "a wrong width": Case(
        r"3 features, but \w+ is expecting 2 features", schema=lambda model: box(model, n_features=2)
    ),
    "a wrong width, too narrow": Case(
        r"3 features, but \w+ is expecting 5 features", schema=lambda model: box(model, n_features=5)
    ),
    "a named schema": Case(r"4 features, but \w+ is expecting 3 features", on_array(array(ROWS, 4)), schema=people),
}
TARGETS = {
    "no y": Case(r"requires y to be passed, but the target y is None.*Pass y", y=no_y),
    "no y, a fixed width": Case(
        r"requires y to be passed.*Pass y", y=no_y, schema=lambda model: box(model, n_features=3)
    ),
    "no y, no column": Case(
        r"requires y to be passed.*no column 'goal'", lambda model, _: frame(model).drop(columns="goal"), no_y, people
    ),
    "y too short": Case(r"inconsistent numbers of samples: \[6, 5\]", y=lambda model: goal(model, 5)),
    "y too long": Case(r"inconsistent numbers of samples: \[6, 12\]", y=lambda model: goal(model) * 2),
    "y as a scalar": Case(r"y should be a 1d array", y=lambda model: 3.0),
    "y as a name": Case(r"y should be a 1d array", y=lambda model: "goal"),
    "y as a dict": Case(r"y should be a 1d array", y=lambda model: {"goal": NUMBER}),
    "y of two columns": Case(r"y should be a 1d array", y=lambda model: np.full((ROWS, 2), NUMBER)),
    "y with NaN": Case(r"'target' contains NaN or missing values", y=lambda model: [*goal(model, 5), np.nan]),
    "y with None": Case(r"'target' contains NaN or missing values", y=lambda model: [*goal(model, 5), None]),
    "y of complex numbers": Case(
        r"'target' holds values of type complex128", y=lambda model: np.full(ROWS, NUMBER * 1j)
    ),
    "y of the other kind": Case(
        r"'target' holds|does not list", y=lambda model: [TOKEN] * ROWS if is_regressor(model) else [NUMBER] * ROWS
    ),
    "y with an unknown class": Case(
        r"'target' holds texts|a level that its schema does not list", y=lambda model: [*goal(model, 5), TOKEN]
    ),
    "y with a mask": Case(r"masked array", y=lambda model: np.ma.array(np.arange(6.0), mask=[1, 0, 0, 0, 0, 0])),
    "y and its column": Case(r"'goal' was given twice.*Give it once", lambda model, _: frame(model), goal, people),
    "y and its column, a box": Case(
        r"'target' was given twice", lambda model, _: pd.DataFrame(array(), columns=["a", "b", "target"])
    ),
    "y beside a stream": Case(
        r"target was given apart.*read in batches", lambda model, _: pl.DataFrame(array()).lazy()
    ),
}
FRAMES = {
    "a missing column": Case(
        r"no column 'code', which the schema lists", lambda model, _: frame(model).drop(columns="code")
    ),
    "two missing columns": Case(
        r"no column 'age', 'city'", lambda model, _: frame(model).drop(columns=["city", "age"])
    ),
    "a column twice": Case(
        r"more than one column called 'age'",
        lambda model, _: pd.concat([frame(model), frame(model)[["age"]] + NUMBER], axis=1),
    ),
    "an unknown level": Case(
        r"'city' contains a level .* does not list", lambda model, _: with_cell(frame(model), 1, "city", TOKEN)
    ),
    "an unknown number": Case(
        r"'code' contains a level .* does not list", lambda model, _: with_cell(frame(model), 1, "code", 731)
    ),
    "a text among numbers": Case(r"'age' holds texts", lambda model, _: with_cell(frame(model), 1, "age", TOKEN)),
    "texts for numbers": Case(r"'age' holds texts", given(age=["20", "30", "40", "50", "60", TOKEN])),
    "texts for numeric levels": Case(r"'code' holds texts", given(code=["1", "2", "3", "1", "2", TOKEN])),
    "numbers for texts": Case(r"'city' holds numbers", given(city=[NUMBER] * ROWS)),
    "dates for numbers": Case(r"'age' holds values of type", given(age=pd.date_range("2020-01-01", periods=ROWS))),
    "complex numbers": Case(r"'age' holds values of type complex", given(age=np.full(ROWS, NUMBER * 1j))),
    "NaN": Case(r"'age' contains NaN or missing", lambda model, _: with_cell(frame(model), 1, "age", np.nan)),
    "a missing level": Case(
        r"'city' contains NaN or missing", lambda model, _: with_cell(frame(model), 1, "city", None)
    ),
    "NaN in the target": Case(
        r"'goal' contains NaN or missing", lambda model, _: with_cell(frame(model), 1, "goal", None)
    ),
    "lists in cells": Case(r"'city' holds values that are not texts", given(city=[[TOKEN]] * ROWS)),
    "no rows": Case(r"no rows \(0 sample", lambda model, _: frame(model).iloc[:0]),
    "polars, texts for numbers": Case(
        r"'age' holds texts", lambda model, _: pl.from_pandas(given(age=[TOKEN] * ROWS)(model, _))
    ),
    "arrow, texts for numbers": Case(
        r"'age' holds texts", lambda model, _: pa.Table.from_pandas(given(age=[TOKEN] * ROWS)(model, _))
    ),
    "arrow, a column twice": Case(
        r"two columns of one name",
        lambda model, _: pa.table([pa.array([NUMBER])] * 2, names=["age", "age"]).append_column("goal", [["no"]]),
    ),
    "a stream, an unknown level": Case(
        r"'city' contains a level",
        lambda model, _: pa.Table.from_pandas(with_cell(frame(model), 1, "city", TOKEN)).to_reader(),
    ),
}
FILES = {
    "no file": Case(r"There is no file 'nowhere.csv'.*Give the path", lambda model, path: path / "nowhere.csv"),
    "a text that is no path": Case(
        r"There is no file at the path.*Give the path", lambda model, path: f"{TOKEN},2\n3,4"
    ),
    "a text without a line": Case(r"There is no file at the path.*Give the path", lambda model, path: f"{TOKEN},2,3"),
    "a long text": Case(r"There is no file at the path.*Give the path", lambda model, path: f"{TOKEN},1,2\n" * 10_000),
    "a long name": Case(r"There is no file at the path.*Give the path", lambda model, path: f"{TOKEN * 200}.csv"),
    "a text with a NUL": Case(r"There is no file at the path.*Give the path", lambda model, path: f"{TOKEN}\0.csv"),
    "a text that cannot be encoded": Case(
        r"There is no file at the path.*Give the path", lambda model, path: f"{TOKEN}\ud800.csv"
    ),
    "a folder": Case(r"There is no file", lambda model, path: path),
    "an unknown ending": Case(r"'t.xlsx' is neither Parquet nor CSV", in_file("t.xlsx", b"")),
    "an unreadable Parquet file": Case(r"'t.parquet' cannot be read", in_file("t.parquet", TOKEN.encode() * 20)),
    "a CSV file with a bad cell": Case(
        "Column 'age' holds texts that are not numbers",
        in_file("t.csv", f"age,city,code,goal\n20,Oslo,1,no\n{TOKEN},Rome,2,no\n".encode()),
    ),
    "a CSV file with an unknown level": Case(
        r"'city' contains a level|'t.csv' cannot be read",
        in_file("t.csv", f"age,city,code,goal\n20,Oslo,1,1\n30,{TOKEN},2,1\n".encode()),
    ),
    "a CSV file without rows": Case(r"no rows \(0 sample", in_file("t.csv", b"age,city,code,goal\n")),
    "an empty CSV file": Case(r"'t.csv' cannot be read", in_file("t.csv", b"")),
    "a CSV file without a column": Case(r"no column 'code'", in_file("t.csv", b"age,city,goal\n20,Oslo,no\n")),
    "a CSV file with a column twice": Case(
        r"more than one column called 'age'", in_file("t.csv", b"age,age,city,code,goal\n1,2,Oslo,1,no\n")
    ),
    "a file and y": Case(r"target was given apart", in_file("t.csv", b"age,city,code\n20,Oslo,1\n"), goal),
}
SCHEMAS = {
    "no schema": Case(r"was given no schema, and bounds.*Give one", schema=lambda model: None),
    "a dict": Case(r"was given schema=dict; a schema is a pf.Schema", schema=lambda model: {"age": (0, 1)}),
    "a list of columns": Case(
        r"was given schema=list; a schema is a pf.Schema", schema=lambda model: [pf.Numeric("a", 0, 1)]
    ),
    "a number": Case(r"was given schema=int", schema=lambda model: 5),
    "no such file": Case(r"schema file 'nowhere.toml' cannot be read", schema=lambda model: "nowhere.toml"),
    "no target": Case(r"a schema without a target.*Give them", schema=lambda model: pf.Schema.box(-1, 1)),
    "the other kind of target": Case(
        r"target 'target'; it needs a (Numeric|Category)",
        schema=lambda model: pf.Schema.box(-1, 1, target=["no", "yes"] if is_regressor(model) else (0, 10)),
    ),
    "a declared public table with a ledger": Case(
        r"A ledger was given to a fit that is not private", schema=lambda model: "public"
    ),
}
WRONG_PARAMETERS = {
    "epsilon": [0, -1.0, np.nan, np.inf, None, "1", True, 1j],
    "delta": [-0.1, 1.0, 2, np.nan, None, "0", False],
    "adjacency": ["swap", None, 1, ["replace-one"], "Replace-One"],
    "rows_per_person": [0, -1, 1.5, "1", None, True, np.nan],
    "expected_rows": [0, -5, 2.5, "10", True],
    "mechanism": ["objectives", "Auto", None, 7, pf.FunctionalMechanism],
    "numeric": ["slopes", None, 8, True],
    "ledger": ["ledger.db", 1.0, {"epsilon": 1}],
    "random_state": [0],  # with a ledger
}
WRONG_MECHANISMS = [
    {"calibration": "loose"},
    {"calibration": None},
    {"repair": "mend"},
    {"repair": 3},
    {"repair": "None"},
    {"loss": "squared"},
    {"interval": -1.0},
    {"interval": "wide"},
]


def snapshot(value: Any) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return value.tolist()
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_numpy().tolist(), list(value.axes[-1]), str(value.dtypes)
    if isinstance(value, pl.DataFrame | pl.Series):
        return value.to_dict() if isinstance(value, pl.DataFrame) else value.to_list()
    if scipy.sparse.issparse(value):
        return value.toarray().tolist()
    return copy.deepcopy(value) if isinstance(value, list | dict | set) else repr(value)


def assert_refused(estimator: PrivateLinearModel, X: Any, y: Any, says: str) -> None:
    """The fit is refused with a ValueError that says this, and leaves no trace: in the ledger, the parameters, the
    input or the error.
    """
    ledger = estimator.ledger
    parameters, before = estimator.get_params(deep=False), repr((snapshot(X), snapshot(y)))
    with pytest.raises(ValueError, match=says) as caught:
        estimator.fit(X, y)
    told = told_by(caught.value)
    assert TOKEN not in told
    assert str(NUMBER) not in told
    assert repr((snapshot(X), snapshot(y))) == before
    assert all(estimator.get_params(deep=False)[name] is value for name, value in parameters.items())
    if isinstance(ledger, pf.Ledger):
        assert ledger.entries() == []
        assert (ledger.spent, ledger.remaining) == (0, 1)
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", [*ARRAYS.items(), *TARGETS.items(), *SCHEMAS.items()], ids=lambda case: case[0])
def test_a_refused_fit_charges_nothing_changes_nothing_and_quotes_nothing(
    model: type, case: tuple[str, Case], tmp_path: Path
) -> None:
    _, facts = case
    estimator = model(schema=facts.schema(model), ledger=pf.Ledger(epsilon=1))
    assert_refused(estimator, facts.X(model, tmp_path), (facts.y or goal)(model), facts.says)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", [*FRAMES.items(), *FILES.items()], ids=lambda case: case[0])
def test_a_refused_table_charges_nothing_changes_nothing_and_quotes_nothing(
    model: type, case: tuple[str, Case], tmp_path: Path
) -> None:
    _, facts = case
    estimator = model(schema=people(model), ledger=pf.Ledger(epsilon=1))
    assert_refused(estimator, facts.X(model, tmp_path), (facts.y or no_y)(model), facts.says)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in WRONG_PARAMETERS.items() for value in values],
    ids=lambda part: part if isinstance(part, str) else repr(part)[:30],
)
def test_a_wrong_parameter_is_refused_by_name(model: type, name: str, value: Any) -> None:
    estimator = model(**{"schema": box(model), "ledger": pf.Ledger(epsilon=1), name: value})
    assert_refused(estimator, array(), goal(model), rf"{name}=|{name} is set")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wrong", WRONG_MECHANISMS, ids=repr)
def test_a_wrong_setting_of_the_mechanism_is_refused_by_name(model: type, wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    estimator = model(schema=box(model), ledger=pf.Ledger(epsilon=1), mechanism=pf.FunctionalMechanism(**wrong))
    assert_refused(estimator, array(), goal(model), rf"{name}={value!r} was given; it is ")


def test_the_functional_mechanism_refuses_three_classes() -> None:
    for schema in (
        pf.Schema.box(-1, 1, target=["a", "b", "c"]),
        pf.Schema.box(-1, 1, n_features=3, target=["a", "b", "c"]),
    ):
        estimator = pf.LogisticRegression(mechanism="functional", schema=schema, ledger=pf.Ledger(epsilon=1))
        assert_refused(
            estimator, array(), ["a", "b", "c"] * 2, r"'target' with 3 classes; it fits two.*mechanism='objective'"
        )


def test_linear_regression_refuses_a_target_with_bins() -> None:
    for bins in (2, 5):
        estimator = pf.LinearRegression(
            schema=pf.Schema.box(-1, 1, target=pf.Numeric("y", 0, 10, bins=bins)), ledger=pf.Ledger(epsilon=1)
        )
        assert_refused(estimator, array(), goal(pf.LinearRegression), rf"target 'y' has {bins} bins")


@pytest.mark.parametrize("model", MODELS)
def test_a_fit_beyond_the_budget_is_refused_before_the_table_is_read(model: type, tmp_path: Path) -> None:
    ledger = pf.Ledger(epsilon=1)
    reader = pa.Table.from_pandas(frame(model)).to_reader()
    with pytest.raises(pf.BudgetExceeded, match=r"epsilon 2 was asked for, and the ledger has epsilon 1"):
        model(epsilon=2, schema=people(model), ledger=ledger).fit(reader)
    assert ledger.entries() == []
    model(epsilon=1, schema=people(model), ledger=ledger).fit(reader)  # a stream passes by once: nothing of it was read
    assert ledger.remaining == 0


# -- the model that a refused fit leaves behind ----------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_model_whose_first_fit_was_refused_is_not_fitted(model: type) -> None:
    estimator = model(schema=box(model), ledger=pf.Ledger(epsilon=1))
    assert_refused(estimator, holding(np.nan, float), goal(model), "contains NaN")
    with pytest.raises(NotFittedError):
        estimator.predict(array())


@pytest.mark.parametrize("model", MODELS)
def test_a_fitted_model_is_what_it_was_after_a_refused_fit(model: type) -> None:
    estimator = model(epsilon=0.5, schema=box(model), ledger=pf.Ledger(epsilon=1)).fit(array(), goal(model))
    before = {name: repr(value) for name, value in vars(estimator).items()}
    with pytest.raises(pf.DataError, match="contains NaN"):
        estimator.fit(np.full((ROWS, 5), np.nan), goal(model))
    assert {name: repr(value) for name, value in vars(estimator).items()} == before


# -- what is not refused: clipped, as documented ---------------------------------------------------


def fitted(model: type, X: Any, y: Any = None, **parameters: Any) -> PrivateLinearModel:
    return model(**{"schema": box(model), "random_state": 0, **parameters}).fit(X, y)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("outside", "bound"),
    [
        (np.inf, 1),
        (-np.inf, -1),
        (1e308, 1),
        (-1e308, -1),
        (1.0000001, 1),
        (10**300, 1),
        (float(2**64), 1),
        (5e-324, 0.0),
        (-0.0, 0.0),
    ],
)
def test_a_value_outside_the_bounds_counts_as_the_bound(model: type, outside: float, bound: float) -> None:
    table, clipped = holding(outside), holding(bound, float)
    left, right = fitted(model, table, goal(model)), fitted(model, clipped, goal(model))
    assert np.array_equal(left.coef_, right.coef_)
    assert np.array_equal(left.intercept_, right.intercept_)


def test_a_target_outside_its_bounds_counts_as_the_bound() -> None:
    y = goal(pf.LinearRegression)
    left = fitted(pf.LinearRegression, array(), [np.inf, -1e308, *y[2:]])
    right = fitted(pf.LinearRegression, array(), [10.0, 0.0, *y[2:]])
    assert np.array_equal(left.coef_, right.coef_)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("X", "rows"),
    [(np.full((ROWS, 3), 0.25), ROWS), (np.zeros((ROWS, 3)), ROWS), (array(1), 1), (np.full((1, 1), np.inf), 1)],
    ids=["constant columns", "zeros", "one row", "one infinite cell"],
)
def test_a_poor_table_is_fitted_charged_once_and_stays_finite(model: type, X: np.ndarray, rows: int) -> None:
    ledger = pf.Ledger(epsilon=1)
    estimator = model(epsilon=0.25, schema=box(model), ledger=ledger).fit(X, goal(model, rows))
    assert np.isfinite(estimator.coef_).all()
    assert np.isfinite(estimator.intercept_).all()
    assert len(ledger.entries()) == 1
    assert ledger.remaining == 0.75


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda y: pa.chunked_array([y[:2], y[2:]])]
)
def test_y_of_any_kind_is_the_same_y(model: type, kind: Any) -> None:
    assert np.array_equal(fitted(model, array(), kind(goal(model))).coef_, fitted(model, array(), goal(model)).coef_)


@pytest.mark.parametrize("model", MODELS)
def test_y_as_a_single_column_is_taken_with_a_warning(model: type) -> None:
    for column in (np.array(goal(model))[:, None], pd.DataFrame({"goal": goal(model)})):
        with pytest.warns(DataConversionWarning, match="1d array was expected"):
            flat = fitted(model, array(), column)
        assert np.array_equal(flat.coef_, fitted(model, array(), goal(model)).coef_)


# -- predictions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_model_that_was_not_fitted_does_not_predict(model: type) -> None:
    estimator = model(schema=box(model))
    methods = ["predict", "get_feature_names_out", "save"]
    methods += [] if is_regressor(model) else ["predict_proba", "predict_log_proba", "decision_function"]
    for method in methods:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(estimator, method)(array())


PREDICTIONS = {
    "a missing column": (lambda X: X.drop(columns="code"), r"no column 'code', which the schema lists"),
    "a column twice": (lambda X: pd.concat([X, X[["age"]]], axis=1), r"more than one column called 'age'"),
    "an unknown level": (
        lambda X: with_cell(X, 1, "city", TOKEN),
        r"'city' contains a level that the model was not fitted with",
    ),
    "NaN": (lambda X: with_cell(X, 1, "age", np.nan), r"'age' contains NaN or missing values"),
    "a missing level": (lambda X: with_cell(X, 1, "city", None), r"'city' contains NaN or missing values"),
    "a text among numbers": (lambda X: with_cell(X, 1, "age", TOKEN), r"'age' holds texts"),
    "too few columns": (lambda X: X.to_numpy()[:, :2], r"2 features, but \w+ is expecting 3 features"),
    "too many columns": (
        lambda X: np.hstack([X.to_numpy(), X.to_numpy()]),
        r"6 features, but \w+ is expecting 3 features",
    ),
    "one dimension": (lambda X: X["age"].to_numpy(), r"1 dimension"),
    "nothing": (lambda X: None, r"0 dimension"),
    "no file": (lambda X: "nowhere.csv", r"There is no file 'nowhere.csv'"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", PREDICTIONS)
def test_a_refused_prediction_says_why_quotes_nothing_and_costs_nothing(model: type, case: str) -> None:
    ledger = pf.Ledger(epsilon=1)
    estimator = model(epsilon=1, schema=people(model), ledger=ledger).fit(frame(model))
    change, says = PREDICTIONS[case]
    X = change(frame(model).drop(columns="goal"))
    before = repr(snapshot(X))
    for method in (
        ["predict"] if is_regressor(model) else ["predict", "predict_proba", "predict_log_proba", "decision_function"]
    ):
        with pytest.raises(ValueError, match=says) as caught:
            getattr(estimator, method)(X)
        assert TOKEN not in told_by(caught.value)
        for beside_the_point in (
            "charged",
            "fill=",
            "other=",
            "correct the schema",
        ):  # the schema is frozen in the model
            assert beside_the_point not in str(caught.value)
    assert repr(snapshot(X)) == before
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_box_refuses_to_predict_for_another_width_or_for_nan(model: type) -> None:
    estimator = model(schema=box(model), ledger=pf.Ledger(epsilon=1)).fit(array(), goal(model))
    for X, says in (
        (array(4, 2), "2 features, but"),
        (array(4, 5), "5 features, but"),
        (holding(np.nan, float), "contains NaN"),
    ):
        with pytest.raises(ValueError, match=says):
            estimator.predict(X)


@pytest.mark.parametrize("model", MODELS)
def test_predicting_changes_nothing(model: type) -> None:
    estimator = fitted(model, frame(model), schema=people(model))
    X = frame(model).drop(columns="goal")
    before, coef = repr(snapshot(X)), estimator.coef_.copy()
    first = estimator.predict(X)
    assert np.array_equal(estimator.predict(X), first)
    assert repr(snapshot(X)) == before
    assert np.array_equal(estimator.coef_, coef)
