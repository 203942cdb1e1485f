"""Names that the schema does not list may be a row: they are used, and never told."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import is_classifier

import privfit as pf
from privfit.models import ESTIMATORS
from privfit.tables import DataError, draft_schema, open_table
from tests.support.chains import told_by

SECRET = 7313.5791
ROWS = np.array([[SECRET, 2.5], [11.0, 4.5], [88.0, 99.5]])
BOX = pf.Schema.box(0, 10_000)


def saved(path: Path, **options: Any) -> Path:
    np.savetxt(path, ROWS, **options)
    return path


def tells(thing: object) -> bool:
    return "7313" in str(thing) or "7.313" in str(thing)


HEADERLESS: dict[str, Callable[[Path], Any]] = {
    "savetxt": lambda folder: saved(folder / "t.csv"),  # with spaces: one column
    "savetxt, commas": lambda folder: saved(folder / "t.csv", delimiter=","),
    "savetxt, semicolons": lambda folder: saved(folder / "t.csv", delimiter=";", fmt="%.4f"),
    "savetxt, tabs": lambda folder: saved(folder / "t.tsv", delimiter="\t"),
    "gzip": lambda folder: saved(folder / "t.csv.gz", delimiter=","),
    "pandas": lambda folder: pd.read_csv(saved(folder / "t.csv", delimiter=",")),
    "polars": lambda folder: pl.read_csv(saved(folder / "t.csv", delimiter=",")),
    "polars, lazy": lambda folder: pl.scan_csv(saved(folder / "t.csv", delimiter=",")),
    "arrow": lambda folder: pl.read_csv(saved(folder / "t.csv", delimiter=",")).to_arrow(),
    "row as header": lambda folder: pd.DataFrame(ROWS[1:], columns=ROWS[0]),
    "row of texts as header": lambda folder: pd.DataFrame(ROWS[1:], columns=[str(value) for value in ROWS[0]]),
    "parquet": lambda folder: (
        pl.read_csv(saved(folder / "t.csv", delimiter=",")).write_parquet(folder / "t.parquet") or folder / "t.parquet"
    ),
}


@pytest.mark.parametrize("make", HEADERLESS.values(), ids=HEADERLESS.keys())
def test_a_table_without_a_header_is_refused_under_a_box_and_told_how_to_be_read(
    tmp_path: Path, make: Callable[[Path], Any]
) -> None:
    ledger = pf.Ledger(tmp_path / "l.db", epsilon=1.0)
    model = pf.KMeans(2, schema=BOX, ledger=ledger)
    with pytest.raises(
        DataError, match=r"as if a row stood where names should be.*has_header=False.*Nothing was charged"
    ) as caught:
        model.fit(make(tmp_path))
    assert not tells(told_by(caught.value))
    assert ledger.entries() == []
    assert not hasattr(model, "feature_names_in_")


EVERY = [*ESTIMATORS, pf.KMeans]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.__name__)
@pytest.mark.parametrize("make", HEADERLESS.values(), ids=HEADERLESS.keys())
def test_no_error_of_any_estimator_repeats_names_that_the_schema_does_not_list(
    tmp_path: Path, model: type, make: Callable[[Path], Any]
) -> None:
    target = (
        pf.Category("kind", ["a", "b"])
        if model is not pf.KMeans and is_classifier(model())
        else pf.Numeric("goal", 0, 1)
    )
    for schema in (
        pf.Schema([pf.Numeric("age", 0, 1)], target),
        pf.Schema.box(0, 10_000, target=target),
        pf.Schema.box(0, 1e4, 2, target),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            (pf.KMeans(2, schema=schema) if model is pf.KMeans else model(schema=schema)).fit(make(tmp_path))
        assert not tells(told_by(caught.value))


@pytest.mark.parametrize(
    "names",
    [
        ["5.1", "3.5"],
        ["-1", "+2e-3"],
        ["a", "39"],
        ["a", ""],
        ["a", "2020-01-31"],
        ["31.01.2020", "b"],
        ["2020-01-31T10:00:00Z", "b"],
        ["a", "nan"],
        ["NA", "a"],
        ["a", "n/a"],
        ["N/A", "b"],
        ["inf", "0x1F"],
        ["a", "-Infinity"],
        ["inf -nan 3"],
        ["true", "a"],
        ["$5", "a"],
        ["12%", "a"],
        ["1,5", "a"],
        ["1 2 3"],
        ["1.0|2.0"],
        ["0", "2"],
        ["3", "3_duplicated_0"],
    ],
)
def test_names_that_look_like_cells_are_known(names: list[str]) -> None:
    frame = pl.DataFrame({name: [0.5] for name in names})
    assert open_table(frame).names_are_values()
    assert not open_table(frame).names_are_values(listed=names[:1])  # what the schema lists is a name


@pytest.mark.parametrize(
    "names",
    [
        ["age", "x1"],
        ["2nd", "q3_2020"],
        ["0", "1", "2"],
        ["column_1", "nat_id"],
        ["info", "nano"],
        ["1_000"],
        ["e5"],
        ["no.", "5y"],
    ],
)
def test_names_are_known_for_names(names: list[str]) -> None:
    assert not open_table(pl.DataFrame({name: [0.5] for name in names})).names_are_values()


def test_columns_that_pandas_counts_are_no_values(tmp_path: Path) -> None:
    for frame in (
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS)[[1, 0]],
        pl.from_pandas(pd.DataFrame(ROWS)),
        pa.Table.from_pandas(pd.DataFrame(ROWS)),
    ):
        assert not open_table(frame).names_are_values()
    (tmp_path / "t.csv").write_text("0,1\n1,0\n")  # in a file a row looks like that
    assert open_table(tmp_path / "t.csv").names_are_values()


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: pl.DataFrame(columns).lazy()])
def test_a_box_counts_columns_and_nothing_fitted_holds_their_names(tmp_path: Path, table: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(0)
    columns = {"SECRET77": rng.uniform(0, 100, 50), "SECRET78": rng.uniform(0, 100, 50)}
    ledger = pf.Ledger(tmp_path / "l.db", epsilon=1.0)
    model = pf.KMeans(2, schema=pf.Schema.box(0, 100), ledger=ledger).fit(table(columns))
    assert list(model.feature_names_in_) == ["x0", "x1"]
    model.save(tmp_path / "m.json")
    shown = io.StringIO()
    print(model, model.__dict__, model.report_, json.dumps(model.report_.to_dict()), ledger.entries(), file=shown)
    for text in (shown.getvalue(), (tmp_path / "m.json").read_text(), pickle.dumps(model).decode("latin1")):
        assert "SECRET" not in text
    assert np.array_equal(
        pf.load_model(tmp_path / "m.json").predict(table(columns)),
        model.predict(np.column_stack(list(columns.values()))),
    )


def test_a_target_is_found_by_its_name_among_columns_that_are_counted() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 2))
    y = X @ [0.5, -0.25]
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    inside = pl.DataFrame({"left": X[:, 0], "target": y, "right": X[:, 1]})
    fitted = pf.LinearRegression(1.0, schema=schema, random_state=0).fit(inside)
    apart = pf.LinearRegression(1.0, schema=schema, random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, apart.coef_)
    np.testing.assert_array_equal(fitted.predict(inside), apart.predict(X))
    with pytest.raises(DataError, match="more than one column called 'target'"):
        pf.LinearRegression(schema=schema).fit(pd.DataFrame(np.zeros((2, 3)), columns=["a", "target", "target"]))


def test_a_name_in_other_letters_is_hinted_at_by_the_schema_s_own_name() -> None:
    with pytest.raises(
        DataError, match=r"no column 'Age', 'job'.*has 2 columns.*'Age' is there in other letters"
    ) as caught:
        open_table(pl.DataFrame({" age": [1.0], "SECRET77": [1.0]})).positions(
            [pf.Numeric("Age", 0, 1), pf.Numeric("job", 0, 1)],
        )
    assert "SECRET77" not in told_by(caught.value)
    assert "' age'" not in told_by(caught.value)


def test_twins_that_the_schema_does_not_name_do_no_harm_in_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,b,y\n0.5,1,2,0.25\n")
    columns = [pf.Numeric("a", 0, 1), pf.Numeric("y", 0, 1)]
    table = open_table(tmp_path / "t.csv")
    (batch,) = table.batches(columns, table.positions(columns), 10)
    assert [float(values[0]) for values in batch] == [0.5, 0.25]


# -- drafts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["savetxt", "savetxt, commas", "savetxt, semicolons", "savetxt, tabs", "gzip", "parquet"]
)
def test_nobody_s_row_is_drafted(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="as if a row stood where names should be") as caught:
        draft_schema(HEADERLESS[name](tmp_path))
    assert not tells(told_by(caught.value))


def test_a_row_with_texts_is_not_drafted_either(tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text("39,State-gov,77516,Bachelors\n50,Private,83311,HS-grad\n")
    with pytest.raises(DataError, match="as if a row stood"):
        draft_schema(tmp_path / "adult.csv")


def test_a_wrong_target_does_not_list_the_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("SECRET77,b\n1,2\n")
    with pytest.raises(pf.SchemaError, match=r"no column 'wealth' to be the target. It has 2 columns") as caught:
        draft_schema(tmp_path / "t.csv", "wealth")
    assert "SECRET77" not in told_by(caught.value)
