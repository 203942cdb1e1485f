"""What stands for a missing value in a CSV file, and what is said of a cell that is no number."""

from __future__ import annotations

import numpy as np
import pytest

import privfit as pf
from privfit.tables import draft_schema, open_table

SCHEMA = pf.Schema([pf.Numeric("age", 0, 100, fill=40), pf.Category("sex", ["f", "m"], fill="f")])


def ages(path) -> list[float]:
    (batch,) = open_table(path).batches(SCHEMA.features, [0, 1], 100)
    return [float(age) for age in batch[0]]


@pytest.mark.parametrize("marker", ["", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null", "None"])
def test_the_usual_markers_are_missing_values(tmp_path, marker) -> None:
    (tmp_path / "t.csv").write_text(f"age,sex\n{marker},f\n 30.5 ,{marker}\n")
    first, second = ages(tmp_path / "t.csv")
    assert np.isnan(first)
    assert second == 30.5


@pytest.mark.parametrize("cell", ["unknown", "1;5", '"1,000"', '"12,5"', "2020-01-01"])
def test_a_cell_that_is_no_number_names_its_column_and_not_itself(tmp_path, cell) -> None:
    (tmp_path / "t.csv").write_text(f"age,sex\n30,f\n{cell},m\n")
    with pytest.raises(pf.DataError, match="Column 'age' holds texts that are not numbers") as caught:
        ages(tmp_path / "t.csv")
    assert cell.strip('"') not in str(caught.value)


def test_a_draft_says_what_to_do_and_knows_truth_values(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("age,member,born,income\n30,true,2001-02-03,5\n")
    draft = draft_schema(tmp_path / "t.csv", "income")
    assert "levels = [false, true]" in draft
    for advice in ("Delete the columns", "fill = 40", 'bins = "auto"'):
        assert advice in draft
    with pytest.raises(pf.SchemaError, match="has no bounds"):
        pf.Schema.from_toml(draft)
