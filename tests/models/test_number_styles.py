"""How numbers enter where nobody says: by the number of rows, epsilon and the number of columns, all public."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import privfit as pf
from privfit.tables.table import Table

SCHEMA = pf.Schema([pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)], target=pf.Category("y", [0, 1]))


def table(rows: int) -> pl.DataFrame:
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, rows))
    return pl.DataFrame({"a": a, "b": b, "y": (a + b > 0).astype(int)})


@pytest.mark.parametrize(
    ("rows", "epsilon", "people", "names"),
    [
        (59, 1.0, 1, 2),
        (60, 1.0, 1, 6),
        (199, 1.0, 1, 6),
        (200, 1.0, 1, 10),
        (390, 1.0, 1, 10),
        (400, 1.0, 1, 16),
        (1000, 0.5, 1, 16),
        (700, 0.5, 1, 10),
        (700, 1.0, 2, 10),
    ],
)
def test_numbers_bend_where_enough_rows_speak_for_them(rows: int, epsilon: float, people: int, names: int) -> None:
    model = pf.LogisticRegression(epsilon, schema=SCHEMA, rows_per_person=people, random_state=0).fit(table(rows))
    assert len(model.get_feature_names_out()) == names


@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "lazy"])
def test_a_file_is_encoded_as_the_frame_that_it_holds(tmp_path, form: str) -> None:
    frame = table(600)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    given = {"frame": frame, "csv": tmp_path / "t.csv", "parquet": tmp_path / "t.parquet", "lazy": frame.lazy()}[form]
    model = pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0).fit(given)
    assert len(model.get_feature_names_out()) == 16
    np.testing.assert_allclose(model.coef_, pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0).fit(frame).coef_)


def test_where_the_number_of_rows_is_private_a_public_guess_decides() -> None:
    for guess, names in ((None, 16), (50, 2), (300, 10), (600, 16)):
        model = pf.LogisticRegression(
            1.0, schema=SCHEMA, adjacency="add-remove", expected_rows=guess, random_state=0
        ).fit(table(50))
        assert len(model.get_feature_names_out()) == names


@pytest.mark.parametrize(("rows", "names"), [(59, 2), (100, 6), (300, 10), (600, 16)])
def test_a_stream_is_counted_and_encoded_as_the_frame_that_it_holds(rows: int, names: int) -> None:
    frame, model = table(rows), pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0)
    assert len(model.fit(frame.to_arrow().to_reader(max_chunksize=7)).get_feature_names_out()) == names
    np.testing.assert_array_equal(model.coef_, clone(model).fit(frame).coef_)


def test_under_add_remove_a_stream_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number of rows is private there, and would move the encoding."""
    kept: list[object] = []
    monkeypatch.setattr(Table, "keep", lambda *given: kept.append(given))
    for guess, names in ((None, 16), (50, 2)):
        model = pf.LogisticRegression(
            1.0, schema=SCHEMA, adjacency="add-remove", expected_rows=guess, random_state=0
        ).fit(table(300).to_arrow().to_reader())
        assert len(model.get_feature_names_out()) == names
    assert not kept


def test_what_the_user_says_counts() -> None:
    for style, names in (("slope", 2), ("bins", 16), ("splines", 16)):
        assert (
            len(
                pf.LogisticRegression(1.0, schema=SCHEMA, numeric=style, random_state=0)
                .fit(table(600))
                .get_feature_names_out()
            )
            == names
        )


@pytest.mark.parametrize("rows", [300, 600])
def test_a_saved_model_keeps_how_numbers_enter(tmp_path, rows: int) -> None:
    frame = table(rows)
    model = pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0).fit(frame)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())
