"""The tables with classes are read whole, fit their public schemas, and can be learned."""

from __future__ import annotations

import numpy as np
import pytest

import privfit as pf
from privfit_papers.bench import classes, data

TABLES = [(classes.adult, 48_842, 14, 11_687), (classes.bank, 45_211, 16, 5_289), (classes.brazil, 38_000, 52, 19_240)]


@pytest.mark.parametrize(("load", "rows", "columns", "second_class"), TABLES, ids=["adult", "bank", "brazil"])
def test_a_table_is_whole_and_fits_its_schema(load, rows: int, columns: int, second_class: int) -> None:
    try:
        frame, schema = load(data.data_folder())
    except data.NoData as missing:
        pytest.skip(str(missing))
    assert frame.height == rows
    assert len(schema.features) == columns
    assert (frame[schema.target.name] == schema.target.levels[1]).sum() == second_class
    model = pf.LogisticRegression(3.2, schema=schema, random_state=0).fit(frame)
    error = np.mean(model.predict(frame) != frame[schema.target.name].to_numpy())
    assert error < second_class / rows if second_class < rows / 2 else error < 0.4


def test_a_folder_without_the_file_says_so(tmp_path) -> None:
    with pytest.raises(data.NoData, match=r"adult\.data\.gz"):
        classes.adult(tmp_path)
