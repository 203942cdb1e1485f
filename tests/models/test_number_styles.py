"""How numbers enter where nobody says: by the number of rows, epsilon and the number of columns, all public."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import privfit as pf

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


def test_a_stream_is_not_used_up_to_count_it() -> None:
    model = pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0).fit(table(100).to_arrow().to_reader())
    assert len(model.get_feature_names_out()) == 16


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
